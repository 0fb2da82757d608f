"""Records which system calls a program makes on the files of a folder, with strace; needs no package."""

import os
import re
import subprocess
import tempfile
from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path

# Calls that change a file or a folder, or what a descriptor stands for; what is not understood is refused below.
CALLS = """
open openat openat2 creat close dup dup2 dup3 fcntl lseek read pread64 readv preadv
write pwrite64 writev pwritev pwritev2 ftruncate truncate fallocate copy_file_range sendfile splice mmap
fsync fdatasync sync syncfs sync_file_range rename renameat renameat2 unlink unlinkat rmdir mkdir mkdirat
link linkat symlink symlinkat chdir io_uring_setup
""".split()
LINE = re.compile(r"(\d+) +(.*)")
CALL = re.compile(r"(\w+)\((.*)\) += (-?\d+|\?)(.*)", re.DOTALL)
RESUMED = re.compile(r"<\.\.\. (\w+) resumed>(.*)", re.DOTALL)
STRING = re.compile(r'"((?:\\x[0-9a-f]{2})*)"(\.\.\.)?')


class Unknown(Exception):
    """A call whose effect cannot be foretold."""


@dataclass(frozen=True)
class Step:
    """A change of a folder. `name` is a path in it, `file` a number that stands for the file however it is called."""

    kind: str  # create, write, truncate, rename, unlink, mkdir, sync, sync_folder
    name: str = ""
    file: int = -1
    at: int = 0
    data: bytes = b""
    to: str = ""
    # The system call, the thread that made it, and how many calls of that name the thread had made with this one.
    call: str = ""
    thread: int = 0
    nth: int = 0

    def __str__(self):
        more = {"write": f" {len(self.data)} bytes at {self.at}", "truncate": f" to {self.at} bytes"}
        more = more.get(self.kind, f" to {self.to}" if self.to else "")
        return f"{self.kind} {self.name or '.'}{more}"


@dataclass
class Opened:
    """What a descriptor stands for."""

    path: str
    file: int = -1  # a folder without a number
    offset: int = 0
    append: bool = False


@dataclass
class Trace:
    """The changes of a folder, one after another, and how the program ended."""

    steps: list
    # The files there were in the beginning: number by name.
    began: dict
    returncode: int
    stderr: str
    # Where the files of the folder were read.
    reads: list = field(default_factory=list)
    # How many calls of each name there were.
    counts: Counter = field(default_factory=Counter)


def have_strace():
    try:
        return subprocess.run(["strace", "-o", os.devnull, "true"], capture_output=True).returncode == 0
    except OSError:
        return False


def record(command, folder):
    """Runs a command in a folder and tells what it did to the files in it."""
    files = [path for path in Path(folder).rglob("*") if path.is_file()]
    before = {str(path.relative_to(folder)): path.stat().st_size for path in files}
    with tempfile.NamedTemporaryFile() as log:
        # Whole strings in hexadecimal: nothing to be taken for something else.
        strace = ["strace", "-f", "-xx", "-s", str(1 << 28), "-o", log.name, "-e", f"trace={','.join(CALLS)}"]
        outcome = subprocess.run(
            [*strace, *command], cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace"
        )
        lines = Path(log.name).read_text(errors="replace").splitlines()
    began = {name: number for number, name in enumerate(sorted(before))}
    sizes = {number: before[name] for name, number in began.items()}
    reading = Reading(os.path.realpath(folder), dict(began), sizes)
    for thread, name, arguments, result in calls(lines):
        reading.take(thread, name, arguments, result)
    return Trace(reading.steps, began, outcome.returncode, outcome.stderr, reading.reads, reading.counts)


def calls(lines):
    """Thread, name, arguments and result of each call, in the order in which they ended."""
    unfinished = {}
    for line in lines:
        match = LINE.fullmatch(line)
        if not match:
            continue
        thread, rest = int(match[1]), match[2]
        if rest.endswith("<unfinished ...>"):
            unfinished[thread] = rest.removesuffix("<unfinished ...>").rstrip()
            continue
        if resumed := RESUMED.fullmatch(rest):
            rest = unfinished.pop(thread) + resumed[2]
        if (match := CALL.fullmatch(rest)) and match[3] != "?":
            yield thread, match[1], match[2], int(match[3])


def strings(arguments):
    """The strings among the arguments, as bytes."""
    found = []
    for match in STRING.finditer(arguments):
        if match[2]:
            raise Unknown("a string was cut off")
        found.append(bytes.fromhex(match[1].replace("\\x", "")))
    return found


def plain(arguments):
    """The arguments that are no strings, in their places."""
    return [piece.strip() for piece in STRING.sub('""', arguments).split(",")]


class Reading:
    """Understands one call after another."""

    def __init__(self, folder, names, sizes):
        self.folder, self.names, self.sizes, self.files = folder, names, sizes, len(names)
        self.descriptors, self.steps, self.reads = {}, [], []
        self.counts, self.by_thread = Counter(), Counter()

    def inside(self, path, base="AT_FDCWD"):
        """The path in the folder, if it is there; the folder itself is the empty path."""
        start = self.folder
        if base != "AT_FDCWD" and not path.startswith(b"/"):
            opened = self.descriptors.get(int(base))
            if opened is None:
                return None
            start = os.path.join(self.folder, opened.path)
        # Neither the folder nor anything in it is a link.
        whole = os.path.normpath(os.path.join(start, path.decode(errors="surrogateescape")))
        if whole == self.folder:
            return ""
        return whole.removeprefix(self.folder + "/") if whole.startswith(self.folder + "/") else None

    def take(self, thread, name, arguments, result):
        self.counts[name] += 1
        self.by_thread[thread, name] += 1
        known = len(self.steps)
        if result >= 0:
            getattr(self, "call_" + name, self.refuse)(arguments, result, name)
        made = {"call": name, "thread": thread, "nth": self.by_thread[thread, name]}
        self.steps[known:] = [replace(step, **made) for step in self.steps[known:]]
        if "read" in name and result >= 0 and (opened := self.of(arguments)):
            self.reads.append(Step("read", self.name_of(opened), opened.file, **made))

    def refuse(self, arguments, result, name):
        """A call that matters only when it is about the folder."""
        paths = [self.inside(path) for path in strings(arguments)]
        descriptors = [self.descriptors.get(int(word)) for word in plain(arguments) if word.isdecimal()]
        if any(path is not None for path in paths) or any(descriptors):
            raise Unknown(f"{name}({plain(arguments)}) = {result}")

    # Descriptors.

    def call_openat(self, arguments, result, _):
        base, _, flags = plain(arguments)[:3]
        self.open(self.inside(strings(arguments)[0], base), flags.split("|"), result)

    def call_open(self, arguments, result, _):
        self.open(self.inside(strings(arguments)[0]), plain(arguments)[1].split("|"), result)

    def call_creat(self, arguments, result, _):
        self.open(self.inside(strings(arguments)[0]), ["O_WRONLY", "O_CREAT", "O_TRUNC"], result)

    def open(self, path, flags, descriptor):
        self.descriptors.pop(descriptor, None)
        if path is None:
            return
        if "O_TMPFILE" in flags:
            raise Unknown("a file without a name")
        if path not in self.names and "O_CREAT" in flags:
            self.names[path], self.sizes[self.files] = self.files, 0
            self.steps.append(Step("create", path, self.files))
            self.files += 1
        elif path in self.names and "O_TRUNC" in flags:
            self.truncate(path, self.names[path], 0)
        self.descriptors[descriptor] = Opened(path, self.names.get(path, -1), append="O_APPEND" in flags)

    def call_close(self, arguments, result, _):
        self.descriptors.pop(int(plain(arguments)[0]), None)

    def call_dup(self, arguments, result, _):
        self.share(int(plain(arguments)[0]), result)

    call_dup2 = call_dup3 = call_dup

    def call_fcntl(self, arguments, result, _):
        words = plain(arguments)
        if words[1].startswith("F_DUPFD"):
            self.share(int(words[0]), result)

    def share(self, old, new):
        self.descriptors.pop(new, None)
        if old in self.descriptors:
            # Both have one offset.
            self.descriptors[new] = self.descriptors[old]

    def of(self, arguments):
        """The file that the first argument stands for."""
        word = plain(arguments)[0]
        return self.descriptors.get(int(word)) if word.isdecimal() else None

    def call_lseek(self, arguments, result, _):
        if opened := self.of(arguments):
            opened.offset = result

    def call_read(self, arguments, result, _):
        if opened := self.of(arguments):
            opened.offset += result

    call_readv = call_read

    def call_pread64(self, arguments, result, _):
        """Reads at a place, which moves nothing."""

    call_preadv = call_pread64

    def call_mmap(self, arguments, result, name):
        words = plain(arguments)
        if "MAP_SHARED" in words[3] and "PROT_WRITE" in words[2] and words[4].isdecimal():
            self.refuse(words[4], result, name)

    # Files.

    def call_write(self, arguments, result, _):
        if opened := self.of(arguments):
            at = self.sizes[opened.file] if opened.append else opened.offset
            self.write(opened, at, b"".join(strings(arguments))[:result])
            opened.offset = at + result

    call_writev = call_write

    def call_pwrite64(self, arguments, result, _):
        if opened := self.of(arguments):
            self.write(opened, int(plain(arguments)[-1]), b"".join(strings(arguments))[:result])

    call_pwritev = call_pwrite64

    def write(self, opened, at, data):
        self.sizes[opened.file] = max(self.sizes[opened.file], at + len(data))
        self.steps.append(Step("write", self.name_of(opened), opened.file, at, data))

    def call_ftruncate(self, arguments, result, _):
        if opened := self.of(arguments):
            self.truncate(self.name_of(opened), opened.file, int(plain(arguments)[1]))

    def call_truncate(self, arguments, result, _):
        path = self.inside(strings(arguments)[0])
        if path is not None:
            self.truncate(path, self.names[path], int(plain(arguments)[1]))

    def truncate(self, name, file, length):
        self.sizes[file] = length
        self.steps.append(Step("truncate", name, file, length))

    def name_of(self, opened):
        """What the file is called now."""
        return next((name for name, number in self.names.items() if number == opened.file), opened.path)

    def call_fsync(self, arguments, result, _):
        if opened := self.of(arguments):
            kind = "sync" if opened.file >= 0 else "sync_folder"
            self.steps.append(Step(kind, self.name_of(opened) if opened.file >= 0 else opened.path, opened.file))

    call_fdatasync = call_fsync

    # Folders.

    def call_rename(self, arguments, result, _):
        old, new = (self.inside(path) for path in strings(arguments))
        self.rename(old, new)

    def call_renameat(self, arguments, result, _):
        words, paths = plain(arguments), strings(arguments)
        if len(words) > 4 and words[4] not in {"0", "RENAME_NOREPLACE"}:
            raise Unknown(f"renameat2 with {words[4]}")
        self.rename(self.inside(paths[0], words[0]), self.inside(paths[1], words[2]))

    call_renameat2 = call_renameat

    def rename(self, old, new):
        if old is None and new is None:
            return
        if old is None or new is None or old not in self.names:
            raise Unknown(f"renaming {old} to {new}")
        file = self.names[new] = self.names.pop(old)
        self.steps.append(Step("rename", old, file, to=new))

    def call_link(self, arguments, result, _):
        self.link(*(self.inside(path) for path in strings(arguments)))

    def call_linkat(self, arguments, result, _):
        words, paths = plain(arguments), strings(arguments)
        self.link(self.inside(paths[0], words[0]), self.inside(paths[1], words[2]))

    def link(self, old, new):
        if old is None and new is None:
            return
        if old not in self.names or new is None:
            raise Unknown(f"linking {old} to {new}")
        self.names[new] = self.names[old]
        # A second name is as a file that is made, already with its content.
        self.steps.append(Step("create", new, self.names[old]))

    def call_unlink(self, arguments, result, _):
        self.unlink(self.inside(strings(arguments)[0]))

    call_rmdir = call_unlink

    def call_unlinkat(self, arguments, result, _):
        self.unlink(self.inside(strings(arguments)[0], plain(arguments)[0]))

    def unlink(self, path):
        if path is not None:
            self.names.pop(path, None)
            self.steps.append(Step("unlink", path))

    def call_mkdir(self, arguments, result, _):
        path = self.inside(strings(arguments)[0])
        if path is not None:
            self.steps.append(Step("mkdir", path))

    def call_mkdirat(self, arguments, result, _):
        path = self.inside(strings(arguments)[0], plain(arguments)[0])
        if path is not None:
            self.steps.append(Step("mkdir", path))

"""Builds every state of the files that a crash of `leukos whiten` could leave, and goes on from each.

Usage: python crash_states.py PROGRAM [--states N] [--seed S] [--only JOB:STATE] [--unsynced]

The system calls of real runs are recorded with strace. A state is what a prefix of them leaves (the program was
killed), also with the last write cut; or what may be left of a prefix when the power fails: of what was written to a
file since it was last synced any part may be missing, cut off or zero, and of what happened to a folder since that was
last synced any single event may be missing. From each state `--resume` must end with the bytes of a run that was never
interrupted, and leave nothing over. After a failure of the power it may also refuse with the name of a file; then
nothing may be lost, and a run from the beginning must still do. No package is needed.

With `--unsynced` the program is taken for one that syncs nothing, which must fail: so it is known that the states bite.
"""

import argparse
import os
import random
import re
import subprocess
import sys
import tempfile
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from streams import MODEL, STATE, Stream, call, contents, fitted, names_one, put, workplace
from traces import Step, have_strace, record

ROWS, EVERY = 900, 150
# What an output that was there before holds.
OLD = b"precious\n"
# A file reaches the disk in pieces of this size; real ones are larger, and would leave fewer states.
SECTOR = 512


@dataclass(frozen=True)
class Job:
    """A stream whose crashes are looked at."""

    stream: Stream
    # Whether the recorded run goes on after a crash itself, and whether there was an output before.
    resumed: bool = False
    existing: bool = False

    @property
    def name(self):
        more = [word for word, is_so in [("resumed", self.resumed), ("over an output", self.existing)] if is_so]
        return ", ".join([self.stream.name, *more])


def job(input_format, output_format, *more, **how):
    return Job(Stream(input_format, output_format, ROWS, EVERY, more), **how)


JOBS = [
    job("npy", "npy"),
    job("npy", "csv", "--frozen"),
    job("npy", "raw"),
    job("csv", "csv"),
    job("csv", "npy", "--frozen"),
    job("csv", "raw"),
    job("int16", "raw"),
    job("int16", "npy"),
    job("int16", "csv", "--frozen"),
    job("float32", "raw", "--frozen"),
    job("float32", "npy", existing=True),
    job("float32", "csv"),
    job("npy", "npy", resumed=True),
    job("csv", "csv", resumed=True),
    job("float32", "raw", "--frozen", resumed=True, existing=True),
    job("int16", "raw", existing=True),
]


# What is left of a run.


@dataclass
class Files:
    """Files by number and their names, as a running system sees them."""

    names: dict
    bytes: dict

    def apply(self, step):
        if step.kind == "create":
            self.names[step.name] = step.file
            self.bytes.setdefault(step.file, b"")
        elif step.kind == "mkdir":
            self.names[step.name] = None
        elif step.kind == "unlink":
            self.names.pop(step.name, None)
        elif step.kind == "rename":
            self.names.pop(step.name, None)
            self.names[step.to] = step.file
        elif step.kind in {"write", "truncate"}:
            self.bytes[step.file] = changed(self.bytes.get(step.file, b""), step)

    def contents(self):
        return {name: None if file is None else self.bytes[file] for name, file in self.names.items()}


def changed(old, step):
    """The bytes of a file after a write or a truncation."""
    end = step.at + len(step.data)
    if step.kind == "truncate":
        return old[: step.at].ljust(step.at, b"\0")
    return old[: step.at].ljust(step.at, b"\0") + step.data + old[end:]


def cut(steps, rng):
    """The steps with the last one half done, if it is a write."""
    if not steps or steps[-1].kind != "write" or len(steps[-1].data) < 2:
        return steps
    last = steps[-1]
    length = rng.choice([1, len(last.data) // 2, len(last.data) - 1, rng.randrange(1, len(last.data))])
    return [*steps[:-1], Step("write", last.name, last.file, last.at, last.data[:length])]


def killed(began, steps):
    """What a program that is killed leaves: all that it has done."""
    files = Files(dict(began.names), dict(began.bytes))
    for step in steps:
        files.apply(step)
    return files.contents()


def powerless(began, steps, rng):
    """What a failure of the power may leave: what was synced, and some of the rest."""
    files = Files(dict(began.names), {})
    synced = {}
    for place, step in enumerate(steps):
        if step.kind in {"sync", "sync_folder"}:
            synced[step.kind, step.file if step.kind == "sync" else step.name] = place
    keep = rng.choice([0.0, 0.5, 0.5, 0.9, 1.0])
    for place, step in enumerate(steps):
        if step.kind in {"create", "mkdir", "unlink", "rename"}:
            sure = all(synced.get(("sync_folder", os.path.dirname(n)), -1) > place for n in [step.name, step.to] if n)
            if sure or rng.random() < keep:
                files.apply(step)
    for file in {*began.bytes, *(step.file for step in steps if step.file >= 0)}:
        own = [(place, step) for place, step in enumerate(steps) if step.file == file]
        sure = [step for place, step in own if place < synced.get(("sync", file), -1)]
        files.bytes[file] = remains(began.bytes.get(file, b""), sure, [step for _, step in own], rng)
    # A folder that was lost has lost what was in it.
    lost = [n for n in files.names if os.path.dirname(n) and os.path.dirname(n) not in files.names]
    for name in lost:
        del files.names[name]
    return files.contents()


def remains(began, sure, all_of_them, rng):
    """The bytes of a file: surely those of the first steps, and of the later ones whatever has reached the disk."""
    old = new = began
    for step in sure:
        old = changed(old, step) if step.kind in {"write", "truncate"} else old
    for step in all_of_them:
        new = changed(new, step) if step.kind in {"write", "truncate"} else new
    if old == new:
        return new
    way = rng.choice(["none", "all", "cut", "zeros", "sectors"])
    if way == "none":
        return old
    if way == "all":
        return new
    first, last = sorted((len(old), len(new)))
    length = rng.choice([first, last, rng.randint(first, last)])
    if way == "cut":
        return new[:length]
    if way == "zeros":
        from_here = rng.randint(0, len(new))
        # What was synced stays, but for where it was written over.
        return mixed(old, new, length, lambda at: at < from_here)
    chosen = {sector: rng.random() < 0.5 for sector in range(0, max(len(old), len(new)), SECTOR)}
    return mixed(old, new, length, lambda at: chosen[at - at % SECTOR])


def mixed(old, new, length, is_new):
    """So many bytes, from the new file where it is said so, and else from the old one, and zeros beyond that."""
    pieces = []
    for at in range(0, length, SECTOR):
        end = min(at + SECTOR, length)
        piece = (new if is_new(at) else old)[at:end]
        pieces.append(piece.ljust(end - at, b"\0"))
    return b"".join(pieces)


# What becomes of it.


@dataclass
class Recorded:
    """A job with its recorded run, in a folder of its own."""

    job: Job
    program: str
    folder: Path
    unsynced: bool
    whole: bytes
    given: dict
    began: Files
    steps: list

    @classmethod
    def of(cls, job, arguments, folder, model):
        folder.mkdir()
        program = arguments.program
        given = job.stream.files(model) | ({job.stream.output: OLD} if job.existing else {})
        whole = job.stream.whole(program, model)
        made = cls(job, program, folder, arguments.unsynced, whole, given, None, [])
        made.record(given)
        if job.resumed:
            half = next(i for i, step in enumerate(made.steps) if i > len(made.steps) // 2 and step.kind == "write")
            made.record(killed(made.began, made.steps[: half + 1]), "--resume")
        return made

    def record(self, files, *more):
        put(self.folder, files)
        trace = record(self.job.stream.resumable(self.program, *more), self.folder)
        assert trace.returncode == 0, f"{self.job.name}: {trace.stderr}"
        output = (self.folder / self.job.stream.output).read_bytes()
        assert output == self.whole, f"{self.job.name}: other bytes than without a checkpoint"
        assert trace.steps, "no system call was seen"
        data = {file: files[name] for name, file in trace.began.items()}
        names = trace.began | {name: None for name, bytes in files.items() if bytes is None}
        self.began = Files(names, data)
        self.steps = [step for step in trace.steps if not (self.unsynced and step.kind.startswith("sync"))]

    def state(self, number, seed):
        """State so and so: first those of a program that is killed, then those of a failure of the power."""
        rng = random.Random(f"{seed}/{self.job.name}/{number}")
        if number < 2 * len(self.steps) + 1:
            steps = self.steps[: (number + 1) // 2]
            return "killed", killed(self.began, cut(steps, rng) if number % 2 else steps)
        steps = self.steps[: rng.randint(1, len(self.steps))]
        return "power", powerless(self.began, cut(steps, rng) if rng.random() < 0.3 else steps, rng)

    def numbers(self, count, seed):
        """Which states are looked at: all of the first kind where there is time for them."""
        kills = list(range(2 * len(self.steps) + 1))
        if len(kills) > count // 2:
            kills = sorted(random.Random(f"{seed}/{self.job.name}").sample(kills, count // 2))
        first = 2 * len(self.steps) + 1
        return [*kills, *range(first, first + count - len(kills))]

    def outcome(self, kind, files):
        """What becomes of a state: `same bytes`, `refused`, or what is wrong."""
        stream = self.job.stream
        if self.job.existing and files.get(stream.output) not in {OLD, self.whole}:
            return "the output that was there before is lost"
        put(self.folder, files)
        try:
            outcome = call(stream.resumable(self.program, "--resume"), self.folder, timeout=60)
            if outcome.returncode == 0:
                return self.wrong() or "same bytes"
            said = outcome.stderr.strip()
            if outcome.returncode not in {1, 2} or not names_one(said, [*files, stream.output, STATE]):
                return f"ended with {outcome.returncode} and named no file: {said}"
            if lost := self.changed():
                return f"refused, but {lost}"
            if kind == "killed":
                return f"refused after a kill: {said.splitlines()[-1]}"
            if self.job.existing and (self.folder / stream.output).read_bytes() not in {OLD, self.whole}:
                return "refused, but the output that was there before is lost"
            again = call(stream.resumable(self.program), self.folder, timeout=60)
        except subprocess.TimeoutExpired:
            return "did not end within a minute"
        if again.returncode != 0:
            return f"refused ({said}), and then from the beginning too: {again.stderr.strip()}"
        wrong = self.wrong()
        return f"refused, and from the beginning {wrong}" if wrong else "refused"

    def changed(self):
        """What should not have changed and has."""
        now = contents(self.folder)
        for name in [MODEL, self.job.stream.input]:
            if now.get(name) != self.given[name]:
                return f"{name} was changed"
        return None

    def wrong(self):
        """What is wrong after a run that says it was none, if anything is."""
        now, stream = contents(self.folder), self.job.stream
        if stream.output not in now:
            return f"there is no {stream.output}"
        if now[stream.output] != self.whole:
            return f"{stream.output} has other bytes"
        over = sorted(set(now) - {MODEL, STATE, stream.input, stream.output})
        return self.changed() or (f"left over: {' '.join(over)}" if over else None)


def kind_of(reason):
    """A reason without what is random in the names of files, so that equal troubles have equal words."""
    return re.sub(r"\.\w+\.partial\b", ".*.partial", reason)


def look(job, folder, model, arguments):
    """How often each thing became of the states of a job, and what went wrong by number of state."""
    recorded = Recorded.of(job, arguments, folder, model)
    counts, failures = Counter(), []
    numbers = [arguments.state] if arguments.state is not None else recorded.numbers(arguments.count, arguments.seed)
    for number in numbers:
        kind, files = recorded.state(number, arguments.seed)
        outcome = recorded.outcome(kind, files)
        fine = outcome in {"same bytes", "refused"}
        counts[kind, outcome if fine else "failed"] += 1
        if not fine:
            failures.append((number, kind, outcome))
        if arguments.state is not None:
            print(f"{job.name}, state {number} ({kind}): {outcome}; before:")
            for name, data in sorted(files.items()):
                print(f"  {name}: {'a folder' if data is None else f'{len(data)} bytes'}")
            for place, step in enumerate(recorded.steps):
                print(f"  {place:3} {step}")
    return len(recorded.steps), counts, failures


def parsed():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program", type=os.path.abspath)
    parser.add_argument("--states", type=int, default=10_000, help="how many in all")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    parser.add_argument("--only", metavar="JOB:STATE", help="one state, with what was in it")
    parser.add_argument("--unsynced", action="store_true", help="as if the program synced nothing, which must fail")
    return parser.parse_args()


def main():
    arguments = parsed()
    if not have_strace():
        sys.exit("not checked: there is no strace")
    chosen, arguments.state = list(enumerate(JOBS)), None
    if arguments.only:
        number, arguments.state = map(int, arguments.only.split(":"))
        chosen = [chosen[number]]
    arguments.count = -(-arguments.states // len(JOBS))
    print(f"seed {arguments.seed}")
    print(f"{'job':50} {'calls':>5} {'states':>6} {'same bytes':>10} {'refused':>7} {'failed':>6}  (killed + power failed)")
    model = fitted(arguments.program)
    total, failed, reasons = Counter(), [], Counter()
    with tempfile.TemporaryDirectory(dir=workplace()) as place, ProcessPoolExecutor(2) as pool:
        work = [
            (number, job, pool.submit(look, job, Path(place, str(number)), model, arguments))
            for number, job in chosen
        ]
        for number, job, future in work:
            calls, counts, failures = future.result()
            total += counts
            print(row(f"{number:2} {job.name}", calls, counts), flush=True)
            failed += [(number, *failure) for failure in failures]
            reasons.update(kind_of(failure[-1]) for failure in failures)
    print(row("all", "", total))
    for reason, count in reasons.most_common(12):
        example = next(f"--only {number}:{state}" for number, state, _, why in failed if kind_of(why) == reason)
        print(f"FAILED {count} times: {reason}\n    once more: --seed {arguments.seed} {example}")
    sys.exit(1 if failed else 0)


def row(name, calls, counts):
    def cell(outcome, width):
        kinds = [counts[kind, outcome] for kind in ["killed", "power"]]
        return f"{'+'.join(map(str, kinds)):>{width}}"

    cells = f"{cell('same bytes', 10)} {cell('refused', 7)} {cell('failed', 6)}"
    return f"{name:50} {calls:>5} {counts.total():>6} {cells}"


if __name__ == "__main__":
    main()

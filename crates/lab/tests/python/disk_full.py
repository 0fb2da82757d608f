"""Fails each system call of each command in turn, fills real disks, and looks whether anything is lost.

Usage: python disk_full.py PROGRAM [--most N] [--seed S]

strace makes one call after another fail (ENOSPC, EIO, EINTR, ...): those that write, make, rename or sync a file of the
folder, and those that read the input. The command must end with 1 and name a file, or do all the same what it should;
inputs stay as they are, an output that was there before is that or the new one, whole, and nothing is left over. The
same command without trouble (with --resume where there is a checkpoint) then does its work. Then files may only grow
so far, the disk is a small one that fills up, and standard output and error are full. No package is needed.
"""

import argparse
import json
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from streams import MODEL, STATE, Stream, call, contents, fitted, names_one, put, stimuli, text, workplace
from traces import have_strace, record

OLD = b"precious\n"
RUNS = "out/runs/synthetic.jsonl"
# What can go wrong with a call, by what it does to a file.
TROUBLES = {
    "write": ["ENOSPC", "EIO", "EINTR"],
    "create": ["ENOSPC", "EACCES", "EINTR"],
    "truncate": ["EIO", "EINTR"],
    "sync": ["EIO", "ENOSPC", "EINTR"],
    "sync_folder": ["EIO", "EINTR"],
    "rename": ["EIO", "ENOSPC"],
    "mkdir": ["ENOSPC"],
    "read": ["EIO", "EINTR"],
}
# A page of a disk in memory.
PAGE = 4096


@dataclass(frozen=True)
class Job:
    """A command on files, and what it should write."""

    name: str
    given: dict
    command: tuple
    # The outputs, and what was there before in the place of some.
    outputs: tuple
    before: dict
    # What the same work is asked for with once more, and what may stay after a failure for that call.
    again: tuple = ()
    kept: tuple = ()

    def files(self):
        return self.given | self.before


def jobs(program, model):
    """The commands that write files."""
    rows = text(stimuli(600, 5), ",")

    def stream(input_format, output_format, *more, saving):
        made = Stream(input_format, output_format, 900, 300, more)
        command = made.resumable(program) if saving else made.command(program)
        again = (*command, "--resume") if saving else ()
        kept = (STATE, ".out", ".state", made.output + ".partial") if saving else ()
        name = f"whiten {made.name}" + (" --checkpoint" if saving else "")
        before = {} if input_format == "csv" else {made.output: OLD}
        return Job(name, made.files(model), tuple(command), (made.output,), before, again, kept)

    spec = Path(__file__).resolve().parents[2] / "experiments" / "synthetic.toml"
    spec = re.sub(r"starts = \{ quick = \d+", "starts = { quick = 1", spec.read_text())
    spec = re.sub(r"presentations = \{ quick = \d+", "presentations = { quick = 12", spec)
    spec = re.sub(r"samples = \d+", "samples = 30", spec).encode()
    reproduce = (program, "reproduce", "synthetic", "--spec", "s.toml", "--out", "out", "--jobs", "1", "--quiet")
    with tempfile.TemporaryDirectory() as folder:
        put(Path(folder), {"s.toml": spec})
        assert call(reproduce, folder).returncode == 0
        finished = {"out": None, "out/runs": None, RUNS: Path(folder, RUNS).read_bytes()}
    pictures = [f"out/figures/synthetic{style}.{kind}" for style in ["", "-print"] for kind in ["svg", "png"]]
    contexts = (program, "contexts", "day.csv", "--segment", "200", "--out", "covs.npy")
    return [
        Job("fit", {"rest.csv": rows, "walk.csv": text(stimuli(500, 6), ",")},
            (program, "fit", "rest.csv", "walk.csv", "--out", "new.safetensors"), ("new.safetensors",),
            {"new.safetensors": model}),
        stream("npy", "npy", saving=False),
        stream("csv", "csv", saving=False),
        stream("int16", "raw", "--frozen", saving=False),
        stream("npy", "npy", saving=True),
        stream("csv", "csv", saving=True),
        stream("int16", "raw", "--frozen", saving=True),
        Job("contexts", {"day.csv": rows}, contexts, ("covs.npy", "covs.csv", "covs.svg", "covs.png"),
            {"covs.npy": OLD, "covs.png": OLD}),
        Job("inspect --picture", {MODEL: model, "day.csv": rows},
            (program, "inspect", MODEL, "day.csv", "--picture", "p.svg"), ("p.svg",), {"p.svg": OLD}),
        Job("inspect --picture of a model", {MODEL: model},
            (program, "inspect", MODEL, "--picture", "p.png"), ("p.png",), {}),
        Job("reproduce", {"s.toml": spec}, reproduce,
            ("out/results.json", "out/panels.json", "out/report.html", *pictures), {}, reproduce, ("out/",)),
        # No other thread writes then, so that every call can be told from the others.
        Job("reproduce from finished runs", {"s.toml": spec}, reproduce,
            (RUNS, "out/results.json", "out/panels.json", "out/report.html", *pictures), finished, reproduce, ("out/",)),
    ]


class Bench:
    """A job in a folder of its own, with what it writes when nothing is amiss."""

    def __init__(self, job, folder):
        self.job, self.folder = job, folder
        folder.mkdir()
        put(folder, job.files())
        self.trace = record(job.command, folder)
        assert self.trace.returncode == 0, f"{job.name}: {self.trace.stderr}"
        self.whole = contents(folder)

    def troubles(self):
        """Every call that can fail, with every way to fail: its kind, and the words that tell strace."""
        reads = [step for step in self.trace.reads if step.name in self.job.given]
        found = {}
        for step in [*self.trace.steps, *reads]:
            for error in TROUBLES.get(step.kind, []):
                found[self.words(step, error)] = step.kind
        return [(kind, words) for words, kind in found.items()]

    def words(self, step, error):
        """What tells strace to fail a call. It counts in each thread anew, so those of other threads than the first
        are counted by their file, or a message of the first thread would fail too."""
        first = self.trace.steps[0].thread
        if step.thread == first:
            return ("-e", f"trace={step.call}", "-e", f"inject={step.call}:error={error}:when={step.nth}")
        own = [other for other in self.trace.steps if (other.call, other.name) == (step.call, step.name)]
        nth = 1 + [other for other in own if other.thread != first].index(step)
        which = ("-P", step.name, "-P", str(self.folder / step.name), "-e", f"trace={step.call}")
        return (*which, "-e", f"inject={step.call}:error={error}:when={nth}")

    def fail(self, words):
        """Runs the command with a call failing; None where that call is not made, or is a message."""
        put(self.folder, self.job.files())
        with tempfile.NamedTemporaryFile() as log:
            strace = ["strace", "-f", "-o", log.name, *words]
            outcome = call([*strace, *self.job.command], self.folder, timeout=120)
            injected = re.findall(r"(\w+\(\w*).*\(INJECTED\)", Path(log.name).read_text(errors="replace"))
        # A message that could not be said is another matter, see `full_streams`.
        return outcome if injected and "write(2" not in injected else None

    def verdict(self, outcome, folder=None):
        """What is wrong with how a command ended, or `same bytes` or `refused`."""
        now, job = contents(folder or self.folder), self.job
        for name, data in job.given.items():
            if now.get(name) != data:
                return f"{name} was changed"
        for name in job.outputs:
            if now.get(name) != job.before.get(name) and not self.same(name, now.get(name)):
                return f"ended with {outcome.returncode}, and {name} is neither what it was nor what it should be"
        if outcome.returncode == 0:
            return self.wrong(now) or "same bytes"
        said = outcome.stderr.strip()
        if outcome.returncode != 1 or "error: " not in said or "panicked" in said:
            return f"ended with {outcome.returncode}: {said}"
        if not names_one(said.split("error: ")[-1], {*self.whole, *now, "standard output", "standard error"}):
            return f"named no file: {said}"
        over = sorted(set(now) - {*job.files(), *job.outputs})
        over = [name for name in over if name.endswith(".lock") or not f"{name}/".startswith(job.kept or "\0")]
        return f"left over: {' '.join(over)}" if over else "refused"

    def wrong(self, now):
        """What is wrong after a run that says it was none."""
        for name in self.job.outputs:
            if not self.same(name, now.get(name)):
                return f"ended with 0, but {name} has other bytes"
        over = sorted(set(now) - set(self.whole))
        return f"ended with 0, but left over: {' '.join(over)}" if over else None

    def same(self, name, data):
        """Whether an output is what it should be; results say how long they took."""
        if data is None or not name.startswith("out/"):
            return data == self.whole[name]
        if name.endswith("results.json"):
            return json.loads(data)["figures"] == json.loads(self.whole[name])["figures"]
        return name.endswith("report.html") or data == self.whole[name]

    def after(self, verdict):
        """The verdict, or what is wrong when the work is asked for once more without trouble."""
        if verdict != "refused":
            return verdict
        outcome = call(self.job.again or self.job.command, self.folder, timeout=120)
        if outcome.returncode != 0:
            return f"refused, and then without trouble too: {outcome.stderr.strip()}"
        wrong = self.wrong(contents(self.folder))
        return f"refused, and then without trouble {wrong}" if wrong else verdict


def look(job, folder, arguments):
    """What becomes of a job, call by call: counts, and what went wrong."""
    bench = Bench(job, folder)
    counts, failures = Counter(), []

    def note(kind, verdict, how):
        fine = verdict in {"same bytes", "refused"}
        counts[kind, verdict if fine else "failed"] += 1
        if not fine:
            failures.append((job.name, how, verdict))

    rng = random.Random(f"{arguments.seed}/{job.name}")

    def some(of_these, most):
        return of_these if most is None or len(of_these) <= most else rng.sample(of_these, most)

    for kind, words in some(bench.troubles(), arguments.most):
        how = f"strace -f {' '.join(words)}"
        try:
            outcome = bench.fail(words)
            if outcome is None:
                counts["not reached", ""] += 1
            else:
                note(kind, bench.after(bench.verdict(outcome)), how)
        except subprocess.TimeoutExpired:
            note(kind, "did not end within two minutes", how)
    for limit in some(limits(bench), arguments.most and arguments.most // 4):
        put(folder, job.files())
        note("file too large", bench.after(bench.verdict(limited(job, folder, limit))), f"ulimit -f of {limit} bytes")
    for pages in some(disks(bench) if may_mount() else [], arguments.most and arguments.most // 4):
        note("small disk", on_small_disk(bench, pages), f"a disk of {pages} pages")
    return counts, failures


# Files that may not grow, and disks that are small.


def limits(bench):
    """Sizes at which the largest file cannot be finished."""
    largest = max(len(data) for name, data in bench.whole.items() if name in bench.job.outputs)
    return sorted({0, 1, 100, *(largest * i // 16 for i in range(1, 16)), largest - 1})


def limited(job, folder, limit):
    """Runs a command whose files may not be larger."""
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        # The signal is ignored in the child too: so the write fails, as on a disk with quotas.
        return call(
            job.command, folder, timeout=120, restore_signals=False,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY)),
        )
    finally:
        signal.signal(signal.SIGXFSZ, before)


UNSHARE = ["unshare", "--mount", "--map-root-user", "sh", "-c"]
# The disk is gone with the shell, so what is on it is copied: after the failure, and after the work was done again.
ON_SMALL_DISK = """
mount -t tmpfs -o size=$PAGES none disk || exit 99
cp -R given/. disk && cd disk || exit 99
"$@" 2>../said
echo $? >../ended
cp -R . ../after
mount -o remount,size=64m none .
if [ -n "$AGAIN" ]; then "$@" --resume; else "$@"; fi 2>../said_again
echo $? >../ended_again
cp -R . ../again
"""


def may_mount():
    if shutil.which("unshare") is None:
        return False
    with tempfile.TemporaryDirectory() as folder:
        return call([*UNSHARE, f"mount -t tmpfs -o size=64k none {folder}"], folder).returncode == 0


def pages_of(files):
    return sum(-(-len(data or b"") // PAGE) for data in files.values())


def disks(bench):
    """Sizes of disks, in pages, from one that holds the inputs to one that holds a little more than the outputs."""
    least = pages_of(bench.job.files())
    most = least + pages_of(bench.whole)
    return sorted({least + (most - least) * i // 24 for i in range(25)})


def on_small_disk(bench, pages):
    job = bench.job
    with tempfile.TemporaryDirectory(dir=workplace()) as place:
        place = Path(place)
        for name in ["given", "disk"]:
            (place / name).mkdir()
        put(place / "given", job.files())
        resumes = "yes" if "--resume" in job.again else ""
        outcome = call([*UNSHARE, ON_SMALL_DISK, "sh", *job.command], place, timeout=120,
                       env=os.environ | {"PAGES": str(pages * PAGE), "AGAIN": resumes})
        if outcome.returncode != 0:
            return f"the disk could not be set up: {outcome.stderr}"
        ended, again = (int((place / name).read_text()) for name in ["ended", "ended_again"])
        said = (place / "said").read_text()
        verdict = bench.verdict(subprocess.CompletedProcess([], ended, "", said), place / "after")
        if verdict != "refused":
            return verdict
        if again != 0:
            return f"refused, and then with room too: {(place / 'said_again').read_text().strip()}"
        wrong = bench.wrong(contents(place / "again"))
        return f"refused, and then with room {wrong}" if wrong else verdict


def full_streams(program, model):
    """Standard output and error on a full disk: what ended in another way than it should."""
    failures, tried = [], 0
    made = Stream("csv", "csv", 900, 300)
    whole = made.whole(program, model)
    to_stdout = [*made.command(program)[:5], "-", "--out-format", "csv"]
    with tempfile.TemporaryDirectory(dir=workplace()) as place, open("/dev/full", "w") as full:
        put(Path(place), made.files(model))
        for command, more, expected in [
            ([program, "inspect", MODEL], {"stdout": full}, 1),
            ([program, "inspect", MODEL, "--json"], {"stdout": full}, 1),
            ([program, "completions", "bash"], {"stdout": full}, 1),
            (to_stdout, {"stdout": full}, 1),
            (made.command(program), {"stderr": full}, 0),
            ([program, "inspect", "missing.csv"], {"stderr": full}, 1),
            ([program, "fit", made.input, "--out", "new"], {"stderr": full}, 0),
            ([program, "contexts", made.input, "--segment", "300", "--out", "c.npy"], {"stderr": full}, 0),
        ]:
            tried += 1
            streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | more
            outcome = subprocess.run(command, cwd=place, stdin=subprocess.DEVNULL, text=True, **streams)
            name = f"{Path(command[0]).name} {' '.join(command[1:])} with {next(iter(more))} full"
            if outcome.returncode != expected:
                failures.append((name, "", f"ended with {outcome.returncode}, not {expected}: {outcome.stderr or ''}"))
            elif "stdout" in more and "error: " not in outcome.stderr:
                failures.append((name, "", f"said nothing of it: {outcome.stderr}"))
            if command == made.command(program) and Path(place, made.output).read_bytes() != whole:
                failures.append((name, "", "wrote other bytes"))
    return tried, failures


def parsed():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program", type=os.path.abspath)
    parser.add_argument("--most", type=int, help="at most so many calls of each command, drawn at random")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    return parser.parse_args()


def main():
    arguments = parsed()
    if not have_strace():
        sys.exit("not checked: there is no strace")
    print(f"seed {arguments.seed}")
    print(f"{'command':40} {'call that fails':16} {'tried':>5} {'same bytes':>10} {'refused':>7} {'failed':>6}")
    model = fitted(arguments.program)
    failed, total = [], Counter()
    with tempfile.TemporaryDirectory(dir=workplace()) as place, ProcessPoolExecutor(2) as pool:
        made = jobs(arguments.program, model)
        work = [pool.submit(look, job, Path(place, str(i)), arguments) for i, job in enumerate(made)]
        for job, future in zip(made, work):
            counts, failures = future.result()
            failed += failures
            if missed := counts.pop(("not reached", ""), 0):
                print(f"{job.name:40} {'not reached':16} {missed:>5}")
            for kind in dict.fromkeys(kind for kind, _ in counts):
                print(row(job.name, kind, {end: counts[kind, end] for end in ["same bytes", "refused", "failed"]}))
            for (_, end), count in counts.items():
                total[end] += count
            sys.stdout.flush()
    tried, failures = full_streams(arguments.program, model)
    failed += failures
    own = {"same bytes": tried - len(failures), "refused": 0, "failed": len(failures)}
    print(row("standard output and error", "all of it full", own))
    print(row("all", "", total + Counter(own)))
    if not may_mount():
        print("not checked: a small disk cannot be mounted here")
    for name, how, why in failed[:20]:
        print(f"FAILED {name} ({how}): {why}")
    sys.exit(1 if failed else 0)


def row(name, kind, ends):
    ends = {end: ends.get(end, 0) for end in ["same bytes", "refused", "failed"]}
    same, refused, failed = ends.values()
    return f"{name:40} {kind:16} {sum(ends.values()):>5} {same:>10} {refused:>7} {failed:>6}"


if __name__ == "__main__":
    main()

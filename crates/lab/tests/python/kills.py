"""Kills `leukos whiten` at random moments between every two formats, and stalls the pipes that commands read.

Usage: python kills.py PROGRAM [--kills N] [--seed S]

After SIGKILL at whatever moments, `--resume` must end with the bytes of a run that was never interrupted, and leave
nothing over. A command whose input has stalled must end within a second of SIGINT, SIGTERM or SIGHUP, with 130, and
leave nothing over either. No package is needed.
"""

import argparse
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from streams import (
    INPUTS, MODEL, OUTPUTS, STATE, WRITERS, Stream, call, contents, fitted, put, stimuli, workplace,
)

ROWS, EVERY = 12_000, 1500
SIGNALS = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]
# How soon a command must end, and how long a test waits to see that it does not.
SOON, PATIENCE = 1.0, 3.0


def kill(stream, program, model, folder, kills, seed):
    """Kills a stream so often; returns how often it was killed, how often it got through, and what went wrong."""
    folder.mkdir()
    rng, killed, through = random.Random(f"{seed}/{stream.name}"), 0, 0
    put(folder, stream.files(model))
    whole = stream.whole(program, model)
    begin = time.monotonic()
    wrong = finish(stream, program, folder, whole)
    length = time.monotonic() - begin
    put(folder, stream.files(model))
    while killed < kills and not wrong:
        child = subprocess.Popen(
            stream.resumable(program, "--resume"), cwd=folder, stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
        )
        time.sleep(rng.uniform(0.0, 0.8 * length))
        child.kill()
        said = child.communicate()[1].decode(errors="replace")
        if child.returncode == -signal.SIGKILL:
            killed += 1
        elif child.returncode == 0:
            # It was done before it could be killed, and begins anew.
            through += 1
            wrong = amiss(stream, folder, whole)
            put(folder, stream.files(model))
        else:
            wrong = f"ended with {child.returncode}: {said}"
    return killed, through, wrong or finish(stream, program, folder, whole)


def finish(stream, program, folder, whole):
    """Goes on to the end, and says what is wrong then."""
    outcome = call(stream.resumable(program, "--resume"), folder, timeout=120)
    if outcome.returncode != 0:
        return f"resumed, it ended with {outcome.returncode}: {outcome.stderr.strip()}"
    return amiss(stream, folder, whole)


def amiss(stream, folder, whole):
    now = contents(folder)
    over = sorted(set(now) - {MODEL, STATE, stream.input, stream.output})
    if now.get(stream.output) != whole:
        return f"{stream.output} has other bytes"
    return f"left over: {' '.join(over)}" if over else None


# Pipes that stall.


def commands(program, source, reading):
    """Each command that reads a recording."""
    whiten = [program, "whiten", MODEL, source, *reading, "--out"]
    made = {
        "fit": [program, "fit", source, *reading, "--out", "new"],
        "whiten": [*whiten, "out.csv"],
        "whiten to a pipe": [*whiten, "-", "--out-format", "raw"],
        "contexts": [program, "contexts", source, *reading, "--segment", "100", "--out", "c.npy"],
        "inspect": [program, "inspect", source, *reading],
        "inspect with a model": [program, "inspect", MODEL, source, *reading, "--picture", "p.svg"],
    }
    # What is no file is a folder to `contexts`.
    return {name: command for name, command in made.items() if name != "contexts" or source == "-"}


def stalls(program, model, folder, formats, signals):
    """Each command on a pipe and on a FIFO that delivers some rows and then nothing; what came of each."""
    folder.mkdir()
    outcomes = []
    for format in formats:
        extension, reading = INPUTS[format]
        reading = ["--format", extension[1:], *reading]
        data = WRITERS[format](stimuli(4000, 3))
        # Half of the rows, and half of a row; or nothing at all, not even a header.
        for some in [data[: len(data) // 2 + 1], b""]:
            for way in ["-", "fifo"]:
                for name, command in commands(program, way, reading).items():
                    for number in signals:
                        put(folder, {MODEL: model})
                        wrong = stalled(command, folder, way, some, number)
                        words = f"{name} of {format} {'' if some else '(nothing) '}from {way}, {number.name}"
                        outcomes.append((words, wrong))
    for number in signals:
        put(folder, {MODEL: model})
        outcomes.append((f"whiten to a pipe that nobody reads, {number.name}", unread(program, folder, number)))
    return outcomes


def stalled(command, folder, way, data, number):
    """What is wrong with how a command ends when its input has stalled and a signal comes."""
    if way == "-":
        source = subprocess.PIPE
    else:
        os.mkfifo(folder / way)
        source = subprocess.DEVNULL
    child = subprocess.Popen(command, cwd=folder, stdin=source, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    pipe = child.stdin if way == "-" else fifo(folder / way, child)
    try:
        if pipe is None:
            return "did not open its input"
        try:
            pipe.write(data)
            pipe.flush()
        except BrokenPipeError:
            return f"ended before it was interrupted: {child.stderr.read().decode(errors='replace')}"
        await_listening(child, number)
        wrong = ends(child, number)
    finally:
        child.kill()
        child.wait()
        child.stderr.close()
        if pipe is not None:
            abandon(pipe)
        (folder / "fifo").unlink(missing_ok=True)
    over = sorted({path.name for path in folder.iterdir()} - {MODEL})
    return wrong or (f"left over: {' '.join(over)}" if over else None)


def await_listening(child, number):
    """Waits until a child listens to a signal, where the system tells, and then a little until its input has stalled."""
    status, until = Path(f"/proc/{child.pid}/status"), time.monotonic() + SOON
    while status.exists() and time.monotonic() < until:
        caught = re.search(r"SigCgt:\s*(\w+)", status.read_text())
        if caught is None or int(caught[1], 16) >> (number - 1) & 1:
            break
        time.sleep(0.01)
    time.sleep(0.1)


def abandon(pipe):
    """Closes a pipe that may have no other end."""
    try:
        pipe.close()
    except BrokenPipeError:
        pass


def fifo(path, child):
    """The other end of a FIFO, once the child has opened it."""
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until and child.poll() is None:
        try:
            descriptor = os.open(path, os.O_WRONLY | os.O_NONBLOCK)
        except OSError:
            time.sleep(0.005)
            continue
        os.set_blocking(descriptor, True)
        return os.fdopen(descriptor, "wb")
    return None


def ends(child, number):
    """Sends a signal, and says what is wrong with how the child ends."""
    begin = time.monotonic()
    child.send_signal(number)
    try:
        code = child.wait(PATIENCE)
    except subprocess.TimeoutExpired:
        return f"did not end within {PATIENCE:.0f} s"
    took = time.monotonic() - begin
    if took > SOON:
        return f"ended only after {took:.1f} s"
    return None if code == 130 else f"ended with {code}: {child.stderr.read().decode(errors='replace')}"


def unread(program, folder, number):
    """What is wrong with how a command ends when nobody reads its output."""
    data = WRITERS["int16"](stimuli(60_000, 3))
    (folder / "in.raw").write_bytes(data)
    command = [program, "whiten", MODEL, "in.raw", *INPUTS["int16"][1], "--out", "-", "--out-format", "raw"]
    child = subprocess.Popen(command, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        # More than a pipe holds, so that it waits.
        assert len(data) > 1 << 17
        time.sleep(0.4)
        if child.poll() is not None:
            return f"ended before it was interrupted: {child.stderr.read().decode(errors='replace')}"
        return ends(child, number)
    finally:
        child.kill()
        child.communicate()


def parsed():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program", type=os.path.abspath)
    parser.add_argument("--kills", type=int, default=24, help="how many in all; with 100 or more every stall is tried too")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    return parser.parse_args()


def main():
    arguments = parsed()
    rng = random.Random(arguments.seed)
    print(f"seed {arguments.seed}")
    pairs = [(a, b) for a in INPUTS for b in OUTPUTS]
    if arguments.kills < len(pairs):
        pairs = sorted(rng.sample(pairs, arguments.kills))
    each = -(-arguments.kills // len(pairs))
    streams = [Stream(a, b, ROWS, EVERY, ("--frozen",) if rng.random() < 0.3 else ()) for a, b in pairs]
    long = arguments.kills >= 100
    model, failed = fitted(arguments.program), []
    with tempfile.TemporaryDirectory(dir=workplace()) as place, ProcessPoolExecutor(2) as pool:
        given = (arguments.program, model)
        # The stalls wait more than they work, so they go beside the kills.
        formats = [*INPUTS] if long else ["csv", "int16"]
        stalling = [
            pool.submit(stalls, *given, Path(place, f"{format}{number.name}"), [format], [number])
            for format in formats for number in (SIGNALS if long else [rng.choice(SIGNALS)])
        ]
        killing = [
            pool.submit(kill, stream, *given, Path(place, str(i)), each, arguments.seed)
            for i, stream in enumerate(streams)
        ]
        print(f"{'stream':30} {'killed':>6} {'done before':>11}")
        killed = 0
        for stream, future in zip(streams, killing):
            times, through, wrong = future.result()
            killed += times
            print(f"{stream.name:30} {times:>6} {through:>11}  {wrong or 'same bytes'}", flush=True)
            failed += [(stream.name, wrong)] if wrong else []
        outcomes = [outcome for future in stalling for outcome in future.result()]
    troubles = [(words, wrong) for words, wrong in outcomes if wrong]
    print(f"{killed} kills; {len(outcomes)} stalled pipes, {len(troubles)} of which did not end as they should")
    failed += troubles
    for words, wrong in failed[:20]:
        print(f"FAILED {words}: {wrong}")
    if failed:
        print(f"{len(failed)} failures; once more: --kills {arguments.kills} --seed {arguments.seed}")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()

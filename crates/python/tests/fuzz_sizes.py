"""Calls the package and the command line with sizes that are far too large, or none, under a limit of memory.

    python fuzz_sizes.py COUNT [SEED] [PROGRAM]

makes COUNT calls of each. A call may succeed or fail by an exception or an exit code of 1 or 2; what it must not do is
end the process, panic, or raise PanicException. Calls that take long are given up and counted.
"""

from __future__ import annotations

import os
import random
import resource
import signal
import subprocess
import sys
import tempfile
import traceback
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

SIZES = [-(2**63), -1, 0, 1, 2, 3, 5, 8, 17, 60, 130, 700, 16_384, 16_385, 40_000, 65_536, 10**6, 2**31, 2**40, 2**62, 2**63 - 1, 2**64]
"""What a size may be: of use, at the bounds, beyond any memory, and beyond any number of the machine."""
LIMIT = 1536 * 2**20
"""How much memory a process may have beyond what it begins with."""
SECONDS = 2.0
"""How long a call may take until it is interrupted, as by Ctrl-C; ten times as long, and it is killed."""
BATCH = 40
"""Calls of one process."""


class Draw:
    """Draws arguments."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def size(self) -> int:
        return self.random.choice(SIZES)

    def small(self) -> int:
        return self.random.choice([size for size in SIZES if 0 <= size <= 60])

    def large(self) -> int:
        """A size of an array that can be had, for it takes no memory of its own."""
        return self.random.choice([size for size in SIZES if 0 <= size <= 2**31])

    def array(self, *shape: int) -> Any:
        """Any number of numbers, all of which are the same one in memory where they are many."""
        if np.prod([float(length) for length in shape]) > 2**40:
            shape = tuple(min(length, 1000) for length in shape)
        kind = self.random.choice([np.float64, np.float64, np.float32])
        if np.prod(shape) > 2**20:
            return np.broadcast_to(kind(0.5), shape)
        return np.random.default_rng(self.random.randrange(100)).normal(size=shape).astype(kind)

    def covariances(self, contexts: int, n: int) -> Any:
        if contexts * n * n > 2**22:
            return np.broadcast_to(np.float64(0.5), (contexts, n, n))
        return np.broadcast_to(np.eye(n), (contexts, n, n))

    def maybe(self, value: Any) -> Any:
        return value if self.random.random() < 0.5 else None


def calls(draw: Draw) -> dict[str, Callable[[], Any]]:
    """Every function of the package, with drawn sizes."""
    import pickle

    import leukos
    from leukos import AdaptiveWhitener, Circuit, Moments, datasets

    n, k = draw.large(), draw.large()
    rates = {"gain_rate": 1e-3, "synapse_rate": 1e-4}

    def circuit() -> Circuit:
        synapses = np.eye(draw.small(), draw.small(), dtype=draw.random.choice([np.float32, np.float64]))
        extra = {"feedforward": synapses.T} if draw.random.random() < 0.3 else {}
        return Circuit(synapses, np.zeros(synapses.shape[1]), **extra)

    def large_circuit() -> Any:
        made = Circuit(np.broadcast_to(0.0, (n, k)), np.zeros(min(k, 10**7)))
        return made.whitening_matrix(), made.inverse_whitening_matrix(), pickle.dumps(made)

    def online() -> Any:
        own = circuit()
        neurons = own.synapses.shape[0]
        options: dict[str, Any] = {"batch": draw.size(), "every": draw.size()}
        options["record"] = draw.random.sample(["gains", "synapses", "multipliers"], draw.random.randrange(4))
        if draw.random.random() < 0.5:
            options |= {"solver": "dynamics", "max_iterations": draw.size()}
        if draw.random.random() < 0.3:
            options |= {"covariances": draw.covariances(draw.small(), neurons), "presented": np.zeros(draw.small(), int)}
        return leukos.run_online(own, draw.array(draw.large(), neurons), **rates, **options)

    def offline() -> Any:
        own = circuit()
        covariances = draw.covariances(draw.large(), own.synapses.shape[0])
        presented = np.broadcast_to(0, draw.large())
        gains = draw.random.choice(["rule", "least_squares", "optimal"])
        options = {"steps": draw.size(), "errors": draw.random.random() < 0.7, "gains": gains}
        return leukos.run_offline(own, covariances, presented, **rates, **options)

    def moments() -> Any:
        own = Moments(draw.size())
        own.update(draw.array(draw.large(), own.channels))
        return own.covariance(), pickle.loads(pickle.dumps(own))

    def fit() -> Any:
        X = draw.array(draw.large(), draw.large())
        contexts = np.arange(len(X)) % draw.random.choice([1, 2, 50]) if len(X) <= 1000 else None
        whitener = AdaptiveWhitener(
            draw.maybe(draw.size()),
            time_constant=draw.random.choice(["auto", 1000.0, 1e300, 1.0, 0.0]),
            synapse_time_constant=draw.maybe(draw.random.choice([1.0, 1e5, 1e300])),
            synapses=draw.random.choice(["eigenbasis", "random"]),
            follow=draw.random.choice(["contexts", "nothing"]),
            update_every=draw.random.choice([None, 1, draw.size()]),
            exclude_above=draw.maybe(draw.random.choice([2.0, 1e300])),
            random_state=draw.maybe(draw.size()),
            groups=draw.maybe([[draw.size()], list(range(draw.small()))]),
        )
        whitener.fit(X, contexts=contexts)
        whitener.adapt_transform(draw.array(draw.random.choice([100, 5000]), X.shape[1]))
        whitener.adapt_inverse_transform(draw.array(3, X.shape[1]))
        whitener.status(), whitener.memories_, whitener.gains_
        return whitener.transform(X), whitener.whitening_matrix_, pickle.loads(pickle.dumps(whitener))

    def whitener_of_moments() -> Any:
        own = Moments(draw.random.choice([3, 700]))
        own.update(draw.array(50, own.channels))
        fitted = AdaptiveWhitener(draw.maybe(draw.size())).fit_moments(own)
        return fitted.transform(draw.array(draw.large(), own.channels)), fitted.synapses_, fitted.prior_

    return {
        "Circuit": large_circuit,
        "respond": lambda: circuit().respond(draw.array(draw.large(), draw.small()), draw.random.choice(["direct", "iterative"])),
        "run_online": online,
        "run_offline": offline,
        "objective": lambda: leukos.objective(draw.array(n, n), draw.array(n, n)),
        "gradient": lambda: leukos.gradient(np.eye(draw.small()), draw.array(n, n)),
        "whitening_error": lambda: leukos.whitening_error(draw.array(n, n), draw.array(n, n)),
        "align": lambda: leukos.align(draw.array(n, k), draw.array(n, k)),
        "optimal_gains": lambda: leukos.optimal_gains(draw.array(draw.small(), k), np.eye(draw.small())),
        "least_squares_gains": lambda: leukos.least_squares_gains(draw.array(3, k), np.eye(3)),
        "Moments": moments,
        "fit": fit,
        "fit_moments": whitener_of_moments,
        "synthetic_contexts": lambda: datasets.synthetic_contexts(
            draw.size(), draw.size(), draw.size(), axes=draw.random.choice(["sphere", "angles", "orthogonal", "nonnegative"])
        ),
        "field_contexts": lambda: datasets.field_contexts(
            draw.size(), (draw.size(), draw.size()), spacing=draw.size(), condition=draw.random.choice([20.0, 1e12])
        ),
        "matched_controls": lambda: datasets.matched_controls(draw.covariances(draw.large(), draw.small())),
        "draw": lambda: datasets.draw(
            draw.covariances(draw.small(), draw.small()), draw.maybe(np.broadcast_to(0, draw.large())), draw.size()
        ),
    }


class TooSlow(Exception):
    """A call was interrupted."""


def interrupt(*_: object) -> None:
    raise TooSlow


def limit_memory() -> None:
    with open("/proc/self/statm") as file:
        used = int(file.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + LIMIT, used + LIMIT))


def make_calls(first: int, count: int, seed: int) -> None:
    """Makes some calls in this process; says of each how it is called before, and how it went after."""
    import leukos
    import leukos.estimator

    # The threads of other libraries take their memory before.
    leukos.AdaptiveWhitener().fit(np.random.default_rng(0).normal(size=(50, 3)))
    np.linalg.norm(np.ones((9, 9)), 2)
    limit_memory()
    signal.signal(signal.SIGALRM, interrupt)
    for number in range(first, first + count):
        draw = Draw(seed * 1_000_000 + number)
        outcome = "done"
        try:
            all_calls = calls(draw)
            name = draw.random.choice(sorted(all_calls))
            print(f"begin {number} {name}", flush=True)
            signal.setitimer(signal.ITIMER_REAL, SECONDS)
            all_calls[name]()
        except BaseException as error:
            signal.setitimer(signal.ITIMER_REAL, 0)
            outcome = type(error).__name__
            if outcome in ("PanicException", "SystemError") or "panicked" in str(error):
                traceback.print_exc()
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
        print(f"end {outcome}", flush=True)


def fuzz_package(count: int, seed: int) -> tuple[Counter[str], list[str]]:
    outcomes: Counter[str] = Counter()
    failures: list[str] = []
    number = 0
    while number < count:
        batch = min(BATCH, count - number)
        command = [sys.executable, "-W", "ignore", __file__, "--calls", str(number), str(batch), str(seed)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            try:
                out, err = process.communicate(timeout=30 + 10 * SECONDS * batch if count > BATCH else 120)
            except subprocess.TimeoutExpired:
                process.kill()
                out, err = process.communicate()
                out += "killed\n"
        lines = out.splitlines()
        ended = [line.split()[1] for line in lines if line.startswith("end ")]
        outcomes.update(ended)
        begun = [line for line in lines if line.startswith("begin ")]
        failures += [f"{begun[i]}: {err[-3000:]}" for i, outcome in enumerate(ended) if outcome in ("PanicException", "SystemError")]
        if len(begun) > len(ended):
            if lines[-1] == "killed":
                outcomes["killed, too slow"] += 1
                print(f"slow: {begun[-1]}", flush=True)
            else:
                failures.append(f"{begun[-1]}: ended by {process.returncode}: {err[-3000:]}")
        elif process.returncode != 0:
            failures.append(f"calls {number} to {number + batch}: ended by {process.returncode}: {err[-3000:]}")
        number += max(len(begun), 1)
        say_progress("package", number, failures)
    return outcomes, failures


def say_progress(part: str, calls: int, failures: list[str]) -> None:
    """So that a run that is broken off has not been for nothing."""
    print(f"{part}: {calls} calls so far, {len(failures)} failures", flush=True)


def commands(draw: Draw, folder: Path) -> list[str]:
    """A command line with drawn sizes."""
    size = lambda: str(draw.size())
    recording = str(folder / draw.random.choice(["small.npy", "wide.npy", "widest.npy", "names.csv", "small.raw"]))
    reading = ["--channels", size(), "--dtype", "float32"] if recording.endswith(".raw") else []
    if draw.random.random() < 0.2:
        reading += ["--sample-rate", draw.random.choice(["1", "1e300", "1e-300", "0", "250"])]
    time = lambda: draw.random.choice(["1", "1e18", "1e300", "2s", "1e300h", "0", "-5", "64", "auto", size()])
    flags: list[str] = []

    def maybe(flag: str, value: Callable[[], str]) -> None:
        if draw.random.random() < 0.25:
            flags.extend([flag, value()])

    verb = draw.random.choice(["fit", "whiten", "inspect", "contexts", "fields", "synthetic", "images"])
    if verb == "fit":
        maybe("--n-interneurons", size)
        maybe("--time-constant", time)
        maybe("--synapse-time-constant", time)
        maybe("--update-every", size)
        maybe("--exclude-above", lambda: draw.random.choice(["2", "1e300", size()]))
        maybe("--follow", lambda: draw.random.choice(["contexts", "nothing"]))
        maybe("--segment", time)
        maybe("--random-state", size)
        maybe("--groups", lambda: draw.random.choice(["0-1,2", f"0-{draw.size()}", f"{draw.size()}-{draw.size()}"]))
        return ["fit", recording, *reading, "--out", str(folder / "out.safetensors"), "--quiet", *flags]
    if verb == "whiten":
        maybe("--every", size)
        maybe("--scale", lambda: draw.random.choice(["1e300", "0", size()]))
        maybe("--strength", lambda: draw.random.choice(["0.5", "1e300", size()]))
        white = folder / draw.random.choice(["white.npy", "white.csv", "white.raw", "white.edf"])
        state = str(folder / "state.safetensors")
        flags += draw.random.choice([[], ["--frozen"], ["--inverse"], ["--checkpoint", state, "--resume"]])
        return ["whiten", str(folder / "model.safetensors"), recording, *reading, "--out", str(white), "--quiet", *flags]
    if verb == "inspect":
        return ["inspect", recording, *reading, *draw.random.choice([["--all"], ["--json"], []])]
    if verb == "contexts":
        return ["contexts", recording, *reading, "--segment", time(), "--out", str(folder / "covs.npy"), "--quiet"]
    maybe("--count", size)
    maybe("--seed", size)
    if verb == "synthetic":
        return ["contexts", "synthetic", "--out", str(folder / "covs.npy"), "--quiet", *flags]
    maybe("--patch", lambda: f"{draw.size()}x{draw.size()}")
    maybe("--spacing", size)
    maybe("--condition", lambda: draw.random.choice(["none", "2", "1e300"]))
    if verb == "fields":
        return ["contexts", "fields", "--out", str(folder / "covs.npy"), "--quiet", *flags]
    maybe("--samples", size)
    maybe("--step", size)
    maybe("--jobs", size)
    return ["contexts", str(folder / "images"), "--out", str(folder / "covs.npy"), "--quiet", *flags]


def prepare(folder: Path) -> None:
    rng = np.random.default_rng(0)
    np.save(folder / "small.npy", rng.normal(size=(50, 3)))
    np.save(folder / "wide.npy", rng.normal(size=(3, 700)))
    np.save(folder / "widest.npy", rng.normal(size=(1, 65_536)))
    rng.normal(size=(40, 3)).astype(np.float32).tofile(folder / "small.raw")
    rows = "\n".join(",".join(f"{x}" for x in row) for row in rng.normal(size=(30, 2)))
    (folder / "names.csv").write_text("x" * 65_536 + ",b\n" + rows + "\n")
    (folder / "images").mkdir()
    rng.integers(1, 4096, size=(1024, 1536)).astype(">u2").tofile(folder / "images" / "imk00001.iml")


def limited() -> None:
    # A program begins with next to nothing.
    resource.setrlimit(resource.RLIMIT_AS, (LIMIT, LIMIT))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def fuzz_program(program: str, count: int, seed: int) -> tuple[Counter[str], list[str]]:
    outcomes: Counter[str] = Counter()
    failures: list[str] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        prepare(folder)
        subprocess.run([program, "fit", folder / "small.npy", "--out", folder / "model.safetensors", "--quiet"], check=True)
        for number in range(count):
            if number % BATCH == 0:
                say_progress("command line", number, failures)
            command = [program, *commands(Draw(seed * 1_000_000 + number), folder)]
            try:
                process = subprocess.run(
                    command, capture_output=True, text=True, timeout=10 * SECONDS, preexec_fn=limited, stdin=subprocess.DEVNULL
                )
            except subprocess.TimeoutExpired:
                outcomes["killed, too slow"] += 1
                print(f"slow: {' '.join(command[1:])}", flush=True)
                continue
            outcomes[f"exit code {process.returncode}"] += 1
            said = process.stderr.startswith("error: ") or process.returncode != 1
            if process.returncode not in (0, 1, 2) or not said:
                failures.append(f"{' '.join(command[1:])[:300]}: ended by {process.returncode}: {process.stderr[-2000:]}")
    return outcomes, failures


def main(arguments: list[str]) -> int:
    if arguments[0] == "--calls":
        make_calls(*map(int, arguments[1:]))
        return 0
    count, seed = int(arguments[0]), int(arguments[1]) if len(arguments) > 1 else 0
    program = arguments[2] if len(arguments) > 2 else os.environ.get("LEUKOS_PROGRAM")
    parts = [("package", *fuzz_package(count, seed))]
    if program:
        parts.append(("command line", *fuzz_program(program, count, seed)))
    for name, outcomes, failures in parts:
        print(f"{name}: {count} calls, {len(failures)} failures; {dict(outcomes.most_common())}")
        for failure in failures:
            print(f"FAILED {failure}")
    return int(any(failures for _, _, failures in parts))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

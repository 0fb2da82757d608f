"""Times Leukos through its Python package and the rivals in turns, on the same steps, and what the binding costs.

Every contestant must end where Leukos with its direct solver ends, to 1e-9 of the largest number in each result; else
the program ends before it times that case.
Calls that compile are timed apart: what a first call takes beyond a usual one.
numba compiles a function once for all sizes and shares helpers between functions, so a later one has less to do.
"""

import datetime
import platform
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from copy import deepcopy
from importlib.metadata import version
from pathlib import Path
from typing import Any, Callable, NamedTuple

from rivals import (  # first: it says how many threads numpy and JAX may use
    LEAK,
    RIVALS,
    SAME_LOOP,
    Problem,
    Rival,
    digits,
    fixed,
    jit_static_rules,
    jax_factor,
    least_time,
    make_problem,
    processor_time,
    say,
)

import jax
import jax.numpy as jnp
import leukos
import numpy as np
from jax.scipy.linalg import cho_solve
from numba import njit

AGREEMENT = 1e-9
ROUNDS = 5
ADAPT_ROUNDS = 60  # of a tenth of the rows: long rounds seldom find a shared machine quiet
SECONDS = 0.5  # spent on each contestant, over all rounds, or one run in each
CHANNELS = 25
TRAINING_ROWS = 20_000
RESPOND_BAR = 2.0  # µs a call
MEASURED_STEPS = 500

Advance = Callable[..., tuple[Any, ...]]


# --- Algorithm 2 with the whitening error before each step, as `run_offline` measures it unless told not to ---


def numpy_measured(w, g, covariance, steps, rules):
    identity = np.eye(len(w), dtype=w.dtype)
    errors = np.empty(steps, w.dtype)
    for t in range(steps):
        f = np.linalg.inv(rules.leak * identity + (w * g) @ w.T)
        excess = f @ covariance @ f - identity
        errors[t] = np.max(np.abs(np.linalg.eigvalsh(excess)))
        descent = excess @ w
        dg = rules.gain_rate * np.sum(w * descent, axis=0)
        w = w + rules.synapse_rate * descent * g
        g = g + dg
    return w, g, errors


@jit_static_rules
def jax_measured(w, g, covariance, steps, rules):
    identity = jnp.eye(len(g), dtype=g.dtype)

    def step(t, state):
        w, g, errors = state
        f = cho_solve(jax_factor(w, g, rules), identity)
        excess = f @ covariance @ f - identity
        errors = errors.at[t].set(jnp.max(jnp.abs(jnp.linalg.eigvalsh(excess))))
        descent = excess @ w
        return w + rules.synapse_rate * descent * g, g + rules.gain_rate * jnp.sum(w * descent, axis=0), errors

    room = jnp.zeros(MEASURED_STEPS, g.dtype)  # not `steps`: a shape must be known when it is compiled
    return jax.lax.fori_loop(0, steps, step, (w, g, room))


MEASURED = [
    fixed("numpy", "inv", 1, CHANNELS, numpy_measured),
    fixed("numba", SAME_LOOP, 1, CHANNELS, njit(numpy_measured)),
    fixed("jax", "inverse", 1, CHANNELS, jax_measured),
]


# --- Leukos ------------------------------------------------------------------------------------


def leukos_online(**solver: Any) -> Advance:
    def advance(circuit, stimuli, rules):
        rates = {"gain_rate": rules.gain_rate, "synapse_rate": rules.synapse_rate}
        run = leukos.run_online(circuit, stimuli, order="sequential", **rates, **solver)
        return run.circuit.synapses, run.circuit.gains, run.responses

    return advance


def leukos_offline(**options: Any) -> Advance:
    def advance(circuit, covariance, steps, rules):
        rates = {"gain_rate": rules.gain_rate, "synapse_rate": rules.synapse_rate}
        run = leukos.run_offline(circuit, covariance[np.newaxis], [0], steps=steps, **rates, **options)
        measured = () if run.errors is None else (run.errors[0],)
        return run.circuit.synapses, run.circuit.gains, *measured

    return advance


ONLINE = {"Leukos direct": leukos_online(), "Leukos iterative": leukos_online(solver="iterative", tolerance=1e-10)}


# --- The cases ---------------------------------------------------------------------------------


class Case(NamedTuple):
    """Steps to take, what must agree after them, and who takes them; the first of `ours` is the reference."""

    title: str
    algorithm: str
    n: int
    steps: int
    outcomes: tuple[str, ...]
    rivals: list[Rival]
    ours: dict[str, Advance]


def online_case(n: int, steps: int) -> Case:
    ours = {name: advance for name, advance in ONLINE.items() if n >= 16 or name == "Leukos direct"}
    return Case("online", "online", n, steps, ("synapses", "gains", "responses"), RIVALS["online"], ours)


def cases() -> list[Case]:
    online = [online_case(*sizes) for sizes in ((2, 20_000), (5, 20_000), (25, 4000), (64, 1000))]
    outcomes = ("synapses", "gains")
    offline = Case(
        "offline", "offline", CHANNELS, 1000, outcomes, RIVALS["offline"], {"Leukos": leukos_offline(errors=False)}
    )
    measured = Case(
        "offline, errors measured",
        "offline",
        CHANNELS,
        MEASURED_STEPS,
        (*outcomes, "errors"),
        MEASURED,
        {"Leukos": leukos_offline()},
    )
    return [*online, offline, measured]


# --- Measuring ---------------------------------------------------------------------------------


class Contestant(NamedTuple):
    name: str
    advance: Advance
    arguments: Callable[[], tuple[Any, ...]]
    compiles: str  # "never", "once" for all sizes, or "each" size


class Row(NamedTuple):
    name: str
    seconds: float  # of a step
    compiling: float | None
    difference: float  # from the reference


def contestants(case: Case, problem: Problem) -> list[Contestant]:
    circuit = leukos.Circuit(problem.synapses, problem.gains, LEAK)
    ours = [
        Contestant(name, advance, lambda: (circuit, *problem.drive, problem.rules), "never")
        for name, advance in case.ours.items()
    ]
    habits = {"numpy": "never", "numba": "once", "jax": "each"}
    theirs = [
        Contestant(rival.name, rival.make(case.n), lambda rival=rival: rival.arguments(problem), habits[rival.library])
        for rival in case.rivals
        if rival.smallest <= case.n <= rival.largest
    ]
    return ours + theirs


def first_call(contestant: Contestant) -> tuple[tuple[Any, ...], float]:
    """The results and the seconds of processor time."""
    results: list[Any] = []
    keep = lambda *arguments: results.append(jax.block_until_ready(contestant.advance(*arguments)))
    seconds = processor_time(keep, contestant.arguments())
    return tuple(map(np.array, results[0])), seconds


def largest_difference(case: Case, name: str, results: tuple[Any, ...], reference: tuple[Any, ...]) -> float:
    """Relative to the largest number of each outcome; ends the program when it is too large."""
    largest = 0.0
    for outcome, ours, theirs in zip(case.outcomes, reference, results, strict=True):
        same_shape = theirs.shape == ours.shape
        difference = float(np.max(np.abs(theirs - ours)) / np.max(np.abs(ours))) if same_shape else np.inf
        if not difference <= AGREEMENT:
            raise SystemExit(
                f"{case.title}, N = {case.n}: expected the {outcome} of {name} within {AGREEMENT} of Leukos', "
                f"got a difference of {difference:.1e}"
            )
        largest = max(largest, difference)
    return largest


def measure(case: Case, compiled: dict[Advance, float]) -> list[Row]:
    """All take turns, so that a busy moment of the machine does not spoil one of them."""
    say(f"{case.title}, N = {case.n}")
    problem = make_problem(case.algorithm, case.n, "float64", case.steps)
    field = contestants(case, problem)
    firsts = [first_call(contestant) for contestant in field]
    reference = firsts[0][0]
    differences = [
        largest_difference(case, contestant.name, results, reference)
        for contestant, (results, _) in zip(field, firsts)
    ]
    least = [float("inf")] * len(field)
    for _ in range(ROUNDS):
        for i, contestant in enumerate(field):
            least[i] = min(least[i], least_time(contestant.advance, contestant.arguments, SECONDS / ROUNDS))
    rows = []
    for contestant, (_, first), seconds, difference in zip(field, firsts, least, differences):
        compiling = compile_time(contestant, first - seconds, compiled)
        rows.append(Row(contestant.name, seconds / case.steps, compiling, difference))
        say(f"  {contestant.name:36} {1e6 * seconds / case.steps:12.4f} µs, first call {first:6.2f} s")
    return rows


def compile_time(contestant: Contestant, beyond: float, compiled: dict[Advance, float]) -> float | None:
    """What a first call took beyond a usual one; numba's is remembered from the size it was first called with."""
    if contestant.compiles == "never":
        return None
    if contestant.compiles == "each":
        return beyond
    return compiled.setdefault(contestant.advance, beyond)


def respond_microseconds() -> float:
    """Of one call of `Circuit.respond` with one sample, N = 2; the loop around it counts too."""
    circuit, stimulus, calls = leukos.Circuit(np.eye(2), np.ones(2)), np.array([1.0, -0.5]), 1000

    def call_often():
        for _ in range(calls):
            circuit.respond(stimulus)

    return 1e6 * least_time(call_often, tuple, 2.0) / calls


def adapt_seconds(rows: int, program: str | None) -> tuple[float, float | None]:
    """Of `adapt_transform` with default settings, fitted to the first rows, and of the same in Rust, in turns.

    The least of many rounds of a tenth of the rows, times ten.

    Standard deviations are from 1 to 10.
    """
    rng = np.random.default_rng(0)
    axes = np.linalg.qr(rng.standard_normal((CHANNELS, CHANNELS)))[0]
    samples = rng.standard_normal((rows // 10, CHANNELS)) @ (axes * np.geomspace(1, 10, CHANNELS)).T
    whitener = leukos.AdaptiveWhitener().fit(samples[:TRAINING_ROWS])
    with ExitStack() as stack:
        rust = None if program is None else stack.enter_context(rust_rounds(program, samples))
        ours, theirs = [], []
        for i in range(ADAPT_ROUNDS):
            # Whoever comes second finds other things in the caches.
            if rust and i % 2:
                theirs.append(rust())
            ours.append(processor_time(deepcopy(whitener).adapt_transform, (samples,)))
            if rust and not i % 2:
                theirs.append(rust())
    return 10 * min(ours), 10 * min(theirs) if theirs else None


@contextmanager
def rust_rounds(program: str, samples: np.ndarray) -> Iterator[Callable[[], float]]:
    """The example `whitening_rounds` on the same samples: each call is a round, in seconds of its processor."""
    with tempfile.NamedTemporaryFile() as file:
        samples.tofile(file)
        file.flush()
        command = [program, file.name, str(CHANNELS), str(TRAINING_ROWS)]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
            schedule = Path(f"/proc/{process.pid}/schedstat")

            def turn() -> float:
                before = int(schedule.read_text().split()[0])
                process.stdin.write("\n")
                process.stdin.flush()
                process.stdout.readline()
                return 1e-9 * (int(schedule.read_text().split()[0]) - before)

            turn()  # reads the file, and fits
            yield turn
            process.stdin.close()


# --- Reporting ---------------------------------------------------------------------------------


def table(case: Case, rows: list[Row]) -> list[str]:
    """Fastest first."""
    numpy = next(row for row in rows if row.name.startswith("numpy"))
    what = "samples" if case.algorithm == "online" else "steps"
    lines = [
        f"**{case.title}**, N = K = {case.n}, {case.steps} steps",
        "",
        f"| | thousand {what} a second | times numpy | compiling, s | differs from Leukos by |",
        "|---|---:|---:|---:|---:|",
    ]
    for row in sorted(rows, key=lambda row: row.seconds):
        compiling = "–" if row.compiling is None else f"{max(row.compiling, 0):.1f}"
        difference = "–" if row.name == next(iter(case.ours)) else f"{row.difference:.0e}"
        rate, ratio = digits(1e-3 / row.seconds), digits(numpy.seconds / row.seconds)
        lines.append(f"| {row.name} | {rate} | {ratio} | {compiling} | {difference} |")
    return [*lines, ""]


def binding(rows: int, program: str | None) -> list[str]:
    say("the binding")
    respond = respond_microseconds()
    adapt, rust_seconds = adapt_seconds(rows, program)
    rust, over = "not given", "–"
    if rust_seconds is not None:
        rust, over = f"{rust_seconds:.3f} s", f"{100 * (adapt / rust_seconds - 1):+.1f} %"
    return [
        "**The binding**",
        "",
        "| | Python | Rust | over Rust | our bar |",
        "|---|---:|---:|---:|---|",
        f"| `Circuit.respond`, one sample, N = 2 | {respond:.2f} µs | – | – | {RESPOND_BAR:g} µs |",
        f"| `adapt_transform`, {rows} × {CHANNELS} | {adapt:.3f} s | {rust} | {over} | 5 % over Rust |",
        "",
    ]


def report(rows: int, program: str | None) -> Iterator[str]:
    """Markdown, part by part, as soon as each is measured."""
    compiled: dict[Advance, float] = {}
    names = ("numpy", "numba", "jax", "scikit-learn")
    versions = ", ".join(f"{name} {version(name)}" for name in names)
    yield (
        f"{datetime.date.today().isoformat()}; Leukos {leukos.__version__}, {versions}, "
        f"Python {platform.python_version()}.\n"
    )
    for case in cases():
        yield "\n".join(table(case, measure(case, compiled)))
    yield "\n".join(binding(rows, program))

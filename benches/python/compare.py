"""Compare Leukos with what a Python user could run instead: numpy, numba and JAX on one core.

    python -m venv venv && venv/bin/pip install -r requirements.txt
    venv/bin/pip install ../../crates/python                      # Leukos itself
    venv/bin/python compare.py --package                          # all in one run, Markdown on stdout
    venv/bin/python compare.py --package --rust PROGRAM           # the release example `whitening_rounds` beside it

    venv/bin/python compare.py --out rivals.json                  # the rivals alone, a few minutes
    venv/bin/python compare.py --sizes 2,25 --dtypes float64      # part of it, JSON on stdout
    venv/bin/python compare.py --rivals rivals.json --leukos leukos.json    # Markdown on stdout

With --package Leukos runs through its Python package, taking turns with the rivals (package.py).
Without it only the rivals are measured, for comparison with the JSON of `cargo bench --bench steps`.
The problem and the rivals are those of rivals.py.
There, a rival is left out, with a message, unless it ends where plain numpy in float64 ends: W, g and every
response, after 50 steps or more (3 for N > 512).
"""

import argparse
import datetime
import json
import math
import pathlib
import platform

from rivals import (  # first: it says how many threads numpy and JAX may use
    RIVALS,
    digits,
    disagreement,
    inverse_whitening_matrix,
    least_time,
    make_problem,
    say,
    steps_for,
)

import numpy as np

SIZES = (2, 5, 16, 25, 64, 256, 1024)
DTYPES = ("float64", "float32")
AGREEMENT = {"float64": 1e-8, "float32": 1e-3}
ROUNDS = 3
STATE = "orthogonal"  # what Leukos' own benchmark calls the start of rivals.py


# --- Measuring ---------------------------------------------------------------------------------


def agreeing_rivals(algorithm, problem, dtype):
    """Rival -> compiled function, for those that end where plain numpy in float64 ends."""
    n = len(problem.gains)
    reference = RIVALS[algorithm][0].make(n)(*make_problem(algorithm, n, "float64").fresh())
    agreeing = {}
    for rival in RIVALS[algorithm]:
        if not rival.smallest <= n <= rival.largest:
            continue
        advance = rival.make(n)
        difference = disagreement(advance(*rival.arguments(problem)), reference)
        if difference <= AGREEMENT[dtype]:
            agreeing[rival] = advance
        else:
            say(f"  dropped: {rival.name} differs from numpy by {difference:.1e}")
    return agreeing


def measure_rivals(algorithm, n, dtype, seconds):
    """Rival -> µs per step. In rounds, so that a busy moment of the machine does not spoil one rival."""
    problem = make_problem(algorithm, n, dtype)
    rivals = agreeing_rivals(algorithm, problem, dtype)
    times = dict.fromkeys(rivals, math.inf)
    for _ in range(ROUNDS):
        for rival, advance in rivals.items():
            least = least_time(advance, lambda: rival.arguments(problem), seconds / ROUNDS)
            times[rival] = min(times[rival], 1e6 * least / problem.steps)
    for rival, microseconds in times.items():
        say(f"  {rival.name:24} {microseconds:14.4f} µs")
    return times


def least_eigenvalue(algorithm, n, dtype, rival):
    """Of M at the end of a run of thousands of steps, where that does not take too long."""
    steps = steps_for(n) if n > 256 else max(2000, steps_for(n))
    problem = make_problem(algorithm, n, dtype, steps)
    w, g, *_ = map(np.asarray, rival.make(n)(*rival.arguments(problem)))
    least = np.linalg.eigvalsh(inverse_whitening_matrix(w.astype(float), g.astype(float)))[0]
    say(f"  after {steps} steps: least eigenvalue of M {least:.3f}, least gain {g.min():.3f}")
    return steps, least


def measure_row(algorithm, n, dtype, seconds):
    say(f"{algorithm}, N = {n}, {dtype}")
    times = measure_rivals(algorithm, n, dtype, seconds)
    fastest = lambda *libraries: min((r for r in times if r.library in libraries), key=times.get)
    best = fastest("numba", "jax")
    steps, least = least_eigenvalue(algorithm, n, dtype, best)
    if not least > 0:
        say("  WARNING: M is no longer positive definite; these times mean little")
    return {
        "algorithm": algorithm,
        "n": n,
        "dtype": dtype,
        "state": STATE,
        **{library: times[fastest(library)] for library in ("numpy", "numba", "jax")},
        "best": times[best],
        "best_variant": best.name,
        "variants": {rival.name: microseconds for rival, microseconds in times.items()},
        "definite_after_steps": steps if least > 0 else None,
    }


def dgemm_gflops(n=1024, seconds=2.0):
    rng = np.random.default_rng(0)
    a, b, out = rng.normal(size=(n, n)), rng.normal(size=(n, n)), np.empty((n, n))
    return 2e-9 * n**3 / least_time(np.dot, lambda: (a, b, out), seconds)


def processor_name():
    info = pathlib.Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def measure(options):
    result = {"date": datetime.date.today().isoformat(), "processor": processor_name(), "dgemm_gflops": dgemm_gflops()}
    say(f"{result['processor']}, DGEMM on one core {result['dgemm_gflops']:.1f} GFLOP/s")
    cases = [(a, n, d) for d in options.dtypes for a in RIVALS for n in options.sizes]
    result["rows"] = [measure_row(*case, options.seconds_per_case) for case in cases]
    return result


# --- Reporting ---------------------------------------------------------------------------------


def table(result):
    """What was measured, for reading on a terminal."""
    heading = f"{'µs per step':8} {'N':>5} {'dtype':8} {'numpy':>10} {'numba':>10} {'JAX':>10}   best"
    line = lambda row: (
        f"{row['algorithm']:11} {row['n']:5} {row['dtype']:8} {digits(row['numpy']):>10} "
        f"{digits(row['numba']):>10} {digits(row['jax']):>10}   {row['best_variant']}"
    )
    return "\n".join([heading, *map(line, result["rows"])])


def markdown_row(rival, leukos):
    return (
        f"| {rival['n']} | {rival['dtype']} | {digits(rival['numpy'])} "
        f"| {digits(rival['best'])} ({rival['best_variant']}) "
        f"| {digits(leukos['microseconds'])} ({leukos['solver']}) "
        f"| {rival['best'] / leukos['microseconds']:.2f} |"
    )


def fastest_solvers(leukos):
    """(algorithm, n, dtype) -> the row of Leukos' fastest solver, for the start measured here."""
    rows = [row for row in leukos["rows"] if row.get("state", STATE) == STATE]
    rows.sort(key=lambda row: row["microseconds"], reverse=True)
    return {(row["algorithm"], row["n"], row["dtype"]): row for row in rows}


def markdown(result, leukos):
    """One table per algorithm, of what both benchmarks measured."""
    fastest = fastest_solvers(leukos)
    lines = []
    for algorithm in RIVALS:
        rows = [row for row in result["rows"] if row["algorithm"] == algorithm]
        cases = [(row, fastest.get((algorithm, row["n"], row["dtype"]))) for row in rows]
        lines += [
            f"**{algorithm}**, µs per step, one core",
            "",
            "| N | dtype | numpy | best of numba, JAX | Leukos | ratio |",
            "|---:|---|---:|---:|---:|---:|",
            *(markdown_row(row, ours) for row, ours in cases if ours),
            "",
        ]
    return "\n".join([*lines, "Ratio: the best of numba and JAX over Leukos; above 1 Leukos is faster."])


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    numbers = lambda text: [int(n) for n in text.split(",")]
    parser.add_argument("--package", action="store_true", help="Leukos through its Python package, beside the rivals")
    parser.add_argument("--rust", help="with --package: the program of the example `whitening_rounds`, to be beside")
    parser.add_argument("--rows", type=int, default=1_000_000, help="with --package: samples to adapt to")
    parser.add_argument("--sizes", type=numbers, default=SIZES, help="N = K, comma-separated")
    parser.add_argument("--dtypes", type=lambda text: text.split(","), default=DTYPES, help="float64,float32")
    parser.add_argument("--seconds-per-case", type=float, default=0.4, help="time spent on each rival")
    parser.add_argument("--out", type=pathlib.Path, help="JSON file to write (default: stdout)")
    parser.add_argument("--rivals", type=pathlib.Path, help="read an earlier --out instead of measuring")
    parser.add_argument("--leukos", type=pathlib.Path, help="JSON of Leukos' own benchmark: print Markdown")
    options = parser.parse_args()
    if options.rust is not None and not options.package:
        parser.error("--rust: expected with --package, got it alone")
    if options.rows < 1:
        parser.error(f"--rows: expected 1 or more, got {options.rows}")
    return options


def main():
    options = parse_arguments()
    if options.package:
        from package import report  # here, because the rivals alone do not need Leukos

        for part in report(options.rows, options.rust):
            print(part, flush=True)
        return
    result = json.loads(options.rivals.read_text()) if options.rivals else measure(options)
    say("\n" + table(result))
    text = json.dumps(result, indent=2)
    if options.out:
        options.out.write_text(text + "\n")
    elif not options.leukos:
        print(text)
    if options.leukos:
        print(markdown(result, json.loads(options.leukos.read_text())))


if __name__ == "__main__":
    main()

"""Measure what a Python user could run instead of Leukos' alignment, optimal gains and learner, on one core.

    venv/bin/python theory.py CONTEXTS.npy        # a stack of covariances (contexts, N, N); about half a minute

Alignment: numpy overlaps and scipy.optimize.linear_sum_assignment.
Optimal gains: Newton's method with Armijo's rule in numpy, from the least-squares gains, to a decrement of 1e-16 f;
and scipy's L-BFGS-B from the same start.
Learner: L-BFGS-B over W with the exact gains of every context and the envelope gradient.
"""

import os

os.environ.update({f"{name}_NUM_THREADS": "1" for name in ("OMP", "MKL", "OPENBLAS")})

import sys
import time

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.optimize import linear_sum_assignment, minimize

LEAK = 1.0


def minimum(run, seconds=1.0):
    """The shortest of many runs, in seconds of processor time."""
    best, begin = np.inf, time.perf_counter()
    while time.perf_counter() - begin < seconds:
        start = time.process_time()
        run()
        best = min(best, time.process_time() - start)
    return best


def unit_columns(w):
    return w / np.linalg.norm(w, axis=0)


def align(a, b):
    overlaps = b.T @ a
    rows, columns = linear_sum_assignment(np.abs(overlaps), maximize=True)
    aligned = a[:, columns] * np.where(overlaps[rows, columns] < 0, -1.0, 1.0)
    return aligned, np.linalg.norm(aligned - b)


def root(c):
    values, vectors = np.linalg.eigh(c)
    return (vectors * np.sqrt(values)) @ vectors.T


def least_squares_gains(w, c):
    gram = w.T @ w
    right = np.einsum("ij,ij->j", w, root(c) @ w) - LEAK * np.diag(gram)
    return np.linalg.lstsq(gram**2, right)[0]


def at(w, c, g):
    """The objective, its gradient and Hessian by g; None off the cone."""
    m = LEAK * np.eye(len(w)) + (w * g) @ w.T
    try:
        factor = cho_factor(m)
    except np.linalg.LinAlgError:
        return None
    filtered = cho_solve(factor, w)
    b = filtered.T @ c @ filtered
    f = np.trace(m) + np.trace(cho_solve(factor, c))
    return f, (w * w).sum(0) - np.diag(b), 2 * (w.T @ filtered) * b


def newton(w, c):
    g = least_squares_gains(w, c)
    here = at(w, c, g)
    if here is None:
        g = np.zeros(w.shape[1])
        here = at(w, c, g)
    for iteration in range(1, 100):
        f, slope, hessian = here
        step = np.linalg.lstsq(hessian, -slope)[0]
        decrement, size = -slope @ step, 1.0
        while True:
            there = at(w, c, g + size * step)
            if there and (decrement <= 1e-9 * f or there[0] <= f - 1e-4 * size * decrement):
                break
            size /= 2
        g, here = g + size * step, there
        if decrement <= 1e-16 * f:
            break
    return g, iteration


def by_lbfgs(w, c):
    def value(g):
        here = at(w, c, g)
        return (1e300, 0 * g) if here is None else here[:2]

    return minimize(value, least_squares_gains(w, c), jac=True, method="L-BFGS-B", options={"ftol": 1e-15})


def learn(contexts, w):
    n, k = w.shape
    least = np.mean([2 * np.trace(root(c)) for c in contexts])

    def value(x):
        w = x.reshape(n, k)
        f, slope = 0.0, np.zeros((n, k))
        for c in contexts:
            g, _ = newton(w, c)
            inverse = np.linalg.inv(LEAK * np.eye(n) + (w * g) @ w.T)
            spread = inverse @ c
            f += np.trace(spread) + LEAK * n + g @ (w * w).sum(0)
            slope += 2 * (w - spread @ inverse @ w) * g
        return f / len(contexts), slope.ravel() / len(contexts)

    start = time.process_time()
    found = minimize(value, w.ravel(), jac=True, method="L-BFGS-B", options={"maxiter": 150, "maxfun": 200})
    return time.process_time() - start, found.fun - least, found.nfev


def main():
    contexts = np.load(sys.argv[1])
    n = contexts.shape[1]
    rng = np.random.default_rng(0)
    random = lambda n, k: unit_columns(rng.normal(size=(n, k)))
    for n_rows, k in [(2, 2), (25, 25), (25, 50), (200, 200)]:
        a, b = random(n_rows, k), random(n_rows, k)
        print(f"N = {n_rows}, K = {k}: alignment {1e6 * minimum(lambda: align(a, b)):.1f} us", flush=True)
    basis = np.linalg.eigh(contexts.mean(0))[1]
    for name, w in [("mean eigenbasis", basis), ("random", random(n, n)), ("random", random(n, 2 * n))]:
        count = np.mean([newton(w, c)[1] for c in contexts])
        newtons = minimum(lambda: [newton(w, c) for c in contexts]) / len(contexts)
        lbfgs = minimum(lambda: [by_lbfgs(w, c) for c in contexts[:8]]) / 8
        print(f"K = {w.shape[1]}, {name}: Newton {1e6 * newtons:.0f} us, {count:.2f} iterations; L-BFGS {1e6 * lbfgs:.0f} us", flush=True)
    seconds, gap, evaluations = learn(contexts, np.linalg.qr(rng.normal(size=(n, n)))[0])
    print(f"K = {n}: learning {seconds:.1f} s, gap {gap:.4f}, {evaluations} evaluations")


if __name__ == "__main__":
    main()

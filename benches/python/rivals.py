"""States one problem, the ways to run it in numpy, numba and JAX on one core, and how they are timed.

The problem is the time of steps at N = K, with both learning rates on:

* online, Algorithm 1 in sequential order (gains first, the decay of the synapses uses the new gains),
* offline, Algorithm 2 in concurrent order (both updates from the old values).

Start: W a Haar-orthogonal matrix plus 10 % noise with unit columns, gains uniform on [0, 4], leak 1.
The stimuli are N(0, M²) with the M of that start; the covariance is M² of other gains, drawn alike.

Data and compilation stay outside the timed region; a case is repeated and its least time counts.
The clock is the processor time of this process, which other programs on the machine disturb least.
The numba kernels may reassociate sums and fuse multiply with add, but not assume finite numbers.
Conjugate gradients stop at a relative residual of 1e-10 in float64 and 1e-6 in float32.
"""

import os

THREADS = ("OMP", "MKL", "OPENBLAS", "NUMBA")
os.environ.update({f"{name}_NUM_THREADS": "1" for name in THREADS})
os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
os.environ["JAX_PLATFORMS"] = "cpu"
if hasattr(os, "sched_setaffinity"):  # Linux; JAX sizes its pool by it, so before the imports
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})

import functools
import math
import sys
import time
from typing import Callable, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import scipy.linalg
from jax.scipy.linalg import cho_factor, cho_solve
from jax.scipy.sparse.linalg import cg
from numba import njit

jax.config.update("jax_enable_x64", True)
jit = njit(fastmath={"reassoc", "contract", "nsz"}, error_model="numpy", forceinline=True)

TOLERANCE = {"float64": 1e-10, "float32": 1e-6}
LEAK = 1.0
RATES = {"online": (1e-3, 1e-5), "offline": (1e-2, 1e-3)}


# --- The problem -------------------------------------------------------------------------------


class Rules(NamedTuple):
    """Scalars of the arrays' dtype, the number one among them: no kernel computes in a wider one."""

    one: np.floating
    leak: np.floating
    gain_rate: np.floating
    synapse_rate: np.floating
    tolerance: np.floating


class Problem(NamedTuple):
    """Where a run starts and what drives it: `(stimuli,)` online, `(covariance, steps)` offline."""

    synapses: np.ndarray
    gains: np.ndarray
    drive: tuple
    rules: Rules
    steps: int

    def fresh(self, order="C"):
        """Arguments of a rival; copies, because some work in place. Order "F": columns contiguous."""
        return np.array(self.synapses, order=order), self.gains.copy(), *self.drive, self.rules


def steps_for(n):
    """Enough steps for a repeat of 0.1 ms or more with the fastest rival."""
    return 3 if n > 512 else max(50, 10_000 // n)


def inverse_whitening_matrix(w, g):
    return LEAK * np.eye(len(w)) + (w * g) @ w.T


def near_orthogonal(n, rng):
    q, r = np.linalg.qr(rng.normal(size=(n, n)))
    w = q * np.sign(np.diag(r)) + 0.1 * rng.normal(size=(n, n)) / math.sqrt(n)
    return w / np.linalg.norm(w, axis=0)


def make_problem(algorithm, n, dtype, steps=None):
    rng = np.random.default_rng(n)
    steps = steps or steps_for(n)
    w, g, others = near_orthogonal(n, rng), rng.uniform(0, 4, n), rng.uniform(0, 4, n)
    if algorithm == "online":
        drive = (rng.normal(size=(steps, n)) @ inverse_whitening_matrix(w, g),)
    else:
        m = inverse_whitening_matrix(w, others)
        drive = (m @ m, steps)
    cast = lambda x: x.astype(dtype) if isinstance(x, np.ndarray) else x
    rules = Rules(*map(np.dtype(dtype).type, (1.0, LEAK, *RATES[algorithm], TOLERANCE[dtype])))
    return Problem(cast(w), cast(g), tuple(map(cast, drive)), rules, steps)


# --- Plain numpy, as a person would write it ---------------------------------------------------


def numpy_online(w, g, stimuli, rules):
    identity = np.eye(len(w), dtype=w.dtype)
    responses = np.empty_like(stimuli)
    for t, s in enumerate(stimuli):
        r = np.linalg.solve(rules.leak * identity + (w * g) @ w.T, s)
        z = w.T @ r
        n = g * z
        g = g + rules.gain_rate * (z**2 - np.sum(w**2, axis=0))
        w = w + rules.synapse_rate * (np.outer(r, n) - w * g)
        responses[t] = r
    return w, g, responses


def numpy_offline(w, g, covariance, steps, rules):
    identity = np.eye(len(w), dtype=w.dtype)
    for _ in range(steps):
        f = np.linalg.inv(rules.leak * identity + (w * g) @ w.T)
        descent = (f @ covariance @ f - identity) @ w
        dg = rules.gain_rate * np.sum(w * descent, axis=0)
        w = w + rules.synapse_rate * descent * g
        g = g + dg
    return w, g


SAME_LOOP = "same loop"  # the functions above, compiled by numba as they stand


# --- N = K = 2 in closed form, on scalars; numba and JAX share the two steps --------------------


def online_step_two(state, s, rules):
    """W = [[a, c], [b, d]]; the products do not wait for the division."""
    a, b, c, d, g0, g1 = state
    s0, s1 = s
    m00, m11 = rules.leak + g0 * a * a + g1 * c * c, rules.leak + g0 * b * b + g1 * d * d
    m01 = g0 * a * b + g1 * c * d
    inverse = rules.one / (m00 * m11 - m01 * m01)
    x, y = m11 * s0 - m01 * s1, m00 * s1 - m01 * s0
    z0, z1 = (a * x + b * y) * inverse, (c * x + d * y) * inverse
    x, y = x * inverse, y * inverse
    h0, h1 = rules.synapse_rate * g0 * z0, rules.synapse_rate * g1 * z1
    g0 += rules.gain_rate * (z0 * z0 - (a * a + b * b))
    g1 += rules.gain_rate * (z1 * z1 - (c * c + d * d))
    keep0, keep1 = rules.one - rules.synapse_rate * g0, rules.one - rules.synapse_rate * g1
    return (keep0 * a + h0 * x, keep0 * b + h0 * y, keep1 * c + h1 * x, keep1 * d + h1 * y, g0, g1), (x, y)


def offline_step_two(state, covariance, rules):
    a, b, c, d, g0, g1 = state
    c00, c01, c11 = covariance
    m00, m11 = rules.leak + g0 * a * a + g1 * c * c, rules.leak + g0 * b * b + g1 * d * d
    m01 = g0 * a * b + g1 * c * d
    determinant = m00 * m11 - m01 * m01
    square = rules.one / (determinant * determinant)
    u00, u01 = m11 * c00 - m01 * c01, m11 * c01 - m01 * c11  # adj(M) C
    u10, u11 = m00 * c01 - m01 * c00, m00 * c11 - m01 * c01
    r00 = (u00 * m11 - u01 * m01) * square  # C_rr = M⁻¹ C M⁻¹
    r01 = (u01 * m00 - u00 * m01) * square
    r11 = (u11 * m00 - u10 * m01) * square
    da, db = r00 * a + r01 * b - a, r01 * a + r11 * b - b
    dc, dd = r00 * c + r01 * d - c, r01 * c + r11 * d - d
    h0, h1 = rules.synapse_rate * g0, rules.synapse_rate * g1
    g0 += rules.gain_rate * (a * da + b * db)
    g1 += rules.gain_rate * (c * dc + d * dd)
    return a + h0 * da, b + h0 * db, c + h1 * dc, d + h1 * dd, g0, g1


numba_online_step_two = jit(online_step_two)
numba_offline_step_two = jit(offline_step_two)


@jit
def numba_online_two(w, g, stimuli, rules):
    state = (w[0, 0], w[1, 0], w[0, 1], w[1, 1], g[0], g[1])
    responses = np.empty_like(stimuli)
    for t in range(stimuli.shape[0]):
        state, r = numba_online_step_two(state, (stimuli[t, 0], stimuli[t, 1]), rules)
        responses[t, 0], responses[t, 1] = r
    w[0, 0], w[1, 0], w[0, 1], w[1, 1], g[0], g[1] = state
    return w, g, responses


@jit
def numba_offline_two(w, g, covariance, steps, rules):
    state = (w[0, 0], w[1, 0], w[0, 1], w[1, 1], g[0], g[1])
    c = (covariance[0, 0], covariance[0, 1], covariance[1, 1])
    for _ in range(steps):
        state = numba_offline_step_two(state, c, rules)
    w[0, 0], w[1, 0], w[0, 1], w[1, 1], g[0], g[1] = state
    return w, g


# --- numba, small N: plain loops whose bounds are constants, so that LLVM unrolls them ----------


@functools.lru_cache(maxsize=None)
def numba_online_unrolled(n):
    @jit
    def assemble(v, g, leak, s, a):
        """Upper triangle of M, and the stimulus in a column beside it."""
        for j in range(n):
            for i in range(j, n):
                a[j, i] = 0
            a[j, j] = leak
            a[j, n] = s[j]
        for k in range(n):
            for j in range(n):
                c = g[k] * v[k, j]
                for i in range(j, n):
                    a[j, i] += c * v[k, i]

    @jit
    def solve(a, pivots, r):
        """M = L D Lᵀ in place, by which the last column becomes L⁻¹ s; then back."""
        one = a.dtype.type(1)
        for j in range(n):
            pivots[j] = one / a[j, j]
            for i in range(j + 1, n):
                c = a[j, i] * pivots[j]
                for l in range(i, n + 1):
                    a[i, l] -= c * a[j, l]
        for j in range(n - 1, -1, -1):
            x = a[j, n]
            for i in range(j + 1, n):
                x -= a[j, i] * r[i]
            r[j] = x * pivots[j]

    @jit
    def learn(v, g, r, rules):
        for k in range(n):
            z = norm = g.dtype.type(0)
            for i in range(n):
                z += v[k, i] * r[i]
                norm += v[k, i] * v[k, i]
            c = rules.synapse_rate * g[k] * z
            g[k] += rules.gain_rate * (z * z - norm)
            keep = rules.one - rules.synapse_rate * g[k]
            for i in range(n):
                v[k, i] = keep * v[k, i] + c * r[i]

    @jit
    def advance(w, g, stimuli, rules):
        v = w.T  # rows are the columns of W
        a, pivots, r = np.empty((n, n + 1), g.dtype), np.empty(n, g.dtype), np.empty(n, g.dtype)
        responses = np.empty_like(stimuli)
        for t in range(stimuli.shape[0]):
            assemble(v, g, rules.leak, stimuli[t], a)
            solve(a, pivots, r)
            learn(v, g, r, rules)
            for i in range(n):
                responses[t, i] = r[i]
        return w, g, responses

    return advance


@functools.lru_cache(maxsize=None)
def numba_offline_unrolled(n):
    @jit
    def assemble(v, g, leak, m):
        for j in range(n):
            for i in range(n):
                m[j, i] = 0
            m[j, j] = leak
        for k in range(n):
            for j in range(n):
                c = g[k] * v[k, j]
                for i in range(n):
                    m[j, i] += c * v[k, i]

    @jit
    def multiply(a, b, out):
        """out = A B, with A symmetric and the columns of B and out contiguous (rows here)."""
        for k in range(n):
            for i in range(n):
                out[k, i] = 0
            for j in range(n):
                c = b[k, j]
                for i in range(n):
                    out[k, i] += c * a[j, i]

    @jit
    def invert(a):
        """Gauss–Jordan in place; a positive definite matrix needs no pivoting."""
        one = a.dtype.type(1)
        for j in range(n):
            pivot = one / a[j, j]
            a[j, j] = one
            for l in range(n):
                a[j, l] *= pivot
            for i in range(n):
                if i != j:
                    c = a[i, j]
                    a[i, j] = 0
                    for l in range(n):
                        a[i, l] -= c * a[j, l]

    @jit
    def advance(w, g, covariance, steps, rules):
        v = w.T
        f, x, y = np.empty_like(v), np.empty_like(v), np.empty_like(v)
        for _ in range(steps):
            assemble(v, g, rules.leak, f)
            invert(f)
            multiply(f, v, x)
            multiply(covariance, x, y)
            multiply(f, y, x)
            learn_from_expectation(v, g, x, rules)
        return w, g

    return advance


# --- numba, any N: loops over four columns at a time, arrays padded to a multiple of four -------
#
# `4 * (n // 4)` tells LLVM that no remainder is left. Sums into scalars, rather than into arrays,
# spare it the check whether arrays overlap.


@jit
def learn_from_expectation(v, g, x, rules):
    """One concurrent step of gains and synapses; the rows of x are the columns of C_rr W."""
    for k in range(v.shape[0]):
        drive = g.dtype.type(0)
        for i in range(v.shape[1]):
            drive += v[k, i] * (x[k, i] - v[k, i])
        c = rules.synapse_rate * g[k]
        g[k] += rules.gain_rate * drive
        for i in range(v.shape[1]):
            v[k, i] += c * (x[k, i] - v[k, i])


@jit
def learn_from_sample(v, g, r, rules):
    """One sequential step of gains and synapses from one response."""
    for k in range(v.shape[0]):
        z = norm = g.dtype.type(0)
        for i in range(r.size):
            z += v[k, i] * r[i]
            norm += v[k, i] * v[k, i]
        c = rules.synapse_rate * g[k] * z
        g[k] += rules.gain_rate * (z * z - norm)
        keep = rules.one - rules.synapse_rate * g[k]
        for i in range(r.size):
            v[k, i] = keep * v[k, i] + c * r[i]


@jit
def padded(w, g):
    """The columns of W as rows, and g; with zeros up to a multiple of four."""
    n = g.size
    if n % 4 == 0:
        return w.T, g
    size = n + 4 - n % 4
    v, h = np.zeros((size, size), g.dtype), np.zeros(size, g.dtype)
    v[:n, :n] = w.T
    h[:n] = g
    return v, h


@jit
def assemble(v, g, leak, scaled, m):
    for k in range(v.shape[0]):
        for i in range(v.shape[1]):
            scaled[k, i] = g[k] * v[k, i]
    np.dot(scaled.T, v, m)
    for i in range(v.shape[0]):
        m[i, i] += leak


@jit
def factorise(m, lower, pivots):
    """M = L Lᵀ: strictly lower part by rows, zeros kept elsewhere; pivots are 1/L_jj."""
    zero, one = m.dtype.type(0), m.dtype.type(1)
    for j in range(m.shape[0]):
        done = 4 * ((j + 3) // 4)
        x = m[j, j]
        for k in range(done):
            x -= lower[j, k] * lower[j, k]
        x = one / np.sqrt(x)
        pivots[j] = x
        for i in range(4 * ((j + 1) // 4), 4 * (m.shape[0] // 4), 4):
            s0 = s1 = s2 = s3 = zero
            for k in range(done):
                y = lower[j, k]
                s0 += lower[i, k] * y
                s1 += lower[i + 1, k] * y
                s2 += lower[i + 2, k] * y
                s3 += lower[i + 3, k] * y
            if i > j:
                lower[i, j] = (m[i, j] - s0) * x
            if i + 1 > j:
                lower[i + 1, j] = (m[i + 1, j] - s1) * x
            if i + 2 > j:
                lower[i + 2, j] = (m[i + 2, j] - s2) * x
            lower[i + 3, j] = (m[i + 3, j] - s3) * x


@jit
def solve_factorised(lower, pivots, r):
    for j in range(r.size):
        x = r[j]
        for k in range(j):
            x -= lower[j, k] * r[k]
        r[j] = x * pivots[j]
    for j in range(r.size - 1, -1, -1):
        x = r[j] * pivots[j]
        r[j] = x
        for k in range(j):
            r[k] -= x * lower[j, k]


@jit
def invert_factorised(lower, pivots, upper, f):
    """U = L⁻ᵀ by rows, then F = M⁻¹ = U Uᵀ."""
    zero = f.dtype.type(0)
    for j in range(f.shape[0]):
        x = pivots[j]
        for k in range(0, j + 1, 4):
            s0 = s1 = s2 = s3 = zero
            for ahead in range(4 * ((j + 3) // 4 - k // 4)):
                l = k + ahead
                y = lower[j, l]
                s0 += upper[k, l] * y
                s1 += upper[k + 1, l] * y
                s2 += upper[k + 2, l] * y
                s3 += upper[k + 3, l] * y
            upper[k, j] = -s0 * x
            upper[k + 1, j] = -s1 * x
            upper[k + 2, j] = -s2 * x
            upper[k + 3, j] = -s3 * x
        upper[j, j] = x
    np.dot(upper, upper.T, f)


@jit
def numba_online_cholesky(w, g, stimuli, rules):
    n = g.size
    v, h = padded(w, g)
    m, scaled, lower = np.zeros_like(v), np.zeros_like(v), np.zeros_like(v)
    pivots, r = np.zeros_like(h), np.zeros_like(h)
    responses = np.empty_like(stimuli)
    for t in range(stimuli.shape[0]):
        assemble(v, h, rules.leak, scaled, m)
        factorise(m, lower, pivots)
        for i in range(n):
            r[i] = stimuli[t, i]
        solve_factorised(lower, pivots, r)
        learn_from_sample(v, h, r, rules)
        for i in range(n):
            responses[t, i] = r[i]
    return v[:n, :n].T, h[:n], responses


@jit
def numba_offline_cholesky(w, g, covariance, steps, rules):
    n = g.size
    v, h = padded(w, g)
    c = np.zeros_like(v)
    c[:n, :n] = covariance
    m, scaled, lower, upper = np.zeros_like(v), np.zeros_like(v), np.zeros_like(v), np.zeros_like(v)
    f, x, y = np.zeros_like(v), np.zeros_like(v), np.zeros_like(v)
    pivots = np.zeros_like(h)
    for _ in range(steps):
        assemble(v, h, rules.leak, scaled, m)
        factorise(m, lower, pivots)
        invert_factorised(lower, pivots, upper, f)
        np.dot(v, f, x)
        np.dot(x, c, y)
        np.dot(y, f, x)
        learn_from_expectation(v, h, x, rules)
    return v[:n, :n].T, h[:n]


# --- numba, conjugate gradients ----------------------------------------------------------------


@jit
def dot(x, y):
    total = x.dtype.type(0)
    for i in range(x.size):
        total += x[i] * y[i]
    return total


@jit
def apply(v, g, leak, x, y):
    """y = leak x + W diag(g) Wᵀ x, in one pass over W."""
    size = 4 * (x.size // 4)
    for i in range(size):
        y[i] = leak * x[i]
    for k in range(0, 4 * (v.shape[0] // 4), 4):
        s0 = s1 = s2 = s3 = x.dtype.type(0)
        for i in range(size):
            s0 += v[k, i] * x[i]
            s1 += v[k + 1, i] * x[i]
            s2 += v[k + 2, i] * x[i]
            s3 += v[k + 3, i] * x[i]
        s0, s1, s2, s3 = s0 * g[k], s1 * g[k + 1], s2 * g[k + 2], s3 * g[k + 3]
        for i in range(size):
            y[i] += s0 * v[k, i] + s1 * v[k + 1, i] + s2 * v[k + 2, i] + s3 * v[k + 3, i]


def numba_respond(preconditioned):
    """M x = s by conjugate gradients; preconditioned, if at all, with what M⁻¹ would be for orthonormal W."""

    @jit
    def respond(v, g, s, rules, x, scratch):
        residual, p, q, u, h = scratch[0], scratch[1], scratch[2], scratch[3], scratch[4]
        goal = rules.tolerance * rules.tolerance * dot(s, s)
        x[:], residual[:], u[:] = 0, s, s
        if preconditioned:
            h[:] = rules.one / (rules.leak + g) - rules.one / rules.leak
            apply(v, h, rules.one / rules.leak, s, u)
        p[:] = u
        rho = dot(residual, u)
        for _ in range(10 * s.size):
            apply(v, g, rules.leak, p, q)
            a = rho / dot(p, q)
            for i in range(s.size):
                x[i] += a * p[i]
                residual[i] -= a * q[i]
            square = dot(residual, residual)
            if square <= goal:
                break
            if preconditioned:
                apply(v, h, rules.one / rules.leak, residual, u)
                new = dot(residual, u)
            else:
                u, new = residual, square
            b, rho = new / rho, new
            for i in range(s.size):
                p[i] = u[i] + b * p[i]

    return respond


def numba_online_iterative(preconditioned):
    respond = numba_respond(preconditioned)

    @jit
    def advance(w, g, stimuli, rules):
        n = g.size
        v, h = padded(w, g)
        scratch = np.empty((5, h.size), h.dtype)
        s, r = np.zeros_like(h), np.zeros_like(h)
        responses = np.empty_like(stimuli)
        for t in range(stimuli.shape[0]):
            s[:n] = stimuli[t]
            respond(v, h, s, rules, r, scratch)
            learn_from_sample(v, h, r, rules)
            responses[t] = r[:n]
        return v[:n, :n].T, h[:n], responses

    return advance


# --- numba with LAPACK through scipy, for large N ----------------------------------------------


@jit
def scale_columns(v, g, out):
    for k in range(v.shape[0]):
        root = np.sqrt(abs(g[k]))
        for i in range(v.shape[1]):
            out[k, i] = root * v[k, i]


def assemble_lower(w, g, leak, scaled, m, syrk):
    """Half the work of a product; the few negative gains are put right afterwards."""
    scale_columns(w.T, g, scaled.T)
    m.fill(0)
    np.fill_diagonal(m, leak)
    syrk(1, scaled, beta=1, c=m, lower=1, overwrite_c=1)
    negative = np.flatnonzero(g < 0)
    if negative.size:
        syrk(-2, np.asfortranarray(scaled[:, negative]), beta=1, c=m, lower=1, overwrite_c=1)


def lapack_online(w, g, stimuli, rules):
    (syrk,) = scipy.linalg.get_blas_funcs(("syrk",), (w,))
    potrf, potrs = scipy.linalg.get_lapack_funcs(("potrf", "potrs"), (w,))
    m, scaled, responses = np.empty_like(w), np.empty_like(w), np.empty_like(stimuli)
    for t, s in enumerate(stimuli):
        assemble_lower(w, g, rules.leak, scaled, m, syrk)
        factor, _ = potrf(m, lower=1, clean=0, overwrite_a=1)
        r, _ = potrs(factor, s, lower=1)
        learn_from_sample(w.T, g, r, rules)
        responses[t] = r
    return w, g, responses


def invert_triangle(lower, out, trtri):
    """By halves, because most of the work is then in products, and those are fast."""
    half = len(lower) // 2
    if half < 32:
        out[:] = trtri(lower, lower=1)[0]
        return
    invert_triangle(lower[:half, :half], out[:half, :half], trtri)
    invert_triangle(lower[half:, half:], out[half:, half:], trtri)
    out[half:, :half] = -out[half:, half:] @ (lower[half:, :half] @ out[:half, :half])


def lapack_offline(w, g, covariance, steps, rules):
    syrk, symm, trmm = scipy.linalg.get_blas_funcs(("syrk", "symm", "trmm"), (w,))
    potrf, trtri = scipy.linalg.get_lapack_funcs(("potrf", "trtri"), (w,))
    c = np.asfortranarray(covariance)
    m, inverse, x, y = (np.zeros_like(w) for _ in range(4))
    for _ in range(steps):
        assemble_lower(w, g, rules.leak, x, m, syrk)
        potrf(m, lower=1, clean=0, overwrite_a=1)
        invert_triangle(m, inverse, trtri)
        x[:] = w
        trmm(1, inverse, x, lower=1, overwrite_b=1)
        trmm(1, inverse, x, lower=1, trans_a=1, overwrite_b=1)
        symm(1, c, x, c=y, lower=1, overwrite_c=1)
        trmm(1, inverse, y, lower=1, overwrite_b=1)
        trmm(1, inverse, y, lower=1, trans_a=1, overwrite_b=1)
        learn_from_expectation(w.T, g, y.T, rules)
    return w, g


# --- JAX ---------------------------------------------------------------------------------------

jit_static_rules = functools.partial(jax.jit, static_argnames="rules")


def jax_factor(w, g, rules):
    return cho_factor(rules.leak * jnp.eye(len(g), dtype=g.dtype) + (w * g) @ w.T, lower=True)


def jax_direct(w, g, s, rules):
    return cho_solve(jax_factor(w, g, rules), s)


def jax_iterative(w, g, s, rules):
    return cg(lambda x: rules.leak * x + w @ (g * (x @ w)), s, tol=rules.tolerance)[0]


def jax_online(respond, unroll=1):
    def advance(w, g, stimuli, rules):
        def step(state, s):
            w, g = state
            r = respond(w, g, s, rules)
            z = r @ w
            n = g * z
            g = g + rules.gain_rate * (z * z - jnp.sum(w * w, axis=0))
            return (w + rules.synapse_rate * (jnp.outer(r, n) - w * g), g), r

        (w, g), responses = jax.lax.scan(step, (w, g), stimuli, unroll=unroll)
        return w, g, responses

    return jit_static_rules(advance)


@jit_static_rules
def jax_online_two(w, g, stimuli, rules):
    def step(state, s):
        state, r = online_step_two(state, s, rules)
        return state, jnp.stack(r)  # stacked here, not after the scan, XLA makes one kernel of the step

    (a, b, c, d, *g), responses = jax.lax.scan(step, (*w.T.ravel(), *g), stimuli)
    return jnp.array([[a, c], [b, d]]), jnp.array(g), responses


@jit_static_rules
def jax_offline_two(w, g, covariance, steps, rules):
    c = (covariance[0, 0], covariance[0, 1], covariance[1, 1])
    step = lambda _, state: offline_step_two(state, c, rules)
    a, b, c, d, *g = jax.lax.fori_loop(0, steps, step, (*w.T.ravel(), *g))
    return jnp.array([[a, c], [b, d]]), jnp.array(g)


def jax_expectation_direct(w, g, covariance, rules):
    factor = jax_factor(w, g, rules)
    return cho_solve(factor, covariance @ cho_solve(factor, w))


def jax_expectation_inverse(w, g, covariance, rules):
    f = cho_solve(jax_factor(w, g, rules), jnp.eye(len(g), dtype=g.dtype))
    return f @ (covariance @ (f @ w))


def jax_offline(expectation):
    def advance(w, g, covariance, steps, rules):
        def step(_, state):
            w, g = state
            descent = expectation(w, g, covariance, rules) - w
            return (
                w + rules.synapse_rate * descent * g,
                g + rules.gain_rate * jnp.sum(w * descent, axis=0),
            )

        return jax.lax.fori_loop(0, steps, step, (w, g))

    return jit_static_rules(advance)


# --- The rivals --------------------------------------------------------------------------------


class Rival(NamedTuple):
    """One way to run an algorithm, at the sizes where it makes sense."""

    library: str
    variant: str
    smallest: int
    largest: float
    make: Callable  # n -> advance

    @property
    def name(self):
        return f"{self.library} {self.variant}"

    def arguments(self, problem):
        by_columns = self.library == "numba" and self.variant != SAME_LOOP
        *arrays, rules = problem.fresh("F" if by_columns else "C")
        if self.library == "jax":
            arrays = jax.block_until_ready([jnp.asarray(array) for array in arrays])
        return *arrays, rules


def fixed(library, variant, smallest, largest, advance):
    return Rival(library, variant, smallest, largest, lambda n: advance)


RIVALS = {
    "online": [
        fixed("numpy", "solve", 1, math.inf, numpy_online),
        fixed("numba", SAME_LOOP, 1, math.inf, njit(numpy_online)),
        fixed("numba", "closed form", 2, 2, numba_online_two),
        Rival("numba", "unrolled", 3, 8, numba_online_unrolled),
        fixed("numba", "cholesky", 5, 256, numba_online_cholesky),
        fixed("numba", "lapack", 64, math.inf, lapack_online),
        fixed("numba", "cg", 16, math.inf, numba_online_iterative(preconditioned=False)),
        fixed("numba", "preconditioned cg", 64, math.inf, numba_online_iterative(preconditioned=True)),
        fixed("jax", "closed form", 2, 2, jax_online_two),
        fixed("jax", "cholesky", 2, 32, jax_online(jax_direct, unroll=4)),
        fixed("jax", "cholesky", 33, math.inf, jax_online(jax_direct)),
        fixed("jax", "cg", 16, math.inf, jax_online(jax_iterative)),
    ],
    "offline": [
        fixed("numpy", "inv", 1, math.inf, numpy_offline),
        fixed("numba", SAME_LOOP, 1, math.inf, njit(numpy_offline)),
        fixed("numba", "closed form", 2, 2, numba_offline_two),
        Rival("numba", "unrolled", 3, 8, numba_offline_unrolled),
        fixed("numba", "cholesky", 5, 256, numba_offline_cholesky),
        fixed("numba", "lapack", 64, math.inf, lapack_offline),
        fixed("jax", "closed form", 2, 2, jax_offline_two),
        fixed("jax", "cholesky", 2, math.inf, jax_offline(jax_expectation_direct)),
        fixed("jax", "inverse", 16, math.inf, jax_offline(jax_expectation_inverse)),
    ],
}


# --- Timing and telling ------------------------------------------------------------------------


def say(text):
    print(text, file=sys.stderr, flush=True)


def processor_time(function, arguments):
    start = time.process_time()
    jax.block_until_ready(function(*arguments))
    return time.process_time() - start


def least_time(function, make_arguments, seconds):
    """Over as many calls as fit into `seconds`; the arguments are made outside the timed region."""
    end = time.perf_counter() + seconds
    least = processor_time(function, make_arguments())
    while time.perf_counter() < end:
        least = min(least, processor_time(function, make_arguments()))
    return least


def disagreement(result, reference):
    """Largest difference in W, g and responses, relative where values exceed 1."""
    pairs = zip(map(np.asarray, result), reference)
    return np.max([np.max(np.abs(a - b)) / max(1, np.max(np.abs(b))) for a, b in pairs])


def digits(value):
    """Three significant digits, never in scientific notation."""
    if value is None:
        return "–"
    return f"{value:.{max(0, 2 - math.floor(math.log10(value)))}f}"

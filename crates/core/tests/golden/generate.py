"""Restates the paper's algorithms in numpy, to check the golden cases beside it and to draw new ones.

Usage: python generate.py --check FOLDER
       python generate.py --write FOLDER --seed SEED

`--check` computes every output of every case in FOLDER again, from the inputs stored with it.
`--write` draws new inputs of the same shapes and writes a whole set, for the tests in Rust to read where
LEUKOS_GOLDEN names its folder.

Everything is written from the paper (Duong, Simoncelli, Chklovskii and Lipshutz, "Adaptive whitening with fast gain
modulation and slow synaptic plasticity", 2023) and shares nothing with the library. The cases beside it were computed
by another numpy program before this one was written, so that `--check` is a comparison too. Matrices are the paper's:
S (T, N) and R (T, N) have a stimulus and its response a row, W (N, K) a synapse vector a column, W_rn is (K, N),
W_nr (N, K), covs (C, N, N). A name that ends in 0 is where a run starts; the same name without it is where it ends.
`concurrent` says that every update reads the old values; else the pseudo-code's order holds, where synapses decay
with the new gains, and offline are driven with them too.
"""

import argparse
import itertools
import re
import sys
from pathlib import Path

import numpy as np

# The settings that are stored with each case; its name says what runs and the sizes N and K.
ONLINE = {"alpha": 1.0, "eta_g": 0.01, "eta_w": 0.001, "concurrent": False, "normalize": False}
CONSTRAINED = {**ONLINE, "eta_w": 0.002, "batch": 1, "sign": False}
OFFLINE = {**ONLINE, "eta_g": 0.1, "eta_w": 0.01, "J": 25}
BIOLOGICAL = {"alpha": 1.0, "eta_g": 0.01, "eta_w": 0.005, "eta_m": 0.01}
SETTINGS = {
    "online_n1_k1": ONLINE,
    "online_n2_k2": {**ONLINE, "eta_g": 0.05},
    "online_n3_k3_concurrent_unit": {
        **ONLINE, "eta_g": 0.02, "eta_w": 0.002, "concurrent": True, "normalize": True,
    },
    "online_n3_k5_alpha_half": {**ONLINE, "alpha": 0.5},
    "online_n5_k2": ONLINE,
    "batch8_n3_k4": {**CONSTRAINED, "batch": 8},
    "sign_n3_k3": {**CONSTRAINED, "sign": True},
    "unit_norm_n3_k3": {**CONSTRAINED, "eta_m": 0.01},
    "gain_modulation_n3_k6": {**ONLINE, "eta_w": 0.0},
    "synaptic_plasticity_n3_k4": {**ONLINE, "alpha": 0.0, "eta_g": 0.0, "eta_w": 0.002},
    "biological_n2_k2": {**BIOLOGICAL, "eta_g": 0.02, "eta_w": 0.001},
    "biological_n3_k4_clipped": BIOLOGICAL,
    "offline_n5_k5": OFFLINE,
    "offline_n5_k5_concurrent": {**OFFLINE, "concurrent": True},
    "offline_n5_k5_unit": {**OFFLINE, "normalize": True},
    "dynamics_n4_k6": {"alpha": 0.5, "tolerance": 1e-8},
    "metrics_n4_k7": {"alpha": 0.5},
    "metrics_n5_k5": {"alpha": 1.0},
}

# Relative to the largest number of an array, or to 1, the size of leaks and synapses, where that is more. Another
# processor rounds each of at most 2000 steps otherwise, by about 2.2e-16, and no run makes much of it: gains pull it
# back. So 2000 roundings in one direction, 4.4e-13, are the most to expect, while a wrong term would show in the
# first step, by a rate of 1e-3 or more.
TOLERANCE = 1e-12


class OffTheCone(Exception):
    """M has an eigenvalue whose real part is not positive, where the recurrent loop has no limit."""


# ---- The algorithms ----


def inverse_whitening_matrix(alpha, w_nr, g, w_rn):
    """M = αI + W_nr diag(g) W_rn: Table 1, untied as in Appendix E.2."""
    m = alpha * np.eye(len(w_nr)) + w_nr @ np.diag(g) @ w_rn
    if np.linalg.eigvals(m).real.min() <= 0:
        raise OffTheCone
    return m


def rectified(x):
    """[x]₊ of Appendix E.3."""
    return np.maximum(x, 0.0)


def unit_columns(w):
    return w / np.linalg.norm(w, axis=0)


def online(case):
    """Algorithm 1, with the responses at equilibrium; with m0 the unit norm of Appendix E.1; with `sign` E.3."""
    w, g = case["W0"], case["g0"]
    multipliers = "m0" in case
    m = case["m0"] if multipliers else np.zeros_like(g)
    constrain = rectified if case.get("sign", False) else lambda x: x
    batch = int(case.get("batch", 1))
    answers = []
    for first in range(0, len(case["S"]), batch):
        s = case["S"][first : first + batch]
        r = np.linalg.solve(inverse_whitening_matrix(case["alpha"], w, g, w.T), s.T).T
        answers.append(r)
        if len(s) < batch:
            break
        z = r @ w
        n = g * z
        old = g + m
        # E.1 holds the norm at 1, and with it the variance that the gains aim at.
        target = np.ones_like(g) if multipliers else np.sum(w * w, axis=0)
        if multipliers:
            m = m + case["eta_m"] * (np.sum(w * w, axis=0) - 1.0)
        g = constrain(g + case["eta_g"] * (np.mean(z * z, axis=0) - target))
        decay = old if case["concurrent"] else g + m
        w = constrain(w + case["eta_w"] * (r.T @ n / batch - w * decay))
        if case["normalize"]:
            w = unit_columns(w)
    return {"R": np.concatenate(answers), "W": w, "g": g} | ({"m": m} if multipliers else {})


def biological(case):
    """Algorithm 3."""
    w_rn, w_nr, g, m = case["W_rn0"], case["W_nr0"], case["g0"], case["m0"]
    answers = []
    for s in case["S"]:
        r = np.linalg.solve(inverse_whitening_matrix(case["alpha"], w_nr, g, w_rn), s)
        answers.append(r)
        z = w_rn @ r
        n = g * z
        m = rectified(m + case["eta_m"] * (np.sum(w_rn.T * w_nr, axis=0) - 1.0))
        g = rectified(g + case["eta_g"] * (z * z - 1.0))
        w_rn = rectified(w_rn + case["eta_w"] * (np.outer(n, r) - np.diag(g + m) @ w_rn))
        w_nr = rectified(w_nr + case["eta_w"] * (np.outer(r, n) - w_nr @ np.diag(g + m)))
    return {"R": np.array(answers), "W_rn": w_rn, "W_nr": w_nr, "g": g, "m": m}


def gradient(m, c):
    """∇f_c(M) = I − M⁻¹CM⁻¹, Eq. (10)."""
    inverse = np.linalg.inv(m)
    return np.eye(len(m)) - inverse @ c @ inverse


def whitening_error(m, c):
    """‖M⁻¹CM⁻¹ − I‖ in the operator norm, Eq. (9)."""
    return np.linalg.norm(gradient(m, c), 2)


def offline(case):
    """Algorithm 2: J steps on each covariance presented, and the whitening error before each."""
    w, g = case["W0"], case["g0"]
    errors = []
    for c in case["covs"][case["presented"]]:
        for _ in range(case["J"]):
            m = inverse_whitening_matrix(case["alpha"], w, g, w.T)
            errors.append(whitening_error(m, c))
            slope = gradient(m, c)
            old = g
            g = g - case["eta_g"] * np.diag(w.T @ slope @ w)
            w = w - case["eta_w"] * slope @ w @ np.diag(old if case["concurrent"] else g)
            if case["normalize"]:
                w = unit_columns(w)
    return {"error": np.reshape(errors, (-1, case["J"])), "W": w, "g": g}


def dynamics(case):
    """Eq. (6) from r = 0 until max|Δr| ≤ tolerance · max|s|, and how many iterations that takes."""
    w, g = case["W"], case["g"]
    answers, iterations = [], []
    for s in case["S"]:
        r, change, count = np.zeros_like(s), np.inf, 0
        while np.max(np.abs(change)) > case["tolerance"] * np.max(np.abs(s)):
            n = g * (w.T @ r)
            change = case["response_rate"] * (s - w @ n - case["alpha"] * r)
            r, count = r + change, count + 1
        answers.append(r)
        iterations.append(count)
    return {"R_dynamics": np.array(answers), "iterations": np.array(iterations)}


# ---- The objective and the measures ----


def objective(m, c):
    """f_c(M) = Tr(M⁻¹C + M), Eq. (2)."""
    return np.trace(np.linalg.solve(m, c) + m)


def square_root(c):
    values, vectors = np.linalg.eigh(c)
    return vectors @ np.diag(np.sqrt(values)) @ vectors.T


def least_squares_gains(w, c, alpha):
    """The gains whose M is nearest to C^½ in the Frobenius norm, as an ordinary regression on the outer products."""
    products = np.stack([np.outer(v, v).ravel() for v in w.T], axis=1)
    return np.linalg.lstsq(products, (square_root(c) - alpha * np.eye(len(c))).ravel(), rcond=None)[0]


def optimal_gains(w, c, alpha, g):
    """The gains that minimise f_c at these synapses, by Newton's method from gains `g` whose M is definite.

    f_c is convex in g, with the slope ‖wᵢ‖² − Bᵢᵢ and the Hessian 2 A∘B, where A = WᵀM⁻¹W and B = WᵀM⁻¹CM⁻¹W.
    """
    def value(g):
        try:
            return objective(inverse_whitening_matrix(alpha, w, g, w.T), c)
        except OffTheCone:
            return np.inf

    # Newton's method doubles the correct digits of a step; 100 steps are far more than a convex problem takes.
    for _ in range(100):
        inverse = np.linalg.inv(inverse_whitening_matrix(alpha, w, g, w.T))
        a, b = w.T @ inverse @ w, w.T @ inverse @ c @ inverse @ w
        slope = np.sum(w * w, axis=0) - np.diag(b)
        step = -np.linalg.solve(2 * a * b, slope)
        # Near the minimum f_c has no digits left to fall by, and whole steps are right.
        if -slope @ step < 1e-10 * value(g):
            g = g + step
            if np.max(np.abs(step)) <= 1e-14 * np.max(np.abs(g)):
                return g
            continue
        while value(g + step) > value(g) + 0.25 * slope @ step:
            step = step / 2
        g = g + step
    return g


def aligned(w, b):
    """W's columns, permuted and with signs so that ‖WP − B‖ is least: the best of all permutations."""
    overlaps = w.T @ b
    columns = range(w.shape[1])
    best = max(itertools.permutations(columns), key=lambda order: np.abs(overlaps[order, columns]).sum())
    return w[:, best] * np.sign(overlaps[best, columns])


def metrics(case):
    """The objective, its gradient and the error at (W, g), the best gains at W, and W aligned to B."""
    c, w, g, alpha = case["C"], case["W"], case["g"], case["alpha"]
    m = inverse_whitening_matrix(alpha, w, g, w.T)
    best = inverse_whitening_matrix(alpha, w, optimal_gains(w, c, alpha, g), w.T)
    nearest = aligned(w, case["B"])
    return {
        "M": m,
        "objective": objective(m, c),
        "gradient": gradient(m, c),
        "error": whitening_error(m, c),
        "least_squares_gains": least_squares_gains(w, c, alpha),
        "objective_at_optimal_gains": objective(best, c),
        "error_at_optimal_gains": whitening_error(best, c),
        "W_aligned": nearest,
        "distance": np.linalg.norm(nearest - case["B"]),
    }


# ---- The cases ----


def run(name, case):
    """Every output of a case, from its inputs."""
    runs = {"biological": biological, "offline": offline, "dynamics": dynamics, "metrics": metrics}
    return runs.get(name.partition("_")[0], online)(case)


def on_sphere(rng, n, k):
    return unit_columns(rng.standard_normal((n, k)))


def covariance(rng, n, largest):
    """A covariance with eigenvalues from 1 to the largest, in equal ratios, and random eigenvectors."""
    q, _ = np.linalg.qr(rng.standard_normal((n, n)))
    return q @ np.diag(np.geomspace(1.0, largest, n)) @ q.T


def stimuli(rng, n, largest, count=2000):
    return rng.standard_normal((count, n)) @ square_root(covariance(rng, n, largest))


def draw(name, rng):
    """The inputs of a case: its settings, and random numbers of its shapes."""
    kind = name.partition("_")[0]
    n, k = (int(size) for size in re.search(r"_n(\d+)_k(\d+)", name).groups())
    case = dict(SETTINGS[name])
    if kind == "metrics":
        return case | {
            "C": covariance(rng, n, 12.0),
            "W": on_sphere(rng, n, k),
            "B": on_sphere(rng, n, k),
            "g": rng.uniform(0.1, 2.0, k),
        }
    if kind == "dynamics":
        w, g = on_sphere(rng, n, k), rng.uniform(0.5, 2.0, k)
        largest = np.linalg.eigvalsh(inverse_whitening_matrix(case["alpha"], w, g, w.T)).max()
        # Half of what Eq. (6) can bear.
        return case | {"W": w, "g": g, "S": rng.standard_normal((50, n)), "response_rate": 1.0 / largest}
    case["g0"] = np.full(k, 1.0 if kind == "synaptic" else 0.5)
    if kind == "biological":
        clipped = name.endswith("clipped")
        # Columns that are long and nearly along the axes have weights that soon reach 0.
        back = np.abs(rng.standard_normal((n, k))) ** (3.0 if clipped else 1.0)
        forth = back * rng.uniform(0.8, 1.25, (n, k))
        size = 1.4 if clipped else 1.0
        return case | {
            "W_nr0": size * unit_columns(back),
            "W_rn0": size * unit_columns(forth).T,
            "m0": np.full(k, 0.2 if clipped else 0.0),
            "S": stimuli(rng, n, 16.0),
        }
    case["W0"] = on_sphere(rng, n, k)
    if kind == "offline":
        covariances = np.array([covariance(rng, n, 8.0) for _ in range(8)])
        return case | {"covs": covariances, "presented": rng.integers(0, 8, 40)}
    if kind == "sign":
        case["W0"] = np.abs(case["W0"])
    if kind == "unit":
        case["m0"] = np.full(k, 0.1)
    return case | {"S": stimuli(rng, n, 6.0)}


def shows_its_constraint(name, case, outputs):
    """Whether the rectification that a case is about changes anything."""
    if name.startswith("sign"):
        return np.any(run(name, case | {"sign": False})["W"] < 0)
    if name.endswith("clipped"):
        return np.any(outputs["W_rn"] == 0)
    return True


def write(folder, seed):
    """Draws each case until its M stays on the cone and its constraint acts, and writes it."""
    folder.mkdir(parents=True, exist_ok=True)
    for number, name in enumerate(SETTINGS):
        rng = np.random.default_rng([seed, number])
        for _ in range(100):
            try:
                case = draw(name, rng)
                outputs = run(name, case)
            except OffTheCone:
                continue
            if shows_its_constraint(name, case, outputs):
                break
        else:
            sys.exit(f"{name}: none of 100 draws is of use")
        np.savez(folder / f"{name}.npz", **case, **outputs)


def load(path):
    """The arrays of a case; what has no dimension as a number."""
    with np.load(path) as arrays:
        return {name: array if array.ndim else array[()] for name, array in arrays.items()}


def differences(name, case):
    """What is wrong with a case, line by line."""
    drawn, outputs = draw(name, np.random.default_rng(0)), run(name, case)
    if set(case) != set(drawn) | set(outputs):
        yield f"expected the arrays {sorted(set(drawn) | set(outputs))}, got {sorted(case)}"
        return
    for array, value in (drawn | outputs).items():
        if np.shape(case[array]) != np.shape(value):
            yield f"{array} has the shape {np.shape(case[array])}, not {np.shape(value)}"
    for setting, value in SETTINGS[name].items():
        if case[setting] != value:
            yield f"{setting} is {case[setting]}, not {value}"
    for array, value in outputs.items():
        away = np.max(np.abs(case[array] - value))
        # Written so that a NaN is a difference too.
        if not away <= TOLERANCE * max(1.0, np.max(np.abs(value))):
            yield f"{array} is {away:.1e} away"


def check(folder):
    """Prints how each case compares, and returns whether all agree."""
    found = {path.stem for path in folder.glob("*.npz")}
    good = True
    for name in sorted(found | set(SETTINGS)):
        if name not in found or name not in SETTINGS:
            wrong = ["is missing" if name in SETTINGS else "is not known here"]
        else:
            wrong = list(differences(name, load(folder / f"{name}.npz")))
        good &= not wrong
        print(f"{name}: {'; '.join(wrong) or 'agrees'}")
    return good


def main():
    parser = argparse.ArgumentParser(description="Checks the golden cases, or draws new ones.")
    task = parser.add_mutually_exclusive_group(required=True)
    task.add_argument("--check", type=Path, metavar="FOLDER")
    task.add_argument("--write", type=Path, metavar="FOLDER")
    parser.add_argument("--seed", type=int, help="the seed of the cases to write")
    given = parser.parse_args()
    if (given.write is None) != (given.seed is None):
        parser.error("--write and --seed go together")
    if given.check is not None:
        sys.exit(0 if check(given.check) else 1)
    write(given.write, given.seed)


if __name__ == "__main__":
    main()

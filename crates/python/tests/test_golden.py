"""Reproduces every golden case through the functions of the contract, to 1e-9."""

from pathlib import Path

import numpy as np
import pytest

import leukos

GOLDEN = Path(__file__).parents[2] / "core" / "tests" / "golden"
TOLERANCE = 1e-9


def cases(*beginnings):
    names = sorted(path.stem for path in GOLDEN.glob("*.npz"))
    return [name for name in names if name.startswith(beginnings)]


def load(case):
    with np.load(GOLDEN / f"{case}.npz") as file:
        return {name: file[name] for name in file.files}


def rate(golden, name):
    """A rate of zero stands for a part that is frozen."""
    return float(golden[name]) or None


def near(ours, golden, name):
    np.testing.assert_allclose(ours, golden[name], rtol=0, atol=TOLERANCE, err_msg=name)


def test_there_is_a_test_for_each_case():
    tested = {name for kind in (ONLINE, BIOLOGICAL, OFFLINE, METRICS, DYNAMICS) for name in kind}
    assert tested == {path.stem for path in GOLDEN.glob("*.npz")} and len(tested) == 18


ONLINE = cases("online", "batch", "gain_modulation", "synaptic_plasticity", "sign", "unit_norm")
BIOLOGICAL = cases("biological")
OFFLINE = cases("offline")
METRICS = cases("metrics")
DYNAMICS = cases("dynamics")


def options(golden):
    flag = lambda name: bool(golden.get(name, False))
    unit_norm = "multiplier" if "eta_m" in golden else "projected" if flag("normalize") else "free"
    return {
        "gain_rate": rate(golden, "eta_g"),
        "synapse_rate": rate(golden, "eta_w"),
        "multiplier_rate": rate(golden, "eta_m") if "eta_m" in golden else None,
        "order": "concurrent" if flag("concurrent") else "sequential",
        "unit_norm": unit_norm,
        "sign": "nonnegative" if flag("sign") else "free",
    }


@pytest.mark.parametrize("case", ONLINE)
def test_online(case):
    golden = load(case)
    circuit = leukos.Circuit(golden["W0"], golden["g0"], float(golden["alpha"]), multipliers=golden.get("m0"))
    run = leukos.run_online(circuit, golden["S"], batch=int(golden.get("batch", 1)), **options(golden))
    near(run.responses, golden, "R")
    near(run.circuit.synapses, golden, "W")
    near(run.circuit.gains, golden, "g")
    if "m" in golden:
        near(run.circuit.multipliers, golden, "m")


@pytest.mark.parametrize("case", BIOLOGICAL)
def test_biological(case):
    golden = load(case)
    circuit = leukos.Circuit(
        golden["W_nr0"],
        golden["g0"],
        float(golden["alpha"]),
        feedforward=golden["W_rn0"],
        multipliers=golden["m0"],
    )
    rates = {name: rate(golden, f"eta_{name[0] if name != 'synapse_rate' else 'w'}") for name in RATES}
    run = leukos.run_biological(circuit, golden["S"], **rates)
    near(run.responses, golden, "R")
    near(run.circuit.synapses, golden, "W_nr")
    near(run.circuit.feedforward, golden, "W_rn")
    near(run.circuit.gains, golden, "g")
    near(run.circuit.multipliers, golden, "m")


RATES = ("gain_rate", "synapse_rate", "multiplier_rate")


@pytest.mark.parametrize("case", OFFLINE)
def test_offline(case):
    golden = load(case)
    chosen = options(golden)
    circuit = leukos.Circuit(golden["W0"], golden["g0"], float(golden["alpha"]))
    run = leukos.run_offline(circuit, golden["covs"], golden["presented"], steps=int(golden["J"]), **chosen)
    near(run.errors, golden, "error")
    near(run.circuit.synapses, golden, "W")
    near(run.circuit.gains, golden, "g")


@pytest.mark.parametrize("case", DYNAMICS)
def test_dynamics(case):
    golden = load(case)
    circuit = leukos.Circuit(golden["W"], golden["g"], float(golden["alpha"]))
    dynamics = {"response_rate": float(golden["response_rate"]), "tolerance": float(golden["tolerance"])}
    near(circuit.respond(golden["S"], solver="dynamics", **dynamics), golden, "R_dynamics")
    for stimulus, iterations in zip(golden["S"], golden["iterations"], strict=True):
        circuit.respond(stimulus, "dynamics", max_iterations=int(iterations), **dynamics)
        with pytest.raises(leukos.NotConvergedError, match=f"{iterations - 1} iterations"):
            circuit.respond(stimulus, "dynamics", max_iterations=int(iterations) - 1, **dynamics)


@pytest.mark.parametrize("case", METRICS)
def test_metrics(case):
    golden = load(case)
    W, C, M, leak = golden["W"], golden["C"], golden["M"], float(golden["alpha"])
    near(leukos.Circuit(W, golden["g"], leak).inverse_whitening_matrix(), golden, "M")
    near(leukos.objective(M, C), golden, "objective")
    near(leukos.gradient(M, C), golden, "gradient")
    near(leukos.whitening_error(M, C), golden, "error")
    aligned, distance = leukos.align(W, golden["B"])
    near(aligned, golden, "W_aligned")
    near(distance, golden, "distance")
    near(leukos.least_squares_gains(W, C, leak), golden, "least_squares_gains")
    best = leukos.Circuit(W, leukos.optimal_gains(W, C, leak), leak).inverse_whitening_matrix()
    near(leukos.objective(best, C), golden, "objective_at_optimal_gains")
    # Not stationary at the optimum, so it shows the accuracy of the gains themselves.
    assert leukos.whitening_error(best, C) == pytest.approx(float(golden["error_at_optimal_gains"]), abs=1e-6)

"""Refuses wrong calls by the right exception, which names the argument, what was expected and what it got instead."""

import numpy as np
import pandas as pd
import pytest

import leukos
from leukos import AdaptiveWhitener, Circuit, datasets

W, g = np.array([[1.0, 0.5], [0.0, 0.8]]), np.array([0.5, 0.5])
C = np.array([[2.0, 0.5], [0.5, 1.0]])
S = np.random.default_rng(0).normal(size=(40, 2))
RATES = {"gain_rate": 0.01, "synapse_rate": 1e-3}
OK = Circuit(W, g)
UNTIED = Circuit(np.abs(W), g, feedforward=np.abs(W).T)
NAN = np.array([[np.nan, 1.0], [0.0, 1.0]])


def online(circuit=OK, stimuli=S, **options):
    return leukos.run_online(circuit, stimuli, **{**RATES, **options})


def offline(covariances=(C,), presented=(0,), **options):
    return leukos.run_offline(OK, covariances, presented, **{"steps": 2, **RATES, **options})


def fit(X=S, contexts=None, **parameters):
    return AdaptiveWhitener(**parameters).fit(X, contexts=contexts)


def self_merged():
    moments = leukos.Moments(2)
    moments.update(S)
    moments.merge(moments)


MASKED = np.ma.masked_array(S, S > 1.0)
DAYS = np.arange(80).reshape(40, 2).astype("datetime64[D]")

CALLS = {
    # What only looks like numbers.
    "masked samples": (lambda: fit(MASKED), ValueError, "X: expected an array without a mask .*, got a masked array"),
    "masked samples later": (lambda: fit().transform(MASKED), ValueError, "X: expected an array without a mask"),
    "masked responses": (lambda: fit().inverse_transform(MASKED), ValueError, "X: expected an array without a mask"),
    "masked stream": (lambda: fit().adapt_transform(list(MASKED)), ValueError, "X: expected an array without a mask"),
    "masked stimuli": (lambda: OK.respond(MASKED), ValueError, "S: expected an array without a mask"),
    "masked sums": (lambda: leukos.Moments(2).update(MASKED), ValueError, "X: expected an array without a mask"),
    "masked covariances": (
        lambda: datasets.draw(np.ma.masked_array([C], False)),
        ValueError,
        "covariances: expected an array without a mask",
    ),
    "masked labels": (
        lambda: fit(contexts=np.ma.masked_array(["a"] * 40, False)),
        ValueError,
        "contexts: expected labels without a mask",
    ),
    "days": (lambda: fit(DAYS), ValueError, r"X: expected an array of real numbers, got one of datetime64\[D\]"),
    "durations": (lambda: fit(DAYS - DAYS[0]), ValueError, r"X: expected an array of real .*timedelta64\[D\]"),
    "a frame of days": (lambda: fit(pd.DataFrame(DAYS)), ValueError, "X: expected an array of real .*datetime64"),
    "durations as stimuli": (lambda: OK.respond(DAYS - DAYS[0]), ValueError, "S: expected an array of real numbers"),
    "merged with themselves": (self_merged, ValueError, "other: expected other Moments than these, got the same object"),
    # Circuits.
    "gains of wrong length": (
        lambda: Circuit(W, [1.0]),
        ValueError,
        r"gains: expected 2 numbers \(one for each interneuron\), got 1 numbers",
    ),
    "gains in a matrix": (
        lambda: Circuit(W, W),
        ValueError,
        r"gains: expected an array of shape \(K,\), got shape \(2, 2\)",
    ),
    "synapses in a row": (lambda: Circuit(g, g), ValueError, r"synapses: expected a matrix, got shape \(2,\)"),
    "synapses with a NaN": (
        lambda: Circuit(NAN, g),
        ValueError,
        r"synapses: expected finite numbers, got NaN at \(0, 0\)",
    ),
    "synapses of text": (
        lambda: Circuit([["a", "b"]], g),
        ValueError,
        "synapses: expected an array of real numbers, got one of <U1",
    ),
    "synapses that are ragged": (
        lambda: Circuit([[1.0], [1.0, 2.0]], g),
        ValueError,
        "synapses: expected an array of real numbers, got list that numpy cannot convert to one",
    ),
    "complex synapses": (
        lambda: Circuit(W * 1j, g),
        ValueError,
        "synapses: expected an array of real numbers, got one of complex128",
    ),
    "no neuron": (lambda: Circuit(np.zeros((0, 2)), g), ValueError, "synapses: expected at least one row"),
    "negative leak": (lambda: Circuit(W, g, -1.0), ValueError, "leak: expected .* 0.*, got -1"),
    "leak of text": (lambda: Circuit(W, g, "one"), TypeError, "must be real number, not str\nwhile processing 'leak'"),
    "singular": (lambda: Circuit(W[:, :1], [1.0], 0.0), ValueError, "leak: expected more than 0 .*; got 0"),
    "indefinite start": (
        lambda: Circuit(W, [-5.0, 0.0]),
        ValueError,
        "circuit: expected .* positive definite, but pivot 0",
    ),
    "unstable start": (
        lambda: Circuit(W, [-5.0, 0.0], feedforward=W.T),
        ValueError,
        "circuit: expected .* positive real part, but an eigenvalue",
    ),
    "feedforward of wrong shape": (
        lambda: Circuit(W, g, feedforward=np.ones((3, 2))),
        ValueError,
        "feedforward: expected .*2.*2.*, got .*3.*2",
    ),
    "multipliers of wrong length": (
        lambda: Circuit(W, g, multipliers=[1.0, 2.0, 3.0]),
        ValueError,
        "multipliers: expected 2 numbers .*, got 3 numbers",
    ),
    "options are by name": (lambda: Circuit(W, g, 1.0, W.T), TypeError, "takes from 2 to 3 positional arguments"),
    # Responses.
    "stimuli of wrong width": (
        lambda: OK.respond(np.ones((3, 3))),
        ValueError,
        r"S: expected an array of shape \(T, 2\), got shape \(3, 3\)",
    ),
    "stimuli with an infinity": (
        lambda: OK.respond(np.array([[1.0, 2.0], [3.0, np.inf]])),
        ValueError,
        "S: expected finite numbers, got inf in row 1, column 1",
    ),
    "unknown solver": (
        lambda: OK.respond(S, "magic"),
        ValueError,
        'solver: expected "direct" or "iterative" or "dynamics" or "loop", got "magic"',
    ),
    "tolerance without use": (
        lambda: OK.respond(S, tolerance=1e-3),
        ValueError,
        'tolerance: expected None with solver="direct", got a number',
    ),
    "negative tolerance": (
        lambda: OK.respond(S, "iterative", tolerance=-1.0),
        ValueError,
        "tolerance: expected a finite number above 0, got -1",
    ),
    "no iterations": (
        lambda: OK.respond(S, "dynamics", max_iterations=0),
        ValueError,
        "max_iterations: expected a whole number of 1 or more, got 0",
    ),
    "dynamics that do not settle": (
        lambda: OK.respond(S, "dynamics", max_iterations=2),
        leukos.NotConvergedError,
        "did not converge in 2 iterations",
    ),
    "a loop without a length": (
        lambda: OK.respond(S, "loop"),
        ValueError,
        'max_iterations: expected a whole number of 1 or more with solver="loop", got None',
    ),
    "a loop with a tolerance": (
        lambda: OK.respond(S, "loop", max_iterations=2, tolerance=1e-3),
        ValueError,
        'tolerance: expected None with solver="loop", got a number',
    ),
    "conjugate gradients untied": (lambda: UNTIED.respond(S, "iterative"), ValueError, "solver: .* tied synapses"),
    # Runs.
    "negative rate": (lambda: online(gain_rate=-0.1), ValueError, "gain_rate: expected a finite number above 0, got -0.1"),
    "rate that is not finite": (lambda: online(synapse_rate=np.nan), ValueError, "synapse_rate: expected .*, got NaN"),
    "rate left out": (lambda: leukos.run_online(OK, S, gain_rate=0.1), TypeError, "missing 1 required .*synapse_rate"),
    "unknown order": (
        lambda: online(order="backwards"),
        ValueError,
        'order: expected "sequential" or "concurrent", got "backwards"',
    ),
    "unknown norm": (lambda: online(unit_norm="none"), ValueError, 'unit_norm: expected .*, got "none"'),
    "unknown sign": (lambda: online(sign="+"), ValueError, r'sign: expected "free" or "nonnegative", got "\+"'),
    "multiplier rate without multipliers": (
        lambda: online(multiplier_rate=0.1),
        ValueError,
        'multiplier_rate: expected None unless unit_norm="multiplier", got a number',
    ),
    "empty batch": (lambda: online(batch=0), ValueError, "batch: expected a whole number of 1 or more, got 0"),
    "record of nothing known": (lambda: online(record=["noise"]), ValueError, 'record: expected .*, got "noise"'),
    "feedforward of a tied circuit": (lambda: online(record=["feedforward"]), ValueError, "record: expected no"),
    "every never": (lambda: online(every=-3), ValueError, "every: expected a whole number of 1 or more, got -3"),
    "a tuple is no circuit": (lambda: online((W, g)), TypeError, "'tuple' object is not an instance of 'Circuit'\nwhile processing 'circuit'"),
    "presentations that do not divide": (
        lambda: online(covariances=[C, C, C]),
        ValueError,
        "covariances: expected presentations of equal length in the 40 stimuli of S, got 3 presentations",
    ),
    "presented without covariances": (
        lambda: online(presented=[0]),
        ValueError,
        "presented: expected None without covariances, got an array",
    ),
    "covariance that is not symmetric": (
        lambda: online(covariances=[C, W]),
        ValueError,
        r"covariances\[1\]: expected a symmetric matrix",
    ),
    "biological and tied": (
        lambda: leukos.run_biological(OK, S, multiplier_rate=0.1, **RATES),
        ValueError,
        "circuit: .* untied",
    ),
    "no such context": (lambda: offline(presented=[0, 1]), ValueError, "presented: expected numbers from 0 to 0, got 1"),
    "contexts in fractions": (lambda: offline(presented=[0.5]), ValueError, "presented: expected a row of whole numbers"),
    "one covariance alone": (
        lambda: offline(covariances=C),
        ValueError,
        r"covariances: expected an array of shape \(contexts, N, N\), got shape \(2, 2\)",
    ),
    "covariance that is indefinite": (
        lambda: offline(covariances=[-C]),
        ValueError,
        r"covariances\[0\]: expected a covariance, which has no negative eigenvalue, but an eigenvalue",
    ),
    "no steps": (lambda: offline(steps=0), ValueError, "steps: expected a whole number of 1 or more, got 0"),
    "unknown gains": (lambda: offline(gains="best"), ValueError, 'gains: expected "rule" or .*, got "best"'),
    # Theory.
    "no neurons": (lambda: leukos.whitening_error(C[:0, :0], C[:0, :0]), ValueError, "M: expected at least one row"),
    "gains of no neurons": (lambda: leukos.optimal_gains(C[:0], C[:0, :0]), ValueError, "W: expected at least one row"),
    "fits to no neurons": (lambda: leukos.least_squares_gains(C[:0], C[:0, :0]), ValueError, "W: expected at least one"),
    "M of another size": (lambda: leukos.objective(np.eye(3), C), ValueError, "C: expected .*3.*3.*, got .*2.*2"),
    "M that is not symmetric": (lambda: leukos.objective(W, C), ValueError, "M: expected a symmetric matrix"),
    "C that is not finite": (
        lambda: leukos.whitening_error(np.eye(2), NAN),
        ValueError,
        r"C: expected finite numbers, got NaN at \(0, 0\)",
    ),
    "gradient off the cone": (lambda: leukos.gradient(-np.eye(2), C), ValueError, "M: expected .*positive definite"),
    "columns of another shape": (lambda: leukos.align(W, W[:, :1]), ValueError, "A: expected .*, got"),
    "gains of an indefinite C": (lambda: leukos.optimal_gains(W, -C), ValueError, "C: expected"),
    "synapses of another height": (lambda: leukos.least_squares_gains(np.eye(3), C), ValueError, "C: expected .*3.*3"),
    # The estimator.
    "NaN": (lambda: fit(np.vstack([S, [np.nan, 0]])), ValueError, "Input X contains NaN"),
    "unknown choice": (lambda: fit(bad_samples="drop"), ValueError, 'bad_samples: expected "mark" or .*, got "drop"'),
    "strength": (lambda: fit(strength=1.5), ValueError, "strength: expected a number from 0 to 1, got 1.5"),
    "time constant of text": (
        lambda: fit(time_constant="2s"),
        ValueError,
        "time_constant: expected a number or \"auto\", got '2s'",
    ),
    "time constant of nothing": (
        lambda: fit(time_constant=None),
        ValueError,
        'time_constant: expected a number or "auto", got None',
    ),
    "no time": (lambda: fit(time_constant=0.0), ValueError, "time_constant: expected a time of 1 .*, got 0"),
    "synapses remember auto": (
        lambda: fit(synapse_time_constant="auto"),
        ValueError,
        "synapse_time_constant: expected a number, got 'auto'",
    ),
    "unknown to follow": (
        lambda: fit(follow="stars"),
        ValueError,
        'follow: expected "contexts" or "nothing", got "stars"',
    ),
    "nothing to follow": (
        lambda: fit(follow=None),
        ValueError,
        'follow: expected "contexts" or "nothing", got None',
    ),
    "no update": (
        lambda: fit(update_every=0),
        ValueError,
        "update_every: expected a whole number of 1 or more, got 0",
    ),
    "rare updates": (lambda: fit(update_every=70_000), ValueError, "update_every: expected 1 to 65536 .*, got 70000"),
    "everything excluded": (
        lambda: fit(exclude_above=1.0),
        ValueError,
        "exclude_above: expected a number from 2 to 1e6, got 1",
    ),
    "no floor": (lambda: fit(floor=0.0), ValueError, "floor: expected a number from 1e-6 to 0.5, got 0"),
    "interneurons in parts": (
        lambda: fit(n_interneurons=1.5),
        ValueError,
        "n_interneurons: expected a whole number of 0 or more, got 1.5",
    ),
    "labels of wrong length": (
        lambda: fit(contexts=["a"] * 39),
        ValueError,
        r"contexts: expected one label for each of 40 samples, got shape \(39,\)",
    ),
    "labels left blank": (
        lambda: fit(contexts=["a"] * 39 + [""]),
        ValueError,
        "contexts: expected a label for each sample, got .* at position 39",
    ),
    "channels in no group": (lambda: fit(groups=[[0]]), ValueError, "groups: expected"),
    "channels in two groups": (lambda: fit(groups=[[0, 1], [1]]), ValueError, r"groups\[1\]: expected"),
    "groups that are none": (lambda: fit(groups=[0, 1]), ValueError, "groups: expected lists of channels"),
    "unknown synapses": (
        lambda: fit(synapses="identity"),
        ValueError,
        'synapses: expected "eigenbasis" or "random", got "identity"',
    ),
    "synapses of another shape": (lambda: fit(synapses=np.eye(3)), ValueError, "synapses: expected .*2.*, got .*3"),
    "constant": (lambda: fit(np.ones((10, 2))), ValueError, "samples: expected .* at least one channel varies"),
    "adapting to a NaN": (
        lambda: fit().adapt_transform(np.array([[0.0, 1.0], [np.nan, 0.0]])),
        ValueError,
        "X: expected usable numbers .*, got NaN in row 1, column 0",
    ),
    "saturated": (lambda: fit(saturation=1.0), ValueError, "X: expected values below the saturation 1.0, got"),
    "squares that overflow": (
        lambda: fit(np.vstack([S, [1e200, 0.0]])),
        ValueError,
        "X: expected values below those whose squares overflow, got 1 rows that are not",
    ),
    # Data.
    "contexts below zero": (
        lambda: datasets.synthetic_contexts(-1),
        ValueError,
        "n_contexts: expected a whole number of 1 or more, got -1",
    ),
    "unknown axes": (lambda: datasets.synthetic_contexts(axes="any"), ValueError, 'axes: expected .*, got "any"'),
    "sparsity": (lambda: datasets.synthetic_contexts(sparsity=2.0), ValueError, "sparsity: expected .*, got 2"),
    "two laws": (
        lambda: datasets.draw([C], degrees_of_freedom=3.0, autocorrelation=0.5),
        ValueError,
        "autocorrelation: expected None with degrees_of_freedom, got a number",
    ),
    "integers": (lambda: datasets.draw([C], dtype=int), ValueError, "dtype: expected float64 or float32, got int64"),
    "seed below zero": (lambda: datasets.field_contexts(random_state=-1), ValueError, "random_state: expected .*, got -1"),
}


@pytest.mark.parametrize("case", CALLS)
def test_wrong_call(case):
    call, kind, message = CALLS[case]
    with pytest.raises(kind, match=message) as caught:
        call()
    assert type(caught.value) is kind


def test_nothing_is_silently_nan():
    huge = np.full((5, 2), 1e308)
    with pytest.raises(ValueError, match="circuit|S"):
        Circuit(np.eye(2) * 1e-200, [1.0, 1.0], 1e-308).respond(huge)
    assert leukos.objective(-np.eye(2), C) == np.inf

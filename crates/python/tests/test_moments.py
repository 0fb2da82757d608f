"""Sums samples up, merges the sums, and compares them with numpy."""

import pickle

import numpy as np
import pytest

import leukos


@pytest.fixture
def X():
    return np.random.default_rng(0).normal(size=(3001, 5)) @ np.diag([1e-3, 1, 5, 2, 9]) + 1e6


def of(*parts):
    moments = leukos.Moments(5)
    for part in parts:
        moments.update(part)
    return moments


def test_they_are_those_of_numpy(X):
    moments = of(X)
    np.testing.assert_allclose(moments.mean, X.mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(moments.covariance(), np.cov(X.T, bias=True), rtol=1e-6, atol=1e-9)
    np.testing.assert_array_equal(moments.comoments, moments.comoments.T)
    assert (moments.count, moments.bad, moments.channels) == (3001, 0, 5)


def test_a_split_changes_only_rounding_and_the_same_split_nothing(X):
    whole, parts = of(X), of(X[:1000])
    rest = of(X[1000:])
    parts.merge(rest)
    # The means are rounded to about 1e-10, next to deviations of about 10.
    np.testing.assert_allclose(parts.covariance(), whole.covariance(), rtol=0, atol=1e-8)
    twin = of(X[:1000])
    twin.merge(pickle.loads(pickle.dumps(rest)))
    assert twin == parts and parts != whole


def test_bad_samples_are_counted_not_spread(X):
    broken = X.copy()
    broken[3, 2], broken[700] = np.nan, -np.inf
    moments = of(broken)
    assert (moments.count, moments.bad) == (2999, 2)
    np.testing.assert_allclose(moments.mean, np.delete(X, [3, 700], axis=0).mean(axis=0), rtol=1e-12)
    assert "2999 samples of 5 channels, 2 bad" in repr(moments)


def test_layouts_and_precisions(X):
    single = X.astype(np.float32)
    assert of(single) == of(single.astype(np.float64)) == of(np.asfortranarray(single))
    assert of(np.round(X).astype(np.int64)) == of(np.round(X))


def test_wrong_calls(X):
    with pytest.raises(ValueError, match=r"X: expected an array of shape \(T, 5\), got shape \(3001, 4\)"):
        of(X[:, :4])
    with pytest.raises(ValueError, match="moments: expected 5 channels, got 4 channels"):
        of(X).merge(leukos.Moments(4))
    with pytest.raises(ValueError, match="channels: expected a whole number of 1 or more, got 0"):
        leukos.Moments(0)
    with pytest.raises(ValueError, match="samples: expected at least one"):
        leukos.Moments(5).covariance()

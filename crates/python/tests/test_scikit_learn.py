"""Passes scikit-learn's own checks, and works in its pipelines, searches and pickles."""

import copy
import pickle

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

from leukos import AdaptiveWhitener, Moments, optimal_gains

VARIANTS = [
    AdaptiveWhitener(),
    AdaptiveWhitener(bad_samples="mark"),
    AdaptiveWhitener(n_interneurons=1, strength=0.5, random_state=0),
    AdaptiveWhitener(synapses="random", time_constant=50.0, update_every=4, follow="nothing", exclude_above=5.0),
]


@parametrize_with_checks(VARIANTS)
def test_estimator_check(estimator, check):
    check(estimator)


@pytest.fixture
def X():
    rng = np.random.default_rng(1)
    return rng.normal(size=(3000, 4)) @ rng.normal(size=(4, 4)) + [5.0, -3.0, 0.0, 100.0]


def white(responses):
    return np.abs(np.cov(np.asarray(responses, dtype=float).T, bias=True) - np.eye(responses.shape[1])).max()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("order", ["C", "F", "strided", "readonly"])
def test_any_layout_gives_the_same(X, dtype, order):
    plain = np.ascontiguousarray(X, dtype=dtype)
    if order == "strided":
        wide = np.zeros((2 * len(X), 9), dtype=dtype)
        wide[::2, ::2][:, :4] = plain
        given = wide[::2, ::2][:, :4]
    else:
        given = np.array(plain, order="F" if order == "F" else "C")
        given.setflags(write=order != "readonly")
    first, second = AdaptiveWhitener().fit(plain), AdaptiveWhitener().fit(given)
    assert first.transform(plain).dtype == dtype
    np.testing.assert_array_equal(first.transform(plain), second.transform(given))
    np.testing.assert_array_equal(first.adapt_transform(plain), second.adapt_transform(given))


def test_the_fit_whitens_what_it_was_fitted_to(X):
    whitener = AdaptiveWhitener().fit(X)
    assert white(whitener.transform(X)) < 1e-6
    np.testing.assert_allclose(whitener.inverse_transform(whitener.transform(X)), X, rtol=1e-9)
    np.testing.assert_allclose((X - whitener.mean_) @ whitener.whitening_matrix_.T, whitener.transform(X), atol=1e-9)
    np.testing.assert_allclose(whitener.whitening_matrix_ @ whitener.dewhitening_matrix_, np.eye(4), atol=1e-9)
    M = np.eye(4) + whitener.synapses_ * whitener.gains_ @ whitener.synapses_.T
    np.testing.assert_allclose(np.linalg.inv(M) / whitener.scale_[0], whitener.whitening_matrix_, atol=1e-9)
    assert whitener.n_samples_seen_ == len(X) and whitener.n_features_in_ == 4 and whitener.prior_ is None
    # Interneurons explain the map, and do not limit it.
    few = AdaptiveWhitener(n_interneurons=1).fit(X)
    assert few.synapses_.shape == (4, 1) and few.gains_.shape == (1,)
    np.testing.assert_array_equal(few.transform(X), whitener.transform(X))


def test_partial_fits_are_one_fit(X):
    whole, parts = AdaptiveWhitener().fit(X), AdaptiveWhitener()
    for part in np.array_split(X, 7):
        parts.partial_fit(part)
        parts = pickle.loads(pickle.dumps(parts))
    np.testing.assert_array_equal(whole.transform(X), parts.transform(X))
    assert parts.n_samples_seen_ == len(X)
    again = parts.fit(X[:100])
    assert again.n_samples_seen_ == 100


def test_sums_from_elsewhere_are_as_good_as_samples(X):
    labels = np.repeat(["a", "b", "a"], 1000)
    here = AdaptiveWhitener().fit(X, contexts=labels)
    sums = {"a": Moments(4), "b": Moments(4)}
    sums["a"].update(np.vstack([X[:1000], X[2000:]]))
    sums["b"].update(X[1000:2000])
    there = AdaptiveWhitener().fit_moments(sums)
    np.testing.assert_array_equal(here.transform(X), there.transform(X))
    assert there.n_samples_seen_ == len(X) and there.n_features_in_ == 4
    there.partial_fit(X[:500], contexts=np.repeat("c", 500))
    assert there.n_samples_seen_ == len(X) + 500
    alone = Moments(4)
    alone.update(X)
    np.testing.assert_array_equal(AdaptiveWhitener().fit_moments(alone).gains_, AdaptiveWhitener().fit(X).gains_)
    for wrong in {}, 3, {"a": X}:
        with pytest.raises(ValueError, match="contexts.*: expected .*Moments, got"):
            AdaptiveWhitener().fit_moments(wrong)
    with pytest.raises(ValueError, match="moments: expected 4 channels, got 3 channels"):
        AdaptiveWhitener().fit_moments({"a": alone, "b": Moments(3)})


def test_how_a_stream_is_cut_changes_no_bit(X):
    whole, parts = AdaptiveWhitener().fit(X), AdaptiveWhitener().fit(X)
    expected = whole.adapt_transform(X)
    for i, part in enumerate(np.array_split(X, 9)):
        got = parts.adapt_transform(part)
        parts = [pickle.loads(pickle.dumps(parts)), copy.deepcopy(parts)][i % 2]
        start = sum(len(p) for p in np.array_split(X, 9)[:i])
        np.testing.assert_array_equal(expected[start : start + len(part)], got)
    assert parts.n_samples_seen_ == 2 * len(X)


def test_an_adapting_run_can_be_undone(X):
    whitener = AdaptiveWhitener(time_constant=100.0).fit(X[:500])
    before = copy.deepcopy(whitener)
    responses = whitener.adapt_transform(X)
    np.testing.assert_allclose(before.adapt_inverse_transform(responses), X, rtol=1e-6)
    np.testing.assert_allclose(before.gains_, whitener.gains_, rtol=1e-6)


def test_transform_learns_nothing_and_adapt_transform_does(X):
    whitener = AdaptiveWhitener(time_constant=100.0).fit(X)
    before, louder = pickle.dumps(whitener), X + 2.0 * (X - X.mean(axis=0))
    whitener.transform(louder)
    assert pickle.dumps(whitener) == before
    scale, gains = whitener.scale_, whitener.gains_
    responses = whitener.adapt_transform(louder)
    # Three times as loud on the same axes: the scale says so, and the gains are relative to it.
    np.testing.assert_allclose(whitener.scale_, 3.0 * scale, rtol=0.1)
    np.testing.assert_allclose(whitener.gains_, gains, atol=0.1)
    assert white(responses[1500:]) < 0.5 < white(whitener.fit(X).transform(louder))


def test_one_that_follows_nothing_stays_as_it_was_fitted(X):
    whitener = AdaptiveWhitener(follow="nothing").fit(X)
    before = whitener.transform(X)
    np.testing.assert_allclose(whitener.adapt_transform(X), before, rtol=1e-9, atol=1e-9)
    whitener.adapt_transform(3.0 * X)
    np.testing.assert_array_equal(whitener.transform(X), before)
    assert whitener.changes_ == 0 and whitener.n_samples_seen_ == 3 * len(X)


def test_contexts_are_learned_and_told():
    rng = np.random.default_rng(3)
    axes = np.linalg.qr(rng.normal(size=(5, 5)))[0]
    scales = rng.uniform(0.3, 3.0, size=(4, 5))
    labels = np.repeat(np.array(["rest", "walk", "run", "rest", "sit"]), 2000)
    index = {label: i for i, label in enumerate(["rest", "walk", "run", "sit"])}
    X = np.vstack([rng.normal(size=(2000, 5)) * scales[index[label]] @ axes.T for label in labels[::2000]])
    whitener = AdaptiveWhitener().fit(X, contexts=labels)
    assert white(whitener.transform(X)) < 1e-6
    # Of all samples, the gains that are best; of the contexts, those of each.
    in_units = np.cov(X.T, bias=True) / whitener.scale_[0] ** 2
    np.testing.assert_allclose(whitener.gains_, optimal_gains(whitener.synapses_, in_units), atol=1e-9)
    mean, covariance = whitener.prior_
    each = [np.cov(X[labels == label].T, bias=True) for label in index]
    squares = np.mean([np.trace(own) for own in each]) / 5
    best = np.array([optimal_gains(whitener.synapses_, own / squares) for own in each])
    np.testing.assert_allclose(mean, best.mean(axis=0), atol=1e-9)
    np.testing.assert_allclose(covariance, np.cov(best.T, bias=True), atol=1e-9)
    # The synapses are the shared axes, in any order and sign.
    match = np.abs(axes.T @ whitener.synapses_)
    assert match.max(axis=0).min() > 0.95
    told, untold = copy.deepcopy(whitener), copy.deepcopy(whitener)
    responses = told.adapt_transform(X, contexts=labels)
    assert white(responses[5000:6000]) < 0.5
    assert not np.array_equal(responses, untold.adapt_transform(X))
    # Labels go on over calls, as the stream does.
    parts = copy.deepcopy(whitener)
    first, second = (parts.adapt_transform(X[p], contexts=labels[p]) for p in (slice(0, 3000), slice(3000, None)))
    np.testing.assert_array_equal(np.vstack([first, second]), responses)


def test_groups_are_whitened_apart(X):
    whitener = AdaptiveWhitener(groups=[[0, 2], [3, 1]]).fit(X)
    responses = whitener.transform(X)
    covariance = np.cov(responses.T, bias=True)
    assert white(responses[:, [0, 2]]) < 1e-6 and white(responses[:, [1, 3]]) < 1e-6
    assert np.abs(covariance - np.eye(4)).max() > 0.01
    assert whitener.whitening_matrix_[0, 1] == 0.0 and whitener.synapses_.shape == (4, 4)
    assert "group of channels [3, 1]" in whitener.status()


@pytest.mark.parametrize("choice", ["mark", "hold", "zero"])
def test_bad_samples_are_left_out_and_have_their_row(X, choice):
    broken = X.copy()
    broken[10, 1], broken[20] = np.nan, np.inf
    whitener = AdaptiveWhitener(bad_samples=choice).fit(broken)
    np.testing.assert_allclose(whitener.mean_, np.delete(X, [10, 20], axis=0).mean(axis=0), rtol=1e-9)
    for responses in whitener.transform(broken), whitener.adapt_transform(broken):
        assert responses.shape == X.shape
        row = {"mark": np.full(4, np.nan), "hold": responses[9], "zero": np.zeros(4)}[choice]
        np.testing.assert_array_equal(responses[10], row)
        assert np.isfinite(responses[[9, 11, 19, 21]]).all()
    assert np.isfinite(whitener.score(broken))


def test_it_works_in_a_pipeline_and_a_search(X):
    y = (X[:, 0] > np.median(X[:, 0])).astype(int)
    pipeline = make_pipeline(AdaptiveWhitener(), LogisticRegression()).fit(X, y)
    assert pipeline.score(X, y) > 0.9
    search = GridSearchCV(AdaptiveWhitener(), {"floor": [0.5, 1e-3], "strength": [0.2, 1.0]}, cv=3).fit(X)
    assert search.best_params_ == {"floor": 1e-3, "strength": 1.0}
    parallel = joblib.Parallel(n_jobs=2)(joblib.delayed(AdaptiveWhitener().fit)(part) for part in (X, X[:900]))
    np.testing.assert_array_equal(parallel[0].gains_, AdaptiveWhitener().fit(X).gains_)


def test_frames_in_and_out(X):
    frame = pd.DataFrame(X, columns=["Fp1", "Fp2", "Cz", "Oz"], index=pd.RangeIndex(7, 7 + len(X)))
    whitener = AdaptiveWhitener().set_output(transform="pandas").fit(frame)
    for out in whitener.transform(frame), whitener.adapt_transform(frame):
        assert isinstance(out, pd.DataFrame)
        assert list(out.columns) == list(frame.columns) and out.index.equals(frame.index)
    with pytest.raises(ValueError, match="feature names"):
        whitener.transform(frame.rename(columns={"Cz": "Pz"}))
    assert isinstance(whitener.set_output(transform="default").adapt_transform(frame), np.ndarray)


def test_clones_are_blank_and_scores_are_errors(X):
    whitener = AdaptiveWhitener(strength=0.25, floor=0.5).fit(X)
    twin = clone(whitener)
    assert twin.get_params() == whitener.get_params() and not hasattr(twin, "gains_")
    covariance = np.cov(whitener.transform(X).T, bias=True)
    error = whitener.whitening_error(X)
    assert error == pytest.approx(np.linalg.norm(covariance - np.eye(4), 2))
    assert whitener.score(X) == -error
    assert "strength=0.25" in repr(whitener) and "AdaptiveWhitener" in whitener._repr_html_()


def test_given_synapses_and_seeds(X):
    W = np.linalg.qr(np.random.default_rng(5).normal(size=(4, 4)))[0]
    np.testing.assert_allclose(AdaptiveWhitener(synapses=W).fit(X).synapses_, W, atol=1e-12)
    one, two, other = (AdaptiveWhitener(synapses="random", random_state=s).fit(X).synapses_ for s in (1, 1, 2))
    np.testing.assert_array_equal(one, two)
    assert not np.array_equal(one, other)
    generator = np.random.RandomState(3)
    assert AdaptiveWhitener(synapses="random", random_state=generator).fit(X).synapses_.shape == (4, 4)

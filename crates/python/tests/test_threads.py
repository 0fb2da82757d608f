"""Lets two threads into one object: whoever would lose samples raises, and whoever only reads goes on."""

import copy
import pickle
import threading
import time

import numpy as np
import pytest

import leukos

X = np.random.default_rng(0).normal(size=(4000, 20)) @ np.random.default_rng(1).normal(size=(20, 20))
STREAM = np.tile(X, (100, 1))
# Many rows in little memory.
LONG = np.lib.stride_tricks.sliding_window_view(np.random.default_rng(2).normal(size=2_000_000), 20)


@pytest.fixture
def whitener():
    return leukos.AdaptiveWhitener().fit(X)


def meanwhile(work, call):
    """What comes of a call while another thread is at work."""
    thread = threading.Thread(target=work)
    thread.start()
    time.sleep(0.05)
    try:
        return call()
    finally:
        assert thread.is_alive(), "the work was over before the call was made"
        thread.join()


@pytest.mark.parametrize(
    "method", ["fit", "partial_fit", "adapt_transform", "adapt_inverse_transform", "begin_context", "fit_moments"]
)
def test_of_two_that_change_an_estimator_the_second_raises(whitener, method):
    moments = leukos.Moments(20)
    moments.update(X)
    arguments = {"begin_context": (), "fit_moments": (moments,)}.get(method, (0.01 * X[:9],))
    with pytest.raises(RuntimeError, match=f"{method}: expected one thread at a time to change this AdaptiveWhitener"):
        meanwhile(lambda: whitener.adapt_transform(STREAM), lambda: getattr(whitener, method)(*arguments))
    # The first has lost nothing, and the next may enter.
    assert whitener.n_samples_seen_ == len(X) + len(STREAM)
    getattr(whitener, method)(*arguments)


def test_those_who_read_need_not_wait(whitener):
    before = whitener.transform(X)

    def read():
        whitener.status()
        whitener.score(X)
        own = copy.deepcopy(whitener)
        copied = pickle.loads(pickle.dumps(own))
        np.testing.assert_allclose(copied.adapt_transform(X[:1]), own.transform(X[:1]), rtol=1e-9)
        whitener.inverse_transform(before)
        return whitener.transform(X)

    np.testing.assert_array_equal(meanwhile(lambda: whitener.adapt_transform(STREAM), read), before)
    np.testing.assert_array_equal(meanwhile(lambda: leukos.Moments(20).update(LONG), read), whitener.transform(X))


def test_many_threads_read_at_once(whitener):
    expected, found = whitener.transform(STREAM), []
    threads = [threading.Thread(target=lambda: found.append(whitener.transform(STREAM))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 4 and all(np.array_equal(one, expected) for one in found)


def test_of_two_that_sum_up_the_second_raises():
    moments, other = leukos.Moments(20), leukos.Moments(20)
    for call in (lambda: moments.update(X), lambda: moments.merge(other)):
        with pytest.raises(RuntimeError, match="Moments: expected one thread at a time"):
            meanwhile(lambda: moments.update(LONG), call)
    assert moments.count == 2 * len(LONG)


def test_an_error_leaves_a_fitted_estimator_as_it_was(whitener):
    before = pickle.dumps(whitener)
    for call in (
        lambda: whitener.fit(X[:, :3] * np.nan),
        lambda: whitener.fit(np.ones((5, 3))),
        lambda: whitener.partial_fit(X[:, :2]),
        lambda: whitener.fit_moments(leukos.Moments(3)),
    ):
        with pytest.raises(ValueError):
            call()
        assert pickle.dumps(whitener) == before

"""Adapts along streams: in place or on a copy, all or nothing, and apart from what was learned."""

import copy
import os
import pickle
import signal
import subprocess
import sys
import threading

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

import leukos.estimator
from leukos import AdaptiveWhitener

LONG = 10_000
"""So many rows are a call that works on a copy."""


def samples(rows, channels=4, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(rows, channels)) @ np.random.default_rng(1).normal(size=(channels, channels)) + 3.0


def state(whitener):
    """All that an estimator is."""
    return pickle.dumps(whitener)


@pytest.fixture
def X():
    return samples(3000)


@pytest.mark.parametrize("choice", ["error", "mark"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_in_place_and_on_a_copy_give_the_same_bits(X, choice, dtype):
    whitener = AdaptiveWhitener(bad_samples=choice).fit(X)
    stream = np.resize(X, (2 * LONG, 4)).astype(dtype)
    labels = np.arange(len(stream)) // 3000
    short, long = copy.deepcopy(whitener), copy.deepcopy(whitener)
    expected = long.adapt_transform(stream, contexts=labels)
    got = [short.adapt_transform(*rows) for rows in zip(np.array_split(stream, 50), strict=True)]
    assert not np.array_equal(np.vstack(got), expected), "labels were told to one of them only"
    short = copy.deepcopy(whitener)
    parts = zip(np.array_split(stream, 50), np.array_split(labels, 50), strict=True)
    got = np.vstack([short.adapt_transform(rows, contexts=own) for rows, own in parts])
    np.testing.assert_array_equal(got, expected)
    assert state(short) == state(long)


@pytest.mark.parametrize(
    ("value", "settings"),
    [(np.nan, {}), (np.inf, {}), (-np.inf, {}), (1e200, {}), (1e120, {}), (50.0, {"saturation": 40.0})],
)
@pytest.mark.parametrize("rows", [40, LONG])
def test_a_refused_row_leaves_all_as_it_was(X, value, settings, rows):
    whitener = AdaptiveWhitener(**settings).fit(X)
    stream = np.resize(X, (rows, 4))
    stream[30, 2] = value
    whitener.adapt_transform(X[:10], contexts=["a"] * 10)
    before = state(whitener)
    with pytest.raises(ValueError, match="X: expected usable numbers .*, got .* in row 30, column 2"):
        whitener.adapt_transform(stream, contexts=np.repeat(["a", "b"], [20, rows - 20]))
    assert state(whitener) == before
    assert whitener.n_samples_seen_ == len(X) + 10


def test_responses_that_cannot_be_wrapped_were_not_given(X, monkeypatch):
    whitener = AdaptiveWhitener().set_output(transform="pandas").fit(X)
    before = state(whitener)

    def fail(*_):
        raise MemoryError("no table")

    with monkeypatch.context() as patch:
        patch.setattr(leukos.estimator, "_wrap_data_with_container", fail)
        with pytest.raises(MemoryError, match="no table"):
            whitener.adapt_transform(X[:40])
    assert state(whitener) == before
    assert isinstance(whitener.adapt_transform(X[:40]), pd.DataFrame)


@pytest.mark.parametrize("made", [copy.copy, copy.deepcopy, lambda each: pickle.loads(pickle.dumps(each))])
def test_copies_adapt_apart(X, made):
    whitener = AdaptiveWhitener().fit(X)
    whitener.adapt_transform(X[:100], contexts=["a"] * 100)
    twin, before = made(whitener), state(whitener)
    assert state(twin) == before
    for rows in np.split(X, 30):
        twin.adapt_transform(rows)
    twin.begin_context()
    assert state(whitener) == before
    assert twin.n_samples_seen_ == whitener.n_samples_seen_ + len(X)
    # A copy knows the context that it is in.
    labels = np.repeat(["a", "b"], 50)
    again = made(whitener)
    expected = whitener.adapt_transform(X[:100], contexts=labels)
    np.testing.assert_array_equal(again.adapt_transform(X[:100], contexts=labels), expected)


def test_ctrl_c_comes_between_short_calls(X):
    whitener = AdaptiveWhitener().fit(X)
    twin = copy.deepcopy(whitener)
    block = 40
    labels = np.repeat(["a", "b"], block // 2)
    timer = threading.Timer(0.5, signal.raise_signal, [signal.SIGINT])
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        while True:
            whitener.adapt_transform(X[:block], contexts=labels)
    timer.join()
    seen = whitener.n_samples_seen_ - len(X)
    assert seen > 0 and seen % block == 0
    for _ in range(seen // block):
        twin.adapt_transform(X[:block], contexts=labels)
    assert state(whitener) == state(twin)


def test_who_looks_changes_no_bit(X):
    watched, alone = AdaptiveWhitener().fit(X), AdaptiveWhitener().fit(X)
    for rows in np.split(3.0 * X, 60):
        responses = watched.adapt_transform(rows)
        watched.status(), watched.memories_, watched.rows_in_force_, watched.gains_, watched.whitening_matrix_
        pickle.dumps(watched), copy.copy(watched), watched.transform(rows)
        np.testing.assert_array_equal(responses, alone.adapt_transform(rows))
    assert state(watched) == state(alone)


def test_those_who_read_see_it_as_it_was():
    X = samples(2000, channels=30)
    whitener, found = AdaptiveWhitener().fit(X), []
    stream = np.tile(X, (50, 1))
    expected = whitener.transform(stream)
    threads = [threading.Thread(target=lambda: found.append(whitener.transform(stream))) for _ in range(3)]
    for thread in threads:
        thread.start()
    # Meanwhile, in short calls.
    while any(thread.is_alive() for thread in threads):
        whitener.adapt_transform(2.0 * X[:50])
    # Each began at some time, and knew nothing of what came later.
    assert len(found) == 3 and all(one.shape == expected.shape for one in found)
    for one in found:
        centred, *_ = np.linalg.lstsq(stream - stream.mean(axis=0), one - one.mean(axis=0), rcond=None)
        np.testing.assert_allclose((stream - stream.mean(axis=0)) @ centred, one - one.mean(axis=0), atol=1e-6)


IN_PLACE = """
import numpy as np, leukos
def peak():
    return next(int(line.split()[1]) * 1024 for line in open("/proc/self/status") if line.startswith("VmHWM"))
def growth(work):
    open("/proc/self/clear_refs", "w").write("5")
    before = peak()
    work()
    return (peak() - before) / (8 * 400**2)
X = np.random.default_rng(0).normal(size=(1000, 400))
whitener = leukos.AdaptiveWhitener().fit(X)
whitener.adapt_transform(X[:3])
for work in (
    lambda: whitener.adapt_transform(X[3:4]),
    lambda: whitener.begin_context(),
    lambda: whitener.status(),
    lambda: whitener.memories_,
    lambda: whitener.adapt_transform(X[:200]),
):
    print(growth(work))
"""


@pytest.mark.skipif(not os.path.exists("/proc/self/clear_refs"), reason="the peak of memory is that of Linux")
def test_a_short_call_makes_no_copy():
    # What is freed goes back at once.
    environment = {**os.environ, "MALLOC_MMAP_THRESHOLD_": "65536", "MALLOC_TRIM_THRESHOLD_": "65536"}
    done = subprocess.run([sys.executable, "-c", IN_PLACE], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    # In matrices of all channels; a whitener is about 45 of them.
    *short, long = map(float, done.stdout.split())
    assert max(short) < 10 < 40 < long


def test_before_a_stream_partial_fit_is_fit(X):
    labels = np.repeat([0, 1], 1500)
    whole = AdaptiveWhitener().fit(X, contexts=labels)
    parts = AdaptiveWhitener().fit(X[:1000], contexts=labels[:1000])
    parts.partial_fit(X[1000:], contexts=labels[1000:])
    np.testing.assert_array_equal(parts.transform(X), whole.transform(X))
    np.testing.assert_array_equal(parts.prior_[0], whole.prior_[0])


def test_a_stream_goes_on_over_partial_fits(X, tmp_path):
    labels = np.repeat([0, 1], 500)
    louder = 5.0 * samples(1000, seed=2)
    whitener = AdaptiveWhitener(random_state=0).fit(X[:1000], contexts=labels)
    whitener.adapt_transform(X[1000:2000])
    alone = copy.deepcopy(whitener)
    whitener.partial_fit(louder, contexts=labels)
    # The map in use is that of the stream, and goes on to the last bit.
    assert whitener.n_samples_seen_ == alone.n_samples_seen_ + len(louder)
    for name in ("mean_", "scale_", "whitening_matrix_", "memories_"):
        np.testing.assert_array_equal(getattr(whitener, name), getattr(alone, name))
    np.testing.assert_array_equal(whitener.transform(X), alone.transform(X))
    np.testing.assert_array_equal(whitener.adapt_transform(X[2000:]), alone.adapt_transform(X[2000:]))
    # What was learned is that of all samples, and so is what is saved, by a copy as well.
    fresh = AdaptiveWhitener(random_state=0)
    fresh.fit(np.vstack([X[:1000], louder]), contexts=np.concatenate([labels, labels]))
    np.testing.assert_allclose(whitener.prior_[0], fresh.prior_[0], rtol=1e-9)
    np.testing.assert_allclose(whitener.synapses_, fresh.synapses_, rtol=1e-9)
    assert not np.allclose(whitener.prior_[0], alone.prior_[0], rtol=1e-3)
    assert not np.allclose(whitener.synapses_, alone.synapses_, rtol=1e-3)
    # The gains are best for what is in force, with the synapses that there are now.
    in_force = whitener.dewhitening_matrix_ @ whitener.dewhitening_matrix_ / whitener.scale_[0] ** 2
    np.testing.assert_allclose(whitener.gains_, leukos.optimal_gains(whitener.synapses_, in_force), atol=1e-9)
    paths = [tmp_path / name for name in ("own", "copied", "alone")]
    for path, each in zip(paths, (whitener, pickle.loads(pickle.dumps(whitener)), alone), strict=True):
        each.save(path)
    own, copied, before = (path.read_bytes() for path in paths)
    assert own == copied != before
    loaded = AdaptiveWhitener.load(paths[0])
    np.testing.assert_allclose(loaded.transform(X), fresh.transform(X), rtol=1e-9)
    assert loaded.n_samples_seen_ == 0
    before = state(whitener)
    with pytest.raises(ValueError, match=r"groups: expected those of the stream \(or fit, .*\), got others"):
        whitener.set_params(groups=[[0, 1], [2, 3]]).partial_fit(X)
    assert state(whitener.set_params(groups=None)) == before
    # A fit begins anew.
    whitener.fit(X[:1000], contexts=labels)
    assert state(whitener) == state(clone(whitener).fit(X[:1000], contexts=labels))


def test_a_saved_model_begins_anew_and_a_pickle_goes_on(X, tmp_path):
    whitener = AdaptiveWhitener().fit(X)
    fitted = copy.deepcopy(whitener)
    whitener.adapt_transform(4.0 * X)
    whitener.save(tmp_path / "model")
    fitted.save(tmp_path / "fitted")
    assert (tmp_path / "model").read_bytes() == (tmp_path / "fitted").read_bytes()
    np.testing.assert_array_equal(AdaptiveWhitener.load(tmp_path / "model").transform(X), fitted.transform(X))
    going = pickle.loads(pickle.dumps(whitener))
    np.testing.assert_array_equal(going.adapt_transform(X), whitener.adapt_transform(X))


def test_precisions_may_change_in_the_middle(X):
    whitener, narrow = AdaptiveWhitener().fit(X), X.astype(np.float32)
    first = copy.deepcopy(whitener)
    np.testing.assert_allclose(whitener.transform(narrow), whitener.transform(X), atol=1e-4)
    assert whitener.transform(narrow).dtype == np.float32
    np.testing.assert_array_equal(whitener.transform(narrow), np.float32(whitener.transform(narrow.astype(np.float64))))
    doubles = np.vstack([first.adapt_transform(part) for part in np.split(X, 4)])
    mixed = [whitener.adapt_transform(part) for part in (X[:750], narrow[750:1500], X[1500:2250], narrow[2250:])]
    assert [part.dtype for part in mixed] == [np.float64, np.float32] * 2
    np.testing.assert_allclose(np.vstack(mixed), doubles, atol=1e-3)
    np.testing.assert_allclose(whitener.transform(X), first.transform(X), atol=1e-3)
    bad = narrow.copy()
    bad[7, 1] = np.nan
    held = AdaptiveWhitener(bad_samples="hold").fit(X).transform(np.vstack([bad] * 100)[:, :])
    np.testing.assert_array_equal(held[7], held[6])


def test_what_is_in_force_is_told():
    rng = np.random.default_rng(3)
    turns = [np.linalg.qr(rng.normal(size=(8, 8)))[0] * np.geomspace(3.0, 0.02, 8) for _ in range(2)]
    before, after = (rng.normal(size=(4000, 8)) @ turn.T for turn in turns)
    whitener = AdaptiveWhitener().fit(before)
    # Memories of all lengths count, until samples show which predict them.
    assert whitener.changes_ == 0 and 32 < whitener.rows_in_force_ < 4000
    memories = whitener.memories_
    assert memories.dtype.names == ("group", "length", "plain", "trend", "gain")
    assert np.all(np.diff(memories["length"]) > 0) and memories["length"][-1] == np.inf
    assert np.all(memories["group"] == 0)
    whitener.adapt_transform(before)
    assert whitener.rows_in_force_ > 2000
    whitener.adapt_transform(after[:1000])
    assert whitener.changes_ == 1 and whitener.rows_in_force_ <= 1000
    total = sum(whitener.memories_[name].sum() for name in ("plain", "trend", "gain"))
    assert total == pytest.approx(1.0)
    whitener.begin_context()
    assert whitener.rows_in_force_ == pytest.approx(8, rel=1e-3), "one for each channel"
    apart = AdaptiveWhitener(groups=[[0, 1, 2], [3, 4, 5, 6, 7]]).fit(before)
    assert set(apart.memories_["group"]) == {0, 1} and len(apart.memories_) == 2 * len(memories)
    with pytest.raises(AttributeError):
        clone(whitener).memories_


def test_wild_rows_are_left_out_and_refuse_nothing(X):
    wild = X.copy()
    wild[100] = 1e6
    whitener = AdaptiveWhitener().fit(wild)
    np.testing.assert_allclose(whitener.mean_, np.delete(X, 100, axis=0).mean(axis=0), rtol=1e-9)
    assert np.isfinite(whitener.adapt_transform(wild)).all()
    assert "0 bad, 1 wild" in whitener.status()
    moments = leukos.Moments(4)
    moments.update(wild)
    assert (moments.count, moments.bad) == (len(X) - 1, 1)
    summed = AdaptiveWhitener().fit_moments(moments).partial_fit(X)
    assert summed.n_samples_seen_ == 2 * len(X)

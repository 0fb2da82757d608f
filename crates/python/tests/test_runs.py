"""Runs circuits: records, errors on the way, precisions, layouts, solvers, pickles and interruptions."""

import copy
import pickle
import signal
import threading
import time
import tracemalloc

import numpy as np
import pytest

import leukos
from leukos import datasets

RATES = {"gain_rate": 0.05, "synapse_rate": 1e-3}


@pytest.fixture
def contexts():
    return datasets.synthetic_contexts(6, axes="angles", blank="redrawn", random_state=4).covariances


@pytest.fixture
def circuit():
    return leukos.Circuit(np.array([[0.8, -0.6], [0.6, 0.8]]), [0.0, 0.0])


def same(one, two):
    np.testing.assert_array_equal(one.responses, two.responses)
    assert one.circuit == two.circuit


def test_errors_are_those_of_the_circuits_on_the_way(circuit, contexts):
    presented = [3, 0, 5]
    S = datasets.draw(contexts, presented, 40)
    run = leukos.run_online(
        circuit, S, covariances=contexts, presented=presented, record=["gains", "synapses"], every=8, **RATES
    )
    assert run.errors.shape == (15,) and run.trace["gains"].shape == (15, 2)
    for i, (gains, synapses) in enumerate(zip(run.trace["gains"], run.trace["synapses"], strict=True)):
        M = leukos.Circuit(synapses, gains).inverse_whitening_matrix()
        expected = leukos.whitening_error(M, contexts[presented[i * 8 // 40]])
        assert run.errors[i] == pytest.approx(expected, rel=1e-9)
    plain = leukos.run_online(circuit, S, **RATES)
    same(plain, run)
    assert plain.errors is None and plain.trace == {}
    # One covariance for each presentation, without numbers.
    again = leukos.run_online(circuit, S, covariances=contexts[presented], every=8, **RATES)
    np.testing.assert_array_equal(again.errors, run.errors)


def test_a_run_learns_the_axes_and_leaves_its_circuit_alone(circuit):
    drawn = datasets.synthetic_contexts(64, axes="angles", blank="redrawn", random_state=4)
    presented = np.random.default_rng(0).integers(0, 64, size=200)
    S = datasets.draw(drawn.covariances, presented, 1000)
    run = leukos.run_online(circuit, S, gain_rate=0.05, synapse_rate=1e-3, unit_norm="projected")
    before, after = (leukos.align(c.synapses, drawn.axes)[1] for c in (circuit, run.circuit))
    assert after < 0.2 < before
    assert circuit == leukos.Circuit(np.array([[0.8, -0.6], [0.6, 0.8]]), [0.0, 0.0])
    assert "200000 steps, 2 neurons" in repr(run)


def test_none_freezes_a_part(circuit, contexts):
    S = datasets.draw(contexts, samples=50)
    run = leukos.run_online(circuit, S, gain_rate=0.01, synapse_rate=None)
    np.testing.assert_array_equal(run.circuit.synapses, circuit.synapses)
    run = leukos.run_online(circuit, S, gain_rate=None, synapse_rate=1e-3)
    np.testing.assert_array_equal(run.circuit.gains, circuit.gains)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_circuit_has_one_dtype_and_stimuli_follow(dtype, contexts):
    circuit = leukos.Circuit(np.eye(2, dtype=dtype), [0.5, 1.0])
    S = np.ascontiguousarray(datasets.draw(contexts, samples=500), dtype=dtype)
    run = leukos.run_online(circuit, S, record=["gains"], **RATES)
    for array in run.responses, run.circuit.gains, run.circuit.synapses, run.trace["gains"]:
        assert array.dtype == dtype
    wide = np.zeros((len(S), 5), dtype=dtype)
    wide[:, 1:5:3] = S
    readonly = S.copy()
    readonly.setflags(write=False)
    unaligned = np.frombuffer(b"x" + S.tobytes(), dtype=dtype, offset=1).reshape(S.shape)
    big_endian = S.astype(S.dtype.newbyteorder(">"))
    for other in np.asfortranarray(S), wide[:, 1:5:3], readonly, unaligned, big_endian, S[::-1][::-1]:
        same(run, leukos.run_online(circuit, other, **RATES))
    if dtype == np.float32:
        same(run, leukos.run_online(circuit, S.astype(np.float64), **RATES))
    integers = np.round(S).astype(np.int16)
    same(leukos.run_online(circuit, integers.astype(dtype), **RATES), leukos.run_online(circuit, integers, **RATES))


def test_solvers_agree(contexts):
    rng = np.random.default_rng(2)
    circuit = leukos.Circuit(rng.normal(size=(6, 4)), rng.uniform(0.1, 1.0, size=4))
    S = rng.normal(size=(50, 6))
    direct = circuit.respond(S)
    np.testing.assert_allclose(direct, S @ circuit.whitening_matrix().T, atol=1e-12)
    np.testing.assert_allclose(circuit.respond(S, "iterative"), direct, atol=1e-8)
    np.testing.assert_allclose(circuit.respond(S, "dynamics", tolerance=1e-12), direct, atol=1e-9)
    assert circuit.respond(S[0]).shape == (6,) and circuit.respond(S[:0]).shape == (0, 6)
    np.testing.assert_array_equal(circuit.respond(S[0]), direct[0])


@pytest.mark.parametrize("iterations", [1, 3, 40])
def test_a_loop_is_cut_short(iterations):
    rng = np.random.default_rng(3)
    circuit = leukos.Circuit(rng.normal(size=(6, 4)), rng.uniform(0.1, 1.0, size=4))
    S, rate = rng.normal(size=(50, 6)), 0.05
    r = np.zeros_like(S)
    for _ in range(iterations):
        r += rate * (S - r @ circuit.inverse_whitening_matrix().T)
    given = {"solver": "loop", "response_rate": rate, "max_iterations": iterations}
    np.testing.assert_allclose(circuit.respond(S, **given), r, atol=1e-12)
    run = leukos.run_online(circuit, S, gain_rate=None, synapse_rate=None, **given)
    np.testing.assert_allclose(run.responses, r, atol=1e-12)


def test_no_interneurons_only_leak():
    circuit = leukos.Circuit(np.zeros((3, 0)), [], leak=2.0)
    np.testing.assert_allclose(circuit.respond(np.ones((2, 3))), 0.5, rtol=1e-15)
    assert circuit.synapses.shape == (3, 0) and circuit.gains.shape == (0,)


def test_getters_are_copies(circuit):
    circuit.gains[0] = 7.0
    circuit.synapses[:] = 0.0
    np.testing.assert_array_equal(circuit.gains, [0.0, 0.0])
    assert circuit.feedforward is None and circuit.synapses[0, 0] == 0.8


@pytest.mark.parametrize("untied", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_pickles_and_copies_are_equal(dtype, untied):
    W = np.array([[1.0, 0.3], [0.2, 0.9]], dtype=dtype)
    circuit = leukos.Circuit(W, [0.1, 0.7], 0.3, feedforward=W.T if untied else None, multipliers=[0.5, -0.5])
    for twin in pickle.loads(pickle.dumps(circuit)), copy.deepcopy(circuit):
        assert twin == circuit and twin.synapses.dtype == dtype and twin.leak == circuit.leak
    assert ("untied" in repr(circuit)) == untied
    assert circuit != leukos.Circuit(W, [0.1, 0.8], 0.3)


def test_offline_gains_can_be_set(contexts):
    circuit = leukos.Circuit(np.array([[0.9, -0.3], [0.2, 0.9]]), [0.0, 0.0])
    runs = {
        gains: leukos.run_offline(
            circuit, contexts, np.arange(6).repeat(20), steps=5, gain_rate=0.1, synapse_rate=0.02, gains=gains
        )
        for gains in ("rule", "least_squares", "optimal")
    }
    assert runs["rule"].errors.shape == (120, 5)
    assert runs["optimal"].errors[-1, -1] < runs["rule"].errors[0, 0]
    assert "120 presentations" in repr(runs["rule"])
    unmeasured = leukos.run_offline(
        circuit, contexts, np.arange(6).repeat(20), steps=5, gain_rate=0.1, synapse_rate=0.02, errors=False
    )
    assert unmeasured.errors is None and unmeasured.circuit == runs["rule"].circuit


def test_a_divergence_says_where_and_hands_out_the_last_good_circuit(contexts):
    circuit = leukos.Circuit(np.eye(2), [0.0, 0.0])
    S = datasets.draw(contexts, samples=200)
    with pytest.raises(leukos.DivergedError, match="diverged at step") as caught:
        leukos.run_online(circuit, S, gain_rate=2.0, synapse_rate=None)
    error = caught.value
    assert isinstance(error.step, int) and 0 <= error.step < len(S)
    np.linalg.cholesky(error.circuit.inverse_whitening_matrix())
    # It is the circuit of the run so far.
    until = leukos.run_online(circuit, S[: error.step], gain_rate=2.0, synapse_rate=None)
    assert until.circuit == error.circuit
    again = pickle.loads(pickle.dumps(error))
    assert again.step == error.step and again.circuit == error.circuit
    single = leukos.Circuit(np.eye(2, dtype=np.float32), [0.0, 0.0])
    with pytest.raises(leukos.DivergedError) as caught:
        leukos.run_online(single, S, gain_rate=2.0, synapse_rate=None)
    assert caught.value.circuit.gains.dtype == np.float32


@pytest.mark.parametrize("layout", ["as it is", "Fortran", "integers"])
def test_nothing_is_copied_but_block_by_block(layout):
    S = np.random.default_rng(0).integers(-3, 4, size=(400_000, 8)).astype(np.float64)
    S = {"as it is": S, "Fortran": np.asfortranarray(S), "integers": S.astype(np.int32)}[layout]
    circuit = leukos.Circuit(np.eye(8), np.zeros(8))
    whitener = leukos.AdaptiveWhitener().fit(S[:1000].astype(np.float64))
    for work in (
        lambda: circuit.respond(S),
        lambda: leukos.run_online(circuit, S, gain_rate=1e-4, synapse_rate=None),
        lambda: whitener._whitener.adapt(S),
        lambda: whitener._whitener.transform(S),
        lambda: leukos.Moments(8).update(S),
    ):
        tracemalloc.start()
        outcome = work()
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        responses = 0 if outcome is None else S.size * 8
        blocks = 0 if layout == "as it is" else 2 * 8 * 2**20
        assert most < responses + blocks + 2**20


def interrupted(work):
    """How long after Ctrl-C the work ends, in seconds."""
    pressed = []

    def press():
        time.sleep(0.3)
        pressed.append(time.perf_counter())
        signal.raise_signal(signal.SIGINT)

    thread = threading.Thread(target=press)
    thread.start()
    try:
        work()
    except KeyboardInterrupt:
        thread.join()
        return time.perf_counter() - pressed[0]
    finally:
        # Work that ended by itself must not take pytest along.
        usual = signal.signal(signal.SIGINT, signal.SIG_IGN)
        thread.join()
        signal.signal(signal.SIGINT, usual)
    pytest.fail("the work ended before it was interrupted")


@pytest.mark.parametrize(
    "work", ["online", "offline", "respond", "adapt", "fit", "refit", "moments", "draw", "fields", "one field", "synthetic"]
)
def test_ctrl_c_is_heard(work):
    """The bar is 100 ms on a quiet machine; a tenfold is left for a loaded one."""
    rng = np.random.default_rng(0)
    wide = rng.normal(size=(4000, 60))
    # More rows than any machine whitens in the time, in little memory; only what is reached of the output has any either.
    stream = np.lib.stride_tricks.sliding_window_view(rng.normal(size=5_000_000), 60)
    circuit = leukos.Circuit(np.linalg.qr(rng.normal(size=(60, 60)))[0], np.zeros(60))
    whitener = leukos.AdaptiveWhitener().fit(wide)
    before = whitener.gains_
    many = np.vstack([wide * rng.uniform(0.3, 3, 60) for _ in range(30)])
    rates = {"gain_rate": 1e-9, "synapse_rate": 1e-9}
    works = {
        "online": lambda: leukos.run_online(circuit, stream, **rates),
        "offline": lambda: leukos.run_offline(circuit, [np.cov(wide.T)], [0] * 100, steps=10_000, **rates),
        "respond": lambda: circuit.respond(stream),
        "adapt": lambda: whitener.adapt_transform(stream),
        "fit": lambda: leukos.AdaptiveWhitener().fit(many, contexts=np.arange(30).repeat(4000)),
        "refit": lambda: whitener.set_params(n_interneurons=400).fit(many, contexts=np.arange(30).repeat(4000)),
        "moments": lambda: leukos.Moments(60).update(stream),
        # Memory that is not reached is not there.
        "draw": lambda: datasets.draw([np.cov(wide.T)], samples=10_000_000),
        "fields": lambda: datasets.field_contexts(100_000),
        "one field": lambda: datasets.field_contexts(1, (50, 50), condition=1e9),
        "synthetic": lambda: datasets.synthetic_contexts(2, 40, 40, axes="angles", angles=(89.0, 90.0)),
    }
    assert interrupted(works[work]) < 1.0
    np.testing.assert_array_equal(whitener.gains_, before)
    assert whitener.n_samples_seen_ == 4000 and whitener.n_features_in_ == 60


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, lambda run: pickle.loads(pickle.dumps(run))])
def test_runs_are_pickled_and_copied(circuit, contexts, again):
    stimuli = datasets.draw(contexts, samples=10)
    online = leukos.run_online(circuit, stimuli, covariances=contexts, record=["gains"], every=3, **RATES)
    copied = again(online)
    same(copied, online)
    np.testing.assert_array_equal(copied.errors, online.errors)
    np.testing.assert_array_equal(copied.trace["gains"], online.trace["gains"])
    assert copied.circuit == online.circuit and repr(copied) == repr(online)
    for errors in (True, False):
        offline = leukos.run_offline(circuit, contexts, [0, 3], steps=4, errors=errors, **RATES)
        copied = again(offline)
        np.testing.assert_array_equal(copied.errors, offline.errors)
        assert copied.circuit == offline.circuit and repr(copied) == repr(offline)
    moments = leukos.Moments(2)
    moments.update(stimuli)
    assert again(moments) == moments and again(circuit) == circuit


def test_other_threads_run_meanwhile():
    ticks = []
    done = threading.Event()

    def tick():
        while not done.is_set():
            ticks.append(time.perf_counter())
            time.sleep(0.001)

    thread = threading.Thread(target=tick)
    thread.start()
    circuit = leukos.Circuit(np.eye(40), np.zeros(40))
    start = time.perf_counter()
    leukos.run_online(circuit, np.random.default_rng(0).normal(size=(20_000, 40)), gain_rate=1e-3, synapse_rate=1e-5)
    end = time.perf_counter()
    done.set()
    thread.join()
    assert sum(start < tick < end for tick in ticks) > 10

"""Gives the same bits as the same calls in Rust, and the same bytes as the command line."""

import os
import subprocess
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import leukos
from leukos import AdaptiveWhitener, datasets


def program(variable):
    """A program that `./check` has built; its path is in this variable."""
    path = os.environ.get(variable)
    if path is None:
        pytest.skip(f"{variable} does not name the program")

    def run(*arguments):
        command = [path, *map(str, arguments)]
        return subprocess.run(command, check=True, capture_output=True, text=True, timeout=120).stdout

    return run


@pytest.fixture
def trajectories():
    return dict(line.split(": ") for line in program("LEUKOS_TRAJECTORIES")().splitlines())


def bits(*arrays):
    values = np.concatenate([np.asarray(array, dtype=np.float64).ravel(order="F") for array in arrays])
    return " ".join(f"{bits:016x}" for bits in values.view(np.uint64))


def test_python_is_rust_to_the_last_bit(trajectories):
    covariances = datasets.synthetic_contexts(random_state=7).covariances
    W = np.array([[0.8, -0.6], [0.6, 0.8]])
    for name, dtype in ("double", np.float64), ("single", np.float32):
        S = datasets.draw(covariances, np.arange(10), 500, dtype=dtype, random_state=3)
        circuit = leukos.Circuit(W.astype(dtype), np.zeros(2))
        run = leukos.run_online(circuit, S, gain_rate=0.05, synapse_rate=1e-3)
        assert bits(run.responses[-1], run.circuit.gains, run.circuit.synapses) == trajectories[f"online {name}"]
    run = leukos.run_offline(
        leukos.Circuit(W, np.zeros(2)), covariances, np.arange(64), steps=20, gain_rate=0.1, synapse_rate=0.01
    )
    assert bits(run.circuit.gains, run.circuit.synapses) == trajectories["offline"]
    doubles = datasets.draw(covariances, np.arange(10), 500, random_state=3)
    whitener = AdaptiveWhitener(bad_samples="mark").fit(doubles)
    responses = whitener.adapt_transform(doubles)
    assert bits(responses[-1], whitener.gains_) == trajectories["whitener double"]
    whitener = AdaptiveWhitener(bad_samples="mark").fit(doubles)
    responses = whitener.adapt_transform(doubles.astype(np.float32))
    assert responses.dtype == np.float32
    assert bits(responses[-1], whitener.gains_) == trajectories["whitener single"]


@pytest.fixture
def recording(tmp_path):
    """Eight channels in three contexts, as an array, labels and a CSV file."""
    rng = np.random.default_rng(0)
    axes = np.linalg.qr(rng.normal(size=(8, 8)))[0]
    labels = np.repeat(["rest", "walk", "rest", "run"], 700)
    scales = {name: rng.uniform(0.2, 4.0, size=8) for name in ("rest", "walk", "run")}
    X = np.stack([axes @ (scales[label] * rng.normal(size=8)) for label in labels]) * 40 + 500
    frame = pd.DataFrame(X, columns=[f"E{i}" for i in range(8)])
    frame.assign(state=labels).to_csv(tmp_path / "day.csv", index=False)
    np.save(tmp_path / "day.npy", X)
    return frame, labels


@pytest.mark.parametrize(
    ("parameters", "flags"),
    [
        ({}, []),
        ({"n_interneurons": 4, "time_constant": 250.0}, ["--n-interneurons", "4", "--time-constant", "250"]),
        ({"synapses": "random", "random_state": 9}, ["--synapses", "random", "--random-state", "9"]),
        ({"n_interneurons": 11, "random_state": 3}, ["--n-interneurons", "11", "--random-state", "3"]),
        ({"groups": [[0, 1, 2, 6], [3, 4, 5, 7]]}, ["--groups", "0-2+6,3-5+7"]),
        (
            {"strength": 0.5, "saturation": 700.0, "synapse_time_constant": 1e5, "update_every": 4},
            ["--strength", "0.5", "--saturation", "700", "--synapse-time-constant", "100000", "--update-every", "4"],
        ),
        (
            {"time_constant": "auto", "floor": 0.01, "follow": "nothing", "exclude_above": 8.0},
            "--time-constant auto --floor 0.01 --follow nothing --exclude-above 8".split(),
        ),
    ],
)
def test_a_model_fitted_here_has_the_bytes_of_the_command_line(tmp_path, recording, parameters, flags):
    leukos_program = program("LEUKOS_PROGRAM")
    frame, labels = recording
    bad = "mark" if "saturation" in parameters else "error"
    for name, contexts, division in ("pooled", None, []), ("labelled", labels, ["--label", "state"]):
        source = tmp_path / "day.csv" if contexts is not None else tmp_path / "plain.csv"
        frame.to_csv(tmp_path / "plain.csv", index=False)
        theirs, ours = tmp_path / f"{name}-theirs.safetensors", tmp_path / f"{name}-ours.safetensors"
        leukos_program("fit", source, "--out", theirs, "--quiet", "--bad-samples", bad, *division, *flags)
        AdaptiveWhitener(bad_samples=bad, **parameters).fit(frame, contexts=contexts).save(ours)
        assert ours.read_bytes() == theirs.read_bytes()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_whitening_here_is_whitening_there(tmp_path, recording, dtype):
    leukos_program = program("LEUKOS_PROGRAM")
    frame, labels = recording
    X = frame.to_numpy().astype(dtype)
    np.save(tmp_path / "day.npy", X)
    model = tmp_path / "model.safetensors"
    AdaptiveWhitener().fit(X, contexts=labels).save(model)
    for flags, method in ([], "adapt_transform"), (["--frozen"], "transform"):
        out = tmp_path / "white.npy"
        leukos_program("whiten", model, tmp_path / "day.npy", "--out", out, "--quiet", *flags)
        theirs, ours = np.load(out), getattr(AdaptiveWhitener.load(model), method)(X)
        assert theirs.dtype == ours.dtype == dtype
        np.testing.assert_array_equal(theirs, ours)


@pytest.mark.parametrize("time_constant", ["auto", 321.0])
def test_a_model_goes_back_and_forth(tmp_path, recording, time_constant):
    frame, labels = recording
    settings = {"time_constant": time_constant, "strength": 0.75, "bad_samples": "hold", "follow": "contexts"}
    settings |= {"saturation": 1e6, "floor": 0.01, "update_every": 3, "exclude_above": 20.0}
    fitted = AdaptiveWhitener(n_interneurons=6, **settings).fit(frame, contexts=labels)
    fitted.save(tmp_path / "model.safetensors")
    loaded = AdaptiveWhitener.load(tmp_path / "model.safetensors")
    for name in (*settings, "n_interneurons", "synapse_time_constant", "groups"):
        assert getattr(loaded, name) == getattr(fitted, name), name
    assert list(loaded.feature_names_in_) == list(frame.columns) and loaded.n_features_in_ == 8
    # It begins where the fit ended, and is the same file again, also in the middle of a stream.
    pd.testing.assert_frame_equal(
        loaded.set_output(transform="pandas").adapt_transform(frame),
        fitted.set_output(transform="pandas").adapt_transform(frame),
    )
    loaded.save(tmp_path / "again.safetensors")
    fitted.save(tmp_path / "other.safetensors")
    model = (tmp_path / "model.safetensors").read_bytes()
    assert (tmp_path / "again.safetensors").read_bytes() == (tmp_path / "other.safetensors").read_bytes() == model
    with pytest.raises(ValueError, match="partial_fit: expected an estimator that was fitted here"):
        loaded.partial_fit(frame)
    assert loaded.fit(frame).n_samples_seen_ == len(frame)


def test_a_checkpoint_of_the_command_line_goes_on_here(tmp_path, recording):
    leukos_program = program("LEUKOS_PROGRAM")
    frame, labels = recording
    X = frame.to_numpy()
    model, state, out = (tmp_path / name for name in ("model.safetensors", "state.safetensors", "white.npy"))
    fitted = AdaptiveWhitener(bad_samples="mark").fit(X, contexts=labels)
    fitted.save(model)
    leukos_program("whiten", model, tmp_path / "day.npy", "--out", out, "--checkpoint", state, "--quiet")
    np.testing.assert_array_equal(np.load(out), fitted.adapt_transform(X))
    loaded = AdaptiveWhitener.load(state)
    assert loaded.n_samples_seen_ == len(X)
    np.testing.assert_array_equal(loaded.adapt_transform(X), fitted.adapt_transform(X))


def test_files_that_are_no_models(tmp_path):
    path = tmp_path / "model.safetensors"
    for content in b"", b"hello", Path(__file__).read_bytes():
        path.write_bytes(content)
        with pytest.raises(ValueError, match="model file"):
            AdaptiveWhitener.load(path)
    with pytest.raises(FileNotFoundError):
        AdaptiveWhitener.load(tmp_path / "none.safetensors")


def test_saving_is_all_or_nothing(tmp_path):
    X = np.random.default_rng(0).normal(size=(50, 2))
    whitener = AdaptiveWhitener().fit(X)
    with pytest.raises(FileNotFoundError):
        whitener.save(tmp_path / "nowhere" / "model.safetensors")
    with pytest.raises(OSError):
        whitener.save(tmp_path)
    whitener.save(tmp_path / "model.safetensors")
    whitener.save(tmp_path / "model.safetensors")
    assert [path.name for path in tmp_path.iterdir()] == ["model.safetensors"]

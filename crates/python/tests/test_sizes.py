"""Asks for more than there is: an exception says so, and the process goes on."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import leukos
from leukos import AdaptiveWhitener, datasets

OK = leukos.Circuit(np.eye(2), np.zeros(2))
RATES = {"gain_rate": 0.01, "synapse_rate": 1e-3}

CALLS = {
    "channels of sums": (lambda: leukos.Moments(10**6), ValueError, "channels: expected at most 16384, got 1000000"),
    "neurons": (
        lambda: datasets.synthetic_contexts(n_neurons=200_000),
        ValueError,
        "neurons: expected at most 16384, got 200000",
    ),
    "axes": (
        lambda: datasets.synthetic_contexts(n_neurons=10_000, n_interneurons=10**6),
        ValueError,
        "synapses: expected a matrix of at most 268435456 numbers, got 10000 x 1000000",
    ),
    "contexts": (lambda: datasets.synthetic_contexts(2**62), MemoryError, "neurons: expected .* MB of memory that are free"),
    "fields": (lambda: datasets.field_contexts(2**62), MemoryError, "neurons: expected .* MB of memory that are free"),
    "stimuli": (lambda: datasets.draw([np.eye(2)], samples=2**62), MemoryError, "samples: expected an array that fits into memory"),
    "channels": (
        lambda: AdaptiveWhitener().fit(np.ones((3, 40_000))),
        ValueError,
        "channels: expected at most 16384, got 40000",
    ),
    "interneurons": (
        lambda: AdaptiveWhitener(100_000).fit(np.random.default_rng(0).normal(size=(9, 3))),
        ValueError,
        "interneurons: expected at most 16384, got 100000",
    ),
    "interneurons beyond a number": (
        lambda: AdaptiveWhitener(2**62).fit(np.random.default_rng(0).normal(size=(9, 3))),
        ValueError,
        "interneurons: expected at most 16384, got 4611686018427387904",
    ),
    "neurons of a circuit": (
        lambda: leukos.Circuit(np.zeros((20_000, 1)), [0.0]),
        ValueError,
        "neurons: expected at most 16384, got 20000",
    ),
    "a batch": (
        lambda: leukos.run_online(OK, np.ones((3, 2)), batch=2**62, **RATES),
        MemoryError,
        "batch: expected .* MB of memory that are free, got less",
    ),
    "errors of steps": (
        lambda: leukos.run_offline(OK, [np.eye(2)], [0, 0], steps=2**61, **RATES),
        MemoryError,
        "steps: expected .* MB of memory that are free, got less",
    ),
    "records": (
        lambda: leukos.run_online(OK, np.broadcast_to(0.5, (2**40, 2)), **RATES),
        MemoryError,
        "Unable to allocate",
    ),
    "gains": (
        lambda: leukos.least_squares_gains(np.ones((1, 50_000)), [[1.0]]),
        ValueError,
        "interneurons: expected at most 16384, got 50000",
    ),
    "columns": (
        lambda: leukos.align(np.ones((1, 50_000)), np.ones((1, 50_000))),
        ValueError,
        "A: expected a matrix of at most 268435456 numbers, got 50000 x 50000",
    ),
}


@pytest.mark.parametrize("case", CALLS)
def test_too_large(case):
    call, kind, message = CALLS[case]
    with pytest.raises(kind, match=message):
        call()


def test_a_name_as_long_as_a_recording(tmp_path):
    names = ["x" * 65_536, "b"]
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(np.random.default_rng(0).normal(size=(30, 2)), columns=names)
    AdaptiveWhitener().fit(frame).save(tmp_path / "model")
    loaded = AdaptiveWhitener.load(tmp_path / "model")
    assert list(loaded.feature_names_in_) == names and loaded.status()


LIMITED = """
import resource, numpy as np, leukos
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + 2**30, used + 2**30))
many = np.broadcast_to(np.float32(0.5), (80, 10**6))
try:
    leukos.align(many, many)
except MemoryError as error:
    print(error)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="limits of memory are those of Linux")
def test_what_numpy_has_converted_counts():
    limited = subprocess.run([sys.executable, "-c", LIMITED], capture_output=True, text=True)
    assert limited.returncode == 0, limited.stderr
    assert "A: expected 640 MB of memory that are free, got less" in limited.stdout


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="limits of memory are those of Linux")
def test_no_size_ends_the_process():
    script = Path(__file__).parent / "fuzz_sizes.py"
    fuzzed = subprocess.run([sys.executable, script, "20", "1"], capture_output=True, text=True, env=os.environ)
    assert fuzzed.returncode == 0, fuzzed.stdout + fuzzed.stderr

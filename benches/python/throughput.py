"""Time `leukos whiten` against `cat` and against numpy multiplying the same blocks by a fixed matrix.

    venv/bin/pip install -r requirements-peers.txt
    venv/bin/python throughput.py --leukos target/release/leukos      # Markdown on stdout

All of them read one raw file and write another; `cat` also writes to nowhere, which is reading alone.
They take turns, round after round, and the least time of each counts, so a passing load on the
machine spoils a round and not a ratio.
Wall time: that of a program includes its start, that of numpy begins after its imports.
numpy does what a careful user would: blocks that fit the cache, float32, results rounded and clipped
where the file holds whole numbers.
"""

import argparse
import functools
import os
import pathlib
import shutil
import subprocess
import tempfile
import time
from dataclasses import dataclass
from typing import Callable

os.environ.update({f"{name}_NUM_THREADS": "1" for name in ("OMP", "MKL", "OPENBLAS")})

import numpy as np

BLOCK_NUMBERS = 1 << 15  # in a block, as in Leukos
TRAINING_ROWS = 20_000
WHOLE_NUMBER_SCALE = 200.0  # what a response of one is in int16, as in Leukos


@dataclass
class Recording:
    """A raw file, how to read it, and what is asked of a model for it."""

    name: str
    channels: int
    rows: int
    dtype: str
    fit_options: tuple[str, ...]

    @property
    def reading(self) -> tuple[str, ...]:
        return ("--channels", str(self.channels), "--dtype", self.dtype)


RECORDINGS = (
    Recording("probe64", 64, 262_144, "float32", ()),
    Recording("probe384", 384, 60_000, "int16", ()),
)


def write_recording(recording: Recording, folder: pathlib.Path) -> pathlib.Path:
    """Gaussian samples with a standard deviation of about a hundred and variances from 1 to 100 along their axes."""
    rng = np.random.default_rng(0)
    axes = np.linalg.qr(rng.standard_normal((recording.channels, recording.channels)))[0]
    root = (30 * axes * np.geomspace(1, 10, recording.channels)).T.astype(np.float32)
    path = folder / f"{recording.name}.raw"
    with path.open("wb") as file:
        for start in range(0, recording.rows, TRAINING_ROWS):
            rows = min(TRAINING_ROWS, recording.rows - start)
            samples = rng.standard_normal((rows, recording.channels), dtype=np.float32) @ root
            file.write(samples.astype(recording.dtype).tobytes())
    return path


def fit(program: str, recording: Recording, path: pathlib.Path) -> pathlib.Path:
    """A model of the first rows."""
    head, model = path.with_suffix(".head.raw"), path.with_suffix(".safetensors")
    samples = np.fromfile(path, recording.dtype, TRAINING_ROWS * recording.channels)
    head.write_bytes(samples.tobytes())
    call(program, "fit", head, *recording.reading, *recording.fit_options, "--out", model, "--quiet")
    return model


def call(*words) -> None:
    subprocess.run([str(word) for word in words], check=True)


def copy(path: pathlib.Path, target: pathlib.Path) -> None:
    with target.open("wb") as file:
        subprocess.run(["cat", str(path)], stdout=file, check=True)


def multiply(recording: Recording, matrix: np.ndarray, path: pathlib.Path, target: pathlib.Path) -> None:
    """The product of each block with a fixed matrix, in the numbers of the file."""
    dtype = np.dtype(recording.dtype)
    buffer = np.empty((BLOCK_NUMBERS // recording.channels, recording.channels), dtype)
    with path.open("rb", buffering=0) as source, target.open("wb", buffering=0) as sink:
        while size := source.readinto(buffer):
            rows = size // (recording.channels * dtype.itemsize)
            product = buffer[:rows].astype(np.float32, copy=False) @ matrix
            sink.write(fitted(product, dtype).data)


def fitted(product: np.ndarray, dtype: np.dtype) -> np.ndarray:
    if dtype.kind == "f":
        return product
    limits = np.iinfo(dtype)
    np.rint(np.multiply(product, WHOLE_NUMBER_SCALE, out=product), out=product)
    return np.clip(product, limits.min, limits.max, out=product).astype(dtype)


def contestants(program: str, recording: Recording, folder: pathlib.Path) -> dict[str, Callable[[], None]]:
    path = write_recording(recording, folder)
    model = fit(program, recording, path)
    target = folder / "out.raw"
    matrix = np.linalg.qr(np.random.default_rng(1).standard_normal((recording.channels,) * 2))[0]
    whiten = (program, "whiten", model, path, *recording.reading, "--out", target, "--quiet")
    return {
        "cat to nowhere": functools.partial(copy, path, pathlib.Path(os.devnull)),
        "cat to a file": functools.partial(copy, path, target),
        "numpy, fixed matrix": functools.partial(multiply, recording, matrix.astype(np.float32), path, target),
        "leukos whiten --frozen": functools.partial(call, *whiten, "--frozen"),
        "leukos whiten": functools.partial(call, *whiten),
    }


def least_seconds(runs: dict[str, Callable[[], None]], target: pathlib.Path, rounds: int) -> dict[str, float]:
    least = dict.fromkeys(runs, float("inf"))
    for _ in range(rounds):
        for name, run in runs.items():
            target.unlink(missing_ok=True)
            begin = time.perf_counter()
            run()
            least[name] = min(least[name], time.perf_counter() - begin)
    return least


def table(recording: Recording, seconds: dict[str, float]) -> str:
    """Seconds, samples a second, and how many times as long as `cat` to a file and as numpy."""
    size = recording.channels * recording.rows * np.dtype(recording.dtype).itemsize / 1e6
    options = " ".join(recording.fit_options) or "default settings"
    lines = [
        f"{recording.channels} channels, {recording.rows} rows, {recording.dtype}, {size:.0f} MB; model: {options}",
        "",
        "| | s | thousand samples a second | times `cat` to a file | times numpy |",
        "|---|---:|---:|---:|---:|",
    ]
    for name, time_taken in seconds.items():
        ratios = [time_taken / seconds[other] for other in ("cat to a file", "numpy, fixed matrix")]
        rate = recording.rows / time_taken / 1e3
        lines.append(f"| {name} | {time_taken:.3f} | {rate:.0f} | {ratios[0]:.1f} | {ratios[1]:.2f} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--leukos", default="leukos", help="the program [default: leukos, on the PATH]")
    parser.add_argument("--rounds", type=int, default=7, help="turns of each [default: 7]")
    parser.add_argument("--folder", type=pathlib.Path, help="where the files go [default: a temporary folder]")
    options = parser.parse_args()
    if not shutil.which(options.leukos):
        parser.error(f"--leukos: no program `{options.leukos}` here or on the PATH")
    for recording in RECORDINGS:
        with tempfile.TemporaryDirectory(dir=options.folder) as name:
            folder = pathlib.Path(name)
            runs = contestants(options.leukos, recording, folder)
            print(table(recording, least_seconds(runs, folder / "out.raw", options.rounds)), end="\n\n")


if __name__ == "__main__":
    main()

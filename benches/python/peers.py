"""Compare Leukos with what others would whiten a recording with, on data that has something the matter.

    python -m venv venv && venv/bin/pip install -r requirements-peers.txt
    venv/bin/python peers.py --leukos target/release/leukos --out peers.json     # Markdown on stdout
    venv/bin/python peers.py --method Forgetting --method Growing --first-seed 100  # numpy and scipy are enough

Each method is fitted to the training half of a recording and then given the test half in blocks.
After each block the method is stopped and asked what it would make of the samples to come: it is
affine then, r = F(s - m), so the second moment of its responses is F (C + (mu - m)(mu - m)') F' with
the mean mu and the covariance C that the samples are drawn from.
The whitening error is the largest distance of an eigenvalue of it from one, or, for the directions
that a covariance of lower rank leaves empty, from zero.
So nothing is blurred by the test samples, and a method that adapts is not judged by an average over
times in which its errors cancel.

Of the memories of Forgetting the table has the one that is best for the case in hindsight, which nobody
knows beforehand; the JSON has them all.
"""

import argparse
import importlib
import itertools
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable

os.environ.update({f"{name}_NUM_THREADS": "1" for name in ("OMP", "MKL", "OPENBLAS")})

import numpy as np

from awkward_recordings import BLOCK, RECORDINGS, ROWS, Recording, Truth, scale_of
from memories import Forgetting, Growing, Memory, whitening_matrix

SAMPLE_RATE = 2000.0  # SpikeInterface looks at 20 stretches of half a second: 20 000 rows
EPOCH = 500  # rows of each covariance matrix that pyRiemann is given
MEMORY = 1000.0  # samples, the time constant of Leukos unless told otherwise
UPDATE_RATE = 1 - np.exp(-EPOCH / MEMORY)  # the same memory for pyRiemann
FORGETTING = "Forgetting"
MEMORIES = [50 * 2**doubling for doubling in range(8)]  # rows, of Forgetting
TOLD = "Leukos, told"  # the one method that makes use of contexts
KEPT = 1 - 1e-6  # share of the variance, where there may be empty directions


class Method:
    """Something that is fitted, and then answers rows; most do not adapt."""

    def fit(self, recording: Recording) -> None:
        raise NotImplementedError

    def answer(self, rows: np.ndarray) -> np.ndarray:
        """Responses, learning nothing."""
        raise NotImplementedError

    def advance(self, rows: np.ndarray) -> np.ndarray:
        """Responses, learning what the method learns from them."""
        return self.answer(rows)

    def respond_to(self, mean: np.ndarray, directions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The response to the mean, and what each direction (a column) adds to it."""
        answers = self.answer(mean + np.vstack([np.zeros_like(mean), directions.T]))
        return answers[0], (answers[1:] - answers[0]).T


class ScikitLearn(Method):
    def __init__(self, **options):
        self.pca = importlib.import_module("sklearn.decomposition").PCA(whiten=True, **options)

    def fit(self, recording):
        self.pca.fit(recording.train)

    def answer(self, rows):
        return self.pca.transform(rows)


class SpikeInterface(Method):
    def __init__(self, **options):
        self.options = options
        self.recording = importlib.import_module("spikeinterface.core").NumpyRecording
        self.whiten = importlib.import_module("spikeinterface.preprocessing").whiten

    def fit(self, recording):
        fitted = self.whiten(self.traces(recording.train), seed=recording.seed, **self.options)
        self.matrices = {name: fitted.to_dict()["kwargs"][name] for name in ("W", "M")}

    def answer(self, rows):
        return self.whiten(self.traces(rows), **self.matrices, **self.options).get_traces()

    def traces(self, rows):
        return self.recording([rows], sampling_frequency=SAMPLE_RATE)


class PyRiemann(Method):
    """Whitens covariance matrices of epochs, which are centred: no mean is left over."""

    def __init__(self, estimator="scm", dim_red=None, update_rate=0.0, **options):
        self.covariances = importlib.import_module("pyriemann.estimation").Covariances(estimator, **options)
        self.whitening = importlib.import_module("pyriemann.preprocessing").Whitening(dim_red=dim_red)
        self.update_rate = update_rate

    def fit(self, recording):
        self.whitening.fit(self.matrices(recording.train))

    def matrices(self, rows):
        return self.covariances.fit_transform(rows.reshape(-1, EPOCH, rows.shape[1]).transpose(0, 2, 1))

    def answer(self, rows):
        epochs = rows.reshape(-1, EPOCH, rows.shape[1])
        return (epochs - epochs.mean(1, keepdims=True)).reshape(rows.shape) @ self.whitening.filters_

    def advance(self, rows):
        answers = self.answer(rows)
        if self.update_rate:
            for matrix in self.matrices(rows):
                self.whitening.partial_fit(matrix[None], alpha=self.update_rate)
        return answers

    def respond_to(self, mean, directions):
        filters = self.whitening.filters_.T
        return np.zeros(filters.shape[0]), filters @ directions


class ByHand(Method):
    """The symmetric inverse root of a covariance in numpy, which is brought up to date after each block."""

    def __init__(self, memory: Memory):
        self.memory = memory

    def fit(self, recording):
        self.memory.fit(recording.train)
        self.matrix = whitening_matrix(self.memory.covariance)

    def answer(self, rows):
        return (rows - self.memory.mean) @ self.matrix

    def advance(self, rows):
        answers = self.answer(rows)
        self.memory.learn(rows)
        self.matrix = whitening_matrix(self.memory.covariance)
        return answers


class Leukos(Method):
    """The command line: a model is fitted, and each block goes on from the checkpoint of the one before."""

    def __init__(self, program: str, folder: pathlib.Path, mode: str):
        self.program, self.folder, self.mode = program, folder, mode
        self.names = (folder / f"{number}.safetensors" for number in itertools.count())

    def fit(self, recording):
        contexts = recording.contexts if self.mode == "told" else [recording.train]
        files = [self.saved(f"context{i}.npy", rows) for i, rows in enumerate(contexts)]
        self.model = next(self.names)
        self.run("fit", *files, "--out", self.model)

    def answer(self, rows):
        return self.whiten(rows, "--frozen")

    def advance(self, rows):
        if self.mode == "frozen":
            return self.answer(rows)
        adapted = next(self.names)
        answers = self.whiten(rows, "--checkpoint", adapted)
        self.model = adapted
        return answers

    def whiten(self, rows, *options):
        target = self.folder / "answers.npy"
        self.run("whiten", self.model, self.saved("rows.npy", rows), "--out", target, *options)
        return np.load(target)

    def saved(self, name, rows):
        np.save(self.folder / name, rows)
        return self.folder / name

    def run(self, *words):
        done = subprocess.run([self.program, *map(str, words), "--quiet"], capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(done.stderr.strip())


def makers(program: str, folder: pathlib.Path) -> dict[str, Callable[[], Method]]:
    """How each method is made; what it needs is imported then and not before."""
    return {
        "PCA": lambda: ScikitLearn(),
        "PCA, reduced": lambda: ScikitLearn(n_components=KEPT, svd_solver="full"),
        "whiten": lambda: SpikeInterface(),
        "whiten, mean": lambda: SpikeInterface(apply_mean=True),
        "Whitening": lambda: PyRiemann(),
        "Whitening, reduced": lambda: PyRiemann(dim_red={"expl_var": KEPT}),
        "Whitening, robust": lambda: PyRiemann("stu", assume_centered=True),
        "Whitening, adapting": lambda: PyRiemann(update_rate=UPDATE_RATE),
        **{f"{FORGETTING} {memory}": lambda memory=memory: ByHand(Forgetting(memory)) for memory in MEMORIES},
        "Growing": lambda: ByHand(Growing()),
        "Leukos, frozen": lambda: Leukos(program, folder, "frozen"),
        "Leukos": lambda: Leukos(program, folder, "alone"),
        TOLD: lambda: Leukos(program, folder, "told"),
    }


def column(name: str) -> str:
    """Where the table has a method: the memories of Forgetting share a column."""
    return FORGETTING if name.startswith(FORGETTING) else name


COLUMNS = list(dict.fromkeys(column(name) for name in makers("", pathlib.Path())))


def methods(program: str, folder: pathlib.Path, columns: list[str]) -> dict[str, Method]:
    return {name: make() for name, make in makers(program, folder).items() if column(name) in columns}


def whitening_error(method: Method, truth: Truth) -> float:
    """How far the second moment of the responses to come is from white."""
    at_mean, along_root = method.respond_to(truth.mean, truth.root)
    responses = np.column_stack([along_root, at_mean])
    if not np.isfinite(responses).all():
        return float("nan")
    moments = np.zeros(responses.shape[1])  # one for each direction with a signal, and what is left over
    found = np.linalg.svd(responses, compute_uv=False) ** 2
    moments[: found.size] = found
    return float(np.max(np.abs(moments - white(truth.root.shape[1]))))


def white(rank: int) -> np.ndarray:
    return np.append(np.ones(rank), 0)


def amplification(method: Method, recording: Recording) -> float:
    """What a standard deviation of the input becomes where there never was a signal."""
    truth = recording.truths[-1]
    _, along = method.respond_to(truth.mean, recording.empty * scale_of(truth.root))
    return float(np.linalg.norm(along, 2)) if np.isfinite(along).all() else float("inf")


def measure(method: Method, recording: Recording) -> dict:
    """Errors by label, averaged over the blocks; and whether every usable row got a finite response."""
    try:
        method.fit(recording)
        errors, lost = {}, 0
        for block, truth in zip(recording.test.reshape(-1, BLOCK, recording.test.shape[1]), recording.truths):
            lost += unanswered(block, method.advance(block))
            errors.setdefault(truth.label, []).append(whitening_error(method, truth))
        found = {"errors": {label: float(np.mean(values)) for label, values in errors.items()}, "lost": lost}
        if recording.empty is not None:
            found["amplification"] = amplification(method, recording)
        return found
    except Exception as error:  # whatever a peer raises is a result
        return {"failed": f"{type(error).__name__}: {' '.join(str(error).split())}"[:160]}


def unanswered(rows: np.ndarray, answers: np.ndarray) -> int:
    usable = np.isfinite(rows).all(1)
    return int(np.sum(usable & ~np.isfinite(answers).all(1)))


def run(program: str, seeds: range, cases: list[str], columns: list[str]) -> dict:
    """Results by case and method, one for each seed; methods of a case get the same recordings."""
    results: dict = {}
    for case, make in RECORDINGS.items():
        if case not in cases:
            continue
        for seed in seeds:
            recording = make(np.random.default_rng([seed, list(RECORDINGS).index(case)]))
            recording.seed = seed
            with tempfile.TemporaryDirectory() as folder:
                for name, method in methods(program, pathlib.Path(folder), columns).items():
                    row = results.setdefault(case, {}).setdefault(name, [])
                    if recording.contexts or name != TOLD:
                        row.append(measure(method, recording))
        print(case, file=sys.stderr, flush=True)
    return results


def number(value: float) -> str:
    if value < 1e-9 or np.isinf(value):
        return "0" if value < 1 else "∞"
    if 1e-3 <= value < 100:
        return f"{value:.2g}".removeprefix("0")
    mantissa, exponent = f"{value:.0e}".split("e")
    return f"{mantissa}e{int(exponent)}"


def spread(values: list[float]) -> str:
    """Median, least and largest of those that are numbers, and how many are not."""
    finite = [value for value in values if np.isfinite(value)]
    lost = f"NaN in {len(values) - len(finite)} of {len(values)}"
    if not finite:
        return lost
    words = f"{number(float(np.median(finite)))} ({number(min(finite))}–{number(max(finite))})"
    return words if len(finite) == len(values) else f"{lost}, else {words}"


def cell(found: list[dict]) -> str:
    if not found:
        return "–"
    if failed := [one["failed"] for one in found if "failed" in one]:
        return f"fails ({len(failed)} of {len(found)})"
    labels = found[0]["errors"]
    words = [f"{label} {spread([one['errors'][label] for one in found])}".strip() for label in labels]
    if "amplification" in found[0]:
        largest = max(one["amplification"] for one in found)
        words.append(f"empty × {number(largest)}")
    if lost := sum(one["lost"] for one in found):
        words.append(f"{lost} of {len(found) * ROWS} rows lost")
    return "; ".join(words)


def best_memory(row: dict) -> int | None:
    """The memory of Forgetting with the lowest error over the recordings of a case."""
    errors = {memory: mean_error(row[f"{FORGETTING} {memory}"]) for memory in MEMORIES}
    memory = min(errors, key=errors.__getitem__)
    return memory if np.isfinite(errors[memory]) else None


def mean_error(found: list[dict]) -> float:
    """Over all blocks, of which each label has equally many; infinite where a recording has no error."""
    errors = [error for one in found for error in one.get("errors", {"": np.inf}).values()]
    return float(np.mean(np.nan_to_num(errors, nan=np.inf)))


def words(row: dict, column: str) -> str:
    if column != FORGETTING:
        return cell(row[column])
    memory = best_memory(row)
    return "fails" if memory is None else f"{cell(row[f'{FORGETTING} {memory}'])}; memory {memory}"


def table(results: dict) -> str:
    columns = list(dict.fromkeys(map(column, next(iter(results.values())))))
    lines = ["| | " + " | ".join(columns) + " |", "|---" * (len(columns) + 1) + "|"]
    for case, row in results.items():
        lines.append("| " + " | ".join([case, *(words(row, one) for one in columns)]) + " |")
    return "\n".join([*lines, "", *failures(results)])


def failures(results: dict) -> list[str]:
    said = {
        f"- {case}, {name}: `{one['failed']}`"
        for case, row in results.items()
        for name, found in row.items()
        for one in found
        if "failed" in one
    }
    return sorted(said)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--leukos", default="leukos", help="the program [default: leukos, on the PATH]")
    parser.add_argument("--seeds", type=int, default=5, help="recordings of each case [default: 5]")
    parser.add_argument("--first-seed", type=int, default=0, help="of those recordings [default: 0]")
    parser.add_argument("--case", action="append", choices=list(RECORDINGS), help="some alone")
    parser.add_argument("--method", action="append", choices=COLUMNS, help="some alone")
    parser.add_argument("--out", type=pathlib.Path, help="every number as JSON")
    options = parser.parse_args()
    columns = options.method or COLUMNS
    if any("Leukos" in name for name in columns) and not shutil.which(options.leukos):
        parser.error(f"--leukos: no program `{options.leukos}` here or on the PATH")
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    seeds = range(options.first_seed, options.first_seed + options.seeds)
    results = run(options.leukos, seeds, options.case or list(RECORDINGS), columns)
    if options.out:
        options.out.write_text(json.dumps(results, indent=1) + "\n")
    print(table(results))


if __name__ == "__main__":
    main()

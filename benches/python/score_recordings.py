"""Score how well memories of several lengths and Leukos foresee the rows of recordings.

    venv/bin/python score_recordings.py one.npy folder_of_npy --out scores.json    # Markdown on stdout
    venv/bin/python score_recordings.py --watch watch_dataset.npy                  # of seglearn

Nobody knows the true covariance of a recording, but it is known what came next.
Each method is fitted to the first quarter. Of the rest it is asked, before each block of rows, for its
mean and covariance, and a row's loss is minus the logarithm of its density under the Gaussian with these,
in nats; then the method gets the block to learn from.
Rows are foreseen BLOCK at a time, as what neighbouring rows have in common is signal and not context.
Arrays are rows x channels. Rows with a NaN or an infinity are neither scored nor learned from.
A recording without usable rows to fit or to score is skipped.
"""

import argparse
import json
import os
import pathlib
import sys
from collections.abc import Iterator
from itertools import chain

os.environ.update({f"{name}_NUM_THREADS": "1" for name in ("OMP", "MKL", "OPENBLAS")})

import numpy as np

from memories import FLOOR, Forgetting, Growing, Memory, usable

FIT_SHARE = 4  # the first of so many equal parts is for fitting
BLOCK = 32  # rows
LEUKOS = "Leukos"


class Unusable(ValueError):
    """A recording has no usable rows to fit or to score."""


class Batch(Memory):
    """Learns nothing after the fit."""

    def learn(self, rows):
        pass


class Leukos:
    """The Python package, asked for its moments before each block.

    A channel that is dead or stuck for long is left out, and its row of the dewhitening matrix is zero:
    the package foresees nothing for it. Here it is taken as independent of the others, with the variance
    that it had in the fit, which flatters Leukos where the channel moves again, and not where it stays dead.
    """

    def __init__(self, **options):
        from leukos import AdaptiveWhitener

        self.whitener = AdaptiveWhitener(bad_samples="mark", **options)

    def fit(self, rows):
        self.whitener.fit(rows)
        self.variances = np.nanvar(np.where(np.isfinite(rows), rows, np.nan), 0)

    def learn(self, rows):
        self.whitener.adapt_transform(rows)

    @property
    def mean(self):
        return self.whitener.mean_

    @property
    def covariance(self):
        root = self.whitener.dewhitening_matrix_
        covariance = root @ root.T
        left_out = ~root.any(1)
        covariance[left_out, left_out] = self.variances[left_out]
        return covariance


def ladder(channels: int, rows: int) -> list[int]:
    """Memories that double, from the shortest that fills a covariance to the length of the recording."""
    memories = [2 * channels]
    while 2 * memories[-1] <= rows:
        memories.append(2 * memories[-1])
    return memories


def methods(rows: np.ndarray, leukos: dict | None) -> dict:
    """By name; `leukos` has the options of the whitener, or is None where it is left out."""
    found = {f"forgetting {memory}": Forgetting(memory) for memory in ladder(rows.shape[1], len(rows))}
    found |= {"growing": Growing(), "batch": Batch()}
    if leukos is not None:
        found[LEUKOS] = Leukos(**leukos)
    return found


def score(rows: np.ndarray, chosen: dict, block: int, lag: int) -> dict[str, float]:
    """The mean loss of each method; with a lag, of the rows that come so many rows after those that are next."""
    first = len(rows) // FIT_SHARE
    to_fit, to_score = usable(rows[:first]), usable(rows[first + lag :])
    if not len(to_fit) or not len(to_score):
        raise Unusable(f"expected usable rows to fit and to score, got {len(to_fit)} and {len(to_score)}")
    typical = to_fit.var(0).mean()
    floor = FLOOR**2 * typical * np.eye(rows.shape[1])  # the same for all, so that none is lost in empty directions
    for method in chosen.values():
        method.fit(rows[:first])
    losses = np.zeros(len(chosen))
    for start in range(first, len(rows) - lag, block):
        ahead = usable(rows[start + lag : start + lag + block])
        if len(ahead):
            means = np.array([method.mean for method in chosen.values()])
            covariances = np.array([method.covariance for method in chosen.values()]) + floor
            losses += total_losses(ahead, means, covariances)
        for method in chosen.values():
            method.learn(rows[start : start + block])
    return dict(zip(chosen, (losses / len(to_score)).tolist()))


def total_losses(rows: np.ndarray, means: np.ndarray, covariances: np.ndarray) -> np.ndarray:
    """Of all rows under each Gaussian; infinite where a covariance is none."""
    apart = rows - means[:, None]
    squares = np.einsum("krc,krc->k", apart, np.linalg.solve(covariances, apart.mT).mT)
    signs, logarithms = np.linalg.slogdet(covariances)
    constant = rows.shape[1] * np.log(2 * np.pi)
    losses = (squares + len(rows) * (logarithms + constant)) / 2
    return np.where((signs > 0) & np.isfinite(losses), losses, np.inf)


def recordings(paths: list[pathlib.Path]) -> Iterator[tuple[str, np.ndarray]]:
    """Those of the files, and of the .npy files of the folders, by name."""
    for path in paths:
        for file in sorted(path.glob("*.npy")) if path.is_dir() else [path]:
            rows = np.load(file)
            if rows.ndim != 2 or rows.dtype.kind not in "fiu":
                raise ValueError(f"{file}: expected numbers, rows x channels, got {rows.dtype} of shape {rows.shape}")
            yield str(file.with_suffix("")), np.asarray(rows, float)


def watch_recordings(file: pathlib.Path) -> Iterator[tuple[str, np.ndarray]]:
    """seglearn's recordings of exercises with a watch: each subject's series, one after another, of six channels."""
    data = np.load(file, allow_pickle=True).item()  # a pickle runs what it likes: only from a source that is trusted
    subjects = np.asarray(data["subject"])
    for subject in np.unique(subjects):
        series = [np.asarray(data["X"][which], float) for which in np.flatnonzero(subjects == subject)]
        yield f"subject {subject}", np.concatenate(series)


def best_memory(losses: dict[str, float]) -> str:
    """In hindsight; a batch fit is no memory."""
    return min((name for name in losses if name.startswith(("forgetting", "growing"))), key=losses.__getitem__)


def table(results: dict[str, dict]) -> str:
    heads = ["recording", "rows × channels", "best memory", "its loss", "growing", "batch", LEUKOS, "excess of Leukos"]
    lines = [" | ".join(heads), " | ".join(["---"] * len(heads))]
    excesses = []
    for name, found in results.items():
        losses = found["losses"]
        best = best_memory(losses)
        cells = [name, f"{found['rows']} × {found['channels']}", best]
        cells += [f"{losses[one]:.4f}" for one in (best, "growing", "batch")]
        if LEUKOS in losses:
            excesses.append(losses[LEUKOS] - losses[best])
            cells += [f"{losses[LEUKOS]:.4f}", f"{excesses[-1]:+.4f}"]
        else:
            cells += ["–", "–"]
        lines.append(" | ".join(cells))
    if excesses:
        mean, largest = np.mean(excesses), np.max(excesses)
        lines.append(" | ".join(["mean", *[""] * (len(heads) - 2), f"{mean:+.4f}, at most {largest:+.4f}"]))
    return "\n".join(f"| {line} |" for line in lines)


def ladder_table(results: dict[str, dict]) -> str:
    """What each memory loses to the best one."""
    lines = ["| recording | loss of each memory, less that of the best |", "|---|---|"]
    for name, found in results.items():
        losses = found["losses"]
        best = losses[best_memory(losses)]
        steps = [f"{one.removeprefix('forgetting ')} {losses[one] - best:+.3f}" for one in losses if one != LEUKOS]
        lines.append(f"| {name} | {', '.join(steps)} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("recordings", nargs="*", type=pathlib.Path, help=".npy files, or folders of them")
    parser.add_argument("--watch", type=pathlib.Path, metavar="FILE", help="watch_dataset.npy of seglearn")
    parser.add_argument("--every", type=int, default=BLOCK, help=f"rows of a block [default: {BLOCK}]")
    parser.add_argument("--lag", type=int, default=0, metavar="ROWS", help="score rows so many rows ahead [default: 0]")
    parser.add_argument("--time-constant", type=float, help="of Leukos [default: its own]")
    parser.add_argument("--without-leukos", action="store_true", help="score the memories alone")
    parser.add_argument("--out", type=pathlib.Path, help="every number as JSON")
    options = parser.parse_args()
    if not options.recordings and not options.watch:
        parser.error("expected recordings or --watch, got neither")
    if options.lag < 0 or options.every < 1:
        parser.error("expected --every of 1 or more and --lag of 0 or more")
    leukos = None if options.without_leukos else {}
    if leukos is not None and options.time_constant is not None:
        leukos["time_constant"] = options.time_constant
    given = chain(recordings(options.recordings), watch_recordings(options.watch) if options.watch else [])
    results = {}
    for name, rows in given:
        try:
            losses = score(rows, methods(rows, leukos), options.every, options.lag)
        except Unusable as error:
            print(f"{name} is skipped: {error}", file=sys.stderr, flush=True)
            continue
        results[name] = {"rows": len(rows), "channels": rows.shape[1], "block": options.every, "losses": losses}
        print(name, file=sys.stderr, flush=True)
    if options.out:
        options.out.write_text(json.dumps({"lag": options.lag, "recordings": results}, indent=1) + "\n")
    print(table(results), ladder_table(results), sep="\n\n")


if __name__ == "__main__":
    main()

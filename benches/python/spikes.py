"""Measure what Leukos makes of a steady extracellular recording: changes that are none, its error, and spikes.

    venv/bin/python spikes.py --out spikes.json      # Markdown on stdout; needs the package `leukos`
    venv/bin/python spikes.py --check 3000000        # the recording against its formulas; needs numpy alone

Nothing changes in the recording, but its slow noise looks to a short memory as if something did.
Its mean and covariance are known: the noise is filtered white noise, and spikes come independently of
all else, so what they add follows from their shapes and rates.
As in peers.py, a whitener is stopped after every so many rows and judged by what it would make of the
samples to come. It is compared with a fit to as many other rows that does not adapt.
The SNR of a unit is the peak of its whitened spike over the standard deviation of the whitened noise, on
the channel where that is largest. What a moving mean does to noise slower than it is not in there.
"""

import argparse
import json
import os
import pathlib
import re
import sys

os.environ.update({f"{name}_NUM_THREADS": "1" for name in ("OMP", "MKL", "OPENBLAS")})

import numpy as np

CHANNELS, SPACING = 64, 20.0  # micrometres between neighbours
SAMPLE_RATE = 30_000.0
EXPONENTS = (1.0, 1.5)  # of the power spectra of two noises of variance one each
SLOWEST = 1.0  # Hz; below it an amplifier passes nothing
REACH = 100.0  # micrometres, over which the noise is shared
OWN_NOISE = 0.3  # standard deviation of the white noise of each channel
UNITS, UNIT_REACH = 20, 40.0
AMPLITUDES, RATES = (4.0, 12.0), (2.0, 20.0)  # least and largest; the rates in Hz
TAPS = 2**16  # of the filter; also the rows that are made at once
SPIKE = 45  # rows
SHORT = 100_000  # rows, in which a short memory may notice few changes
LONG, LONG_MEMORY = 1_000_000, 30_000.0  # rows, in which a memory of a second may notice none


def spike_shape() -> np.ndarray:
    """A trough and a slower hump after it."""
    rows = np.arange(SPIKE)
    return -np.exp(-(((rows - 15) / 4) ** 2)) + 0.4 * np.exp(-(((rows - 25) / 7) ** 2))


def noise_filter() -> np.ndarray:
    """Makes white noise into the sum of both noises: one filter does, because channels share both in the same way."""
    frequencies = np.fft.rfftfreq(TAPS, 1 / SAMPLE_RATE)
    passed = frequencies >= SLOWEST
    power = np.zeros_like(frequencies)
    for exponent in EXPONENTS:
        one = frequencies[passed] ** -exponent
        power[passed] += one / one.sum()
    taps = np.fft.fftshift(np.fft.irfft(np.sqrt(power)))
    return taps * np.sqrt(len(EXPONENTS) / np.sum(taps**2))


class Probe:
    """Where the units are and how they fire, and so what is true of every recording with them."""

    def __init__(self, rng: np.random.Generator):
        positions = SPACING * np.arange(CHANNELS)
        shared = np.exp(-np.abs(positions[:, None] - positions) / REACH)
        self.root = np.linalg.cholesky(shared)
        units = rng.uniform(0, SPACING * CHANNELS, UNITS)
        reached = np.exp(-np.abs(units[:, None] - positions) / UNIT_REACH)
        self.amplitudes = rng.uniform(*AMPLITUDES, (UNITS, 1)) * reached
        self.chances = rng.uniform(*RATES, UNITS) / SAMPLE_RATE  # that a spike begins in a given row
        self.noise = len(EXPONENTS) * shared + OWN_NOISE**2 * np.eye(CHANNELS)
        self.mean = self.chances * spike_shape().sum() @ self.amplitudes
        power = self.chances * (1 - self.chances) * np.sum(spike_shape() ** 2)
        self.covariance = self.noise + (self.amplitudes.T * power) @ self.amplitudes


class Stream:
    """A recording without end; how it is taken changes nothing in it."""

    def __init__(self, probe: Probe, rng: np.random.Generator):
        self.probe, self.rng = probe, rng
        self.shape = spike_shape().astype(np.float32)
        self.filter = np.fft.rfft(noise_filter().astype(np.float32), 2 * TAPS)[:, None]
        self.later = np.zeros((TAPS, CHANNELS), np.float32)  # what noise drawn so far adds to rows to come
        self.unfinished = np.zeros((SPIKE, UNITS), np.float32)
        self.made = np.empty((0, CHANNELS), np.float32)
        self.make()  # before this the filter has too little to work on

    def take(self, rows: int) -> np.ndarray:
        taken = np.empty((rows, CHANNELS), np.float32)
        filled = 0
        while filled < rows:
            if not len(self.made):
                self.made = self.make()
            step = min(rows - filled, len(self.made))
            taken[filled : filled + step] = self.made[:step]
            self.made = self.made[step:]
            filled += step
        return taken

    def make(self) -> np.ndarray:
        rows = self.slow_noise() @ self.probe.root.T.astype(np.float32)
        rows += np.float32(OWN_NOISE) * self.white()
        rows += self.spikes() @ self.probe.amplitudes.astype(np.float32)
        return rows

    def white(self) -> np.ndarray:
        return self.rng.standard_normal((TAPS, CHANNELS), np.float32)

    def slow_noise(self) -> np.ndarray:
        filtered = np.fft.rfft(self.white(), 2 * TAPS, axis=0)
        filtered *= self.filter
        answer = np.fft.irfft(filtered, axis=0)
        now = answer[:TAPS] + self.later
        self.later = answer[TAPS:].copy()
        return now

    def spikes(self) -> np.ndarray:
        """The course of each unit, of height one."""
        course = np.zeros((TAPS + SPIKE, UNITS), np.float32)
        course[:SPIKE] = self.unfinished
        for unit, chance in enumerate(self.probe.chances):
            for row in np.flatnonzero(self.rng.random(TAPS) < chance):
                course[row : row + SPIKE, unit] += self.shape
        self.unfinished = course[TAPS:].copy()
        return course[:TAPS]


def changes_noticed(whitener) -> int:
    """How many changes of context a whitener has noticed since it was fitted."""
    said = re.search(r"(\d+) changes", whitener.status())
    if said is None:
        raise ValueError(f"status: expected words like `3 changes`, got {whitener.status()!r}")
    return int(said[1])


def whitening_error(probe: Probe, matrix: np.ndarray, mean: np.ndarray) -> float:
    """How far the second moment of the responses to come is from white."""
    apart = probe.mean - mean
    moment = matrix @ (probe.covariance + np.outer(apart, apart)) @ matrix.T
    return float(np.max(np.abs(np.linalg.eigvalsh(moment) - 1)))


def signal_to_noise(probe: Probe, matrix: np.ndarray) -> np.ndarray:
    """Of each unit."""
    peaks = np.max(np.abs(spike_shape())) * np.abs(probe.amplitudes @ matrix.T)
    deviations = np.sqrt(np.einsum("ij,jk,ik->i", matrix, probe.noise, matrix))
    return np.max(peaks / deviations, axis=1)


def follow(whitener, probe: Probe, stream: Stream, rows: int, every: int) -> dict:
    """Lets a whitener adapt to so many rows; its error and SNR are means over the times at which it was stopped."""
    errors, ratios = [], []
    for start in range(0, rows, every):
        whitener.adapt_transform(stream.take(min(every, rows - start)))
        matrix = whitener.whitening_matrix_
        errors.append(whitening_error(probe, matrix, whitener.mean_))
        ratios.append(signal_to_noise(probe, matrix))
    return {
        "rows": rows,
        "changes": changes_noticed(whitener),
        "error": float(np.mean(errors)),
        "largest error": float(np.max(errors)),
        "snr": np.mean(ratios, axis=0).tolist(),
    }


def measure(seed: int, fit_rows: int, runs: dict[str, tuple[dict, int]], every: int) -> dict:
    """What the batch fit and each run make of one recording; all are fitted to the same rows."""
    from leukos import AdaptiveWhitener

    probe = Probe(np.random.default_rng([seed, 0]))
    training = Stream(probe, np.random.default_rng([seed, 1])).take(fit_rows)
    batch = AdaptiveWhitener().fit(training)
    matrix = batch.whitening_matrix_
    found = {
        "batch": {
            "rows": 0,
            "error": whitening_error(probe, matrix, batch.mean_),
            "snr": signal_to_noise(probe, matrix).tolist(),
        }
    }
    for name, (options, rows) in runs.items():
        whitener = AdaptiveWhitener(**options).fit(training)
        stream = Stream(probe, np.random.default_rng([seed, 2]))
        found[name] = follow(whitener, probe, stream, rows, every)
        print(f"seed {seed}, {name}: {found[name]['changes']} changes", file=sys.stderr, flush=True)
    return found


def table(results: dict[int, dict]) -> str:
    lines = [
        "| seed | whitener | rows | changes noticed | error | error / batch | SNR / batch, median unit | worst unit |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for seed, found in results.items():
        batch = found["batch"]
        for name, one in found.items():
            ratios = np.divide(one["snr"], batch["snr"])
            cells = [seed, name, one["rows"], one.get("changes", "–"), f"{one['error']:.3f}"]
            cells += [f"{one['error'] / batch['error']:.3f}", f"{np.median(ratios):.4f}", f"{np.min(ratios):.4f}"]
            lines.append("| " + " | ".join(map(str, cells)) + " |")
    return "\n".join(lines)


def check(seed: int, rows: int) -> str:
    """The moments of so many rows next to those they should have."""
    probe = Probe(np.random.default_rng([seed, 0]))
    stream = Stream(probe, np.random.default_rng([seed, 1]))
    total, products, left = np.zeros(CHANNELS), np.zeros((CHANNELS, CHANNELS)), rows
    while left:
        some = stream.take(min(left, TAPS)).astype(np.float64)
        total += some.sum(0)
        products += some.T @ some
        left -= len(some)
    mean = total / rows
    covariance = products / rows - np.outer(mean, mean)
    values = np.linalg.eigvals(np.linalg.solve(probe.covariance, covariance)).real
    apart = np.max(np.abs(mean - probe.mean) / np.sqrt(np.diag(probe.covariance)))
    return (
        f"{rows} rows: variances over the true ones {values.min():.3f} to {values.max():.3f}, on average "
        f"{values.mean():.4f}; means apart by {apart:.4f} standard deviations at most"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=1, help="recordings [default: 1]")
    parser.add_argument("--first-seed", type=int, default=0, help="of those recordings [default: 0]")
    parser.add_argument("--fit-rows", type=int, default=LONG, help=f"rows to fit [default: {LONG}]")
    parser.add_argument("--short-rows", type=int, default=SHORT, help=f"with default settings [default: {SHORT}]")
    parser.add_argument("--long-rows", type=int, default=LONG, help=f"with a long memory [default: {LONG}]")
    parser.add_argument("--every", type=int, default=1000, help="rows from one look to the next [default: 1000]")
    parser.add_argument("--check", type=int, metavar="ROWS", help="look at the recording alone, without Leukos")
    parser.add_argument("--out", type=pathlib.Path, help="every number as JSON")
    options = parser.parse_args()
    seeds = range(options.first_seed, options.first_seed + options.seeds)
    if options.check:
        print("\n".join(check(seed, options.check) for seed in seeds))
        return
    runs = {
        "default settings": ({}, options.short_rows),
        f"time_constant={LONG_MEMORY:.0f}": ({"time_constant": LONG_MEMORY}, options.long_rows),
    }
    results = {seed: measure(seed, options.fit_rows, runs, options.every) for seed in seeds}
    if options.out:
        options.out.write_text(json.dumps(results, indent=1) + "\n")
    print(table(results))


if __name__ == "__main__":
    main()

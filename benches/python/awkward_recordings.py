"""Make the recordings that peers.py whitens: ordinary ones, and ones with something the matter.

A recording has a training half and a test half of ROWS rows each.
Of each block of the test half it is known what its samples are drawn from, disturbances left out.
"""

from dataclasses import dataclass, field
from functools import partial
from typing import Callable

import numpy as np
from scipy.linalg import expm
from scipy.signal import lfilter

CHANNELS = 16  # unless a recording says otherwise
MANY_CHANNELS = 64
ROWS = 24_000
BLOCK = 1_000  # the test half is looked at after each so many rows
CONDITION = 100.0  # largest over smallest eigenvalue of an ordinary covariance, in squared microvolts
OFFSET = 1e6  # standard deviations
DRIFT = 10.0  # standard deviations, from the first to the last row
BAD_SHARE = 0.01
OUTLIER_SHARE, OUTLIER_SIZE = 1e-3, 1e4
FREEDOM = 3
LARGEST_GAIN = 3.0
DEAD = 5
TURN = np.pi  # of the fastest plane, from the first to the last row
TURN_EVERY = 100  # rows
PERSISTENCE = 0.95  # correlation of a row with the one before
VISITS = (0, 1, 2, 3, 1, 0, 3, 2, 0, 2, 1, 3)  # which of four contexts the test half shows
SHOWN, UNSEEN = 6, 12  # contexts of the training and of the test half


@dataclass
class Truth:
    """What the samples of a block are drawn from: mean + root @ noise, with noise of covariance I."""

    label: str
    mean: np.ndarray
    root: np.ndarray  # (channels, rank)


@dataclass
class Recording:
    """Both halves, what is true of each block of the test half, and the contexts of the training half."""

    train: np.ndarray
    test: np.ndarray
    truths: list[Truth]
    contexts: list[np.ndarray] = field(default_factory=list)  # empty where nobody would name any
    empty: np.ndarray | None = None  # directions that never have a signal
    seed: int = 0  # for methods that draw at random


def covariance(rng: np.random.Generator, channels: int = CHANNELS) -> np.ndarray:
    """Eigenvalues from 1 to CONDITION, axes at random."""
    axes = np.linalg.qr(rng.standard_normal((channels, channels)))[0]
    return axes * np.geomspace(1, CONDITION, channels) @ axes.T


def root_of(covariance: np.ndarray) -> np.ndarray:
    """The root of a covariance, without its empty directions."""
    values, axes = np.linalg.eigh(covariance)
    live = values > 1e-9 * values[-1]
    return axes[:, live] * np.sqrt(values[live])


def scale_of(root: np.ndarray) -> float:
    """The standard deviation of a typical channel."""
    return float(np.sqrt(np.sum(root**2) / len(root)))


def steady(rng: np.random.Generator, covariance: np.ndarray, noise=None) -> Recording:
    """Samples of one covariance and mean zero, Gaussian unless noise says otherwise."""
    root = root_of(covariance)
    noise = noise or (lambda rows: rng.standard_normal((rows, root.shape[1])))
    truth = Truth("", np.zeros(len(root)), root)
    return Recording(noise(ROWS) @ root.T, noise(ROWS) @ root.T, [truth] * (ROWS // BLOCK))


def plain(rng: np.random.Generator) -> Recording:
    return steady(rng, covariance(rng))


def average_reference(rng: np.random.Generator) -> Recording:
    """The mean over channels is taken off, so that they sum to zero."""
    centring = np.eye(CHANNELS) - 1 / CHANNELS
    recording = steady(rng, centring @ covariance(rng) @ centring)
    recording.empty = np.full((CHANNELS, 1), CHANNELS**-0.5)
    return recording


def duplicates(rng: np.random.Generator) -> Recording:
    """Channels 1 and 3 repeat channels 0 and 2."""
    copying = np.eye(CHANNELS)
    copying[[1, 3]] = copying[[0, 2]]
    recording = steady(rng, copying @ covariance(rng) @ copying.T)
    recording.train[:, [1, 3]] = recording.train[:, [0, 2]]  # to the last bit
    recording.test[:, [1, 3]] = recording.test[:, [0, 2]]
    recording.empty = (np.eye(CHANNELS)[[0, 2]] - np.eye(CHANNELS)[[1, 3]]).T / np.sqrt(2)
    return recording


def offset(rng: np.random.Generator) -> Recording:
    recording = plain(rng)
    return shifted(recording, np.ones(2 * ROWS), OFFSET * rng.standard_normal(CHANNELS))


def drifting_offset(rng: np.random.Generator) -> Recording:
    recording = plain(rng)
    return shifted(recording, np.linspace(0, 1, 2 * ROWS), DRIFT * rng.choice([-1, 1], CHANNELS))


def shifted(recording: Recording, course: np.ndarray, by: np.ndarray) -> Recording:
    """Adds to each channel a course over both halves, times so many standard deviations."""
    shift = np.outer(course, by * scale_of(recording.truths[0].root))
    recording.train += shift[:ROWS]
    recording.test += shift[ROWS:]
    ends = shift[ROWS:][BLOCK - 1 :: BLOCK]
    recording.truths = [Truth(t.label, t.mean + end, t.root) for t, end in zip(recording.truths, ends)]
    return recording


def tiny(rng: np.random.Generator) -> Recording:
    return steady(rng, 1e-16 * covariance(rng))


def missing(rng: np.random.Generator) -> Recording:
    """One row in a hundred has a NaN in one channel."""
    recording = plain(rng)
    for half in (recording.train, recording.test):
        rows = np.flatnonzero(rng.random(ROWS) < BAD_SHARE)
        half[rows, rng.integers(CHANNELS, size=rows.size)] = np.nan
    return recording


def outliers(rng: np.random.Generator) -> Recording:
    recording = plain(rng)
    for half in (recording.train, recording.test):
        half[rng.random(ROWS) < OUTLIER_SHARE] *= OUTLIER_SIZE
    return recording


def heavy_tails(rng: np.random.Generator) -> Recording:
    """Rows of a multivariate Student distribution, scaled to the covariance."""

    def noise(rows):
        squares = rng.chisquare(FREEDOM, (rows, 1)) / (FREEDOM - 2)
        return rng.standard_normal((rows, CHANNELS)) / np.sqrt(squares)

    return steady(rng, covariance(rng), noise)


def two_contexts(rng: np.random.Generator, channels: int = CHANNELS) -> Recording:
    """Two covariances that have nothing to do with one another."""
    return alternating(steady(rng, covariance(rng, channels)), steady(rng, covariance(rng, channels)))


def related_contexts(rng: np.random.Generator) -> Recording:
    """Two covariances with the same axes, along which the variances are exchanged at random."""
    values, axes = np.linalg.eigh(covariance(rng))
    exchanged = axes * rng.permutation(values) @ axes.T
    return alternating(steady(rng, axes * values @ axes.T), steady(rng, exchanged))


def alternating(a: Recording, b: Recording) -> Recording:
    """A, then B in the training half; A, B and A again in the test half."""
    third, half = ROWS // 3, ROWS // 2
    contexts = [a.train[:half], b.train[:half]]
    test = np.concatenate([a.test[:third], b.test[:third], a.test[third : 2 * third]])
    labels = ("A", "B", "A again")
    shown = [Truth(label, x.truths[0].mean, x.truths[0].root) for label, x in zip(labels, (a, b, a))]
    truths = [truth for truth in shown for _ in range(third // BLOCK)]
    return Recording(np.concatenate(contexts), test, truths, contexts)


def dead_channel(rng: np.random.Generator) -> Recording:
    """A channel is zero from the middle of the test half on."""
    recording = plain(rng)
    recording.test[ROWS // 2 :, DEAD] = 0
    whole = recording.truths[0].root @ recording.truths[0].root.T
    whole[DEAD] = whole[:, DEAD] = 0
    blocks = len(recording.truths) // 2
    alive = Truth("alive", recording.truths[0].mean, recording.truths[0].root)
    dead = Truth("dead", alive.mean, root_of(whole))
    recording.truths = [alive] * blocks + [dead] * blocks
    return recording


def common_gain(rng: np.random.Generator) -> Recording:
    """The gain of all channels grows from one to LARGEST_GAIN."""
    return amplified(plain(rng), np.ones(CHANNELS))


def channel_gains(rng: np.random.Generator) -> Recording:
    """Each channel's gain goes its own way, up or down, by at most LARGEST_GAIN."""
    return amplified(plain(rng), rng.uniform(-1, 1, CHANNELS))


def amplified(recording: Recording, share: np.ndarray) -> Recording:
    gains = LARGEST_GAIN ** np.outer(np.linspace(0, 1, 2 * ROWS), share)
    recording.train *= gains[:ROWS]
    recording.test *= gains[ROWS:]
    ends = gains[ROWS:][BLOCK - 1 :: BLOCK]
    recording.truths = [Truth(t.label, t.mean, end[:, None] * t.root) for t, end in zip(recording.truths, ends)]
    recording.contexts = np.split(recording.train, 4)  # what fit --segment does
    return recording


def turning_axes(rng: np.random.Generator) -> Recording:
    """The axes turn steadily, each plane at its own speed; the variances along them stay."""
    root = root_of(covariance(rng))
    speeds = rng.standard_normal((CHANNELS, CHANNELS))
    speeds -= speeds.T
    speeds *= TURN / (2 * ROWS) / np.linalg.norm(speeds, 2)

    def at(row):
        return expm(speeds * row) @ root

    def half(first):
        middles = np.arange(first, first + ROWS, TURN_EVERY) + TURN_EVERY / 2
        return np.concatenate([rng.standard_normal((TURN_EVERY, CHANNELS)) @ at(row).T for row in middles])

    ends = np.arange(ROWS + BLOCK, 2 * ROWS + 1, BLOCK)
    return Recording(half(0), half(ROWS), [Truth("", np.zeros(CHANNELS), at(end)) for end in ends])


def persistent(rng: np.random.Generator) -> Recording:
    """Each row remembers the one before, so that there is less in as many rows; the covariance is as ever."""

    def noise(rows):
        fresh = rng.standard_normal((rows, CHANNELS))
        fresh[1:] *= np.sqrt(1 - PERSISTENCE**2)  # the first row has its full variance: no time to settle
        return lfilter([1], [1, -PERSISTENCE], fresh, axis=0)

    return steady(rng, covariance(rng), noise)


def two_persistent_contexts(rng: np.random.Generator) -> Recording:
    return alternating(persistent(rng), persistent(rng))


def two_heavy_contexts(rng: np.random.Generator) -> Recording:
    return alternating(heavy_tails(rng), heavy_tails(rng))


def revisited_contexts(rng: np.random.Generator) -> Recording:
    """Four unrelated covariances, one after another in the training half, then each of them three times."""
    known = [root_of(covariance(rng)) for _ in range(4)]
    return visiting(rng, known, [known[which] for which in VISITS])


def unseen_contexts(rng: np.random.Generator) -> Recording:
    """Contexts with the same axes and exchanged variances; the test half shows none of those of the training half."""
    values, axes = np.linalg.eigh(covariance(rng))
    roots = [axes * np.sqrt(rng.permutation(values)) for _ in range(SHOWN + UNSEEN)]
    return visiting(rng, roots[:SHOWN], roots[SHOWN:])


def visiting(rng: np.random.Generator, train: list[np.ndarray], test: list[np.ndarray]) -> Recording:
    """Each half shows its contexts, given by their roots, for equally many rows."""

    def show(roots):
        return [rng.standard_normal((ROWS // len(roots), root.shape[1])) @ root.T for root in roots]

    contexts = show(train)
    truths = [Truth("", np.zeros(len(root)), root) for root in test for _ in range(ROWS // len(test) // BLOCK)]
    return Recording(np.concatenate(contexts), np.concatenate(show(test)), truths, contexts)


# Each is drawn from a seed and its place in this list, so new ones go to the end.
RECORDINGS: dict[str, Callable[[np.random.Generator], Recording]] = {
    "plain Gaussian": plain,
    "average reference": average_reference,
    "two duplicate channels": duplicates,
    "offset of 1e6 sd": offset,
    "offset that drifts by 10 sd": drifting_offset,
    "everything times 1e-8": tiny,
    "1 % NaN": missing,
    "outliers, 1 in 1000, times 1e4": outliers,
    "Student-t, 3 degrees of freedom": heavy_tails,
    "two contexts, same axes": related_contexts,
    "two contexts, unrelated": two_contexts,
    "a channel dies": dead_channel,
    "gain of all channels drifts": common_gain,
    "gain of each channel drifts": channel_gains,
    "turning axes": turning_axes,
    "AR(1)": persistent,
    "AR(1), two contexts": two_persistent_contexts,
    "Student-t, two contexts": two_heavy_contexts,
    "four contexts revisited": revisited_contexts,
    "unseen contexts": unseen_contexts,
    "64 channels, two contexts, unrelated": partial(two_contexts, channels=MANY_CHANNELS),
}

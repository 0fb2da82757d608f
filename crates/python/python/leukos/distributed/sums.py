"""Sums up blocks of rows by context, in a tree that is the same on any number of machines."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from dask.delayed import Delayed, delayed
from distributed import Client
from numpy.typing import NDArray

from .._leukos import Moments
from ..estimator import _runs
from .blocks import Block, divide, read
from .running import outcomes, require_client


LARGEST = 1e150
"""The squares of values beyond this could overflow; the core counts them as bad."""
GROUP = 32
"""How many neighbouring blocks workers merge, a power of two; the rest of the tree is merged here.

What is lost if dask gives a task up is one group.
"""


@dataclass(frozen=True)
class ContextCovariances:
    """What `covariances` has summed up; contexts are in the order in which they first appear."""

    moments: dict[str, Moments]
    """By the name of the context, which is "" without labels; this is what `AdaptiveWhitener.fit_moments` takes."""

    @property
    def names(self) -> list[str]:
        """Of the contexts."""
        return list(self.moments)

    @property
    def covariances(self) -> NDArray[np.float64]:
        """About the mean of each context, of shape (contexts, N, N)."""
        return np.stack([moments.covariance() for moments in self.moments.values()])

    @property
    def counts(self) -> NDArray[np.int64]:
        """How many rows of each context were summed up."""
        return np.array([moments.count for moments in self.moments.values()], dtype=np.int64)

    @property
    def bad(self) -> NDArray[np.int64]:
        """How many rows of each context were left out, unusable and wild ones (see `leukos.Moments`)."""
        return np.array([moments.bad for moments in self.moments.values()], dtype=np.int64)


def covariances(
    blocks: Any, contexts: Any = None, *, client: Client | None = None, saturation: float | None = None
) -> ContextCovariances:
    """Sums up the rows of blocks, context by context.

    Parameters
    ----------
    blocks : dask array of shape (samples, channels), or sequence of blocks
        A block is an array, the name of a .npy file or of a .csv file with a line of names, or a dask delayed object
        that gives an array. A task holds one block at a time; of a .npy file, only what it is just reading.
    contexts : labels, optional
        One for each block, an array of them for each block, or one for each row in one array or dask array. Rows with
        the same label are of the same context, wherever they stand.
    client : distributed.Client, optional
        Whose workers compute; without one, threads of this process. Blocks that are arrays of this process are summed
        up where they are.
    saturation : float, optional
        Values this large, of either sign, count as bad, as NaN and infinities do. Rows with one are counted, and left
        out.

    The sums are merged in pairs of neighbours, in pairs of those, and so on: the same blocks give the same bits with
    any number of workers of one kind.

    Examples
    --------
    >>> import numpy as np
    >>> from leukos.distributed import covariances
    >>> summed = covariances([np.eye(2), 2 * np.eye(2), [[5.0, np.nan]]], contexts=["quiet", "loud", "loud"])
    >>> summed.names, summed.counts.tolist(), summed.bad.tolist()
    (['quiet', 'loud'], [2, 2], [0, 1])
    >>> summed.covariances[1].tolist()
    [[1.0, -1.0], [-1.0, 1.0]]
    """
    return sum_up(blocks, contexts, client, Acceptance(saturation, bad_rows=True))


class Acceptance(NamedTuple):
    """Which rows are summed up."""

    saturation: float | None
    bad_rows: bool
    """Whether bad rows are counted, or an error."""


class Columns(NamedTuple):
    """What blocks must have in common."""

    number: int
    names: tuple[str, ...] | None
    """None of blocks without names, which go with any."""


class Sums(NamedTuple):
    """What is known of some blocks."""

    columns: Columns
    contexts: dict[str, Moments]


def sum_up(blocks: Any, contexts: Any, client: Client | None, acceptance: Acceptance) -> ContextCovariances:
    """As `covariances`, for rows that are accepted."""
    require_client(client)
    divided = divide(blocks, contexts)
    known = divided[0].channels
    columns = None if known is None else Columns(known, None)
    leaves: list[Any] = [None] * len(divided)
    if columns is None:
        # The first block is read before the others, so that each of them can be refused as soon as it is read.
        (leaves[0],) = outcomes([_task(divided[0], None, acceptance)], client)
        columns = leaves[0].columns
    todo = [block for block in divided if leaves[block.number] is None]
    for block in todo:
        leaves[block.number] = _task(block, columns, acceptance)
    here = [block.number for block in todo if block.is_here]
    for number, summed in zip(here, outcomes([leaves[number] for number in here], None), strict=True):
        leaves[number] = summed
    trees = [_tree(leaves[start : start + GROUP]) for start in range(0, len(leaves), GROUP)]
    whole = _fold(outcomes(trees, client))
    _require_samples(whole.contexts, len(divided))
    return ContextCovariances(whole.contexts)


def _task(block: Block, expected: Columns | None, acceptance: Acceptance) -> Delayed:
    work = partial(sum_block, number=block.number, expected=expected, acceptance=acceptance)
    return delayed(work, pure=False)(block.rows, block.labels)


def _tree(parts: Sequence[Any]) -> Delayed:
    """Merges neighbours until one is left; one without a neighbour waits for the next round."""
    while len(parts) > 1:
        pairs = [delayed(merge, pure=False)(*parts[i : i + 2]) for i in range(0, len(parts) - 1, 2)]
        parts = [*pairs, *parts[2 * len(pairs) :]]
    return delayed(parts[0])


def _fold(parts: Iterable[Sums]) -> Sums:
    """The same tree over parts that arrive one by one; it keeps as few as possible."""
    waiting: list[tuple[int, Sums]] = []
    for part in parts:
        size = 1
        while waiting and waiting[-1][0] == size:
            part, size = merge(waiting.pop()[1], part), 2 * size
        waiting.append((size, part))
    _, whole = waiting.pop()
    while waiting:
        whole = merge(waiting.pop()[1], whole)
    return whole


def merge(left: Sums, right: Sums) -> Sums:
    """Both together; neither is changed, since a task may run again."""
    contexts = dict(left.contexts)
    for name, moments in right.contexts.items():
        if name in contexts:
            contexts[name] = copy(contexts[name])
            contexts[name].merge(moments)
        else:
            contexts[name] = moments
    return Sums(left.columns, contexts)


def sum_block(rows: Any, labels: Any, *, number: int, expected: Columns | None, acceptance: Acceptance) -> Sums:
    """The sums of one block; errors name its number."""
    try:
        rows, names = read(rows)
        _require_columns(rows, names, expected)
        contexts = {name: _moments(own, acceptance.saturation) for name, own in _by_context(rows, labels).items()}
    except ValueError as error:
        raise ValueError(f"blocks[{number}]: {str(error).removeprefix('X: ')}") from None
    # Wild rows are left out, and no reason to refuse a block.
    suspicious = not acceptance.bad_rows and any(moments.bad for moments in contexts.values())
    bad = _unusable(rows, acceptance.saturation) if suspicious else 0
    if bad:
        limit = "" if acceptance.saturation is None else f" below the saturation {acceptance.saturation}"
        raise ValueError(
            f"blocks[{number}]: expected finite values{limit}, got {bad} rows with others "
            '(or another choice of bad_samples than "error")'
        )
    return Sums(Columns(rows.shape[1], names), contexts)


def _require_columns(rows: NDArray[Any], names: tuple[str, ...] | None, expected: Columns | None) -> None:
    if rows.ndim != 2 or rows.shape[1] == 0:
        raise ValueError(f"expected an array of shape (samples, channels), got shape {rows.shape}")
    if expected is None:
        return
    if rows.shape[1] != expected.number:
        raise ValueError(f"expected {expected.number} columns as in blocks[0], got {rows.shape[1]}")
    for first, own in zip(expected.names or (), names or ()):
        if own != first:
            raise ValueError(f"expected a column {first!r} as in blocks[0], got {own!r}")


def _by_context(rows: NDArray[Any], labels: Any) -> dict[str, NDArray[Any]]:
    """The rows of each context, in the order of first appearance."""
    if labels is not None:
        labels = np.asarray(labels)
        if labels.ndim == 0:
            labels = np.broadcast_to(labels, len(rows))
        if labels.shape != (len(rows),):
            raise ValueError(f"contexts: expected a label for each of {len(rows)} rows, got shape {labels.shape}")
    if len(rows) == 0:
        return {}
    stretches: dict[str, list[NDArray[Any]]] = {}
    for start, end, name in _runs(len(rows), labels):
        stretches.setdefault(name, []).append(rows[start:end])
    return {name: own[0] if len(own) == 1 else np.concatenate(own) for name, own in stretches.items()}


def _moments(rows: NDArray[Any], saturation: float | None) -> Moments:
    moments = Moments(rows.shape[1])
    moments.update(rows if saturation is None else np.where(np.abs(rows) < saturation, rows, np.nan))
    return moments


def _unusable(rows: NDArray[Any], saturation: float | None) -> int:
    """How many rows have a number that cannot be used."""
    limit = LARGEST if saturation is None else min(saturation, LARGEST)
    return int(np.count_nonzero(~(np.abs(rows) < limit).all(axis=1)))


def _require_samples(contexts: Mapping[str, Moments], blocks: int) -> None:
    if not contexts:
        raise ValueError(f"blocks: expected one sample or more, got {blocks} blocks without rows")
    for name, moments in contexts.items():
        if moments.count == 0:
            expected = f"contexts: expected usable samples of {name!r}" if name else "blocks: expected usable samples"
            raise ValueError(f"{expected}, got {moments.bad} rows that are all bad")

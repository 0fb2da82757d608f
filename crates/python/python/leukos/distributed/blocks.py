"""Divides what callers give as blocks and labels into one source of rows, and one of labels, for each block."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import dask.array as da
import numpy as np
import pandas as pd
from dask.delayed import Delayed
from numpy.typing import NDArray

from .._plain_arrays import refuse_disguised


class Block(NamedTuple):
    """One block of rows, not read yet."""

    number: int
    rows: Delayed | Path | NDArray[Any]
    labels: Any
    """None, one label for all rows, or a label for each of them: an array, or a Delayed of one."""
    channels: int | None
    """As far as it is known without reading."""

    @property
    def is_here(self) -> bool:
        """Whether all of it is in the memory of this process."""
        return isinstance(self.rows, np.ndarray) and not isinstance(self.labels, Delayed)


def divide(blocks: Any, contexts: Any) -> list[Block]:
    """The blocks in their order, each with its labels."""
    if isinstance(blocks, da.Array):
        sources, lengths, channels = _of_dask_array(blocks)
    else:
        sources = [_source(number, block) for number, block in enumerate(_sequence(blocks))]
        lengths = [len(rows) if isinstance(rows, np.ndarray) and rows.ndim else None for rows in sources]
        # Arrays say themselves how wide they are; what blocks[0] turns out to be is what all others are held to.
        channels = sources[0].shape[1] if isinstance(sources[0], np.ndarray) and sources[0].ndim == 2 else None
    labels = _labels(contexts, lengths)
    return [Block(number, rows, labels[number], channels) for number, rows in enumerate(sources)]


def read(rows: Any) -> tuple[NDArray[Any], tuple[str, ...] | None]:
    """The rows of a block, and the names of its columns if it has any.

    Those of a .npy file stay on disk until they are used.
    """
    if isinstance(rows, Path):
        if rows.suffix == ".npy":
            return np.load(rows, mmap_mode="r", allow_pickle=False), None
        rows = pd.read_csv(rows)
    names = tuple(map(str, rows.columns)) if isinstance(rows, pd.DataFrame) else None
    return _array(rows), names


def _of_dask_array(array: da.Array) -> tuple[list[Any], list[int | None], int | None]:
    if array.ndim != 2:
        raise ValueError(f"blocks: expected a dask array of shape (samples, channels), got {array.ndim} dimensions")
    if array.numblocks[1] > 1:
        array = array.rechunk({1: -1})
    lengths = [_known(length) for length in array.chunks[0]]
    return list(array.to_delayed().ravel()), lengths, _known(array.shape[1])


def _known(size: float) -> int | None:
    return None if math.isnan(size) else int(size)


def _sequence(blocks: Any) -> list[Any]:
    expected = "a dask array, or a sequence of arrays, file names and dask delayed objects"
    if isinstance(blocks, (str, os.PathLike, Delayed)) or not isinstance(blocks, Iterable):
        raise ValueError(f"blocks: expected {expected}, got {blocks!r}")
    if isinstance(blocks, (np.ndarray, pd.DataFrame)) and blocks.ndim < 3:
        raise ValueError(f"blocks: expected {expected}, got one array of shape {blocks.shape}; put it into a list")
    listed = list(blocks)
    if not listed:
        raise ValueError("blocks: expected one block or more, got none")
    return listed


def _source(number: int, block: Any) -> Delayed | Path | NDArray[Any]:
    if isinstance(block, Delayed):
        return block
    if isinstance(block, da.Array):
        raise ValueError(f"blocks[{number}]: expected rows, got a dask array; give one, or join them by concatenate")
    if isinstance(block, (str, os.PathLike)):
        path = Path(block)
        if path.suffix not in (".npy", ".csv"):
            raise ValueError(f"blocks[{number}]: expected a .npy or .csv file, got {str(path)!r}")
        return path.absolute()  # Workers may run in another folder.
    try:
        return _array(block)
    except ValueError as error:
        raise ValueError(f"blocks[{number}]: {error}") from None


def _array(rows: Any) -> NDArray[Any]:
    refuse_disguised("rows", rows)
    try:
        return np.asarray(rows)
    except ValueError:
        raise ValueError("expected an array of shape (samples, channels), got rows of different lengths") from None


def _labels(contexts: Any, lengths: list[int | None]) -> list[Any]:
    """What `Block.labels` says, for each block."""
    count = len(lengths)
    if contexts is None:
        return [None] * count
    if isinstance(contexts, da.Array):
        return _of_dask_labels(contexts, lengths)
    if isinstance(contexts, (str, Delayed)) or not isinstance(contexts, Iterable):
        raise ValueError(f"contexts: expected labels of rows or of blocks, got {contexts!r}")
    labels = contexts if isinstance(contexts, np.ndarray) else list(contexts)
    if len(labels) == count:
        return [one if isinstance(one, Delayed) else np.asarray(one) for one in labels]
    total = _total(lengths)
    if len(labels) == total:
        ends = np.cumsum([length or 0 for length in lengths])
        return np.split(np.asarray(labels), ends[:-1])
    rows = "row of blocks whose lengths are known" if total is None else f"of {total} rows"
    raise ValueError(f"contexts: expected a label for each of {count} blocks, or for each {rows}, got {len(labels)}")


def _of_dask_labels(labels: da.Array, lengths: list[int | None]) -> list[Any]:
    total, given = _total(lengths), _known(labels.size)
    if labels.ndim != 1:
        raise ValueError(f"contexts: expected a dask array of shape (samples,), got {labels.ndim} dimensions")
    if total is not None and given is not None:
        if given != total:
            raise ValueError(f"contexts: expected a label for each of {total} rows, got {given}")
        labels = labels.rechunk((tuple(lengths),))
    if labels.numblocks[0] != len(lengths):
        raise ValueError(
            f"contexts: expected {len(lengths)} chunks of labels, one for each block of unknown length, "
            f"got {labels.numblocks[0]}"
        )
    return list(labels.to_delayed().ravel())


def _total(lengths: list[int | None]) -> int | None:
    known = [length for length in lengths if length is not None]
    return sum(known) if len(known) == len(lengths) else None

"""Calls a function once, and returns the outcome as values that a file can hold."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

CHECKSUM = "crc32"
"""What a line of a file calls its checksum."""
RESERVED = ("seed", "seconds", "error", CHECKSUM)
"""Names that a table or its file has whatever is swept over."""


class Task(NamedTuple):
    """One call of the function."""

    parameters: dict[str, Any]
    seed: int


class Row(NamedTuple):
    """The outcome of a task."""

    results: dict[str, Any]
    seconds: float | None
    error: str | None


def attempt(function: Callable[..., Any], task: Task) -> Row:
    """One call; an exception is a row too."""
    start = time.perf_counter()
    results: dict[str, Any] = {}
    error = None
    try:
        results = _results(function(**task.parameters, seed=task.seed), task)
    except Exception as caught:
        error = f"{type(caught).__name__}: {caught}"
    return Row(results, time.perf_counter() - start, error)


def _results(outcome: Any, task: Task) -> dict[str, Any]:
    named = dict(outcome) if isinstance(outcome, Mapping) else {"result": outcome}
    for name in named:
        if not isinstance(name, str) or name in RESERVED or name in task.parameters:
            raise ValueError(f"function: expected results with names of their own, got {name!r}")
    return {name: plain(f"function: result {name!r}", value) for name, value in named.items()}


def plain(name: str, value: Any) -> Any:
    """The value as JSON would return it, so that a resumed table equals that of one run."""
    if isinstance(value, (np.ndarray, np.generic)):
        value = value.tolist()
    if isinstance(value, (list, tuple)):
        return [plain(name, each) for each in value]
    if isinstance(value, Mapping):
        return {str(key): plain(name, each) for key, each in value.items()}
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    got = type(value).__name__
    raise ValueError(f"{name}: expected numbers, strings, or arrays, lists or dicts of them, got {got}")

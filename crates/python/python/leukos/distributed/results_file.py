"""Keeps the rows of a sweep in a file, one line of JSON each, from which it can go on."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, BinaryIO, Self

from .calls import Row, Task, plain


class ResultsFile:
    """The rows that are there, and a place for those to come; without a path, neither.

    A row has the parameters, `seed`, the results, `seconds` and `error`, in this order: what stands before `seed` are
    the names of the parameters.
    """

    def __init__(self, path: str | os.PathLike[str] | None, names: Sequence[str]) -> None:
        self._rows: dict[str, Row] = {}
        self._file: BinaryIO | None = None
        if path is not None:
            self._path, self._names = Path(path), names
            whole = self._read() if self._path.exists() else 0
            self._file = self._path.open("ab")
            self._file.truncate(whole)
            if whole and not self._path.read_bytes().endswith(b"\n"):
                self._file.write(b"\n")

    def find(self, task: Task) -> Row | None:
        """What came of a task, if that is there."""
        return None if self._file is None else self._rows.get(_key(task))

    def add(self, task: Task, row: Row) -> None:
        """Writes a row, at once."""
        if self._file is not None:
            line = {**_plain(task), "seed": task.seed, **row.results, "seconds": row.seconds, "error": row.error}
            self._file.write(json.dumps(line).encode() + b"\n")
            self._file.flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            self._file.close()

    def _read(self) -> int:
        """Takes in the rows, and says how many bytes of the file they are: a last one may be half written."""
        whole = 0
        for number, line in enumerate(self._path.read_bytes().splitlines(keepends=True), start=1):
            if not line.endswith(b"\n") and line.startswith(b'{"') and not _is_json(line):
                break
            self._take_in(number, line)
            whole += len(line)
        return whole

    def _take_in(self, number: int, line: bytes) -> None:
        try:
            row = json.loads(line)
            names = list(row)
            first = names.index("seed")
            seconds, error = row.pop("seconds"), row.pop("error")
        except (ValueError, TypeError, KeyError, AttributeError):
            raise ValueError(f"path: expected rows of a sweep in {self._path}, got another line {number}") from None
        if set(names[:first]) != set(self._names):
            raise ValueError(
                f"path: expected a sweep over {sorted(self._names)} in {self._path}, got {sorted(names[:first])} on "
                f"line {number}"
            )
        parameters = {name: row.pop(name) for name in names[:first]}
        self._rows[_key(Task(parameters, row.pop("seed")))] = Row(row, seconds, error)


def _is_json(line: bytes) -> bool:
    try:
        json.loads(line)
    except ValueError:
        return False
    return True


def _key(task: Task) -> str:
    return json.dumps([_plain(task), task.seed], sort_keys=True)


def _plain(task: Task) -> dict[str, Any]:
    return {name: plain(f"grid[{name!r}]", value) for name, value in task.parameters.items()}

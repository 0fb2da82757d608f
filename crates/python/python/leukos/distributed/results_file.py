"""Keeps the rows of a sweep in a file, one line of JSON each, from which it can continue.

A line ends with the checksum of what stands before it, so that no damage passes for a result. The file is only ever
written to at its end: a damaged line stays where it is, and what it held runs again.
"""

from __future__ import annotations

import json
import os
import re
import warnings
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, BinaryIO, Self

from .calls import CHECKSUM, Row, Task, plain

try:
    import fcntl
except ImportError:  # Windows, where two sweeps can still get into each other's way.
    fcntl = None  # type: ignore[assignment]

_SEALED = re.compile(rb'(.*), "%s": "([0-9a-f]{8})"\}' % CHECKSUM.encode(), flags=re.DOTALL)


class ResultsFile:
    """The rows that are there, and a place for those to come; without a path, neither.

    A row has the parameters, `seed`, the results, `seconds`, `error` and its checksum, in this order: what stands
    before `seed` are the names of the parameters. As long as it is open, no other sweep can open it.
    """

    def __init__(self, path: str | os.PathLike[str] | None, names: Sequence[str]) -> None:
        self._rows: dict[str, Row] = {}
        self._file: BinaryIO | None = None
        self._written = False
        if path is None:
            return
        self._path, self._names = Path(path), names
        # Not "append", which would write at the end of what another program has made of it meanwhile.
        self._file = os.fdopen(os.open(self._path, os.O_RDWR | os.O_CREAT, 0o666), "r+b")
        try:
            self._lock()
            end = self._read()
        except BaseException:
            self._file.close()
            raise
        self._file.truncate(end)
        self._file.seek(end)
        self._lines_end = end == 0 or self._byte_before(end) == b"\n"

    def find(self, task: Task) -> Row | None:
        """The outcome of a task, if it is in the file."""
        return None if self._file is None else self._rows.get(_key(task))

    def add(self, task: Task, row: Row) -> None:
        """Writes a row, at once."""
        if self._file is None:
            return
        line = {**_plain(task), "seed": task.seed, **row.results, "seconds": row.seconds, "error": row.error}
        self._file.write((b"" if self._lines_end else b"\n") + _sealed(json.dumps(line).encode()) + b"\n")
        self._file.flush()
        self._lines_end = self._written = True

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            if self._written:
                os.fsync(self._file.fileno())
            self._file.close()

    def _lock(self) -> None:
        assert self._file is not None
        if fcntl is None:
            return
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise RuntimeError(f"path: expected a file that no other sweep is writing, got {self._path}") from None
        except OSError:
            pass  # Some file systems have no locks; then the file is not locked.

    def _byte_before(self, end: int) -> bytes:
        assert self._file is not None
        self._file.seek(end - 1)
        return self._file.read(1)

    def _read(self) -> int:
        """Reads the rows, and returns where to continue: an incomplete last row is dropped."""
        assert self._file is not None
        content = self._file.read()
        lines = content.split(b"\n")
        tail = lines.pop()
        damaged = [number for number, line in enumerate(lines, start=1) if not self._take_in(number, line)]
        if not self._rows and (damaged or not _is_half_a_line(tail)):
            self._require_checksum(lines[0] if lines else tail)
        if damaged:
            numbers = ", ".join(map(str, damaged))
            warnings.warn(f"{self._path}: damaged on line {numbers}; these runs are repeated", stacklevel=4)
        if not tail or self._take_in(len(lines) + 1, tail):
            return len(content)
        return len(content) - len(tail)

    def _take_in(self, number: int, line: bytes) -> bool:
        """Whether a line is as it was written; then its row is known."""
        match = _SEALED.fullmatch(line)
        if match is None or _sealed(match[1] + b"}") != line:
            return False
        row = json.loads(match[1] + b"}")
        names = list(row)
        parameters = names[: names.index("seed")]
        if set(parameters) != set(self._names):
            raise ValueError(
                f"path: expected a sweep over {sorted(self._names)} in {self._path}, got {sorted(parameters)} on "
                f"line {number}"
            )
        seconds, error = row.pop("seconds"), row.pop("error")
        task = Task({name: row.pop(name) for name in parameters}, row.pop("seed"))
        self._rows[_key(task)] = Row(row, seconds, error)
        return True

    def _require_checksum(self, first: bytes) -> None:
        """Refuses a file without any complete row of a sweep: it may be something else, so it is not changed."""
        row = json.loads(first) if _is_json(first) else None
        if isinstance(row, dict) and {"seed", "seconds", "error"} <= row.keys() and CHECKSUM not in row:
            raise ValueError(
                f"path: expected rows with checksums in {self._path}, got rows without, as older versions wrote them; "
                "start a new file"
            )
        raise ValueError(f"path: expected rows of a sweep in {self._path}, got another line 1")


def _sealed(line: bytes) -> bytes:
    """A JSON object with its checksum as the last entry."""
    return line[:-1] + b', "%s": "%08x"}' % (CHECKSUM.encode(), zlib.crc32(line))


def _is_half_a_line(tail: bytes) -> bool:
    """Whether this may be the beginning of a first row that was not completely written, or empty."""
    return not tail or b'{"'.startswith(tail[:2]) and not _is_json(tail)


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

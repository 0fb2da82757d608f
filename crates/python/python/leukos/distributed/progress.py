"""Shows how far a sweep has come, with tqdm where there is one."""

from __future__ import annotations

import sys
import time
from typing import Any, Self

INTERVAL = 10.0
"""Seconds between two lines, where there is no bar."""


class Progress:
    """A bar, or a line now and then, on stderr."""

    def __init__(self, total: int, shown: bool | None) -> None:
        self._total, self._done, self._failed = total, 0, 0
        self._start = self._said = time.monotonic()
        self._shown = sys.stderr.isatty() if shown is None else shown
        self._bar = _bar(total) if self._shown else None

    def skip(self, count: int) -> None:
        """So many were done earlier."""
        self._done = count
        if self._bar is not None:
            self._bar.update(count)

    def advance(self, error: str | None) -> None:
        """One more is done, or has failed."""
        self._done += 1
        self._failed += error is not None
        if self._bar is not None:
            if error is not None:
                self._bar.set_postfix(failed=self._failed)
            self._bar.update()
        elif self._shown and time.monotonic() - self._said >= INTERVAL:
            self._say()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.close()
        elif self._shown:
            self._say()

    def _say(self) -> None:
        self._said = time.monotonic()
        done = f"{self._done} of {self._total} done, {self._failed} failed"
        print(f"{done}, {self._said - self._start:.0f} s", file=sys.stderr, flush=True)


def _bar(total: int) -> Any:
    try:
        from tqdm.auto import tqdm
    except ModuleNotFoundError:
        return None
    return tqdm(total=total, file=sys.stderr)

"""Shows in a notebook how an `AdaptiveWhitener` adapts, with the drawings of `leukos live`."""

from __future__ import annotations

import asyncio
import json
import math
import re
import time
from collections import deque
from collections.abc import Sequence
from copy import copy
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal
from uuid import uuid4
from weakref import WeakSet

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

try:
    import anywidget
    import traitlets
except ModuleNotFoundError as missing:
    raise ImportError(
        "leukos.widget: expected anywidget, got none installed; pip install 'leukos[notebook]'"
    ) from missing

from ._leukos import Whitener
from .estimator import AdaptiveWhitener

__all__ = ["WhitenerWidget", "widget"]

_Doubles = NDArray[np.float64]

# As on the page of `leukos live`.
_POINTS, _CHANGES, _SHOWN, _GAINS, _TRACES, _TRACE_ROWS = 600, 64, 64, 32, 8, 256
_ROWS_PER_CHANNEL, _LEAST_ROWS = 20, 1000
"""An error is estimated over so many rows for each channel; what is shown beside it, over so many at least."""
_POINTS_PER_WINDOW = 20

_PIECES = 50
"""The error is measured so often in one call at most, up to 64 channels."""
_PAUSE = 0.2
"""Seconds between two frames: Jupyter drops messages from kernels that send more than a megabyte a second."""
_LARGEST = 1e100
"""The squares of larger numbers cannot be summed up."""


def widget(whitener: AdaptiveWhitener) -> WhitenerWidget:
    """Shows a fitted whitener in a notebook; each `adapt_transform` from now on updates what is shown.

    A notebook shows the widget that is returned where it ends a cell. There are the correlations before and the
    covariance after, the whitening error with its noise floor and with the error had nothing adapted since the widget
    was made, the gains, and the latest samples. Gains are computed at the end of a call, so calls with fewer rows show
    more of their way. Changes of context are *told* by labels or by `begin_context`, or *detected* in a call. The
    responses are the same as without a widget, to the last bit.

    Parameters
    ----------
    whitener : AdaptiveWhitener
        It holds its widgets weakly, and its copies have none.
    """
    if not isinstance(whitener, AdaptiveWhitener):
        raise ValueError(f"whitener: expected an AdaptiveWhitener, got {type(whitener).__name__}")
    check_is_fitted(whitener)
    shown = WhitenerWidget(whitener._whitener)
    whitener.__dict__.setdefault("_widgets", WeakSet()).add(shown)
    return shown


class WhitenerWidget(anywidget.AnyWidget):
    """What `leukos.widget` returns; `frame` is what it shows, as JSON in the form of a frame of `leukos live`."""

    _esm = "\n".join(Path(__file__).with_name(name).read_text("utf-8") for name in ("drawing.js", "notebook.js"))
    _css = Path(__file__).with_name("notebook.css").read_text("utf-8")
    frame = traitlets.Unicode().tag(sync=True)

    def __init__(self, engine: Whitener) -> None:
        self._stream = _Stream(engine)
        self._timer: asyncio.TimerHandle | None = None
        self._due = 0.0
        super().__init__(frame=self._stream.frame())

    # What a whitener tells its widgets.

    def fitted(self, engine: Whitener) -> None:
        """The whitener has been fitted again."""
        self._stream = _Stream(engine)
        self._show()

    def told(self, engine: Whitener) -> None:
        """A context begins."""
        self._stream.begin_context(engine)
        self._show()

    def saw(
        self, engine: Whitener, X: NDArray[Any], responses: NDArray[Any], told: Sequence[tuple[int, str]]
    ) -> None:
        """Rows were whitened; `told` has the positions at which contexts begin, and their labels."""
        # One that was closed is shown nowhere.
        if self.comm is not None:
            self._stream.see(engine, X, responses, told)
            self._show()

    def _show(self) -> None:
        """Sends a frame: now, or soon where the last one is recent and an event loop can send it later."""
        wait = self._due - time.monotonic()
        loop = _running_loop()
        if wait <= 0.0 or loop is None:
            self._publish()
        elif self._timer is None:
            self._timer = loop.call_later(wait, self._publish)

    def _publish(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        begun = time.monotonic()
        self.frame = self._stream.frame()
        now = time.monotonic()
        self._due = now + max(_PAUSE, 3.0 * (now - begun))


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


class _Stream:
    """What has been seen of a stream since a widget was made."""

    def __init__(self, engine: Whitener) -> None:
        settings, n = engine.settings(), engine.channels
        groups = [np.array(group) for group in settings["groups"] or [range(n)]]
        names = engine.channel_names
        self.run, self.sequence = uuid4().hex[:8], 0
        self.engine, self.fixed = engine, copy(engine)
        self.names = [f"channel {i}" for i in range(n)] if names is None else names
        self.window = float(max(_LEAST_ROWS, _ROWS_PER_CHANNEL * n))
        self.stride = math.ceil(self.window / _POINTS_PER_WINDOW)
        self.pieces = max(1, int(_PIECES * min(1.0, (_SHOWN / n) ** 3)))
        self.usable = min(settings["saturation"] or _LARGEST, _LARGEST)
        self.mean = engine.mean
        self.before, self.after = _Moments(n, self.window), _Moments(n, self.window)
        # Of a piece that is longer, the first rows would be forgotten at its end.
        self.longest = math.ceil(8.0 * self.window)
        self.adapted, self.unadapted = _Meter(groups), _Meter(groups)
        self.shown, self.traced = _evenly(n, _SHOWN), _evenly(n, _TRACES)
        self.traces = np.empty((2, 0, len(self.traced)))
        self.first = self.rows = self.looked = engine.samples_seen
        self.bad = np.zeros(n, dtype=np.int64)
        self.excluded_since: dict[int, int] = {}
        self.points: deque[dict[str, Any]] = deque(maxlen=_POINTS)
        self.made = 0
        self.changes: deque[dict[str, Any]] = deque(maxlen=_CHANGES)
        self.changed: int | None = None
        self.count = 0
        self.news = False
        self.groups, self.status = groups, _Status(engine.status(), groups)
        self._add_point()

    def begin_context(self, engine: Whitener, row: int | None = None, label: str = "new context") -> None:
        self.engine = engine
        self._mark(engine.samples_seen if row is None else row, "told", f"told: {label}")
        self.news = True

    def see(
        self, engine: Whitener, X: NDArray[Any], responses: NDArray[Any], told: Sequence[tuple[int, str]]
    ) -> None:
        first = engine.samples_seen - len(X)
        for position, label in told:
            self.begin_context(engine, first + position, label)
        if first != self.rows:
            # Rows in between were not shown to this widget.
            self.traces = self.traces[:, :0]
        self.engine = engine
        pieces = min(self.pieces, max(1, len(X) // self.stride))
        edges = np.linspace(0, len(X), pieces + 1).astype(int).tolist()
        for start, end in pairwise(edges):
            self._measure(X[start:end], responses[start:end])
            self.rows = first + end
            # The gains on the way are not known.
            self._add_point(gains=end == len(X))
        latest = [rows[-_TRACE_ROWS:, self.traced].astype(np.float64) for rows in (X, responses)]
        self.traces = np.concatenate([self.traces, latest], axis=1)[:, -_TRACE_ROWS:]

    def _measure(self, X: NDArray[Any], responses: NDArray[Any]) -> None:
        self.bad += np.count_nonzero(~np.isfinite(X), axis=0)
        X, responses = (rows[-self.longest :].astype(np.float64) for rows in (X, responses))
        usable = (np.abs(X) < self.usable).all(axis=1)
        if not usable.any():
            return
        X, responses = X[usable], responses[usable]
        self.before.update(X - self.mean)
        self.after.update(responses)
        self.adapted.update(responses)
        self.unadapted.update(np.asarray(self.fixed.transform(X), dtype=np.float64))

    def _add_point(self, *, gains: bool = True) -> None:
        if self.points and self.rows - self.points[-1]["row"] < self.stride:
            return
        self.made += 1
        errors = _numbers([self.adapted.error(), self.adapted.noise_floor(), self.unadapted.error()])
        values: dict[str, Any] = dict(zip(("error", "floor", "unadapted"), errors, strict=True))
        values["gains"] = _numbers(self.engine.gains[:_GAINS]) if gains else []
        self.points.append({"id": self.made, "row": self.rows, **values})

    def _mark(self, row: int, kind: Literal["told", "new"], words: str) -> None:
        self.changes.append({"row": row, "kind": kind, "words": words})
        self.changed, self.count = row, self.count + 1

    def _note_detected(self, status: _Status) -> None:
        """Marks what the whitener has found out by itself; where in the rows since the last frame is not known."""
        # A change that was told is soon detected as well, and one that is large is detected several times.
        fresh = self.changed is None or self.rows > self.changed + self.window
        if status.detected > self.status.detected and fresh and not self.news:
            self._mark(self.rows, "new", f"change of context detected in rows {self.looked} to {self.rows}")
        self.status, self.looked, self.news = status, self.rows, False

    def frame(self) -> str:
        """A frame of `leukos live`, with all that is kept."""
        self._note_detected(_Status(self.engine.status(), self.groups))
        self.sequence += 1
        kind, words = self._state()
        before, after = self.before.covariance(), self.after.second_moments()
        deviations = np.sqrt(np.maximum(before.diagonal(), 0.0))
        with np.errstate(divide="ignore", invalid="ignore"):
            correlations = before / np.outer(deviations, deviations)
        chosen = np.ix_(self.shown, self.shown)
        names = ("id", "row", "error", "floor", "unadapted", "gains")
        columns = {name: [point[name] for point in self.points] for name in names}
        frame = {
            "version": 1,
            "mode": "stream",
            "run": self.run,
            "sequence": self.sequence,
            "title": "AdaptiveWhitener",
            "model": None,
            "control": False,
            "state": {"kind": kind, "words": words},
            "rows": self.rows,
            "total_rows": None,
            "sample_rate": None,
            "behind_ms": None,
            "counts": {**self.status.counts, "changes": self.count},
            "channels": self._channels(deviations),
            "shown": self.shown,
            "before": _numbers(correlations[chosen]),
            "after": _numbers(after[chosen]),
            "points": {"first": self.points[0]["id"], **columns},
            "gains_total": self.engine.interneurons,
            "changes": list(self.changes),
            "traces": {
                "first_row": self.rows - self.traces.shape[1],
                "channels": self.traced,
                "before": [_numbers(trace) for trace in self.traces[0].T],
                "after": [_numbers(trace) for trace in self.traces[1].T],
            },
        }
        return json.dumps(frame, allow_nan=False, separators=(",", ":"))

    def _state(self) -> tuple[str, str]:
        if self.rows == self.first:
            return "waiting", "waiting for adapt_transform"
        if "waiting for samples that vary" in self.status.states:
            return "calibrating", "calibrating: estimating mean and scale from the first rows"
        so_far = f"; {self.count} change{'s' * (self.count != 1)} of context so far" if self.count else ""
        if "paused" in self.status.states:
            return "paused", f"not adapting: the map is kept as it is{so_far}"
        error, floor = self.adapted.error(), self.adapted.noise_floor()
        if math.isnan(error):
            how = "too few rows yet to tell how white"
        elif error <= 1.5 * floor:
            how = f"white up to noise{so_far}"
        else:
            how = f"error {error:.2f}, noise alone would show {floor:.2f}{so_far}"
        return "adapting", f"adapting: {how}"

    def _channels(self, deviations: _Doubles) -> list[dict[str, Any]]:
        excluded = self.status.excluded
        self.excluded_since = {i: self.excluded_since.get(i, self.rows) for i in excluded}
        shares = _numbers(self.bad / max(self.rows - self.first, 1))
        channels = []
        for i, (name, scale, bad) in enumerate(zip(self.names, _numbers(deviations), shares, strict=True)):
            state, words = "live", "live"
            if i in excluded:
                state, words = "dead", f"dead: {excluded[i]}, left out since row {self.excluded_since[i]}"
            elif i in self.status.duplicates:
                state, words = "duplicate", f"duplicate of {self.names[self.status.duplicates[i]]}"
            channels.append({"name": name, "scale": scale, "state": state, "words": words, "bad": bad})
        return channels


class _Status:
    """What the status of a whitener says, group by group, as numbers."""

    def __init__(self, text: str, groups: Sequence[NDArray[Any]]) -> None:
        aside = re.findall(r"(\d+) bad, (\d+) wild, (\d+) silent", text)
        largest = np.array(aside, dtype=np.int64).max(axis=0).tolist()
        self.counts = dict(zip(("bad", "outliers", "silent"), largest, strict=True))
        self.detected = sum(map(int, re.findall(r"(\d+) changes detected", text)))
        self.states = re.findall(r"^state +([^;]+);", text, flags=re.MULTILINE)
        self.excluded: dict[int, str] = {}
        self.duplicates: dict[int, int] = {}
        # Each group begins with its samples, and numbers its own channels.
        for group, part in zip(groups, re.split(r"^samples ", text, flags=re.MULTILINE)[1:], strict=True):
            for i, why in re.findall(r"^channel (\d+) +left out: (.*)$", part, flags=re.MULTILINE):
                self.excluded[int(group[int(i)])] = why
            for i, twin in re.findall(r"^channel (\d+) +carries .* channel (\d+)$", part, flags=re.MULTILINE):
                self.duplicates[int(group[int(i)])] = int(group[int(twin)])


class _Moments:
    """First and second moments of rows, in which a row counts e^-1 as much after `time_constant` others."""

    def __init__(self, channels: int, time_constant: float) -> None:
        self.keep = 1.0 - 1.0 / time_constant
        self.weight = self.squares = 0.0
        self.sums, self.products = np.zeros(channels), np.zeros((channels, channels))

    def update(self, rows: _Doubles) -> None:
        """Takes in rows, but not those with a number that is none or too large."""
        rows = rows[(np.abs(rows) < _LARGEST).all(axis=1)]
        weights = self.keep ** np.arange(len(rows), dtype=np.float64)[::-1]
        past = self.keep ** len(rows)
        self.weight = past * self.weight + float(weights.sum())
        self.squares = past**2 * self.squares + float((weights**2).sum())
        self.sums = past * self.sums + weights @ rows
        self.products = past * self.products + (rows * weights[:, None]).T @ rows

    def second_moments(self) -> _Doubles:
        """About zero; NaN before the first row."""
        return self.products / (self.weight or math.nan)

    def covariance(self) -> _Doubles:
        mean = self.sums / (self.weight or math.nan)
        return self.second_moments() - np.outer(mean, mean)


class _Meter:
    """Follows the whitening error of responses, group by group."""

    def __init__(self, groups: Sequence[NDArray[Any]]) -> None:
        self.groups = [(group, _Moments(len(group), _ROWS_PER_CHANNEL * len(group))) for group in groups]
        self.needed = _ROWS_PER_CHANNEL * sum(map(len, groups))
        self.seen = 0
        self.live = np.array([], dtype=bool)

    def update(self, responses: _Doubles) -> None:
        self.seen += len(responses)
        # Channels that are left out are zero.
        self.live = responses[-1] != 0.0
        for group, moments in self.groups:
            moments.update(responses[:, group])

    def error(self) -> float:
        """The largest of any group, over the channels that take part; NaN while there are too few rows."""
        if self.seen < self.needed:
            return math.nan
        errors = [math.nan]
        for group, moments in self.groups:
            live = np.flatnonzero(self.live[group])
            own = moments.second_moments()[np.ix_(live, live)]
            if len(live) > 0 and np.isfinite(own).all():
                variances = np.linalg.eigvalsh(own)
                errors.append(max(float(variances[-1]) - 1.0, 1.0 - float(variances[0])))
        return float(np.fmax.reduce(errors))

    def noise_floor(self) -> float:
        """What white responses would show as an error; NaN before the first."""
        ratios = [len(group) * own.squares / (own.weight**2 or math.nan) for group, own in self.groups]
        return max(ratio + 2.0 * math.sqrt(ratio) for ratio in ratios)


def _evenly(n: int, most: int) -> list[int]:
    """So many of the first n numbers, evenly chosen."""
    shown = min(n, most)
    return [i * n // shown for i in range(shown)]


def _numbers(values: ArrayLike) -> list[float | None]:
    """Numbers with four significant digits, enough to draw; None where there is none."""
    return [float(f"{x:.4g}") if math.isfinite(x) else None for x in np.ravel(np.asarray(values)).tolist()]

"""Draws covariances, synapses, gains and whitening errors with matplotlib.

Every function takes the Axes to draw on (`ax`; a new figure where it is None) and returns them. None shows a figure or
changes matplotlib's settings: `ax.figure.savefig("name.png")` saves, and a notebook shows by itself.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

try:
    from matplotlib import pyplot as plt
except ModuleNotFoundError as missing:
    raise ImportError(
        f'leukos.plotting: expected matplotlib to be installed, got "{missing}"; pip install "leukos[plotting]"'
    ) from missing

from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure
from matplotlib.image import AxesImage
from matplotlib.patches import Rectangle
from matplotlib.ticker import LogFormatter, MaxNLocator

__all__ = ["COLOURS", "covariances", "ellipses", "error", "filters", "gains"]

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#E69F00", "#56B4E9", "#CC79A7", "#000000")
"""The colours of Okabe and Ito, which the colour-blind can tell apart, without the yellow that white swallows."""

_GREY = "0.45"
_DIVERGING = "RdBu_r"


def ellipses(
    covariances: ArrayLike,
    ax: Axes | None = None,
    *,
    synapses: ArrayLike | None = None,
    labels: Sequence[str] | None = None,
    colours: Sequence[str] = COLOURS,
) -> Axes:
    """Draws covariances of two channels as ellipses of one standard deviation about 0.

    Parameters
    ----------
    covariances : array of shape (contexts, 2, 2), or (2, 2) for one
    ax : Axes, optional
    synapses : array of shape (2, K), optional
        W, whose columns are drawn as dashed lines through 0.
    labels : sequence of str, optional
        A name for each covariance, for a legend.
    colours : sequence of colours
        Taken in turn.
    """
    stack = _numbers("covariances", covariances)
    if stack.shape == (2, 2):
        stack = stack[np.newaxis]
    if stack.ndim != 3 or stack.shape[1:] != (2, 2):
        raise _refusal("covariances", "an array of shape (contexts, 2, 2)", stack)
    roots = [_root(f"covariances[{c}]", covariance) for c, covariance in enumerate(stack)]
    lines = None if synapses is None else _matrix("synapses", synapses, "(2, K)", rows=2)
    if labels is not None and len(labels) != len(stack):
        raise ValueError(f"labels: expected {len(stack)} of them, one for each covariance, got {len(labels)}")
    if len(colours) == 0:
        raise ValueError("colours: expected one or more, got none")

    ax = _axes(ax, (4.0, 4.0))
    turn = np.linspace(0.0, 2.0 * np.pi, 181)
    circle = np.stack([np.cos(turn), np.sin(turn)])
    for c, root in enumerate(roots):
        name = None if labels is None else labels[c]
        ax.plot(*(root @ circle), color=colours[c % len(colours)], linewidth=1.6, label=name)
    reach = 1.1 * float(np.abs(ax.dataLim.get_points()).max()) or 1.0
    for column in [] if lines is None else lines.T:
        if column.any():
            ax.axline((0.0, 0.0), tuple(column), color=_GREY, linewidth=1.0, linestyle="--", zorder=1)
    ax.set(xlim=(-reach, reach), ylim=(-reach, reach), aspect="equal")
    ax.xaxis.set_major_locator(MaxNLocator(5))
    ax.yaxis.set_major_locator(MaxNLocator(5))
    ax.set(xlabel="channel 0", ylabel="channel 1")
    if labels is not None:
        ax.legend(frameon=False)
    return ax


def filters(
    synapses: ArrayLike, shape: tuple[int, int], ax: Axes | None = None, *, columns: int | None = None
) -> Axes:
    """Draws each column of W as an image, all on one scale, row after row of a grid.

    Parameters
    ----------
    synapses : array of shape (N, K)
    shape : pair of ints
        Height and width of an image, N = height * width; pixels are in C order.
    ax : Axes, optional
    columns : int, optional
        Images in a row of the grid; about as many as rows by default.
    """
    if len(shape) != 2 or min(shape) < 1:
        raise ValueError(f"shape: expected a height and a width of 1 or more, got {tuple(shape)}")
    height, width = shape
    weights = _matrix("synapses", synapses, f"({height * width}, K)", rows=height * width)
    if columns is not None and columns < 1:
        raise ValueError(f"columns: expected 1 or more, got {columns}")

    count = weights.shape[1]
    across = columns or math.ceil(math.sqrt(count * height / width))
    down, gap = math.ceil(count / across), 0.15 * max(shape)
    size = (across * (width + gap), down * (height + gap))
    inch = min(5.0 / max(size), 0.4)
    ax = _axes(ax, (size[0] * inch + 1.2, size[1] * inch + 0.4))
    limit = _limit(weights)
    for k, column in enumerate(weights.T):
        left, top = (k % across) * (width + gap), (k // across) * (height + gap)
        corners = (left, left + width, top + height, top)
        image = ax.imshow(column.reshape(shape), _DIVERGING, vmin=-limit, vmax=limit, extent=corners)
        ax.add_patch(Rectangle((left, top), width, height, fill=False, edgecolor=_GREY, linewidth=0.5))
    ax.set_xlim(-gap / 2, size[0] - gap / 2)
    ax.set_ylim(size[1] - gap / 2, -gap / 2)
    ax.set_axis_off()
    _figure(ax).colorbar(image, ax=ax, label="weight", fraction=0.05, pad=0.03)
    return ax


def gains(
    gains: ArrayLike,
    ax: Axes | None = None,
    *,
    every: int = 1,
    sample_rate: float | None = None,
    changes: ArrayLike | None = None,
) -> Axes:
    """Draws gains over samples.

    Parameters
    ----------
    gains : array of shape (steps, K)
        As `run_online(..., record=["gains"]).trace["gains"]`.
    ax : Axes, optional
    every : int
        Samples from one step to the next.
    sample_rate : float, optional
        Samples a second, for an axis in seconds.
    changes : array of shape (changes,), optional
        The samples at which a context begins, which thin lines mark.
    """
    trace = _matrix("gains", gains, "(steps, K)")
    times, starts, unit = _times(len(trace), every, sample_rate, changes)

    ax = _axes(ax, (6.0, 3.0))
    for k, gain in enumerate(trace.T):
        style = ("-", "--", ":")[k // len(COLOURS) % 3]
        ax.plot(times, gain, color=COLOURS[k % len(COLOURS)], linestyle=style, linewidth=1.2, label=f"{k}")
    _mark(ax, starts)
    ax.set_xlabel(unit)
    ax.set_ylabel("gain")
    if trace.shape[1] <= 2 * len(COLOURS):
        ax.legend(title="interneuron", loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False)
    return ax


def error(
    errors: ArrayLike,
    ax: Axes | None = None,
    *,
    every: int = 1,
    sample_rate: float | None = None,
    changes: ArrayLike | None = None,
    median: int | None = None,
    label: str | None = None,
    colour: str | None = None,
) -> Axes:
    """Draws the whitening error over samples, on a logarithmic axis; call it again with the same Axes to compare.

    Parameters
    ----------
    errors : array of shape (steps,)
    ax : Axes, optional
    every, sample_rate, changes
        As for `gains`.
    median : int, optional
        Draws the running median over this many steps too, and the errors themselves faintly.
    label : str, optional
        A name for a legend.
    colour : colour, optional
        The first of `COLOURS` that the Axes do not show yet, by default.
    """
    values = _numbers("errors", errors)
    if values.ndim != 1 or len(values) == 0:
        raise _refusal("errors", "an array of shape (steps,)", values)
    if (values < 0.0).any():
        raise ValueError(f"errors: expected no negative number, got {values.min()}")
    if median is not None and median < 1:
        raise ValueError(f"median: expected 1 step or more, got {median}")
    times, starts, unit = _times(len(values), every, sample_rate, changes)

    ax = _axes(ax, (6.0, 3.0))
    colour = colour or _fresh_colour(ax)
    if median is not None:
        ax.plot(times, values, color=colour, linewidth=0.8, alpha=0.35)
        values = _running_median(values, median)
    ax.plot(times, values, color=colour, linewidth=1.6, label=label)
    _mark(ax, starts)
    ax.set_yscale("log")
    ax.yaxis.set_major_formatter(_PlainNumbers())
    ax.yaxis.set_minor_formatter(_PlainNumbers(minor_thresholds=(1.0, 0.4)))
    ax.set_xlabel(unit)
    ax.set_ylabel("whitening error")
    if label is not None:
        ax.legend(frameon=False)
    return ax


def covariances(
    before: ArrayLike,
    after: ArrayLike,
    axes: Sequence[Axes] | None = None,
    *,
    kind: Literal["covariance", "correlation"] = "covariance",
    names: Sequence[str] | None = None,
) -> Figure | SubFigure:
    """Draws two covariances side by side as images, in the same colours, with white for 0.

    Parameters
    ----------
    before, after : arrays of shape (N, N)
        Covariances, of stimuli and of responses.
    axes : pair of Axes, optional
    kind : "covariance" or "correlation"
        Whether they are drawn as they are, or divided by standard deviations.
    names : sequence of str, optional
        The names of the channels.

    Returns the figure.
    """
    if kind not in ("covariance", "correlation"):
        raise ValueError(f'kind: expected "covariance" or "correlation", got {kind!r}')
    pair = [_square("before", before), _square("after", after)]
    if pair[0].shape != pair[1].shape:
        raise _refusal("after", f"an array of shape {pair[0].shape} as before", pair[1])
    if names is not None and len(names) != len(pair[0]):
        raise ValueError(f"names: expected {len(pair[0])} of them, one for each channel, got {len(names)}")
    if kind == "correlation":
        pair = [_correlation(name, matrix) for name, matrix in zip(("before", "after"), pair, strict=True)]
    if axes is None:
        axes = list(plt.subplots(1, 2, figsize=(7.0, 2.9), layout="constrained")[1])
    if len(axes) != 2:
        raise ValueError(f"axes: expected a pair of Axes, got {len(axes)}")

    limit = max(_limit(matrix) for matrix in pair)
    for ax, title, matrix in zip(axes, ("before", "after"), pair, strict=True):
        image = _draw_matrix(ax, matrix, limit, names)
        ax.set_title(title)
    figure = _figure(axes[0])
    figure.colorbar(image, ax=list(axes), label=kind)
    return figure


class _PlainNumbers(LogFormatter):
    """Writes 0.1 where matplotlib writes a power of ten, at the ticks that it would label."""

    def __call__(self, x: float, pos: int | None = None) -> str:
        return f"{x:g}" if super().__call__(x, pos) else ""


def _draw_matrix(ax: Axes, matrix: NDArray[np.float64], limit: float, names: Sequence[str] | None) -> AxesImage:
    image = ax.imshow(matrix, _DIVERGING, vmin=-limit, vmax=limit)
    if names is None:
        ax.set(xlabel="channel", ylabel="channel")
    else:
        ax.set_xticks(range(len(names)), names, rotation=90)
        ax.set_yticks(range(len(names)), names)
    if names is None and len(matrix) <= 12:
        ax.set(xticks=range(len(matrix)), yticks=range(len(matrix)))
    return image


def _axes(ax: Axes | None, size: tuple[float, float]) -> Axes:
    if ax is not None:
        return ax
    new: Axes = plt.subplots(figsize=size, layout="constrained")[1]
    new.spines[["top", "right"]].set_visible(False)
    return new


def _figure(ax: Axes) -> Figure | SubFigure:
    figure = ax.figure
    assert figure is not None, "Axes that were taken off their figure"
    return figure


def _mark(ax: Axes, starts: NDArray[np.float64]) -> None:
    ax.vlines(starts, 0.0, 1.0, colors="0.75", linewidth=0.6, transform=ax.get_xaxis_transform(), zorder=0)


def _fresh_colour(ax: Axes) -> str:
    shown = {line.get_color() for line in ax.lines}
    return next((colour for colour in COLOURS if colour not in shown), COLOURS[len(ax.lines) % len(COLOURS)])


def _running_median(values: NDArray[np.float64], window: int) -> NDArray[np.float64]:
    """The median of `window` steps about each, of fewer at the ends."""
    halves = (window - 1) // 2, window // 2
    about = [values[max(0, i - halves[0]) : i + halves[1] + 1] for i in range(len(values))]
    return np.array([np.median(own) for own in about])


def _times(
    steps: int, every: int, sample_rate: float | None, changes: ArrayLike | None
) -> tuple[NDArray[np.float64], NDArray[np.float64], str]:
    """Where steps and changes of context lie on the axis, and what the axis counts."""
    if every < 1:
        raise ValueError(f"every: expected 1 sample or more, got {every}")
    if sample_rate is not None and not 0.0 < sample_rate < math.inf:
        raise ValueError(f"sample_rate: expected a positive number, got {sample_rate}")
    starts = _numbers("changes", [] if changes is None else changes)
    if starts.ndim != 1:
        raise _refusal("changes", "an array of shape (changes,)", starts)
    rate = 1.0 if sample_rate is None else sample_rate
    return np.arange(steps) * every / rate, starts / rate, "sample" if sample_rate is None else "time (s)"


def _numbers(name: str, values: ArrayLike) -> NDArray[np.float64]:
    array: NDArray[Any] = np.asarray(values)
    if array.dtype.kind not in "fiub":
        raise ValueError(f"{name}: expected an array of real numbers, got one of {array.dtype}")
    array = array.astype(np.float64)
    if not np.isfinite(array).all():
        place = tuple(int(i) for i in np.argwhere(~np.isfinite(array))[0])
        raise ValueError(f"{name}: expected finite numbers, got {array[place]} at {place}")
    return array


def _matrix(name: str, values: ArrayLike, shape: str, rows: int | None = None) -> NDArray[np.float64]:
    matrix = _numbers(name, values)
    if matrix.ndim != 2 or matrix.size == 0 or rows not in (None, len(matrix)):
        raise _refusal(name, f"an array of shape {shape}", matrix)
    return matrix


def _square(name: str, values: ArrayLike) -> NDArray[np.float64]:
    matrix = _matrix(name, values, "(N, N)")
    if matrix.shape[0] != matrix.shape[1]:
        raise _refusal(name, "an array of shape (N, N)", matrix)
    return matrix


def _root(name: str, covariance: NDArray[np.float64]) -> NDArray[np.float64]:
    """A square root, also of a covariance without full rank."""
    if not np.allclose(covariance, covariance.T, rtol=1e-6):
        raise ValueError(f"{name}: expected a symmetric matrix, got {covariance.tolist()}")
    variances, directions = np.linalg.eigh(covariance)
    if variances[0] < -1e-9 * abs(variances[-1]):
        raise ValueError(f"{name}: expected no negative eigenvalue, got {variances[0]}")
    return np.asarray(directions * np.sqrt(np.maximum(variances, 0.0)))


def _correlation(name: str, covariance: NDArray[np.float64]) -> NDArray[np.float64]:
    variances = covariance.diagonal()
    if (variances <= 0.0).any():
        raise ValueError(f"{name}: expected positive variances, got {variances.min()}")
    return covariance / np.sqrt(np.outer(variances, variances))


def _limit(values: NDArray[np.float64]) -> float:
    """The end of a scale about 0; an arbitrary one if there are only zeros."""
    return float(np.abs(values).max()) or 1.0


def _refusal(name: str, expected: str, got: NDArray[Any]) -> ValueError:
    return ValueError(f"{name}: expected {expected}, got shape {got.shape}")

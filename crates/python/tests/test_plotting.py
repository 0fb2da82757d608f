"""Draws with each function of leukos.plotting, and hands each what it must refuse."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")

from matplotlib import pyplot as plt  # noqa: E402
from matplotlib.colors import to_hex  # noqa: E402

from leukos import plotting  # noqa: E402

SQUARE = np.array([[4.0, 1.0], [1.0, 2.0]])


@pytest.fixture(autouse=True)
def settings_stay() -> Iterator[None]:
    """No function changes matplotlib's settings, and every figure can be drawn."""
    before = dict(matplotlib.rcParams)
    yield
    assert dict(matplotlib.rcParams) == before
    for number in plt.get_fignums():
        plt.figure(number).canvas.draw()
    plt.close("all")


def test_an_ellipse_is_one_standard_deviation_wide() -> None:
    ax = plotting.ellipses([SQUARE, np.eye(2)], labels=["C", "white"])
    assert len(ax.lines) == 2
    x, y = ax.lines[0].get_data()
    # Points of the ellipse are where p' C^-1 p = 1, and its extent along a channel is that channel's deviation.
    points = np.stack([x, y])
    np.testing.assert_allclose((points * np.linalg.solve(SQUARE, points)).sum(axis=0), 1.0)
    assert np.max(x) == pytest.approx(2.0, rel=1e-3)
    assert np.max(y) == pytest.approx(np.sqrt(2.0), rel=1e-3)
    assert ax.get_aspect() == 1.0
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["C", "white"]
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("channel 0", "channel 1")


def test_ellipses_take_one_covariance_of_any_rank_and_draw_synapses_over_it() -> None:
    own = plt.subplots()[1]
    ax = plotting.ellipses(np.ones((2, 2)), own, synapses=[[1.0, 0.0, 0.0], [0.0, 2.0, 0.0]])
    assert ax is own
    # One ellipse, and a line for each column that points somewhere.
    assert len(ax.lines) == 3
    assert ax.get_xlim() == ax.get_ylim() == pytest.approx((-1.1, 1.1))
    assert np.isfinite(plotting.ellipses(np.zeros((2, 2))).get_xlim()).all()


@pytest.mark.parametrize(("shape", "count"), [((3, 4), 5), ((1, 16), 16), ((8, 1), 1)])
def test_filters_show_each_column_on_one_scale_about_zero(shape: tuple[int, int], count: int) -> None:
    synapses = np.random.default_rng(0).normal(size=(shape[0] * shape[1], count))
    ax = plotting.filters(synapses, shape)
    assert len(ax.images) == count
    for image, column in zip(ax.images, synapses.T, strict=True):
        np.testing.assert_array_equal(image.get_array(), column.reshape(shape))
        assert image.get_clim() == pytest.approx((-np.abs(synapses).max(), np.abs(synapses).max()))
    # None lies on another, or outside.
    boxes = [image.get_extent() for image in ax.images]
    assert len({(left, top) for left, _, _, top in boxes}) == count
    assert max(right for _, right, _, _ in boxes) < ax.get_xlim()[1]
    assert max(bottom for _, _, bottom, _ in boxes) < ax.get_ylim()[0]


def test_filters_stand_in_as_many_columns_as_asked_for() -> None:
    ax = plotting.filters(np.eye(4), (2, 2), columns=1)
    assert {image.get_extent()[0] for image in ax.images} == {0.0}
    assert plotting.filters(np.zeros((4, 2)), (2, 2)).images[0].get_clim() == (-1.0, 1.0)


def test_gains_are_drawn_over_samples_or_seconds() -> None:
    trace = np.arange(20.0).reshape(10, 2)
    ax = plotting.gains(trace, every=50)
    np.testing.assert_array_equal(ax.lines[1].get_xdata(), np.arange(0, 500, 50))
    np.testing.assert_array_equal(ax.lines[1].get_ydata(), trace[:, 1])
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("sample", "gain")
    seconds = plotting.gains(trace, every=50, sample_rate=100.0, changes=[200])
    assert seconds.get_xlabel() == "time (s)"
    assert seconds.lines[0].get_xdata()[-1] == 4.5
    [mark] = seconds.collections
    assert [segment[0][0] for segment in mark.get_segments()] == [2.0]


def test_many_gains_have_lines_that_differ_and_no_legend() -> None:
    ax = plotting.gains(np.zeros((3, 15)))
    assert ax.get_legend() is None
    assert len({(line.get_color(), line.get_linestyle()) for line in ax.lines}) == 15


def test_errors_have_a_logarithmic_axis_and_colours_of_their_own() -> None:
    ax = plotting.error([1.0, 0.5, 0.1], label="one")
    assert plotting.error([2.0, 0.2, 0.0], ax, label="two", changes=[1]) is ax
    assert ax.get_yscale() == "log"
    assert [line.get_color() for line in ax.lines] == list(plotting.COLOURS[:2])
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["one", "two"]
    assert plotting.error([1.0], colour="#123456").lines[0].get_color() == "#123456"
    ax.figure.canvas.draw()
    labels = [tick.get_text() for tick in ax.get_yticklabels()]
    assert "0.1" in labels
    assert not any("e" in label for label in labels)


@pytest.mark.parametrize(("window", "expected"), [(1, [3, 1, 9, 2, 4]), (3, [2, 3, 2, 4, 3]), (9, [3, 3, 3, 3, 3])])
def test_the_running_median_is_that_of_the_steps_about_each(window: int, expected: list[float]) -> None:
    ax = plotting.error([3.0, 1.0, 9.0, 2.0, 4.0], median=window)
    faint, bold = ax.lines
    np.testing.assert_array_equal(faint.get_ydata(), [3, 1, 9, 2, 4])
    np.testing.assert_array_equal(bold.get_ydata(), expected)
    assert faint.get_color() == bold.get_color()


def test_covariances_share_one_scale_with_white_for_zero() -> None:
    figure = plotting.covariances(SQUARE, -SQUARE / 2, names=["a", "b"])
    before, after, bar = figure.axes
    for ax, matrix in ((before, SQUARE), (after, -SQUARE / 2)):
        np.testing.assert_array_equal(ax.images[0].get_array(), matrix)
        assert ax.images[0].get_clim() == (-4.0, 4.0)
    red, green, blue, _ = before.images[0].to_rgba(0.0)
    assert min(red, green, blue) > 0.95
    assert (before.get_title(), after.get_title(), bar.get_ylabel()) == ("before", "after", "covariance")
    assert [tick.get_text() for tick in before.get_xticklabels()] == ["a", "b"]


def test_covariances_become_correlations_on_axes_that_are_given() -> None:
    figure, axes = plt.subplots(1, 2)
    assert plotting.covariances(SQUARE, np.eye(2), axes, kind="correlation") is figure
    expected = [[1.0, 1.0 / np.sqrt(8.0)], [1.0 / np.sqrt(8.0), 1.0]]
    np.testing.assert_allclose(axes[0].images[0].get_array(), expected)


def test_colours_are_those_of_okabe_and_ito() -> None:
    assert len(set(plotting.COLOURS)) == 7
    assert all(to_hex(colour).upper() == colour for colour in plotting.COLOURS)


REFUSED: list[tuple[Callable[[], Any], str]] = [
    (
        lambda: plotting.ellipses(np.eye(3)),
        "covariances: expected an array of shape (contexts, 2, 2), got shape (3, 3)",
    ),
    (
        lambda: plotting.ellipses([["a", "b"], ["c", "d"]]),
        "covariances: expected an array of real numbers, got one of <U1",
    ),
    (lambda: plotting.ellipses([[1.0, np.nan], [0.0, 1.0]]), "covariances: expected finite numbers, got nan at (0, 1)"),
    (
        lambda: plotting.ellipses([[1, 2], [0, 1]]),
        "covariances[0]: expected a symmetric matrix, got [[1.0, 2.0], [0.0, 1.0]]",
    ),
    (lambda: plotting.ellipses(np.diag([1.0, -2.0])), "covariances[0]: expected no negative eigenvalue, got -2.0"),
    (
        lambda: plotting.ellipses(SQUARE, synapses=np.eye(3)),
        "synapses: expected an array of shape (2, K), got shape (3, 3)",
    ),
    (
        lambda: plotting.ellipses(SQUARE, labels=["a", "b"]),
        "labels: expected 1 of them, one for each covariance, got 2",
    ),
    (lambda: plotting.ellipses(SQUARE, colours=[]), "colours: expected one or more, got none"),
    (lambda: plotting.filters(np.eye(5), (2, 3)), "synapses: expected an array of shape (6, K), got shape (5, 5)"),
    (lambda: plotting.filters(np.eye(4), (0, 4)), "shape: expected a height and a width of 1 or more, got (0, 4)"),
    (lambda: plotting.filters(np.eye(4), (2, 2), columns=0), "columns: expected 1 or more, got 0"),
    (
        lambda: plotting.filters(np.zeros((4, 0)), (2, 2)),
        "synapses: expected an array of shape (4, K), got shape (4, 0)",
    ),
    (lambda: plotting.gains([1.0, 2.0]), "gains: expected an array of shape (steps, K), got shape (2,)"),
    (lambda: plotting.gains([[1.0]], every=0), "every: expected 1 sample or more, got 0"),
    (lambda: plotting.gains([[1.0]], sample_rate=-1.0), "sample_rate: expected a positive number, got -1.0"),
    (
        lambda: plotting.gains([[1.0]], changes=[[1]]),
        "changes: expected an array of shape (changes,), got shape (1, 1)",
    ),
    (lambda: plotting.error([[1.0]]), "errors: expected an array of shape (steps,), got shape (1, 1)"),
    (lambda: plotting.error([]), "errors: expected an array of shape (steps,), got shape (0,)"),
    (lambda: plotting.error([1.0, -1.0]), "errors: expected no negative number, got -1.0"),
    (lambda: plotting.error([1.0], median=0), "median: expected 1 step or more, got 0"),
    (
        lambda: plotting.covariances(np.ones((2, 3)), SQUARE),
        "before: expected an array of shape (N, N), got shape (2, 3)",
    ),
    (
        lambda: plotting.covariances(SQUARE, np.eye(3)),
        "after: expected an array of shape (2, 2) as before, got shape (3, 3)",
    ),
    (
        lambda: plotting.covariances(SQUARE, SQUARE, kind="both"),  # type: ignore[arg-type]
        "kind: expected \"covariance\" or \"correlation\", got 'both'",
    ),
    (
        lambda: plotting.covariances(SQUARE, np.zeros((2, 2)), kind="correlation"),
        "after: expected positive variances, got 0.0",
    ),
    (
        lambda: plotting.covariances(SQUARE, SQUARE, names=["a"]),
        "names: expected 2 of them, one for each channel, got 1",
    ),
    (lambda: plotting.covariances(SQUARE, SQUARE, [plt.subplots()[1]]), "axes: expected a pair of Axes, got 1"),
]


@pytest.mark.parametrize(("call", "message"), REFUSED, ids=[message for _, message in REFUSED])
def test_wrong_input_is_refused_by_name(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        call()


def test_without_matplotlib_the_import_says_what_to_install() -> None:
    code = "import sys; sys.modules['matplotlib'] = None; import leukos; leukos.plotting"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode != 0
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith("ImportError: leukos.plotting")
    assert 'pip install "leukos[plotting]"' in last

"""Feeds widgets by `adapt_transform`, without a notebook, and draws one in a browser where there is one."""

from __future__ import annotations

import asyncio
import copy
import gc
import importlib.util
import json
import pickle
import subprocess
import sys
import threading
import weakref
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("anywidget")

from sklearn.base import clone  # noqa: E402
from sklearn.exceptions import NotFittedError  # noqa: E402

import leukos  # noqa: E402
from leukos import AdaptiveWhitener, notebook  # noqa: E402

LAB = Path(__file__).parents[2] / "lab"
CHANNELS = 4
WINDOW = 1000.0
"""Over how many rows the matrices of so few channels are measured; there are twenty points in as many."""


def samples(rows: int, *, seed: int = 0, louder: float = 1.0, channels: int = CHANNELS) -> np.ndarray:
    mixing = np.eye(channels) + 0.5 * np.tri(channels)
    return louder * np.random.default_rng(seed).normal(size=(rows, channels)) @ mixing + 3.0


@pytest.fixture
def whitener() -> AdaptiveWhitener:
    return AdaptiveWhitener(bad_samples="mark").fit(samples(5000))


@pytest.fixture(autouse=True)
def close_all() -> Iterator[None]:
    yield
    # ipywidgets keeps widgets until they are closed.
    notebook.anywidget.AnyWidget.close_all()


def frame_of(widget: Any) -> dict[str, Any]:
    """The frame, as a browser would read it: NaN and Infinity are no JSON."""
    frame = json.loads(widget.frame, parse_constant=lambda word: pytest.fail(f"{word} in a frame"))
    assert isinstance(frame, dict)
    check_form(frame)
    return frame


def check_form(frame: dict[str, Any]) -> None:
    """What the drawing module and the page rely on."""
    assert (frame["version"], frame["mode"], frame["control"], frame["model"]) == (1, "stream", False, None)
    assert frame["state"]["kind"] in ("waiting", "calibrating", "adapting", "paused")
    assert set(frame["counts"]) == {"bad", "outliers", "silent", "changes"}
    assert all(set(channel) == {"name", "scale", "state", "words", "bad"} for channel in frame["channels"])
    size = len(frame["shown"])
    assert size == min(64, len(frame["channels"]))
    assert len(frame["before"]) == len(frame["after"]) == size**2
    points = frame["points"]
    assert points["first"] == points["id"][0]
    assert np.all(np.diff(points["id"]) == 1)
    assert np.all(np.diff(points["row"]) > 0)
    columns = {name: len(points[name]) for name in ("id", "row", "error", "floor", "unadapted", "gains")}
    assert len(set(columns.values())) == 1 and columns["id"] <= 600
    # Gains are those at the ends of calls.
    assert {len(gains) for gains in points["gains"]} <= {0, min(32, frame["gains_total"])}
    assert len(frame["changes"]) <= 64
    traces = frame["traces"]
    assert len(traces["channels"]) == len(traces["before"]) == len(traces["after"]) <= 8
    assert len({len(trace) for side in ("before", "after") for trace in traces[side]}) == 1
    assert len(traces["before"][0]) <= 256
    assert traces["first_row"] == frame["rows"] - len(traces["before"][0])


def test_a_widget_begins_with_what_is_known(whitener: AdaptiveWhitener) -> None:
    frame = frame_of(leukos.widget(whitener))
    assert frame["state"] == {"kind": "waiting", "words": "waiting for adapt_transform"}
    assert (frame["rows"], frame["changes"], frame["counts"]["changes"]) == (0, [], 0)
    assert frame["before"] == frame["after"] == [None] * CHANNELS**2
    assert [channel["name"] for channel in frame["channels"]] == [f"channel {i}" for i in range(CHANNELS)]
    np.testing.assert_allclose(frame["points"]["gains"], [whitener.gains_], rtol=1e-3)
    assert frame["points"]["error"] == frame["points"]["unadapted"] == frame["points"]["floor"] == [None]


def test_a_frame_tells_what_numpy_finds(whitener: AdaptiveWhitener) -> None:
    widget = leukos.widget(whitener)
    fixed = copy.deepcopy(whitener)
    X = samples(4000, seed=1, louder=2.0)
    responses = whitener.adapt_transform(X)
    frame = frame_of(widget)
    assert (frame["rows"], frame["sequence"], frame["gains_total"]) == (4000, 2, CHANNELS)
    assert frame["state"]["kind"] == "adapting"
    np.testing.assert_allclose(frame["points"]["gains"][-1], whitener.gains_, rtol=1e-3)

    # Rows count as in a running mean, e^-1 as much after so many others; four digits are kept.
    def weighted(rows: np.ndarray, time_constant: float, mean: np.ndarray | float) -> np.ndarray:
        weights = (1.0 - 1.0 / time_constant) ** np.arange(len(rows))[::-1]
        return np.asarray(np.cov(rows.T - np.reshape(mean, (-1, 1)), aweights=weights, bias=True))

    covariance = weighted(X, WINDOW, X.mean(axis=0))
    deviations = np.sqrt(covariance.diagonal())
    np.testing.assert_allclose(
        np.reshape(frame["before"], (CHANNELS, CHANNELS)), covariance / np.outer(deviations, deviations), atol=1e-3
    )
    np.testing.assert_allclose([channel["scale"] for channel in frame["channels"]], deviations, rtol=1e-3)

    def second_moments(rows: np.ndarray, time_constant: float) -> np.ndarray:
        weights = (1.0 - 1.0 / time_constant) ** np.arange(len(rows))[::-1]
        return np.asarray((rows * weights[:, None]).T @ rows / weights.sum())

    after = np.reshape(frame["after"], (CHANNELS, CHANNELS))
    np.testing.assert_allclose(after, second_moments(responses, WINDOW), atol=1e-3)
    for name, rows in (("error", responses), ("unadapted", fixed.transform(X))):
        expected = np.linalg.norm(second_moments(rows, 20.0 * CHANNELS) - np.eye(CHANNELS), 2)
        assert frame["points"][name][-1] == pytest.approx(expected, rel=1e-3)
    ratio = CHANNELS / (2 * 20.0 * CHANNELS - 1)
    assert frame["points"]["floor"][-1] == pytest.approx(ratio + 2 * np.sqrt(ratio), rel=1e-3)
    # Louder by two, so variances are four times too large unless something adapts.
    assert frame["points"]["unadapted"][-1] > 2.0 > 1.0 > frame["points"]["error"][-1]
    np.testing.assert_allclose(frame["traces"]["before"], X[-256:].T, rtol=1e-3)
    np.testing.assert_allclose(frame["traces"]["after"], responses[-256:].T, rtol=1e-3)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("rows", [1, 7, 100, 3000])
def test_responses_are_those_without_a_widget(whitener: AdaptiveWhitener, dtype: type, rows: int) -> None:
    alone = copy.deepcopy(whitener)
    widgets = [leukos.widget(whitener), leukos.widget(whitener)]
    X = samples(3000, seed=2).astype(dtype)
    X[17, 1], X[30] = np.nan, 1e30
    labels = np.repeat(["a", "b", "a"], 1000)
    before = X.copy()
    for start in range(0, len(X), rows):
        block = slice(start, start + rows)
        shown, unseen = (each.adapt_transform(X[block], contexts=labels[block]) for each in (whitener, alone))
        assert shown.dtype == unseen.dtype and shown.tobytes() == unseen.tobytes()
        if rows == 1 and start > 300:
            break
    assert X.tobytes() == before.tobytes()
    assert whitener._whitener.to_checkpoint() == alone._whitener.to_checkpoint()
    first, second = map(frame_of, widgets)
    assert first.pop("run") != second.pop("run")
    assert first == second


def test_calls_of_any_size_show_the_same(whitener: AdaptiveWhitener) -> None:
    other = copy.deepcopy(whitener)
    once, often = leukos.widget(whitener), leukos.widget(other)
    X = samples(10_000, seed=3)
    whitener.adapt_transform(X)
    for rows in np.split(X, 400):
        other.adapt_transform(rows)
    one, many = frame_of(once), frame_of(often)
    # One call is measured in 50 pieces, calls of 25 rows each twentieth of the window; and one is at the start.
    assert (len(one["points"]["id"]), len(many["points"]["id"])) == (51, 201)
    for name in ("traces", "rows", "state"):
        assert one[name] == many[name]
    for name in ("before", "after"):
        # But for the order in which they are summed up.
        np.testing.assert_allclose(one[name], many[name], atol=2e-4)
    at = {row: error for row, error in zip(many["points"]["row"], many["points"]["error"], strict=True)}
    common = [(one["points"]["error"][i], at[row]) for i, row in enumerate(one["points"]["row"]) if at.get(row)]
    assert len(common) > 20
    np.testing.assert_allclose(*np.transpose(common), rtol=1e-2)


def test_changes_are_told_or_detected() -> None:
    rng = np.random.default_rng(4)
    turns = [np.linalg.qr(rng.normal(size=(CHANNELS, CHANNELS)))[0] * np.geomspace(3.0, 0.02, 4) for _ in range(2)]
    parts = [rng.normal(size=(3000, CHANNELS)) @ turn.T for turn in turns]
    X, labels = np.concatenate(parts), np.repeat(["forest", "meadow"], 3000)
    whitener, detecting = AdaptiveWhitener().fit(X, contexts=labels), AdaptiveWhitener().fit(parts[0])
    told, detected = leukos.widget(whitener), leukos.widget(detecting)
    whitener.adapt_transform(X, contexts=labels)
    assert frame_of(told)["changes"] == [{"row": 3000, "kind": "told", "words": "told: meadow"}]
    whitener.begin_context()
    assert frame_of(told)["changes"][1:] == [{"row": 6000, "kind": "told", "words": "told: new context"}]
    assert frame_of(told)["counts"]["changes"] == 2
    assert frame_of(told)["state"]["words"].endswith("2 changes of context so far")

    for block in np.split(X, 24):
        detecting.adapt_transform(block)
    assert detecting.changes_ >= 1 and f" {detecting.changes_} changes detected" in detecting.status()
    change, *_ = frame_of(detected)["changes"]
    assert change["kind"] == "new"
    row = change["row"]
    assert 3000 < row <= 4500
    assert change["words"] == f"change of context detected in rows {row - 250} to {row}"


def test_bad_samples_dead_channels_and_groups() -> None:
    X = samples(6000, channels=5)
    X[:, 4] = X[:, 3]
    settings: dict[str, Any] = {"bad_samples": "mark", "saturation": 100.0}
    whitener = AdaptiveWhitener(groups=[[0, 2], [1, 3, 4]], **settings).fit(X)
    widget = leukos.widget(whitener)
    X[10, 0], X[11, 1], X[12] = np.nan, 1e6, np.inf
    X[1000:, 2] = 7.0
    whitener.adapt_transform(X)
    frame = frame_of(widget)
    assert frame["counts"]["bad"] == 2 and "bad" in whitener.status()
    states = [channel["state"] for channel in frame["channels"]]
    assert states == ["live", "live", "dead", "live", "duplicate"], whitener.status()
    assert frame["channels"][2]["words"] == "dead: does not vary, left out since row 6000"
    assert frame["channels"][4]["words"] == "duplicate of channel 3"
    assert [channel["bad"] for channel in frame["channels"]] == pytest.approx([2 / 6000] + [1 / 6000] * 4, rel=1e-3)
    assert frame["traces"]["after"][2] == [0.0] * 256


def test_a_channel_that_is_left_out_is_no_error(whitener: AdaptiveWhitener) -> None:
    widget = leukos.widget(whitener)
    X = samples(6000)
    X[1000:, 2] = 7.0
    whitener.adapt_transform(X)
    # It answers with 0: with it the error would be 1.
    assert frame_of(widget)["points"]["error"][-1] < 0.9


def test_what_is_kept_is_bounded(whitener: AdaptiveWhitener) -> None:
    widget = leukos.widget(whitener)
    X = samples(8000, seed=5)
    whitener.adapt_transform(X, contexts=np.arange(len(X)) // 50)
    for block in np.split(np.tile(X, (4, 1)), 640):
        whitener.adapt_transform(block)
    frame = frame_of(widget)
    assert len(frame["points"]["id"]) == 600 and frame["points"]["first"] > 1
    assert len(frame["changes"]) == 64 and frame["counts"]["changes"] >= 159
    wide = AdaptiveWhitener().fit(samples(2000, channels=130))
    shown = leukos.widget(wide)
    wide.adapt_transform(samples(3000, channels=130))
    frame = frame_of(shown)
    assert len(frame["channels"]) == 130 and frame["gains_total"] == 130
    assert frame["shown"][:3] == [0, 2, 4] and frame["traces"]["channels"][:2] == [0, 16]
    assert len(shown.frame) < 400_000


def test_copies_have_no_widgets(whitener: AdaptiveWhitener) -> None:
    widget = leukos.widget(whitener)
    X = samples(100)
    for made in (copy.copy, copy.deepcopy, lambda each: pickle.loads(pickle.dumps(each)), clone):
        twin = made(whitener)
        assert "_widgets" not in twin.__dict__
        if made is not clone:
            assert twin.adapt_transform(X).tobytes() == copy.deepcopy(whitener).adapt_transform(X).tobytes()
    assert frame_of(widget)["rows"] == 0
    assert "_widgets" not in whitener.__getstate__()
    whitener.adapt_transform(X)
    assert frame_of(widget)["rows"] == 100


def test_a_widget_that_is_gone_is_forgotten(whitener: AdaptiveWhitener) -> None:
    widget, other = leukos.widget(whitener), leukos.widget(whitener)
    assert len(whitener._widgets) == 2
    widget.close()
    old = widget.frame
    whitener.adapt_transform(samples(100))
    assert widget.frame == old and frame_of(other)["rows"] == 100
    del widget
    gc.collect()
    assert list(whitener._widgets) == [other]
    whitener.adapt_transform(samples(100))
    assert frame_of(other)["rows"] == 200


def test_a_widget_keeps_no_whitener(whitener: AdaptiveWhitener) -> None:
    own = copy.deepcopy(whitener)
    widget = leukos.widget(own)
    own.adapt_transform(samples(100))
    held = weakref.ref(own)
    del own
    gc.collect()
    assert held() is None and frame_of(widget)["rows"] == 100


def test_an_error_in_a_widget_is_a_warning(whitener: AdaptiveWhitener, monkeypatch: pytest.MonkeyPatch) -> None:
    alone, widget = copy.deepcopy(whitener), leukos.widget(whitener)

    def fail(*_: object) -> None:
        raise OSError("no screen")

    with monkeypatch.context() as patch:
        patch.setattr(notebook._Stream, "see", fail)
        X = samples(500)
        with pytest.warns(RuntimeWarning, match="leukos.widget: OSError: no screen") as warned:
            responses = whitener.adapt_transform(X)
        assert warned[0].filename == __file__
    assert responses.tobytes() == alone.adapt_transform(X).tobytes()
    whitener.adapt_transform(X)
    assert frame_of(widget)["rows"] == 1000


def test_a_new_fit_begins_anew(whitener: AdaptiveWhitener) -> None:
    widget = leukos.widget(whitener)
    whitener.adapt_transform(samples(500))
    before = frame_of(widget)
    whitener.fit(samples(500, channels=3))
    frame = frame_of(widget)
    assert frame["run"] != before["run"] and frame["rows"] == 0 and len(frame["channels"]) == 3
    whitener.adapt_transform(samples(500, channels=3))
    assert frame_of(widget)["rows"] == 500


def test_names_of_columns_are_names_of_channels() -> None:
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame(samples(500), columns=["Fz", "Cz", "Pz", "Oz"])
    whitener = AdaptiveWhitener().set_output(transform="pandas").fit(table)
    widget = leukos.widget(whitener)
    assert isinstance(whitener.adapt_transform(table), pandas.DataFrame)
    assert [channel["name"] for channel in frame_of(widget)["channels"]] == ["Fz", "Cz", "Pz", "Oz"]


def test_in_an_event_loop_frames_have_a_pace(whitener: AdaptiveWhitener) -> None:
    """As in a notebook, where a cell runs inside a loop: a fast one does not flood it, and its end is shown."""
    widget = leukos.widget(whitener)
    sent: list[str] = []
    widget.observe(lambda change: sent.append(change.new), "frame")

    async def cell() -> None:
        for block in np.split(samples(2000), 200):
            whitener.adapt_transform(block)

    async def session() -> None:
        await cell()
        await asyncio.sleep(10 * notebook._PAUSE)

    asyncio.run(session())
    assert 1 < len(sent) < 100
    assert frame_of(widget)["rows"] == 2000


def test_wrong_calls(whitener: AdaptiveWhitener) -> None:
    with pytest.raises(ValueError, match="whitener: expected an AdaptiveWhitener, got str"):
        leukos.widget("whitener")  # type: ignore[arg-type]
    with pytest.raises(NotFittedError):
        leukos.widget(AdaptiveWhitener())


def test_without_anywidget_the_import_says_what_to_install() -> None:
    code = "import sys; sys.modules['anywidget'] = None; import leukos; leukos.AdaptiveWhitener; leukos.widget"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert done.stderr.strip().splitlines()[-1] == (
        "ImportError: leukos.widget: expected anywidget, got none installed; pip install 'leukos[notebook]'"
    )


def test_the_drawings_are_those_of_the_page() -> None:
    home = LAB / "src" / "live" / "page" / "drawing.js"
    if not home.exists():
        pytest.skip("there is no checkout")
    assert Path(notebook.__file__).with_name("drawing.js").read_bytes() == home.read_bytes()


# A notebook's side of a widget: it holds the frame and says when there is a new one.
PAGE = """<!doctype html><html lang="en"><meta charset="utf-8"><title>widget</title><link rel="icon" href="data:,">
<link rel="stylesheet" href="widget.css"><body data-jp-theme-light="true"><div id="cell"></div>
<script type="module">
import widget from "./widget.js";
const listeners = new Set();
const model = {
  text: await (await fetch("first.json")).text(),
  get(name) { return name === "frame" ? this.text : undefined; },
  on(name, call) { if (name === "change:frame") listeners.add(call); },
  off(name, call) { if (name === "change:frame") listeners.delete(call); },
};
const end = widget.render({ model, el: document.getElementById("cell") });
window.cell = {
  end, listeners,
  async show(name) {
    model.text = name.endsWith(".json") ? await (await fetch(name)).text() : name;
    for (const call of listeners) call();
  },
};
</script></body></html>"""

INK = """
return [...document.querySelectorAll("canvas")].map((canvas) => {
  const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
  return data.some((value, i) => i % 4 === 3 && value > 0);
});"""


class _Quiet(SimpleHTTPRequestHandler):
    extensions_map = {**SimpleHTTPRequestHandler.extensions_map, ".js": "text/javascript", ".json": "application/json"}

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def served(tmp_path: Path) -> Iterator[tuple[Path, str]]:
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=tmp_path)) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield tmp_path, f"http://127.0.0.1:{server.server_port}/widget.html"
        server.shutdown()
        thread.join()


@pytest.fixture
def browser() -> Iterator[Any]:
    driver = LAB / "tests" / "python" / "webdriver.py"
    if not driver.exists():
        pytest.skip("there is no checkout")
    spec = importlib.util.spec_from_file_location("webdriver", driver)
    assert spec is not None and spec.loader is not None
    webdriver = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(webdriver)
    try:
        made = webdriver.Browser()
    except webdriver.Missing as missing:
        pytest.skip(str(missing))
    with made:
        yield made


def test_a_browser_draws_it(whitener: AdaptiveWhitener, served: tuple[Path, str], browser: Any) -> None:
    folder, address = served
    widget = leukos.widget(whitener)
    (folder / "widget.html").write_text(PAGE)
    (folder / "widget.js").write_text(notebook.WhitenerWidget._esm, "utf-8")
    (folder / "widget.css").write_text(notebook.WhitenerWidget._css, "utf-8")
    (folder / "first.json").write_text(widget.frame)
    X = samples(3000, seed=6)
    X[100, 1] = np.nan
    whitener.adapt_transform(X, contexts=np.repeat(["a", "b"], 1500))
    (folder / "second.json").write_text(widget.frame)

    def words(part: str) -> str:
        text = browser.run(f"""return document.querySelector('[data-part="{part}"]').textContent;""")
        assert isinstance(text, str)
        return text

    def shows(expected: str) -> bool:
        script = """return document.querySelector('[data-part="state"]').textContent.startsWith(arguments[0]);"""
        return browser.wait(10, script, expected) is True

    browser.resize(1000, 1200)
    browser.open(address)
    assert shows("Waiting for adapt_transform"), browser.messages()
    browser.run('window.cell.show("second.json");')
    assert shows("Adapting")
    assert browser.run(INK) == [True] * 7
    assert "3\u202f000" in words("counts") and "told: b" in words("error-reading")
    labels = browser.run("return [...document.querySelectorAll('canvas')].map((each) => each.ariaLabel);")
    assert len(labels) == 7 and all(len(label) > 30 for label in labels)
    assert "told at row 1\u202f500" in labels[3]
    assert "Told: b at row 1\u202f500" in words("announcements")

    # The theme of the notebook goes before the preference of the reader; a narrow cell is no wider than its page.
    theme = "return document.querySelector('.leukos-widget').dataset.theme === arguments[0];"
    browser.run("document.body.dataset.jpThemeLight = 'false';")
    assert browser.wait(10, theme, "dark")
    browser.run("delete document.body.dataset.jpThemeLight;")
    assert browser.wait(10, theme, "light")
    browser.prefer(prefers_color_scheme="dark", prefers_reduced_motion="reduce")
    assert browser.wait(10, theme, "dark")
    for width in (320, 700, 1400):
        browser.resize(width, 900)
        assert browser.run("return document.documentElement.scrollWidth <= innerWidth;")

    # What it does not understand is said, and the next frame is shown again.
    browser.run("window.cell.show('{\"version\": 2}');")
    assert "version: expected 1, got 2" in words("notice")
    browser.run('window.cell.show("second.json");')
    assert browser.wait(10, """return document.querySelector('[data-part="notice"]').hidden;""")
    assert browser.run("window.cell.end(); return window.cell.listeners.size;") == 0
    assert browser.run("return document.getElementById('cell').childElementCount;") == 0
    assert browser.messages() == []

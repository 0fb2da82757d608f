"""Opens the page of `leukos live` in a real Chromium, reads it and plays with it.

Usage: python live_page.py PROGRAM [--screenshots DIR]

A recording is watched to its end, the toy is dragged and steered with keys, the page is made slow, and the program is
killed and started again. Any message on the console is a failure while the program runs. Without chromium or
chromedriver it ends with 77. No package is needed.
"""

import argparse
import json
import math
import os
import re
import select
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

from webdriver import Browser, Missing

RECORDING = Path(__file__).resolve().parents[4] / "examples" / "recordings" / "awkward.csv"
# Where its contexts change and its channel C4 is dead, and within how many rows that must have been noticed.
CHANGES, NOTICED = [2500, 5000], 400
DEAD, DEAD_FROM, DEAD_TO = "C4", 3200, 3900
# So slowly that a channel which is dead for 700 rows is seen to be dead.
PLAYED = ["--label", "state", "--sample-rate", "250", "--speed", "4"]
KINDS = ["new", "recalled", "told"]
WIDTHS = [390, 800, 1280, 1600]
START, SOON, PATIENCE = 20.0, 3.0, 60.0
SKIPPED = 77
# Whether the page shows a notice with these words.
NOTICE = """
    const notice = document.getElementById("notice");
    return !notice.hidden && notice.textContent.includes(arguments[0]);
"""
CONTEXT_CHANGED = "return leukosPage.toy.context.some((value, i) => Math.abs(value - arguments[0][i]) > 0.05);"


class Live:
    """`leukos live` at work. To be used with `with`."""

    def __init__(self, program, folder, *arguments):
        command = [program, "live", *arguments, "--no-browser", "--quiet"]
        self.child = subprocess.Popen(
            command, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True,
        )
        try:
            self.address = self.printed_address()
        except BaseException:
            self.end()
            raise

    def printed_address(self):
        until = time.monotonic() + START
        while time.monotonic() < until:
            if select.select([self.child.stdout], [], [], 0.1)[0]:
                said = self.child.stdout.readline()
                if found := re.search(r"http://127\.0\.0\.1:\d+/#\S+", said):
                    return found[0]
                if not said:
                    break
        raise RuntimeError(f"no address was printed by {' '.join(map(str, self.child.args))}")

    @property
    def port(self):
        return int(re.search(r":(\d+)/", self.address)[1])

    def frame(self):
        """The newest frame, asked for without the page."""
        return json.loads(self.ask("frame?since=0"))

    def wish(self, **wishes):
        """Changes the toy without the page."""
        self.ask("toy", json.dumps(wishes).encode())

    def ask(self, path, body=None):
        root, token = self.address.split("#")
        headers = {"Authorization": f"Bearer {token}"} | ({"Content-Type": "application/json"} if body else {})
        with urllib.request.urlopen(urllib.request.Request(root + path, body, headers), timeout=10) as answer:
            return answer.read()

    def end(self):
        self.child.kill()
        self.child.wait()
        self.child.stdout.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.end()


class Checks:
    """Prints what was checked, and counts what failed."""

    def __init__(self):
        self.failed = 0

    def __call__(self, words, fine, got=""):
        self.failed += not fine
        print(f"{'ok    ' if fine else 'FAILED'} {words}{'' if fine or got == '' else f': {got}'}", flush=True)


def number(browser, expression):
    return browser.run(f"return leukosPage.{expression};")


# A recording.


def watch_recording(check, browser, program, folder, shots):
    options = ["fit", RECORDING, "--label", "state", "--saturation", "1000", "--time-constant", "250"]
    subprocess.run([program, *options, "--out", "model.safetensors"], cwd=folder, check=True, capture_output=True)
    with Live(program, folder, "model.safetensors", RECORDING, *PLAYED) as live:
        browser.resize(1280, 900)
        browser.open(live.address)
        check("the page opens and draws", browser.wait(SOON, "return leukosPage.framesDrawn > 0;"))
        check("no buttons without --control", browser.run("return document.getElementById('controls').hidden;"))
        watch_channels(check, browser, shots)
        ended = browser.wait(PATIENCE, "return leukosPage.lastFrame.state.kind === 'ended';")
        check("the recording is played to its end", ended, number(browser, "lastFrame.state"))
        check_curves(check, browser)
        check_matrix(check, browser)
        check_frames(check, browser)
        check_layout(check, browser, shots, "stream")
        said = browser.messages()
        check("the console stays empty", not said, said)
        browser.leave()


def watch_channels(check, browser, shots):
    """Goes to the other tab by keyboard, and reads there while a channel is dead."""
    browser.focus("#tab-stream")
    browser.press("ArrowRight")
    shown = "return ['view-stream', 'view-channels'].map((id) => !document.getElementById(id).hidden);"
    check("an arrow key opens the tab Channels", browser.run(shown) == [False, True], browser.run(shown))
    words = f"return leukosPage.lastFrame.channels.find((c) => c.name === '{DEAD}').state !== 'live';"
    dead = browser.wait(PATIENCE, words)
    row = """
        const rows = [...document.querySelectorAll("#channel-rows tr")];
        return rows.find((row) => row.firstChild.textContent === arguments[0])?.innerText;
    """
    said = dead and browser.wait(SOON, f"return /dead/.test((function () {{ {row} }})(...arguments));", DEAD)
    at = number(browser, "lastFrame.rows")
    check("the dead channel is named in words", said, browser.run(row, DEAD))
    check("it is so named while it is dead", DEAD_FROM <= at <= DEAD_TO + NOTICED, at)
    summary = browser.run("return document.getElementById('channel-summary').textContent;")
    check("the summary names it as well", DEAD in summary and "dead" in summary, summary)
    if shots:
        browser.screenshot(shots / "channels-1280.png")
    browser.press("ArrowLeft")
    check("an arrow key goes back", browser.run(shown) == [True, False])
    focused = browser.run("return document.activeElement.id;")
    check("the focus goes with it", focused == "tab-stream", focused)


def check_curves(check, browser):
    marks = [mark["row"] for mark in number(browser, "marks") if mark["word"] in KINDS]
    for row in CHANGES:
        marked = any(row <= mark <= row + NOTICED for mark in marks)
        check(f"the change of context at row {row} is marked", marked, marks)
    aloud = browser.run("return document.getElementById('errors').getAttribute('aria-label');")
    named = re.findall(rf"({'|'.join(KINDS)}) at ", aloud)
    check("the changes are in the words of the drawing", len(named) >= len(CHANGES), aloud)
    points = list(zip(*(number(browser, f"history.{name}") for name in ["row", "error", "unadapted"])))
    for end in [*CHANGES, points[-1][0] + 1]:
        last = [point[1:] for point in points if end - 500 <= point[0] < end and None not in point]
        error, unadapted = (statistics.median(values) for values in zip(*last))
        words = f"the error falls below the unadapted one before row {end}"
        check(words, error < unadapted, f"{error:.3g} and {unadapted:.3g}")
    length = number(browser, "history.length")
    check("the history is bounded", 0 < length <= 600, length)


def check_matrix(check, browser):
    """A pointer and keys give the numbers of a cell."""
    reading = "return document.getElementById('matrix-reading').textContent;"
    browser.hover(*browser.middle("#matrix-before"))
    time.sleep(0.2)
    numbers = r"\w+( and \w+)?: (−?\d\.\d\d|not known) before, (−?\d\.\d\d|not known) after"
    check("a pointer gives the numbers of a cell", re.match(numbers, browser.run(reading)), browser.run(reading))
    browser.hover(5, 5)
    browser.focus("#matrices")
    browser.press("ArrowRight", "ArrowRight", "ArrowDown")
    time.sleep(0.2)
    check("keys give the numbers of a cell", re.match(numbers, browser.run(reading)), browser.run(reading))
    browser.press("Escape")


def check_frames(check, browser):
    """Frames that are wrong are refused with words."""
    wrong = {
        "a version": ("frame.version = 2", "version: expected 1, got 2"),
        "a matrix": ("frame.before.pop()", "before: expected \\d+ values, got \\d+ values"),
        "a cell": ("frame.after[1] = 'x'", "after: expected numbers or null, got “x”"),
        "a column": ("Object.assign(frame.points, {id: [1, 2], row: [1]})", "points.row: expected 2 values, got 1 val"),
        "a state": ("frame.state.kind = 'asleep'", "state.kind: expected waiting, .*, got “asleep”"),
        "a trace": ("frame.traces.after.pop()", "traces.after: expected \\d+ channels, got \\d+ values"),
    }
    for name, (change, expected) in wrong.items():
        said = browser.module(f"""
            const {{ readFrame }} = await import("/drawing.js");
            const frame = structuredClone(leukosPage.lastFrame);
            {change};
            try {{ readFrame(JSON.stringify(frame)); return "nothing"; }} catch (error) {{ return error.message; }}
        """)
        check(f"a frame with {name} that is wrong is refused", re.match(f"frame: {expected}", said), said)
    said = browser.module("""
        const { readFrame } = await import("/drawing.js");
        try { readFrame("<html>"); return "nothing"; } catch (error) { return error.message; }
    """)
    check("what is no JSON is refused", said.startswith("frame: expected JSON, got "), said)
    lengths = browser.module("""
        const { History } = await import("/drawing.js");
        const history = new History("stream");
        const columns = (id) => ({ id, row: id, error: id, floor: id, unadapted: id, gains: id });
        const points = (first, ids) => ({ first, ...columns(ids) });
        const upTo = (n) => Array.from({ length: n }, (_, i) => i + 1);
        history.merge(points(1, upTo(5000)));
        const bounded = history.length;
        history.merge(points(4990, []));
        const dropped = history.length;
        history.merge(points(4990, [4999, 5000, 5001]));
        const joined = history.id.at(-1) === 5001 && history.length === dropped + 1;
        return [bounded, dropped, joined, history.gains.length];
    """)
    expected = [600, 11, True, 12]
    check("a history is bounded, and drops what the server dropped", lengths == expected, lengths)


def check_layout(check, browser, shots, name):
    """No scrolling sideways at any width, and both themes."""
    for width in WIDTHS:
        browser.resize(width, 900)
        time.sleep(0.3)
        over = browser.run("return document.documentElement.scrollWidth - innerWidth;")
        check(f"no horizontal scrolling of {name} at {width} pixels", over <= 0, over)
        for theme in ["light", "dark"] if shots else []:
            browser.prefer(prefers_color_scheme=theme)
            time.sleep(0.3)
            browser.screenshot(shots / f"{name}-{width}-{theme}.png")
    paper = "return getComputedStyle(document.body).backgroundColor;"
    papers = []
    for theme in ["light", "dark"]:
        browser.prefer(prefers_color_scheme=theme)
        time.sleep(0.2)
        papers.append(browser.run(paper))
    check(f"{name} follows the theme that the reader prefers", papers[0] != papers[1], papers)
    browser.run("document.getElementById('theme').click();")
    time.sleep(0.2)
    check(f"the switch overrules it in {name}", browser.run(paper) == papers[0], browser.run(paper))
    browser.run("document.getElementById('theme').click();")
    browser.prefer(prefers_color_scheme="light")
    browser.resize(1280, 900)


# The toy.


def play(check, browser, program, folder, shots):
    with Live(program, folder, "--toy") as live:
        browser.resize(1280, 900)
        browser.open(live.address.split("#")[0])
        check("without its token the page says so", browser.wait(SOON, NOTICE, "lacks its token"))
        browser.open(live.address)
        drawn = "return leukosPage.framesDrawn > 0 && !document.getElementById('toy-mode').hidden;"
        check("the toy opens and draws", browser.wait(SOON, drawn))
        drag_ellipse(check, browser, live)
        steer_by_keys(check, browser)
        press_knobs(check, browser)
        check_layout(check, browser, shots, "toy")
        pause_view(check, browser, live)
        slow_down(check, browser, live)
        reduce_motion(check, browser)
        said = browser.messages()
        check("the console stays empty with the toy", not said, said)
        stop_and_start(check, browser, live, program, folder, shots)


def within_reach(synapses, gains=(1.2, 0.3)):
    """The covariance M² of a context that these gains make white."""
    pairs = list(zip(gains, synapses))
    a, b, c = (
        offset + sum(gain * w[i] * w[j] for gain, w in pairs) for offset, i, j in [(1, 0, 0), (0, 0, 1), (1, 1, 1)]
    )
    return [a * a + b * b, a * b + b * c, b * b + c * c]


def drag_ellipse(check, browser, live):
    live.wish(context=within_reach(live.frame()["toy"]["synapses"]), gain_rate=0.005)
    settled = browser.wait(PATIENCE, "return leukosPage.toy.best_error < 0.01 && leukosPage.toy.error < 0.4;")
    check("the gains make a context white that they can reach", settled, number(browser, "toy"))
    before = number(browser, "toy")
    last = number(browser, "history.lastId")
    # The shorter axis, outwards.
    first, second = before["axes"]["lengths"]
    start, across = browser.middle("#handle-0" if first < second else "#handle-1"), before["axes"]["angle"]
    angle = across + (0 if first < second else math.pi / 2)
    browser.drag(start, [(12 * math.cos(angle), -12 * math.sin(angle))] * 4)
    heard = browser.wait(SOON, CONTEXT_CHANGED, before["context"])
    check("dragging a handle changes the context", heard, number(browser, "toy.context"))
    peak = browser.wait(SOON, """
        const { id, error } = leukosPage.history;
        const later = error.filter((_, i) => id[i] > arguments[0]);
        const peak = Math.max(...later);
        return peak > arguments[1] + 0.5 ? peak : null;
    """, last, before["error"])
    check("the error rises", peak, before["error"])
    halved = "const t = leukosPage.toy; return t.error - t.best_error < 0.5 * (arguments[0] - t.best_error);"
    check("and falls again", browser.wait(PATIENCE, halved, peak or 0), number(browser, "toy.error"))
    changed = "return leukosPage.toy.gains.some((gain, i) => Math.abs(gain - arguments[0][i]) > 0.1);"
    moved = browser.wait(SOON, changed, before["gains"])
    check("because the gains have moved", moved, [before["gains"], number(browser, "toy.gains")])


def steer_by_keys(check, browser):
    before = number(browser, "toy")
    browser.focus("#handle-1")
    browser.press(*["ArrowUp"] * 6)
    moved = browser.wait(SOON, CONTEXT_CHANGED, before["context"])
    check("arrow keys change the context", moved, number(browser, "toy.context"))
    picture = "return document.getElementById('cone').toDataURL();"
    browser.run("document.getElementById('pause').click();")
    time.sleep(0.3)
    cone = browser.run(picture)
    browser.focus("#cone-view")
    browser.press("ArrowRight", "ArrowRight")
    time.sleep(0.3)
    check("arrow keys turn the cone", browser.run(picture) != cone)
    browser.run("document.getElementById('pause').click();")


def press_knobs(check, browser):
    browser.run("document.querySelector('[name=adapt][value=nothing]').click();")
    check("nothing adapts when it is told so", browser.wait(SOON, "return leukosPage.toy.adapt === 'nothing';"))
    before = number(browser, "toy")
    browser.run("document.getElementById('new-context').click();")
    changed = browser.wait(SOON, CONTEXT_CHANGED, before["context"])
    time.sleep(0.5)
    check("a new context comes", changed)
    check("and the gains stand still", number(browser, "toy.gains") == before["gains"], number(browser, "toy.gains"))
    browser.run("document.querySelector('[name=adapt][value=both]').click();")
    turned = "return Math.hypot(...leukosPage.toy.synapses.flat().map((value, i) => value - arguments[0].flat()[i]))"
    learned = browser.wait(PATIENCE, f"{turned} > 0.02;", before["synapses"])
    check("gains and synapses adapt again, and the synapses turn", learned, number(browser, "toy.synapses"))
    browser.run("document.querySelector('[name=adapt][value=gains]').click();")
    browser.focus("#gain-rate")
    browser.press("ArrowRight", "ArrowRight")
    faster = browser.wait(SOON, "return leukosPage.toy.gain_rate > arguments[0];", before["gain_rate"])
    check("a slider changes a rate", faster, number(browser, "toy.gain_rate"))
    browser.run("document.getElementById('restart').click();")
    back = browser.wait(SOON, f"{turned} < 1e-6;", before["synapses"])
    check("restart brings the first synapses back", back, number(browser, "toy.synapses"))
    last = number(browser, "history.lastId")
    on = browser.wait(SOON, "return leukosPage.history.lastId > arguments[0] + 5;", last)
    check("and the curves go on after it", on, number(browser, "history.lastId"))


def pause_view(check, browser, live):
    browser.run("document.getElementById('pause').click();")
    time.sleep(0.3)
    before = number(browser, "framesReceived")
    samples = live.frame()["toy"]["samples"]
    time.sleep(1.0)
    check("a paused view asks for nothing", number(browser, "framesReceived") == before)
    check("but the program goes on", live.frame()["toy"]["samples"] > samples)
    browser.run("document.getElementById('pause').click();")
    on = browser.wait(SOON, "return leukosPage.framesReceived > arguments[0] + 2;", before)
    check("and the view goes on when it is told so", on)


def slow_down(check, browser, live):
    """A page whose main thread is busy draws the newest frame afterwards, and none of those between."""
    blocked = 3.0
    before = number(browser, "framesDrawn")
    browser.run("const end = performance.now() + arguments[0]; while (performance.now() < end);", 1000 * blocked)
    time.sleep(0.5)
    grown = number(browser, "framesDrawn") - before
    check(f"a page blocked for {blocked:.0f} s has drawn few frames half a second later", grown <= 8, grown)
    time.sleep(1.0)
    newest = live.frame()["toy"]
    lag = newest["samples"] - number(browser, "toy.samples")
    check("and shows a frame less than 1.5 s old", lag <= 1.5 * newest["speed"], f"{lag} samples")


def reduce_motion(check, browser):
    browser.prefer(prefers_reduced_motion="reduce")
    time.sleep(0.5)
    before = number(browser, "framesDrawn")
    time.sleep(3.0)
    grown = number(browser, "framesDrawn") - before
    check("with reduced motion it draws once a second", 1 <= grown <= 4, grown)
    browser.prefer(prefers_reduced_motion="no-preference")


# The program ends.


def stop_and_start(check, browser, live, program, folder, shots):
    live.end()
    check("the page says that the program is gone", browser.wait(SOON, NOTICE, "The program is gone"))
    dimmed = browser.run("return document.body.classList.contains('stale');")
    check("and dims its last picture", dimmed)
    if shots:
        browser.screenshot(shots / "gone-1280.png")
    with Live(program, folder, "--toy", "--port", str(live.port)) as again:
        said = browser.wait(SOON, NOTICE, "no longer valid")
        check("the page of an earlier run says that its address is no longer valid", said)
        browser.run("location.hash = arguments[0];", again.address.split("#")[1])
        on = "return leukosPage.connection === 'open' && document.getElementById('notice').hidden;"
        check("and goes on when it is given the new one", browser.wait(SOON, on))


def parsed():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program", type=os.path.abspath)
    parser.add_argument("--screenshots", type=Path, help="a folder for pictures of the page at several widths")
    return parser.parse_args()


def main():
    arguments, check = parsed(), Checks()
    if arguments.screenshots:
        arguments.screenshots.mkdir(parents=True, exist_ok=True)
    try:
        browser = Browser()
    except Missing as missing:
        print(f"skipped: {missing}")
        sys.exit(SKIPPED)
    with browser, tempfile.TemporaryDirectory() as folder:
        given = (arguments.program, folder, arguments.screenshots)
        watch_recording(check, browser, *given)
        play(check, browser, *given)
    print(f"{check.failed} failures" if check.failed else "all fine")
    sys.exit(1 if check.failed else 0)


if __name__ == "__main__":
    main()

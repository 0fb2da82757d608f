"""Drives a headless Chromium through chromedriver, with the standard library alone."""

import base64
import json
import re
import shutil
import subprocess
import tempfile
import time
import urllib.error
import urllib.request

FLAGS = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars"]
# What WebDriver calls keys that have no letter.
KEYS = {
    "Tab": "\ue004", "Enter": "\ue007", "Escape": "\ue00c", "End": "\ue010", "Home": "\ue011",
    "ArrowLeft": "\ue012", "ArrowUp": "\ue013", "ArrowRight": "\ue014", "ArrowDown": "\ue015",
}
CHROMIUM = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"]
START = 20.0


class Missing(Exception):
    """A program that is needed is not there."""


def needed(*names):
    """The path of the first of these programs that exists."""
    for name in names:
        if path := shutil.which(name):
            return path
    raise Missing(f"none of these programs was found: {', '.join(names)}")


class Browser:
    """One window of Chromium, and the driver that moves it. To be used with `with`."""

    def __init__(self):
        binary, driver = needed(*CHROMIUM), needed("chromedriver")
        self.profile = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        self.driver = subprocess.Popen(
            [driver, "--port=0"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        )
        try:
            self.address = f"http://127.0.0.1:{port_of(self.driver)}"
            options = {"binary": binary, "args": [*FLAGS, f"--user-data-dir={self.profile.name}"]}
            wanted = {"browserName": "chrome", "goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL"}}
            made = self.call("POST", "/session", {"capabilities": {"alwaysMatch": wanted}})
            self.session = f"/session/{made['sessionId']}"
        except BaseException:
            self.end()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        try:
            self.call("DELETE", self.session)
        finally:
            self.end()

    def end(self):
        self.driver.terminate()
        self.driver.wait()
        self.driver.stdout.close()
        self.profile.cleanup()

    def call(self, method, path, body=None):
        """One command of the protocol; an error says what the driver said."""
        data = None if method != "POST" else json.dumps(body or {}).encode()
        request = urllib.request.Request(
            self.address + path, data, {"Content-Type": "application/json"}, method=method,
        )
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            said = json.load(error)["value"]
            raise RuntimeError(f"{method} {path}: {said['error']}: {said['message'].splitlines()[0]}") from None

    def do(self, path, **body):
        return self.call("POST", self.session + path, body)

    def devtools(self, command, **parameters):
        return self.do("/goog/cdp/execute", cmd=command, params=parameters)

    def open(self, address):
        # An address that differs in its fragment only would not load the page again.
        self.leave()
        self.do("/url", url=address)

    def leave(self):
        """Leaves the page, which asks its program for nothing any more."""
        self.do("/url", url="about:blank")

    def resize(self, width, height, ratio=1):
        """Gives the page so many CSS pixels, which may be fewer than a window can have."""
        size = {"width": width, "height": height, "deviceScaleFactor": ratio, "mobile": False}
        self.devtools("Emulation.setDeviceMetricsOverride", **size)

    def prefer(self, **features):
        """Sets what the reader prefers: prefers_color_scheme="dark", prefers_reduced_motion="reduce"."""
        wanted = [{"name": name.replace("_", "-"), "value": value} for name, value in features.items()]
        self.devtools("Emulation.setEmulatedMedia", features=wanted)

    def run(self, script, *arguments):
        """Runs the body of a function; it may `return`, and may be given arguments."""
        return self.do("/execute/sync", script=script, args=list(arguments))

    def wait(self, seconds, script, *arguments):
        """Waits until a script returns something that is true, and returns it; None if it does not in time."""
        until = time.monotonic() + seconds
        while True:
            if value := self.run(script, *arguments):
                return value
            if time.monotonic() > until:
                return None
            time.sleep(0.05)

    def module(self, script):
        """Runs the body of an async function, which may `await import(...)`."""
        wrapped = f"const done = arguments[0]; (async () => {{ {script} }})().then(done, (e) => done(`${{e}}`));"
        return self.do("/execute/async", script=wrapped, args=[])

    def focus(self, selector):
        self.run("document.querySelector(arguments[0]).focus();", selector)

    def middle(self, selector):
        """The middle of an element, in the window."""
        return self.run("""
            const box = document.querySelector(arguments[0]).getBoundingClientRect();
            return [box.x + box.width / 2, box.y + box.height / 2];
        """, selector)

    def press(self, *keys):
        """Presses keys one after the other, on whatever has the focus."""
        strokes = [
            {"type": kind, "value": KEYS.get(key, key)} for key in keys for kind in ("keyDown", "keyUp")
        ]
        self.do("/actions", actions=[{"type": "key", "id": "keyboard", "actions": strokes}])

    def drag(self, start, steps, hold=0.0):
        """Presses the mouse at a place in the window, moves it by steps, and lets it go."""
        x, y = start
        moves = [move(x, y), {"type": "pointerDown", "button": 0}]
        for dx, dy in steps:
            x, y = x + dx, y + dy
            moves.append(move(x, y, 30))
        moves += [{"type": "pause", "duration": int(1000 * hold)}, {"type": "pointerUp", "button": 0}]
        self.do("/actions", actions=[{"type": "pointer", "id": "mouse", "actions": moves}])

    def hover(self, x, y):
        self.do("/actions", actions=[{"type": "pointer", "id": "mouse", "actions": [move(x, y)]}])

    def messages(self):
        """What the page has written to the console since the last call, as "LEVEL: words"."""
        return [f"{entry['level']}: {entry['message']}" for entry in self.do("/se/log", type="browser")]

    def screenshot(self, path):
        """A picture of the whole page, also of what would have to be scrolled to."""
        size = self.run("return [innerWidth, document.documentElement.scrollHeight];")
        clip = {"x": 0, "y": 0, "width": size[0], "height": size[1], "scale": 1}
        shot = self.devtools("Page.captureScreenshot", format="png", captureBeyondViewport=True, clip=clip)
        path.write_bytes(base64.b64decode(shot["data"]))


def move(x, y, duration=0):
    return {"type": "pointerMove", "duration": duration, "x": round(x), "y": round(y), "origin": "viewport"}


def port_of(driver):
    """The port that a driver says it listens at. Its first line names the one it was asked for, 0."""
    until = time.monotonic() + START
    while time.monotonic() < until and (said := driver.stdout.readline()):
        if (found := re.search(r"on port (\d+)", said)) and found[1] != "0":
            return int(found[1])
    raise RuntimeError("chromedriver did not say its port")

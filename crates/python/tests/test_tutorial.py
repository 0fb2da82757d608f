"""Runs docs/tutorial.md and checks that what it promises comes out.

All Python blocks run in order, in one namespace and in a folder of their own. What a block prints must be what the
block of text below it shows, up to small differences of numbers. The commands run where the environment variable
LEUKOS_PROGRAM names the program `leukos`. `python test_tutorial.py` writes outputs and pictures of the tutorial anew.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

matplotlib = pytest.importorskip("matplotlib")
pytest.importorskip("pandas")

DOCS = Path(__file__).resolve().parents[3] / "docs"
TUTORIAL = DOCS / "tutorial.md"
PROGRAM = Path(os.environ["LEUKOS_PROGRAM"]).resolve() if "LEUKOS_PROGRAM" in os.environ else None
FENCE = re.compile(r"^```(?P<kind>[^\n]+)\n(?P<code>.*?)^```$", re.DOTALL | re.MULTILINE)
PICTURE = re.compile(r"!\[[^\]]+\]\(tutorial/([^)]+)\)")
NUMBER = re.compile(r"-?\d+\.?\d*(?:e[+-]?\d+)?")

pytestmark = pytest.mark.skipif(not TUTORIAL.exists(), reason="the tutorial is not here: no checkout around the tests")


class Told(NamedTuple):
    """What a block printed (None if it did not run), and what the text shows."""

    printed: str | None
    shown: str


class Tutorial(NamedTuple):
    """What came of a run."""

    folder: Path
    names: dict[str, Any]
    told: list[Told]


def run(folder: Path) -> Tutorial:
    names: dict[str, Any] = {"__name__": "tutorial"}
    told: list[Told] = []
    text = TUTORIAL.read_text(encoding="utf-8")
    for block in FENCE.finditer(text):
        kind, code = block["kind"], block["code"]
        if kind == "text":
            told[-1] = told[-1]._replace(shown=code)
        elif kind == "python" or (kind == "python after-command" and PROGRAM):
            # Blank lines before it, so that an error names its line in the tutorial.
            lines = text[: block.start("code")].count("\n")
            told.append(Told(execute("\n" * lines + code, names), ""))
        elif kind == "python after-command":
            told.append(Told(None, ""))
        elif code.startswith("leukos ") and PROGRAM:
            command(code, folder)
    return Tutorial(folder, names, told)


def execute(code: str, names: dict[str, Any]) -> str:
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, str(TUTORIAL), "exec"), names)
    return printed.getvalue()


def command(code: str, folder: Path) -> None:
    assert PROGRAM is not None
    if not (folder / "bin").exists():
        (folder / "bin").mkdir()
        (folder / "bin" / "leukos").symlink_to(PROGRAM)
    path = f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(["sh", "-ec", code], env={**os.environ, "PATH": path}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@contextlib.contextmanager
def in_folder(folder: Path) -> Iterator[None]:
    before, backend = Path.cwd(), matplotlib.get_backend()
    os.chdir(folder)
    matplotlib.use("Agg")
    try:
        yield
    finally:
        matplotlib.pyplot.close("all")
        matplotlib.use(backend)
        os.chdir(before)


@pytest.fixture(scope="module")
def tutorial(tmp_path_factory: pytest.TempPathFactory) -> Tutorial:
    folder = tmp_path_factory.mktemp("tutorial")
    with in_folder(folder):
        return run(folder)


def assert_alike(printed: str, shown: str) -> None:
    """The same words, and numbers that differ by a last digit or so."""
    assert NUMBER.sub("#", printed).split() == NUMBER.sub("#", shown).split()
    for own, promised in zip(NUMBER.findall(printed), NUMBER.findall(shown), strict=True):
        assert float(own) == pytest.approx(float(promised), rel=0.02, abs=0.021), f"{shown}\nbut came\n{printed}"


def test_blocks_print_what_the_text_shows(tutorial: Tutorial) -> None:
    ran = [told for told in tutorial.told if told.printed is not None]
    for told in ran:
        assert_alike(told.printed or "", told.shown)
    assert sum(told.printed != "" for told in ran) >= 10


@pytest.mark.skipif(PROGRAM is None, reason="LEUKOS_PROGRAM does not name the program leukos")
def test_commands_agree_with_python(tutorial: Tutorial) -> None:
    assert "the same responses: True\nthe same bytes: True\n" in [told.printed for told in tutorial.told]


def test_pictures_are_made_and_in_the_repository(tutorial: Tutorial) -> None:
    referenced = PICTURE.findall(TUTORIAL.read_text(encoding="utf-8"))
    assert len(referenced) >= 5
    assert sorted(referenced) == sorted(path.name for path in tutorial.folder.glob("*.png"))
    assert sorted(referenced) == sorted(path.name for path in (DOCS / "tutorial").iterdir())
    for name in referenced:
        kept = DOCS / "tutorial" / name
        assert kept.stat().st_size < 100_000, name
        made, stored = (matplotlib.image.imread(path) for path in (tutorial.folder / name, kept))
        assert made.shape == stored.shape, f"{name} in docs/tutorial is not the one the tutorial makes"


def test_what_the_text_says_of_the_switch_holds(tutorial: Tutorial) -> None:
    stairs, rowing = (tutorial.names["errors"][activity] for activity in ("stairs", "rowing"))
    whitener, gains, running, told = stairs.columns
    # The stairs: gains alone are first, the whitener is between the covariances at first, and later between the running
    # one and the gains.
    assert stairs.loc[100, gains] < stairs.loc[100, told] < stairs.loc[100, whitener]
    assert (stairs.loc[200:1000, whitener] < stairs.loc[200:1000, running]).all()
    late = stairs.loc[3000:].mean()
    assert late[told] < late[running] < late[whitener] < late[gains]
    # Rowing: not reached by gains on the learned synapses, and the whitener is not limited by them.
    assert rowing.loc[500:, gains].min() > 0.6
    assert (rowing.loc[1500:, whitener] < rowing.loc[1500:, gains]).all()
    assert rowing.loc[3000:, whitener].mean() < 2.0 * rowing.loc[3000:, told].mean()


def rewrite() -> None:
    """Puts what the blocks print, and the pictures they make, into the documentation."""
    with tempfile.TemporaryDirectory() as name, in_folder(Path(name)):
        outcome = run(Path(name))
        printed = iter(outcome.told)
        last = ""

        def renew(block: re.Match[str]) -> str:
            nonlocal last
            if block["kind"].startswith("python"):
                last = next(printed).printed or ""
            return f"```text\n{last}```" if block["kind"] == "text" and last else block[0]

        TUTORIAL.write_text(FENCE.sub(renew, TUTORIAL.read_text(encoding="utf-8")), encoding="utf-8")
        for picture in PICTURE.findall(TUTORIAL.read_text(encoding="utf-8")):
            shutil.copy(outcome.folder / picture, DOCS / "tutorial" / picture)


if __name__ == "__main__":
    rewrite()

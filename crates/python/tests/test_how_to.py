"""Runs the Python of the pages by kind of user, docs/site/how-to-*.md, on data of the kind that they speak of."""

import re
import shutil
from pathlib import Path

import numpy as np
import pytest

from leukos import datasets

ROOT = Path(__file__).resolve().parents[3]
PAGES = sorted((ROOT / "docs/site").glob("how-to-*.md"))


def code(page):
    return re.findall(r"^```python\n(.*?)^```", page.read_text(), flags=re.MULTILINE | re.DOTALL)


def data():
    """Four sessions of four channels, with labels that depend on the first."""
    contexts = datasets.synthetic_contexts(4, n_neurons=4, n_interneurons=4, axes="orthogonal").covariances
    X = datasets.draw(contexts, None, 500)
    return {"X": X, "y": X[:, 0] > 0.0, "sessions": np.arange(4).repeat(500), "next_block": X[:100]}


def test_there_are_pages_with_code():
    assert len(PAGES) == 3
    assert sum(len(code(page)) for page in PAGES) >= 3


@pytest.mark.parametrize("page", [page for page in PAGES if code(page)], ids=lambda page: page.stem)
def test_the_code_of_a_page_runs(page, tmp_path, monkeypatch):
    pytest.importorskip("pandas")
    shutil.copy(ROOT / "examples/recordings/awkward.csv", tmp_path / "day.csv")
    monkeypatch.chdir(tmp_path)
    names = data()
    for block in code(page):
        exec(compile(block, str(page), "exec"), names)
    if "predicted" in names:
        assert names["predicted"].shape == (100,)
    else:
        assert names["responses"].shape == (6500, 6)

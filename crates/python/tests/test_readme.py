"""Runs the Python of the project's README and the examples of the docstrings."""

import doctest
import importlib
import re
from pathlib import Path

import pytest

import leukos

README = Path(__file__).parents[3] / "README.md"


def test_the_readme_runs(tmp_path, monkeypatch, capsys):
    blocks = re.findall(r"^```python\n(.*?)^```", README.read_text(), flags=re.MULTILINE | re.DOTALL)
    assert blocks
    monkeypatch.chdir(tmp_path)
    for block in blocks:
        exec(compile(block, str(README), "exec"), {})
    before, after = map(float, re.findall(r"-?\d+\.\d+", capsys.readouterr().out))
    assert after < 0.5 < before


@pytest.mark.parametrize("module", ["leukos.estimator", "leukos.datasets", "leukos.plotting"])
def test_the_docstrings_run(module):
    outcome = doctest.testmod(importlib.import_module(module))
    assert outcome.failed == 0


def test_everything_public_is_there_and_documented():
    for name in leukos.__all__:
        thing = getattr(leukos, name)
        assert name == "__version__" or len(thing.__doc__) > 40, name
    assert sorted(leukos.__all__) == dir(leukos)
    manifest = (README.parent / "Cargo.toml").read_text()
    assert f'\nversion = "{leukos.__version__}"' in manifest
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        leukos.nothing

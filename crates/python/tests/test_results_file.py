"""Damages the file of a sweep, byte by byte and at its end, and lets two sweeps have one: nothing is taken for a result
that is none, and nothing that is one runs again."""

import json
import os
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

from leukos.distributed import sweep
from leukos.distributed.calls import Task
from leukos.distributed.results_file import ResultsFile

# With LEUKOS_FAULTS=100000 in the environment all of them are tried.
FAULTS = int(os.environ.get("LEUKOS_FAULTS", "2000"))
GRID = {"gain": [1.5, -2], "name": ["a\n", "ü"]}


def function(gain, name, seed):
    if gain < 0:
        raise RuntimeError(name)
    return {"value": gain / 7, "list": [seed, None, np.inf]}


@pytest.fixture
def path(tmp_path):
    sweep(function, GRID, seeds=3, path=tmp_path / "sweep.jsonl", progress=False)
    return tmp_path / "sweep.jsonl"


def rows(path, names=("gain", "name")):
    """The rows that a file is said to hold."""
    with ResultsFile(path, list(names)) as file:
        return dict(file._rows)


def test_no_fault_is_silent(path, tmp_path):
    whole, known = path.read_bytes(), rows(path)
    rng = np.random.default_rng(0)
    damaged = tmp_path / "damaged"
    for _ in range(FAULTS):
        place, other = int(rng.integers(len(whole))), int(rng.integers(1, 256))
        content = bytearray(whole)
        content[place] ^= other
        damaged.write_bytes(content)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = rows(damaged)
        # No row is another one, and one or two are missing, which run again.
        assert all(found[key] == known[key] for key in found)
        assert len(known) - 2 <= len(found) < len(known)


def test_a_fault_in_a_file_of_one_row_is_said(tmp_path):
    path = tmp_path / "one"
    sweep(lambda seed: 1, path=path, progress=False)
    whole = path.read_bytes()
    for place in range(len(whole)):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        try:
            assert rows(path, []) == {}
        except ValueError as error:
            assert str(error).startswith("path: expected rows")


@pytest.mark.parametrize("tail", [b"\0" * 4096, b"{\n", b"rest", b'{"gain": 1.5, "se', b"\xff\xfe\n\n"])
def test_a_damaged_tail_goes_on(path, tail):
    calls = []

    def counted(gain, name, seed):
        calls.append(seed)
        return function(gain, name, seed)

    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:-2]) + lines[-2][:-30] + tail)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        table = sweep(counted, GRID, seeds=3, path=path, progress=False)
    assert len(calls) == 2 and len(table) == 12
    if b"\n" in tail:
        assert "damaged on line 11" in str(said[0].message) and said[0].filename == __file__
    assert path.read_bytes().startswith(b"".join(lines[:-2]))
    calls.clear()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        sweep(counted, GRID, seeds=3, path=path, progress=False)
    assert calls == []


def test_a_file_without_checksums_is_refused_and_left_alone(path):
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    text = "".join(json.dumps({k: v for k, v in line.items() if k != "crc32"}) + "\n" for line in lines)
    path.write_text(text)
    with pytest.raises(ValueError, match="path: expected rows with checksums in .*, got rows without, as older versions"):
        sweep(function, GRID, seeds=3, path=path)
    assert path.read_text() == text


def test_the_checksum_is_a_name_of_its_own(tmp_path):
    with pytest.raises(ValueError, match="grid: expected no parameter named 'crc32'"):
        sweep(lambda crc32, seed: 0, {"crc32": [1]})
    table = sweep(lambda seed: {"crc32": 1}, path=tmp_path / "file", progress=False)
    assert "expected results with names of their own, got 'crc32'" in table["error"][0]


def test_the_second_sweep_of_a_file_is_told_so(path):
    content = path.read_bytes()
    program = (
        "import sys; from leukos.distributed import sweep\n"
        "sweep(lambda gain, name, seed: 0, {'gain': [9], 'name': ['']}, path=sys.argv[1])"
    )
    with ResultsFile(path, ["gain", "name"]) as file:
        second = subprocess.run([sys.executable, "-c", program, path], capture_output=True, text=True)
        assert second.returncode == 1
        assert f"RuntimeError: path: expected a file that no other sweep is writing, got {path}" in second.stderr
        with pytest.raises(RuntimeError, match="path: expected a file that no other sweep is writing"):
            sweep(function, GRID, seeds=3, path=path)
        assert path.read_bytes() == content
        assert file.find(Task({"gain": 1.5, "name": "ü"}, 0)) is not None
    assert subprocess.run([sys.executable, "-c", program, path]).returncode == 0
    assert len(Path(path).read_bytes().splitlines()) == 13

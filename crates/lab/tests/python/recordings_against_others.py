"""Compares the recordings that Leukos reads and writes with those of numpy and of edfio.

Usage: python recordings_against_others.py CONVERT

CONVERT is the example of that name, which copies a recording into another format. Files are written by one side and
read by the other.
"""

import csv
import subprocess
import sys
import tempfile
from pathlib import Path

import edfio
import numpy as np

NAMES = ["Fp1", "Cz, top", "O2"]


def convert(program, *arguments, **options):
    """Copies a recording; returns what came on standard output."""
    command = [program, *map(str, arguments)]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, **options).stdout


def compare_arrays(program, folder, rng):
    """Arrays of every type, byte order and memory order, through every format that is written, and back."""
    compared = 0
    for dtype in ["<i2", ">i2", "<i4", ">i4", "<f4", ">f4", "<f8", ">f8"]:
        values = (1000 * rng.standard_normal((701, 3))).astype(dtype)
        if values.dtype.kind == "f":
            values[5, 1], values[6, 2] = np.nan, -np.inf
        name = values.dtype.newbyteorder("=").name
        for order in "CF":
            np.save(folder / "in.npy", np.asarray(values, order=order))
            convert(program, folder / "in.npy", folder / "out.npy")
            array = np.load(folder / "out.npy")
            assert array.dtype.name == name and array.flags.c_contiguous
            np.testing.assert_array_equal(array, values)
            convert(program, folder / "in.npy", folder / "out.raw")
            np.testing.assert_array_equal(np.fromfile(folder / "out.raw", name).reshape(-1, 3), values)
            for ending, delimiter in [("csv", ","), ("tsv", "\t")]:
                convert(program, folder / "in.npy", folder / f"out.{ending}")
                text = np.loadtxt(folder / f"out.{ending}", dtype=name, delimiter=delimiter)
                np.testing.assert_array_equal(text, values)
            compared += 4
        raw = values.astype(name).tobytes()
        piped = convert(
            program, "-", "-", "--from", "raw", "--to", "csv", "--channels", "3", "--dtype", name, input=raw
        )
        np.testing.assert_array_equal(np.loadtxt(piped.decode().splitlines(), dtype=name, delimiter=","), values)
        compared += 1
    np.save(folder / "flat.npy", np.arange(5, dtype=np.int16))
    convert(program, folder / "flat.npy", folder / "out.npy")
    np.testing.assert_array_equal(np.load(folder / "out.npy"), np.arange(5)[:, None])
    return compared + 1


def compare_text(program, folder, rng):
    """A table as Python's csv module writes it, with every cell in quotation marks and with Windows line ends."""
    values = rng.standard_normal((50, 3))
    labels = [["rest", 'eyes "shut"', "a,b"][i % 3] for i in range(50)]
    with open(folder / "in.csv", "w", newline="", encoding="utf-8-sig") as file:
        table = csv.writer(file, quoting=csv.QUOTE_ALL)
        table.writerow([*NAMES, "state"])
        table.writerows([*map(repr, map(float, row)), label] for row, label in zip(values, labels))
    convert(program, folder / "in.csv", folder / "out.csv", "--label", "state")
    with open(folder / "out.csv", newline="", encoding="utf-8") as file:
        header, *rows = csv.reader(file)
    assert header == [*NAMES, "state"], header
    assert [row[3] for row in rows] == labels
    np.testing.assert_array_equal(np.array([row[:3] for row in rows], float), values)


def compare_edf(program, folder, rng):
    """EDF and BDF, plain and with annotations, in physical units; returns the largest difference over the range."""
    worst = 0.0
    kinds = [(edfio.Edf, edfio.EdfSignal, "edf"), (edfio.Bdf, edfio.BdfSignal, "bdf")]
    for make, signal, ending in kinds:
        for annotations in [None, [edfio.EdfAnnotation(0.5, 0.2, "blink")]]:
            values = 100 * rng.standard_normal((4 * 128, 3)) + [0, 50, -1000]
            signals = [signal(values[:, i], 128, label=f"EEG {i}", physical_dimension="uV") for i in range(3)]
            path = folder / f"in.{ending}"
            make(signals, annotations=annotations).write(path)
            read = edfio.read_edf(path) if ending == "edf" else edfio.read_bdf(path)
            expected = np.stack([signal.data for signal in read.signals], axis=1)
            convert(program, path, folder / "out.npy")
            array = np.load(folder / "out.npy")
            assert array.shape == expected.shape, (array.shape, expected.shape)
            worst = max(worst, np.abs(array - expected).max() / np.ptp(expected))
            convert(program, path, folder / "out.csv")
            header = (folder / "out.csv").read_text().splitlines()[0]
            assert header == "EEG 0,EEG 1,EEG 2", header
    return worst


def main():
    """Compares everything; says what was compared."""
    program = Path(sys.argv[1]).resolve()
    rng = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as directory:
        folder = Path(directory)
        print(f"{compare_arrays(program, folder, rng)} arrays, raw files and texts: equal")
        compare_text(program, folder, rng)
        print("a table in quotation marks with labels: equal")
        worst = compare_edf(program, folder, rng)
        print(f"EDF and BDF: largest difference {worst:.1e} of the range")
        # A few roundings of doubles.
        assert worst < 1e-14, worst


if __name__ == "__main__":
    main()

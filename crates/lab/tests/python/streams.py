"""Makes small recordings, a model and streams between formats, for the tests of crashes; needs no package."""

import random
import struct
import subprocess
import sys
import tempfile
from array import array
from dataclasses import dataclass
from pathlib import Path

CHANNELS = 3
MODEL, STATE = "model.safetensors", "state"
# The formats by the words used here: the extension of a file, and what must be said of it to read it.
INPUTS = {
    "csv": (".csv", []),
    "tsv": (".tsv", []),
    "npy": (".npy", []),
    "int16": (".raw", ["--channels", str(CHANNELS), "--dtype", "int16"]),
    "float32": (".raw", ["--channels", str(CHANNELS), "--dtype", "float32"]),
    "edf": (".edf", []),
}
OUTPUTS = {"csv": ".csv", "tsv": ".tsv", "npy": ".npy", "raw": ".raw"}
# A second of the EDF recordings.
EDF_ROWS = 100


def stimuli(rows, seed):
    """Correlated rows with an offset, in whole numbers so that every format holds them."""
    rng = random.Random(seed)
    made = []
    for _ in range(rows):
        a, b, c = (rng.gauss(0.0, 1.0) for _ in range(CHANNELS))
        made.append((round(400 + 100 * a), round(90 * a + 40 * b), round(20 * c - 60 * b)))
    return made


def text(rows, separator):
    lines = [separator.join(["a", "b", "c"]), *(separator.join(map(str, row)) for row in rows)]
    return ("\n".join(lines) + "\n").encode()


def numbers(rows, code):
    flat = array(code, (value for row in rows for value in row))
    if sys.byteorder == "big":
        flat.byteswap()
    return flat.tobytes()


def npy(rows):
    header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({len(rows)}, {CHANNELS}), }}"
    header = header.ljust(117) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + numbers(rows, "f")


def edf(rows):
    """European Data Format: a header of text, then records of a second, channel by channel."""
    assert len(rows) % EDF_ROWS == 0, "EDF holds whole seconds"
    records = len(rows) // EDF_ROWS

    def fields(width, *values):
        return "".join(str(value).ljust(width) for value in values)

    head = fields(8, "0") + fields(80, "X X X X", "Startdate 01-JAN-2024 X X X") + "01.01.2400.00.00"
    head += fields(8, 256 * (CHANNELS + 1)) + fields(44, "") + fields(8, records, 1) + fields(4, CHANNELS)
    head += fields(16, "a", "b", "c") + fields(80, *[""] * CHANNELS) + fields(8, *["uV"] * CHANNELS)
    for limit in [-32768, 32767, -32768, 32767]:
        head += fields(8, *[limit] * CHANNELS)
    head += fields(80, *[""] * CHANNELS) + fields(8, *[EDF_ROWS] * CHANNELS) + fields(32, *[""] * CHANNELS)
    seconds = (rows[i * EDF_ROWS : (i + 1) * EDF_ROWS] for i in range(records))
    return head.encode() + b"".join(numbers([*zip(*second)], "h") for second in seconds)


WRITERS = {
    "csv": lambda rows: text(rows, ","),
    "tsv": lambda rows: text(rows, "\t"),
    "npy": npy,
    "int16": lambda rows: numbers(rows, "h"),
    "float32": lambda rows: numbers(rows, "f"),
    "edf": edf,
}


def fitted(program):
    """The bytes of a model of such rows."""
    with tempfile.TemporaryDirectory() as folder:
        for name, seed in [("rest.csv", 1), ("walk.csv", 2)]:
            Path(folder, name).write_bytes(text(stimuli(500, seed), ","))
        command = [program, "fit", "rest.csv", "walk.csv", "--out", MODEL, "--time-constant", "200", "--quiet"]
        subprocess.run(command, cwd=folder, check=True)
        return Path(folder, MODEL).read_bytes()


@dataclass(frozen=True)
class Stream:
    """A recording on its way through a model into another one; all paths are relative to its folder."""

    input_format: str
    output_format: str
    rows: int
    every: int
    more: tuple = ()

    @property
    def name(self):
        return " ".join([f"{self.input_format} → {self.output_format}", *self.more])

    @property
    def input(self):
        return "in" + INPUTS[self.input_format][0]

    @property
    def output(self):
        return "out" + OUTPUTS[self.output_format]

    def files(self, model):
        """What must be there to begin with."""
        return {MODEL: model, self.input: WRITERS[self.input_format](stimuli(self.rows, 21))}

    def command(self, program, *more):
        call = [program, "whiten", MODEL, self.input, "--out", self.output]
        return [*call, *INPUTS[self.input_format][1], *self.more, *more]

    def resumable(self, program, *more):
        return self.command(program, "--checkpoint", STATE, "--every", str(self.every), *more)

    def whole(self, program, model):
        """The output of an uninterrupted run that keeps no state."""
        with tempfile.TemporaryDirectory() as folder:
            put(Path(folder), self.files(model))
            outcome = call(self.command(program), folder)
            assert outcome.returncode == 0, outcome.stderr
            return Path(folder, self.output).read_bytes()


def call(command, folder, **more):
    """Runs a command in a folder and returns how it ended; its words are text."""
    return subprocess.run(
        command, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", **more
    )


def contents(folder):
    """What is in a folder and below it: bytes of files, None for folders."""
    found = {}
    for path in sorted(folder.rglob("*")):
        found[str(path.relative_to(folder))] = None if path.is_dir() else path.read_bytes()
    return found


def put(folder, files):
    """Makes a folder hold exactly these files, writing those that differ."""
    have = contents(folder)
    for name in sorted(have, reverse=True):
        if name not in files or (have[name] is None) != (files[name] is None):
            (folder / name).rmdir() if have[name] is None else (folder / name).unlink()
            del have[name]
    for name in sorted(files):
        if files[name] is None:
            (folder / name).mkdir(exist_ok=True)
        elif have.get(name) != files[name]:
            (folder / name).write_bytes(files[name])


def workplace():
    """Where folders of tests are quickest: in memory where there is such a place."""
    memory = Path("/dev/shm")
    return str(memory) if memory.is_dir() else None


def names_one(message, names):
    """Whether a message names one of these files."""
    return any(name in message for name in names)

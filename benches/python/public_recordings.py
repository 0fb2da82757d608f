"""Gather real recordings that ship inside packages of the Python package index, for score_recordings.py.

    venv/bin/python public_recordings.py FOLDER    # downloads 13 packages, 160 MB, and writes FOLDER/*.npy
    venv/bin/python score_recordings.py FOLDER

Arrays are rows x channels, of at most ROWS rows; missing values are NaN. Each subject of seglearn is a recording.
To add a recording, add an entry to RECORDINGS. They are their authors': none of them belongs in the repository.
The packages are read as archives, and none is installed; for the two that come as source, pip runs the
build system that they name, hatchling and setuptools, to learn what they are called.
Needs pip and numpy, and h5py for the two recordings in HDF5.
"""

import argparse
import bz2
import csv
import gzip
import io
import pathlib
import pickletools
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections import defaultdict
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np

ROWS = 12_000  # later ones are cut off
FEWEST_ROWS = 2_000
WHEELS = ["--only-binary=:all:", "--python-version=3.11", "--platform=manylinux_2_28_x86_64"]  # alike on all machines
RAIN_SINCE = "19800101"  # few stations are older
RAIN_SHARE = 0.9  # of the days that a station must have
Channels = slice | list[str]  # places, or names as the file has them


class Package(NamedTuple):
    name: str
    version: str
    licence: str
    folder: str  # in the archive
    source: bool = False  # the wheel leaves the recordings out


class Recording(NamedTuple):
    name: str
    kind: str
    package: Package
    members: list[str]  # files of the folder
    read: Callable[[list[bytes], Channels], np.ndarray]
    channels: Channels = slice(None)


def text_table(files: list[bytes], channels: Channels, delimiter: str = ",", skip: int = 0) -> np.ndarray:
    """Tables side by side; the first line that is not skipped has the names."""
    tables = []
    for file in files:
        names, *lines = csv.reader(file.decode().splitlines()[skip:], delimiter=delimiter)
        if isinstance(channels, slice):
            places = range(len(names))[channels]
        elif set(channels) <= set(names):
            places = [names.index(channel) for channel in channels]
        else:
            raise ValueError(f"channels: expected {channels}, got {names}")
        tables.append([[float(line[place] or "nan") for place in places] for line in lines])
    return np.hstack(tables)


def log_returns(files: list[bytes], channels: Channels) -> np.ndarray:
    return np.diff(np.log(text_table(files, channels)), axis=0)


def bare_table(files: list[bytes], channels: slice) -> np.ndarray:
    """Numbers without names."""
    return np.loadtxt(io.BytesIO(files[0]), max_rows=ROWS)[:, channels]


def radiation(files: list[bytes], channels: slice) -> np.ndarray:
    """Text of the Baseline Surface Radiation Network: section 0100 has 21 numbers a minute, on two lines."""
    sections = {section[1:5]: section for section in files[0].decode().split("\n*")}
    numbers = np.array(sections["0100"].split()[1:], float).reshape(-1, 21)
    numbers[np.isin(numbers, (-999, -99.9, -99.99))] = np.nan
    return numbers[:, channels]


def rain(files: list[bytes], channels: slice) -> np.ndarray:
    """Daily rain at the stations that rarely miss a day."""
    amounts = defaultdict(dict)
    for line in io.BytesIO(files[0]):
        station, _, _, _, _, day, amount, _ = line.decode().split(";", 7)
        if amount and day.isdigit() and day >= RAIN_SINCE:
            amounts[station][day] = float(amount)
    days = sorted(set().union(*amounts.values()))
    stations = [station for station in sorted(amounts) if len(amounts[station]) > RAIN_SHARE * len(days)][channels]
    return np.array([[amounts[station].get(day, np.nan) for station in stations] for day in days])


def edf(files: list[bytes], channels: slice) -> np.ndarray:
    """European Data Format: a record has some 16-bit samples of each signal, one signal after another."""
    signals = int(files[0][252:256])
    places = (104, 112, 120, 128, 216)  # of fields in the head; each has eight characters for each signal
    fields = [np.frombuffer(files[0], "S8", signals, 256 + place * signals).astype(float) for place in places]
    low, high, lowest, highest, samples = fields  # in units, as stored, and how many
    ends = np.cumsum(samples.astype(int))
    records = np.frombuffer(files[0], "<i2", offset=256 * (signals + 1)).reshape(-1, ends[-1])
    stored = np.stack([signal.ravel() for signal in np.split(records, ends[:-1], axis=1)[channels]], 1)
    scale = (high - low) / (highest - lowest)
    return (stored - lowest[channels]) * scale[channels] + low[channels]


def seisan(files: list[bytes], channels: slice) -> np.ndarray:
    """Records of Fortran, with their length before and after; one of 1040 bytes is the head of the next."""
    file, records = files[0], []
    while file:
        length = int.from_bytes(file[:4], "big")
        records.append(file[4 : 4 + length])
        file = file[8 + length :]
    heads = [place for place, record in enumerate(records) if len(record) == 1040][channels]
    width = len(records[heads[0] + 1]) // int(records[heads[0]][43:50])  # bytes of a sample
    return np.stack([np.frombuffer(records[head + 1], f">i{width}") for head in heads], 1)


def hdf5(files: list[bytes], channels: list[str]) -> np.ndarray:
    """Datasets side by side."""
    import h5py

    with h5py.File(io.BytesIO(files[0])) as file:
        return np.hstack([file[name][:].reshape(len(file[name]), -1) for name in channels])


def pickled(files: list[bytes], channels: slice, dtype: str, width: int, order: str = "C") -> np.ndarray:
    """The first array of a pickle. A pickle runs what it likes, so it is taken apart and not loaded."""
    parts = (part for _, part, _ in pickletools.genops(files[0]) if isinstance(part, bytes))
    numbers = next(part for part in parts if len(part) >= FEWEST_ROWS)
    return np.frombuffer(numbers, dtype).reshape((-1, width), order=order)[:, channels]


def watch(files: list[bytes], channels: slice, subject: int) -> np.ndarray:
    """All series of a subject, one after another."""
    # The one pickle that is loaded, and so trusted: its many arrays cannot be told apart otherwise.
    data = np.load(io.BytesIO(files[0]), allow_pickle=True).item()
    series = [rows for rows, whose in zip(data["X"], data["subject"]) if whose == subject]
    return np.concatenate(series)[:, channels]


AEON = Package("aeon", "1.6.0", "BSD-3-Clause", "aeon/datasets/data")
BACKTESTING = Package("backtesting", "0.6.6", "AGPL-3.0-or-later", "backtesting/test")
BIOSIGNALS = Package(
    "biosignalsnotebooks", "0.6.9", "MIT", "biosignalsnotebooks/notebook_files/osf_files/signal_samples"
)
GAITMAP = Package("gaitmap", "2.6.0", "MIT", "example_data", source=True)
KINEMATICS = Package("scikit-kinematics", "0.9.3", "BSD-3-Clause", "tests/data")
OBSPY = Package("obspy", "1.5.1", "LGPL-3.0", "obspy/io/seisan/tests/data")
PVLIB = Package("pvlib", "0.9.5", "BSD-3-Clause", "pvlib/data")
PYACTIGRAPHY = Package("pyActigraphy", "1.2.2", "GPL-3.0", "pyActigraphy/tests/data")
PYPHYSIO = Package("pyphysio", "4.9.3", "GPL-3.0", "pyphysio/test_data")
SEGLEARN = Package("seglearn", "1.2.5", "BSD-3-Clause", "seglearn/data")
SKFOLIO = Package("skfolio", "1.9.9", "BSD-3-Clause", "skfolio/datasets/data")
SPKIT = Package("spkit", "0.0.9.7", "MIT", "spkit/data/files")
TSLEARN = Package("tslearn", "0.9.0", "BSD-2-Clause", "docs/datasets", source=True)

two_heads = partial(text_table, skip=1)
by_channel = partial(pickled, dtype="<i8", width=9, order="F")
xsens = partial(text_table, delimiter="\t", skip=4)
condor = partial(text_table, delimiter=";", skip=24)
PLATE = [f"00:07:80:4D:2E:81/raw/channel_{corner}" for corner in (1, 2, 3, 4)]
PLATE += [f"00:07:80:D8:AB:46/raw/channel_{axis}" for axis in (1, 2, 3)]  # an accelerometer
LEG = ["walking_xsens_lowerLeg.txt", "walking_xsens_upperLeg.txt"]
AXES = [f"{sensor}_{axis}" for sensor in ("Acc", "Gyr", "Mag") for axis in "XYZ"]
STOCKS = ["sp500_dataset.csv.gz"]
RAIN = ["Q_35_previous-1950-2024_RR-T-Vent.csv.gz"]
WRIST = ["TEMPERATURE", "EXT TEMPERATURE", "PIM", "TAT", "ZCM", "LIGHT"]
WRIST += [f"{colour} LIGHT" for colour in ("AMB", "RED", "GREEN", "BLUE", "IR", "UVA", "UVB")]

RECORDINGS = [
    Recording("eegbci_S001R02_64", "EEG", BIOSIGNALS, ["S001R02.edf"], edf, slice(64)),  # the last one has notes
    Recording("spkit_eeg14_raw", "EEG", SPKIT, ["EEG16sec_artifact.pkl"], partial(pickled, dtype="<f8", width=14)),
    Recording("spkit_ecg12_s1", "ECG", SPKIT, ["ecg_sample_1_12leads.pkl"], partial(pickled, dtype="<f4", width=12)),
    Recording("spkit_ecg_egm9", "ECG and EGM", SPKIT, ["ecg_egm_smaple_28s.pkl"], by_channel),
    Recording("pyphysio_fnirs52", "fNIRS", PYPHYSIO, ["fnirs.ph"], hdf5, ["signal"]),
    Recording("pyphysio_medical4", "ECG, EDA, BVP and breath", PYPHYSIO, ["medical.txt.bz2"], bare_table),
    Recording("biosignals_loft_s1", "force plate", BIOSIGNALS, ["loft_time_subject_1.h5"], hdf5, PLATE),
    Recording("aeon_daphnet_S06R02E0", "inertial", AEON, ["Daphnet_S06R02E0/S06R02E0.csv"], text_table, slice(1, 10)),
    Recording("skin_xio9", "inertial", KINEMATICS, ["data_xio/00033_CalInertialAndMag.csv"], text_table, slice(1, 10)),
    Recording("skin_xsens_leg18", "inertial", KINEMATICS, LEG, xsens, AXES),
    Recording(
        "gaitmap_foot_mag9", "inertial", GAITMAP, ["aligned_data_with_mag_l_walks.csv"], text_table, slice(1, 10)
    ),
    Recording("gaitmap_two_feet12", "inertial", GAITMAP, ["imu_sample_not_rotated.csv"], two_heads, slice(1, 13)),
    Recording("gaitmap_stairs_up12", "inertial", GAITMAP, ["imu_sample_healthy_stair_up.csv"], two_heads, slice(1, 13)),
    Recording("gaitmap_mocap18", "motion capture", GAITMAP, ["mocap_sample.csv"], two_heads, slice(1, 19)),
    Recording("obspy_montserrat21", "seismic", OBSPY, ["9701-30-1048-54S.MVO_21_1"], seisan),
    Recording("obspy_JMI6", "seismic", OBSPY, ["90010319.1320J90"], seisan, slice(6)),  # the last two are clocks
    Recording("pvlib_bsrn_payerne19", "weather", PVLIB, ["bsrn-lr0100-pay0616.dat"], radiation, slice(2, 21)),
    Recording("tslearn_brittany_rain", "rain", TSLEARN, RAIN, rain),
    Recording("skfolio_sp20_price", "prices of stocks", SKFOLIO, STOCKS, text_table, slice(1, 21)),
    Recording("skfolio_sp20_logret", "returns of stocks", SKFOLIO, STOCKS, log_returns, slice(1, 21)),
    Recording("backtesting_eurusd_ohlcv5", "exchange rate", BACKTESTING, ["EURUSD.csv"], text_table, slice(1, 6)),
    Recording("pyact_condor13", "activity and light", PYACTIGRAPHY, ["test_sample_atr.txt"], condor, WRIST),
]
for subject in range(1, 11):
    read = partial(watch, subject=subject)
    RECORDINGS.append(Recording(f"seglearn_watch_s{subject:02d}", "inertial", SEGLEARN, ["watch_dataset.npy"], read))


def download(package: Package, folder: str) -> pathlib.Path:
    """The archive; pip says what is wrong where there is none."""
    kind = [f"--no-binary={package.name}"] if package.source else WHEELS
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", *kind, "--dest", folder]
    subprocess.run([*command, f"{package.name}=={package.version}"], check=True)
    return next(pathlib.Path(folder).iterdir())


def member(archive: pathlib.Path, path: str) -> bytes:
    """The content of a file in a wheel or a source distribution, decompressed."""
    try:
        if archive.suffix == ".whl":
            with zipfile.ZipFile(archive) as opened:
                content = opened.read(path)
        else:
            with tarfile.open(archive) as opened:
                content = opened.extractfile(f"{archive.name.removesuffix('.tar.gz')}/{path}").read()
    except KeyError:
        raise ValueError(f"{archive.name}: expected a member {path}, got none") from None
    decompress = {".gz": gzip.decompress, ".bz2": bz2.decompress}.get(pathlib.PurePath(path).suffix, bytes)
    return decompress(content)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=pathlib.Path, help="where the .npy files go")
    folder = parser.parse_args().folder
    folder.mkdir(parents=True, exist_ok=True)
    for package in dict.fromkeys(recording.package for recording in RECORDINGS):
        with tempfile.TemporaryDirectory() as temporary:
            archive = download(package, temporary)
            for recording in (one for one in RECORDINGS if one.package == package):
                files = [member(archive, f"{package.folder}/{name}") for name in recording.members]
                rows = np.ascontiguousarray(recording.read(files, recording.channels)[:ROWS], float)
                if rows.ndim != 2 or len(rows) < FEWEST_ROWS:
                    raise ValueError(f"{recording.name}: expected {FEWEST_ROWS} rows or more, got shape {rows.shape}")
                np.save(folder / f"{recording.name}.npy", rows)
                source = f"{package.name} {package.version}, {package.licence}"
                print(f"{recording.name}: {recording.kind}, {rows.shape} ({source})", flush=True)


if __name__ == "__main__":
    main()

"""Compares the covariances of `leukos contexts` with numpy's, image by image, to 1e-10.

Usage: python contexts_against_numpy.py PROGRAM

The photographs are made here, written by Pillow, read back by Pillow and made linear in numpy, so nothing but the
files is shared with the program.
"""

import csv
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from PIL import Image

TOLERANCE = 1e-10
REC_709 = np.array([0.2126, 0.7152, 0.0722])


def texture(rng, height, width, exponent):
    """Levels between 0 and 1 whose amplitude falls as 1 / f^exponent."""
    rows, columns = np.fft.fftfreq(height)[:, None], np.fft.rfftfreq(width)[None, :]
    frequency = np.hypot(rows, columns)
    frequency[0, 0] = np.inf
    spectrum = np.fft.rfft2(rng.standard_normal((height, width))) * frequency**-exponent
    field = np.fft.irfft2(spectrum, s=(height, width))
    return (field - field.min()) / (field.max() - field.min())


def write_photographs(folder, rng):
    """Eight images of every kind that Pillow writes without loss, and two of van Hateren's."""
    def levels(exponent, highest, dtype):
        return np.round(highest * texture(rng, 96, 128, exponent)).astype(dtype)

    for i, exponent in enumerate([0.1, 0.4, 0.7]):
        colour = np.stack([levels(exponent, 255, np.uint8) for _ in range(3)], axis=-1)
        for extension in ["png", "tif"]:
            Image.fromarray(colour).save(folder / f"colour{i}.{extension}")
    Image.fromarray(colour).save(folder / "colour.webp", lossless=True)
    Image.fromarray(colour).convert("RGBA").save(folder / "opaque.png")
    Image.fromarray(levels(0.3, 255, np.uint8)).save(folder / "grey.png")
    Image.fromarray(levels(0.3, 65535, np.uint16)).save(folder / "grey16.png")
    # So smooth that the filter leaves it out.
    Image.fromarray(levels(2.0, 65535, np.uint16)).save(folder / "smooth.png")
    for extension in ["imc", "iml"]:
        light = np.round(6000 * texture(rng, 1024, 1536, 0.5)).astype(">u2")
        light.tofile(folder / f"imk.{extension}")


def luminance(path):
    """The linear luminance of an image, from the pixels in its file."""
    if path.suffix in {".imc", ".iml"}:
        return np.fromfile(path, ">u2").reshape(1024, 1536).astype(float)
    with Image.open(path) as image:
        pixels = np.asarray(image)
    level = pixels / np.iinfo(pixels.dtype).max
    light = np.where(level <= 0.04045, level / 12.92, ((level + 0.055) / 1.055) ** 2.4)
    return light if light.ndim == 2 else light[..., :3] @ REC_709


def covariance(light, width, height, spacing):
    """The covariance of the patches at every place, about their mean."""
    span = (height - 1) * spacing + 1, (width - 1) * spacing + 1
    patches = sliding_window_view(light, span)[:, :, ::spacing, ::spacing]
    return np.cov(patches.reshape(-1, width * height), rowvar=False)


def compare(program, folder, shape, limit, norm):
    """Runs the program with these settings; returns the largest difference and the number of contexts."""
    width, height, spacing = shape
    out = folder.parent / "covs.npy"
    command = [program, "contexts", folder, "--out", out, "--quiet", "--sampling", "every"]
    command += ["--patch", f"{width}x{height}", "--spacing", str(spacing)]
    command += ["--condition", str(limit), "--norm", str(norm or "none")]
    subprocess.run(command, check=True)
    stack = np.load(out)
    assert stack.dtype == np.float64 and stack.shape[1:] == (width * height,) * 2, stack.shape
    with open(out.with_suffix(".csv"), newline="", encoding="utf-8") as table:
        lines = list(csv.DictReader(table))
    files = sorted(folder.iterdir())
    assert [line["file"] for line in lines] == [path.name for path in files]
    worst, kept = 0.0, 0
    for path, line in zip(files, lines):
        expected = covariance(luminance(path), width, height, spacing)
        values = np.linalg.eigvalsh(expected)
        condition = values[-1] / values[0]
        assert np.isclose(float(line["condition"]), condition, rtol=1e-9), (path.name, line, condition)
        assert (line["context"] != "") == (condition < limit), (path.name, line, condition)
        if line["context"]:
            assert int(line["context"]) == kept, line
            scale = norm / values[-1] if norm else 1.0
            # Relative to the largest eigenvalue, which van Hateren's units make large.
            size = norm or values[-1]
            worst = max(worst, np.abs(stack[kept] - scale * expected).max() / size)
            kept += 1
    assert kept == len(stack)
    return worst, kept, len(files)


def main():
    """Compares a few shapes, with and without scaling."""
    program = Path(sys.argv[1]).resolve()
    with tempfile.TemporaryDirectory() as directory:
        folder = Path(directory) / "photographs"
        folder.mkdir()
        write_photographs(folder, np.random.default_rng(0))
        for shape, limit, norm in [((5, 5, 16), 20, 10), ((16, 1, 2), 1e6, None), ((3, 2, 1), 1e6, 10)]:
            worst, kept, images = compare(program, folder, shape, limit, norm)
            width, height, spacing = shape
            print(f"{width}x{height}, spacing {spacing}: {kept} of {images} kept, largest difference {worst:.1e}")
            assert worst < TOLERANCE, worst


if __name__ == "__main__":
    main()

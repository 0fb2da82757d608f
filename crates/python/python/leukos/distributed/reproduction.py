"""Makes a function for `sweep` of an experiment of the command line."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any


def reproduce(
    figure: str, *, scale: str = "quick", program: str | os.PathLike[str] = "leukos"
) -> Callable[..., dict[str, Any]]:
    """A function that reruns one figure of the paper and returns its numbers.

    Parameters
    ----------
    figure : str
        A figure of `leukos reproduce`, such as "synthetic".
    scale : "quick" or "paper"
    program : file name
        Of the command line, which every worker must find there.

    The function takes `seed`, and further options of `leukos reproduce` by name (`contexts`, `spec`), and runs on one
    thread. Its results are named by variant, measure and statistic, such as "authors.error_last10.median".
    """
    return partial(_rerun, figure=figure, program=os.fspath(program), scale=scale)


def _rerun(*, figure: str, program: str, seed: int, **options: Any) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="leukos-") as folder:
        flags = {"seed": seed, "jobs": 1, "out": folder, **options}
        words = [word for name, value in flags.items() for word in (f"--{name}", str(value))]
        done = subprocess.run([program, "reproduce", figure, *words, "--quiet"], capture_output=True, text=True)
        if done.returncode != 0:
            raise RuntimeError(f"{program} reproduce {figure}: {done.stderr.strip()}")
        results = json.loads((Path(folder) / "results.json").read_text())
    return dict(_numbers(results["figures"][figure]["variants"]))


def _numbers(results: Any, *names: str) -> Iterator[tuple[str, Any]]:
    if isinstance(results, dict):
        for name, inner in results.items():
            yield from _numbers(inner, *names, name)
    else:
        yield ".".join(names), results

"""Refuses arrays whose numbers would be misread: masked ones, dates and durations."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np


def refuse_disguised(name: str, values: Any) -> None:
    """Raises where numpy would hand out numbers that are hidden by a mask, or count time from some day on."""
    # A list of masked arrays loses its masks when an array is made of it.
    parts = values if isinstance(values, (list, tuple)) else [values]
    if any(isinstance(part, np.ma.MaskedArray) for part in parts):
        raise ValueError(
            f"{name}: expected an array without a mask (such as its .filled(numpy.nan)), got a masked array"
        )
    for dtype in _dtypes(parts):
        if getattr(dtype, "kind", "") in "mM":
            raise ValueError(f"{name}: expected an array of real numbers, got one of {dtype}")


def _dtypes(parts: Any) -> list[Any]:
    """Those of arrays, of scalars, and of the columns of frames."""
    found: list[Any] = []
    for part in parts:
        columns: Any = getattr(part, "dtypes", None)
        found.extend(columns if isinstance(columns, Iterable) else [columns])
        found.append(getattr(part, "dtype", None))
    return [dtype for dtype in found if dtype is not None]

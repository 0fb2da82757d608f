"""Adaptive whitening with fast gain modulation and slow synaptic plasticity.

A circuit of N primary neurons and K interneurons answers a stimulus s with the response r = M^-1 s, where
M = leak I + W diag(g) W'. Its gains g adapt within a context, its synapses W learn what all contexts share.

- `AdaptiveWhitener` is a scikit-learn estimator for your own data.
- `Circuit`, `run_online`, `run_offline` and `run_biological` are the algorithms of the paper (Duong, Simoncelli,
  Chklovskii and Lipshutz, NeurIPS 2023); equation numbers are its own.
- `objective`, `gradient`, `whitening_error`, `align`, `optimal_gains` and `least_squares_gains` are its theory.
- `leukos.datasets` makes contexts and stimuli, `leukos.plotting` draws (it needs matplotlib), `leukos.widget` shows a
  whitener in a notebook while it adapts (it needs anywidget), and `leukos.distributed` sums up, fits and sweeps on a
  cluster (it needs dask).
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ._leukos import (
    Circuit,
    DivergedError,
    Moments,
    NotConvergedError,
    OfflineRun,
    OnlineRun,
    __version__,
    align,
    gradient,
    least_squares_gains,
    objective,
    optimal_gains,
    run_biological,
    run_offline,
    run_online,
    whitening_error,
)

if TYPE_CHECKING:
    from . import datasets, distributed, plotting
    from .estimator import AdaptiveWhitener
    from .notebook import widget

__all__ = [
    "AdaptiveWhitener",
    "Circuit",
    "DivergedError",
    "Moments",
    "NotConvergedError",
    "OfflineRun",
    "OnlineRun",
    "__version__",
    "align",
    "datasets",
    "distributed",
    "gradient",
    "least_squares_gains",
    "objective",
    "optimal_gains",
    "plotting",
    "run_biological",
    "run_offline",
    "run_online",
    "whitening_error",
    "widget",
]


def __getattr__(name: str) -> Any:
    # scikit-learn takes a second to import, so it is imported only when it is used.
    if name == "AdaptiveWhitener":
        return import_module(".estimator", __name__).AdaptiveWhitener
    if name == "widget":
        return import_module(".notebook", __name__).widget
    if name in ("datasets", "distributed", "plotting"):
        return import_module(f".{name}", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)

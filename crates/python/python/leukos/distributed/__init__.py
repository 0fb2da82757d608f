"""Sums up, fits and sweeps over data too large for one machine, with Dask.

- `covariances` sums up blocks of rows, context by context; `fit` makes an `AdaptiveWhitener` of the sums.
- `sweep` runs a function over a grid of parameters and seeds; `reproduce` makes such a function of an experiment of the
  command line.

All take a `distributed.Client`, and work the same in local threads without one. The bits of the sums depend on how the
rows are divided into blocks, and not on which machine sums them up.
"""

try:
    import dask
    import distributed
    import pandas
except ModuleNotFoundError as missing:
    raise ImportError(
        f"leukos.distributed: expected dask, distributed and pandas to be installed, "
        f'got "{missing}"; pip install "leukos[dask]"'
    ) from missing

from .fitting import fit
from .reproduction import reproduce
from .sums import ContextCovariances, covariances
from .sweeps import sweep

__all__ = ["ContextCovariances", "covariances", "fit", "reproduce", "sweep"]

"""Fits a whitener to data that no single machine holds."""

from __future__ import annotations

from typing import Any

from distributed import Client
from sklearn.base import clone

from ..estimator import AdaptiveWhitener
from .sums import Acceptance, sum_up


def fit(blocks: Any, contexts: Any = None, *, client: Client | None = None, **parameters: Any) -> AdaptiveWhitener:
    """Fits an `AdaptiveWhitener` to the rows of blocks.

    Parameters
    ----------
    blocks, contexts, client
        As in `covariances`.
    **parameters
        Of `AdaptiveWhitener`. With `bad_samples="error"`, its default, a block with a bad row is refused.

    The outcome is that of `AdaptiveWhitener.fit_moments` with the sums of `covariances`.

    Examples
    --------
    >>> import numpy as np
    >>> from leukos.distributed import fit
    >>> rng = np.random.default_rng(0)
    >>> blocks = [rng.normal(size=(1000, 2)) @ [[2.0, 1.0], [0.0, 0.5]] for _ in range(4)]
    >>> whitener = fit(blocks, time_constant=500)
    >>> bool(np.allclose(np.cov(whitener.transform(np.concatenate(blocks)).T, bias=True), np.eye(2), atol=1e-6))
    True
    """
    whitener = AdaptiveWhitener(**parameters)
    # Before hours of sums; of a copy, since a RandomState moves on when it is asked.
    clone(whitener)._fitting()
    acceptance = Acceptance(whitener.saturation, bad_rows=whitener.bad_samples != "error")
    return whitener.fit_moments(sum_up(blocks, contexts, client, acceptance).moments)

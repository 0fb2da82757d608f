"""Runs dask tasks here or on a cluster, through the death of workers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dask.base import compute as compute_here
from distributed import Client
from distributed.scheduler import KilledWorker

RETRIES = 2
"""How often a task that fails is run again: a network drive has bad moments."""

REVIVALS = 5
"""How often a task is run again after dask has given it up, as it does with one that was on several dying workers.

A task that is merely unlucky gets through; one that is itself too large for every worker does not go on for ever.
"""


def require_client(client: Any) -> None:
    """Refuses what is no client, and a client that cannot be waited for."""
    if client is not None and (not isinstance(client, Client) or client.asynchronous):
        got = "one that is asynchronous" if isinstance(client, Client) else repr(client)
        raise ValueError(f"client: expected a distributed.Client or None, got {got}")


def compute(tasks: Sequence[Any], client: Client | None) -> Sequence[Any]:
    """The outcome of each task; errors come as they were raised."""
    if client is None:
        return compute_here(*tasks, scheduler="threads")
    futures = client.compute(list(tasks), retries=RETRIES)
    try:
        return [_outcome(future) for future in futures]
    finally:
        client.cancel(futures)


def _outcome(future: Any) -> Any:
    for _ in range(REVIVALS):
        try:
            return future.result()
        except KilledWorker:
            future.retry()
    return future.result()

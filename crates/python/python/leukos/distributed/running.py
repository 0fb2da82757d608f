"""Runs dask tasks here or on a cluster, and survives the death of workers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from dask.base import compute as compute_here
from dask.delayed import Delayed, delayed
from dask.threaded import get as get_in_threads
from distributed import Client, Future
from distributed.scheduler import KilledWorker

RETRIES = 2
"""How often a task that fails is run again, because errors such as those of a network drive may pass."""

REVIVALS = 2
"""How often a task is restarted after dask has given it up, as it does with one that was on several dying workers.

A task that is merely unlucky gets through; one that is itself too large for every worker does not go on for ever.
"""


def require_client(client: Any) -> None:
    """Refuses an object that is not a client, and an asynchronous client."""
    if client is not None and (not isinstance(client, Client) or client.asynchronous):
        got = "one that is asynchronous" if isinstance(client, Client) else repr(client)
        raise ValueError(f"client: expected a distributed.Client or None, got {got}")


def outcomes(tasks: Sequence[Delayed], client: Client | None) -> Iterator[Any]:
    """The outcome of each task, in their order; errors come as they were raised."""
    if client is None:
        yield from compute_here(*tasks, scheduler=get_in_threads)
        return
    futures = client.compute([_anew(task) for task in tasks], retries=RETRIES)
    try:
        for place, task in enumerate(tasks):
            for _ in range(REVIVALS):
                if not was_given_up(futures[place]):
                    break
                client.cancel([futures[place]])
                futures[place] = client.compute(_anew(task), retries=RETRIES)
            yield futures[place].result()
            futures[place].release()
    finally:
        client.cancel(futures)


def _anew(task: Delayed) -> Delayed:
    """The task under a name of its own, since news of the cancelled one may still be under way."""
    return delayed(_itself, pure=False)(task)


def _itself(outcome: Any) -> Any:
    return outcome


def was_given_up(future: Future[Any]) -> bool:
    """Whether dask blames a task for the death of workers; waits until the task is done."""
    return isinstance(future.exception(), KilledWorker)

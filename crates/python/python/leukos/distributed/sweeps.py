"""Runs a function over a grid of parameters and seeds, and gathers a table."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from functools import partial
from numbers import Integral
from typing import Any

import pandas as pd
from dask.system import CPU_COUNT
from distributed import Client
from distributed import as_completed as as_completed_there
from sklearn.model_selection import ParameterGrid

from .calls import RESERVED, Row, Task, attempt
from .progress import Progress
from .results_file import ResultsFile
from .running import REVIVALS, require_client, was_given_up

def sweep(
    function: Callable[..., Any],
    grid: Mapping[str, Sequence[Any]] | None = None,
    seeds: int | Iterable[int] = 1,
    *,
    client: Client | None = None,
    path: str | os.PathLike[str] | None = None,
    progress: bool | None = None,
) -> pd.DataFrame:
    """Calls `function(**parameters, seed=seed)` for all parameters of a grid and all seeds.

    Parameters
    ----------
    function : callable
        Returns a number, which becomes the column "result", or a dict with a value for each of its columns. Values are
        numbers, strings, None, and arrays, lists and dicts of them. Workers must be able to import or unpickle it.
    grid : dict of lists, optional
        The values of each parameter, as for scikit-learn's ParameterGrid, whose order the table has.
    seeds : int or iterable of int
        So many seeds from 0 on, or these.
    client : distributed.Client, optional
        Whose workers run it; without one, as many threads of this process as it has processors.
    path : file name, optional
        Of a file with a line of JSON for each finished call, written as they come. A sweep that is started again with
        it runs only what is not there yet. An error of the function is there, the death of a worker is not. Each line
        has a checksum: what stands on a damaged one runs again, with a warning. Of two sweeps at a time with one file
        the second raises RuntimeError.
    progress : bool, optional
        Whether stderr shows how far it has come; by default, if that is a terminal.

    Returns a DataFrame with a row for each call, in the order of the grid, and columns for the parameters, `seed`, the
    results, `seconds` and `error`: the exception of a call that failed, which stops no other, or None.

    Examples
    --------
    >>> from leukos.distributed import sweep
    >>> table = sweep(lambda gain, seed: {"response": gain * seed}, {"gain": [2, 3]}, seeds=2, progress=False)
    >>> table.drop(columns="seconds")
       gain  seed  response error
    0     2     0         0  None
    1     2     1         2  None
    2     3     0         0  None
    3     3     1         3  None
    """
    require_client(client)
    tasks = _tasks(grid, seeds)
    names = list(tasks[0].parameters)
    rows: dict[int, Row] = {}
    with ResultsFile(path, names) as file, Progress(len(tasks), progress) as bar:
        for position, task in enumerate(tasks):
            if (known := file.find(task)) is not None:
                rows[position] = known
        bar.skip(len(rows))
        pending = {position: task for position, task in enumerate(tasks) if position not in rows}
        work = _here(function, pending) if client is None else _there(function, pending, client)
        for position, row in work:
            rows[position] = row
            if row.seconds is not None:
                file.add(tasks[position], row)
            bar.advance(row.error)
    return _table(tasks, [rows[position] for position in range(len(tasks))], names)


def _here(function: Callable[..., Any], tasks: Mapping[int, Task]) -> Iterator[tuple[int, Row]]:
    executor = ThreadPoolExecutor(CPU_COUNT)
    try:
        futures = {executor.submit(attempt, function, task): position for position, task in tasks.items()}
        for future in as_completed(futures):
            yield futures[future], future.result()
    finally:
        # After Ctrl-C a call that has begun cannot be stopped, but the caller need not wait for it.
        executor.shutdown(wait=False, cancel_futures=True)


def _there(function: Callable[..., Any], tasks: Mapping[int, Task], client: Client) -> Iterator[tuple[int, Row]]:
    call = partial(attempt, function)
    futures = dict(zip(client.map(call, list(tasks.values()), pure=False), tasks, strict=True))
    revivals = dict.fromkeys(tasks, REVIVALS)
    finished = as_completed_there(list(futures), with_results=True, raise_errors=False)
    try:
        for future, outcome in finished:
            position = futures.pop(future)
            if future.status == "finished":
                yield position, outcome
            elif was_given_up(future) and revivals[position] > 0:
                revivals[position] -= 1
                again = client.submit(call, tasks[position], pure=False)
                futures[again] = position
                finished.add(again)
            else:
                # Exceptions of the function are in its row; this one is dask's own.
                yield position, Row({}, None, repr(future.exception()))
    finally:
        client.cancel(list(futures))


def _tasks(grid: Any, seeds: Any) -> list[Task]:
    grid, chosen = {} if grid is None else grid, _seeds(seeds)
    if not isinstance(grid, Mapping):
        raise ValueError(f"grid: expected a dict with a list of values for each parameter, got {grid!r}")
    for name in RESERVED:
        if name in grid:
            raise ValueError(f"grid: expected no parameter named {name!r}, which is a column of its own, got one")
    try:
        combinations = list(ParameterGrid(grid))
    except (TypeError, ValueError) as error:
        raise ValueError(f"grid: expected a dict with a list of values for each parameter. {error}") from None
    return [Task(parameters, seed) for parameters in combinations for seed in chosen]


def _seeds(seeds: Any) -> list[int]:
    chosen = range(seeds) if _is_whole(seeds) else list(seeds) if isinstance(seeds, Iterable) else []
    if not chosen or not all(map(_is_whole, chosen)):
        raise ValueError(f"seeds: expected a number of seeds, or one or more whole numbers, got {seeds!r}")
    return [int(seed) for seed in chosen]


def _is_whole(value: Any) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool)


def _table(tasks: Sequence[Task], rows: Sequence[Row], names: Sequence[str]) -> pd.DataFrame:
    results = list(dict.fromkeys(name for row in rows for name in row.results))
    # An array of objects keeps None apart from NaN, and a list in its cell.
    errors = pd.Series([row.error for row in rows], dtype=object)
    return pd.DataFrame(
        {name: [task.parameters[name] for task in tasks] for name in names}
        | {"seed": [task.seed for task in tasks]}
        | {name: [row.results.get(name) for row in rows] for name in results}
        | {"seconds": [row.seconds for row in rows], "error": errors}
    )

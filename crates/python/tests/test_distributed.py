"""Sums up, fits and sweeps on a cluster of two processes, kills some of them, and compares every bit."""

import doctest
import importlib
import json
import os
import re
import signal
import sys
import threading
import time
from contextlib import nullcontext
from pathlib import Path

import cloudpickle
import dask
import dask.array as da
import numpy as np
import pandas as pd
import pytest
from distributed import Client, LocalCluster

from leukos import AdaptiveWhitener, Moments
from leukos.distributed import covariances, fit, reproduce, sweep

# Workers cannot import this file.
cloudpickle.register_pickle_by_value(sys.modules[__name__])

# A worker that is killed leaves sockets and threads behind, which others then find.
pytestmark = [
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning"),
]

PROGRAM = Path(os.environ["LEUKOS_PROGRAM"]).resolve() if "LEUKOS_PROGRAM" in os.environ else None
CHANNELS = 4
LABELS = np.repeat(["rest", "walk", "run", "rest"], 300)


@pytest.fixture(scope="module")
def client():
    # Dask gives a task up that was once on a dying worker: that must not matter.
    with (
        dask.config.set({"distributed.scheduler.allowed-failures": 0}),
        LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):
        yield client


@pytest.fixture(scope="module")
def X():
    mixing = np.triu(np.ones((CHANNELS, CHANNELS))) * [3.0, 1.0, 0.5, 2.0]
    return np.random.default_rng(0).normal(size=(len(LABELS), CHANNELS)) @ mixing + 100.0


def cut(rows, size=170):
    return [rows[start : start + size] for start in range(0, len(rows), size)]


def by_hand(blocks, labels):
    """The tree of the documentation, in plain Python."""
    parts = []
    for rows, own in zip(blocks, labels, strict=True):
        parts.append({})
        for name in dict.fromkeys(own):
            parts[-1][name] = Moments(CHANNELS)
            parts[-1][name].update(rows[own == name])
    while len(parts) > 1:
        for left, right in zip(parts[::2], parts[1::2], strict=False):
            for name, moments in right.items():
                left.setdefault(name, Moments(CHANNELS)).merge(moments)
        parts = parts[::2]
    return parts[0]


def test_the_tree_is_fixed_whoever_computes_it(X, client, tmp_path):
    blocks, labels = cut(X), cut(LABELS)
    expected = by_hand(blocks, labels)
    names = [tmp_path / f"{number}.npy" for number in range(len(blocks))]
    for name, rows in zip(names, blocks, strict=True):
        np.save(name, rows)
    array = da.from_array(X, chunks=(170, 3))
    for given, contexts in [
        (blocks, labels),
        (iter(blocks), LABELS),
        (names, labels),
        (map(str, names), da.from_array(LABELS, chunks=170)),
        ([dask.delayed(rows) for rows in blocks], [dask.delayed(own) for own in labels]),
        (array, LABELS),
        (array, da.from_array(LABELS, chunks=111)),
        ([names[0], *map(dask.delayed, blocks[1:-1]), blocks[-1]], labels),
    ]:
        given = list(given) if not isinstance(given, da.Array) else given
        for workers in (None, client):
            summed = covariances(given, contexts, client=workers)
            assert summed.moments == expected
            assert summed.names == ["rest", "walk", "run"]


def test_the_tree_goes_on_above_the_groups(X, client):
    blocks, labels = cut(X[:600], 5), cut(LABELS[:600], 5)  # 120 blocks: three groups and three quarters of one
    expected = by_hand(blocks, labels)
    assert covariances(blocks, labels).moments == expected
    assert covariances([dask.delayed(rows) for rows in blocks], labels, client=client).moments == expected


def test_they_are_the_covariances_of_numpy(X):
    summed = covariances(cut(X), LABELS)
    assert summed.counts.tolist() == [600, 300, 300] and summed.bad.tolist() == [0, 0, 0]
    for name, covariance in zip(summed.names, summed.covariances, strict=True):
        np.testing.assert_allclose(covariance, np.cov(X[LABELS == name].T, bias=True), rtol=1e-9)
    alone = covariances(da.from_array(X, chunks=(500, -1)))
    assert alone.names == [""] and alone.covariances.shape == (1, CHANNELS, CHANNELS)
    np.testing.assert_allclose(alone.covariances[0], np.cov(X.T, bias=True), rtol=1e-9)


def test_labels_of_blocks_of_numbers_and_out_of_order(X):
    summed = covariances([X[:5], X[5:9], X[9:20]], contexts=[7, "b", 7])
    assert summed.names == ["7", "b"] and summed.counts.tolist() == [16, 4]
    shuffled = np.random.default_rng(1).permutation(LABELS)
    mixed = covariances(cut(X), shuffled)
    assert mixed.moments == by_hand(cut(X), cut(shuffled))


def test_unknown_chunk_sizes(X, client):
    array = da.from_array(X, chunks=(400, -1))
    some = array[array[:, 0] > 100.0]
    assert np.isnan(some.shape[0])
    assert covariances(some, client=client).counts.tolist() == [(X[:, 0] > 100.0).sum()]


def test_csv(X, tmp_path, client):
    names = [tmp_path / f"{number}.csv" for number in range(3)]
    for name, rows in zip(names, np.split(X, 3), strict=True):
        pd.DataFrame(rows, columns=list("abcd")).to_csv(name, index=False)
    assert covariances(names, client=client).moments == covariances(np.split(X, 3)).moments
    pd.DataFrame(X[:9], columns=list("abdc")).to_csv(names[2], index=False)
    with pytest.raises(ValueError, match=r"blocks\[2\]: expected a column 'c' as in blocks\[0\], got 'd'"):
        covariances(names, client=client)


def test_empty_blocks_count_for_nothing(X):
    with_empty = [X[:0], X[:300], X[300:300], X[300:500]]
    assert covariances(with_empty, ["none", "a", "none", "b"]).moments == covariances(
        [X[:300], X[300:500]], ["a", "b"]
    ).moments
    assert covariances(with_empty, LABELS[:500]).counts.tolist() == [300, 200]
    array = da.concatenate([da.from_array(rows, chunks=-1) for rows in with_empty])
    assert covariances(array, da.from_array(LABELS[:500], chunks=100)).counts.tolist() == [300, 200]


def test_bad_samples_are_counted_not_spread(X):
    broken = X.copy()
    broken[3, 1], broken[700:720] = np.nan, np.inf
    summed = covariances(cut(broken), LABELS)
    assert summed.bad.tolist() == [1, 0, 20] and summed.counts.tolist() == [599, 300, 280]
    np.testing.assert_allclose(summed.moments["rest"].mean, np.delete(X[LABELS == "rest"], 3, axis=0).mean(axis=0))
    nothing = np.full((50, CHANNELS), np.nan)
    assert covariances([X[:50], nothing]).bad.tolist() == [50]
    loud = np.abs(X).max(axis=1) >= 104.0
    assert covariances([X], saturation=104.0).bad.tolist() == [loud.sum()]


@pytest.mark.parametrize("workers", [False, True])
def test_a_fit_is_the_fit_of_the_same_sums(X, client, workers):
    client = client if workers else None
    array = da.from_array(X, chunks=(170, -1))
    own = fit(array, LABELS, client=client, time_constant=200, random_state=3)
    summed = covariances(array, LABELS, client=client)
    same = AdaptiveWhitener(time_constant=200, random_state=3).fit_moments(summed.moments)
    local = AdaptiveWhitener(time_constant=200, random_state=3).fit(X, contexts=LABELS)
    for attribute in ("mean_", "scale_", "synapses_", "gains_", "whitening_matrix_"):
        np.testing.assert_array_equal(getattr(own, attribute), getattr(same, attribute))
        np.testing.assert_allclose(getattr(own, attribute), getattr(local, attribute), rtol=1e-6, atol=1e-9)
    np.testing.assert_array_equal(own.adapt_transform(X), same.adapt_transform(X))


def test_one_block_is_the_local_fit_to_the_bit(X):
    np.testing.assert_array_equal(fit([X]).whitening_matrix_, AdaptiveWhitener().fit(X).whitening_matrix_)
    random = dict(synapses="random", n_interneurons=6)
    own = fit([X], random_state=np.random.RandomState(5), **random)
    local = AdaptiveWhitener(random_state=np.random.RandomState(5), **random).fit(X)
    np.testing.assert_array_equal(own.synapses_, local.synapses_)


def settle(client):
    """Waits for two workers that are well alive: dask replaces no worker that dies before it has quite begun."""
    client.wait_for_workers(2, timeout=30)
    time.sleep(0.5)


def kill_the_first_to_begin(folder, client):
    """A thread that kills the process of the first task to write its process id; when joined, the id."""
    settle(client)

    class Killer(threading.Thread):
        def run(self):
            while not (marks := list(folder.glob("*.pid"))):
                time.sleep(0.01)
            time.sleep(0.1)
            self.killed = int(marks[0].name.split("-")[1].removesuffix(".pid"))
            os.kill(self.killed, signal.SIGKILL)

    killer = Killer()
    killer.start()
    return killer


def slowly(folder, number, outcome):
    # One name for each attempt: whoever was killed leaves a mark beside that of the next.
    (folder / f"{number}-{os.getpid()}.pid").touch()
    time.sleep(0.3)
    return outcome


def begun_twice(folder):
    numbers = [path.name.split("-")[0] for path in folder.glob("*.pid")]
    return len(numbers) > len(set(numbers))


def test_a_worker_killed_in_a_reduction_changes_no_bit(X, client, tmp_path):
    folder = tmp_path / "marks"
    folder.mkdir()
    blocks, labels = cut(X), cut(LABELS)
    np.save(tmp_path / "first.npy", blocks[0])
    tasks = [dask.delayed(slowly)(folder, number, rows) for number, rows in enumerate(blocks) if number > 0]
    killer = kill_the_first_to_begin(folder, client)
    summed = covariances([tmp_path / "first.npy", *tasks], labels, client=client)
    killer.join()
    assert begun_twice(folder) and killer.killed not in client.run(os.getpid).values()
    assert summed.moments == covariances(blocks, labels).moments


def test_a_worker_killed_in_a_sweep_costs_no_row(client, tmp_path):
    def function(gain, seed, folder=tmp_path):
        return slowly(folder, f"{gain} {seed}", {"value": np.random.default_rng(seed).normal(scale=gain)})

    grid = {"gain": [1.0, 2.0]}
    killer = kill_the_first_to_begin(tmp_path, client)
    there = sweep(function, grid, seeds=4, client=client)
    killer.join()
    assert begun_twice(tmp_path) and killer.killed not in client.run(os.getpid).values()
    here = sweep(function, grid, seeds=4)
    pd.testing.assert_frame_equal(there.drop(columns="seconds"), here.drop(columns="seconds"), check_exact=True)
    assert here["error"].isna().all() and here["value"].nunique() == 8


def test_a_task_that_kills_its_workers_is_a_row(client, tmp_path, monkeypatch):
    def function(seed):
        if seed == 1:
            os._exit(1)
        return seed

    settle(client)
    monkeypatch.setattr("leukos.distributed.sweeps.REVIVALS", 0)  # One worker is enough.
    path = tmp_path / "rows.jsonl"
    sweep(function, seeds=[0, 2], client=client, path=path)
    written = path.read_text()
    table = sweep(function, seeds=[0, 1, 2], client=client, path=path)
    assert table["error"][1].startswith("KilledWorker") and np.isnan(table["seconds"][1])
    assert table["result"].tolist()[::2] == [0, 2]
    assert path.read_text() == written


WRONG_BLOCKS = [
    (lambda X: ([X, X, X, X[:, :3]], None), r"blocks\[3\]: expected 4 columns as in blocks\[0\], got 3"),
    (lambda X: ([X[:0], X[:, :3]], None), r"blocks\[1\]: expected 4 columns as in blocks\[0\], got 3"),
    (lambda X: ([X, X[0]], None), r"blocks\[1\]: expected an array of shape \(samples, channels\), got shape \(4,\)"),
    (lambda X: ([X, [[1, 2], [3]]], None), r"blocks\[1\]: expected an array of shape .* got rows of different"),
    (lambda X: ([X, X.astype(str)], None), r"blocks\[1\]: expected an array of real numbers, got one of <U"),
    (lambda X: ([X, X], [LABELS, LABELS[1:]]), r"blocks\[1\]: contexts: expected a label for each of 1200 rows, got"),
    (lambda X: ([X, X[:2]], [LABELS, ["a", None]]), r"blocks\[1\]: contexts: expected a label .* got None at position 1"),
    (lambda X: ([X, X], ["a", np.nan]), r"blocks\[1\]: contexts: expected a label .* got .*nan.* at position 0"),
    (lambda X: ([X, X[:0]], [LABELS, ["a"]]), r"blocks\[1\]: contexts: expected a label for each of 0 rows, got"),
    (lambda X: ([X, X * np.nan], ["a", "b"]), r"contexts: expected usable samples of 'b', got 1200 rows that are all"),
]


@pytest.mark.parametrize("workers", [False, True])
@pytest.mark.parametrize("make, message", WRONG_BLOCKS)
def test_wrong_blocks_are_named(X, client, workers, make, message):
    blocks, contexts = make(X)
    # With a cluster the blocks are known only once they are computed.
    if workers:
        blocks = [dask.delayed(lambda block: block)(block) for block in blocks]
    with pytest.raises(ValueError, match=message) as caught:
        covariances(blocks, contexts, client=client if workers else None)
    assert type(caught.value) is ValueError


@pytest.mark.parametrize(
    "blocks, contexts, message",
    [
        (np.ones((5, 2)), None, r"blocks: expected a dask array, or a sequence .* got one array of shape \(5, 2\); put"),
        ("a.npy", None, "blocks: expected a dask array, or a sequence of arrays, file names .* got 'a.npy'"),
        (3, None, "blocks: expected a dask array, .* got 3"),
        ([], None, "blocks: expected one block or more, got none"),
        (["a.npy", "b.edf"], None, r"blocks\[1\]: expected a .npy or .csv file, got 'b.edf'"),
        ([np.ones((0, 2))] * 3, None, "blocks: expected one sample or more, got 3 blocks without rows"),
        ([np.full((9, 2), np.nan)], None, "blocks: expected usable samples, got 9 rows that are all bad"),
        ([np.ones((0, 0))], None, r"blocks\[0\]: expected an array of shape \(samples, channels\), got shape \(0, 0\)"),
        (da.ones(5), None, r"blocks: expected a dask array of shape \(samples, channels\), got 1 dimensions"),
        ([da.ones((5, 2))], None, r"blocks\[0\]: expected rows, got a dask array"),
        ([np.ones((5, 2))] * 2, "ab", "contexts: expected labels of rows or of blocks, got 'ab'"),
        ([np.ones((5, 2))] * 2, list("abc"), "contexts: expected a label for each of 2 blocks, or for each of 10 rows, got 3"),
        (["a.npy"] * 2, list("abc"), "contexts: expected a label for each of 2 blocks, or for each row .* known, got 3"),
        (["a.npy"] * 2, da.ones(5, chunks=5), "contexts: expected 2 chunks of labels, .* got 1"),
        ([np.ones((5, 2))], da.ones(6), "contexts: expected a label for each of 5 rows, got 6"),
        ([np.ones((5, 2))], da.ones((5, 1)), r"contexts: expected a dask array of shape \(samples,\), got 2 dimensions"),
    ],
)
def test_wrong_arguments(blocks, contexts, message):
    with pytest.raises(ValueError, match=message):
        covariances(blocks, contexts)


def test_wrong_fits(X, client):
    broken = X.copy()
    broken[700, 2] = np.nan
    blocks = [dask.delayed(rows) for rows in cut(broken)]
    for workers in (None, client):
        with pytest.raises(ValueError, match=r"blocks\[4\]: expected finite values, got 1 rows with others"):
            fit(blocks, client=workers)
    assert fit(blocks, bad_samples="mark").n_samples_seen_ == len(X)
    # A wild row is left out, and nothing that is refused; it does not count as one that is.
    broken[710] = 1e9
    with pytest.raises(ValueError, match=r"blocks\[0\]: expected finite values, got 1 rows with others"):
        fit([broken])
    broken[700, 2] = X[700, 2]
    assert covariances([broken]).bad.tolist() == [1]
    assert fit([broken]).n_samples_seen_ == len(X)
    with pytest.raises(ValueError, match=r"blocks\[0\]: expected finite values below the saturation 101"):
        fit([X], saturation=101)
    with pytest.raises(ValueError, match="time_constant: expected a number or \"auto\", got 'long'"):
        fit(["missing.npy"], time_constant="long")
    with pytest.raises(ValueError, match="client: expected a distributed.Client or None, got 'tcp://host:8786'"):
        covariances([X], client="tcp://host:8786")
    with pytest.raises(FileNotFoundError, match="missing.npy"):
        covariances(["missing.npy"], client=client)


def measure(gain, axis, seed):
    if gain == 0:
        raise ZeroDivisionError("no gain")
    return {"error": None} if axis == "bad" else {"value": seed / gain, "trace": np.arange(seed)}


@pytest.mark.parametrize("workers", [False, True])
def test_a_sweep_is_a_table_in_the_order_of_the_grid(client, workers):
    grid = {"gain": [2, 0], "axis": ["x", "bad"]}
    table = sweep(measure, grid, seeds=[5, 3], client=client if workers else None)
    assert list(table.columns) == ["axis", "gain", "seed", "value", "trace", "seconds", "error"]
    assert table[["axis", "gain", "seed"]].values.tolist() == [
        [axis, gain, seed] for axis in ("x", "bad") for gain in (2, 0) for seed in (5, 3)
    ]
    assert table["value"].tolist()[:2] == [2.5, 1.5] and table["value"].isna().sum() == 6
    assert table["trace"][1] == [0, 1, 2] and (table["seconds"] >= 0).all()
    assert table["error"][0] is None and table["error"][2] == "ZeroDivisionError: no gain"
    assert table["error"][4] == "ValueError: function: expected results with names of their own, got 'error'"


def test_a_number_is_the_result_and_an_object_is_an_error():
    table = sweep(lambda seed: seed**2 if seed < 2 else object(), seeds=3, progress=False)
    assert table["result"].tolist()[:2] == [0, 1]
    assert table["error"][2] == (
        "ValueError: function: result 'result': expected numbers, strings, or arrays, lists or dicts of them, got object"
    )


def test_a_sweep_goes_on_from_its_file(tmp_path, client):
    path, calls = tmp_path / "sweep.jsonl", []

    def function(gain, seed):
        calls.append((gain, seed))
        if gain == 3:
            raise RuntimeError("three")
        return {"value": np.float64(gain) / 7, "list": [seed, None]}

    grid = {"gain": [1.5, 3]}
    whole = sweep(function, grid, seeds=2, path=path)
    lines = path.read_text().splitlines(keepends=True)
    assert len(lines) == 4 and json.loads(lines[0])["seed"] in (0, 1)
    path.write_text("".join(lines[:2]) + lines[2][: len(lines[2]) // 2])
    calls.clear()
    again = sweep(function, grid, seeds=2, path=path)
    assert len(calls) == 2
    pd.testing.assert_frame_equal(again.drop(columns="seconds"), whole.drop(columns="seconds"), check_exact=True)
    assert sorted(json.loads(line)["gain"] for line in path.read_text().splitlines()) == [1.5, 1.5, 3, 3]
    # A larger grid runs what is new; the table has what is asked for, whatever else is in the file.
    calls.clear()
    path.write_text(path.read_text().rstrip("\n"))
    larger = sweep(function, {"gain": [3, 4]}, seeds=2, path=path)
    assert sorted(calls) == [(4, 0), (4, 1)] and larger["gain"].tolist() == [3, 3, 4, 4]
    assert len(pd.read_json(path, lines=True)) == 6
    # What ran here does not run there.
    pd.testing.assert_frame_equal(sweep(function, {"gain": [3, 4]}, seeds=2, path=path, client=client), larger)


def test_files_of_others_are_left_alone(tmp_path):
    path = tmp_path / "other"
    sweep(lambda gain, seed: 0, {"gain": [1]}, path=path)
    own = path.read_text()
    with pytest.raises(ValueError, match=r"path: expected a sweep over \['leak'\] in .*other, got \['gain'\] on line 1"):
        sweep(lambda leak, seed: 0, {"leak": [1]}, path=path)
    assert path.read_text() == own
    for text in ('{"a": 1}', "[1]\n", "gain,seed\n", "rest", own[:-20] + "\n", own[1:]):
        path.write_text(text)
        with pytest.raises(ValueError, match=r"path: expected rows of a sweep in .*other, got another line 1"):
            sweep(lambda gain, seed: 0, {"gain": [1]}, path=path)
        assert path.read_text() == text


@pytest.mark.parametrize("workers", [False, True])
def test_ctrl_c_leaves_the_file_whole_and_the_rest_undone(client, tmp_path, workers):
    path, marks = tmp_path / "rows.jsonl", tmp_path / "marks"
    marks.mkdir()

    def function(seed, folder=marks):
        return slowly(folder, seed, seed)

    def interrupt():
        while not path.exists() or not path.read_bytes():
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        sweep(function, seeds=100, path=path, client=client if workers else None)
    thread.join()
    time.sleep(0.7)
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    # All hundred would take seconds more, even where a machine stands still for one.
    assert 1 <= len(rows) < 60 and path.read_bytes().endswith(b"\n")
    assert len(list(marks.iterdir())) < 60
    if workers:
        assert client.submit(sum, [1, 2]).result(timeout=60) == 3


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"grid": [1]}, r"grid: expected a dict with a list of values for each parameter, got \[1\]"),
        ({"grid": {"gain": 3}}, "grid: expected a dict with a list of values for each parameter. .*gain"),
        ({"grid": {"gain": []}}, "grid: expected a dict with a list of values for each parameter. .*gain"),
        ({"grid": {"seed": [1]}}, "grid: expected no parameter named 'seed', which is a column of its own"),
        ({"seeds": 0}, "seeds: expected a number of seeds, or one or more whole numbers, got 0"),
        ({"seeds": [1.5]}, r"seeds: expected a number of seeds, or one or more whole numbers, got \[1.5\]"),
        ({"seeds": True}, "seeds: expected a number of seeds, or one or more whole numbers, got True"),
        ({"client": 5}, "client: expected a distributed.Client or None, got 5"),
        ({"grid": {"gain": [object()]}, "path": "new"}, r"grid\['gain'\]: expected numbers, strings, or .*, got object"),
    ],
)
def test_wrong_sweeps(arguments, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match=message):
        sweep(lambda **_: 0, **arguments)


@pytest.mark.parametrize("bar", [False, True])
def test_progress_is_shown_when_asked_for(capsys, monkeypatch, bar):
    if bar:
        pytest.importorskip("tqdm")
    else:
        monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    sweep(lambda seed: 1 / seed, seeds=3)
    assert capsys.readouterr().err == ""
    sweep(lambda seed: 1 / seed, seeds=3, progress=True)
    assert ("3/3" if bar else "3 of 3 done, 1 failed, 0 s") in capsys.readouterr().err


def test_an_experiment_of_the_command_line(client, tmp_path):
    if PROGRAM is None:
        pytest.skip("LEUKOS_PROGRAM does not name the program leukos")
    spec = tmp_path / "few.toml"
    text = (Path(__file__).parents[2] / "lab" / "experiments" / "geometry.toml").read_text()
    spec.write_text(text.replace("quick = 40", "quick = 3").replace("quick = 1024", "quick = 32"))
    table = sweep(reproduce("geometry", program=PROGRAM), {"spec": [str(spec)]}, seeds=[0, 7], client=client)
    assert table["error"].tolist() == [None, None]
    medians = [name for name in table.columns if name.endswith(".median")]
    assert medians and (table.loc[0, medians] != table.loc[1, medians]).any()
    assert "invalid value 'nothing'" in sweep(reproduce("nothing", program=PROGRAM))["error"][0]
    assert sweep(reproduce("geometry", program=tmp_path / "none"))["error"][0].startswith("FileNotFoundError")


@pytest.mark.parametrize("block", [0, 1])
def test_the_documentation_runs(client, block, tmp_path, monkeypatch, capsys):
    text = (Path(__file__).parents[3] / "docs" / "distributed.md").read_text()
    code = re.findall(r"^```python\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL)[block]
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("distributed.LocalCluster", lambda **_: nullcontext())
    monkeypatch.setattr("distributed.Client", lambda _: nullcontext(client))
    exec(compile(code, "docs/distributed.md", "exec"), {"__name__": "__main__"})
    assert ["['rest', 'walk', 'run'] [40000 40000 40000] (3, 8, 8)", "Name: whitening_error"][block] in capsys.readouterr().out


@pytest.mark.parametrize("module", ["fitting", "sums", "sweeps"])
def test_the_docstrings_run(module):
    outcome = doctest.testmod(importlib.import_module(f"leukos.distributed.{module}"))
    assert outcome.attempted > 0 and outcome.failed == 0

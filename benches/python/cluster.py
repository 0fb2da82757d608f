"""Times covariances over more data than fits, beside numpy on the same cores, and what a task of a sweep costs.

    python cluster.py [GIGABYTES [ROUNDS]]

A block of 64 channels and 64 MB is made once in each process and handed out again and again, so that neither a disk
nor a generator of random numbers is timed. numpy gets the same blocks in the same worker processes, through the same
scheduler: for each the count, the sum and the product of the centred block, merged by the same formula as ours.
Contestants take turns; each number is the median of the rounds. The processor time of the workers is given beside the
time on the clock, since the clock also shows what else the machine does.
"""

import datetime
import os
import platform
import sys
import threading
import time
from importlib.metadata import version
from statistics import median

# Before numpy is imported, here and in the workers: a worker is one thread.
for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "1"

import dask
import numpy as np
import psutil
from distributed import Client, LocalCluster, as_completed, get_worker
from leukos.distributed import covariances, sweep

CHANNELS = 64
ROWS = 125_000  # 64 MB of float64
BLOCK_BYTES = 8 * CHANNELS * ROWS
CALLS = 2000


def make_the_block(dask_worker):
    dask_worker.block = np.random.default_rng(0).normal(size=(ROWS, CHANNELS)) + 10.0


def copy_of_the_block(_):
    """A block of its own in memory, as reading one would make."""
    return get_worker().block.copy()


def numpy_sums(rows):
    mean = rows.mean(axis=0)
    centred = rows - mean
    return len(rows), mean, centred.T @ centred


def numpy_merge(left, right):
    count = left[0] + right[0]
    step = right[1] - left[1]
    weight = right[0] / count
    return count, left[1] + weight * step, left[2] + right[2] + left[0] * weight * np.outer(step, step)


def numpy_covariance(blocks, client):
    parts = [dask.delayed(numpy_sums)(block) for block in blocks]
    while len(parts) > 1:
        pairs = [dask.delayed(numpy_merge)(*parts[i : i + 2]) for i in range(0, len(parts) - 1, 2)]
        parts = [*pairs, *parts[2 * len(pairs) :]]
    count, _, comoments = client.compute(parts[0]).result()
    return comoments / count


def our_covariance(blocks, client):
    return covariances(blocks, client=client).covariances[0]


def only_the_blocks(blocks, client):
    """What making the blocks takes by itself."""
    return sum(client.gather(client.compute([dask.delayed(len)(block) for block in blocks])))


WORKS = (our_covariance, numpy_covariance, only_the_blocks)


class Memory(threading.Thread):
    """The largest sum of the workers' resident memory, looked at ten times a second."""

    def __init__(self, client):
        super().__init__(daemon=True)
        self.workers = [psutil.Process(pid) for pid in client.run(os.getpid).values()]
        self.peak, self.done = 0, threading.Event()

    def processor_time(self):
        return sum(sum(worker.cpu_times()[:2]) for worker in self.workers)

    def run(self):
        while not self.done.wait(0.1):
            self.peak = max(self.peak, sum(worker.memory_info().rss for worker in self.workers))


def timed(work, count, client):
    blocks = [dask.delayed(copy_of_the_block)(number) for number in range(count)]
    memory = Memory(client)
    memory.start()
    before, start = memory.processor_time(), time.perf_counter()
    outcome = work(blocks, client)
    seconds, busy = time.perf_counter() - start, memory.processor_time() - before
    memory.done.set()
    memory.join()
    return (seconds, busy), memory.peak, outcome


def cluster_of(workers):
    return LocalCluster(
        n_workers=workers, threads_per_worker=1, processes=True, dashboard_address=":0", memory_limit=None
    )


def time_covariances(count, rounds):
    for workers in (1, 2):
        with cluster_of(workers) as cluster, Client(cluster) as client:
            client.run(make_the_block)
            idle = sum(psutil.Process(pid).memory_info().rss for pid in client.run(os.getpid).values())
            times, peaks, results = {}, {}, {}
            for _ in range(rounds):
                for work in WORKS:
                    seconds, peak, results[work] = timed(work, count, client)
                    times.setdefault(work, []).append(seconds)
                    peaks[work] = max(peaks.get(work, 0), peak)
            difference = np.abs(results[our_covariance] - results[numpy_covariance]).max()
            assert difference < 1e-12, f"ours and numpy's covariance differ by {difference}"
            print(f"{workers} worker(s), seconds of each round:")
            for place, kind in enumerate(("clock", "processors")):
                each = [[round[place] for round in times[work]] for work in WORKS]
                ours, theirs, made = map(median, each)
                print(
                    f"    {kind}: leukos {digits(each[0])}, numpy {digits(each[1])}, blocks alone {digits(each[2])}; "
                    f"numpy / leukos {theirs / ours:.2f}, without the blocks {(theirs - made) / (ours - made):.2f}"
                )
            print(
                f"    memory of the workers: idle {idle / 1e6:.0f} MB, "
                f"leukos at most {peaks[our_covariance] / 1e6:.0f} MB, numpy {peaks[numpy_covariance] / 1e6:.0f} MB",
                flush=True,
            )


def digits(seconds):
    return ", ".join(f"{one:.2f}" for one in seconds)


def nothing(seed):
    return seed


def time_calls(rounds):
    with cluster_of(2) as cluster, Client(cluster) as client:
        sweep(nothing, seeds=100, client=client)
        for name, run in [
            ("sweep, two workers", lambda: sweep(nothing, seeds=CALLS, client=client)),
            ("sweep, local threads", lambda: sweep(nothing, seeds=CALLS)),
            ("dask alone, two workers", lambda: dask_alone(client)),
        ]:
            seconds = []
            for _ in range(rounds):
                start = time.perf_counter()
                run()
                seconds.append(time.perf_counter() - start)
            print(f"{name}: {median(seconds) / CALLS * 1e3:.3f} ms a call", flush=True)


def dask_alone(client):
    futures = client.map(nothing, range(CALLS), pure=False)
    for _ in as_completed(futures, with_results=True):
        pass


def main():
    gigabytes, rounds = float((sys.argv[1:] or [10.24])[0]), int((sys.argv[2:] or [3])[0])
    count = max(1, round(gigabytes * 1e9 / BLOCK_BYTES))
    versions = ", ".join(f"{package} {version(package)}" for package in ("leukos", "numpy", "dask", "distributed"))
    print(f"{datetime.date.today()}, Python {platform.python_version()}, {versions}, {os.cpu_count()} processors, load {os.getloadavg()[0]:.1f}")
    print(f"{count} blocks of {BLOCK_BYTES / 1e6:.0f} MB: {count * BLOCK_BYTES / 1e9:.2f} GB")
    time_covariances(count, rounds)
    time_calls(rounds)


if __name__ == "__main__":
    main()

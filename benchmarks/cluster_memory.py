"""Resident memory of one worker of distributed, where results exceed its memory.

    python benchmarks/cluster_memory.py [--runs 4] [--memory 600MiB] [--chunk 500]

Runs with NumPy's chunks and with ndx's (`WorkerMemory`) take turns. Each prints whether
the worker lived and the peaks of its resident memory, of all and by kind.
"""

import argparse
import threading
import time

import dask
import dask.array as da
from distributed import Client, LocalCluster

MIB = 2**20
KINDS = ("VmRSS", "RssAnon", "RssFile", "RssShmem")


def resident(pid):
    """Return the resident memory of a process in MiB, of all and by kind."""
    try:
        with open(f"/proc/{pid}/status") as status:
            lines = dict(line.split(":", 1) for line in status)
        return [int(lines[kind].split()[0]) // 1024 for kind in KINDS]
    except (OSError, KeyError):  # it has ended
        return None


def watch(nanny, done, found):
    """Note the worker's memory, and all processes that it had."""
    while not done.wait(0.005):
        pid = getattr(nanny, "pid", None)
        sample = resident(pid) if pid else None
        if sample is not None:
            found["pids"].add(pid)
            found["samples"].append(sample)


def compute(chunk):
    x = da.random.random((20_000, 8_000), chunks=(chunk, 8_000))
    x = (x - 0.5).persist()
    for each in (x.mean(), x.std(), (x * 2).sum(axis=0), abs(x).max()):
        each.compute()


def run(kind, options):
    """Run it once; return a line about it."""
    found = {"pids": set(), "samples": []}
    done = threading.Event()
    start = time.perf_counter()
    with (
        LocalCluster(
            n_workers=1,
            threads_per_worker=2,
            memory_limit=options.memory,
            dashboard_address=":0",
        ) as cluster,
        Client(cluster) as client,
    ):
        nanny = next(iter(cluster.workers.values()))
        watcher = threading.Thread(target=watch, args=(nanny, done, found))
        watcher.start()
        report = ""
        try:
            backend = "numpy"
            if kind == "ndx":
                from ndx.distributed import WorkerMemory, memory_report

                client.register_plugin(WorkerMemory())
                backend = "ndx"
            with dask.config.set({"array.backend": backend}):
                compute(options.chunk)
            if kind == "ndx":
                each = memory_report(client)[0]
                report = (
                    f"  limit {each.limit // MIB} peak {each.peak_bytes // MIB}"
                    f" evicted {each.evicted_bytes // MIB}"
                    f" files {each.fallback_peak_bytes // MIB}"
                )
        except Exception as error:
            report = f"  {type(error).__name__}: {str(error)[:60]}"
        finally:
            done.set()
            watcher.join()
    peak = max(found["samples"])
    kinds = [max(each) for each in zip(*found["samples"], strict=True)]
    restarts = len(found["pids"]) - 1
    state = f"RESTARTED {restarts}" if restarts else "alive"
    text = " ".join(f"{k} {v}" for k, v in zip(KINDS, kinds, strict=True))
    return (
        f"{kind:6}{state:12} {time.perf_counter() - start:5.1f} s  {text}"
        f" (at the peak: anon {peak[1]} file {peak[2]}){report}"
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=4)
    parser.add_argument("--memory", default="600MiB")
    parser.add_argument("--chunk", type=int, default=500)
    parser.add_argument("--kinds", default="numpy,ndx")
    options = parser.parse_args()
    for _ in range(options.runs):
        for kind in options.kinds.split(","):
            print(run(kind, options), flush=True)

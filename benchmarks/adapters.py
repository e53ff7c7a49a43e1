"""What ndx's adapters add to calls of other libraries that have no array of ours.

``python benchmarks/adapters.py [--check] [--repeats 21]`` runs each call in batches, in
turn in two processes: one with all adapters, one with ``NDX_ADAPTERS=none``. A row has
the medians in nanoseconds, and the median of the ratios of neighbouring batches. The
libraries that are not installed are left out. ``--check`` exits with 1 if the geometric
mean of all ratios is above 1.1.
"""

import argparse
import os
import subprocess
import sys
from importlib.util import find_spec
from statistics import geometric_mean, median

from timing import compile_loop

BATCH_NS = 2e7
MOST = 1.1
ARRAYS = """
import numpy as np
x = np.arange(1000.0); i = np.arange(0, 1000, 3); m = x > 500; k = np.int64(7)
"""
# Library -> what is run once, and the calls.
CASES = {
    "pandas": (
        "import pandas as pd; s = pd.Series(x); t = pd.DataFrame({'a': x, 'b': x})",
        ["s[m]", "s[7]", "s.loc[i]", "s.iloc[i]", "s.iat[7]", "s.at[7]", "s + s",
         "s > x", "t[m]", "t['a']", "t.loc[7, 'b']", "t.iloc[i, 1]", "s.isin(i)",
         "s.where(m, x)", "pd.Series(x)", "pd.DataFrame({'a': x})", "t.groupby(m)"],
    ),
    "torch": (
        "import torch; v = torch.asarray(x); w = torch.asarray(i)",
        ["v[7]", "v[w]", "v[v > 500]", "torch.tensor([1.0, 2.0])", "torch.asarray(x)",
         "torch.as_tensor(x)", "v + v", "torch.where(v > 3, v, v)"],
    ),
    "scipy": (
        "import scipy.sparse as sp; a = sp.eye_array(1000, format='csr')",
        ["a @ x", "a * 2.0", "a + a", "a[7]", "a[i]", "a.multiply(x)"],
    ),
    "polars": (
        "import polars as pl; p = pl.Series(x)",
        ["pl.Series(x)", "p + 1.0", "p > 500", "p.filter(m)", "p[7]"],
    ),
    "networkx": (
        "import networkx as nx; g = nx.path_graph(100)",
        ["7 in g", "g.degree([1, 2, 3])", "g.subgraph([1, 2, 3])"],
    ),
    "dask": (
        "import dask.array as da; d = da.from_array(x)",
        ["d[7]", "d[3:9]", "d[i]", "da.roll(d, 3)"],
    ),
}  # fmt: skip


def work(library):
    """Run batches of calls as the parent process asks for: number of a call, count."""
    import ndx  # noqa: F401 - with or without adapters, by the environment

    values = {}
    setup, calls = CASES[library]
    exec(ARRAYS + setup, values)
    loops = [compile_loop(call, values) for call in calls]
    for line in sys.stdin:
        number, count = map(int, line.split())
        print(loops[number](count), flush=True)


def start(library, adapters):
    """Return a process that runs calls of a library."""
    return subprocess.Popen(
        [sys.executable, __file__, "--work", library],
        env=os.environ | {"NDX_ADAPTERS": adapters},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def ask(worker, number, count):
    """Return the nanoseconds that a process takes for a batch of calls."""
    print(number, count, file=worker.stdin, flush=True)
    return int(worker.stdout.readline())


def measure(workers, number, repeats):
    """Return the medians of a call's time without and with adapters, and the ratio."""
    count = 1
    while (taken := ask(workers[0], number, count)) < BATCH_NS / 4:
        count *= 4
    count = max(1, round(count * BATCH_NS / taken))
    ask(workers[1], number, count)
    rows = []
    for turn in range(repeats):
        found = [0.0, 0.0]
        for k in (turn % 2, 1 - turn % 2):
            found[k] = ask(workers[k], number, count) / count
        rows.append(found)
    return (
        median(row[0] for row in rows),
        median(row[1] for row in rows),
        median(row[1] / row[0] for row in rows),
    )


def main():
    """Print the table; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="fail above the target")
    parser.add_argument("--repeats", type=int, default=21)
    parser.add_argument("--work", metavar="LIBRARY", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work:
        return work(options.work)
    found = []
    for library, (_, calls) in CASES.items():
        if find_spec(library) is None:
            continue
        workers = [start(library, adapters) for adapters in ("none", "all")]
        ratios = []
        for number, call in enumerate(calls):
            without, with_, ratio = measure(workers, number, options.repeats)
            ratios.append(ratio)
            print(f"{call:32} {without:10.0f} {with_:10.0f} {ratio:7.2f}")
        for worker in workers:
            worker.stdin.close()
            worker.wait()
        print(f"{library}: {len(ratios)} calls, {geometric_mean(ratios):.3f}")
        found += ratios
    print(f"geometric mean of {len(found)} calls: {geometric_mean(found):.3f}")
    return int(options.check and geometric_mean(found) > MOST)


if __name__ == "__main__":
    sys.exit(main())

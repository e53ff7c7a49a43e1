"""Passes over an array in a file that is larger than the memory of the process.

    python benchmarks/larger_than_ram.py [--size 8GiB] [--memory 2GiB] [--check]

Each reader is a process of its own, held to --memory by a control group. The system's
cache of the file is dropped before each. Readers take turns, with the same number of
threads: reading blocks into a buffer (readv), `ndx.sum` and NumPy's sum over the file;
``a * 2 + 1`` with ndx, and with NumPy into a new mapped file. NumPy computes as users
call it, and on equal parts of its array in threads. The table has the median of each
over the repeats, and of the ratios within a round.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from statistics import median

import numpy as np
from control_groups import Unable, control_group, join, read

import ndx
from ndx._lib.sizes import format_size, parse_size

BLOCK = 8 * 2**20
PAUSE = 0.02
# Comparisons: a reader, another one, and the least ratio of their speeds.
RATIOS = (
    ("ndx sum", "readv", 0.9),
    ("ndx sum", "numpy sum", 1.0),
    ("ndx sum", "numpy sum, threads", None),
    ("ndx a*2+1", "numpy a*2+1", 1.0),
    ("ndx a*2+1", "numpy a*2+1, threads", 1.0),
)


# ---- Readers, each in its own process ----------------------------------------


def in_threads(count, work):
    """Call ``work(i)`` for i below `count`, each in a thread; return the results."""
    results = [None] * count

    def run(i):
        results[i] = work(i)

    threads = [threading.Thread(target=run, args=(i,)) for i in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def read_blocks(path, scratch, threads):
    """Read the file in order, block by block, into one buffer for each thread."""
    blocks = iter(range(0, os.path.getsize(path), BLOCK))
    lock = threading.Lock()
    with open(path, "rb", buffering=0) as file:

        def work(_):
            buffer = bytearray(BLOCK)
            while True:
                with lock:
                    start = next(blocks, None)
                if start is None:
                    return
                os.preadv(file.fileno(), [buffer], start)

        in_threads(threads, work)


def ndx_sum(path, scratch, threads):
    return float(ndx.sum(ndx.open(path)))


def numpy_sum(path, scratch, threads):
    """NumPy's sum, of equal parts in threads."""
    parts = np.array_split(np.load(path, mmap_mode="r"), threads)
    return float(sum(in_threads(threads, lambda i: np.sum(parts[i]))))


def numpy_sum_alone(path, scratch, threads):
    return numpy_sum(path, scratch, 1)


def numpy_affine_alone(path, scratch, threads):
    return numpy_affine(path, scratch, 1)


def ndx_affine(path, scratch, threads):
    with ndx.use("mmap", directory=scratch):
        y = ndx.open(path) * 2 + 1
    return float(y[0]), float(y[y.size // 2]), float(y[-1])


def numpy_affine(path, scratch, threads):
    x = np.load(path, mmap_mode="r")
    with tempfile.TemporaryFile(dir=scratch) as file:
        y = np.memmap(file, dtype=x.dtype, mode="w+", shape=x.shape)
        parts, results = np.array_split(x, threads), np.array_split(y, threads)

        def work(i):
            np.multiply(parts[i], 2, out=results[i])

        def more(i):
            np.add(results[i], 1, out=results[i])

        in_threads(threads, work)
        in_threads(threads, more)
        return float(y[0]), float(y[y.size // 2]), float(y[-1])


READERS = {
    "readv": read_blocks,
    "ndx sum": ndx_sum,
    "numpy sum": numpy_sum_alone,
    "numpy sum, threads": numpy_sum,
    "ndx a*2+1": ndx_affine,
    "numpy a*2+1": numpy_affine_alone,
    "numpy a*2+1, threads": numpy_affine,
}


def be_reader(args):
    """Join the control group, read, and print the result."""
    name, path, scratch, threads, group = args
    join(Path(group))
    start = time.perf_counter()
    with ndx.passes(threads=int(threads)):
        result = READERS[name](path, scratch, int(threads))
    seconds = time.perf_counter() - start
    print(json.dumps({"seconds": seconds, "result": result}))


# ---- The process that starts them --------------------------------------------


def make_file(path, nbytes):
    """Make a file of `nbytes` of float64; return the sum of its elements."""
    values = np.random.default_rng(0).standard_normal(BLOCK // 8)
    x = ndx.open(path, "w+", shape=(nbytes // 8,))
    total = 0.0
    for start in range(0, x.size, values.size):
        part = values[: x.size - start]
        x[start : start + values.size] = ndx.asarray(part)
        total += float(part.sum())
    x.flush()
    x.close()
    return total


def forget(path):
    """Make the system drop its cache of a file."""
    os.sync()
    try:
        Path("/proc/sys/vm/drop_caches").write_text("3")
    except OSError:
        with open(path, "rb") as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def anonymous(pid):
    """Return the bytes of a process's memory that do not belong to files."""
    for line in read(Path(f"/proc/{pid}/status")).splitlines():
        if line.startswith("RssAnon:"):
            return 1024 * int(line.split()[1])
    return 0


def measure(name, path, options, group):
    """Run one reader; return its seconds, its result, and its peak of memory."""
    forget(path)
    command = [sys.executable, __file__, "--reader", name, path, options.directory]
    process = subprocess.Popen(
        [*command, str(options.threads), str(group)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    peak = 0
    while process.poll() is None:
        peak = max(peak, anonymous(process.pid))
        time.sleep(PAUSE)
    out, err = process.communicate()
    if process.returncode:
        raise SystemExit(f"{name} failed ({process.returncode}): {err.strip()}")
    return {**json.loads(out), "anonymous": peak}


def check_result(name, result, total, values):
    """Fail if a reader's result is wrong."""
    wanted = {" sum": [total], "+1": [2 * value + 1 for value in values]}
    for part, expected in wanted.items():
        if part in name and not np.allclose(result, expected, rtol=1e-9):
            raise SystemExit(f"{name} is {result}, not {expected}")


def compare(options):
    """Return a row for each reader, from all rounds."""
    rows = {name: [] for name in READERS}
    with (
        control_group(options.memory) as group,
        tempfile.TemporaryDirectory(dir=options.directory) as folder,
    ):
        path = os.path.join(folder, "x.npy")
        total = make_file(path, options.size)
        x = np.load(path, mmap_mode="r")
        values = [x[0], x[x.size // 2], x[-1]]
        for _ in range(options.repeats):
            for name, found in rows.items():
                found.append(measure(name, path, options, group))
                check_result(name, found[-1]["result"], total, values)
    return [
        {
            "reader": name,
            "seconds": median(run["seconds"] for run in found),
            "all_seconds": [run["seconds"] for run in found],
            "bytes_per_second": options.size / median(run["seconds"] for run in found),
            "anonymous_bytes": max(run["anonymous"] for run in found),
        }
        for name, found in rows.items()
    ]


def ratios(rows):
    """Return for each comparison (names, ratio of speeds, least)."""
    seconds = {row["reader"]: row["all_seconds"] for row in rows}
    return [
        (
            f"{name} / {other}",
            median(b / a for a, b in zip(seconds[name], seconds[other], strict=True)),
            least,
        )
        for name, other, least in RATIOS
    ]


def print_table(rows, options):
    print(
        f"{format_size(options.size)} of float64, {format_size(options.memory)} of "
        f"memory, threads: {options.threads}, median of {options.repeats}\n"
    )
    print(f"{'':<22}{'seconds':>9}{'MiB/s':>9}{'anonymous':>13}")
    for row in rows:
        print(
            f"{row['reader']:<22}{row['seconds']:>9.2f}"
            f"{row['bytes_per_second'] / 2**20:>9.0f}"
            f"{format_size(row['anonymous_bytes']):>13}"
        )
    print(f"\n{'speed':<34}{'ratio':>9}{'at least':>10}")
    for name, ratio, least in ratios(rows):
        print(f"{name:<34}{ratio:>9.2f}{'' if least is None else f'{least:>10.2f}'}")


def parse_args(argv):
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    add = parser.add_argument
    add("--size", type=parse_size, default="8GiB", help="bytes of the array")
    add("--memory", type=parse_size, default="2GiB", help="bytes of each process")
    add("--threads", type=int, default=2)
    add("--repeats", type=int, default=3)
    add("--directory", default=tempfile.gettempdir(), help="for the files")
    add("--json", action="store_true", help="print the rows as JSON")
    add("--check", action="store_true", help="fail if a target is missed")
    add("--reader", nargs=5, help=argparse.SUPPRESS)
    options = parser.parse_args(argv)
    least = 16 * 2**20
    if options.size < least:
        parser.error(f"--size is {options.size}; valid are {least} bytes and more")
    if options.repeats < 1 or options.threads < 1:
        parser.error("--repeats and --threads are 1 or more")
    return options


def main(argv=None):
    """Print the table; return the exit code."""
    options = parse_args(argv)
    if options.reader:
        be_reader(options.reader)
        return 0
    try:
        rows = compare(options)
    except Unable as reason:
        print(f"skipped: {reason}", file=sys.stderr)
        return 0
    if options.json:
        print(json.dumps({"rows": rows, "ratios": ratios(rows)}))
    else:
        print_table(rows, options)
    missed = [line for line in ratios(rows) if line[1] < (line[2] or 0)]
    return int(options.check and bool(missed))


if __name__ == "__main__":
    sys.exit(main())

"""The cost of memory on a GPU: ndx and the pools of CuPy and PyTorch, in one run.

    python benchmarks/gpu.py [--repeats N] [--epochs N] [--json]

- ``malloc+free``: one allocation and release, host time; the median of interleaved
  repeats. PyTorch only if it is installed.
- ``peak``: the peak of reserved bytes for one recorded trace of allocations.
- ``digits``: a training step of ``examples/train_digits.py``, in eager CuPy, in ndx,
  in ndx with each step in a workspace, with its elementwise parts fused, too, and as a
  captured graph of either; device time, by events.

It needs a GPU, and reports what is missing. If a contestant fails, its row shows the
error, and the others are measured. (The file is not named ``cuda.py``, because that
would hide NVIDIA's package, which CuPy imports.)
"""

import argparse
import contextlib
import functools
import json
import os
import statistics
import sys
import time
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).parents[1] / "examples"))

import digits_network
import traces
from digits_data import load_data

import ndx
from ndx.backends import _cupy

SIZES = (512, 65536, 1 << 20, 1 << 24)
BATCH = 200


def torch_or_none():
    """Return PyTorch, if it is installed with CUDA."""
    try:
        import torch
    except ImportError:
        return None
    return torch if torch.cuda.is_available() else None


def pools(cupy, torch):
    """Return functions that allocate and release a range, by name."""
    backend = ndx.backends.CudaBackend(idle_release=None)
    theirs = cupy.cuda.MemoryPool()

    def ours(nbytes):
        ndx.backends.Buffer(backend, nbytes, stream=0).release()

    def cupys(nbytes):
        theirs.malloc(nbytes)

    def torchs(nbytes):
        torch.cuda.caching_allocator_delete(torch.cuda.caching_allocator_alloc(nbytes))

    found = {"ndx": ours, "CuPy": cupys}
    return found if torch is None else {**found, "PyTorch": torchs}


def in_turns(contestants, repeats, measure):
    """Return the median of interleaved measurements of each, by name.

    If one fails, return the error as text.
    """
    found = {name: [] for name in contestants}
    failed = {}
    for _ in range(repeats):
        for name, contestant in contestants.items():
            if name in failed:
                continue
            try:
                found[name].append(measure(contestant))
            except Exception as error:
                failed[name] = f"{type(error).__name__}: {error}"
    return {
        name: failed[name] if name in failed else statistics.median(each)
        for name, each in found.items()
    }


def pool_times(contestants, repeats):
    """Return nanoseconds of one allocation and release, by size and name."""

    def measure(take):
        take(nbytes)
        start = time.perf_counter_ns()
        for _ in range(BATCH):
            take(nbytes)
        return (time.perf_counter_ns() - start) / BATCH

    rows = {}
    for nbytes in SIZES:
        rows[nbytes] = in_turns(contestants, repeats, measure)
    return rows


def training_trace(digits):
    """Return the trace of an epoch of training."""

    def program():
        digits_network.Training(ndx, digits=digits).repeat()

    return traces.recorded(program)


def peaks(trace, torch):
    """Return the peak bytes that each pool reserves for a trace."""
    backend = ndx.backends.CudaBackend(idle_release=None)
    live = {}
    for each, nbytes, _ in trace:
        if nbytes is None:
            live.pop(each).release()
        else:
            live[each] = ndx.backends.Buffer(backend, nbytes, stream=0)
    found = {"ndx": backend.stats()["peak_reserved_bytes"]}
    if torch is not None:
        found |= in_turns({"PyTorch": torch}, 1, lambda torch: torch_peak(trace, torch))
    return found


def torch_peak(trace, torch):
    """Return the peak bytes that PyTorch's pool reserves for a trace."""
    live = {}
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_reserved()
    for each, nbytes, _ in trace:
        if nbytes is None:
            torch.cuda.caching_allocator_delete(live.pop(each))
        else:
            live[each] = torch.cuda.caching_allocator_alloc(nbytes)
    return torch.cuda.max_memory_reserved() - before


def fused():
    """Return a training step whose elementwise parts are fused."""
    parts = digits_network.Parts(*map(ndx.fuse, digits_network.PLAIN))
    return functools.partial(digits_network.sgd_step, parts=parts)


def replayed(taken=digits_network.sgd_step):
    """Return a training step as a captured graph, with batches in one place."""
    buffers = {}

    @ndx.cuda.graph
    def captured(params, velocities, batch):
        return taken(ndx, params, velocities, batch)

    def step(xp, params, velocities, batch):
        shape = batch[0].shape
        if shape not in buffers:
            buffers[shape] = [xp.empty_like(x) for x in batch]
        for x, new in zip(buffers[shape], batch, strict=True):
            x[...] = new
        return captured(params, velocities, buffers[shape])

    return step


def contestants(digits):
    """Return a function that makes a training, by name."""
    make = functools.partial(digits_network.Training, digits=digits)
    workspace = ndx.workspace("digits", backend="cuda:0", learn="liveness")
    return {
        "CuPy, eager": functools.partial(make, _cupy.namespace()),
        "ndx": functools.partial(make, ndx),
        "ndx + workspace": functools.partial(make, ndx, lambda: workspace),
        "ndx, fused": functools.partial(make, ndx, lambda: workspace, step=fused()),
        "ndx + graph": functools.partial(make, ndx, step=replayed()),
        "fused + graph": functools.partial(make, ndx, step=replayed(fused())),
    }


def step_times(cupy, digits, epochs):
    """Return milliseconds of a training step, by name, interleaved."""
    runs = {}

    def measure(make):
        if make not in runs:
            runs[make] = make()
            runs[make].repeat()
        return epoch(cupy, runs[make])

    with ndx.use("cuda:0"):
        return in_turns(contestants(digits), epochs, measure)


def epoch(cupy, run):
    """Return milliseconds of a step, the mean of an epoch's, by the GPU's clock."""
    steps = 0

    def count():
        nonlocal steps
        steps += 1

    start, stop = cupy.cuda.Event(), cupy.cuda.Event()

    @contextlib.contextmanager
    def meter():
        start.record()
        yield
        stop.record()
        stop.synchronize()

    run.repeat(meter(), count)
    return cupy.cuda.get_elapsed_time(start, stop) / steps


def show(found):
    """Print the tables."""
    print(f"{found['card']}; Python {sys.version.split()[0]}")
    print("\nmalloc+free, ns")
    for nbytes, row in found["pool"].items():
        cells = "".join(f"  {name} {number(row[name], '9.0f')}" for name in row)
        print(f"{nbytes:>10} B{cells}  ndx/CuPy {ratio(row, 'ndx', 'CuPy')}")
    print("\npeak reserved, a recorded training, bytes")
    print("".join(f"  {name} {number(x, ',')}" for name, x in found["peak"].items()))
    print("\ndigits, ms a step, and as a part of CuPy's")
    row = found["digits"]
    for name in row:
        part = ratio(row, name, "CuPy, eager")
        print(f"{name:>18} {number(row[name], '9.3f')} {part:>6}")


def number(value, spec):
    """Return a number, or the text of a failure, as text."""
    return value if isinstance(value, str) else format(value, spec)


def ratio(row, name, base):
    """Return the ratio of two entries of a row, as text."""
    if isinstance(row[name], str) or isinstance(row[base], str):
        return "-"
    return f"{row[name] / row[base]:.2f}"


def main(argv=None):
    """Measure, and print; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--repeats", type=int, default=30)
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(argv)
    try:
        cupy = _cupy.load()
    except ndx.DeviceError as error:
        print(error, file=sys.stderr)
        return 2
    torch = torch_or_none()
    # New data each time, which nothing can have cached.
    digits = load_data(time.time_ns() % 2**32)
    name = cupy.cuda.runtime.getDeviceProperties(0)["name"]
    found = {
        "card": name.decode() if isinstance(name, bytes) else name,
        "pool": pool_times(pools(cupy, torch), options.repeats),
        "peak": peaks(training_trace(digits), torch),
        "digits": step_times(cupy, digits, options.epochs),
    }
    if options.json:
        print(json.dumps(found))
    else:
        show(found)
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""What tools that watch memory report of one program, with NumPy and with ndx.

The program makes arrays of 80 MB, drops some, and makes others in their place; with ndx
a part of it is in a workspace. Each figure is of a process of its own:

tracemalloc
    the peak of the arrays, without those of Python's objects
memray
    the peak of the whole process, imports included, if memray is installed
resident
    what the program adds to the peak of resident memory (``VmHWM``)

``python benchmarks/footprint.py [--check] [--limit 4GiB]``: ``--check`` fails if a
figure of ndx is more than 10 % from NumPy's; ``--limit`` measures again under
``ulimit -v``.
"""

import argparse
import contextlib
import importlib.util
import json
import subprocess
import sys
import tempfile
from pathlib import Path

from ndx._lib.sizes import format_size, parse_size

MOST = 0.10


def program(library):
    """Make arrays, drop some, use a workspace: 80 MB at the peak."""
    kept = [library.ones(1_250_000) for _ in range(5)]
    small = [library.ones(1_000) for _ in range(1_250)]
    del kept[1]
    kept.append(library.ones(1_250_000))
    total = 0.0
    for _ in range(3):
        with scope(library):
            x = library.ones(2_500_000)
            x += kept[0][0]
            total += float(x[-1])
            del x
    return total, len(small)


def scope(library):
    if library.__name__ == "numpy":
        return contextlib.nullcontext()
    return library.workspace("step", size=20_000_000)


def peak_of_resident():
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM"):
            return 1024 * int(line.split()[1])
    msg = "the system has no VmHWM: it must be Linux"
    raise SystemExit(msg)


def measure(name, what):
    """Run the program in this process; print what `what` says."""
    library = importlib.import_module(name)
    # What importing and the first array cost is not the program's.
    library.ones(100_000)
    if what == "tracemalloc":
        import tracemalloc

        tracemalloc.start()
        program(library)
        peak = tracemalloc.get_traced_memory()[1]
    else:
        before = peak_of_resident()
        program(library)
        peak = peak_of_resident() - before
    print(json.dumps(peak))


def run(command, limit):
    """Return the output of a process, in an address space of so many bytes."""
    if limit is not None:
        command = ["sh", "-c", f'ulimit -v {limit // 1024}; exec "$@"', "sh", *command]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.stderr)
    return done.stdout


def memray_peak(name, limit):
    """Return the peak that memray has recorded of the program."""
    import memray

    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder, "footprint.bin"))
        run([sys.executable, "-m", "memray", "run", "-q", "-o", path, __file__,
             "--run", name, "program"], limit)  # fmt: skip
        return memray.FileReader(path).metadata.peak_memory


def figure(name, what, limit):
    if what == "memray":
        return memray_peak(name, limit)
    return int(run([sys.executable, __file__, "--run", name, what], limit))


def rows(limit=None):
    """Yield (tool, NumPy's bytes, ndx's bytes)."""
    for what in ("tracemalloc", "memray", "resident"):
        if what == "memray" and importlib.util.find_spec("memray") is None:
            continue
        yield what, *(figure(name, what, limit) for name in ("numpy", "ndx"))


def main(args=None):
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--limit", type=parse_size)
    parser.add_argument("--run", nargs=2, help=argparse.SUPPRESS)
    given = parser.parse_args(args)
    if given.run:
        name, what = given.run
        if what == "program":
            program(importlib.import_module(name))
        else:
            measure(name, what)
        return
    worst = 0.0
    for limit in [None] if given.limit is None else [None, given.limit]:
        title = "" if limit is None else f" (ulimit -v {limit // 1024})"
        for what, numpy, ndx in rows(limit):
            worst = max(worst, abs(ndx / numpy - 1))
            print(
                f"{what + title:40} NumPy {format_size(numpy):>10}"
                f"  ndx {format_size(ndx):>10}  {ndx / numpy:5.2f}"
            )
    if given.check and worst > MOST:
        raise SystemExit(f"a figure differs by {worst:.0%}; {MOST:.0%} are allowed")


if __name__ == "__main__":
    main()

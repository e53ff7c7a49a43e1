"""Compare results of a sweep between machines, to the last bit.

Usage: ``python tools/same_bits.py --write bits.json`` on one machine, and
``python tools/same_bits.py --compare bits.json`` on another one.

The lines are those of ``benchmarks/sweep_cases.py``; ndx and NumPy compute each.
Results may differ between machines where NumPy's do: libm, BLAS and NumPy's own vectors
are not the same everywhere. A line on which ndx differs and NumPy does not is an error,
and ends the program with the status 1. Signs and payloads of NaN do not count: CPUs
differ there.
"""

import argparse
import hashlib
import json
import platform
import sys
from pathlib import Path

import numpy as np

sys.path.append(str(Path(__file__).parents[1] / "benchmarks"))

from sweep_cases import LAYOUTS, Operands, cases, laid_out_like
from timing import names_in

import ndx
import ndx.numpy

SIZES = (1, 7, 100, 1001, 40_000)


def pieces(value):
    """Yield the arrays of a result, whatever it consists of."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, tuple | list):
        for each in value:
            yield from pieces(each)
    elif value is not None:
        array = np.array(value)
        if array.dtype.kind in "biufc":
            yield array


def digest(values):
    """Return a hash of dtypes, shapes and bits."""
    found = hashlib.sha256()
    for array in pieces(values):
        if array.dtype.kind in "fc":
            array[np.isnan(array)] = np.nan
        found.update(f"{array.dtype.str}{array.shape}".encode())
        found.update(np.ascontiguousarray(array).tobytes())
    return found.hexdigest()[:16]


def run(code, values):
    """Run a line; return its result, or its error, and the operands after it."""
    try:
        try:
            result = eval(code, values)
        except SyntaxError:
            result = exec(code, values)
    except Exception as error:
        result = [type(error).__name__.encode()]
        return hashlib.sha256(result[0]).hexdigest()[:16]
    operands = [
        values[name]
        for name in sorted(names_in(code) & values.keys())
        if isinstance(values[name], np.ndarray | ndx.NDArray)
    ]
    # What is not set has no bits to compare.
    if "empty" in code:
        result = np.shape(result)
    return digest([result, operands])


def points():
    """Yield each line with a size, a dtype and a layout."""
    for case in cases():
        for size in SIZES:
            if size > max(case.sizes):
                continue
            for dtype in case.dtypes:
                for layout in ("contiguous", *(set(case.layouts) & set(LAYOUTS))):
                    yield case.code, size, dtype, layout


def sweep():
    """Return the hashes of operands, of NumPy's and of ndx's results, by point."""
    found = {}
    for code, size, dtype, layout in points():
        operands = Operands(size, dtype, layout)
        made, plain = operands.arrays(), operands.plain()
        used = names_in(code)
        arrays = {name: made[name]() for name in sorted(used & made.keys())}
        others = {name: plain[name]() for name in sorted(used & plain.keys())}
        ours = {name: laid_out_like(value) for name, value in arrays.items()}
        given = digest([others, arrays])
        with np.errstate(all="ignore"), ndx.numpy.errstate(all="ignore"):
            found[f"{code} | {size} {dtype} {layout}"] = [
                given,
                run(code, {**others, **arrays, "xp": np, "np": np}),
                run(code, {**others, **ours, "xp": ndx, "np": ndx.numpy}),
            ]
    return found


def compare(here, there):
    """Print what differs; return the points at which only ndx does."""
    groups = {"all results are the same": 0}
    wrong = []
    for point in here.keys() & there.keys():
        operands, numpys, ours = map(str.__ne__, here[point], there[point])
        if operands:
            kind = "the operands differ"
        elif ours and not numpys:
            kind = "only ndx differs"
            wrong.append(point)
        elif numpys:
            kind = "NumPy differs, and ndx" if ours else "only NumPy differs"
        else:
            kind = "all results are the same"
        groups[kind] = groups.get(kind, 0) + 1
    for kind, count in groups.items():
        print(f"{count:6} {kind}")
    print(f"{len(here.keys() ^ there.keys()):6} are on one machine only")
    return sorted(wrong)


def main(arguments=None):
    """Write the hashes of a sweep, or compare them; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--write", type=Path, metavar="FILE")
    parser.add_argument("--compare", type=Path, metavar="FILE")
    options = parser.parse_args(arguments)
    here = sweep()
    print(f"{len(here)} results of NumPy {np.__version__} on {platform.machine()}")
    if options.write:
        options.write.write_text(json.dumps(here, indent=0))
    if not options.compare:
        return 0
    wrong = compare(here, json.loads(options.compare.read_text()))
    for point in wrong:
        print(f"only ndx differs: {point}", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

"""Time NumPy's face against NumPy, call by call, in one run.

    python benchmarks/numpy_face.py [--size 10] [--protocol] [--quick] [--check] [CALL]

Each row times one call of `ndx.numpy` with NDArrays, and of NumPy with its own arrays,
in alternating batches; with ``--protocol``, NumPy's own function with NDArrays. A row
shows the medians of a call in nanoseconds, and the median of the ratios of neighbouring
batches; a star marks what NumPy computes, where ndx has no row. ``--check`` exits with
1 if the geometric mean is above its target, or a row: 1.0 for what ndx computes, 1.5
for what NumPy computes. CALL: only the calls that have this text.
"""

import argparse
import math
import sys

import numpy as np
from face_calls import CALLS, CREATING, operands
from ndx._methods.numpy_function_table import is_computed
from timing import compile_loop, side_by_side

import ndx
import ndx.numpy as face

# Number of elements -> the largest geometric mean.
TARGETS = {10: 0.6, 300: 0.7}
PROTOCOL_TARGET = 1.1


def measure(code, size, namespace, repeats, batch_ns):
    """Return the nanoseconds with NumPy, with ndx, and the ratio."""
    plain, values = operands(size)
    ours = {
        name: ndx.asarray(value, copy=True) for name, value in values.items()
    } | plain
    loops = [
        compile_loop(f"np.{code}", {**values, **plain, "np": np}),
        compile_loop(f"np.{code}", {**ours, "np": namespace}),
    ]
    times = side_by_side(loops, repeats, batch_ns)
    return *times.ns, times.ratios[1]


def function_of(code):
    """Return NumPy's function that a call names."""
    found = np
    for name in code.partition("(")[0].partition("[")[0].split("."):
        found = getattr(found, name)
    return found


def main():
    """Print the table; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("call", nargs="?", default="", metavar="CALL")
    parser.add_argument("--size", type=int, default=10, help="elements; default 10")
    parser.add_argument("--protocol", action="store_true", help="by NumPy's functions")
    parser.add_argument("--quick", action="store_true", help="fewer repeats")
    parser.add_argument(
        "--check", action="store_true", help="fail if a target is missed"
    )
    options = parser.parse_args()
    repeats, batch_ns = (5, 5e5) if options.quick else (9, 2e6)
    namespace = np if options.protocol else face
    rows, missed = [], []
    for code in CALLS:
        name = code.partition("(")[0]
        if options.call not in code or (options.protocol and name in CREATING):
            continue
        theirs, own, ratio = measure(code, options.size, namespace, repeats, batch_ns)
        function = function_of(code)
        computed = is_computed(function)
        rows.append((ratio, code, theirs, own, computed))
    print(f"{'call':38}{'NumPy ns':>10}{'ndx ns':>10}{'ratio':>8}")
    for ratio, code, theirs, own, computed in sorted(rows, reverse=True):
        star = " " if computed else "*"
        print(f"{code:38}{theirs:10.0f}{own:10.0f}{ratio:8.2f} {star}")
        if not options.protocol and ratio > (1.0 if computed else 1.5):
            missed.append(code)
    mean = math.exp(sum(math.log(row[0]) for row in rows) / len(rows))
    print(f"geometric mean of {len(rows)} calls, {options.size} elements: {mean:.2f}")
    target = PROTOCOL_TARGET if options.protocol else TARGETS.get(options.size)
    if target is not None and mean > target:
        missed.append(f"the geometric mean, {mean:.2f}: at most {target}")
    if missed:
        print(f"missed: {', '.join(missed)}")
    return int(options.check and bool(missed))


if __name__ == "__main__":
    sys.exit(main())

"""Time what a fused function's reads from outside cost, in one run.

    python benchmarks/guards.py [--quick] [--check]

Each row is a kind of read. A function with ten of them is timed beside one that
computes the same with literals or arguments in their place, in turns. The difference of
their fastest batches, divided by ten, is the cost of a read at each call. ``--check``
exits with 1 if one costs more than 30 ns.
"""

import argparse
import dataclasses
import math
import sys
import types

from timing import compile_loop

import ndx

COUNT = 10
LIMIT_NS = 30.0
NAMES = [f"k{i}" for i in range(COUNT)]


class Settings:
    """Has the values as attributes."""


class Slots:
    """Has the values in slots."""

    __slots__ = NAMES


Record = dataclasses.make_dataclass("Record", NAMES, frozen=True)


def filled(owner, values):
    """Return an object with values as attributes."""
    for name, value in zip(NAMES, values, strict=True):
        setattr(owner, name, value)
    return owner


def function(parameters, terms, namespace):
    """Return the fused function that adds terms to `x`."""
    code = f"lambda x{''.join(f', {name}' for name in parameters)}: x + {terms}"
    return ndx.fuse(eval(code, namespace))


def integers(read):
    """Return a sum of reads that is one constant of the program."""
    return f"({' + '.join(read(name) for name in NAMES)})"


def cases():
    """Yield names, and two pairs of a fused function and its arguments."""
    x, values = ndx.ones(3), list(range(COUNT))
    owners = {
        "global": (integers(str), dict(zip(NAMES, values, strict=True))),
        "attribute": (integers("o.{}".format), {"o": filled(Settings(), values)}),
        "slot": (integers("o.{}".format), {"o": filled(Slots(), values)}),
        "dataclass": (integers("o.{}".format), {"o": Record(*values)}),
        "class": (integers("o.{}".format), {"o": filled(type("K", (), {}), values)}),
        "module": (
            integers("o.{}".format), {"o": filled(types.ModuleType("m"), values)}
        ),
        "dict": (
            integers(lambda name: f"o[{name!r}]"),
            {"o": dict(zip(NAMES, values, strict=True))},
        ),
        "list": (integers(lambda name: f"o[{name[1:]}]"), {"o": values}),
    }  # fmt: skip
    literal = (function((), str(sum(values)), {}), (x,))
    for name, (terms, namespace) in owners.items():
        yield name, (function((), terms, namespace), (x,)), literal
    calls = " + ".join(f"f{i}(2.5)" for i in range(COUNT))
    functions = {f"f{i}": f for i, f in enumerate([math.floor] * COUNT)}
    yield "function of C", (function((), f"({calls})", functions), (x,)), literal
    functions = {f"f{i}": eval(f"lambda x: {i}") for i in range(COUNT)}
    yield "function", (function((), f"({calls})", functions), (x,)), literal
    floats = " + ".join(NAMES)
    halves = dict.fromkeys(NAMES, 0.5)
    given = function(NAMES, floats, {}), (x, *halves.values())
    yield "float", (function((), floats, halves), (x,)), given
    arrays = dict(zip(NAMES, [ndx.ones(3) for _ in NAMES], strict=True))
    given = function(NAMES, floats, {}), (x, *arrays.values())
    yield "array", (function((), floats, arrays), (x,)), given


def fastest(loops, repeats, count=2000):
    """Return the time of a call in the fastest batch of each loop, in nanoseconds."""
    found = [[loop(count) / count for loop in loops] for _ in range(repeats)]
    return map(min, zip(*found, strict=True))


def main(arguments=None):
    """Print the table; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="fewer batches")
    parser.add_argument("--check", action="store_true", help="fail above the limit")
    options = parser.parse_args(arguments)
    failed = False
    print(f"{'read of':16}{'call':>10}{'without':>10}{'a read':>10}")
    for name, *pair in cases():
        loops = []
        for fused, args in pair:
            fused(*args)
            if "called as it is" in fused.explain():
                raise AssertionError(fused.explain())
            code = f"f({', '.join(f'a{i}' for i in range(len(args)))})"
            values = {f"a{i}": arg for i, arg in enumerate(args)}
            loops.append(compile_loop(code, {"f": fused, **values}))
        call, without = fastest(loops, 100 if options.quick else 1000)
        cost = (call - without) / COUNT
        failed |= cost > LIMIT_NS
        print(
            f"{name:16}{call:>7.0f} ns{without:>7.0f} ns{cost:>7.1f} ns"
            f"{'  too much' if cost > LIMIT_NS else ''}"
        )
    return int(options.check and failed)


if __name__ == "__main__":
    sys.exit(main())

"""Timing of code strings side by side: the part that the benchmarks share."""

import ast
import builtins
import itertools
import time
from statistics import median
from typing import NamedTuple


class Times(NamedTuple):
    """Median times of a call, in nanoseconds, one for each side.

    `ratios` are medians of the ratios of neighbouring batches, to the first side.
    """

    ns: list[float]
    ratios: list[float]


def compile_loop(code, values):
    """Return a function that runs `code` `count` times, and its time in nanoseconds.

    The names of `values` that the code uses are local variables of the function, the
    fastest kind.
    """
    used = names_in(code)
    unknown = used - values.keys() - vars(builtins).keys()
    if unknown:
        msg = f"{code!r} uses {sorted(unknown)}, which have no values"
        raise NameError(msg)
    scope = {name: values[name] for name in sorted(used & values.keys())}
    scope |= {"_repeat": itertools.repeat, "_clock": time.perf_counter_ns}
    source = (
        f"def make({', '.join(scope)}):\n"
        f"    def loop(count, {', '.join(f'{name}={name}' for name in scope)}):\n"
        f"        start = _clock()\n"
        f"        for _ in _repeat(None, count):\n"
        f"            {code}\n"
        f"        return _clock() - start\n"
        f"    return loop\n"
    )
    exec(source, made := {})
    return made["make"](**scope)


def names_in(code):
    """Return the names of variables in the code, loops' own left out."""
    nodes = list(ast.walk(ast.parse(code)))
    own = {node.target.id for node in nodes if isinstance(node, ast.For)}
    return {node.id for node in nodes if isinstance(node, ast.Name)} - own


def side_by_side(loops, repeats, batch_ns):
    """Run batches of all loops in turn; return their `Times`.

    A batch is as many calls as the first loop does in about `batch_ns`. Each loop goes
    first in turn, so that none always finds the caches of the one before.
    """
    count = 1
    while (taken := loops[0](count)) < batch_ns / 4:
        count *= 4
    count = max(1, round(count * batch_ns / taken))
    for loop in loops[1:]:
        loop(count)
    rows = []
    for turn in range(repeats):
        order = [(turn + i) % len(loops) for i in range(len(loops))]
        found = {i: loops[i](count) / count for i in order}
        rows.append([found[i] for i in range(len(loops))])
    columns = list(zip(*rows, strict=True))
    return Times(
        [median(column) for column in columns],
        [
            median(own / first for own, first in zip(column, columns[0], strict=True))
            for column in columns
        ],
    )

"""What the tests of ND4J's behaviours share: configurations and sizes, in our words.

Elements are float64; sizes in the arena are whole lines of 64 B, where ND4J's are
whole words of 8.
"""

import pytest

import ndx

MIB = 2**20
LINE = 64

# Its usual configurations: sized; learned by the first cycle; learned over time.
B = {"size": 10 * MIB, "max_size": 10 * MIB, "overallocation": 0}
L1 = {"overallocation": 0}
LT = {"learn": "over-time", "overallocation": 0}


def lines(count):
    """Return the bytes that `count` elements take in an arena."""
    return up(8 * count)


def up(nbytes):
    """Return bytes as whole lines."""
    return -(-int(nbytes) // LINE) * LINE


def where():
    """Return the name of the workspace that serves a new array here; None: none."""
    return ndx.zeros(0).workspace


def offset(workspace):
    return workspace.stats()["offset"]


def spilled(workspace):
    stats = workspace.stats()
    return stats["spilled_count"], stats["spilled_bytes"]


def cycle(workspace, *counts):
    """Take a cycle that makes arrays of so many elements; return them, stale or not."""
    with workspace:
        return [ndx.full(count, float(count)) for count in counts]


def assert_stale(x):
    """Check that an array can't be used: each way to use or to keep it raises."""
    assert x.attached
    assert not x.in_scope
    ways = [
        x.detach,
        x.leverage,
        lambda: x.leverage_to("external"),
        lambda: x.leverage_to("external", missing="raise"),
        lambda: x.leverage_to("external", missing="detach"),
        x.migrate,
        lambda: x.migrate(missing="raise"),
        lambda: x.migrate(missing="detach"),
        lambda: ndx.asarray(x, copy=True),
        lambda: x.__copy__(),
        lambda: x + 1,
    ]
    for way in ways:
        with pytest.raises(ndx.StaleArrayError):
            way()

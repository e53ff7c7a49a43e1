"""What the tests of captured graphs share."""

import ndx


def full(shape, value=1.0):
    """Return an array of one value on a GPU."""
    return ndx.full(shape, float(value), device="cuda:0")


def counts(graph):
    """Return how many calls were eager and replayed, and how many graphs there are."""
    stats = graph.stats()
    return stats["eager"], stats["replays"], stats["graphs"]

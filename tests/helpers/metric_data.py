"""What the tests of metrics share: batches of samples, and comparisons."""

import numpy as np
from hypothesis import strategies as st


@st.composite
def splits(draw, n):
    """Draw the sizes of batches of `n` samples; some may be empty."""
    cuts = sorted(draw(st.lists(st.integers(0, n), max_size=4)))
    return np.diff([0, *cuts, n]).tolist()


def batches_of(sizes, *columns):
    """Yield tuples of parts of arrays; those that are None stay None."""
    start = 0
    for size in sizes:
        stop = start + size
        yield tuple(None if x is None else x[start:stop] for x in columns)
        start = stop


def closely(mine, theirs):
    """Check that numbers or arrays are equal to rounding, NaN included."""
    np.testing.assert_allclose(np.asarray(mine), theirs, rtol=1e-10, atol=1e-12)

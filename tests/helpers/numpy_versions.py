"""What differs between versions of NumPy, as tests see it: one table.

ndx works with all of them. Where NumPy's own results differ, tests compare with those
of the newer ones only: ndx has these, or passes on what NumPy's function returns.
"""

import contextlib

import numpy as np
import pytest

from ndx._lib import numpy_private

# What is so -> the first version of NumPy in which it is.
SINCE = {
    "an ellipsis asks for an array": "2.3.0",
    "arrays from DLPack are writable": "2.3.0",
    "bools of NumPy are no integers": "2.3.0",
    "count_nonzero returns NumPy's integers": "2.3.0",
    "functions in C have signatures": "2.4.0",
    "None is no shape": "2.4.0",
    "operators promote floats that are exponents": "2.3.0",
    "matrices without elements have a rank": "2.4.0",
    "norms of nothing are 0": "2.3.0",
    "sums of long stretches are pairwise as a whole": "2.3.0",
    "masks without an output are warned of": "2.4.0",
}
_VERSION = np.lib.NumpyVersion(np.__version__)


def since(what):
    """Whether something of the table is so in this version."""
    return SINCE[what] <= _VERSION


def needs(what):
    """Skip a test of what NumPy does in newer versions only."""
    return pytest.mark.skipif(not since(what), reason=f"since NumPy {SINCE[what]}")


def warns(what, *args, **kwargs):
    """Return `pytest.warns`, if this version warns."""
    return pytest.warns(*args, **kwargs) if since(what) else contextlib.nullcontext()


def needs_part(name):
    """Skip a test of what ndx does only with a private part of NumPy.

    Without loops it does not read files tile by tile, nor compute in threads or over
    temporaries; and what it mends in the loops is as NumPy's functions have it.
    """
    absent = numpy_private.part(name) is None
    return pytest.mark.skipif(absent, reason=f"without NumPy's {name}")

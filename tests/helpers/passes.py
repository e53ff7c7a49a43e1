"""Arrays in files that operations pass over, however small they are."""

import contextlib

import numpy as np

import ndx

# From how many elements on an operation may be a pass.
LARGE = 32768


@contextlib.contextmanager
def passing(tmp_path, **options):
    """Make arrays in files there, and passes of all operations on enough elements.

    Yields the list of the calls of the progress callback.
    """
    calls = []
    options = {
        "threshold": 0,
        "block": "64KiB",
        "progress": lambda *call: calls.append(call),
        **options,
    }
    with ndx.use("mmap", directory=tmp_path), ndx.passes(**options):
        yield calls


def in_file(values):
    """Return a copy of a NumPy array in memory of the current backend."""
    x = ndx.asarray(values, copy=True)
    assert x.backend.name == "mmap"
    return x


def same(x, expected, exact=True):
    """Assert that an array has the values and the dtype of NumPy's."""
    x, expected = np.asarray(x), np.asarray(expected)
    assert x.dtype == expected.dtype
    if exact:
        np.testing.assert_array_equal(x, expected)
    else:
        np.testing.assert_allclose(x, expected, rtol=1e-12, atol=1e-12)

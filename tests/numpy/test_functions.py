"""The mechanism of NumPy's face: where memory comes from, and what is kept."""

import subprocess
import sys

import numpy as np
import pytest

import ndx
import ndx.numpy as ndx_numpy


def test_the_first_call_keeps_no_memory():
    program = """if True:
        import gc, numpy, ndx
        with ndx.use("host", limit="1MiB") as pool:
            x = ndx.linspace(0, 1, 5)
            for function in (numpy.median, numpy.percentile, numpy.nanmean):
                function(x, *[30][:function is numpy.percentile])
            del x
        gc.collect()
        print(pool.stats()["allocated_bytes"])
    """
    found = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert found.stdout == "0\n"


def test_results_are_where_new_arrays_are():
    x = ndx.linspace(0, 1, 1000)
    with ndx.use("host") as pool:
        before = pool.stats()["allocated_bytes"]
        y = np.pad(x, 3)
        assert y.backend is pool
        assert pool.stats()["allocated_bytes"] - before >= 8048
    with ndx.workspace("functions"):
        assert np.pad(x, 3).workspace == "functions"


def test_too_many_axes_are_called_so():
    for make in (ndx_numpy.zeros, ndx_numpy.empty):
        with pytest.raises(ValueError, match="maximum supported dimension"):
            make((1,) * 65)

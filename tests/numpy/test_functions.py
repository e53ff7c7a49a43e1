"""The mechanism of NumPy's face: where memory comes from, and what is kept."""

from collections import UserList, deque, namedtuple

import numpy as np
import pytest
from helpers.commands import run_python
from helpers.compare import assert_same
from helpers.numpy_versions import since

import ndx
import ndx.numpy as face


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
    assert run_python(program) == "0\n"


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
    for make in (face.zeros, face.empty):
        with pytest.raises(ValueError, match="maximum supported dimension"):
            make((1,) * 65)


OVER_AXES = ["sum", "prod", "max", "min", "any", "all", "argmax", "argmin", "ptp",
             "squeeze", "cumsum", "argsort", "count_nonzero"]  # fmt: skip


@pytest.mark.parametrize("name", OVER_AXES)
@pytest.mark.parametrize("axis", [0, -1, None])
def test_axes_of_arrays_without_axes(name, axis):
    a = np.asarray(5)
    expected = np.asarray(getattr(np, name)(a, axis=axis))
    x = ndx.asarray([5, 6])[0]
    calls = [getattr(np, name), getattr(face, name)]
    if hasattr(ndx.NDArray, name):
        calls.append(getattr(ndx.NDArray, name))
    for call in calls:
        found = call(x, axis=axis)
        if not since("count_nonzero returns NumPy's integers") and type(found) is int:
            found = ndx.asarray(found)
        assert_same(found, expected)


@pytest.mark.parametrize("name", ["sum", "mean", "argmax", "squeeze", "any"])
@pytest.mark.parametrize("axis", [1, -2, (0,)])
def test_other_axes_of_arrays_without_axes(name, axis):
    for x in (ndx.asarray(5.0), np.asarray(5.0)):
        with pytest.raises((ValueError, TypeError)):
            getattr(np, name)(x, axis=axis)


def test_the_standards_functions_take_no_axis_of_arrays_without_axes():
    for function in (ndx.sum, ndx.max, ndx.any, ndx.argmax, ndx.squeeze):
        with pytest.raises(ValueError, match="no axes"):
            function(ndx.asarray(5.0), axis=0)


Pair = namedtuple("Pair", "first second")


@pytest.mark.parametrize("kind", [list, tuple, lambda x: Pair(*x), deque, UserList])
def test_sequences_of_arrays(kind):
    a, b = np.ones(2), np.zeros(2)
    x, y = ndx.asarray(a), ndx.asarray(b)
    for namespace in (np, face):
        assert_same(namespace.concatenate(kind([x, y])), np.concatenate(kind([a, b])))
        found = namespace.stack(kind([x, y]), axis=1)
        assert_same(found, np.stack(kind([a, b]), axis=1))


@pytest.mark.parametrize("condition", ["x > 3", "[x > 3]", "True", "[x > 3, x < 3]"])
@pytest.mark.parametrize("make", ["asarray(5)", "asarray([2, 5])", "int64(5)"])
def test_conditions_of_arrays_without_axes(make, condition):
    """Operators of NumPy return scalars there, those of ndx arrays."""
    results = []
    for library in (np, face):
        x = eval(f"library.{make}")
        try:
            found = library.piecewise(x, eval(condition), [4, 0])
        except Exception as error:
            results.append(type(error))
        else:
            results.append((found.tolist(), found.shape, str(found.dtype)))
    assert results[0] == results[1]


@pytest.mark.threads
def test_first_calls_in_several_threads():
    """The first one loads modules, during which other threads run."""
    code = """
        import sys, threading
        import ndx
        import ndx.numpy as np

        sys.setswitchinterval(1e-6)
        x, start, found = ndx.ones(3), threading.Barrier(8), []

        def call():
            start.wait()
            found.append(np.percentile(x, 50))

        threads = [threading.Thread(target=call) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        print(found == [1.0] * 8)
        """
    assert run_python(code).strip() == "True"


@pytest.mark.parametrize("dtype", [np.ones(2), np.int8([1])])
def test_an_array_is_no_dtype(dtype):
    # As in `np.array(a, b)`, a slip for a list of both.
    for given in (dtype, ndx.asarray(dtype)):
        for call in (
            lambda xp, x, y: xp.array(x, y),
            lambda xp, x, y: xp.asarray(x, y),
            lambda xp, x, y: xp.zeros(3, y),
            lambda xp, x, y: xp.ones_like(x, y),
            lambda xp, x, y: xp.sum(x, dtype=y),
            lambda xp, x, y: x.astype(y),
        ):
            with pytest.raises(TypeError, match="dtype from an array"):
                call(ndx.numpy, ndx.ones(2), given)

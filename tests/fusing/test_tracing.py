"""Stand-ins for arrays: their views, layouts and attributes are those of arrays."""

import sys

import numpy as np
import pytest
from fusing.compare import assert_as_plain
from numpy.lib.stride_tricks import as_strided

import ndx


def vector():
    return (ndx.asarray([1.0, 2.0, 3.0]),)


def matrix():
    return (ndx.asarray([[1.0, 2.0], [3.0, 4.0]]),)


def scalar():
    return (ndx.asarray(5.0),)


@pytest.mark.parametrize("count", [61, 62, 63, 64, 200])
def test_views_have_at_most_as_many_axes_as_arrays(count):
    for function in (
        lambda a: ndx.zeros_like(a[(None,) * count]),
        lambda a: a[(None,) * count],
        lambda a: ndx.where(a[(None,) * count] > 1, a, a[:, *(None,) * count]),
        lambda a: a[(None,) * 40][(None,) * (count - 40)] + 1,
    ):
        assert_as_plain(function, vector, matrix)


@pytest.mark.parametrize("axes", [7, 8, 9, 10, 40])
def test_results_of_many_axes(axes):
    for length in (0, 1):
        shape = (1,) * (axes - 1) + (length,)
        assert_as_plain(lambda a: (a * 2, a.T + 1), lambda s=shape: (ndx.ones(s),))


def test_errors_of_indexing_can_be_caught():
    def axes(a):
        try:
            return a[(None,) * 200]
        except IndexError:
            return a + 1

    assert "stage over" in assert_as_plain(axes, vector).explain()


KEYS = [(), ..., (...,), (0,), (0, ...), (..., 0), (0, 0), (0, 0, ...), (..., 0, 0),
        (0, ..., 0), 0, (None, 0), (0, None), (np.int64(0),), (None,),
        (slice(0, 1),)]  # fmt: skip


@pytest.mark.parametrize("make", [scalar, vector, matrix])
@pytest.mark.parametrize("key", KEYS, ids=str)
def test_which_parts_are_views(make, key):
    def add(a):
        part = a[key]
        part += 1
        return a * 1, part * 2

    assert_as_plain(add, make)
    assert_as_plain(lambda a: a[key] * 1, make)


STEPS = [sys.maxsize, -sys.maxsize, 10**20, -(10**20), 2**40, -(2**62), 2**61]


@pytest.mark.parametrize("dtype", [np.int8, np.float64, np.complex128])
@pytest.mark.parametrize("step", STEPS)
def test_huge_steps(step, dtype):
    def make():
        return (ndx.asarray(np.arange(6).reshape(2, 3).astype(dtype)),)

    for key in (slice(None, None, step), slice(5, 1, step), slice(0, 1, step)):
        assert_as_plain(lambda a, key=key: a[key], make)
        assert_as_plain(lambda a, key=key: (a[:, key], a[:, key] * 2), make)
        assert_as_plain(lambda a, key=key: (a[:, key].strides, a[key].strides, a), make)


@pytest.mark.parametrize("make", [np.ones, ndx.ones])
def test_attributes_are_those_of_arrays(make):
    x = make((2, 3))
    names = {*dir(type(x)), "code", "offset", "buffer", "part", "now", "value", "other"}

    def existing(a, b):
        return a + 1, [hasattr(b, name) for name in sorted(names)]

    named = ["T", "dtype", "itemsize", "nbytes", "ndim", "shape", "size", "strides"]
    fused = ndx.fuse(
        lambda a, b: (a + 1, {n: getattr(b, n) for n in named if n != "T"})
    )
    lacking = {"code", "offset", "buffer", "part", "now", "value", "other"}
    without = ndx.fuse(lambda a, b: (a, any(hasattr(b, name) for name in lacking)))
    for _ in range(2):
        assert fused(ndx.ones(2), x)[1] == {n: getattr(x, n) for n in named if n != "T"}
        assert without(ndx.ones(2), x)[1] is False
    assert "stage over" in fused.explain()
    assert "called as it is" not in without.explain()
    assert_as_plain(existing, lambda: (ndx.ones(2), x))
    floats = ndx.fuse(lambda a, s: (a, any(hasattr(s, name) for name in lacking)))
    assert floats(ndx.ones(2), 0.5)[1] is False


@pytest.mark.parametrize("name", ["shape", "strides", "T", "size", "other"])
def test_attributes_that_are_set(name):
    assert_as_plain(lambda a: (setattr(a, name, (4,)), a + 1), matrix)


@pytest.mark.parametrize("function", [str, repr, "{}".format, hash, bool, len])
def test_what_python_asks_of_objects(function):
    assert_as_plain(lambda a: (a + 1, function(a)), vector, matrix, scalar)


def test_elements_of_numpy_arrays():
    def make():
        return ndx.ones(2, dtype=ndx.float32), np.arange(2.0)

    fused = assert_as_plain(lambda a, b: a * b[1], make)
    assert "stage over" in fused.explain()
    assert_as_plain(lambda a, b: (a + 1, b[0] * b[1]), make)
    assert_as_plain(lambda a, b: (a + 1, b[0] + 1, -b[1]), make)


# Shape and strides, in floats: elements that overlap, and others that do not.
OVERLAPPING = [((8, 3), (1, 1)), ((3, 4), (0, 1)), ((3, 3), (2, 1)), ((4, 2), (-1, 1)),
               ((2, 2, 2), (3, 2, 2)), ((5,), (0,))]  # fmt: skip
APART = [((3, 4), (4, 1)), ((4, 3), (1, 4)), ((3, 3), (-4, -1)), ((1, 4), (0, 1)),
         ((2, 1, 3), (3, 0, 1)), ((0, 3), (0, 0)), ((4,), (-2,))]  # fmt: skip


@pytest.mark.parametrize(("shape", "strides"), [*OVERLAPPING, *APART])
def test_writes_to_elements_that_overlap(shape, strides):
    def make():
        base = np.arange(40.0)[20:]
        steps = [8 * step for step in strides]
        return ndx.asarray(as_strided(base, shape, steps), copy=False), ndx.ones(1)

    def inplace(w, x):
        w += 1
        return w * 1

    def store(w, x):
        w[...] = w * 2 + x
        return w * 1

    def out(w, x):
        ndx.add(w, x, out=w)
        return w - 1

    for function in (inplace, store, out):
        fused = assert_as_plain(function, make)
        assert ("called as it is" in fused.explain()) is (
            (shape, strides) in OVERLAPPING
        )


USES = {
    "transpose": lambda a, b: (a * 1, b.T),
    "transpose unused": lambda a, b: a * len(b.T),
    "no elements": lambda a, b: b[:0],
    "no elements, computed": lambda a, b: b[:0] + 1,
    "key": lambda a, b: a * b[0].shape[0],
    "caught": lambda a, b: caught(a, b),
    "dead": lambda a, b: (b + 1, a * 1)[1],
    "dead in place": lambda a, b: (b.copy().__iadd__(1), a * 1)[1],
    "zeros_like": lambda a, b: ndx.zeros_like(b),
    "ones_like": lambda a, b: np.ones_like(b),
    "empty_like": lambda a, b: ndx.empty_like(b)[:0],
    "full_like": lambda a, b: ndx.full_like(b, 3.0),
    "asarray": lambda a, b: ndx.asarray(b),
    "astype": lambda a, b: ndx.astype(b, b.dtype, copy=False),
    "method": lambda a, b: b.astype(b.dtype, copy=False),
    "sum of none": lambda a, b: ndx.sum(b[:, :0]),
    "itself": lambda a, b: b,
    "itself, too": lambda a, b: (a + 1, b),
    "shape": lambda a, b: a * b.shape[0] + b.ndim + len(b) + b.nbytes + b.strides[0],
    "namespace": lambda a, b: b.__array_namespace__().exp(a),
}


def caught(a, b):
    try:
        return b[99]
    except IndexError:
        return a * 1


@pytest.mark.parametrize("name", USES)
def test_what_uses_stale_arrays(name):
    function = USES[name]
    fused = ndx.fuse(function)
    fused(ndx.ones(2), ndx.ones((3, 4)))
    with ndx.workspace("stale operand"):
        stale = ndx.ones((3, 4))
    try:
        function(ndx.ones(2), stale)
    except ndx.StaleArrayError:
        with pytest.raises(ndx.StaleArrayError):
            fused(ndx.ones(2), stale)
    else:
        fused(ndx.ones(2), stale)
    assert "stage over" in fused.explain() or "arrays made" in fused.explain()

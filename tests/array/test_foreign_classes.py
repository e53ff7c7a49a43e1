"""Objects of other classes that say something else than they are."""

import tracemalloc

import numpy as np
import pytest
from helpers.commands import run_python

import ndx


class AsComplex(np.ndarray):
    dtype = property(lambda self: np.dtype("c16"))


class AsText(np.ndarray):
    dtype = property(lambda self: "f8")


@pytest.mark.parametrize("kind", [AsComplex, AsText])
def test_a_subclass_with_a_dtype_of_its_own(kind):
    """What lies in memory counts: more would be written than there is."""
    a = np.zeros(17, "i1")
    x = ndx.asarray(a[:1].view(kind))
    assert x.dtype == ndx.int8
    with pytest.raises(TypeError, match="complex"):
        x[0] = -1 - 1j
    x[0] = 5
    assert a.tolist() == [5] + [0] * 16
    assert (ndx.ones(3) + np.arange(3.0).view(kind)).tolist() == [1, 2, 3]


class Raising:
    """Whose `__class__` raises, from the n-th time on."""

    def __init__(self, count=0):
        self.count = count

    @property
    def __class__(self):
        self.count -= 1
        if self.count < 0:
            raise TypeError("no class")
        return Raising


@pytest.mark.parametrize("count", range(6))
def test_objects_whose_class_raises(count):
    x = ndx.ones((3, 3))
    for function in (
        lambda y: ndx.matmul(y, x),
        lambda y: ndx.add(x, y),
        lambda y: ndx.linalg.vecdot(x, y),
        lambda y: x[y],
        lambda y: x + y,
        lambda y: np.add(x, y),
    ):
        with pytest.raises((TypeError, IndexError)):
            function(Raising(count))
    fused = ndx.fuse(lambda a, b: a + 1)
    assert fused(x, Raising(count)).tolist() == [[2] * 3] * 3


class Number(float):
    @property
    def __class__(self):
        raise KeyboardInterrupt


def test_a_number_whose_class_raises():
    assert (ndx.ones(3) + Number(2)).tolist() == [3, 3, 3]


@pytest.mark.parametrize("way", ["asarray", "memoryview", "frombuffer"])
def test_trips_to_numpy_and_back_leave_no_chain(way):
    """An array over memory of others keeps that alive, and no array in between."""
    ways = {
        "asarray": lambda x: ndx.asarray(np.asarray(x)),
        "memoryview": lambda x: ndx.asarray(memoryview(x)),
        "frombuffer": lambda x: ndx.asarray(np.frombuffer(x)),
    }
    x = ndx.asarray(np.ones(3))
    for _ in range(10):
        x = ways[way](x)
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        for _ in range(300):
            x = ways[way](x)
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert after - before < 10_000
    x[0] = 7
    assert x.tolist() == [7, 1, 1]


PROGRAM = """
import numpy as np, ndx
x = ndx.ones(3)
for _ in range(200_000):
    a = np.asarray(x); a *= 1; x = ndx.asarray(a)
del a, x
"""


def test_many_trips_to_numpy_and_back():
    """The end of a chain of them would overflow the stack."""
    run_python(PROGRAM)


def test_a_format_that_is_no_text():
    with pytest.raises(TypeError, match="format specification is a str"):
        ndx.ones(3).__format__(5)


def test_a_hook_that_is_no_function():
    backend = ndx.backends.HostBackend()
    with pytest.raises(TypeError, match="a hook is a function, not int"):
        backend.add_hook(5)
    with ndx.use(backend):
        assert ndx.ones(3).size == 3

"""What a recording takes for a constant, and what it must not; and what it keeps."""

import collections
import functools
import itertools
import queue
import sys
import threading
import types

import numpy as np
import pytest

import ndx
import ndx.numpy


def test_recordings_that_are_cleared_while_they_are_made():
    """By another thread, or a finalizer."""
    factor = [1.0]

    @ndx.fuse
    def scaled(x):
        k = factor[0]
        if factor[0] == 1.0:
            factor[0] = 2.0
            scaled.clear()
        return x * k

    x = ndx.ones(2)
    scaled(x)
    assert scaled(x).tolist() == [2, 2]


class Settings(collections.UserDict):
    pass


@pytest.mark.parametrize(
    "wrap",
    [types.MappingProxyType, Settings, collections.ChainMap, collections.Counter],
    ids=lambda wrap: wrap.__name__,
)
def test_containers_are_no_constants(wrap):
    values = {"rate": 1}
    given = wrap(values)

    @ndx.fuse
    def scaled(x, options):
        return x * float(options["rate"])

    x = ndx.ones(2)
    assert scaled(x, given).tolist() == [1, 1]
    values["rate"] = 5
    if not isinstance(given, types.MappingProxyType):
        given["rate"] = 5
    assert scaled(x, given).tolist() == [5, 5]


def test_records_are_no_constants():
    records = np.zeros(2, [("w", "f8", 2000)])
    records["w"][1, 1000] = 1

    @ndx.fuse
    def total(x, record):
        return x * float(record["w"].sum())

    x = ndx.ones(2)
    assert total(x, records[0]).tolist() == [0, 0]
    assert total(x, records[1]).tolist() == [1, 1]
    record = records[0]
    record["w"][:] = 1
    assert total(x, record).tolist() == [2000] * 2


@pytest.mark.parametrize("value", [np.float32(0.1), np.complex64(1 - 0j), np.int8(3)])
def test_scalars_of_numpy_are_told_apart_by_their_bits(value):
    @ndx.fuse
    def scaled(x, factor):
        return x * factor

    x = ndx.ones(2, dtype=value.dtype)
    for other in (value, -value, value + value, value):
        np.testing.assert_array_equal(scaled(x, other), np.asarray(x) * other)


def test_views_of_the_whole_are_other_arrays():
    @ndx.fuse
    def both(x):
        a = x + 1
        return a, a[:], x[...], a

    x = ndx.asarray([1.0, 2.0])
    for _ in range(2):
        a, view, whole, again = both(x)
        assert again is a
        assert view is not a
        assert whole is not x
        view[0] = 9
        assert a.tolist() == [9, 3]


@pytest.mark.threads
def test_threads_with_a_small_stack():
    f = ndx.fuse(lambda x, y: (x * y + x - y) * 2)
    x = ndx.ones((30, 30))
    found = []
    # CPython 3.14 has no room for a recursion in 64 KiB.
    least = 64 if sys.version_info < (3, 14) else 256
    before = threading.stack_size(least * 1024)
    try:
        thread = threading.Thread(
            target=lambda: found.append(f(x[1:-1, 1:-1], x[2:, 2:]))
        )
        thread.start()
        thread.join()
    finally:
        threading.stack_size(before)
    assert ndx.all(found[0] == 2)


def test_values_of_different_types_are_different_constants():
    class Single(np.float32):
        pass

    @ndx.fuse
    def named(x, value):
        return x * {str: 1, complex: 2, np.float32: 3, Single: 4}[type(value)]

    x = ndx.ones(1)
    values = [(1j, 2), ("1j", 1), (np.float32(2), 3), (Single(2), 4)]
    for _ in range(4):
        for value, expected in values:
            assert named(x, value)[0] == expected


def test_attributes_of_scalars_are_no_constants():
    class Marked(np.float64):
        pass

    fused = ndx.fuse(lambda x, value: x * value.mark)
    value = Marked(2)
    for mark in (1.0, 5.0):
        value.mark = mark
        assert fused(ndx.ones(1), value)[0] == mark


def generators():
    yield "numpy", np.random.default_rng(1)
    yield "numpy.RandomState", np.random.RandomState(1)
    yield "ndx.numpy", ndx.numpy.random.default_rng(1)
    yield "ndx.numpy.RandomState", ndx.numpy.random.RandomState(1)
    yield "ndx", ndx.random.default_rng(1)


@pytest.mark.parametrize("name", [name for name, _ in generators()])
def test_random_generators_are_no_constants(name):
    x = ndx.zeros(3)
    for draw in (
        lambda x, rng: x + float(rng.normal()),
        lambda x, rng: x + rng.normal(size=3),
        lambda x, rng: x if float(rng.normal()) < 0 else x + 1,
    ):
        fused = ndx.fuse(draw)
        own, expected = dict(generators())[name], dict(generators())[name]
        for _ in range(5):
            assert fused(x, own).tolist() == draw(x, expected).tolist()


METHODS = {
    "generator": lambda: np.random.default_rng(1).random,
    "iterator": lambda: itertools.count(1).__next__,
    "list": lambda: [3, 2, 1].pop,
    "queue": lambda: filled(queue.SimpleQueue()).get,
    "partial": lambda: functools.partial(next, itertools.count(1)),
    "partial method": lambda: functools.partial(np.random.default_rng(1).random),
    "partial in it": lambda: functools.partial(
        lambda draw: draw(), functools.partial(next, itertools.count(1))
    ),
}


def filled(waiting):
    for i in range(10):
        waiting.put(i)
    return waiting


@pytest.mark.parametrize("name", METHODS)
def test_methods_of_what_changes_are_no_constants(name):
    scale = ndx.fuse(lambda x, draw: x * draw())
    own, expected = METHODS[name](), METHODS[name]()
    found = [float(scale(ndx.ones(1), own)[0]) for _ in range(3)]
    assert found == [float(expected()) for _ in range(3)]


def test_queues_are_no_constants():
    scale = ndx.fuse(lambda x, waiting: x * waiting.get())
    for waiting in filled(queue.Queue()), filled(queue.SimpleQueue()):
        assert [float(scale(ndx.ones(1), waiting)[0]) for _ in range(3)] == [0, 1, 2]


def test_methods_of_other_objects_are_constants():
    class Model:
        def forward(self, x):
            return x * 2.0

    forward = Model().forward
    scale = ndx.fuse(lambda x, function: function(x) + 1.0)
    for _ in range(2):
        assert scale(ndx.ones(1), forward).tolist() == [3.0]
    assert "as it is" not in scale.explain()


class Drawing(functools.partial):
    pass


@pytest.mark.parametrize("wrap", [
    lambda rng: Drawing(rng.random),
    lambda rng: types.MethodType(rng.uniform, 0.0),
    lambda rng: types.MethodType(lambda draw: draw(), rng.random),
    lambda rng: types.MethodType(lambda draw: draw(), functools.partial(rng.random)),
])  # fmt: skip
def test_what_wraps_a_method_of_what_changes_is_no_constant(wrap):
    scale = ndx.fuse(lambda x, draw: x * draw())
    own, expected = wrap(np.random.default_rng(1)), wrap(np.random.default_rng(1))
    found = [float(scale(ndx.ones(1), own)[0]) for _ in range(3)]
    assert found == [float(expected()) for _ in range(3)]


def test_deep_partials_are_no_constants():
    """However deep they are, they are not looked into beyond a few."""
    function = functools.partial(abs)
    for _ in range(100_000):
        function = functools.partial(lambda f, x: x, function)
    scale = ndx.fuse(lambda x, f: x * 2.0)
    assert scale(ndx.ones(1), function).tolist() == [2.0]
    while function.args:
        function = function.args[0]


def test_classes_with_a_name_like_a_generators_are_constants():
    settings = type("Settings", (), {"__module__": "ndx.randomize", "rate": 2.0})()
    scale = ndx.fuse(lambda x, s: x * s.rate + 1.0)
    for _ in range(2):
        assert scale(ndx.ones(1), settings).tolist() == [3.0]
    assert "as it is" not in scale.explain()

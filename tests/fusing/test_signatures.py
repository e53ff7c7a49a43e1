"""Which calls of a fused function are one signature, and which have none."""

import array as typed
import collections
import itertools
import random

import numpy as np
import pytest

import ndx


def test_keywords_are_not_a_tuple_of_their_names():
    def scaled(x, y=None):
        return x * 2.0 if y is None else y + len(x) * 100.0

    fused = ndx.fuse(scaled)
    a = ndx.ones(3)
    assert fused(x=a).tolist() == [2.0] * 3
    assert fused(("x",), a).tolist() == [101.0] * 3
    assert fused("x", a).tolist() == [101.0] * 3


def test_values_are_told_apart_after_many_of_them():
    @ndx.fuse
    def digits(a, x, y, z):
        return a * 0.0 + (float(x) * 100 + float(y) * 10 + float(z))

    a = ndx.ones(2)
    # The table of values that are met is cleared now and then.
    for already in range(250, 260):
        digits.clear()
        for i in range(already):
            with pytest.raises(TypeError):
                digits([], np.float64(i + 0.5), 0, 0)
        values = [np.float64(i) for i in (1, 2, 3)]
        for chosen in [*itertools.permutations(values)] * 2:
            expected = float("".join(str(int(x)) for x in chosen))
            assert digits(a, *chosen).tolist() == [expected] * 2


def test_a_recorded_function_may_forget_all_recordings():
    @ndx.fuse
    def named(a, name):
        if name == "first":
            named.clear()
        return a + float(len(name))

    a = ndx.zeros(1)
    for name in ("first", "second", "other one") * 3:
        assert named(a, "".join(name)).tolist() == [float(len(name))]


def counted(items):
    return lambda: next(items)


@pytest.mark.thread_unsafe(reason="arguments are changed")
@pytest.mark.parametrize(
    ("argument", "value"),
    [
        (itertools.count(), next),
        (np.random.default_rng(1), lambda rng: rng.random()),
        (np.random.RandomState(1), lambda rng: rng.random_sample()),
        (random.Random(1), lambda rng: rng.random()),
        (collections.deque(range(9)), lambda items: items.popleft()),
        (bytearray(b"abcdefgh"), lambda items: items.pop()),
        (typed.array("d", range(9)), lambda items: items.pop()),
    ],
    ids=lambda item: type(item).__name__,
)
def test_arguments_whose_value_changes_are_asked_at_each_call(argument, value):
    fused = ndx.fuse(lambda a, items: a + float(value(items)))
    a = ndx.zeros(1)
    assert len({float(fused(a, argument)[0]) for _ in range(4)}) == 4
    assert "called as it is: it c" in fused.explain()


def test_tuples_may_be_nested_deeply():
    fused = ndx.fuse(lambda a, nested: a + 1.0)
    for depth in (1, 70, 100, 10**6):
        nested = ()
        for _ in range(depth):
            nested = (nested,)
        assert fused(ndx.ones(1), nested).tolist() == [2.0]

"""Functions that exceed what a program may have are called as they are."""

import math

import pytest

import ndx


def test_large_programs_are_refused():
    def long(x):
        for _ in range(1000):
            x = x + 1.0
        return x

    fused = ndx.fuse(long)
    assert fused(ndx.zeros(2)).tolist() == [1000.0, 1000.0]
    assert "more than 400 steps" in fused.explain()
    many = ndx.fuse(lambda *xs: sum(xs[1:], xs[0]))
    arrays = [ndx.ones(3) for _ in range(30)]
    assert many(*arrays).tolist() == [30.0] * 3
    assert "more than 24 arrays" in many.explain()


@pytest.mark.parametrize("ndim", [7, 8, 9, 10, 33, 64])
def test_arrays_of_many_axes(ndim):
    fused = ndx.fuse(lambda a: (a + 1.0, a[1:] * 2.0))
    # Neighbours in memory would be overwritten.
    around = [ndx.ones(3) for _ in range(20)]
    ones = (1,) * (ndim - 7)
    for shape in [(300, *ones, 1, 1, 1, 1, 1, 1), (3, 3, 3, 1, 2, 1, 2, *ones)]:
        a = ndx.reshape(ndx.arange(math.prod(shape), dtype="float64"), shape)
        for found, expected in zip(fused(a), fused.__wrapped__(a), strict=True):
            assert found.shape == expected.shape
            assert ndx.all(found == expected)
    assert all(x.tolist() == [1.0] * 3 for x in around)


def test_fused_functions_of_fused_functions():
    def nested(depth):
        fused = [ndx.fuse(lambda x: x + 1.0)]
        for _ in range(depth):
            fused.append(ndx.fuse(fused[-1]))
        return fused

    assert nested(10)[-1](ndx.zeros(2)).tolist() == [1.0, 1.0]
    fused = nested(100_000)
    for call in (1, 2):
        with pytest.raises(RecursionError):
            fused[-1](ndx.zeros(2))
        # One for each call: the walk for each is as long as the stack.
        recorded = ["RecursionError" in each.explain() for each in fused[-500:]]
        assert recorded == [False] * (500 - call) + [True] * call

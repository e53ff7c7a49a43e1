"""Operators with lists, tuples and other sequences of Python's."""

import array
import operator
from collections import deque
from typing import NamedTuple

import numpy as np
import pytest

import ndx

OPERATORS = [
    operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv,
    operator.mod, operator.pow, operator.and_, operator.or_, operator.xor,
    operator.lshift, operator.rshift, operator.matmul, operator.eq, operator.ne,
    operator.lt, operator.le, operator.gt, operator.ge,
]  # fmt: skip


class Pair(NamedTuple):
    first: int
    second: int


def outcome(compute, *args):
    """Return a result as NumPy's array, or the class of the error."""
    try:
        return np.asarray(compute(*args))
    except (TypeError, ValueError) as error:
        return TypeError if isinstance(error, TypeError) else ValueError


VALUES = [[1, 2], (1, 2), [], Pair(1, 2), [[1], [2]], [1.5, True], [[1, 2], [3]]]


@pytest.mark.parametrize("compute", OPERATORS)
@pytest.mark.parametrize("values", VALUES, ids=repr)
@pytest.mark.parametrize(
    "x", [3, [1, 2], [[1.5, 2.0], [3.0, 4.0]]], ids=["0d", "1d", "2d"]
)
def test_operators_convert_lists_and_tuples_as_those_of_numpy(compute, values, x):
    ours, theirs = ndx.asarray(x), np.asarray(x)
    for first, second in ((ours, values), (values, ours)):
        pair = (theirs, values) if first is ours else (values, theirs)
        found, expected = outcome(compute, first, second), outcome(compute, *pair)
        if isinstance(expected, type):
            assert found is expected
        else:
            assert found.tolist() == expected.tolist()
            assert found.dtype == expected.dtype
    if not isinstance(outcome(compute, ours, [[1, 2], [3, 4]]), type):
        nested = compute(ours, [ndx.asarray([1, 2]), (3, ndx.asarray(4))])
        assert isinstance(nested, ndx.NDArray)


@pytest.mark.parametrize(
    "compute", [operator.iadd, operator.isub, operator.imul, operator.ipow]
)
def test_operators_in_place_convert_lists(compute):
    x, a = ndx.asarray([3, 4]), np.array([3, 4])
    kept = x
    x, a = compute(x, [1, 2]), compute(a, [1, 2])
    assert x is kept
    assert x.tolist() == a.tolist()
    with pytest.raises((TypeError, ValueError)):
        compute(ndx.asarray([3, 4]), [1.5, 2.5, 3.5])
    # A list on the left is rebound, as with NumPy.
    if compute is not operator.imul:
        assert isinstance(compute([1, 2], x), ndx.NDArray)


def test_a_number_is_a_count_of_a_sequence_and_an_array_is_not():
    two = ndx.asarray([2])[0]
    for values in ([1, 2], (1, 2), "ab", b"ab", deque([1, 2])):
        assert values * two == two * values == values * 2
    assert (ndx.asarray(2) * [1, 2]).tolist() == [2, 4]
    assert (ndx.asarray([2.0])[0] * [1, 2]).tolist() == [2.0, 4.0]


@pytest.mark.parametrize(
    "values", ["ab", b"ab", bytearray(b"ab"), array.array("d", [1.0]), deque([1, 2])]
)
def test_no_sequence_is_repeated_by_an_array(values):
    for x in (ndx.asarray([2]), ndx.asarray(2.0), ndx.asarray(True)):
        with pytest.raises(TypeError, match=r"ndx\.asarray"):
            x * values
        with pytest.raises(TypeError, match=r"ndx\.asarray"):
            values * x


def test_none_and_strings_are_not_equal():
    x = ndx.asarray([1, 2])
    for other in (None, "auto", b"auto"):
        assert (x == other) is False
        assert (x != other) is True


def test_no_element_is_equal_to_another_object():
    x = ndx.asarray([1, 2])
    for other in ({}, object()):
        assert (x == other).tolist() == [False, False]
        assert (x != other).tolist() == [True, True]
        assert other not in x


def test_tuples_with_operators_of_their_own_are_asked():
    class Vector(tuple):
        __slots__ = ()

        def __radd__(self, other):
            return "added"

        def __rmul__(self, other):
            return "multiplied"

    x = ndx.asarray([1, 2])
    assert x + Vector((1, 2)) == "added"
    assert ndx.asarray(2) * Vector((1, 2)) == "multiplied"


class Divisor:
    __array_ufunc__ = None

    def __rdivmod__(self, other):
        return "quotient", "remainder"

    def __divmod__(self, other):
        return "reversed"


def test_divmod_leaves_other_operands_to_them():
    x = ndx.asarray([7.0, -7.0])
    assert divmod(x, Divisor()) == ("quotient", "remainder")
    assert divmod(Divisor(), x) == "reversed"
    for other in ("a", None, object()):
        with pytest.raises(TypeError):
            divmod(x, other)
        with pytest.raises(TypeError):
            divmod(other, x)
    assert divmod(x, [1.0, 2.0])[0].tolist() == [7.0, -4.0]


def test_divmod_overwrites_no_operand():
    x = ndx.full(100_000, 7.0)
    quotient, remainder = divmod(x + 0, 4)
    assert ndx.all(quotient == 1)
    assert ndx.all(remainder == 3)


def test_sequences_are_looked_for_as_in_numpys_arrays():
    x, a = ndx.asarray([1.0, 2.0]), np.array([1.0, 2.0])
    for values in ([1.0, 1.0], (1.0, 1.0), [3.0, 3.0], [3.0, 2.0]):
        assert (values in x) == (values in a)
    assert 1.0 in x
    assert "a" not in x

"""Operators with lists, tuples and other sequences of Python's."""

import array
import operator
from collections import deque
from typing import NamedTuple

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


@pytest.mark.parametrize("compute", OPERATORS)
@pytest.mark.parametrize("values", [[1, 2], (1, 2), [], Pair(1, 2), [[1], [2]]])
@pytest.mark.parametrize("x", [ndx.asarray(3), ndx.asarray([1, 2])], ids=["0d", "1d"])
def test_operators_with_lists_and_tuples_name_asarray(compute, values, x):
    if compute is operator.mul and x.ndim == 0:
        pytest.skip("an integer without axes is a count, as tests/numpy shows")
    with pytest.raises(TypeError, match=r"ndx\.asarray"):
        compute(x, values)
    with pytest.raises(TypeError, match=r"ndx\.asarray"):
        compute(values, x)


@pytest.mark.parametrize(
    "compute",
    [operator.iadd, operator.isub, operator.ipow, operator.imatmul],
)
def test_operators_in_place_with_lists_name_asarray(compute):
    x = ndx.asarray(3)
    values = [1, 2]
    with pytest.raises(TypeError, match=r"ndx\.asarray"):
        compute(x, values)
    with pytest.raises(TypeError, match=r"ndx\.asarray"):
        compute(values, x)
    assert values == [1, 2]
    assert int(x) == 3


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
    with pytest.raises(TypeError, match=r"ndx\.asarray"):
        divmod(x, [1.0, 2.0])


def test_divmod_overwrites_no_operand():
    x = ndx.full(100_000, 7.0)
    quotient, remainder = divmod(x + 0, 4)
    assert ndx.all(quotient == 1)
    assert ndx.all(remainder == 3)


def test_sequences_are_in_no_array():
    x = ndx.ones(2)
    for values in ([1.0, 1.0], (1.0, 1.0)):
        with pytest.raises(TypeError, match=r"ndx\.asarray"):
            values in x  # noqa: B015
    assert 1.0 in x
    assert "a" not in x

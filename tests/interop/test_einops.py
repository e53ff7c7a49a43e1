"""The functions of einops take NDArrays and return them."""

import einops as plain
import einops.array_api as einops
import pytest
from helpers.consumers import MATRIX, VECTOR, check

import ndx

CALLS = {
    "rearrange": lambda x: einops.rearrange(x, "a (b c) -> b (a c)", b=2),
    "rearrange to a vector": lambda x: einops.rearrange(x, "a b -> (b a)"),
    "rearrange a list": lambda x: einops.rearrange([x, x + 1], "n a b -> a n b"),
    "repeat": lambda x: einops.repeat(x, "a b -> a (b c)", c=3),
    "repeat along a new axis": lambda x: einops.repeat(x, "a b -> c a b", c=2),
    "reduce by a function": lambda x: einops.reduce(x, "a b -> b", lambda t, axes: (
        t.__array_namespace__().sum(t, axis=tuple(axes)))),
    "reduce over parts": lambda x: einops.reduce(x, "(a two) b -> a b", "sum", two=2),
    "pack": lambda x: einops.pack([x, x[:, 0]], "a *")[0],
    "unpack": lambda x: einops.unpack(x, [(1,), (3,)], "a *"),
}  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
def test_calls(name):
    # NumPy arrays have __array_namespace__, too, which is all that einops asks for.
    check(lambda xp, x: CALLS[name](x), MATRIX)


@pytest.mark.parametrize("how", ["min", "max", "sum", "mean", "prod"])
def test_reduce(how):
    check(lambda xp, x: einops.reduce(x, "a b -> a 1", how), MATRIX)


@pytest.mark.parametrize("how", ["any", "all"])
def test_reduce_bools(how):
    check(lambda xp, x: einops.reduce(x > 0.5, "a b -> a", how), MATRIX)


def test_a_wrong_pattern_is_an_error():
    with pytest.raises(Exception, match="Wrong shape"):
        einops.rearrange(ndx.asarray(VECTOR), "a b -> b a")


PLAIN = {
    "einsum": lambda x: plain.einsum(x, x, "a b, c b -> a c"),
    "pack": lambda x: plain.pack([x, x[:, 0]], "a *")[0],
    "rearrange": lambda x: plain.rearrange(x, "a (b c) -> b (a c)", b=2),
    "rearrange a list": lambda x: plain.rearrange([x, x + 1], "n a b -> a n b"),
    "reduce": lambda x: plain.reduce(x, "(a two) b -> a b", "mean", two=2),
    "repeat": lambda x: plain.repeat(x, "a b -> a (b c)", c=3),
}


@pytest.mark.parametrize("name", PLAIN)
def test_the_plain_functions(name):
    check(lambda xp, x: PLAIN[name](x), MATRIX)

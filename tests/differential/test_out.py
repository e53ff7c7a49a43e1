"""`out=` in any layout, over the operands too, gives what the function returns."""

import numpy as np
import pytest
from helpers.calls import resolve
from hypothesis import given
from hypothesis import strategies as st

import ndx
from differential import elementwise
from differential.engine import assert_close, mapped, outcome, plain, spread_out


def overlapping(args, result):
    """Return operands and an output that share memory, a step apart, where they can.

    The first operand of the result's shape and dtype is moved into the output's room.
    """
    for i, x in enumerate(args):
        like = isinstance(x, np.ndarray) and x.dtype == result.dtype
        if like and result.ndim and x.shape == result.shape:
            room = ndx.zeros((x.shape[0] + 1, *x.shape[1:]), dtype=x.dtype)
            operand = room[1:]
            operand[...] = x
            return (*args[:i], operand, *args[i + 1 :]), room[:-1]
    return args, spread_out(np.asarray(result))


@pytest.mark.parametrize("name", sorted(set(elementwise.TABLE) - {"real", "imag"}))
@given(data=st.data())
def test_out(name, data):
    row = elementwise.TABLE[name]
    function = resolve(ndx, name)
    args, kwargs = mapped(data.draw(row.draws), plain)
    result, error = outcome(function, args, kwargs)
    if error is not None:
        return
    expected = np.array(result)
    mask = row.standard is None or row.standard(*args)
    if data.draw(st.booleans()):
        args, out = overlapping(args, result)
    else:
        out = spread_out(np.zeros_like(expected))
    assert function(*args, **kwargs, out=out) is out
    assert_close(np.asarray(out), expected, row, mask)

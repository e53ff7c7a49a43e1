"""Every elementwise function gives the same on all of its paths.

A path is how it is called (operators, in place, `out=`, Python scalars, one element at
a time), how operands and results lie (in any order, with steps, reversed, repeated, one
over the other), and where (in memory, in files, in a workspace; in a pass or not).
"""

import contextlib
import operator
import os

import numpy as np
import pytest
from helpers.calls import resolve
from helpers.examples import examples
from helpers.patterns import large_shapes
from hypothesis import given
from hypothesis import strategies as st

import ndx
from differential import elementwise
from differential.engine import alike, assert_close, mapped, outcome, plain, spread_out
from differential.layouts import LAYOUTS, in_c_order, reversed_out
from differential.test_passes import places  # noqa: F401

pytestmark = pytest.mark.skipif(os.name != "posix", reason="maps files")
NAMES = sorted(elementwise.TABLE)
NO_OUT = {"real", "imag"}
OPERATORS = {
    "add": "add", "subtract": "sub", "multiply": "mul", "divide": "truediv",
    "floor_divide": "floordiv", "remainder": "mod", "pow": "pow", "equal": "eq",
    "not_equal": "ne", "less": "lt", "less_equal": "le", "greater": "gt",
    "greater_equal": "ge", "bitwise_and": "and_", "bitwise_or": "or_",
    "bitwise_xor": "xor", "bitwise_left_shift": "lshift",
    "bitwise_right_shift": "rshift", "negative": "neg", "positive": "pos", "abs": "abs",
    "bitwise_invert": "invert",
}  # fmt: skip
# Whose loops round otherwise for vectors than for numbers.
ROUNDED = {"square", "multiply", "pow"}


def repeated(array):
    """Return an NDArray that repeats one element, if that is what the array has."""
    if array.size and np.array_equal(array, np.broadcast_to(array.flat[0], array.shape),
                                     equal_nan=array.dtype.kind in "fc"):  # fmt: skip
        one = ndx.asarray(np.array(array.flat[0]), copy=True)
        return ndx.broadcast_to(one, array.shape)
    return in_c_order(array)


def of_one_value(array):
    """Return an array that repeats the first element."""
    full = np.empty(array.shape, array.dtype)
    full[...] = array.flat[0] if array.size else 0
    return full


def as_0d(other, scalar):
    """Return a scalar as the array without axes that stands for it beside another."""
    return ndx.full((), scalar, dtype=ndx.result_type(other, scalar))


class Paths:
    """The answers of one function for one drawn call, on path after path."""

    def __init__(self, name, args, row, layouts=LAYOUTS):
        self.name = name
        self.layouts = layouts
        self.function = resolve(ndx, name)
        self.args = mapped(args, plain)
        self.row = row
        with ndx.passes(threshold="1TiB"), ndx.use("host"):
            self.expected, self.error = self.answer(self.function, args)
        self.mask = True if self.error is not None else self.exact(args)

    def exact(self, args):
        """Return where all loops give the same, as a mask."""
        if self.name in ROUNDED and self.row.standard is not None:
            return self.row.standard(*args)
        return True

    def answer(self, function, args):
        found, error = outcome(function, mapped(args, in_c_order), {})
        return (None if error is not None else np.array(found)), error

    def check(self, path, function, *args, expected=None, mask=None, **kwargs):
        """Check what a call returns, or that it raises what the plain one does.

        `expected` and `mask` are for calls of other operands than those drawn.
        """
        found, error = outcome(function, args, kwargs)
        if self.error is not None and expected is None:
            assert error is not None, (path, self.error)
            assert alike(error, self.error), (path, error, self.error)
            return
        if error is not None:
            raise AssertionError(path) from error
        expected = self.expected if expected is None else expected
        assert isinstance(found, ndx.NDArray), path
        assert found.dtype == expected.dtype, path
        assert found.shape == expected.shape, path
        if "out" in kwargs:
            assert found is kwargs["out"]
        try:
            mask = self.mask if mask is None else mask
            assert_close(np.asarray(found), expected, self.row, mask)
        except AssertionError as difference:
            raise AssertionError(path) from difference

    def given(self, layout=in_c_order):
        return mapped(self.args, layout)

    # ------------------------------------------------------------ the paths

    def operands(self):
        for layout in self.layouts:
            self.check(layout.__name__, self.function, *self.given(layout))
        if len(self.args) == 2:
            for number, first in enumerate(self.layouts):
                second = LAYOUTS[(number + 1) % len(LAYOUTS)]
                pair = mapped(self.args[0], first), mapped(self.args[1], second)
                self.check("mixed layouts", self.function, *pair)

    def outputs(self):
        if self.error is not None or self.name in NO_OUT:
            return
        for layout in self.layouts:
            for operands in (in_c_order, layout):
                out = layout(np.zeros_like(self.expected))
                self.check(f"out {layout.__name__}", self.function,
                           *self.given(operands), out=out)  # fmt: skip

    def over_operands(self):
        for number, x in enumerate(self.args):
            if self.error is not None or not isinstance(x, np.ndarray):
                continue
            if self.name in NO_OUT:
                continue
            if x.dtype != self.expected.dtype or x.shape != self.expected.shape:
                continue
            for layout in self.layouts:
                args = list(self.given(layout))
                self.check("in place", self.function, *args, out=args[number])
            if x.ndim:
                # A step apart.
                room = ndx.zeros((x.shape[0] + 1, *x.shape[1:]), dtype=x.dtype)
                args = list(self.given())
                args[number] = room[1:]
                args[number][...] = x
                self.check("overlapping", self.function, *args, out=room[:-1])

    def operators(self):
        if self.name not in OPERATORS:
            return
        call = getattr(operator, OPERATORS[self.name])
        for layout in (in_c_order, spread_out, reversed_out):
            self.check("operator", call, *self.given(layout))
        inplace = getattr(operator, "i" + OPERATORS[self.name].rstrip("_"), None)
        x = self.args[0]
        if inplace is None or self.error is not None or not isinstance(x, np.ndarray):
            return
        if x.dtype == self.expected.dtype and x.shape == self.expected.shape:
            for layout in self.layouts:
                self.check("operator in place", inplace, *self.given(layout))

    def scalars(self):
        """Of Python scalars, and of arrays that repeat one value, in all ways."""
        if len(self.args) != 2:
            return
        for number, x in enumerate(self.args):
            other = self.args[1 - number]
            if not isinstance(x, np.ndarray):
                # What was drawn is a Python scalar: as an array without axes, too.
                # Quotients are floats, also by a number that the integers' dtype can't
                # hold: there is no such array.
                array, error = outcome(as_0d, (other, x), {})
                if error is None and self.error is None:
                    args = list(self.given())
                    args[number] = array
                    self.check("0-d for a scalar", self.function, *args)
                    args[number] = ndx.full(other.shape, x, dtype=array.dtype)
                    self.check("full for a scalar", self.function, *args)
                continue
            full = list(self.args)
            full[number] = of_one_value(x)
            expected, error = self.answer(self.function, full)
            if error is not None:
                continue
            args = mapped(full, in_c_order)
            args[number] = repeated(full[number])
            mask = self.exact(full)
            self.check("repeated", self.function, *args, expected=expected, mask=mask)
            self.check("repeated, out", self.function, *args, expected=expected,
                       mask=mask, out=spread_out(expected))  # fmt: skip

    def elements(self, pick):
        """One element at a time, of arrays without axes and with one."""
        if self.error is not None or not self.expected.size:
            return
        shape = self.expected.shape
        place = np.unravel_index(pick % self.expected.size, shape)
        args = [
            np.broadcast_to(x, shape)[place] if isinstance(x, np.ndarray) else x
            for x in self.args
        ]
        args = [np.array(x) if isinstance(x, np.generic) else x for x in args]
        expected = np.array(self.expected[place])
        mask = np.array(np.broadcast_to(self.mask, shape)[place])
        self.check("0-d", self.function, *mapped(args, in_c_order), expected=expected,
                   mask=mask)  # fmt: skip
        if self.name not in NO_OUT:
            out = ndx.empty((), dtype=expected.dtype)
            self.check("0-d, out", self.function, *mapped(args, in_c_order), out=out,
                       expected=expected, mask=mask)  # fmt: skip
        lines = [x[None] if isinstance(x, np.ndarray) else x for x in args]
        self.check("of one", self.function, *mapped(lines, in_c_order),
                   expected=expected[None], mask=mask[None])  # fmt: skip

    def groups(self, pick):
        """Return all that can be checked, a few paths each."""
        return [
            self.operands,
            self.outputs,
            self.over_operands,
            self.operators,
            self.scalars,
            lambda: self.elements(pick),
        ]


def drawn(data, row):
    """Draw the operands of a call; bounds of `clip` by their places."""
    args, kwargs = data.draw(row.draws)
    return (*args, kwargs.get("min"), kwargs.get("max")) if kwargs else args


@pytest.mark.parametrize("name", NAMES)
@examples(8)
@given(data=st.data())
def test_small_arrays(name, data):
    row = elementwise.TABLE[name]
    args = drawn(data, row)
    paths = Paths(name, args, row)
    groups = paths.groups(data.draw(st.integers(0, 1000)))
    scope = contextlib.nullcontext()
    if data.draw(st.booleans()):
        scope = ndx.workspace("paths")
    with scope:
        for check in groups:
            check()


@pytest.mark.parametrize("name", NAMES)
@examples(10)
@given(data=st.data())
def test_large_arrays(places, name, data):  # noqa: F811
    row = elementwise.TABLE[name]
    with large_shapes():
        args = drawn(data, row)
    layouts = [data.draw(st.sampled_from(LAYOUTS)), in_c_order]
    paths = Paths(name, args, row, layouts)
    check = data.draw(st.sampled_from(paths.groups(data.draw(st.integers(0, 10**6)))))
    with places.passing(data):
        check()

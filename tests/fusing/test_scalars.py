"""Floats among the arguments act as floats, whatever the function does with them."""

import copy
import json
import math
import operator
import pickle
import struct
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from fusing.compare import assert_as_plain
from helpers.numpy_versions import since

import ndx

OPERATORS = [operator.add, operator.sub, operator.mul, operator.truediv,
             operator.floordiv, operator.mod, operator.pow, operator.eq, operator.ne,
             operator.lt, operator.le, operator.gt, operator.ge]  # fmt: skip
OTHERS = [2, 3.0, True, 2j, Fraction(1, 2), np.float64(3), np.float32(3), np.int64(3),
          np.uint8(3), np.complex64(3), np.bool(True)]  # fmt: skip
NUMBERS = {
    "clip": lambda s: np.clip(s, 0, 1),
    "dot": lambda s: np.dot(s, 2.0),
    "linspace": lambda s: np.linspace(0, s, 3)[1],
    "arange": lambda s: np.arange(0, s, 0.25)[1],
    "full": lambda s: np.full(2, s)[0],
    "min": lambda s: np.min([s, 2.0]),
    "sum": lambda s: np.sum([s, [s][0]]),
    "array": lambda s: np.array([s, s]).max(),
    "asarray": lambda s: np.asarray(s)[()],
    "float32": lambda s: np.asarray(s, dtype="f4")[()],
    "scalar": lambda s: np.float64(s),
    "cumsum": lambda s: np.cumsum([s, s])[1],
    "outer": lambda s: np.outer([s], [s])[0, 0],
    "where": lambda s: np.where(s > 0, s, 2.0)[()],
    "concatenate": lambda s: np.concatenate(([s], [1.0]))[0],
    "block": lambda s: np.block([[s, 1.0], [1.0, s]])[0, 0],
    "interp": lambda s: np.interp(s, [0, 1], [0, 5]),
    "polyval": lambda s: np.polyval([1.0, 2.0], s),
    "add": lambda s: np.add(s, np.float32(1)),
    "at once": lambda s: np.add([s, 1.0], s)[0],
    "array op": lambda s: (np.ones(2, np.float32) * s)[0],
    "op array": lambda s: (s / np.ones(2, np.float32))[0],
    "result_type": lambda s: float(np.result_type(np.float32, s).itemsize),
    "round": round,
    "divmod": lambda s: divmod(s, 0.2)[0],
    "rdivmod": lambda s: divmod(np.float64(3), s)[0],
    "explicit": lambda s: s.__radd__(np.float64(1)),
    "max": lambda s: max(s, np.float64(0.1)),
    "pow": lambda s: pow(2, s),
    "sin": math.sin,
    "fsum": lambda s: math.fsum([s, s]),
    "int": lambda s: int(s) + 1,
    "decimal": lambda s: float(Decimal(s)),
    "copies": lambda s: copy.deepcopy(s) + pickle.loads(pickle.dumps(s)),
    "json": lambda s: json.loads(json.dumps([s]))[0],
    "struct": lambda s: struct.unpack("d", struct.pack("d", s))[0],
    "text": lambda s: float(f"{s:.2f}") + len(str(s)) + len("%r" % s),  # noqa: UP031
    "key": lambda s: {0.5: 3}.get(s, 1) + (s in (0.5, 1)),
    "set": lambda s: len({s, 0.5}),
    "attributes": lambda s: s.real + s.as_integer_ratio()[0],
    "full of ndx": lambda s: float(ndx.full(3, s)[0]),
    "asarray of ndx": lambda s: float(ndx.asarray([s, 1.0])[0]),
    "linspace of ndx": lambda s: float(ndx.linspace(0, s, 3)[1]),
    "type of ndx": lambda s: float(ndx.result_type(ndx.float32, s).itemsize),
}


def makers(*values):
    return [
        lambda value=value, dtype=dtype: (ndx.arange(1, 5, dtype=dtype), value)
        for dtype in ("float32", "float64")
        for value in values
    ]


@pytest.mark.parametrize("operation", OPERATORS)
@pytest.mark.parametrize("other", OTHERS, ids=repr)
def test_operators_with_other_numbers(operation, other):
    if (
        operation is operator.pow
        and isinstance(other, np.generic)
        and not since("operators promote floats that are exponents")
    ):
        pytest.skip("NumPy's number decides otherwise, with a float or an array of it")
    for make in makers(0.5, -1.75):
        assert_as_plain(lambda a, s: a * operation(s, other), make)
        assert_as_plain(lambda a, s: a * operation(other, s), make)


@pytest.mark.parametrize("name", NUMBERS)
def test_what_functions_make_of_floats(name):
    assert_as_plain(lambda a, s: a * NUMBERS[name](s), *makers(0.5, 1.75, 0.5))


def test_keys_of_results():
    fused = assert_as_plain(
        lambda a, s: {s: a * s, (s, 1): a, "x": s}, *makers(0.5, 1.75)
    )
    assert "stage over" in fused.explain()


def test_lists_that_hold_themselves():
    def nested(a, s):
        items = [s]
        items += [items, items]
        try:
            np.asarray(items)
        except (ValueError, RecursionError):
            return a * s

    assert_as_plain(nested, *makers(0.5))

"""NumPy's loops of products where they are wrong for operands that lie in some way."""

import ctypes

import numpy as np
import pytest

import ndx
from ndx._compute import matmul


@pytest.fixture
def distrusted():
    matmul.set_layouts(contiguous=True)
    yield
    matmul.set_layouts(contiguous=False)


def laid(array, kind):
    """Return an NDArray of an order in memory: C, Fortran, spread or backwards."""
    room = ndx.zeros((*array.shape, 2), dtype=array.dtype)
    if kind == "F":
        axes = tuple(range(array.ndim))[::-1]
        view = ndx.permute_dims(ndx.zeros(array.shape[::-1], dtype=array.dtype), axes)
    elif kind == "backwards":
        view = room[..., 0][(slice(None, None, -1),) * array.ndim]
    else:
        view = room[..., 1] if kind == "spread" else ndx.zeros_like(room[..., 0])
    view[...] = array
    return view


@pytest.mark.usefixtures("distrusted")
@pytest.mark.parametrize("kind", ["C", "F", "spread", "backwards"])
@pytest.mark.parametrize("dtype", ["bool", "uint8", "int64", "float32", "complex128"])
def test_products_by_loops_for_contiguous_operands(kind, dtype):
    numbers = np.arange(1, 121) % 5 - (2 if dtype[0] in "ifc" else 0)
    for first, second in [
        ((3, 4), (4, 5)), ((2, 3, 4), (4, 5)), ((4,), (4, 5)), ((3, 4), (4,)),
        ((2, 3, 4), (2, 4, 1)), ((4,), (4,)),
    ]:  # fmt: skip
        x = np.resize(numbers, first).astype(dtype)
        y = np.resize(numbers[::-1], second).astype(dtype)
        expected = x @ y
        a, b = laid(x, kind), laid(y, kind)
        out = laid(np.zeros_like(expected), kind)
        for found in (a @ b, ndx.matmul(a, b, out=out), ndx.matmul(a, laid(y, "C"))):
            np.testing.assert_array_equal(np.asarray(found), expected)
        dotted = ndx.vecdot(laid(x, kind), laid(x, kind))
        np.testing.assert_array_equal(np.asarray(dotted), np.vecdot(x, x))


LOOP = ctypes.CFUNCTYPE(None, ctypes.POINTER(ctypes.c_void_p),
                        ctypes.POINTER(ctypes.c_ssize_t),
                        ctypes.POINTER(ctypes.c_ssize_t), ctypes.c_void_p)  # fmt: skip


def strided_view(address, shape, strides):
    """Return a NumPy array over float64 elements at an address."""
    low = sum(min(0, (n - 1) * step) for n, step in zip(shape, strides, strict=True))
    high = sum(max(0, (n - 1) * step) for n, step in zip(shape, strides, strict=True))
    buffer = (ctypes.c_char * (high - low + 8)).from_address(address + low)
    return np.ndarray(shape, "float64", buffer, offset=-low, strides=strides)


def product_loop(changed):
    """Return a loop of matmul's whose steps are changed before their use."""

    def loop(args, counts, steps, data):
        stack, m, n, p = counts[:4]
        a, b, out = (
            strided_view(args[op], shape, (steps[op], *changed(op, shape[1:], *pair)))
            for op, shape, pair in (
                (0, (stack, m, n), steps[3:5]),
                (1, (stack, n, p), steps[5:7]),
                (2, (stack, m, p), steps[7:9]),
            )
        )
        out[...] = a @ b

    return LOOP(loop)


@pytest.mark.parametrize("operand", [0, 1, 2])
@pytest.mark.parametrize("wrong", ["rows", "columns", "backwards", "transposed"])
def test_loops_that_are_wrong_for_some_steps_are_found(operand, wrong):
    def changed(op, shape, row, column):
        if op != operand:
            return row, column
        if wrong == "rows" and abs(row) > 16 * shape[1]:
            row = 8 * shape[1]
        elif wrong == "columns" and column == 16:
            column = 8
        elif wrong == "backwards":
            row, column = abs(row), abs(column)
        elif wrong == "transposed" and row == 8 and shape[1] > 1:
            row, column = 8 * shape[1], 8
        return row, column

    right = product_loop(lambda op, shape, row, column: (row, column))
    bad = product_loop(changed)
    assert matmul.is_trusted("matmul", "float64", address_of(right))
    assert not matmul.is_trusted("matmul", "float64", address_of(bad))


def address_of(function):
    return ctypes.cast(function, ctypes.c_void_p).value

"""NumPy's functions that kernels of ndx compute, against NumPy's own."""

import numpy as np
import pytest
from helpers.compare import assert_same, values
from helpers.examples import examples
from helpers.numpy_versions import since
from hypothesis import example, given
from hypothesis import strategies as st

import ndx
import ndx.numpy as ndx_numpy

SHAPES = [(), (0,), (1,), (5,), (2, 3), (3, 3), (1, 4), (3, 0), (1, 1), (2, 3, 2)]
TYPES = ["bool", "int8", "int64", "uint64", "float16", "float32", "float64"]
TYPES += ["complex128"]
STEPS = {"plain": 1, "strided": 2, "reversed": -1}
LAYOUTS = [*STEPS, "transposed"]

# The functions, and how they are called with two arrays.
CALLS = {
    "concatenate": lambda np, x, y: np.concatenate([x, y]),
    "concatenate axis": lambda np, x, y: np.concatenate((x, y, x), axis=-1),
    "concatenate position": lambda np, x, y: np.concatenate((x, y), 1),
    "concatenate flat": lambda np, x, y: np.concatenate([x, y], axis=None),
    "concatenate dtype": lambda np, x, y: np.concatenate([x, y], dtype=np.complex128),
    "concatenate one array": lambda np, x, y: np.concatenate(x),
    "concatenate nothing": lambda np, x, y: np.concatenate([x[:0], y, x[:0]]),
    "hstack": lambda np, x, y: np.hstack([x, y]),
    "vstack": lambda np, x, y: np.vstack((x, y)),
    "stack": lambda np, x, y: np.stack([x, y]),
    "stack axis": lambda np, x, y: np.stack([x, y], axis=-1),
    "stack in the middle": lambda np, x, y: np.stack([x, y, y], axis=1),
    "stack outside": lambda np, x, y: np.stack([x, y], axis=9),
    "outer": lambda np, x, y: np.outer(x, y),
    "outer into": lambda np, x, y: np.outer(x, y, out=None),
    "add.outer": lambda np, x, y: np.add.outer(x, y),
    "subtract.outer": lambda np, x, y: np.subtract.outer(x, y),
    "true_divide.outer": lambda np, x, y: np.true_divide.outer(x, y),
    "norm": lambda np, x, y: np.linalg.norm(x),
    "norm axis": lambda np, x, y: np.linalg.norm(x, axis=-1),
}

# The same for one array, in ``ndx.numpy``, whose functions take all arguments.
OF_ONE = {
    "array": lambda np, x: np.array(x),
    "array dtype": lambda np, x: np.array(x, dtype="complex64"),
    "asarray": lambda np, x: np.asarray(x),
    "ascontiguousarray": lambda np, x: np.ascontiguousarray(x),
    "atleast_1d": lambda np, x: np.atleast_1d(x),
    "copy": lambda np, x: np.copy(x),
    "copy in order": lambda np, x: np.copy(x, order="F"),
    "count_nonzero": lambda np, x: np.count_nonzero(x),
    "count_nonzero axis": lambda np, x: np.count_nonzero(x, axis=0),
    "flatnonzero": lambda np, x: np.flatnonzero(x),
    "imag": lambda np, x: np.imag(x),
    "inner": lambda np, x: np.inner(x, x),
    "iscomplexobj": lambda np, x: np.iscomplexobj(x),
    "matrix_norm": lambda np, x: np.linalg.matrix_norm(x),
    "ndim": lambda np, x: np.ndim(x),
    "real": lambda np, x: np.real(x),
    "repeat": lambda np, x: np.repeat(x, 2),
    "repeat axis": lambda np, x: np.repeat(x, 2, -1),
    "roll": lambda np, x: np.roll(x, 2),
    "roll axis": lambda np, x: np.roll(x, -1, 0),
    "roll axes": lambda np, x: np.roll(x, (1, 2), (0, -1)),
    "round": lambda np, x: np.round(x),
    "round decimals": lambda np, x: np.round(x, 1),
    "searchsorted": lambda np, x: np.searchsorted(x, x),
    "shape": lambda np, x: np.shape(x),
    "size": lambda np, x: np.size(x),
    "sort": lambda np, x: np.sort(x),
    "sort axis": lambda np, x: np.sort(x, 0),
    "squeeze": lambda np, x: np.squeeze(x),
    "squeeze axis": lambda np, x: np.squeeze(x, axis=0),
    "tile": lambda np, x: np.tile(x, 2),
    "tile axes": lambda np, x: np.tile(x, (2, 3)),
    "vdot": lambda np, x: np.vdot(x, x),
    "vector_norm": lambda np, x: np.linalg.vector_norm(x),
    "vecdot": lambda np, x: np.vecdot(x, x),
    "vecdot axis": lambda np, x: np.vecdot(x, x, axis=0),
    "where": lambda np, x: np.where(x),
    "add.reduce": lambda np, x: np.add.reduce(x),
    "add.reduce axis": lambda np, x: np.add.reduce(x, axis=-1),
    "add.reduce all": lambda np, x: np.add.reduce(x, axis=None),
    "add.reduce dtype": lambda np, x: np.add.reduce(x, dtype="complex128"),
    "add.reduce keepdims": lambda np, x: np.add.reduce(x, keepdims=True),
    "multiply.reduce": lambda np, x: np.multiply.reduce(x),
    "maximum.reduce": lambda np, x: np.maximum.reduce(x),
    "minimum.reduce": lambda np, x: np.minimum.reduce(x, -1),
    "add.accumulate": lambda np, x: np.add.accumulate(x),
    "add.accumulate axis": lambda np, x: np.add.accumulate(x, axis=-1),
    "multiply.accumulate": lambda np, x: np.multiply.accumulate(x),
}
# What is a view of the argument, or the argument itself.
VIEWS = {"asarray", "ascontiguousarray", "atleast_1d", "imag", "real", "squeeze"}


def arrays():
    """Draw a shape, a dtype and a layout, and return NumPy's array."""

    def make(shape, dtype, layout, seed):
        rng = np.random.default_rng(seed)
        found = rng.integers(-3, 4, size=[2 * n for n in shape]) * 0.5
        with np.errstate(all="ignore"):
            found = np.asarray(found).astype(dtype)
        if layout == "transposed":
            return np.asarray(found[tuple(slice(n) for n in shape)]).T
        step = STEPS[layout]
        cuts = [slice(None, n * step if step > 0 else -n - 1, step) for n in shape]
        return np.asarray(found[tuple(cuts)])

    return st.builds(
        make,
        st.sampled_from(SHAPES),
        st.sampled_from(TYPES),
        st.sampled_from(LAYOUTS),
        st.integers(0, 9),
    )


@examples(400)
@given(a=arrays(), b=arrays(), same=st.booleans(), name=st.sampled_from(sorted(CALLS)))
def test_results_are_numpys(a, b, same, name):
    b = a[::-1] if same and a.ndim else a if same else b
    call = CALLS[name]
    with np.errstate(all="ignore"):
        try:
            expected = call(np, a, b)
        except (ValueError, TypeError, IndexError) as error:
            for face in (np, ndx_numpy):
                with pytest.raises(type(error)):
                    call(face, ndx.asarray(a), ndx.asarray(b))
            return
        close = {"rtol": 1e-6} if "norm" in name else {}
        for face in (np, ndx_numpy):
            found = call(face, ndx.asarray(a), ndx.asarray(b))
            assert_same(found, expected, **close)
            # Arrays without elements have steps of their own, which NumPy's order
            # depends on.
            if found.ndim > 1 and "nothing" not in name and found.size > 1:
                flags = np.asarray(found).flags, np.asarray(expected).flags
                assert flags[0].c_contiguous == flags[1].c_contiguous


def compare(found, expected):
    """Compare results of any kind."""
    if isinstance(expected, tuple) and expected and isinstance(expected[0], np.ndarray):
        for each, wanted in zip(found, expected, strict=True):
            compare(each, wanted)
    elif isinstance(expected, np.ndarray | np.generic):
        assert_same(found, expected)
    else:
        if since("count_nonzero returns NumPy's integers") or type(expected) is not int:
            assert type(found) is type(expected)
        assert found == expected


@examples(800)
@given(a=arrays(), name=st.sampled_from(sorted(OF_ONE)))
def test_functions_of_one_array(a, name):
    call = OF_ONE[name]
    expected = failure = None
    with np.errstate(all="ignore"):
        try:
            expected = call(np, a)
        except (ValueError, TypeError, IndexError) as error:
            failure = error
    x = ndx.asarray(a, copy=True)
    if failure is not None:
        with pytest.raises(type(failure)):
            call(ndx_numpy, x)
        return
    found = call(ndx_numpy, x)
    compare(found, expected)
    if isinstance(found, ndx.NDArray) and name in VIEWS and a.ndim and a.size:
        assert (
            np.shares_memory(np.asarray(found), np.asarray(x))
            == np.shares_memory(expected, a)
            or name == "ascontiguousarray"
        )
    elif isinstance(found, ndx.NDArray) and "squeeze" not in name and a.ndim and a.size:
        assert not np.shares_memory(np.asarray(found), np.asarray(x))


@examples(200)
@given(a=arrays(), b=arrays())
@example(a=np.float16([1]), b=np.float16([[-0.0]]))
@example(a=np.float32([[1]]), b=np.float32([-0.0]))
def test_dot(a, b):
    try:
        expected = np.dot(a, b)
    except ValueError:
        with pytest.raises(ValueError, match="shapes"):
            ndx.asarray(a).dot(ndx.asarray(b))
        return
    for found in (
        ndx.asarray(a).dot(ndx.asarray(b)),
        np.dot(ndx.asarray(a), ndx.asarray(b)),
        ndx_numpy.dot(ndx.asarray(a), ndx.asarray(b)),
    ):
        assert_same(found, expected)


def test_products_of_zeros_keep_their_signs():
    a, b = np.array([-0.0]), np.array([2.0])
    for x, y in [(a, b), (a[None], b), (a[None], b[None]), (a, b[None])]:
        found = ndx.asarray(x).dot(ndx.asarray(y))
        assert_same(found, x.dot(y))
        assert np.signbit(values(found)).all() == np.signbit(x.dot(y)).all()


@pytest.mark.parametrize("name", sorted(CALLS))
def test_stale_operands(name):
    with ndx.workspace("shortcuts"):
        x = ndx.ones((2, 2))
    with pytest.raises(ndx.StaleArrayError):
        CALLS[name](np, x, x)


@pytest.mark.parametrize("name", ["concatenate", "hstack", "stack", "outer"])
def test_results_lie_in_the_workspace(name):
    x = ndx.ones((3,))
    with ndx.workspace("shortcuts"):
        assert CALLS[name](np, x, x).workspace == "shortcuts"
        assert x.dot(x).workspace is None  # a number
        assert np.linalg.norm(x).workspace == "shortcuts"  # NumPy's own: an array


def test_other_operands_are_left_to_numpy():
    x = ndx.ones((2,))
    for found in (
        np.concatenate([x, np.ones(1)]),
        np.concatenate([[1.0], x]),
        np.dot(x, [[1.0], [2.0]]),
        np.dot(x, 2.0),
        np.outer(x, [1.0, 2.0]),
        np.stack((x, np.ones(2))),
        np.concatenate([x, x], out=ndx.zeros(4)),
    ):
        assert isinstance(found, ndx.NDArray)
    with pytest.raises(ValueError, match="at least one array"):
        ndx_numpy.concatenate([])

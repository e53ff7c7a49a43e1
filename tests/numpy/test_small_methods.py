"""Methods that compute small arrays without NumPy's allocator, against NumPy's."""

import numpy as np
import pytest
from helpers.compare import assert_same, values
from helpers.examples import examples
from helpers.small_arrays import arrays
from hypothesis import given
from hypothesis import strategies as st

import ndx

CALLS = {
    "argsort": lambda x: x.argsort(kind="stable"),
    "astype": lambda x: x.astype(np.float32),
    "diagonal": lambda x: x.diagonal(),
    "ravel": lambda x: x.ravel(),
    "round": lambda x: x.round(2),
    "round to 0": lambda x: x.round(),
    "searchsorted": lambda x: x.searchsorted(x),
    "trace": lambda x: x.trace(),
    "transposed": lambda x: x.T.ravel(),
}
SHAPES = [(), (0,), (1,), (5,), (2, 3), (3, 3), (1, 4), (0, 3), (2, 3, 2)]


@examples(300)
@given(a=arrays(SHAPES), call=st.sampled_from(sorted(CALLS)))
def test_results_are_numpys(a, call):
    call = CALLS[call]
    with np.errstate(all="ignore"):
        try:
            expected = call(a)
        except (ValueError, TypeError, np.exceptions.ComplexWarning) as error:
            with pytest.raises(type(error)):
                call(ndx.asarray(a))
            return
        found = call(ndx.asarray(a))
    assert_same(found, expected)


@examples(100)
@given(a=arrays(SHAPES), axis=st.integers(-3, 3))
def test_sorting_in_place(a, axis):
    x = ndx.asarray(a, copy=True)
    view, copy = x[..., ::-1] if x.ndim else x, a.copy()
    wanted = copy[..., ::-1] if a.ndim else copy
    try:
        wanted.sort(axis=axis)
    except ValueError as error:
        with pytest.raises(type(error)):
            view.sort(axis=axis)
        return
    assert view.sort(axis=axis) is None
    assert_same(x, copy)


@examples(100)
@given(a=arrays(SHAPES))
def test_bytes(a):
    assert ndx.asarray(a).tobytes() == a.tobytes()
    assert ndx.asarray(a).T.tobytes() == a.T.tobytes()


def bits(x):
    return np.ascontiguousarray(values(x)).tobytes()


@examples(200)
@given(
    m=st.integers(0, 6),
    k=st.integers(0, 70),
    n=st.integers(0, 6),
    dims=st.sampled_from([(1, 1), (1, 2), (2, 1), (2, 2)]),
    dtype=st.sampled_from(["float32", "float64", "complex64", "complex128", "int64"]),
)
def test_dot_to_the_last_bit(m, k, n, dims, dtype):
    rng = np.random.default_rng(m + 10 * k + 1000 * n)
    a = rng.normal(size=(m, k)[2 - dims[0] :]).astype(dtype)
    b = rng.normal(size=(k, n)[: dims[1]]).astype(dtype)
    assert bits(ndx.asarray(a).dot(ndx.asarray(b))) == bits(a.dot(b))


def test_a_diagonal_is_read_only():
    x = ndx.zeros((3, 3))
    y = x.diagonal()
    with pytest.raises(ValueError, match="read-only"):
        y[0] = 1.0
    x[1, 1] = 2.0
    assert y.tolist() == [0.0, 2.0, 0.0]


@pytest.mark.parametrize("call", [*CALLS.values(), lambda x: x.tobytes()])
def test_stale_operands(call):
    with ndx.workspace("small methods"):
        x = ndx.ones((2, 2))
    with pytest.raises(ndx.StaleArrayError):
        call(x)


CUTS = [np.s_[::2], np.s_[::-1], np.s_[:, :1], np.s_[:, 1], np.s_[1], np.s_[:1, ::2]]


@pytest.mark.parametrize("cut", CUTS, ids=str)
@pytest.mark.parametrize("ravel", [np.ravel, ndx.NDArray.ravel, ndx.numpy.ravel])
def test_ravel_is_contiguous(cut, ravel):
    a = np.arange(12.0).reshape(4, 3)
    x = ndx.asarray(a.copy())
    found, expected = ravel(x[cut]), np.ravel(a[cut])
    assert_same(found, expected)
    assert found.strides == expected.strides
    assert np.shares_memory(found, x) == np.shares_memory(expected, a)

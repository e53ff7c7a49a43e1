"""Functions that join, repeat and move elements, and creation by number: as NumPy's."""

import numpy as np
import pytest
from helpers import dtypes
from helpers.compare import assert_same
from hypothesis import strategies as st

import ndx


@pytest.mark.parametrize("second", dtypes.ALL)
@pytest.mark.parametrize("first", dtypes.ALL)
def test_joining_promotes(first, second):
    pieces = [ndx.ones(2, dtype=first), ndx.zeros(1, dtype=second)]
    expected = np.result_type(first, second)
    assert ndx.concat(pieces).dtype == expected
    assert ndx.stack([pieces[0][:1], pieces[1]]).dtype == expected


@pytest.mark.parametrize("dtype", dtypes.INTEGERS)
def test_repeat_takes_counts_of_all_integers(dtype):
    counts = np.array([2, 0, 1], dtype)
    found = ndx.repeat(ndx.asarray(A), ndx.asarray(counts), axis=1)
    assert_same(found, np.repeat(A, [2, 0, 1], axis=1))


@pytest.mark.parametrize("shape", [(30_000,), (200, 150), (3, 5000), (20, 30, 40)])
@pytest.mark.parametrize(
    "dtype", ["uint8", "int16", "float32", "float64", "complex128"]
)
def test_repeat_of_large_arrays(dtype, shape):
    a = (np.arange(np.prod(shape)) % 251).astype(dtype).reshape(shape)
    for b in (a, a.T):
        x = ndx.asarray(b)
        for axis in (None, *range(b.ndim)):
            for count in (1, 2, 3, 30):
                found = ndx.repeat(x, count, axis=axis)
                assert_same(found, np.repeat(b, count, axis))
            counts = np.arange(b.size if axis is None else b.shape[axis]) % 3
            found = ndx.repeat(x, ndx.asarray(counts), axis=axis)
            assert_same(found, np.repeat(b, counts, axis))


@pytest.mark.parametrize("count", [2**59, 2**60, 2**61 + 1, 2**62, 2**63 - 1, -(2**61)])
def test_repeat_beyond_the_address_space(count):
    """NumPy's own function wraps the product of 8 elements and the count."""
    x = ndx.ones((2, 4))
    of_the_standard = [count, np.int64(count), ndx.asarray([count])]
    for repeats in (*of_the_standard, [count], np.array([count]), [count] * 8):
        for function in (np.repeat, ndx.NDArray.repeat):
            with pytest.raises(ValueError, match="address space|negative"):
                function(x, repeats)
    for repeats in of_the_standard:
        with pytest.raises(ValueError, match="address space|negative"):
            ndx.repeat(x, repeats)


def test_repeat_and_tile_make_new_arrays():
    x = ndx.ones(1)
    for result in (ndx.repeat(x, 1), ndx.repeat(x, 3), ndx.tile(x, (1,))):
        result[...] = 5.0
    assert float(x[0]) == 1.0


STEPS = st.integers(-20, 20) | st.sampled_from([0.5, -2.5, 0.1, 1e-3, 7.25])


def test_arange_of_the_largest_integers():
    assert ndx.arange(2**63 - 2, 2**63, dtype="uint64").tolist() == [
        2**63 - 2,
        2**63 - 1,
    ]
    assert ndx.arange(2**64 - 2, 2**64, dtype="uint64").tolist() == [
        2**64 - 2,
        2**64 - 1,
    ]
    assert ndx.arange(-(2**63), 1 - 2**63).tolist() == [-(2**63)]
    down = ndx.arange(2**63, -1, -(2**63), dtype="uint64")
    assert down.tolist() == [2**63, 0]
    assert ndx.arange(np.int8(3)).dtype == "int64"


X = ndx.ones((2, 3))
VIRTUAL = [ndx.broadcast_to(ndx.ones(1, dtype="int8"), (2**62,))] * 4


@pytest.mark.parametrize(
    ("use", "error", "message"),
    [
        (lambda: ndx.concat([]), ValueError, "one array or more"),
        (lambda: ndx.concat([X, ndx.ones((2, 2))]), ValueError, "differ in more than"),
        (lambda: ndx.concat([X, ndx.ones(2)]), ValueError, "differ in more than"),
        (lambda: ndx.concat([X, ndx.ones(2)]), ValueError, "in the number of axes"),
        (lambda: ndx.concat([X], axis=2), ValueError, "out of range"),
        (lambda: ndx.concat([ndx.ones(())]), ValueError, "no axes"),
        (lambda: ndx.concat([X, [1.0]]), TypeError, "takes an array"),
        (lambda: ndx.stack([]), ValueError, "one array or more"),
        (lambda: ndx.stack([X, ndx.ones(3)]), ValueError, "the shapes differ"),
        (lambda: ndx.stack([X], axis=3), ValueError, "out of range"),
        (lambda: ndx.repeat(X, -1), ValueError, "negative"),
        (lambda: ndx.repeat(X, 1.5), TypeError, "takes an array"),
        (lambda: ndx.repeat(X, 2, axis=2), ValueError, "out of range"),
        (lambda: ndx.repeat(X, 2**62), ValueError, "with 8 bytes an element is beyond"),
        (lambda: ndx.tile(X, (-1,)), ValueError, "negative"),
        (lambda: ndx.tile(X, (1.5,)), TypeError, "repetitions must be an int"),
        (lambda: ndx.tile(X, 2**62), ValueError, "with 8 bytes an element is beyond"),
        (lambda: ndx.roll(X, (1, 2), axis=0), ValueError, "2 shifts for 1 axes"),
        (lambda: ndx.roll(X, 1, axis=2), ValueError, "out of range"),
        (lambda: ndx.roll(X, 1.5), TypeError, "shift must be an int"),
        (lambda: ndx.roll(X, 1, axis=1.5), TypeError, "axis must be an int"),
        (lambda: ndx.expand_dims(X, "a"), TypeError, "axis must be an int"),
        (lambda: ndx.diff(X, n=-1), ValueError, "negative"),
        (lambda: ndx.diff(X, n=1.5), TypeError, "n must be an int"),
        (lambda: ndx.diff(X, axis=2), ValueError, "out of range"),
        (lambda: ndx.diff(ndx.ones(())), ValueError, "no axes"),
        (lambda: ndx.arange(0, 1, 0), ValueError, "step must not be 0"),
        (lambda: ndx.arange(float("inf")), ValueError, "beyond the address space"),
        (lambda: ndx.arange(float("nan")), ValueError, "beyond the address space"),
        (lambda: ndx.arange(10**30), ValueError, "beyond the address space"),
        (lambda: ndx.arange(1j), TypeError, "not complex"),
        (lambda: ndx.linspace(0.0, 1.0, -1), ValueError, "negative"),
        (lambda: ndx.linspace(0, 1, 2**70), ValueError, "beyond the address space"),
        (lambda: ndx.linspace("a", 3, 5), TypeError, "ints and floats.*not str"),
        (lambda: ndx.linspace(0, None, 5), TypeError, "ints and floats.*not NoneType"),
        (lambda: ndx.linspace(None, 3, 5), TypeError, "ints and floats.*not NoneType"),
        (lambda: ndx.tril(X, k="a"), TypeError, "k must be an int, not str"),
        (lambda: ndx.triu(X, k=1.5), TypeError, "k must be an int, not float"),
        (
            lambda: ndx.linalg.diagonal(X, offset=None),
            TypeError,
            "offset must be an int",
        ),
        (lambda: ndx.permute_dims(X, None), TypeError, "axes must be an int or a seq"),
        (lambda: ndx.permute_dims(X, 1), ValueError, "not a permutation"),
        (lambda: ndx.concat(5), TypeError, "a sequence of arrays, not int"),
        (lambda: ndx.concat(None), TypeError, "a sequence of arrays, not NoneType"),
        (lambda: ndx.stack(None), TypeError, "a sequence of arrays, not NoneType"),
        (lambda: ndx.concat(VIRTUAL), ValueError, "together the lengths along axis 0"),
        (
            lambda: ndx.meshgrid(*[ndx.ones(1)] * 65),
            ValueError,
            "have 65 axes.*most 64",
        ),
        (lambda: ndx.meshgrid(*[X[0]] * 100), ValueError, "have 100 axes.*most 64"),
        (lambda: ndx.stack([X[(None,) * 62]]), ValueError, "have 65 axes.*most 64"),
    ],
)
def test_errors(use, error, message):
    with pytest.raises(error, match=message):
        use()


@pytest.mark.parametrize("k", [2**70, -(2**70), 2**63 - 1, -(2**63)])
def test_diagonals_beyond_all_corners(k):
    x = ndx.ones((2, 3))
    assert_same(ndx.tril(x, k=k), np.ones((2, 3)) if k > 0 else np.zeros((2, 3)))
    assert_same(ndx.triu(x, k=k), np.zeros((2, 3)) if k > 0 else np.ones((2, 3)))
    assert ndx.linalg.diagonal(x, offset=k).shape == (0,)
    assert_same(ndx.eye(2, 3, k=k), np.zeros((2, 3)))


# ---- arguments that are ints to Python ---------------------------------------


class Index:
    """Has a whole number, and is none of Python's or NumPy's."""

    def __init__(self, value):
        self.value = value

    def __index__(self):
        return self.value


A = np.arange(6).reshape(2, 3)


@pytest.mark.parametrize("make", [Index, np.int64, np.array, ndx.asarray])
def test_whole_numbers_of_all_kinds(make):
    x, one, two = ndx.asarray(A), make(1), make(2)
    assert_same(ndx.sum(x, axis=one), np.sum(A, axis=1))
    assert_same(ndx.max(x, axis=[one]), np.max(A, axis=1))
    assert_same(ndx.flip(x, axis=(one,)), np.flip(A, axis=1))
    assert_same(ndx.expand_dims(x, one), np.expand_dims(A, 1))
    assert_same(ndx.expand_dims(x, (one,)), np.expand_dims(A, 1))
    assert_same(ndx.roll(x, one, axis=one), np.roll(A, 1, axis=1))
    assert_same(ndx.roll(x, one), np.roll(A, 1))
    assert_same(ndx.repeat(x, two, axis=one), np.repeat(A, 2, axis=1))
    assert_same(ndx.tile(x, two), np.tile(A, 2))
    assert_same(ndx.moveaxis(x, one, make(0)), np.moveaxis(A, 1, 0))
    assert_same(ndx.diff(x, n=two), np.diff(A, n=2))
    assert_same(ndx.tensordot(x, x, axes=two), np.tensordot(A, A, axes=2))
    assert_same(ndx.eye(two, k=one), np.eye(2, k=1))
    assert_same(ndx.linspace(0, 1, two), np.linspace(0, 1, 2))
    assert_same(ndx.fft.fftshift(x, axes=one), np.fft.fftshift(A, axes=1))


@pytest.mark.parametrize("make", [list, np.array, ndx.asarray])
def test_sequences_of_whole_numbers(make):
    x, both = ndx.asarray(A), make([0, 1])
    assert_same(ndx.expand_dims(x, both), A[None, None])
    assert_same(ndx.roll(x, both, axis=both), np.roll(A, (0, 1), axis=(0, 1)))
    assert_same(ndx.tile(x, make([2, 1])), np.tile(A, (2, 1)))
    assert_same(ndx.moveaxis(x, both, make([1, 0])), A.T)


def test_differences_of_nothing_end():
    x = ndx.ones((2, 3))
    assert ndx.diff(x, n=10**18).shape == (2, 0)
    assert ndx.diff(x[:, :0], n=10**18).shape == (2, 0)
    with pytest.raises(TypeError, match="subtract does not take bool"):
        ndx.diff(ndx.ones(0, dtype="bool"), n=3)


def test_no_differences_add_nothing():
    x = ndx.ones(3, dtype="int8")
    assert ndx.diff(x, n=0, prepend=ndx.zeros(2), append=ndx.zeros(2)) is x


def test_many_axes():
    shape = (1,) * 40 + (2, 3)
    a, x = A.reshape(shape), ndx.reshape(ndx.asarray(A), shape)
    for name, args in (("tile", (1, 2)), ("tile", 2), ("repeat", 2), ("roll", 1)):
        assert_same(getattr(ndx, name)(x, args), getattr(np, name)(a, args))


@pytest.mark.parametrize("count", [2, 3, 4, 5, 8])
def test_lengths_that_add_up_beyond_the_address_space(count):
    """However often the sum wraps around, and whether or not it is negative then."""
    with pytest.raises(ValueError, match="together the lengths along axis 0 are bey"):
        ndx.concat(VIRTUAL[:1] * count)

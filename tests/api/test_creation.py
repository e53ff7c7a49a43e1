"""Making arrays: of sizes, of values, and over the memory of others."""

import numpy as np
import pytest
from helpers import dtypes, patterns
from helpers.buffers import FLAGS, get_buffer
from helpers.compare import assert_same
from hypothesis import given
from hypothesis import strategies as st

import ndx

MAKERS = {"empty": None, "zeros": 0, "ones": 1}


@pytest.mark.parametrize("maker", MAKERS)
@pytest.mark.parametrize("shape", [(), (3,), (2, 3), (0,), (2, 0, 3), (1,) * 10])
@pytest.mark.parametrize("dtype", [None, *dtypes.ALL])
def test_of_a_shape(maker, shape, dtype):
    x = getattr(ndx, maker)(shape, dtype=dtype)
    assert x.shape == shape
    assert x.dtype == (dtype or "float64")
    assert x.device == "cpu"
    assert np.asarray(x).flags.c_contiguous
    assert np.asarray(x).flags.writeable
    if MAKERS[maker] is not None:
        assert_same(x, np.full(shape, MAKERS[maker], dtype or "float64"))
    like = getattr(ndx, f"{maker}_like")(x)
    assert (like.shape, like.dtype) == (shape, x.dtype)


@pytest.mark.parametrize(
    "shape", [3, [3], (3,), np.int64(3), np.array([3]), (np.int8(3),)]
)
def test_ways_to_give_a_shape(shape):
    for maker in (ndx.zeros, ndx.ones, ndx.empty, lambda s: ndx.full(s, 1.0)):
        assert maker(shape).shape == (3,)


def test_shapes_given_as_our_arrays():
    assert ndx.zeros(ndx.asarray(3)).shape == (3,)
    assert ndx.zeros(ndx.asarray([2, 3])).shape == (2, 3)


@pytest.mark.parametrize(
    ("shape", "error", "match"),
    [
        (-1, ValueError, "negative"),
        ((2, -3), ValueError, r"shape \(2, -3\).*axis 1.*0 or more"),
        (2**62, ValueError, "beyond the address space"),
        ((2**40, 2**40), ValueError, "beyond the address space"),
        ((0, 2**62, 2**62), ValueError, "beyond the address space"),
        (2**70, ValueError, "beyond the address space"),
        (1.5, TypeError, "shape must be an int or a sequence of ints, not float"),
        ("3", TypeError, "."),
        (None, TypeError, "not NoneType"),
        ((1.5,), TypeError, "length of type float"),
        ((None, 3), TypeError, "length of type NoneType"),
        ((1,) * 65, ValueError, "65 axes; an array has at most 64"),
        ({"a": 1}, TypeError, "."),
    ],
)
def test_bad_shapes(shape, error, match):
    before = ndx.memory.stats()
    for maker in (ndx.zeros, ndx.ones, ndx.empty, lambda s: ndx.full(s, 1)):
        with pytest.raises(error, match=match):
            maker(shape)
    after = ndx.memory.stats()
    assert after["allocated_bytes"] == before["allocated_bytes"]


@pytest.mark.parametrize("dtype", ["O", "U3", "M8[s]", "nonsense", 3, ">f8",
                                   np.longdouble, [("a", "i4")]])  # fmt: skip
def test_bad_dtypes(dtype):
    for call in (
        lambda: ndx.zeros(3, dtype=dtype),
        lambda: ndx.asarray([1], dtype=dtype),
        lambda: ndx.asarray(np.ones(3), dtype=dtype),
        lambda: ndx.arange(3, dtype=dtype),
        lambda: ndx.empty_like(ndx.ones(3), dtype=dtype),
    ):
        with pytest.raises(TypeError, match="valid are bool, int8"):
            call()


@pytest.mark.parametrize(
    "given_as", ["float32", np.float32, np.dtype("f4"), "f4", "<f4"]
)
def test_ways_to_give_a_dtype(given_as):
    x = ndx.zeros(3, dtype=given_as)
    assert x.dtype is ndx.float32
    assert isinstance(x.dtype, np.dtype)


def test_defaults_are_of_64_bits():
    assert ndx.zeros(1).dtype == ndx.asarray(1.0).dtype == ndx.float64
    for x in (ndx.asarray(1), ndx.arange(3), ndx.full(1, 1)):
        assert x.dtype == "int64"
    assert ndx.asarray(1j).dtype == ndx.full(1, 1j).dtype == ndx.complex128
    assert ndx.asarray(True).dtype == ndx.full(1, True).dtype == ndx.bool
    assert ndx.zeros(1, dtype=int).dtype == ndx.int64
    assert ndx.zeros(1, dtype=bool).dtype == ndx.bool


@pytest.mark.parametrize("device", ["gpu", "cuda:", 0, ""])
def test_bad_devices(device):
    for call in (
        lambda: ndx.zeros(3, device=device),
        lambda: ndx.asarray([1], device=device),
        lambda: ndx.arange(3, device=device),
        lambda: ndx.ones(3).to_device(device),
    ):
        with pytest.raises(ValueError, match=r"no device.*'cpu'"):
            call()


def test_good_devices():
    x = ndx.ones(3, device="cpu")
    assert ndx.asarray(x, device=x.device) is x
    assert x.to_device("cpu") is x
    assert {x.device: 1}["cpu"] == 1
    assert repr(x.device) == "Device('cpu')"


# ---- full --------------------------------------------------------------------


def test_full():
    assert_same(ndx.full((2, 2), 3), np.full((2, 2), 3))
    assert_same(ndx.full(2, 3, dtype="float32"), np.full(2, 3, "float32"))
    assert_same(ndx.full(2, ndx.asarray(2.5)), np.full(2, 2.5))
    assert_same(ndx.full(2, np.float32(2.5)), np.full(2, 2.5, "float32"))
    assert_same(ndx.full(2, ndx.asarray(3, dtype="int8")), np.full(2, 3, "int8"))
    assert_same(ndx.full_like(ndx.ones(2, dtype="int8"), 7), np.full(2, 7, "int8"))
    with pytest.raises(OverflowError, match="int8"):
        ndx.full(2, 300, dtype="int8")
    with pytest.raises(OverflowError):
        ndx.full(2, 2**63)
    assert ndx.full(2, 2**63, dtype="uint64").tolist() == [2**63] * 2
    for value, dtype in ((1j, "float64"), (1.5, "int64"), ("a", None), (None, None)):
        with pytest.raises(TypeError):
            ndx.full(2, value, dtype=dtype)
    with pytest.raises(TypeError):
        ndx.full(2, ndx.ones(2))


def test_floats_are_cut_where_integers_are_asked_for():
    """`asarray` is told to cast; `full` is told a value that there is not."""
    for obj in (1.7, [1.7], np.array([1.7]), np.float64(1.7), ndx.asarray([1.7])):
        found = ndx.asarray(obj, dtype="int64")
        assert_same(found, np.asarray(np.asarray(obj), dtype="int64"))
    assert_same(ndx.asarray(-1.7, dtype="int8"), np.array(-1, "int8"))
    with pytest.raises(TypeError, match="no place"):
        ndx.full(1, 1.5, dtype="int8")
    assert ndx.asarray(1.5, dtype="bool").item() is True
    assert ndx.asarray(2j, dtype="bool").item() is ndx.full((), 2j, dtype="bool").item()
    for obj in (np.nan, [np.nan]):
        with pytest.raises(ValueError, match="NaN"):
            ndx.asarray(obj, dtype="int64")
    for obj in (np.inf, [np.inf]):
        with pytest.raises(OverflowError, match="infinity"):
            ndx.asarray(obj, dtype="int64")
    with pytest.raises(OverflowError):
        ndx.asarray(300.5, dtype="int8")


def test_likes_keep_the_order_in_memory():
    x = ndx.asarray(np.ones((2, 3, 4)).transpose(2, 0, 1))
    for like in (ndx.empty_like(x), ndx.zeros_like(x), ndx.full_like(x, 2)):
        assert like.strides == x.strides
    assert ndx.zeros_like(x, dtype="int8").dtype == "int8"
    with pytest.raises(TypeError, match="asarray"):
        ndx.zeros_like([1, 2])


# ---- asarray: whose memory ---------------------------------------------------


def shares(x, a):
    return np.shares_memory(np.asarray(x), np.asarray(a))


@given(st.data(), st.sampled_from(dtypes.ALL), st.sampled_from([None, False, True]))
def test_of_numpys_arrays(data, dtype, copy):
    a = data.draw(patterns.arrays(dtype, data.draw(patterns.shapes())))
    x = ndx.asarray(a, copy=copy)
    assert_same(x, a)
    if a.size:
        assert shares(x, a) == (not copy)
    if copy:
        assert x.backend is ndx.current_backend()
        assert np.asarray(x).flags.writeable
    else:
        assert x.strides == a.strides or not a.size
        assert x.backend is None
        assert np.asarray(x).flags.writeable == a.flags.writeable


def unfit():
    records = np.zeros(3, dtype=[("a", "i1"), ("b", "f8"), ("c", "i4")])
    records["b"] = [1, 2, 3]
    bytes_ = np.zeros(25, np.uint8)
    shifted = bytes_[1:].view(np.float64)
    shifted[:] = [1, 2, 3]
    return {
        "swapped": np.array([1, 2, 3], ">f8"),
        "misaligned field": records["b"],
        "misaligned": shifted,
        "swapped ints": np.array([1, 2, 3], ">i2"),
        "swapped complex": np.array([1, 2, 3], ">c16"),
    }


@pytest.mark.parametrize("kind", unfit())
def test_memory_that_cannot_be_shared(kind):
    a = unfit()[kind]
    for copy in (None, True):
        x = ndx.asarray(a, copy=copy)
        assert_same(x, a.astype(a.dtype.newbyteorder("=")))
        assert not shares(x, a)
        assert x.backend is ndx.current_backend()
    with pytest.raises(ValueError, match="copy=False"):
        ndx.asarray(a, copy=False)
    assert_same(ndx.asarray(a, dtype="float32"), a.astype("float32").real)\
        if a.dtype.kind != "c" else None  # fmt: skip


def test_of_our_arrays():
    x = ndx.ones(3)
    assert ndx.asarray(x) is x
    assert ndx.asarray(x, copy=False) is x
    assert ndx.asarray(x, dtype="float64") is x
    y = ndx.asarray(x, copy=True)
    assert not shares(x, y)
    assert_same(ndx.asarray(x, dtype="int8"), np.ones(3, "int8"))
    with pytest.raises(ValueError, match=r"copy=False.*dtype is float64, not int8"):
        ndx.asarray(x, dtype="int8", copy=False)
    with pytest.raises(TypeError, match="imaginary"):
        ndx.asarray(ndx.ones(3, dtype="complex64"), dtype="float32")
    assert_same(ndx.asarray(ndx.full(2, 1j), dtype="bool"), np.array([True, True]))


def test_a_read_only_array_is_honoured():
    a = np.ones(3)
    a.flags.writeable = False
    x = ndx.asarray(a)
    for write in (
        lambda: x.__setitem__(0, 2.0),
        lambda: x.__iadd__(1.0),
        lambda: x[1:].__setitem__(..., 2.0),
        lambda: x[None].__imul__(2.0),
        lambda: ndx.exp(ndx.ones(3), out=x),
    ):
        with pytest.raises(ValueError, match="read-only"):
            write()
    y = ndx.asarray(x, copy=True)
    y[0] = 2.0
    assert a.tolist() == [1.0] * 3


# ---- asarray: values ---------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "dtype"),
    [
        ([1, 2], "int64"),
        ([1, 2.5], "float64"),
        ([1, 2j], "complex128"),
        ([True, False], "bool"),
        ([True, 2], "int64"),
        ([[1, 2], [3, 4]], "int64"),
        ([(1, 2), [3.0, 4]], "float64"),
        ((1, 2), "int64"),
        ([], "float64"),
        ([[], []], "float64"),
        (range(3), "int64"),
        ([np.float32(1), np.float32(2)], "float32"),
        ([np.arange(2), np.arange(2)], "int64"),
        (5, "int64"),
        (5.0, "float64"),
        (True, "bool"),
        (np.float32(5), "float32"),
        (np.array(5), "int64"),
    ],
)
def test_of_values(values, dtype):
    x = ndx.asarray(values)
    assert_same(x, np.array(values, dtype=dtype))
    assert_same(ndx.asarray(values, copy=True), np.array(values, dtype=dtype))
    with (
        pytest.raises(ValueError, match="copy=False")
        if not isinstance(values, np.ndarray)
        else pytest.MonkeyPatch.context()
    ):
        ndx.asarray(values, copy=False)


def test_our_arrays_in_lists():
    x = ndx.asarray([1.0, 2.0])
    assert_same(ndx.asarray([x, x + 1]), np.array([[1.0, 2.0], [2.0, 3.0]]))
    assert_same(ndx.asarray([x[0], 5, x[1]]), np.array([1.0, 5.0, 2.0]))
    assert_same(ndx.asarray([[x[0]], [np.int8(3)]]), np.array([[1.0], [3.0]]))
    assert_same(ndx.asarray((ndx.asarray(1), ndx.asarray(2))), np.array([1, 2]))


@pytest.mark.parametrize("dtype", dtypes.INTEGERS)
def test_numbers_in_lists_must_fit(dtype):
    info = np.iinfo(dtype)
    ends = [info.min, info.max]
    assert ndx.asarray(ends, dtype=dtype).tolist() == ends
    for value in (info.min - 1, info.max + 1, 10**30):
        for values in (value, [value], [[0], [value]], (1, value)):
            with pytest.raises(OverflowError):
                ndx.asarray(values, dtype=dtype)


@pytest.mark.parametrize(
    ("values", "error"),
    [
        ([2**70], OverflowError),
        (2**63, OverflowError),
        ([[1, 2], [3]], ValueError),
        ([1, [2]], ValueError),
        (["a"], TypeError),
        ("abc", TypeError),
        (b"abc", TypeError),
        (None, TypeError),
        ([None], TypeError),
        ([1, None], TypeError),
        ({1, 2}, TypeError),
        ({"a": 1}, TypeError),
        (object(), TypeError),
        ([object()], TypeError),
        (np.array([1], "M8[s]"), TypeError),
        (np.array(["a"]), TypeError),
        (np.array([None]), TypeError),
    ],
)
def test_bad_values(values, error):
    for dtype in (None, "int64"):
        with pytest.raises(error):
            ndx.asarray(values, dtype=dtype)


@pytest.mark.parametrize("values", [[1 + 2j], 1j, (1j, 2), [[1, 2j]]])
@pytest.mark.parametrize("dtype", ["float64", "int64"])
def test_complex_values_need_a_complex_dtype(values, dtype):
    with pytest.raises(TypeError):
        ndx.asarray(values, dtype=dtype)


# ---- ranges ------------------------------------------------------------------


def test_bad_ranges():
    with pytest.raises(ValueError, match="step"):
        ndx.arange(1, 5, 0)
    with pytest.raises(TypeError, match="arange takes"):
        ndx.arange(1j)
    with pytest.raises(TypeError):
        ndx.arange("a")
    with pytest.raises(ValueError, match="num=-1 is negative"):
        ndx.linspace(0, 1, -1)


def test_sequences_nested_without_end():
    itself = []
    itself.append(itself)
    with pytest.raises(ValueError, match="nested more than 64 deep"):
        ndx.asarray(itself)


@given(
    st.lists(st.integers(0, 3), min_size=3, max_size=3),
    st.permutations(range(3)),
    st.sampled_from([1, 2, -1]),
    st.sampled_from(["C", "F", None]),
    st.sampled_from([None, True, False]),
    st.sampled_from([None, "int16", "float64"]),
)
def test_order(shape, axes, step, order, copy, dtype):
    """Elements lie as asked; what lies so already is shared, else copied."""
    a = np.arange(27, dtype="int16").reshape(3, 3, 3)
    a = a[tuple(slice(length) for length in shape)].transpose(axes)[::step]
    x = ndx.asarray(a)
    flag = {"C": "c_contiguous", "F": "f_contiguous", None: "aligned"}[order]
    changes = dtype == "float64" or not getattr(a.flags, flag)
    for obj in (a, x):
        if copy is False and changes:
            with pytest.raises(ValueError, match="copy=False, but"):
                ndx.asarray(obj, dtype=dtype, copy=copy, order=order)
            continue
        found = ndx.asarray(obj, dtype=dtype, copy=copy, order=order)
        assert_same(found, np.asarray(a, dtype=dtype))
        assert getattr(np.asarray(found).flags, flag)
        shared = np.shares_memory(np.asarray(found), a)
        if a.size:
            assert shared == (not copy and not changes)


@pytest.mark.parametrize("order", ["C", "F"])
def test_order_of_what_is_no_array(order):
    swapped = np.arange(6, dtype=">i4").reshape(2, 3).T
    for obj in ([[1, 2], [3, 4]], 3.0, [], swapped, bytearray(5)):
        found = np.asarray(ndx.asarray(obj, order=order))
        assert found.flags.c_contiguous if order == "C" else found.flags.f_contiguous
        assert np.array_equal(found, np.asarray(obj))


@pytest.mark.parametrize("order", ["K", "A", "c", "", 1, b"C"])
def test_bad_orders(order):
    with pytest.raises(ValueError, match="valid are 'C'"):
        ndx.asarray(ndx.ones(3), order=order)
    with pytest.raises(ValueError, match="valid are 'C'"):
        ndx.asarray([1], order=order)


def test_the_advice_about_contiguous_memory_helps():
    x = ndx.ones((4, 5)).T
    for flags, order, other in (("c", "C", x), ("simple", "C", x), ("f", "F", x.T)):
        error = get_buffer(other, FLAGS[flags])
        assert isinstance(error, BufferError)
        assert f"ndx.asarray(x, order='{order}')" in str(error)
        found = ndx.asarray(other, order=order)
        assert not isinstance(get_buffer(found, FLAGS[flags]), BufferError)
        assert np.array_equal(np.asarray(found), np.asarray(other))


@pytest.mark.parametrize(
    "args",
    [
        (5,), (0,), (-3,), (1, 7, 2), (7, 1, -2), (7, 1, 2), (0, 10, 3), (5, 0, -1),
        (5, 0, -2), (-5, 5, 3), (-1, -10, -3), (0.0, 5), (0, 5, 0.5), (5.0,),
        (1, 0, 0.1), (0, 1, 0.1), (1.5, -3, -0.7), (2**40, 2**40 + 5), (True,),
        (2**50, 2**50 + 3), (2**62, 2**62 + 3), (2.0**60, 2.0**60 + 2048, 1024),
    ],
)  # fmt: skip
def test_ranges(args):
    found, expected = ndx.arange(*args), np.arange(*args)
    assert found.dtype == expected.dtype
    np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-15)
    assert found.shape == expected.shape


@pytest.mark.parametrize("rows", [0, 1, 2, 5, 60])
@pytest.mark.parametrize("columns", [0, 1, 3, 5, 70])
def test_diagonals_of_all_matrices(rows, columns):
    for k in (-70, -5, -2, -1, 0, 1, 2, 4, 70):
        found = np.asarray(ndx.eye(rows, columns, k=k))
        np.testing.assert_array_equal(found, np.eye(rows, columns, k))

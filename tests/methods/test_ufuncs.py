"""Arrays of NumPy and ours in one expression: the same in either order, and ours."""

import operator

import numpy as np
import pytest
from helpers import dtypes, patterns
from helpers.compare import assert_same
from hypothesis import given
from hypothesis import strategies as st

import ndx

OPERATORS = [
    "add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul",
    "eq", "ne", "lt", "le", "gt", "ge",
]  # fmt: skip


@pytest.mark.parametrize("name", OPERATORS)
@pytest.mark.parametrize("dtype", ["float64", "float32", "int16", "uint8"])
def test_the_same_in_either_order(name, dtype):
    a = np.arange(1, 10).reshape(3, 3).astype(dtype)
    other = "float64" if dtype[0] == "f" else dtype
    b = np.arange(9, 0, -1).reshape(3, 3).astype(other)
    f = getattr(operator, name)
    with np.errstate(all="ignore"):
        expected = f(a, b), f(b, a)
    for x, y in (
        (ndx.asarray(a), b),
        (a, ndx.asarray(b)),
        (ndx.asarray(a), ndx.asarray(b)),
    ):
        assert_same(f(x, y), expected[0], rtol=1e-6)
        assert_same(f(y, x), expected[1], rtol=1e-6)


@pytest.mark.parametrize("dtype", dtypes.NUMERIC)
@pytest.mark.parametrize("other", dtypes.NUMERIC)
def test_numpy_scalars_are_arrays_of_their_dtype(dtype, other):
    x = ndx.ones(2, dtype=dtype)
    scalar = np.dtype(other).type(2)
    wanted = np.result_type(dtype, other)
    for result in (x + scalar, scalar + x, x * scalar, scalar * x):
        assert isinstance(result, ndx.NDArray)
        assert result.dtype == wanted
    assert_same(x + scalar, np.full(2, 3, wanted))
    assert_same(scalar - x, np.full(2, 1, wanted))
    compared = x < scalar if "c" not in dtype + other else x != scalar
    assert compared.tolist() == [True] * 2


def test_np_float64_is_no_python_float():
    x = ndx.ones(2, dtype="float32")
    assert (x + 1.0).dtype == np.float32
    assert (x + np.float64(1.0)).dtype == np.float64
    assert (np.float64(1.0) + x).dtype == np.float64
    assert (x + np.float32(1.0)).dtype == np.float32
    assert (x + np.complex128(1.0)).dtype == np.complex128
    with pytest.raises(OverflowError):
        ndx.ones(2, dtype="int8") + 200
    assert (ndx.ones(2, dtype="int8") + np.int64(200)).tolist() == [201, 201]


def test_numpy_bools():
    x = ndx.asarray([True, False])
    assert (x & np.True_).tolist() == [True, False]
    assert (np.False_ | x).tolist() == [True, False]


def test_swapped_and_misaligned_operands():
    swapped = np.arange(3, dtype=">f8")
    records = np.zeros(3, dtype=[("a", "i1"), ("b", "f8")])
    records["b"] = np.arange(3)
    x = ndx.ones(3)
    for y in (swapped, records["b"]):
        for result in (x + y, y + x, np.add(x, y), np.add(y, x)):
            assert_same(result, np.arange(1.0, 4.0))


@pytest.mark.parametrize(
    "other",
    [np.array(["a", "b"]), np.array([None, 1]), np.array([1, 2], "M8[s]")],
)
def test_operators_with_what_cannot_be_added(other):
    with pytest.raises(TypeError):
        ndx.ones(2) + other
    with pytest.raises(TypeError, match="not a dtype of the array API"):
        ndx.add(ndx.ones(2), other)


def test_operators_take_other_dtypes_of_numpy():
    dtype = np.longdouble
    for found in (
        np.ones(2, dtype) + ndx.ones(2),
        ndx.ones(2) + np.ones(2, dtype),
        ndx.ones(2) + dtype(1),
    ):
        assert found.dtype == np.result_type(dtype, float)
        assert found.tolist() == [2, 2]
    with pytest.raises(TypeError, match="not a dtype of the array API"):
        ndx.add(ndx.ones(2), np.ones(2, dtype))


def test_ufuncs_of_other_dtypes_are_numpys():
    x = ndx.ones(2)
    assert type(np.add(x, np.ones(2, np.float16))) is ndx.NDArray
    assert type(np.add(x, np.ones(2, np.longdouble))) is np.ndarray
    assert np.add(x, np.array([1, 2], object)).dtype == object
    for other in (np.array(["a", "b"]), np.array([1, 2], "M8[s]")):
        with pytest.raises(TypeError):
            np.add(x, other)


# ---- ufuncs ------------------------------------------------------------------


@given(st.data(), st.sampled_from(["exp", "sqrt", "negative", "absolute", "isfinite"]))
def test_calls_of_ufuncs(data, name):
    a = data.draw(patterns.arrays("float64", data.draw(patterns.shapes())))
    with np.errstate(all="ignore"):
        expected = getattr(np, name)(a)
    assert_same(getattr(np, name)(ndx.asarray(a)), expected, rtol=1e-15)


def test_ufuncs_that_ndx_has_and_has_not():
    x = ndx.asarray([1.0, 8.0, 27.0])
    a = np.array([1.0, 8.0, 27.0])
    for name in ("cbrt", "exp2", "degrees", "spacing", "exp", "log", "sign"):
        assert_same(getattr(np, name)(x), getattr(np, name)(a))
    for name in ("fmax", "heaviside", "gcd", "add", "hypot", "logaddexp2"):
        b = a.astype(np.int64) if name == "gcd" else a
        f = getattr(np, name)
        assert_same(f(ndx.asarray(b), b), f(b, b))
        assert_same(f(b, ndx.asarray(b)), f(b, b))
    assert_same(np.matmul(x, a), np.matmul(a, a))
    assert_same(np.vecdot(x, a), np.vecdot(a, a))


def test_ufuncs_with_several_results():
    x = ndx.asarray([1.5, -2.25])
    a = np.array([1.5, -2.25])
    for f in (np.modf, np.frexp):
        for found, expected in zip(f(x), f(a), strict=True):
            assert_same(found, expected)
    for found, expected in zip(np.divmod(x, 2.0), np.divmod(a, 2.0), strict=True):
        assert_same(found, expected)
    for found, expected in zip(divmod(a, x), divmod(a, a), strict=True):
        assert_same(found, expected)


def test_keywords_of_ufuncs():
    x, a = ndx.asarray([1.0, 4.0]), np.array([1.0, 4.0])
    assert_same(np.sqrt(x, dtype="float32"), np.sqrt(a, dtype="float32"))
    out = ndx.zeros(2)
    mask = ndx.asarray([True, False])
    assert np.add(x, 1, where=mask, out=out) is out
    assert out.tolist() == [2.0, 0.0]
    assert_same(np.add(x, 1, casting="no"), a + 1)
    with pytest.raises(TypeError):
        np.add(x, 1, nonsense=2)


def test_out_is_ours():
    x = ndx.asarray([1.0, 4.0])
    out = ndx.zeros(2)
    assert np.sqrt(x, out=out) is out
    assert out.tolist() == [1.0, 2.0]
    assert np.cbrt(np.array([8.0, 27.0]), out=out) is out
    assert_same(out, np.array([2.0, 3.0]), rtol=1e-15)  # the C library rounds it
    assert np.matmul(ndx.eye(2), x, out=out) is out
    first, second = ndx.zeros(2), ndx.zeros(2)
    found = np.modf(np.array([1.5, 2.5]), out=(first, second))
    assert found[0] is first
    assert found[1] is second
    assert second.tolist() == [1.0, 2.0]


def test_out_is_numpys():
    x = ndx.asarray([1.0, 4.0])
    out = np.zeros(2)
    assert np.sqrt(x, out=out) is out
    assert np.add(out, x, out=out) is out
    assert out.tolist() == [2.0, 6.0]
    out += x
    assert type(out) is np.ndarray
    assert out.tolist() == [3.0, 10.0]
    out[:] = x
    out[0] = x[1]
    assert out.tolist() == [4.0, 4.0]
    matrix = np.eye(2)
    matrix @= ndx.asarray([[1.0, 2.0], [3.0, 4.0]])
    assert matrix.tolist() == [[1.0, 2.0], [3.0, 4.0]]


def test_in_place_with_numpy():
    x = ndx.asarray([1.0, 4.0])
    kept = x
    x += np.array([1.0, 1.0])
    x *= np.float64(2)
    x @= np.eye(2)
    assert x is kept
    assert x.tolist() == [4.0, 10.0]


def test_a_read_only_out():
    a = np.zeros(2)
    a.flags.writeable = False
    for f, args in ((np.sqrt, 1), (np.cbrt, 1), (np.add, 2)):
        with pytest.raises(ValueError, match="read-only"):
            f(*[ndx.ones(2)] * args, out=ndx.asarray(a))


@pytest.mark.parametrize(
    "call",
    [
        lambda x: np.add.reduce(x),
        lambda x: np.add.reduce(x, keepdims=True, initial=2.0, where=x > 0),
        lambda x: np.add.accumulate(x),
        lambda x: np.add.outer(x, x),
        lambda x: np.add.reduceat(x, [0, 1]),
        lambda x: np.multiply.outer(np.ones(2), x),
        lambda x: np.add(x, 1, where=x > 1, out=x * 0),
        lambda x: np.add(x, 1, dtype="f4", casting="same_kind"),
        lambda x: np.matmul(x[None], x[:, None], axes=[(0, 1), (0, 1), (0, 1)]),
        lambda x: np.divmod(x, 2)[1],
        lambda x: np.frexp(x)[0],
    ],
)
def test_methods_and_keywords_of_ufuncs(call):
    n = np.array([1.0, 2.0, 3.0])
    with ndx.use("host") as backend:
        found = call(ndx.asarray(n, copy=True))
        assert isinstance(found, ndx.NDArray)
    assert_same(found, np.asarray(call(n)), rtol=1e-15)
    if type(found) is not ndx.NDArray:
        assert found.ndim == 0  # a number, which is nowhere
        return
    assert found.backend is backend
    with ndx.workspace("ufuncs"):
        x = ndx.asarray(n, copy=True)
        assert call(x).workspace == "ufuncs"
    with pytest.raises(ndx.StaleArrayError):
        call(x)


def test_at_works_in_place():
    x, n = ndx.zeros(3), np.zeros(3)
    for array in (x, n):
        np.add.at(array, [0, 0, 2], [1.0, 2.0, 3.0])
    assert x.tolist() == n.tolist()
    np.add.at(n, [0], x[:1])
    assert n.tolist() == [6.0, 0.0, 3.0]
    with pytest.raises(ValueError, match="read-only"):
        np.add.at(ndx.broadcast_to(ndx.ones(1), (3,)), [0], 1.0)


@pytest.mark.parametrize("first", [np.array([1.0, 2.0]), [1.0, 2.0], (1, 2)])
def test_out_is_ours_and_the_operands_are_not(first):
    out = ndx.zeros(2)
    assert np.exp(first, out=out) is out
    assert_same(out, np.exp(np.asarray(first, float)), rtol=1e-15)
    assert np.add(first, first, out=out) is out
    assert out.tolist() == [2.0, 4.0]
    assert np.matmul(np.eye(2), np.array([1.0, 2.0]), out=out) is out
    assert out.tolist() == [1.0, 2.0]
    assert np.negative(3.0, out=out[0, ...]).item() == -3.0
    assert_same(np.add(ndx.ones(2), [1.0, 2.0]), np.array([2.0, 3.0]))
    with pytest.raises(TypeError):
        np.exp("text", out=out)


class Taker:
    """An operand of another library, which takes ufuncs over."""

    def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
        return ufunc.__name__, method


def test_others_may_take_ufuncs_over():
    x = ndx.ones(3)
    assert np.add(x, Taker()) == ("add", "__call__")
    assert np.add(Taker(), x) == ("add", "__call__")
    assert np.multiply.outer(x, Taker()) == ("multiply", "outer")


def test_stale_operands_of_ufuncs():
    with ndx.workspace(size="1KiB"):
        x = ndx.ones(3)
    for call in (np.exp, np.cbrt, lambda x: np.add(np.ones(3), x), np.modf):
        with pytest.raises(ndx.StaleArrayError):
            call(x)


# ---- NumPy's functions ---------------------------------------------------------


def test_functions_of_numpy_return_ours():
    x = ndx.asarray([[3.0, 1.0], [2.0, 4.0]])
    for function in (np.linalg.inv, np.sort, np.concatenate, np.cumsum, np.ravel):
        found = function([x, x] if function is np.concatenate else x)
        assert isinstance(found, ndx.NDArray)
    assert np.allclose(x, np.array([[3.0, 1.0], [2.0, 4.0]]))
    assert np.array_equal(x, x)
    np.testing.assert_array_equal(np.stack([x, x])[0], np.asarray(x))


# ---- whose memory results are in ---------------------------------------------


def test_results_are_in_our_memory():
    with ndx.use("host", limit="1MiB") as backend:
        x = ndx.asarray(np.arange(1000.0))
        assert x.backend is None
        for result in (
            x + 1, np.ones(1000) + x, np.exp(x), np.cbrt(x), x[np.arange(500)],
            x[x > 3], np.modf(x)[0], x[None] @ np.ones(1000), np.float64(1) + x,
            np.add(x, 1, dtype="float32"), ndx.sort(x), ndx.linalg.inv(ndx.eye(30)),
        ):  # fmt: skip
            assert result.backend is backend
            assert not result.attached


def test_adopted_results_are_counted_and_freed():
    backend = ndx.backends.get("host", limit="1MiB")
    with ndx.use(backend):
        x = np.cbrt(ndx.ones(1000))
        view = x[::2]
    # (NumPy's own header lies before the data.)
    stats = backend.stats()
    assert stats["allocated_count"] == 1
    assert 8000 <= stats["allocated_bytes"] <= 8064
    del x
    assert view.tolist() == [1.0] * 500
    del view
    assert backend.stats()["allocated_bytes"] == 0


def test_numpys_own_arrays_stay_numpys():
    """The handler serves only what runs within a call of ours."""
    with ndx.use("host", limit="1MiB") as backend:
        np.cbrt(ndx.ones(100))
        before = backend.stats()["total_allocations"]
        kept = [np.ones(1000) for _ in range(10)]
        kept.append(np.linalg.inv(np.eye(10)))
        assert backend.stats()["total_allocations"] == before


def test_adopted_results_outlive_the_backends_scope():
    with ndx.use("host", limit="1MiB"):
        x = np.cbrt(ndx.full(1000, 8.0))
    ndx.zeros(1000)
    assert x.tolist() == [2.0] * 1000


def test_numpy_views_of_adopted_results():
    x = np.cbrt(ndx.full(1000, 8.0))
    view = np.asarray(x)
    del x
    np.cbrt(ndx.full(1000, 27.0))
    assert view.tolist() == [2.0] * 1000


X = ndx.ones((2, 2))


@pytest.mark.parametrize("ufunc", [np.add, np.exp, np.matmul, np.modf, np.divmod])
@pytest.mark.parametrize("inputs", [(), (X,), (X, X), (X, X, X)])
@pytest.mark.parametrize("out", [None, (), (X,), (None,), (X, X), (X, X, X), X])
def test_ufuncs_of_another_number_of_operands(ufunc, inputs, out):
    kwargs = {} if out is None else {"out": out}
    given = ufunc.nout if out is None else len(out) if type(out) is tuple else 1
    if len(inputs) == ufunc.nin and given == ufunc.nout:
        assert X.__array_ufunc__(ufunc, "__call__", *inputs, **kwargs) is not None
        return
    with pytest.raises(TypeError, match="takes . inputs and, if any, . outputs, not"):
        X.__array_ufunc__(ufunc, "__call__", *inputs, **kwargs)


@pytest.mark.parametrize("place", [np.asarray, ndx.asarray])
def test_a_larger_output_is_filled(place):
    x = ndx.asarray([1.0, 4.0])
    calls = [
        (np.add, (x, 1)), (np.add, (x, x[:, None])), (np.sqrt, (x,)),
        (np.cbrt, (x,)), (np.negative, (3.0,)), (np.less, (x, 2)),
        (np.matmul, (ndx.eye(2), ndx.ones((2, 2)))),
    ]  # fmt: skip
    for ufunc, inputs in calls:
        same = [np.asarray(each) for each in inputs]
        out, expected = place(np.zeros((3, 2, 2))), np.zeros((3, 2, 2))
        if ufunc is np.less:
            out, expected = place(out.astype(bool)), expected.astype(bool)
        assert ufunc(*inputs, out=out) is out
        assert_same(ndx.asarray(out), ufunc(*same, out=expected))
    for shape in ((1,), (3,), (2, 3)):
        with pytest.raises(ValueError, match="broadcast"):
            np.add(x, 1, out=place(np.zeros(shape)))
    with pytest.raises(ValueError, match="output has shape"):
        ndx.add(x, 1, out=ndx.zeros((2, 2)))


SPECIAL = [np.inf, -np.inf, np.nan, 0.0, -0.0, 1.0, -3.5, 0.1]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", ["floor_divide", "power", "remainder", "divmod"])
def test_special_values_of_numpys_functions_are_numpys(name, dtype):
    a = np.repeat(np.array(SPECIAL, dtype), len(SPECIAL))
    b = np.tile(np.array(SPECIAL, dtype), len(SPECIAL))
    x, y = ndx.asarray(a), ndx.asarray(b)
    ours = [(x, y), (x[::2], y[::2]), (x, 0.5), (x, 3.0), (-np.inf, y), (x, np.inf)]
    theirs = [(a, b), (a[::2], b[::2]), (a, 0.5), (a, 3.0), (-np.inf, b), (a, np.inf)]
    for mine, same in zip(ours, theirs, strict=True):
        with np.errstate(all="ignore"):
            expected = getattr(np, name)(*same)
        for namespace in (np, ndx.numpy):
            found = getattr(namespace, name)(*mine)
            np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("name", ["expm1", "tan", "tanh"])
def test_special_complex_values_of_numpys_functions_are_numpys(name):
    parts = np.array(SPECIAL)
    z = (parts[:, None] + 0j).repeat(len(SPECIAL), axis=1)
    z.imag = parts
    with np.errstate(all="ignore"):
        expected = getattr(np, name)(z)
        found = getattr(np, name)(ndx.asarray(z))
    np.testing.assert_array_equal(np.asarray(found), expected)


@pytest.mark.parametrize("base", [float, int, np.float64, np.int64])
def test_a_number_of_a_subclass_computes_itself(base):
    class Length(base):
        def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
            return "a length"

    x = ndx.ones(2)
    assert np.multiply(x, Length(3)) == "a length"
    assert np.multiply(Length(3), x) == "a length"
    assert ndx.numpy.multiply(Length(3), x) == "a length"

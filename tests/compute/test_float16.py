"""float16: its values and the borders between them, exact sums, and what refuses."""

import pickle

import numpy as np
import pytest
from helpers import dtypes
from helpers.compare import assert_same

import ndx
import ndx.numpy as face

BITS = np.arange(2**16, dtype=np.uint16)
# Zeros of both signs, subnormals, infinities, and NaN of all bits, also signalling.
VALUES = BITS.view(np.float16)
STEPS = [slice(None), slice(None, None, -1), slice(1, None, 3)]


def quietly(a, dtype):
    with np.errstate(all="ignore"):
        return a.astype(dtype)


def same_bytes(found, expected):
    assert found.dtype == expected.dtype
    assert np.asarray(found).tobytes() == expected.tobytes()


# ---------------------------------------------------------------- casts


@pytest.mark.parametrize("step", STEPS, ids=str)
@pytest.mark.parametrize("dtype", dtypes.ALL)
def test_every_value_is_cast_as_numpy_does(dtype, step):
    x = ndx.asarray(VALUES)
    same_bytes(ndx.astype(x[step], getattr(ndx, dtype)), quietly(VALUES[step], dtype))


def around(dtype):
    """Return numbers of a dtype at, below and above what float16 has or rounds at."""
    if dtype == "bool":
        return np.array([False, True] * 40)
    if dtype in dtypes.INTEGERS:
        info = np.iinfo(dtype)
        low, high = max(info.min, -70000), min(info.max, 70000)
        ends = np.array([info.min, info.max], dtype)
        return np.concatenate([np.arange(low, high + 1).astype(dtype), ends])
    values = quietly(VALUES, dtype)
    ends = np.sort(values[np.isfinite(values)])
    middles = (ends[1:] + ends[:-1]) / np.array(2, dtype)
    near = np.concatenate([ends, middles, np.array([65520, -65520], dtype)])
    limits = np.array([np.inf, -np.inf], dtype)
    if dtype != "float16":
        near = [near, np.nextafter(near, limits[0]), np.nextafter(near, limits[1])]
        info = np.finfo(dtype)
        limits = [*limits, info.max, -info.max, info.smallest_subnormal, info.tiny]
    return np.concatenate([np.ravel(near), values, limits]).astype(dtype)


@pytest.mark.filterwarnings("ignore:overflow:RuntimeWarning")
@pytest.mark.parametrize("step", STEPS, ids=str)
@pytest.mark.parametrize("dtype", [d for d in dtypes.ALL if d not in dtypes.COMPLEX])
def test_numbers_are_rounded_as_numpy_does(dtype, step):
    a = around(dtype)
    found = ndx.astype(ndx.asarray(a)[step], ndx.float16)
    same_bytes(found, quietly(a[step], "float16"))


@pytest.mark.parametrize(
    ("dtype", "other", "infinity"),
    [("float32", "uint32", 0x7F800000), ("float64", "uint64", 0x7FF << 52)],
)
def test_not_a_number_keeps_its_highest_bits(dtype, other, infinity):
    payloads = [1, 2**12, 2**13, 2**22, 2**41, 2**42, 2**51, 3 * 2**20, 2**50 + 1]
    bits = np.array([infinity + p for p in payloads if p < infinity & -infinity], other)
    bits = np.concatenate([bits, bits | 1 << np.array(bits.itemsize * 8 - 1, other)])
    a = bits.view(dtype)
    same_bytes(ndx.astype(ndx.asarray(a), ndx.float16), quietly(a, "float16"))


def test_complex_numbers_are_not_cast():
    with pytest.raises(TypeError, match="imaginary"):
        ndx.astype(ndx.ones(2, dtype="complex64"), ndx.float16)


@pytest.mark.parametrize(
    "number", [0.1, -0.0, 65519.99, 65520.0, 2.0**-25, 1e300, 2**20]
)
def test_python_numbers_are_rounded_once(number):
    with np.errstate(all="ignore"):
        expected = np.array([number]).astype("float16")
    same_bytes(ndx.full(1, number, dtype="float16"), expected)
    same_bytes(ndx.asarray([number], dtype="float16"), expected)
    x = ndx.zeros(1, dtype="float16")
    x[0] = number
    same_bytes(x, expected)


@pytest.mark.parametrize(
    "make",
    [
        lambda np: np.asarray([1e5, 2]).astype(np.float16),
        lambda np: np.asarray([10**5, 2]).astype(np.float16),
        lambda np: np.ones(2, dtype="float16") + 1e6,
        lambda np: np.ones(2, dtype="float16") * np.asarray([60000, 2], dtype="int8"),
        lambda np: np.full(2, 60000.0, dtype="float16") * 2,
    ],
)
def test_overflow_is_reported_where_numpy_does(make):
    outcomes = []
    for namespace in (np, face):
        try:
            with namespace.errstate(over="raise"):
                outcomes.append(np.asarray(make(namespace)).tolist())
        except (FloatingPointError, OverflowError) as error:
            outcomes.append(type(error))
    assert outcomes[0] == outcomes[1]


# ---------------------------------------------------------------- sums


@pytest.mark.parametrize("axis", [0, 1, (0, 1), None])
@pytest.mark.parametrize("name", ["sum", "mean", "var", "std", "prod"])
def test_reductions_are_rounded_once(name, axis):
    a = np.random.default_rng(1).uniform(0.99, 1.01, (300, 40)).astype("float16")
    found = getattr(ndx, name)(ndx.asarray(a), axis=axis)
    with np.errstate(all="ignore"):
        wide = getattr(np, name)(a.astype("float64"), axis=axis)
        expected = np.asarray(wide).astype("float16")
    assert found.dtype == ndx.float16
    # float32 is rounded, too: half of an ulp of float16 may become one.
    close = np.nextafter(expected, np.float16(np.inf)) - expected
    assert (np.abs(np.asarray(found) - expected) <= close).all() or name == "prod"
    assert np.mean(np.asarray(found) == expected) > 0.95


def test_sums_go_on_where_float16_has_no_next_integer():
    x = ndx.ones((5000, 3), dtype="float16")
    assert ndx.sum(x, axis=0).tolist() == [5000] * 3
    assert ndx.sum(x).tolist() == 15000
    assert ndx.cumulative_sum(x, axis=0)[-1, :].tolist() == [5000] * 3
    assert ndx.mean(ndx.full(10**5, 2.0, dtype="float16")).tolist() == 2
    # NumPy rounds each step.
    assert np.asarray(x).sum(axis=0).tolist() == [2048] * 3
    assert face.sum(x, axis=0).tolist() == [2048] * 3


def test_a_sum_that_overflows_on_its_way():
    x = ndx.asarray([60000, 60000, -60000, -60000], dtype="float16")
    assert ndx.sum(x).tolist() == 0
    assert ndx.sum(x[:2]).tolist() == float("inf")
    assert ndx.cumulative_sum(x).tolist() == [60000, float("inf"), 60000, 0]


def test_running_results_have_an_initial_value():
    x = ndx.asarray([1.5, 2, 4], dtype="float16")
    assert ndx.cumulative_sum(x, include_initial=True).tolist() == [0, 1.5, 3.5, 7.5]
    assert ndx.cumulative_prod(x, include_initial=True).tolist() == [1, 1.5, 3, 12]
    assert ndx.sum(ndx.ones(3, dtype="int8"), dtype="float16").dtype == ndx.float16


@pytest.mark.parametrize("shape", [(7,), (1000,), (300, 400), (4, 3, 50), (1, 1)])
@pytest.mark.parametrize(
    "name",
    ["sum", "prod", "mean", "std", "var", "cumsum", "cumprod", "max", "min", "ptp",
     "median", "nansum", "nanmean", "argmax", "count_nonzero"],
)  # fmt: skip
def test_numpys_face_has_numpys_results(name, shape):
    a = np.random.default_rng(2).normal(size=shape).astype("float16")
    for options in ({}, {"axis": 0}, {"axis": -1}):
        with np.errstate(all="ignore"):
            # NumPy's squares are added in float16, and overflow.
            expected = getattr(np, name)(a, **options)
            found = getattr(face, name)(ndx.asarray(a), **options)
        assert isinstance(found, ndx.NDArray) or name == "count_nonzero"
        assert_same(ndx.asarray(found), np.asarray(expected))


# ---------------------------------------------------------------- elements


def test_elements_are_numbers_like_numpys():
    a = np.array([1.5, 2.25, 60000, np.nan], "float16")
    x = face.asarray(a)
    assert isinstance(x[0], np.floating)
    assert isinstance(x[0], np.float16)
    assert type(x[0]) == np.float16  # noqa: E721 - tables by class
    for one, other in ((x[0], a[0]), (x[1], a[1]), (x[2], a[2])):
        assert hash(one) == hash(other)
        assert (float(one), int(one), str(one)) == (
            float(other),
            int(other),
            str(other),
        )
        assert pickle.loads(pickle.dumps(one)) == other
        with np.errstate(all="ignore"):
            for step in (
                lambda v, w: v + w, lambda v, w: v * 2.5, lambda v, w: v / w,
                lambda v, w: v**2, lambda v, w: v // w, lambda v, w: v % w,
                lambda v, w: v + np.float32(1), lambda v, w: v - np.int16(3),
                lambda v, w: -v, lambda v, w: v < w, lambda v, w: v + 70000.0,
            ):  # fmt: skip
                found, expected = step(one, x[0]), step(other, a[0])
                assert found.dtype == expected.dtype
                assert np.array_equal(found, expected)


def test_zeros_of_both_signs_are_false():
    x = ndx.asarray([0.0, -0.0, 6e-8, np.nan, -1], dtype="float16")
    assert ndx.nonzero(x)[0].tolist() == [2, 3, 4]
    assert ndx.count_nonzero(x).tolist() == 3
    assert ndx.astype(x, ndx.bool).tolist() == [False, False, True, True, True]
    assert ndx.unique_values(ndx.asarray([0.0, -0.0], dtype="float16")).shape == (1,)


def test_equal_elements_stay_in_order():
    a = np.array([0.0, np.nan, -0.0, 1, 0.0, -np.nan, -1, -0.0] * 30, "float16")
    for values in (a, a[::-1], a[3::8]):
        expected = np.sort(values, kind="stable")
        same_bytes(ndx.sort(ndx.asarray(values)), expected)
        found = ndx.argsort(ndx.asarray(values))
        assert found.tolist() == np.argsort(values, kind="stable").tolist()


def test_the_standard_lists_its_own_dtypes():
    info = ndx.__array_namespace_info__()
    assert "float16" not in info.dtypes()
    assert info.default_dtypes()["real floating"] == ndx.float64
    assert ndx.isdtype(ndx.float16, "real floating")
    found, expected = ndx.finfo(ndx.float16), np.finfo(np.float16)
    assert (found.bits, found.max, found.eps) == (16, expected.max, expected.eps)


# ---------------------------------------------------------------- what follows NumPy


@pytest.mark.parametrize("norm", ["backward", "ortho", "forward"])
@pytest.mark.parametrize("name", ["fft", "ifft", "rfft", "irfft", "hfft", "ihfft"])
def test_transforms_are_numpys(name, norm):
    a = np.random.default_rng(3).normal(size=(3, 10)).astype("float16")
    expected = getattr(np.fft, name)(a, norm=norm)
    for namespace in (ndx, face):
        found = getattr(namespace.fft, name)(ndx.asarray(a), norm=norm)
        assert_same(found, expected)


@pytest.mark.parametrize(
    "name", ["inv", "det", "svd", "qr", "eigh", "cholesky", "pinv"]
)
def test_decompositions_refuse(name):
    with pytest.raises(TypeError, match="float16 is unsupported"):
        getattr(ndx.linalg, name)(ndx.eye(2, dtype="float16"))


def test_systems_refuse_on_either_side():
    one, other = ndx.eye(2), ndx.eye(2, dtype="float16")
    for a, b in ((one, other), (other, one)):
        with pytest.raises(TypeError, match="float16 is unsupported"):
            ndx.linalg.solve(a, b)


def test_random_numbers_refuse():
    with pytest.raises(TypeError, match="float16"):
        ndx.random.default_rng(1).random(3, dtype="float16")


def test_fused_functions_have_the_same_results():
    a = np.random.default_rng(4).normal(size=5000).astype("float16")
    x, y = ndx.asarray(a), ndx.asarray(a[::-1].copy())

    def function(x, y):
        z = ndx.exp(x) * y + 1
        return z, ndx.astype(z, ndx.float32), ndx.sum(z), ndx.mean(z * z)

    expected = function(x, y)
    fused = ndx.fuse(function)
    for _ in range(3):
        for one, other in zip(fused(x, y), expected, strict=True):
            assert_same(one, np.asarray(other))


def test_small_integers_of_numpys_face():
    for function in (np.sqrt, np.exp, np.sin):
        a = np.arange(5, dtype="int8")
        found = function(face.asarray(a))
        assert isinstance(found, ndx.NDArray)
        assert_same(found, function(a))
    assert ndx.sqrt(ndx.arange(5, dtype="int8")).dtype == ndx.float64

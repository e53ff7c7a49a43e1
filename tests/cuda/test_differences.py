"""Where CuPy does otherwise than NumPy and the standard, a GPU does as the CPU."""

import numpy as np
import pytest
from helpers.numpy_versions import needs
from hypothesis import example, given
from hypothesis import strategies as st

import ndx

pytestmark = pytest.mark.usefixtures("gpu")
SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.1, 3.0, -7.5, 1e20, 2**53, np.inf, -np.inf, np.nan]


def gpu_of(x, dtype=None):
    return ndx.asarray(x, dtype=dtype, device="cuda:0")


def host(x):
    return np.asarray(x.to_device("cpu"))


def both(function, *values):
    """Return what a function makes of arrays on the CPU, and of them on a GPU."""
    cpu = [ndx.asarray(x) if isinstance(x, (list, np.ndarray)) else x for x in values]
    gpu = [x.to_device("cuda:0") if isinstance(x, ndx.NDArray) else x for x in cpu]
    return np.asarray(function(*cpu)), host(function(*gpu))


def same(found, expected):
    """Also the sign of zeros."""
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found, expected)
    if found.dtype.kind == "f":
        rest = ~np.isnan(expected)
        signs = np.signbit(found), np.signbit(expected)
        np.testing.assert_array_equal(signs[0][rest], signs[1][rest])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", ["floor_divide", "remainder"])
def test_division(name, dtype):
    values = np.array(SPECIAL, dtype)
    function = getattr(ndx, name)
    same(*reversed(both(function, values[:, None].copy(), values)))
    same(*reversed(both(function, values, 0.1)))
    same(*reversed(both(function, 1.0, values)))


@given(st.floats(-1e18, 1e18), st.floats(-1e3, 1e3))
@example(3.861247291622317e16, 5.0)
@example(6755399441055745.0, 2.0 / 3)
@example(9007199254740991.0, 2.0)
@example(9007199254740989.0, 2.0)
def test_quotients_and_rests_belong_together(x, y):
    x, y = gpu_of([x]), gpu_of([y])
    same(host(x // y), np.asarray(x.to_device("cpu") // y.to_device("cpu")))
    same(host(x % y), np.asarray(x.to_device("cpu") % y.to_device("cpu")))


def test_division_in_place():
    x = gpu_of([1.0, 7.0, -7.0])
    x //= 0.1
    assert x.tolist() == [1.0 // 0.1, 7.0 // 0.1, -7.0 // 0.1]
    x %= 4
    assert x.tolist() == [9.0 % 4, 69.0 % 4, -70.0 % 4]


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_expm1_near_zero(dtype):
    tiny = [1e-20 + 1e-20j, -1e-9 + 3e-9j, 0.5 - 2j, 30 + 1j, 0j]
    expected, found = both(ndx.expm1, np.array(tiny, dtype))
    assert found.dtype == dtype
    tolerance = 4 * np.finfo(dtype).eps
    np.testing.assert_allclose(found.real, expected.real, rtol=tolerance)
    np.testing.assert_allclose(found.imag, expected.imag, rtol=tolerance)


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("name", ["tan", "tanh", "expm1"])
def test_special_values_of_complex_numbers(name, dtype):
    parts = np.array([0.0, -0.0, 1.5, -2.0, np.inf, -np.inf, np.nan])
    values = np.empty((7, 7), dtype)
    values.real, values.imag = parts[:, None], parts
    expected, found = both(getattr(ndx, name), values)
    for one, other in ((found.real, expected.real), (found.imag, expected.imag)):
        np.testing.assert_allclose(one, other, rtol=8 * np.finfo(dtype).eps)
    if name != "expm1":  # of which some signs are not specified
        sure = expected.imag == 0
        signs = np.signbit(found.imag), np.signbit(expected.imag)
        np.testing.assert_array_equal(signs[0][sure], signs[1][sure])


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_truth_of_complex_numbers(dtype):
    x = np.array([0, 1, 1j, 0], dtype)
    for name in ("logical_and", "logical_or", "logical_xor"):
        same(*both(getattr(ndx, name), x, x[::-1].copy()))
        same(*both(getattr(ndx, name), x, 1j))
    same(*both(ndx.logical_not, x))


def test_negative_powers_of_integers():
    x = gpu_of([1, 2])
    for raised in (lambda: x**-1, lambda: ndx.pow(x, -2), lambda: x.__ipow__(-1)):
        with pytest.raises(ValueError, match="floating-point"):
            raised()
    assert host(x**2).tolist() == [1, 4]
    assert host(2.0 ** gpu_of([-1.0])).tolist() == [0.5]


@pytest.mark.parametrize("zero", [-0.0, complex(-0.0, 0.0), complex(0.0, -0.0)])
def test_the_sign_of_zero(zero):
    dtype = "complex128" if isinstance(zero, complex) else "float64"
    x = ndx.full(3, zero, dtype=dtype, device="cuda:0")
    y = ndx.ones((2, 3), dtype=dtype, device="cuda:0")
    y[1] = zero
    y[0, 1:] = zero
    for found in (host(x), host(y)[1], host(y)[0, 1:]):
        parts = found.view("float64")
        expected = np.full(found.shape, zero, dtype).view("float64")
        np.testing.assert_array_equal(np.signbit(parts), np.signbit(expected))
        assert not parts.any()
    assert host(y)[0, 0] == 1


@pytest.mark.parametrize(
    ("target", "source"),
    [
        (slice(1, None), slice(-1)),
        (slice(-1), slice(1, None)),
        (..., slice(None, None, -1)),
    ],
)
def test_overlapping_memory(target, source):
    x = np.arange(6.0)
    g = gpu_of(x)
    g[target] = g[source]
    x[target] = x[source].copy()
    assert host(g).tolist() == x.tolist()


def test_overlapping_memory_by_index():
    x = gpu_of([0, 1, 2, 3])
    x[gpu_of([3, 2, 1, 0])] = x
    assert host(x).tolist() == [3, 2, 1, 0]
    x[x > 1] = x[:2]
    assert host(x).tolist() == [3, 2, 1, 0]


def test_in_place_on_a_view_copies_nothing(machine):
    x = gpu_of([[1.0, 2.0], [3.0, 4.0]])
    before = x.backend.stats()["total_allocations"]
    x[0] += 1  # a result of CuPy's, stored; the view is not copied to itself
    assert x.backend.stats()["total_allocations"] == before + 1
    assert host(x).tolist() == [[2.0, 3.0], [3.0, 4.0]]


@pytest.mark.parametrize(
    ("first", "second"),
    [("int32", "uint32"), ("int64", "uint64"), ("int64", "float32"), ("int8", "int64")],
)
def test_comparisons_of_two_dtypes(first, second):
    low = -1 if np.dtype(first).kind == "i" else 1
    x = np.array([low, 0, 5], first)
    y = np.array([0, 3, 5], second)
    same(*both(ndx.isin, x, y))
    same(*both(ndx.searchsorted, x, y))


@pytest.mark.parametrize(
    "name", ["equal", "not_equal", "less", "less_equal", "greater", "greater_equal"]
)
def test_integers_that_no_dtype_holds_both(name):
    signed = np.array([2**53 + 1, 2**63 - 1, -1, 0, -(2**63)])
    unsigned = np.array([2**53, 2**63, 2**64 - 1, 0, 2**63], np.uint64)
    function = getattr(ndx, name)
    for x in (signed, signed[2:4].astype(np.int8)):
        y = unsigned[: len(x)]
        for pair in ((x, y), (y, x), (x[:, None].copy(), y)):
            found, expected = both(function, *pair)
            same(expected, getattr(np, name)(*pair))
            same(found, expected)
        out = gpu_of(np.zeros(len(x), bool))
        function(gpu_of(x), gpu_of(y), out=out)
        same(host(out), getattr(np, name)(x, y))
    for number in signed:
        same(*both(lambda y, x=number: function(y, x), unsigned))
        same(*both(lambda y, x=number: getattr(np, name)(x, y), unsigned))
    same(*both(ndx.fuse(function), signed, unsigned))


def test_comparisons_with_scalars():
    same(*both(ndx.searchsorted, np.array([2**53, 2**53 + 1], np.uint64), 2**53 + 1))
    same(*both(ndx.searchsorted, np.array([1, 200], np.uint8), 300))
    x = np.array([1.0, 2.0, 3.0])
    same(*both(ndx.isin, x, 2.0))
    same(*both(ndx.isin, 2.0, x))
    same(*both(ndx.searchsorted, x, 2.0))
    same(*both(ndx.isin, np.array([1, 2]), 1.5))
    with pytest.raises(ValueError, match="'left' and 'right'"):
        ndx.searchsorted(gpu_of(x), gpu_of(x), side="mid")
    with pytest.raises(ValueError, match="one axis"):
        ndx.searchsorted(gpu_of([x]), gpu_of(x))


def test_indices():
    x = gpu_of([10, 20, 30])
    for wrong in ([0.0], [True]):
        with pytest.raises(TypeError, match="integer indices"):
            ndx.take(x, gpu_of(wrong))
    with pytest.raises(ValueError, match="one"):
        ndx.take(x, gpu_of([[0]]))
    assert host(ndx.take(x, gpu_of([-1, 0]))).tolist() == [30, 10]
    with pytest.raises(TypeError, match="integers"):
        ndx.repeat(x, gpu_of([1.0, 2.0, 3.0]))


def test_no_integer_has_any_power():
    same(*both(lambda x: x**-2, np.zeros((0, 3), "int8")))
    with pytest.raises(ValueError, match="power -2"):
        gpu_of([2]) ** -2


def test_scalars_that_do_not_fit():
    x = np.array([1, 2, 3], "int8")
    for scalar in (300, -300, 2**62, 2**70):
        same(*both(ndx.isin, x, scalar))
        if scalar < 2**63:
            same(*both(ndx.searchsorted, x, scalar))
    same(*both(lambda c: ndx.where(c, 1.0, 0.0), np.array([True, False])))
    same(*both(lambda c: ndx.where(c, 1, 0), np.array([True, False])))


def test_what_is_no_array():
    x = gpu_of([10, 20, 30])
    wrong = [
        lambda: ndx.take(x, [0]),
        lambda: ndx.take([1, 2], gpu_of([0])),
        lambda: ndx.repeat(x, 1.5),
        lambda: ndx.repeat(x, [1, 2, 3]),
        lambda: ndx.sum([x]),
        lambda: ndx.sort([x, x]),
        lambda: ndx.linalg.inv([x, x]),
    ]
    for call in wrong:
        with pytest.raises(TypeError):
            call()
    for call in (
        lambda: ndx.repeat(x, ndx.asarray([1, 2, 3])),
        lambda: ndx.take(x, ndx.asarray([0])),
        lambda: ndx.take(x, np.asarray([0])),
    ):
        with pytest.raises(ValueError, match="different devices"):
            call()


def test_arrays_without_axes():
    x = gpu_of(5)
    for function in (ndx.sort, ndx.argsort):
        with pytest.raises(ValueError, match="axis -1 is out of range"):
            function(x)
    for function in (ndx.fft.fftshift, ndx.fft.ifftshift):
        assert function(x).shape == ()
    assert ndx.roll(x, (), axis=()).tolist() == 5
    assert ndx.roll(x, 3).tolist() == 5


def test_complex_numbers_are_not_made_real():
    x = gpu_of([1 + 1j])
    for name in ("sum", "prod", "cumulative_sum", "cumulative_prod"):
        with pytest.raises(TypeError, match="imaginary"):
            getattr(ndx, name)(x, dtype=ndx.float64)
        assert getattr(ndx, name)(x, dtype=ndx.complex64).dtype == "complex64"
    for name in ("var", "std"):
        with pytest.raises(TypeError, match="real"):
            getattr(ndx, name)(x)


def test_vecdot_of_booleans():
    x = np.array([True, True])
    same(*both(ndx.vecdot, x, x))
    same(*both(ndx.vecdot, x, ~x))


@pytest.mark.parametrize("shape", [(2,), (3, 2), (2, 3, 2)])
def test_vecdot(shape):
    x = np.arange(np.prod(shape)).reshape(shape) * (1 + 2j)
    same(*both(ndx.vecdot, x, x + 1))


# ---------------------------------------------------------------- linalg


def test_eigenvalues():
    x = [[2.0, 1.0], [1.0, 2.0]]
    expected = ndx.linalg.eig(ndx.asarray(x))
    found = ndx.linalg.eig(gpu_of(x))
    assert type(found) is type(expected)
    same(host(found.eigenvalues), np.asarray(expected.eigenvalues))
    same(host(found.eigenvectors), np.asarray(expected.eigenvectors))


@pytest.mark.parametrize(
    ("a", "b"),
    [((2, 1, 1), (1, 3)), ((1, 1), (5, 1, 2)), ((3, 3), (3,)), ((2, 3, 3), (3,)),
     ((4, 1, 2, 2), (3, 2, 1)), ((2, 0, 0), (0, 2))],
)  # fmt: skip
def test_stacks_of_equations(a, b):
    rng = np.random.default_rng(1)
    expected, found = both(ndx.linalg.solve, rng.random(a), rng.random(b))
    assert found.shape == expected.shape
    np.testing.assert_allclose(found, expected)


@pytest.mark.parametrize(
    ("call", "reason"),
    [
        (lambda x: ndx.linalg.inv(x * 0), "singular"),
        (lambda x: ndx.linalg.solve(x * 0, x), "singular"),
        (lambda x: ndx.linalg.matrix_power(x * 0, -1), "singular"),
        (lambda x: ndx.linalg.cholesky(-x), "not positive definite"),
    ],
)
def test_matrices_without_a_result(call, reason):
    x = ndx.eye(2, device="cuda:0")
    with pytest.raises(np.linalg.LinAlgError, match=reason):
        call(x)
    assert host(ndx.linalg.inv(x)).tolist() == [[1.0, 0.0], [0.0, 1.0]]


@pytest.mark.parametrize(
    "name", ["inv", "cholesky", "eig", "eigh", "eigvals", "eigvalsh"]
)
def test_matrices_that_are_not_square(name):
    """That is what the error says, not that there is no result."""
    x = ndx.ones((2, 3), device="cuda:0")
    with pytest.raises(np.linalg.LinAlgError, match="square"):
        getattr(ndx.linalg, name)(x)


@pytest.mark.parametrize("name", ["svd", "svdvals", "pinv", "matrix_rank"])
def test_computations_that_do_not_converge(name, monkeypatch):
    """CuPy's error is known by its class, whatever its text."""
    x = ndx.ones((2, 3), device="cuda:0")

    def fails(*args, **kwargs):
        raise np.linalg.LinAlgError("gesvd said no")

    monkeypatch.setattr("ndx._cuda.calls.standard", fails)
    with pytest.raises(np.linalg.LinAlgError, match=f"{name}: .* did not converge"):
        getattr(ndx.linalg, name)(x)


@needs("norms of nothing are 0")  # NumPy stands in for CuPy
@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (0, 0)])
def test_norms_of_nothing(shape):
    x = np.zeros(shape)
    for order in (1, np.inf):
        same(*both(lambda x, p=order: ndx.linalg.matrix_norm(x, ord=p), x))
        same(*both(lambda x, p=order: ndx.linalg.vector_norm(x, ord=p), x))
    same(*both(ndx.linalg.matrix_rank, x))


# ---------------------------------------------------------------- fft


def test_lengths_of_transforms():
    x = np.arange(12.0).reshape(3, 4)
    for name in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft"):
        function = getattr(ndx.fft, name)
        for n in (-1, 0):
            with pytest.raises(ValueError, match="1 or more"):
                function(gpu_of(x), n=n)
        expected, found = both(lambda x, f=function: f(x, n=5, axis=0), x)
        np.testing.assert_allclose(found, expected, atol=1e-12)
    for name in ("fftn", "ifftn", "rfftn", "irfftn"):
        function = getattr(ndx.fft, name)
        for s in ((0, 2), (2, -2), (2,)):
            with pytest.raises(ValueError, match="s="):
                function(gpu_of(x), s=s, axes=(0, 1))
            with pytest.raises(ValueError, match="s="):
                function(ndx.asarray(x), s=s, axes=(0, 1))
        with pytest.raises(ValueError, match="needs axes"):
            function(gpu_of(x), s=(2, 2))
        expected, found = both(lambda x, f=function: f(x, s=(-1, 3), axes=(0, 1)), x)
        np.testing.assert_allclose(found, expected, atol=1e-12)


@pytest.mark.parametrize("name", ["rfft", "rfftn", "ihfft"])
def test_transforms_of_real_numbers_only(name):
    with pytest.raises(TypeError, match="complex"):
        getattr(ndx.fft, name)(gpu_of([1j, 2.0]))


# ---------------------------------------------------------------- sequences


def test_sequences_of_arrays():
    x = gpu_of([1.0, 2.0])
    with ndx.use("cuda:0"):
        found = ndx.asarray([[x[0], x[1]], [x[1], 5]])
    assert found.device == "cuda:0"
    assert host(found).tolist() == [[1.0, 2.0], [2.0, 5.0]]
    found = ndx.asarray((x, x), dtype="float32")
    assert (found.device, found.dtype, found.shape) == ("cuda:0", "float32", (2, 2))
    assert ndx.asarray([x, x], device="cpu").device == "cpu"
    with pytest.raises(ValueError, match="copy=False"):
        ndx.asarray([x, x], copy=False)
    with pytest.raises(ValueError, match="shape"):
        ndx.asarray([x, x[:1]])

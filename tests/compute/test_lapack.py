"""Linear algebra by NumPy's loops, against NumPy's functions."""

import numpy as np
import pytest
from helpers.answers import answer
from helpers.compare import assert_same
from helpers.examples import examples
from hypothesis import given
from hypothesis import strategies as st

import ndx
import ndx.numpy as ndx_numpy

CALLS = {
    "cholesky": lambda xp, x, b: xp.linalg.cholesky(x),
    "cholesky upper": lambda xp, x, b: xp.linalg.cholesky(x, upper=True),
    "det": lambda xp, x, b: xp.linalg.det(x),
    "eigh": lambda xp, x, b: xp.linalg.eigh(x),
    "eigvalsh": lambda xp, x, b: xp.linalg.eigvalsh(x),
    "inv": lambda xp, x, b: xp.linalg.inv(x),
    "qr": lambda xp, x, b: xp.linalg.qr(x),
    "qr complete": lambda xp, x, b: xp.linalg.qr(x, mode="complete"),
    "slogdet": lambda xp, x, b: xp.linalg.slogdet(x),
    "solve": lambda xp, x, b: xp.linalg.solve(x, b),
    "svd": lambda xp, x, b: xp.linalg.svd(x),
    "svd reduced": lambda xp, x, b: xp.linalg.svd(x, full_matrices=False),
    "svdvals": lambda xp, x, b: xp.linalg.svdvals(x),
}
TYPES = ["bool", "int64", "uint8", "float32", "float64", "complex64", "complex128"]
SHAPES = [
    (3,), (1, 1), (2, 2), (3, 3), (5, 2), (2, 5), (0, 0), (2, 0), (0, 3), (1, 3),
    (2, 3, 3), (0, 3, 3), (2, 2, 2, 2), (2, 0, 0), (3, 1, 4, 2), (40, 40),
]  # fmt: skip
RIGHT = [(), (3,), (2,), (3, 1), (3, 2), (2, 3, 2), (2, 1, 3, 3), (0,), (3, 0), (2, 2)]


def arrays(shapes):
    """Draw a shape, a dtype, a layout and kinds of matrices; return NumPy's array."""

    def make(shape, dtype, layout, definite, seed):
        rng = np.random.default_rng(seed)
        a = rng.integers(0, 4, shape)
        if definite and a.ndim > 1 and a.shape[-1] == a.shape[-2]:
            a = a @ a.mT + 9 * np.eye(a.shape[-1], dtype=int)
        a = np.asarray(a).astype(dtype)
        if layout == "strided" and a.ndim:
            a = np.repeat(np.repeat(a, 2, axis=-1), 2, axis=0)[::2][..., ::-2]
        elif layout == "transposed":
            a = np.asfortranarray(a)
        elif layout == "broadcast":
            a = np.broadcast_to(a, (2, *a.shape))
        elif layout == "read-only":
            a.flags.writeable = False
        return a

    return st.builds(
        make,
        st.sampled_from(shapes),
        st.sampled_from(TYPES),
        st.sampled_from(["plain", "strided", "transposed", "broadcast", "read-only"]),
        st.booleans(),
        st.integers(0, 9),
    )


def ours(a):
    return (
        ndx.asarray(a, copy=None) if a.ndim and not a.flags.owndata else ndx.asarray(a)
    )


@examples(600)
@given(a=arrays(SHAPES), b=arrays(RIGHT), name=st.sampled_from(sorted(CALLS)))
def test_results_are_numpys(a, b, name):
    call = CALLS[name]
    expected = failure = None
    with np.errstate(all="ignore"):
        try:
            expected = call(np, a, b)
        except (ValueError, TypeError) as error:
            failure = error
    if failure is not None:
        for face in (ndx, np, ndx_numpy):
            with pytest.raises(type(failure)) as caught:
                call(face, ours(a), ours(b))
            assert str(caught.value) == str(failure) or face is ndx
        return
    for face in (ndx, np, ndx_numpy):
        found = call(face, ours(a), ours(b))
        if isinstance(expected, tuple):
            assert type(found) is type(expected)
            for each, wanted in zip(found, expected, strict=True):
                assert_same(each, wanted)
        else:
            assert_same(found, expected)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("inv", "Singular matrix"),
        ("solve", "Singular matrix"),
        ("cholesky", "Matrix is not positive definite"),
    ],
)
def test_one_bad_matrix_of_a_stack(name, message):
    x = ndx.asarray(np.stack([np.eye(2), np.zeros((2, 2)), np.eye(2)]))
    for face in (ndx, np, ndx_numpy):
        with pytest.raises(np.linalg.LinAlgError, match=message):
            CALLS[name](face, x, ndx.ones((2, 1)))


@pytest.mark.parametrize("name", ["eigh", "eigvalsh", "svd", "svdvals"])
def test_what_does_not_converge(name):
    x = ndx.asarray(np.full((3, 3), np.nan))
    try:
        CALLS[name](np, np.full((3, 3), np.nan), None)
    except np.linalg.LinAlgError as error:
        with pytest.raises(np.linalg.LinAlgError, match=str(error)):
            CALLS[name](ndx, x, None)
    else:
        CALLS[name](ndx, x, None)


@pytest.mark.parametrize("name", sorted(CALLS))
def test_operands_are_unchanged_and_results_in_the_workspace(name):
    a = np.array([[4.0, 1.0], [1.0, 3.0]])
    x, b = ndx.asarray(a), ndx.ones((2, 1))
    with ndx.workspace("lapack") as arena:
        found = CALLS[name](ndx, x, b)
        assert (found[0] if isinstance(found, tuple) else found).workspace == "lapack"
        assert arena is not None
    assert_same(x, a)
    with pytest.raises(ndx.StaleArrayError):
        CALLS[name](ndx, found[0] if isinstance(found, tuple) else found, b)


def test_errors_are_reported_where_they_are_wanted():
    x = ndx.asarray([[1e200, 0.0], [0.0, 1e200]])
    with np.errstate(all="ignore"):
        assert_same(ndx.linalg.det(x), np.linalg.det(np.asarray(x)))
    with ndx_numpy.errstate(all="raise"), pytest.raises(FloatingPointError):
        ndx_numpy.linalg.det(x)


def test_large_stacks_without_the_gil():
    a = np.random.default_rng(0).normal(size=(300, 12, 12))
    assert_same(ndx.linalg.inv(ndx.asarray(a)), np.linalg.inv(a))
    assert_same(ndx.linalg.qr(ndx.asarray(a)).R, np.linalg.qr(a).R)


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("shape", [(3, 3), (2, 4, 4)])
def test_fields_of_records(name, shape):
    """Steps that are no multiple of the item size, by which NumPy's loops divide."""
    records = np.zeros(shape, [("z", "c16"), ("w", "f8")])
    records["w"] = np.nan
    rng = np.random.default_rng(0)
    plain = rng.normal(size=shape) + 1j * rng.normal(size=shape)
    if "chol" in name or "eig" in name:
        plain = plain @ np.conj(np.swapaxes(plain, -1, -2)) + np.eye(shape[-1])
    records["z"] = plain
    assert records["z"].strides[-1] == 24
    right = np.zeros(shape, records.dtype)
    right["z"] = plain[..., ::-1, :]
    expected = CALLS[name](np, plain, right["z"].copy())
    for xp in (ndx, ndx_numpy):
        found = CALLS[name](xp, xp.asarray(records["z"]), xp.asarray(right["z"]))
        if not isinstance(expected, tuple):
            found, wanted = (found,), (expected,)
        else:
            wanted = expected
        for a, b in zip(found, wanted, strict=True):
            np.testing.assert_array_equal(np.asarray(a), b)


def test_fields_that_are_left_to_numpy():
    records = np.zeros((3, 3), [("z", "c16"), ("w", "f8")])
    records["z"] = np.diag([1, 2, 3j]) + np.triu(np.ones((3, 3)))
    x, plain = ndx.asarray(records["z"]), records["z"].copy()
    for name in ("eig", "eigvals", "pinv", "matrix_rank", "cond"):
        found = getattr(ndx_numpy.linalg, name)(x)
        expected = getattr(np.linalg, name)(plain)
        if name == "eig":
            found, expected = found[0], expected[0]
        np.testing.assert_array_equal(np.asarray(found), expected)
        np.testing.assert_array_equal(
            np.asarray(
                getattr(np.linalg, name)(x)[0]
                if name == "eig"
                else getattr(np.linalg, name)(x)
            ),
            expected,
        )
    with ndx_numpy.errstate(all="raise"):
        # OpenBLAS divides by 0 in passing on some CPUs: both raise then.
        names = {"x": x, "plain": plain, "numpy": ndx_numpy, "read": complex}
        found = answer("numpy.linalg.det(x)", names)
        assert str(found) == str(answer("np.linalg.det(plain)", names))
    records["z"][2] = records["z"][1]
    with pytest.raises(np.linalg.LinAlgError):
        ndx.linalg.inv(x)

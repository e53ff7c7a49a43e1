"""`ndx.numpy.polynomial`: each function of NumPy's, with arrays of ndx."""

import pickle

import numpy as np
import pytest

import ndx
import ndx.numpy as face

MODULES = {
    "polynomial": "poly", "chebyshev": "cheb", "hermite": "herm", "hermite_e": "herme",
    "laguerre": "lag", "legendre": "leg",
}  # fmt: skip
C1 = np.array([1.0, 2.0, 0.5])
C2 = np.array([[1.0, 2.0], [3.0, 4.0], [0.5, -1.0]])
C3 = np.arange(8.0).reshape(2, 2, 2)
C4 = np.arange(16.0).reshape(2, 2, 2, 2)
X = np.array([0.25, -0.5, 1.0])
P = np.array([[0.25, 0.5], [0.75, -1.0]])
WEIGHTS = np.array([1.0, 2.0, 1.0])

# The end of a function's name -> its arguments.
CALLS = {
    "val": [(X, C1), (X, C2), (P, C2), (0.5, C2), (X, C2[:, :1], False),
            ([0.5, 1.0], C2)],
    "val2d": [(P, P, C2), (X, X, C3)],
    "valnd": [((P, P), C3)],
    "val3d": [(P, P, P, C3), (X, X, X, C4)],
    "grid2d": [(X, P, C2), (X, X, C3)],
    "grid3d": [(X, X, P, C3), (X, P, X, C4)],
    "valfromroots": [(X, C1), (P, C2), (X, C2.T, False)],
    "add": [(C1, X)], "sub": [(C1, X)], "mul": [(C1, X)], "div": [(X, C1)],
    "pow": [(C1, 2)], "mulx": [(C1,)], "line": [(1.0, 2.0)],
    "der": [(C1,), (C2, 1, 1, 1)], "int": [(C1,), (C2, 1, [1.0], 0, 1, 1)],
    "fromroots": [(X,)], "roots": [(C1,)], "companion": [(C1,)], "trim": [(C1,)],
    "vander": [(X, 2), (P, 2)], "vander2d": [(X, X, [1, 2])],
    "vander3d": [(X, X, X, [1, 1, 1])],
    "fit": [(X, C1, 1), (X, C2, [0, 1]), (X, C1, 1, None, False, WEIGHTS)],
    "gauss": [(3,)], "weight": [(X / 2,)], "pts1": [(3,)], "pts2": [(3,)],
    "interpolate": [(np.cos, 2)],
    "2poly": [(C1,)], "poly2": [(C1,)],
}  # fmt: skip


def functions(module):
    names = getattr(np.polynomial, module).__all__
    return [
        n
        for n in names
        if callable(getattr(getattr(np.polynomial, module), n))
        and not isinstance(getattr(getattr(np.polynomial, module), n), type)
    ]


def calls_of(module, name):
    prefix = MODULES[module]
    if name.startswith("poly2"):
        return CALLS["poly2"]
    if name.endswith("2poly"):
        return CALLS["2poly"]
    return CALLS[name.removeprefix(prefix)]


EACH = [(module, name) for module in MODULES for name in functions(module)]


def ours(value):
    return ndx.asarray(value, copy=True) if isinstance(value, np.ndarray) else value


@pytest.mark.parametrize(("module", "name"), EACH)
def test_each_function(module, name):
    theirs = getattr(getattr(np.polynomial, module), name)
    function = getattr(getattr(face.polynomial, module), name)
    assert function.__module__ == f"ndx.numpy.polynomial.{module}"
    for args in calls_of(module, name):
        expected = theirs(*args)
        found = function(*map(ours, args))
        for one, other in zip(
            found if isinstance(found, tuple) else [found],
            expected if isinstance(expected, tuple) else [expected],
            strict=True,
        ):
            if isinstance(other, np.ndarray):
                assert isinstance(one, ndx.NDArray)
            assert np.shape(one) == np.shape(other)
            np.testing.assert_array_equal(np.asarray(one), other)


def test_the_modules_are_imported_as_numpys():
    import ndx.numpy.polynomial.chebyshev as chebyshev
    from ndx.numpy.polynomial.legendre import legval

    from ndx.numpy.polynomial import polynomial

    assert chebyshev is face.polynomial.chebyshev
    assert polynomial.Polynomial is np.polynomial.Polynomial
    assert pickle.loads(pickle.dumps(legval)) is legval
    assert set(np.polynomial.__all__) <= set(dir(face.polynomial))


def test_classes_take_arrays_of_ndx():
    p = face.polynomial.Polynomial(ndx.asarray(C1))
    for x in (X, P):
        np.testing.assert_array_equal(
            p(ndx.asarray(x)), np.polynomial.Polynomial(C1)(x)
        )
    assert ndx.asarray(C1) * p == p * ndx.asarray(C1)
    assert ndx.asarray(C1) + p == np.polynomial.Polynomial(2 * C1)

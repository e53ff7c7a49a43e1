"""Every public function of NumPy, by the protocol and by `ndx.numpy`, against NumPy.

The names are NumPy's own: a new version of NumPy fails by the name that it adds.
"""

import itertools
import types
from operator import attrgetter

import numpy as np
import pytest
from helpers.numpy_calls import ARRAYS, CALLS, CONSTANTS, NO_CALLS
from helpers.numpy_results import SUPPORTED, compare, evaluate, ours

import ndx
import ndx.numpy as face

MODULES = {"": np, "linalg.": np.linalg, "fft.": np.fft}


def functions():
    """Return the names of NumPy's public functions, but ufuncs and classes."""
    found = []
    for prefix, module in MODULES.items():
        for name in module.__all__:
            value = getattr(module, name, None)
            if name.startswith("_") or isinstance(value, (type, np.ufunc, str, bool)):
                continue
            if callable(value) and not isinstance(value, types.ModuleType):
                found.append(prefix + name)
    return sorted(found)


UFUNCS = sorted(
    name for name in np.__all__ if isinstance(getattr(np, name, None), np.ufunc)
)
EACH_CALL = [(name, call) for name in CALLS for call in CALLS[name]]


@pytest.mark.parametrize("name", functions())
def test_each_function_has_a_call(name):
    assert bool(CALLS.get(name)) != (name in NO_CALLS), (
        f"{name}: say in calls.py how to call it, or in NO_CALLS why not"
    )


def test_each_name_is_there():
    for prefix, module in MODULES.items():
        for name in module.__all__:
            if not name.startswith("_") and hasattr(module, name):
                assert attrgetter(prefix + name)(face) is not None or name == "newaxis"
    for name in CONSTANTS:
        assert getattr(face, name) is getattr(np, name)


def check(namespace, name, call, given=None):
    expected, refusal = evaluate(
        np, name, call, {k: v.copy() for k, v in ARRAYS.items()}
    )
    arrays = ours(ARRAYS)
    found, error = evaluate(namespace, name, call, arrays, given)
    if refusal is not None:
        assert type(error) is type(refusal), error
        return
    if error is not None:
        raise error
    compare(found, expected, scalars=True)


@pytest.mark.parametrize(("name", "call"), EACH_CALL)
def test_the_face(name, call):
    check(face, name, call)


@pytest.mark.parametrize(("name", "call"), EACH_CALL)
def test_the_face_in_a_workspace(name, call):
    with ndx.workspace("face"):
        check(face, name, call)


@pytest.mark.parametrize(("name", "call"), EACH_CALL)
def test_the_protocol(name, call):
    if name.startswith("lib.") or not hasattr(attrgetter(name)(np), "_implementation"):
        pytest.skip("NumPy does not dispatch it")
    _, refusal = evaluate(np, name, call, {k: v.copy() for k, v in ARRAYS.items()})
    if refusal is None and not takes_arrays(call):
        pytest.skip("without an operand that is an array")
    check(np, name, call, face)


def takes_arrays(call):
    """Whether a call names one of the arrays."""
    names = compile(f"_({call})", "", "eval").co_names
    return bool({*names} & {*ARRAYS})


@pytest.mark.parametrize("name", UFUNCS)
@pytest.mark.parametrize("namespace", [np, face], ids=["numpy", "ndx.numpy"])
def test_ufuncs_of_all_dtypes(name, namespace):
    ufunc = getattr(np, name)
    values = np.asarray([[1, 2], [3, 1]])
    others = [np.dtype(each) for each in ("?", "i2", "i8", "u1", "f4", "D")]
    for dtypes in itertools.product({*SUPPORTED}, *[others] * (ufunc.nin - 1)):
        arrays = [values.astype(each) for each in dtypes]
        expected, refusal = attempt(ufunc, arrays)
        given = [ndx.asarray(each, copy=True) for each in arrays]
        found, error = attempt(getattr(namespace, name), given)
        if refusal is not None:
            assert isinstance(error, TypeError), dtypes
        else:
            assert error is None, dtypes
            compare(found, expected, scalars=True)


def attempt(function, args):
    try:
        with np.errstate(all="ignore"):
            return function(*args), None
    except Exception as error:
        return None, error


@pytest.mark.parametrize(("name", "call"), EACH_CALL)
def test_stale_arrays_are_refused(name, call):
    if not takes_arrays(call) or ".dtype" in call:
        pytest.skip("without an operand that is an array")
    with ndx.workspace("stale"):
        stale = ours(ARRAYS)
    _, refusal = evaluate(np, name, call, {k: v.copy() for k, v in ARRAYS.items()})
    _, error = evaluate(face, name, call, stale)
    if refusal is None:
        assert isinstance(error, ndx.StaleArrayError), error

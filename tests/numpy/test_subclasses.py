"""Each function of NumPy's face, with an operand of another class.

That is a subclass of NumPy's array, or an object that NumPy converts.

The class of the result, its mask and its values are those of the call with NumPy's
arrays for the other operands.
"""

from operator import attrgetter

import numpy as np
import pytest
from helpers.numpy_calls import ARRAYS, CALLS

import ndx
import ndx.numpy as face


class Plain(np.ndarray):
    """Has no methods of its own."""


class Doubling(np.ndarray):
    """Computes ufuncs and functions itself, and doubles results."""

    def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
        inputs = [np.asarray(x) if isinstance(x, Doubling) else x for x in inputs]
        result = getattr(ufunc, method)(*inputs, **kwargs)
        return tuple(x * 2 for x in result) if ufunc.nout > 1 else result * 2

    def __array_function__(self, function, types, args, kwargs):
        return "computed by the subclass", function.__name__


def masked(a):
    mask = np.zeros(a.shape, bool)
    mask.flat[::2] = True
    return np.ma.array(a, mask=mask)


class Convertible:
    """Is an array for NumPy, and callable, as a `numpy.poly1d` is."""

    def __init__(self, a):
        self.a = a

    def __array__(self, dtype=None, copy=None):
        return np.array(self.a, dtype)

    def __call__(self, *args):
        raise AssertionError


class Listed(Convertible):
    """Is a sequence for NumPy."""

    __array__ = property()

    def __len__(self):
        return len(self.a)

    def __getitem__(self, index):
        return self.a[index].tolist()


KINDS = {
    "convertible": Convertible,
    "sequence": Listed,
    "masked": masked,
    "matrix": lambda a: a.view(np.matrix) if a.ndim == 2 else a.view(Plain),
    "record array": lambda a: a.view(np.recarray),
    "subclass": lambda a: a.view(Plain),
    "subclass that computes": lambda a: a.view(Doubling),
}
EACH = [(name, call) for name in CALLS for call in CALLS[name]]


def normal(value):
    if type(value) in (ndx.NDArray, np.ndarray) or isinstance(value, np.generic):
        return "array", str(value.dtype), np.asarray(value).tolist()
    if isinstance(value, np.ma.MaskedArray):
        mask = np.asarray(value.mask).tolist()
        if np.shape(mask) not in ((), value.shape):
            return type(value), mask  # NumPy keeps the mask of the operand
        return type(value), str(value.dtype), value.filled(-77).tolist()
    if isinstance(value, np.ndarray):
        return type(value), str(value.dtype), value.tolist()
    if isinstance(value, list | tuple):
        return [normal(item) for item in value]
    return str(value)


def outcome(namespace, name, call, arrays):
    names = {"np": np, "_function": attrgetter(name)(namespace), **arrays}
    try:
        with np.errstate(all="ignore"):
            return normal(eval(f"_function({call})", names))
    except Exception as error:
        kinds = type(error).__mro__
        return next(k.__name__ for k in kinds if k.__module__ == "builtins")


def operands(call):
    return [n for n in compile(f"_({call})", "", "eval").co_names if n in ARRAYS]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("name", "call"), EACH)
@pytest.mark.parametrize("kind", KINDS)
def test_each_call(kind, name, call):
    for which in operands(call):
        if kind == "subclass that computes" and (
            name == "full_like" or ("where=" in call and which == "b")
        ):
            # NumPy doesn't write what the class was to write; it leaks its operand.
            continue
        special = KINDS[kind](ARRAYS[which].copy())
        plain = {k: v.copy() for k, v in ARRAYS.items()} | {which: special}
        given = {k: ndx.asarray(v, copy=True) for k, v in ARRAYS.items()}
        given[which] = KINDS[kind](ARRAYS[which].copy())
        expected = outcome(np, name, call, plain)
        assert str(outcome(face, name, call, given)) == str(expected), which
        if len(operands(call)) > 1:
            assert str(outcome(np, name, call, given)) == str(expected), which


# ---- ufuncs --------------------------------------------------------------------

UFUNCS = sorted(n for n in np.__all__ if isinstance(getattr(np, n, None), np.ufunc))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", UFUNCS)
@pytest.mark.parametrize("kind", [*KINDS, "masked constant"])
def test_each_ufunc(kind, name):
    ufunc = getattr(np, name)
    make = KINDS.get(kind, lambda a: np.ma.masked)
    for dtype in (float, np.int16, bool, complex):
        values = [np.array([[4, 9], [1, 2]], dtype), np.array([[2, 3], [1, 1]], dtype)]
        for place in range(ufunc.nin):
            args = values[: ufunc.nin]
            args[place] = make(args[place])
            given = list(map(ours, args))
            with np.errstate(all="ignore"):
                try:
                    expected = normal(ufunc(*args))
                except (TypeError, ValueError) as error:
                    expected = type(error).__mro__[-4:]
                for each in (getattr(face, name), ufunc):
                    if each is ufunc and ufunc.nin == 1:
                        continue
                    try:
                        found = normal(each(*given))
                    except (TypeError, ValueError) as error:
                        found = type(error).__mro__[-4:]
                    assert str(found) == str(expected), (dtype, place)


def ours(value):
    return ndx.asarray(value, copy=True) if type(value) is np.ndarray else value


def test_masks_are_kept():
    m = np.ma.array([1.0, 4.0, 9.0], mask=[0, 1, 0])
    assert face.sum(face.sqrt(m)) == 4.0
    assert face.sqrt(np.ma.masked) is np.ma.masked
    assert face.add(np.ma.masked, ndx.ones(2)).mask.all()


def test_functions_of_the_standard_refuse_subclasses():
    m = np.ma.array([1.0, 4.0, 9.0], mask=[0, 1, 0])
    x = ndx.ones(3)
    for call in (
        lambda: ndx.sqrt(m),
        lambda: ndx.sum(m),
        lambda: ndx.add(x, m),
        lambda: ndx.vecdot(x, m),
        lambda: ndx.matmul(m, x),
        lambda: ndx.where(x > 0, m, x),
        lambda: ndx.sort(m),
        lambda: ndx.concat([x, m]),
    ):
        with pytest.raises(TypeError, match=r"MaskedArray.*asarray"):
            call()
    assert ndx.asarray(m).tolist() == [1.0, 4.0, 9.0]
    assert ndx.sqrt(np.ones(2).view(np.memmap)).tolist() == [1.0, 1.0]


# ---- narrow dtypes of NumPy's own arrays ---------------------------------------


@pytest.mark.parametrize("name", UFUNCS)
@pytest.mark.parametrize("dtype", ["?", "b", "B", "h", "H", "i", "f", "e", "g"])
def test_numpys_own_arrays_of_narrow_dtypes(name, dtype):
    ufunc, ours = getattr(np, name), getattr(face, name)
    values = [np.array([[1, 1], [1, 0]], dtype), np.array([[1, 1], [1, 1]], dtype)]
    for args in (values[: ufunc.nin], [x[0, 0] for x in values[: ufunc.nin]]):
        with np.errstate(all="ignore"):
            try:
                expected = ufunc(*args)
            except (TypeError, ValueError) as error:
                with pytest.raises(type(error).__mro__[-4:-2]):
                    ours(*args)
                continue
            found = ours(*args)
        for one, other in zip(
            found if isinstance(found, tuple) else [found],
            expected if isinstance(expected, tuple) else [expected],
            strict=True,
        ):
            assert np.dtype(one.dtype) == other.dtype
            np.testing.assert_array_equal(np.asarray(one), other)

"""Every way to store a value, times kinds of values, at the borders of dtypes.

NumPy's arrays and scalars say what is right: what ``x[0] = value`` refuses is refused
in each way, also in those in which NumPy cuts it without an error; all else is stored
as NumPy stores it.
"""

import decimal
import fractions
import warnings

import numpy as np
import pytest

import ndx
import ndx.numpy as face

DTYPES = [
    *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32"),
    *("uint64", "float16", "float32", "float64", "complex64", "complex128"),
]

LIMITS = [2**7, 2**8, 2**31, 2**32, 2**53 + 1, 2**63, 2**64 - 1]


class Number:
    """An object that is a number by its methods."""

    def __float__(self):
        return 3.0

    def __int__(self):
        return 3

    def __complex__(self):
        return 3 + 0j


NUMBERS = {
    **{repr(n): n for n in (0, 1, -1, 300, *LIMITS, 2**64, -(2**63), -(2**63) - 1)},
    **{repr(x): x for x in (True, 2.5, -0.5, 1e300, 1e30, float("nan"))},
    **{repr(x): x for x in (float("inf"), -float("inf"), 1j, 2 + 0j)},
    "int64(300)": np.int64(300),
    "int64(-1)": np.int64(-1),
    "uint8(255)": np.uint8(255),
    "uint64(2**64-1)": np.uint64(2**64 - 1),
    "bool(True)": np.True_,
    "float32(nan)": np.float32("nan"),
    "float32(1e30)": np.float32(1e30),
    "float32(2.5)": np.float32(2.5),
    "float64(nan)": np.float64("nan"),
    "float64(-inf)": np.float64("-inf"),
    "float64(1e300)": np.float64(1e300),
    "float64(2**53)": np.float64(2**53),
    "float64(300.7)": np.float64(300.7),
    "float16(nan)": np.float16("nan"),
    "longdouble(300)": np.longdouble(300),
    "complex64(1j)": np.complex64(1j),
    "complex128(2)": np.complex128(2),
}
OTHERS = {
    "'3'": "3",
    "'nan'": "nan",
    "str_('3')": np.str_("3"),
    "b'3'": b"3",
    "''": "",
    "Number": Number(),
    "object": object(),
    "Decimal": decimal.Decimal("2.5"),
    "Fraction": fractions.Fraction(5, 2),
    "dict": {},
}


def changed(change):
    """Return a way to store: it changes an array of three elements, and returns it."""

    def store(xp, dtype, value):
        x = xp.zeros(3, dtype=dtype)
        change(xp, x, value)
        return x

    return store


def at(key):
    def change(xp, x, value):
        x[xp.asarray(key) if isinstance(key, np.ndarray) else key] = value

    return changed(change)


def flat_at(key):
    return changed(lambda xp, x, value: x.flat.__setitem__(key, value))


def with_attribute(name):
    return changed(lambda xp, x, value: setattr(x, name, value))


def diagonal(xp, dtype, value):
    x = xp.zeros((2, 2), dtype=dtype)
    xp.fill_diagonal(x, value)
    return x


MASK = np.array([True, False, True])

# Ways to store one value, in which it is taken as it is.
WAYS = {
    "x[0] =": at(0),
    "x[0,] =": at((0,)),
    "x[:] =": at(slice(None)),
    "x[1:] =": at(slice(1, None)),
    "x[...] =": at(...),
    "x[mask] =": at(MASK),
    "x[indices] =": at(np.array([0, 2])),
    "x[list] =": at([0, 2]),
    "x.flat[1] =": flat_at(1),
    "x.flat[:2] =": flat_at(slice(2)),
    "x.flat[list] =": flat_at([0, 2]),
    "x.flat =": with_attribute("flat"),
    "x.real =": with_attribute("real"),
    "x.fill": changed(lambda xp, x, value: x.fill(value)),
    "x.put": changed(lambda xp, x, value: x.put([0, 2], value)),
    "put": changed(lambda xp, x, value: xp.put(x, [0, 2], v=value)),
    "putmask": changed(lambda xp, x, value: xp.putmask(x, MASK, value)),
    "place": changed(lambda xp, x, value: xp.place(x, MASK, value)),
    "copyto": changed(lambda xp, x, value: xp.copyto(x, value, casting="unsafe")),
    "put_along_axis": changed(
        lambda xp, x, value: xp.put_along_axis(x, np.array([0, 2]), value, 0)
    ),
    "fill_diagonal": diagonal,
    "full": lambda xp, dtype, value: xp.full(3, value, dtype=dtype),
    "full by position": lambda xp, dtype, value: xp.full(3, value, dtype),
    "full_like": lambda xp, dtype, value: xp.full_like(xp.zeros(3, dtype), value),
    "full_like of a dtype": lambda xp, dtype, value: xp.full_like(
        xp.zeros(3, complex), value, dtype=dtype
    ),
    "insert": lambda xp, dtype, value: xp.insert(xp.zeros(3, dtype), 1, value),
    "pad": lambda xp, dtype, value: xp.pad(
        xp.zeros(3, dtype), 1, constant_values=value
    ),
    "array": lambda xp, dtype, value: xp.array([value, 0], dtype=dtype),
    "array of rows": lambda xp, dtype, value: xp.array([[0], (value,)], dtype),
    "asarray": lambda xp, dtype, value: xp.asarray((0, value), dtype=dtype),
    "fromiter": lambda xp, dtype, value: xp.fromiter(iter([value, 0]), dtype),
    "x[:2] = list": changed(lambda xp, x, value: x.__setitem__(slice(2), [value, 0])),
}

# NumPy's functions that drop imaginary parts with its `ComplexWarning`.
WARNING = ("array", "array of rows", "asarray", "fromiter")

# NumPy converts `None` to NaN, dates to days, and drops imaginary parts, with a warning
# for most; ndx refuses them.
REFUSED = {
    "None": None,
    "datetime64": np.datetime64(3, "D"),
}


def outcome(store, xp, dtype, value):
    """Return what is stored, as NumPy's array, or the class of the error."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            found = store(xp, dtype, value)
        except Exception as error:
            return type(error)
    assert type(found) is (ndx.NDArray if xp is face else np.ndarray)
    return np.asarray(found)


def is_complex(value):
    return isinstance(value, (complex, np.complexfloating))


def expected(way, dtype, value):
    """Return what a way to store is to do; see `outcome`."""
    real = np.dtype(dtype).kind != "c" or way == "x.real ="
    if is_complex(value) and real:
        return TypeError
    # NumPy checks its own scalars for signed integers, Python's for unsigned ones, too.
    number = value.item() if isinstance(value, np.number) else value
    number = int(number) if isinstance(number, np.longdouble) else number
    strict = outcome(at(0), np, dtype, number)
    return strict if isinstance(strict, type) else outcome(WAYS[way], np, dtype, value)


def check(way, dtype, value, given):
    wanted = expected(way, dtype, value)
    found = outcome(WAYS[way], face, dtype, given)
    if is_complex(value) and way in WARNING and not isinstance(found, type):
        wanted = outcome(WAYS[way], np, dtype, value)
    if isinstance(wanted, type):
        assert isinstance(found, type), f"stored {found!r}, not {wanted.__name__}"
        assert issubclass(found, wanted), f"{found.__name__}, not {wanted.__name__}"
    else:
        np.testing.assert_array_equal(found, wanted, strict=True)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("way", WAYS)
def test_numbers(way, dtype):
    for value in NUMBERS.values():
        if is_complex(value) and dtype == "bool":
            continue
        check(way, dtype, value, value)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("way", WAYS)
def test_elements_and_arrays_without_axes(way, dtype):
    for value in NUMBERS.values():
        if not isinstance(value, np.generic) or value.dtype.char in "eg":
            continue
        if is_complex(value) and dtype == "bool":
            continue
        check(way, dtype, value, ndx.asarray([value])[0])
        if "array" not in way and way not in ("fromiter", "x[:2] = list"):
            # In lists they are arrays, which NumPy casts.
            check(way, dtype, value, np.array(value))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("way", [way for way in WAYS if way.startswith("x")])
def test_objects(way, dtype):
    for value in OTHERS.values():
        check(way, dtype, value, value)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("way", [way for way in WAYS if way.endswith("] =")])
def test_what_is_no_number_is_refused(way, dtype):
    for value in REFUSED.values():
        assert outcome(WAYS[way], face, dtype, value) is TypeError


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("way", [way for way in WAYS if "array" not in way])
def test_masked_elements(way, dtype):
    found = outcome(WAYS[way], face, dtype, np.ma.masked)
    if np.dtype(dtype).kind in "iu":
        assert issubclass(found, np.ma.MaskError)
    elif np.dtype(dtype).kind == "f" or way.startswith("x"):
        assert dtype == "bool" or np.isnan(found).any()


@pytest.mark.parametrize("given", [300, np.int64(300), ndx.asarray([300])[0]])
def test_start_values_of_reductions_fit(given):
    x = face.zeros(3, dtype="int8")
    with pytest.raises(OverflowError):
        face.max(x, initial=given)
    with pytest.raises(OverflowError):
        x.max(initial=given)
    with pytest.raises(ValueError, match="NaN"):
        face.maximum.reduce(x, initial=face.asarray([np.nan])[0])
    assert face.sum(x, initial=face.asarray([2.5])[0]) == 2


@pytest.mark.parametrize("number", [128, -129, 2**64])
def test_pythons_integers_among_choices_fit(number):
    x = face.zeros(3, dtype="int8")
    where = [True, False, True]
    for choose in (
        lambda: face.where(where, x, number),
        lambda: face.where(face.asarray(where), number, x),
        lambda: face.select([where], [x], number),
        lambda: face.choose([0, 0, 1], [x, number]),
        lambda: x.choose([x, number]),
    ):
        with pytest.raises(OverflowError):
            choose()
    assert face.where(where, x, 127).dtype == "int8"
    assert face.where(where, x, number / 2).dtype == "float64"


def test_operands_of_at_fit():
    x = face.zeros(3, dtype="uint8")
    with pytest.raises(ValueError, match="nan can't be stored"):
        face.add.at(x, [0], np.nan)
    with pytest.raises(TypeError, match="imaginary"):
        face.add.at(x, [0], 1j)
    face.subtract.at(x, [0, 0], 1)
    face.add.at(x, [1], -1)
    assert x.tolist() == [254, 255, 0]


@pytest.mark.parametrize("dtype", [d for d in DTYPES if "int" in d])
def test_lists_of_elements_fit(dtype):
    element = ndx.asarray([float("nan")])[0]
    for make in (
        lambda: ndx.asarray([element], dtype=dtype),
        lambda: ndx.asarray([[1], (element,)], dtype=dtype),
        lambda: ndx.full(2, element, dtype=dtype),
        lambda: ndx.asarray([np.float64("nan")], dtype=dtype),
    ):
        with pytest.raises((ValueError, TypeError)):
            make()

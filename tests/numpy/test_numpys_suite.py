"""What NumPy's own tests have found (`make test-numpys-suite`), class by class."""

import io
import pickle

import numpy
import pytest
from helpers.numpy_versions import needs

import ndx
import ndx.numpy as np

INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]


class Holder:
    """An object whose `__array__` returns an NDArray."""

    def __init__(self, x):
        self.x = x

    def __array__(self, dtype=None, copy=None):
        return self.x


# ---------------------------------------------------------------- new arrays


@pytest.mark.parametrize("name", [*INTEGERS, "bool", "float32", "complex64", "float16"])
@pytest.mark.parametrize(
    "create", ["array", "asarray", "asanyarray", "ascontiguousarray", "copy"]
)
def test_a_scalar_of_numpys_keeps_its_dtype(create, name):
    scalar = numpy.dtype(name).type(2)
    function = getattr(np, create)
    assert function(scalar).dtype == name
    assert function([scalar]).dtype == name
    assert function([[scalar, scalar]]).dtype == name


def test_durations_become_integers():
    assert np.array(numpy.timedelta64(5, "s"), dtype="int64") == 5


def test_arrays_are_the_objects_of_an_array_of_objects():
    x, y = np.ones(2), np.ones(3)
    for dtype in (object, "O", numpy.dtype("O")):
        found = np.array([x, y, None], dtype=dtype)
        assert found[0] is x
        assert found[1] is y
    # NumPy casts its own scalars among objects to any dtype.
    assert type(np.array([x[0], y], dtype=object)[0]) is numpy.float64
    assert np.array([x, x], dtype=object).shape == (2, 2)


def test_dicts_are_the_objects_of_an_array_of_objects():
    first, second = {"a": 1}, {"b": np.ones(2)}
    for found in (np.array([first, second]), np.array([first, second], dtype=object)):
        assert found[0] is first
    assert np.array([second], dtype=object)[0] is second


def test_numbers_with_fields_keep_them():
    dtype = numpy.dtype(("i4", [("low", "i2"), ("high", "i2")]))
    x = np.array([1, 65536], dtype=dtype)
    assert x["high"].tolist() == [0, 1]
    assert np.zeros(2, dtype).dtype.names == ("low", "high")
    assert np.zeros(2, int).astype(dtype)["low"].tolist() == [0, 0]


def test_fields_that_are_not_aligned_are_results():
    text = "M 21 72\nF 35 58"
    dtype = [("sex", "S1"), ("age", "i4"), ("weight", "f4")]
    for load in (np.loadtxt, np.genfromtxt):
        _, age, weight = load(io.StringIO(text), dtype=dtype, unpack=True)
        assert age.tolist() == [21, 35]
        assert weight.tolist() == [72, 58]


@pytest.mark.parametrize("dtype", ["i4,f8", "S3", "M8[s]", "O", ">i4", "g"])
@pytest.mark.parametrize("like", ["empty_like", "zeros_like", "ones_like"])
def test_arrays_like_an_ndarray_have_any_dtype(like, dtype):
    found = getattr(np, like)(np.arange(3), dtype=dtype)
    assert type(found) is numpy.ndarray
    assert found.dtype == dtype


FOREIGN = ["O", "f2", "S5", "M8[s]", "i4,f8", ">i4", ">c16", "V8"]
FORMS = {
    "array": lambda np, d: np.array(np.arange(3), d),
    "lists": lambda np, d: np.array([np.arange(3), np.arange(3)], d),
    "astype": lambda np, d: np.arange(4).astype(d),
    "view": lambda np, d: np.arange(64, dtype="u1").view(d),
    "require": lambda np, d: np.require(np.arange(3), d),
    "full_like": lambda np, d: np.full_like(np.zeros(3, d), 1),
    "concatenate": lambda np, d: np.concatenate([np.zeros(3, d)] * 2),
    "sum": lambda np, d: np.arange(3).sum(dtype=d),
    "add": lambda np, d: np.add(np.arange(3), 1, dtype=d),
    "operator": lambda np, d: np.arange(3) + np.ones(3, int).astype(d),
    "reflected": lambda np, d: np.ones(3, int).astype(d) + np.arange(3),
    "scalar": lambda np, d: np.arange(3) * np.ones(3, int).astype(d)[0],
    "comparison": lambda np, d: np.arange(3) == np.ones(3, int).astype(d),
    "where": lambda np, d: np.where([True, False], np.arange(2), np.zeros(2, d)),
    "elements": lambda np, d: np.zeros(3, d)[np.arange(2)],
    "mask": lambda np, d: np.zeros(3, d)[np.arange(3) > 1],
    "take": lambda np, d: np.zeros(3, d).take(np.arange(2)),
    "repeat": lambda np, d: np.repeat(np.zeros(3, d), np.arange(3)),
    "choose": lambda np, d: np.choose(np.array([0, 1]), [np.zeros(2, d)] * 2),
    "number": lambda np, d: np.arange(3)[1].astype(d),
    "out": lambda np, d: np.add(
        np.arange(3), 1, out=np.zeros(3, d), casting="unsafe"
    ),
}  # fmt: skip


def outcome(form, module, dtype):
    """Return the class of an error, or the dtype, shape and elements of a result."""
    try:
        found = numpy.asarray(FORMS[form](module, numpy.dtype(dtype)))
    except Exception as error:
        return next(k for k in (TypeError, ValueError) if isinstance(error, k))
    return found.dtype, found.shape, found.tolist()


@pytest.mark.parametrize("dtype", FOREIGN)
@pytest.mark.parametrize("form", FORMS)
def test_dtypes_that_no_ndarray_has_are_numpys(form, dtype):
    assert outcome(form, np, dtype) == outcome(form, numpy, dtype)


# ---------------------------------------------------------------- operands


@pytest.mark.parametrize(
    "compute",
    [
        np.bincount,
        np.sum,
        np.asarray,
        np.negative,
        lambda a: np.add(a, 1),
        lambda a: np.concatenate([a, a]),
        lambda a: np.intersect1d(a, a),
        lambda a: np.arange(3.0) + a,
        lambda a: a == np.arange(3.0),
    ],
)
def test_an_object_may_return_an_ndarray_as_its_array(compute):
    x = np.arange(3)
    assert np.array_equal(compute(Holder(x)), compute(x))


def test_an_object_whose_array_is_an_ndarray_is_stored():
    x = np.zeros(3)
    x[:] = Holder(np.arange(3))
    assert x.tolist() == [0, 1, 2]


def test_what_is_returned_unchanged_is_the_operand():
    items = [1, 2]
    assert np.diff(items, n=0) is items


@needs("an ellipsis asks for an array")
def test_an_array_is_asked_for_by_an_ellipsis():
    element = np.ones(2)[0]
    for found in (np.add(element, 2, out=...), *np.divmod(element, 2, out=...)):
        assert isinstance(found, np.ndarray)
        found[...] = 7
        assert found == 7
    assert np.add(np.ones(2), 1, out=...).tolist() == [2, 2]


# ---------------------------------------------------------------- methods


def test_choices_are_positional():
    x = np.array([1, 0])
    assert x.choose([1, 2], [4, 5]).tolist() == [4, 2]
    assert x.choose([[1, 2], [4, 5]]).tolist() == [4, 2]
    assert x.choose(1, 2, mode="clip").tolist() == [2, 1]
    out = np.zeros(2, int)
    assert x.choose([1, 2], [4, 5], out=out) is out


@pytest.mark.parametrize("name", ["conj", "conjugate"])
def test_conjugates_are_written_to_an_output(name):
    out = np.zeros(2, complex)
    assert getattr(np.array([1j, 2]), name)(out) is out
    assert out.tolist() == [-1j, 2]


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("astype", ("i4",)), ("astype", ("f2",)), ("astype", ("O",)),
        ("astype", ("M8[s]",)), ("view", ("i8",)), ("conj", ()), ("byteswap", ()),
        ("getfield", ("i4",)), ("clip", (0, 1)),
    ],
)  # fmt: skip
def test_methods_of_numbers_return_numbers(name, arguments):
    found = getattr(np.array([1.5])[0], name)(*arguments)
    expected = getattr(numpy.float64(1.5), name)(*arguments)
    assert not isinstance(found, np.ndarray)
    assert type(found.item() if hasattr(found, "item") else found) is type(
        expected.item() if hasattr(expected, "item") else expected
    )
    assert found == expected
    assert hash(found) == hash(expected)


def test_a_view_as_the_own_class():
    x = np.arange(3)
    view = x.view(type(x))
    view[0] = 7
    assert x[0] == 7
    assert type(x.view(np.ndarray)) is ndx.NDArray


def test_flags_and_places():
    x = np.zeros((2, 3), order="F")
    assert x.flags.fortran
    assert x.flags["FORTRAN"] == numpy.zeros((2, 3), order="F").flags["FORTRAN"]
    for shape in ((2, 3), (4,), (2, 0), ()):
        ours, numpys = np.zeros(shape).flat, numpy.zeros(shape).flat
        while True:
            assert (ours.index, ours.coords) == (numpys.index, numpys.coords)
            if next(ours, None) is None:
                break
            if ours.index < len(ours):
                next(numpys)
            else:
                break


# ---------------------------------------------------------------- names


def test_functions_are_found_by_numpys():
    """NumPy gives its own to `__array_function__` and `__array_ufunc__`."""
    handled = {np.sum: "sum", np.add: "add"}
    assert handled[numpy.sum] == "sum"
    assert handled[numpy.add] == "add"
    assert numpy.add == np.add != numpy.subtract
    assert np.sum == numpy.sum != np.mean
    assert pickle.loads(pickle.dumps(np.add)) is np.add

    class Mine:
        def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
            return handled[ufunc]

        def __array_function__(self, func, types, args, kwargs):
            return handled[func]

    assert np.add(Mine(), 1) == "add"
    assert np.ones(2) + Mine() == "add"
    assert np.sum(Mine()) == "sum"


def test_names_that_numpy_had_say_what_to_take():
    with pytest.raises(AttributeError, match=r"'ndx\.numpy'.*\n.*deprecated alias"):
        _ = np.float
    with pytest.raises(AttributeError, match=r"module 'ndx.numpy' has no attribute"):
        _ = np.no_such_name


def test_modules_have_the_rest_of_numpys_names():
    assert np.polynomial.polyutils.mapdomain([0.0], [0, 1], [0, 2]) == 0
    assert callable(np.polynomial.chebyshev._cseries_to_zseries)
    assert np.testing.break_cycles is numpy.testing.break_cycles


def test_generators_of_numpys_are_of_our_classes():
    rng = numpy.random.default_rng(1)
    assert isinstance(rng, np.random.Generator)
    assert isinstance(rng.bit_generator, np.random.PCG64)
    assert not isinstance(rng.bit_generator, np.random.MT19937)
    assert isinstance(rng.bit_generator.seed_seq, np.random.SeedSequence)
    assert type(np.random.default_rng(rng).random(2)) is ndx.NDArray

    class Mine(np.random.Generator):
        pass

    assert isinstance(Mine(rng.bit_generator), np.random.Generator)
    assert not isinstance(rng, Mine)


@pytest.mark.parametrize("suffix", ["", ".gz", ".bz2", ".xz", ".lzma"])
def test_compressed_text_is_read_by_its_suffix(suffix, tmp_path):
    path = str(tmp_path / f"x.txt{suffix}")
    np.savetxt(path, np.arange(3.0))
    assert np.loadtxt(path).tolist() == numpy.loadtxt(path).tolist() == [0, 1, 2]


def test_the_build_of_numpy_is_shown():
    assert np.__config__ is numpy.__config__


def test_aliases_have_the_names_of_numpys_ufuncs():
    for name in ("abs", "acos", "conj", "mod", "pow", "sin"):
        ours = getattr(np, name)
        assert ours.__name__ == getattr(numpy, name).__name__
        assert pickle.loads(pickle.dumps(ours)) is ours
    assert np.abs is np.absolute


def test_named_items_are_compared():
    found = np.linalg.slogdet(np.ones((0, 0), complex))
    np.testing.assert_equal(found, (1, 0))
    with pytest.raises(AssertionError):
        np.testing.assert_equal(found, (1, 1))


def test_an_array_that_an_object_returns_stays_the_same():
    x = np.arange(3)
    assert np.asarray(Holder(x)) is x
    assert np.array(Holder(x), copy=None) is x


def test_nothing_is_left_to_numpy():
    with pytest.warns(RuntimeWarning, match="Mean of empty slice"):
        assert numpy.isnan(np.mean([]))
    with pytest.raises(ValueError, match="Too many bins"):
        np.histogram(np.array([1, 1 + 2e-16] * 10), bins=10)

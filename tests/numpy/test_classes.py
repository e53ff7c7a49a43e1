"""`ndarray`, `ufunc`, `RandomState` of `ndx.numpy`, subclasses, and private names."""

import operator
import pickle

import numpy
import pytest

import ndx
import ndx.numpy as np


class Named(np.ndarray):
    """NumPy's guide: https://numpy.org/doc/stable/user/basics.subclassing.html"""

    def __new__(cls, data, name=None):
        made = np.asarray(data).view(cls)
        made.name = name
        return made

    def __array_finalize__(self, other):
        self.name = getattr(other, "name", None)

    def total(self):
        return super().sum()


def test_a_subclass_is_one_of_numpys():
    x = np.arange(3.0)
    named = Named(x, "x")
    assert issubclass(Named, numpy.ndarray)
    assert issubclass(Named, np.ndarray)
    assert isinstance(named, np.ndarray)
    assert type(named + x) is type(x + named) is type(named[1:]) is Named
    assert (named * 2).name == "x"
    assert named.total() == 3.0
    named[0] = 5.0
    assert x[0] == 5.0  # over the memory of ours
    assert pickle.loads(pickle.dumps(named)).tolist() == x.tolist()
    assert type(Named.__new__(Named, [1.0])) is Named
    assert np.ndarray.__new__(Named, (2,)).shape == (2,)


def test_what_is_an_array():
    x = np.ones(2)
    for array in (x, x[0, ...], np.zeros(()), numpy.ones(2), np.array(["a"])):
        assert isinstance(array, np.ndarray)
    for other in (x[0], numpy.float64(1), 1.0, [1.0], None):
        assert not isinstance(other, np.ndarray)
    assert issubclass(ndx.NDArray, np.ndarray)
    assert issubclass(np.ndarray, np.ndarray)
    assert not issubclass(type(x[0]), np.ndarray)
    assert not issubclass(float, np.ndarray)


@pytest.mark.parametrize("given", [np.ndarray, numpy.ndarray])
def test_views_as_a_class(given):
    x = np.arange(3.0)
    for view in (x.view(given), x.view(type=given), x.view("int64", given)):
        assert isinstance(view, ndx.NDArray)
        assert view.base is not None or numpy.shares_memory(view, x)
    assert type(x.view(numpy.matrix)) is numpy.matrix
    assert x.view("int64", numpy.matrix).dtype == "int64"


def test_what_is_a_ufunc():
    for ufunc in (np.add, numpy.add, np.frompyfunc(abs, 1, 1)):
        assert isinstance(ufunc, np.ufunc)
    assert not isinstance(np.sum, np.ufunc)
    assert issubclass(numpy.ufunc, np.ufunc)
    with pytest.raises(TypeError, match="frompyfunc"):
        np.ufunc()


def test_the_global_state_is_a_random_state():
    assert isinstance(np.random.mtrand._rand, np.random.RandomState)
    assert isinstance(np.random.RandomState(1), numpy.random.RandomState)
    assert not isinstance(1, np.random.RandomState)


def test_functions_that_are_builtins_in_numpy_do_not_bind():
    class Model:
        make = np.array
        add = np.add
        total = np.sum

    assert Model().make([1, 2]).tolist() == [1, 2]
    assert Model().add(1, 2) == 3
    with pytest.raises(TypeError):
        Model().total([1, 2]) + 1


def test_names_of_numpy_are_reachable():
    for name in (
        "format",
        "mixins",
        "NumpyVersion",
        "scimath",
        "recfunctions",
        "npyio",
    ):
        assert getattr(np.lib, name) is not None
    assert np._NoValue is numpy._NoValue
    assert np._CopyMode is numpy._CopyMode
    with pytest.raises(AttributeError):
        getattr(np, "_nosuch")  # noqa: B009
    with pytest.raises(AttributeError):
        getattr(np.lib, "nosuch")  # noqa: B009


def test_classes_are_equal_to_those_of_numpys_names():
    x, total = np.ones(2), np.ones(2).sum()
    assert type(x) == np.ndarray  # noqa: E721
    assert {np.ndarray: "array", float: "number"}[type(x)] == "array"
    assert np.ndarray not in (numpy.ndarray, float)
    assert type(total) == np.float64  # noqa: E721
    assert type(total) in (float, np.float64)
    assert type(total) not in (float, np.float32)
    for dtype in ("bool", "int8", "uint64", "float32", "complex64", "complex128"):
        number = np.ones(1, dtype)[0]
        assert {numpy.dtype(dtype).type: 1}[type(number)] == 1
        assert numpy.dtype(type(number)) == dtype
        assert np.zeros(2, type(number)).dtype == dtype
        assert numpy.issubdtype(type(number), numpy.dtype(dtype).type)
        assert pickle.loads(pickle.dumps(type(number))) is type(number)
    assert operator.ne(type(total), np.float64) is False
    with pytest.raises(TypeError):
        operator.lt(type(total), np.float64)


class Units(np.ndarray):
    """Calls methods of the class by its name, as many libraries do."""

    def __add__(self, other):
        return np.ndarray.__add__(self, other)

    def __getitem__(self, key):
        return np.ndarray.__getitem__(self, key)

    def __eq__(self, other):
        return np.ndarray.__eq__(self, other)

    __hash__ = None

    def sum(self, *args):
        return np.ndarray.sum(self, *args)


def test_methods_of_the_class_take_arrays_of_both_kinds():
    x = np.arange(3.0)
    for kind in (x, numpy.arange(3.0), x.view(Units)):
        assert np.ndarray.sum(kind) == 3.0
        assert np.ndarray.__add__(kind, 1).tolist() == [1.0, 2.0, 3.0]
        assert np.ndarray.__eq__(kind, 1).tolist() == [False, True, False]
        assert np.ndarray.__getitem__(kind, 1) == 1.0
        assert np.ndarray.T.__get__(kind).tolist() == [0.0, 1.0, 2.0]
        assert type(np.ndarray.reshape(kind, (3, 1))) is type(kind[:0])
    own = x.view(Units)
    assert type(own + x) is Units
    assert (own == x).all()
    assert own.sum() == 3.0


def test_views_of_subclasses_as_the_class():
    x = np.arange(3.0)
    own = x.view(Units)
    for view in (own.view(np.ndarray), own.view(type=np.ndarray), own.view(type(x))):
        assert type(view) is ndx.NDArray
        view[0] += 1
    assert x[0] == own[0] == 3.0
    assert own.view("int64", np.ndarray).dtype == "int64"
    assert type(own.view("int64")) is Units


def test_functions_of_python_bind_as_methods():
    class Model:
        total = np.sum

    assert type(Model().total).__name__ == "method"


def test_scalars_of_all_dtypes_give_scalars():
    assert type(np.sqrt(np.float32(2))) is numpy.float32
    assert type(np.add(np.int8(1), 2)) is numpy.int8
    assert type(np.maximum(np.complex64(1), np.float32(2))) is numpy.complex64
    assert type(np.sin(np.ones(1)[0])) is type(np.ones(1)[0])


@pytest.mark.parametrize(
    "name", ["Generator", "MT19937", "PCG64", "Philox", "RandomState", "SeedSequence"]
)
def test_numpys_objects_of_random_are_instances(name):
    ours, numpys = getattr(np.random, name), getattr(numpy.random, name)
    made = numpys(numpy.random.PCG64(1)) if name == "Generator" else numpys(1)
    assert isinstance(made, ours)
    assert isinstance(
        ours(np.random.PCG64(1)) if name == "Generator" else ours(1), ours
    )
    assert not isinstance(object(), ours)

    class Derived(ours):
        pass

    assert not isinstance(made, Derived)
    assert issubclass(Derived, ours)


def test_a_seed_of_ours_is_a_seed_sequence():
    assert isinstance(np.random.PCG64(3).seed_seq, np.random.SeedSequence)
    assert (
        type(np.random.default_rng(numpy.random.default_rng(1))) is np.random.Generator
    )


def test_functions_are_equal_to_numpys():
    """Classes that override functions look these up in tables."""
    for name in ("add", "sin", "sum", "concatenate", "array", "linspace", "where"):
        ours, numpys = getattr(np, name), getattr(numpy, name)
        assert ours == numpys
        assert numpys == ours
        assert {ours: name}[numpys] == {numpys: name}[ours] == name
        assert ours != np.subtract
        assert ours != numpy.subtract
        assert ours in (numpy.subtract, numpys)
    assert np.abs == np.absolute

    class Overriding(np.ndarray):
        handled = {np.add: "added", np.multiply: "multiplied"}  # noqa: RUF012

        def __array_ufunc__(self, function, method, *inputs, **kwargs):
            return self.handled[function]

        def __array_function__(self, function, types, args, kwargs):
            return {np.sum: "summed"}[function]

    own = np.arange(3).view(Overriding)
    assert np.add(own, 1) == own + np.arange(3) == "added"
    assert np.multiply(2, own) == "multiplied"
    assert np.sum(own) == numpy.sum(own) == "summed"


def test_scalars_of_types_that_know_their_own_take_numbers():
    given = np.arange(5)[2]
    assert np.timedelta64(given, "D") == numpy.timedelta64(2, "D")
    assert type(np.timedelta64(given, "D")) is numpy.timedelta64
    assert np.void(given) == numpy.void(2)
    assert np.void(b"ab") == numpy.void(b"ab")


@pytest.mark.parametrize("name", ["timedelta64", "void"])
def test_classes_of_scalars_are_those_of_numpy(name):
    ours, numpys = getattr(np, name), getattr(numpy, name)
    dtype = numpy.dtype("V3" if name == "void" else "m8[s]")
    assert ours == numpys
    assert {numpys: 1}[ours] == 1
    assert numpy.issubdtype(dtype, ours)
    assert dtype.type == ours
    one = numpy.zeros(1, dtype)[0]
    assert isinstance(one, ours)
    assert not isinstance(one, type("Mine", (ours,), {}))
    assert not issubclass(numpy.float64, ours)
    assert numpy.zeros(2, dtype).astype(ours).dtype.type is numpys
    assert pickle.loads(pickle.dumps(ours)) is ours


def test_a_subclass_of_a_scalar_class_is_called_as_numpys():
    mine = type("Mine", (np.timedelta64,), {})
    assert mine(3, "s") == numpy.timedelta64(3, "s")
    assert issubclass(mine, np.timedelta64)
    assert not issubclass(numpy.timedelta64, mine)

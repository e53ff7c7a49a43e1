"""`ndarray`, `ufunc`, `RandomState` of `ndx.numpy`, subclasses, and private names."""

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

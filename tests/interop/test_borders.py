"""Functions of other libraries that are given NumPy's arrays for ours."""

import inspect
import math
import pickle
import subprocess
import sys
import types
import warnings

import numpy as np
import pytest
from ndx._borders import (
    CELLS,
    ITEMS,
    VALUE,
    VIEW,
    Border,
    calling_with_numpys,
    install,
)

import ndx

SOURCE = '''
import warnings

def identity(value, other=None, *, third=None):
    """Return the arguments."""
    return value, other, third

def infer(value, other=None):
    return value if other is None else other

def complain(value):
    warnings.warn("a complaint", stacklevel=2)

class Base:
    def __new__(cls, value=None):
        self = object.__new__(cls)
        self.value = value
        return self

    def method(self, value):
        return value

    def __getitem__(self, key):
        return key

class Derived(Base):
    pass
'''


@pytest.fixture
def library(monkeypatch):
    """A library of two modules; the second has imported a function by its name."""
    first, second = types.ModuleType("bordered"), types.ModuleType("bordered.second")
    monkeypatch.setitem(sys.modules, "bordered", first)
    monkeypatch.setitem(sys.modules, "bordered.second", second)
    exec(SOURCE, {"__name__": "bordered"} | vars(first), vars(first))
    for name in ("identity", "infer", "complain", "Base", "Derived"):
        getattr(first, name).__module__ = "bordered"
    vars(first)["complain"].__globals__.update(vars(first))
    second.identity = first.identity
    first.__version__ = "3.2"
    return first


def borders(how, owner="bordered", name="identity", argument="value"):
    return [Border(owner, name, {argument: how})]


def test_a_view_is_a_view(library):
    install("bordered", borders(VIEW))
    for x in (ndx.ones((2, 3)), ndx.asarray(4.0)):
        found = library.identity(x)[0]
        assert type(found) is np.ndarray
        assert found.shape == x.shape
        found[...] = 7.0
        assert ndx.all(x == 7.0)


def test_a_value_without_dimensions_is_numpys_scalar(library):
    install("bordered", borders(VALUE))
    assert type(library.identity(ndx.asarray(2.5))[0]) is np.float64
    assert type(library.identity(ndx.asarray([1, 2]).sum())[0]) is np.int64
    assert type(library.identity(ndx.asarray([2.5]))[0]) is np.ndarray
    found = library.identity({"a": ndx.asarray(True), "b": 1})[0]
    assert [type(each) for each in found.values()] == [np.bool, int]


@pytest.mark.parametrize("kind", [list, tuple])
def test_items_of_collections_are_converted(library, kind):
    install("bordered", borders(ITEMS))
    x, k = ndx.asarray([1, 2]), ndx.asarray(1)
    found = library.identity(kind([x, [k], slice(k, None), "a"]))[0]
    assert type(found) is kind
    assert [type(each) for each in found] == [np.ndarray, list, slice, str]
    assert type(found[1][0]) is type(found[2].start) is np.int64


def test_cells_of_objects_are_converted(library):
    install("bordered", borders(CELLS, name="infer"))
    cells = np.empty((2, 2), dtype=object)
    cells[0] = ndx.asarray(1.5), "a"
    cells[1] = None, ndx.asarray([1.0, 2.0])
    found = library.infer(cells)
    assert found.shape == (2, 2)
    assert [type(each).__name__ for each in found.flat] == [
        "float64", "str", "NoneType", "ndarray"]  # fmt: skip
    assert isinstance(cells[0, 0], ndx.NDArray)
    assert library.infer(cells[:, :1][::-1])[1, 0] == 1.5
    assert library.infer(cells, 3.0) == 3.0  # no objects


@pytest.mark.parametrize("cells", [[1, "a"], [None], [], [[1, 2]]])
def test_cells_without_ndarrays_are_passed_as_they_are(library, cells):
    install("bordered", borders(CELLS, name="infer"))
    for values in (np.array(cells, dtype=object), np.array(cells, dtype=str), cells):
        assert library.infer(values) is values
    assert library.infer(ready := np.empty(2, dtype=object)) is ready


@pytest.mark.parametrize("how", [VIEW, VALUE, ITEMS])
@pytest.mark.parametrize(
    "value",
    [
        None, 1, "a", [1, [2]], (1, (2,)), {1, 2}, {"a": [1]}, slice(1, 2), np.ones(2),
        np.array([1, "a"], dtype=object), frozenset({1}), object(),
    ],
    ids=lambda value: type(value).__name__,
)  # fmt: skip
def test_what_has_no_ndarrays_is_passed_as_it_is(library, how, value):
    install("bordered", borders(how))
    assert library.identity(value)[0] is value
    assert library.identity(value=value)[0] is value


def test_keywords_and_other_arguments(library):
    rows = [Border("bordered", "identity", {"other": VALUE, "third": VALUE})]
    install("bordered", rows)
    x = ndx.asarray([1.0])
    assert library.identity(x)[0] is x
    value, other, third = library.identity(x, x, third=x)
    assert value is x
    assert type(other) is type(third) is np.ndarray
    assert type(library.identity(x, other=x)[1]) is np.ndarray


def test_all_builtin_functions_of_a_module(library):
    """Their arguments have no names that could be asked for."""
    library.power, library.number = math.pow, 3
    library.identity_of = library.identity
    install("bordered", [Border("bordered", "*", {"*": ITEMS})])
    assert library.power(ndx.asarray(2.0), ndx.asarray(3)) == 8.0
    assert (library.power.__name__, library.number) == ("pow", 3)
    assert library.identity is library.identity_of
    once = library.power
    install("bordered", [Border("bordered", "*", {"*": ITEMS})])
    assert library.power is once


def test_the_function_is_the_same_for_readers(library):
    before = library.identity
    install("bordered", borders(VALUE))
    now = library.identity
    assert now is not before
    assert (now.__name__, now.__doc__, now.__module__) == (
        before.__name__, before.__doc__, before.__module__)  # fmt: skip
    assert inspect.signature(now) == inspect.signature(before)
    assert pickle.loads(pickle.dumps(now)) is now


def test_modules_that_imported_it_have_it_once(library):
    install("bordered", borders(VALUE))
    once = library.identity
    assert sys.modules["bordered.second"].identity is once
    install("bordered", borders(VALUE))
    assert library.identity is once


def test_methods_operators_and_constructors(library):
    for name, argument in (("method", "value"), ("__getitem__", "key"),
                           ("__new__", "value")):  # fmt: skip
        install("bordered", borders(VALUE, "bordered:Derived", name, argument))
    x = ndx.asarray([1.0])
    for cls in (library.Base, library.Derived):
        assert type(cls(x)) is cls
        assert type(cls(x).value) is type(cls(value=x).value) is np.ndarray
        assert type(cls().method(x)) is type(cls().method(value=x)) is np.ndarray
        assert type(cls()[x]) is np.ndarray


def test_warnings_name_the_callers_line(library):
    install("bordered", borders(VALUE, name="complain"))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        library.complain(ndx.ones(2))
    assert [each.filename for each in caught] == [__file__]


@pytest.mark.parametrize(
    "border",
    [
        Border("bordered", "gone", {"value": VALUE}),
        Border("bordered", "identity", {"renamed": VALUE}),
        Border("bordered:Gone", "method", {"value": VALUE}),
        Border("bordered.gone:Base", "method", {"value": VALUE}),
        Border("bordered:Base", "gone", {"value": VALUE}),
        Border("bordered:Base", "__eq__", {"value": VALUE}),  # of `object`
        Border("bordered:Base", "__init_subclass__", {"value": VALUE}),
    ],
)
def test_another_version_of_the_library_is_told(library, border):
    """What is as it was is replaced all the same."""
    rows = [border, *borders(VALUE, "bordered:Base", "method")]
    with pytest.raises(ImportError, match=r"bordered 3\.2 lacks .*numpy\.asarray\(x\)"):
        install("bordered", rows)
    assert type(library.Base().method(ndx.ones(2))) is np.ndarray


def test_a_wrong_answer_is_told(library):
    with pytest.raises(ImportError, match=r"bordered 3\.2 does not use"):
        install("bordered", borders(VALUE), lambda: False)
    install("bordered", borders(VALUE), lambda: True)


def test_stale_arrays_are_refused(library):
    install("bordered", borders(ITEMS))
    with ndx.workspace():
        x = ndx.ones(3)
    with pytest.raises(ndx.StaleArrayError):
        library.identity([x])


def test_views_keep_their_memory(library):
    install("bordered", borders(VALUE))
    with ndx.workspace():
        found = library.identity(ndx.full(3, 2.0))[0]
    with ndx.workspace():
        ndx.zeros(3)
    assert found.tolist() == [2.0] * 3


@pytest.mark.parametrize("library", ["pandas", "scipy.sparse"])
def test_the_check_at_import_takes_no_memory(library):
    """It would count for a limit, and for what a workspace learns of its cycles."""
    pytest.importorskip(library)
    code = (
        "import ndx\n"
        "before = ndx.memory.stats()\n"
        f"import {library}\n"
        f"import sys; assert 'ndx.{library.partition('.')[0]}' in sys.modules\n"
        "assert ndx.memory.stats() == before\n"
    )
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True)


def test_a_function_is_called_with_numpys_arrays():
    def given(*args, **kwargs):
        return [type(value) for value in (*args[0], *args[1:], *kwargs.values())]

    call = calling_with_numpys({given.__class__: given})
    x = ndx.ones(2)
    found = call(given, (), ([x, x[0], 2.5], x), {"k": ndx.asarray(1)})
    assert found == [np.ndarray, np.float64, float, np.ndarray, np.int64]
    assert call(given.__class__, (), ((),)) == []

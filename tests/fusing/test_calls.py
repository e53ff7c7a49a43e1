"""Calls of functions and methods: recorded only if they are right, as they are."""

import threading

import numpy as np
import pytest
from fusing.compare import assert_as_plain, described
from ndx._methods.numpy_function_table import recorder_of

import ndx
import ndx._fusing.calls  # it sets the recorders
import ndx.numpy as xnp
from ndx._api.elementwise import UFUNCS

# Arguments after the array, right and wrong.
MORE = [
    ((), {}), ((0,), {}), ((1, 2), {}), ((1, 2, None), {}), (("f4",), {}),
    ((2.0, "f4"), {}), (("f4", False), {}), ((True,), {}), ((None,) * 9, {}),
    ((), {"unknown": 1}), ((), {"dtype": "f4"}), ((2,), {"dtype": "f4"}),
    ((), {"axis": 0}), ((), {"axis": (0, 1)}), ((), {"axis": True}),
    ((), {"axis": (0, 0)}), ((), {"axis": 2}), ((), {"axis": -3}), ((), {"axis": [0]}),
    ((), {"axis": np.int8(1)}), ((), {"axis": 0.0}), ((), {"axis": "a"}),
    ((0,), {"keepdims": True}), ((), {"keepdims": True}), ((), {"keepdims": 1}),
    ((), {"copy": False}), ((), {"copy": None}), (("f4",), {"copy": True}),
    ((), {"out": None}), ((), {"out": 3}), ((), {"device": "cpu"}),
    ((), {"device": None}), ((), {"order": "C"}), (("F",), {}), ((2.5,), {}),
    ((2j,), {}), ((True,), {"dtype": bool}), ((), {"min": 1}),
    ((), {"min": 1, "max": 2}),
    ((), {"a": 1}), ((), {"x": 1}), ((), {"x1": 1, "x2": 1}), ((1, 2, 3, 4), {}),
]  # fmt: skip


def recorded(owner):
    """Return the names of the functions that are recorded."""
    names = [n for n in dir(owner) if callable(getattr(owner, n)) and n[0] != "_"]
    return [name for name in names if recorder_of(getattr(owner, name))]


def arrays():
    values = np.asarray([[1.5, 2.0, 4.0], [3.0, 0.0, -1.0]])
    return ndx.asarray(values.T.copy()).T, ndx.asarray(values.astype(np.int64))


def check(function):
    """Check calls with arguments of all kinds."""

    def call(*args, **kwargs):
        made = function(*args, **kwargs)
        # Elements of new arrays may be anything.
        return made.dtype if function.__name__ == "empty_like" else made

    for args, kwargs in MORE:
        assert_as_plain(lambda a, n, args=args, kw=kwargs: call(a, *args, **kw), arrays)
        assert_as_plain(lambda a, n, args=args, kw=kwargs: call(n, *args, **kw), arrays)
    assert_as_plain(lambda a, n: call(a, a), arrays)
    assert_as_plain(lambda a, n: call(a, n, a), arrays)
    assert_as_plain(lambda a, n: call(a, a, a, a), arrays)
    assert_as_plain(lambda a, n: call(a, out=a), arrays)
    assert_as_plain(lambda a, n: call(a, a, out=a), arrays)
    assert_as_plain(lambda a, n: call(), arrays)
    assert_as_plain(lambda a, n: call(x=a), arrays)
    assert_as_plain(lambda a, n: call(a=a), arrays)


@pytest.mark.parametrize("name", sorted({*recorded(ndx), *UFUNCS, "where"}))
def test_functions_of_ndx(name):
    check(getattr(ndx, name))


@pytest.mark.parametrize("name", [*recorded(np), "where", "add", "exp", "clip"])
def test_functions_of_numpy(name):
    check(getattr(np, name))


@pytest.mark.parametrize("name", recorded(ndx.NDArray))
def test_methods(name):
    def method(x, *args, **kwargs):
        return getattr(x, name)(*args, **kwargs)

    check(method)


def test_wrong_calls_can_be_caught():
    def total(a, n):
        try:
            return ndx.sum(a, 0)
        except TypeError:
            return a + 1

    assert "stage over" in assert_as_plain(total, arrays).explain()


@ndx.fuse
def doubled(u):
    return u + u


@ndx.fuse
def add_one_to(u, by=1.0):
    u += by


class Model:
    """Has an array that is not an argument."""

    def __init__(self):
        self.u = ndx.asarray([3.0, 1.0, 2.0])


@pytest.mark.parametrize(
    ("call", "fuses"),
    [
        (lambda u: ndx.add(u, 1.0, out=u), True),
        (lambda u: ndx.clip(u, 0.0, 2.0, out=u), True),
        (lambda u: ndx.sum(u), True),
        (lambda u: ndx.concat([u, u]), False),
        (lambda u: ndx.linalg.outer(u, u), False),
        (lambda u: doubled(u), True),
        (lambda u: add_one_to(u), True),
        (lambda u: u.sort(), False),
    ],
)
def test_calls_with_arrays_that_are_not_arguments(call, fuses):
    @ndx.fuse
    def step(self, a):
        call(self.u)
        return a + 1

    model, expected = Model(), Model()
    for _ in range(3):
        step(model, ndx.ones(2))
        call(expected.u)
        assert model.u.tolist() == expected.u.tolist()
    assert ("stage over" in step.explain()) is fuses


@pytest.mark.parametrize("known", [False, True])
@pytest.mark.parametrize(
    "call", [lambda total, u, by: total(u, by), lambda total, u, by: total(u, 2.0)]
)
def test_fused_functions_of_arrays_that_are_not_arguments(call, known):
    total = ndx.fuse(lambda u, by: ndx.sum(u * by))
    model = Model()
    if known:
        total(model.u, 2.0)

    @ndx.fuse
    def step(self, a, by):
        return a + float(call(total, self.u, by))

    for value in 1.0, 2.0, 4.0:
        model.u[...] = value
        assert step(model, ndx.ones(2), 2.0).tolist() == [1 + 6 * value] * 2
    assert "__float__" in step.explain()


def test_objects_are_made_once():
    found = []

    class Owner:
        def __init__(self):
            self.x = ndx.ones(3)

        def __del__(self):
            found.append(float(ndx.sum(self.x)))

    @ndx.fuse
    def step(a):
        Owner()
        return a + 1.0

    assert step(ndx.ones(2)).tolist() == [2.0, 2.0]
    assert found == [3.0]
    assert "called as it is: it calls Owner" in step.explain()


def nested():
    items = []
    items += [items, items]
    return items


def deep():
    items = [1.0]
    for _ in range(5000):
        items = [items]
    return items


@pytest.mark.threads
@pytest.mark.parametrize("make", [nested, deep])
def test_nested_lists_in_a_fused_function(make):
    errors = []

    def convert():
        with pytest.raises((ValueError, RecursionError)) as caught:
            ndx.asarray(make())
        errors.append(described(caught.value))

    def record(a):
        convert()
        thread = threading.Thread(target=convert)
        thread.start()
        thread.join()
        return a + 1

    convert()
    ndx.fuse(record)(ndx.ones(2))
    assert len(errors) == 3
    assert len(set(errors)) == 1


@pytest.mark.threads
def test_threads_are_started_once():
    found = []
    u = ndx.asarray([1.0, 2.0])

    def record(a):
        thread = threading.Thread(target=lambda: found.append(ndx.sum(u).tolist()))
        thread.start()
        thread.join()
        return a + 1

    fused = ndx.fuse(record)
    fused(ndx.ones(2))
    assert found == [3.0]
    assert "called as it is: it calls threading.Thread" in fused.explain()


def test_namespaces():
    def both(a, b):
        spaces = a.__array_namespace__(), b.__array_namespace__()
        return a + 1, [space.__name__ for space in spaces]

    fused = assert_as_plain(both, lambda: (ndx.ones(2), np.ones(2)))
    assert "stage over" in fused.explain()


@pytest.mark.parametrize("name", ["bmat", "promote_types", "asarray", "iterable"])
@pytest.mark.filterwarnings("ignore::PendingDeprecationWarning")
def test_functions_that_numpy_does_not_dispatch(name):
    assert_as_plain(lambda a, n: getattr(xnp, name)(a), arrays)
    assert_as_plain(lambda a, n: getattr(xnp, name)(a, a), arrays)


def test_fused_functions_without_arrays_are_inlined():
    @ndx.fuse
    def scale(n):
        return 2.0 * n

    @ndx.fuse
    def step(a):
        return a * scale(3) + scale(n=4)

    for _ in range(3):
        assert step(ndx.ones(2)).tolist() == [14.0, 14.0]
    assert "stage over" in step.explain()


@pytest.mark.parametrize("weights", [[2.0], {"w": 2.0}, np.zeros(1, "O")])
def test_calls_without_a_signature_in_a_fused_function(weights):
    """An array that is not an argument may change; so may a list."""
    other = ndx.ones(3)

    @ndx.fuse
    def inner(a, weights):
        return a * 2

    @ndx.fuse
    def outer(x):
        return x + float(inner(other, weights)[0])

    x = ndx.ones(3)
    assert outer(x).tolist() == [3, 3, 3]
    other[0] = 100
    assert outer(x).tolist() == [201] * 3
    assert "__float__" in outer.explain()


def test_calls_that_are_not_recorded_yet_in_a_fused_function():
    other = ndx.ones(3)

    @ndx.fuse
    def inner(a, n):
        return a * n

    for n in range(20):
        inner(other, n)

    @ndx.fuse
    def outer(x):
        return x + float(inner(other, 1000)[0])

    x = ndx.ones(3)
    assert outer(x).tolist() == [1001] * 3
    other[0] = 2
    assert outer(x).tolist() == [2001] * 3

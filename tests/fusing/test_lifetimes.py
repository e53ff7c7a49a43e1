"""What a fused function keeps: nothing that the function doesn't keep itself.

Nor has it effects of its own: each call has those of the function, once.
"""

import functools
import gc
import itertools
import signal
import threading
import weakref

import pytest
from helpers.together import skip_where_classes_stay

import ndx
from ndx._fusing.tracing import Trace


class Thing:
    """Has attributes, which are given."""

    def __init__(self, **attributes):
        self.__dict__.update(attributes)


class Model(Thing):
    """Has a fused method."""

    @ndx.fuse
    def apply(self, x):
        return self.inner(x) * self.rate + self.u

    def inner(self, x):
        return self.layers[0](x) + self.table["more"].rate


def model():
    table = {"more": Thing(rate=3.0)}
    return Model(rate=2.0, u=ndx.ones(3), table=table, layers=[lambda x: x * 2])


def test_self_and_what_it_has_are_not_kept_alive():
    made = [model() for _ in range(3)]
    for one in made:
        for _ in range(2):
            assert one.apply(ndx.ones(3)).tolist() == [11.0] * 3
    assert Model.apply.explain().count("stage over") == 1
    seen = [weakref.ref(x) for one in made
            for x in (one, one.u, one.table["more"], one.layers[0])]  # fmt: skip
    del made, one
    gc.collect()
    assert [x() for x in seen] == [None] * len(seen)
    assert model().apply(ndx.ones(3)).tolist() == [11.0] * 3


@skip_where_classes_stay
def test_classes_of_arguments_are_not_kept_alive():
    fused = ndx.fuse(lambda x, thing: x * thing.rate)

    def call(rate):
        kind = type("Kind", (Thing,), {"rate": rate})
        assert fused(ndx.ones(2), kind()).tolist() == [rate] * 2
        return weakref.ref(kind)

    # A new class may have the address of one that died.
    for i in range(100):
        seen = call(float(i))
        gc.collect()
        assert seen() is None


@skip_where_classes_stay
@pytest.mark.parametrize("read", [
    lambda x, thing, other: x * 2 if thing.current is other else x,
    lambda x, thing, other: x + (3 if isinstance(thing.current, type(other)) else 4),
    lambda x, thing, other: thing.current(x) if callable(thing.current) else x + 5,
])  # fmt: skip
def test_objects_that_are_compared_are_not_kept_alive(read):
    fused = ndx.fuse(read)

    def call(same):
        kind = type("Kind", (Thing,), {"__call__": lambda self, x: x - 1})
        other = kind()
        thing = Thing(current=other if same else Thing())
        x = ndx.ones(2)
        assert fused(x, thing, other).tolist() == read(x, thing, other).tolist()
        return [weakref.ref(x) for x in (kind, other, thing)]

    for i in range(20):
        seen = call(i % 3 == 0)
        gc.collect()
        assert [x() for x in seen] == [None] * 3


def test_arguments_and_results_are_not_kept_alive():
    fused = ndx.fuse(lambda x, thing: (x + 1, x * thing.k))
    x, thing = ndx.ones(3), Thing(k=ndx.ones(3))
    made = fused(x, thing)
    seen = [weakref.ref(value) for value in (x, thing, thing.k, *made)]
    del x, thing, made
    gc.collect()
    assert [value() for value in seen] == [None] * 5


@pytest.mark.parametrize(
    "function", [lambda x: 1 / 0, lambda x: x[200], lambda x: x.nope, lambda x: [][1]]
)
def test_an_error_while_recording_leaves_nothing_to_the_collector(function):
    x = ndx.ones(3)
    gone = weakref.ref(x)
    gc.disable()
    try:
        with pytest.raises((ArithmeticError, AttributeError, LookupError)):
            ndx.fuse(function)(x)
        del x
        assert gone() is None
    finally:
        gc.enable()


@skip_where_classes_stay
def test_a_fused_function_is_not_kept_alive_by_its_recordings():
    def made():
        thing = Thing(k=2.0)
        inner = ndx.fuse(lambda x: x * thing.k)
        outer = ndx.fuse(lambda x: inner(x) + 1)
        assert outer(ndx.ones(2)).tolist() == [3.0, 3.0]
        return [weakref.ref(x) for x in (inner, outer, thing)]

    seen = made()
    gc.collect()
    assert [x() for x in seen] == [None] * 3


EFFECTS = {
    "append": lambda x, log: log.append(1) or x + 1,
    "then refused": lambda x, log: (log.append(1), float(x[0]), x + 1)[2],
    "refused first": lambda x, log: (float(x[0]), log.append(1), x + 1)[2],
    "in a call": lambda x, log: functools.reduce(
        lambda a, b: (log.append(b), a + b)[1], [1, 2], x
    ),
    "of a new object": lambda x, log: (x + 1, Thing(f=log.append).f(2))[0],
    "then an error": lambda x, log: (log.append(1), x + None)[1],
    "then a shape": lambda x, log: (log.append(1), x + ndx.ones(17))[1],
    "in a thread": lambda x, log: (started(log), x + 1)[1],
    "in a comprehension": lambda x, log: [x * log.append(i) or x for i in range(3)],
    "in a generator": lambda x, log: sum((log.append(i) or x for i in range(3)), x),
    "of an array": lambda x, log: (x.__setitem__(0, 5.0), log.append(1), x * 2)[2],
    "in place": lambda x, log: (x.__iadd__(1), log.append(1), x * 2)[2],
}


def started(log):
    thread = threading.Thread(target=log.append, args=(1,))
    thread.start()
    thread.join()


@pytest.mark.parametrize("name", EFFECTS)
def test_effects_come_once_for_each_call(name):
    function, fused = EFFECTS[name], ndx.fuse(EFFECTS[name])

    def outcome(call, log):
        found = []
        for _ in range(4):
            x = ndx.asarray([1.0, 2.0])
            try:
                found.append((str(call(x, log)), x.tolist(), list(log)))
            except Exception as error:
                found.append((type(error), x.tolist(), list(log)))
        return found

    assert outcome(fused, []) == outcome(function, [])


def test_arrays_that_a_method_keeps():
    class Keeper:
        last = None

        @ndx.fuse
        def step(self, x):
            self.last = x * 2
            return self.last + 1

    keeper = Keeper()
    for value in (1.0, 5.0):
        assert keeper.step(ndx.full(2, value)).tolist() == [2 * value + 1] * 2
        assert isinstance(keeper.last, ndx.NDArray)
        assert repr(keeper.last).startswith("NDArray([")
    assert "called as it is: it sets an attribute, last" in Keeper.step.explain()


async def asynchronous(x):
    return x


async def asynchronous_generator(x):
    yield x


def generator(x):
    yield x


@pytest.mark.parametrize("function", [
    asynchronous, generator, asynchronous_generator,
    functools.partial(asynchronous, 1), functools.partial(generator, x=1),
])  # fmt: skip
@pytest.mark.filterwarnings("error")
def test_functions_that_return_no_results_are_refused(function):
    with pytest.raises(TypeError, match=r"fuse takes a function that returns its resu"):
        ndx.fuse(function)


class TimeIsUp(ValueError):
    """Raised by a signal's handler."""


def plain(x):
    for _ in range(20):
        x = x + 1.0
    return x


def catching(x):
    for _ in range(20):
        try:
            x = x + 1.0
        except (ValueError, IndexError):
            x = x - 1.0
    return x


def in_a_call(x):
    return functools.reduce(lambda a, b: plain(a), [1], x)


@pytest.mark.skipif(not hasattr(signal, "SIGALRM"), reason="no such signal")
@pytest.mark.parametrize("function", [plain, catching, in_a_call])
@pytest.mark.parametrize("step", [0, 1, 10, 19])
def test_an_exception_of_a_signals_handler_reaches_the_caller(
    function, step, monkeypatch
):
    def handle(number, frame):
        raise TimeIsUp

    counted, add = itertools.count(), Trace.add

    def adding(*args, **kwargs):
        if next(counted) == step:
            signal.raise_signal(signal.SIGALRM)
        add(*args, **kwargs)

    monkeypatch.setattr(Trace, "add", adding)
    before = signal.signal(signal.SIGALRM, handle)
    fused = ndx.fuse(function)
    try:
        with pytest.raises(TimeIsUp):
            fused(ndx.ones(2))
    finally:
        signal.signal(signal.SIGALRM, before)
    assert fused(ndx.ones(2)).tolist() == [21.0] * 2
    assert "stage over" in fused.explain()


def test_a_property_that_comes_later_is_read_once_for_each_call():
    class Kind:
        rate = 2.0

    def rate(self):
        counted.append(1)
        return 3.0

    counted, thing = [], Kind()
    fused = ndx.fuse(lambda x: x * thing.rate)
    assert fused(ndx.ones(2)).tolist() == [2.0, 2.0]
    Kind.rate = property(rate)
    for i in range(1, 4):
        assert fused(ndx.ones(2)).tolist() == [3.0, 3.0]
        assert len(counted) == i
    Kind.rate = 5
    assert fused(ndx.ones(2)).tolist() == [5.0, 5.0]
    assert len(counted) == 3

"""What a fused function reads besides its arguments is read at each call.

The table has all kinds of such reads: how a value is read, and how it changes. After
each change a fused function computes what the function computes without `ndx.fuse`.
"""

import abc
import builtins
import collections
import contextvars
import dataclasses
import enum
import functools
import math
import os
import random
import threading
import time
import types
import weakref

import numpy as np
import pytest
from fusing import outer_module
from fusing.compare import described

import ndx

CASES = {}
RATE = 2.0
COUNT = 3
TABLE = {"rate": 2.0, "more": [1.0, 2.0]}
WEIGHTS = None
FOREIGN = None


def case(fuses):
    """Add a function that returns a function and its changes, to the table."""

    def added(make):
        CASES[make.__name__] = make, fuses
        return make

    return added


def setting(owner, name, *values):
    """Return changes that set an attribute."""
    return [functools.partial(setattr, owner, name, value) for value in values]


def setting_global(name, *values):
    """Return changes that set a global of this module, the first one at once."""
    globals()[name] = values[0]
    return [functools.partial(globals().__setitem__, name, x) for x in values[1:]]


NUMBERS = [5.0, 5.5, 3, 3.0, True, -0.0, 0.0, np.float32(2), np.int8(3), 2j, 10**9 + 1]
ARRAYS = [
    lambda: ndx.asarray([5.0, 6.0, 7.0]), lambda: ndx.asarray([1, 2, 3]),
    lambda: ndx.asarray([[1.0], [2.0]]), lambda: np.asarray([1.0, 4.0, 9.0]),
    lambda: 2.5, lambda: ndx.ones(6)[::2],
]  # fmt: skip


class Thing:
    """Has attributes, which are given."""

    def __init__(self, **attributes):
        self.__dict__.update(attributes)


@case(True)
def a_global_number():
    return lambda x: x * RATE, setting_global("RATE", 2.0, *NUMBERS)


@case(True)
def a_global_array():
    values = [make() for make in ARRAYS]
    return lambda x: x * WEIGHTS + 1, setting_global("WEIGHTS", ndx.ones(3), *values)


@case(True)
def a_global_array_of_numpy():
    def change():
        FOREIGN[1] = 7.0

    changes = setting_global("FOREIGN", np.ones(3), np.arange(3.0), ndx.ones(3))
    return lambda x: x * FOREIGN + 1, [change, *changes]


@case(True)
def a_global_array_changed_in_place():
    changes = setting_global("WEIGHTS", ndx.ones(3))

    def change():
        WEIGHTS[1] = 7.0

    return lambda x: x * WEIGHTS + 1, [change, *changes]


@case(True)
def a_global_that_is_written_to():
    changes = setting_global("WEIGHTS", ndx.ones(3), ndx.zeros(3))

    def function(x):
        WEIGHTS[1:] += x[1:]
        return WEIGHTS * 1

    return function, changes


@case(True)
def an_integer_in_a_loop():
    def function(x):
        for _ in range(COUNT):
            x = x * 2.0
        return x

    return function, setting_global("COUNT", 3, 1, 5, 3)


@case(True)
def a_condition():
    def function(x):
        return x + 1 if RATE > 3 else x - RATE

    return function, setting_global("RATE", 2.0, 5.0, 2.0, 2.5, float("nan"))


@case(True)
def items_of_a_global_dict():
    TABLE.update(rate=2.0, more=[1.0, 2.0])

    def function(x):
        return x * TABLE["rate"] + TABLE["more"][1] + TABLE.get("extra", 0)

    return function, [
        lambda: TABLE.update(rate=3.0),
        lambda: TABLE["more"].__setitem__(1, 9.0),
        lambda: TABLE.update(more=[4.0, 6.0, 7.0]),
        lambda: TABLE.update(extra=3),
        lambda: TABLE.pop("extra"),
        lambda: TABLE.update(more=(7.0, 8.0)),
    ]


@case(True)
def a_variable_of_a_function_around():
    k = 2.0

    def change(value):
        nonlocal k
        k = value

    values = [*NUMBERS, ndx.ones(3), ndx.asarray(3.0)]
    return lambda x: x * k, [functools.partial(change, value) for value in values]


@case(True)
def a_default():
    def function(x, k=2.0, *, m=1):
        return x * k + m

    return function, [
        lambda: setattr(function, "__defaults__", (3.0,)),
        lambda: setattr(function, "__kwdefaults__", {"m": ndx.ones(3)}),
        lambda: function.__kwdefaults__.update(m=4),
        lambda: setattr(function, "__defaults__", (3, 5.0)),
    ]


@case(True)
def a_mutable_default():
    weights = [2.0]

    def function(x, k=weights):
        return x * k[0] + len(k)

    return function, [functools.partial(weights.insert, 0, 5.0), weights.clear]


@case(True)
def an_attribute_of_an_object():
    thing = Thing(rate=2.0, u=ndx.ones(3))
    return lambda x: x * thing.rate + thing.u, [
        *setting(thing, "rate", *NUMBERS),
        *setting(thing, "u", *(make() for make in ARRAYS)),
    ]


@case(True)
def an_object_that_is_another():
    thing = Thing(inner=Thing(rate=2.0))
    same = Thing(rate=2.0)
    changes = setting(thing, "inner", Thing(rate=3.0), same)
    return lambda x: x * thing.inner.rate, [*changes, *setting(same, "rate", 7.0)]


@case(True)
def an_attribute_that_comes_and_goes():
    class Child(Thing):
        rate = 2.0

    thing = Child()
    return lambda x: x * thing.rate + getattr(thing, "extra", 1.0), [
        *setting(thing, "rate", 5.0),
        *setting(Child, "rate", 9.0),
        lambda: delattr(thing, "rate"),
        *setting(Child, "extra", 5),
        lambda: delattr(Child, "extra"),
        *setting(Child, "rate", property(lambda self: 11.0)),
    ]


@case(True)
def an_attribute_of_a_class():
    class Config:
        rate = 2.0

    class Child(Config):
        pass

    return lambda x: x * Child.rate, [
        *setting(Config, "rate", 3.0), *setting(Child, "rate", 4),
        lambda: delattr(Child, "rate"),
    ]  # fmt: skip


@case(True)
def a_slot():
    class Slotted:
        __slots__ = ("rate",)

    thing = Slotted()
    thing.rate = 2.0
    return lambda x: x * thing.rate, setting(thing, "rate", 3.0, 4, ndx.ones(3))


@case(True)
def a_property():
    thing = Thing(hidden=2.0, w=ndx.ones(3))
    kind = type("Kind", (Thing,), {"rate": property(lambda self: self.hidden * 2)})
    thing.__class__ = kind
    return lambda x: x * thing.rate, [
        *setting(thing, "hidden", 3.0, ndx.ones(3)),
        *setting(kind, "rate", property(lambda self: self.hidden + 1)),
        *setting(kind, "rate", 4.0),
        *setting(thing, "__class__", type("Other", (Thing,), {"rate": 8.0})),
    ]


@case(True)
def the_state_of_self():
    class Model(Thing):
        def helper(self, x):
            return x * self.rate

        @staticmethod
        def fixed(x):
            return x + 1

        @classmethod
        def scaled(cls, x):
            return x * cls.factor

        factor = 2

        def call(self, x):
            return self.scaled(self.fixed(self.helper(x))) + self.u

    model = Model(rate=2.0, u=ndx.ones(3))
    return model.call, [
        *setting(model, "rate", 3.0), *setting(model, "u", ndx.zeros(3)),
        *setting(Model, "factor", 5), *setting(Model, "helper", lambda self, x: x - 1),
        *setting(model, "helper", lambda x: x - 2),
        *setting(Model, "fixed", staticmethod(lambda x: x * 9)),
        *setting(Model, "scaled", classmethod(lambda cls, x: x + 50)),
    ]  # fmt: skip


@case(True)
def methods_of_a_base():
    class Base(Thing):
        def scaled(self, x):
            return x * self.k

    class Middle(Base):
        pass

    class Child(Middle):
        def scaled(self, x):
            return super().scaled(x) + super(Child, self).scaled(x)  # noqa: UP008

    class Other(Thing):
        def scaled(self, x):
            return x - 5

    child = Child(k=2.0)
    return child.scaled, [
        *setting(child, "k", 3.0), *setting(Middle, "scaled", lambda self, x: x + 1),
        lambda: delattr(Middle, "scaled"), *setting(Child, "__bases__", (Other,)),
        *setting(Child, "__bases__", (Other, Middle), (Middle,)),
        *setting(Base, "scaled", lambda self, x: x + 9),
    ]  # fmt: skip


@case(True)
def a_static_method_itself():
    function = staticmethod(lambda x: x * RATE)
    return function, setting_global("RATE", 2.0, 3.0)


@case(True)
def a_named_tuple():
    Settings = collections.namedtuple("Settings", "rate w")
    thing = Thing(settings=Settings(2.0, ndx.ones(3)))
    return lambda x: x * thing.settings.rate + thing.settings[1], setting(
        thing, "settings", Settings(3.0, ndx.zeros(3)), Settings(4, 5.0)
    )


@case(True)
def a_dataclass():
    @dataclasses.dataclass
    class Settings:
        rate: float
        w: ndx.NDArray

    @dataclasses.dataclass(frozen=True)
    class Frozen:
        inner: Settings

    thing = Frozen(Settings(2.0, ndx.ones(3)))
    return lambda x: x * thing.inner.rate + thing.inner.w, [
        *setting(thing.inner, "rate", 3.0),
        functools.partial(thing.inner.w.__setitem__, 0, 8.0),
        functools.partial(object.__setattr__, thing, "inner", Settings(1, ndx.ones(3))),
    ]


@case(True)
def a_tuple_of_plain_values():
    thing = Thing(shape=(2.0, 3))
    return lambda x: x * thing.shape[0] + thing.shape[1], setting(
        thing, "shape", (2.0, 4), (2.0, 3.0), (-0.0, 3), (0.0, 3), [5.0, 6], (1.0, 2, 3)
    )


@case(True)
def items_of_a_list():
    layers = [lambda x: x * 2.0, lambda x: x + 1]

    def function(x):
        for i, layer in enumerate(layers):
            x = layer(x) + i
        return x

    return function, [
        lambda: layers.append(lambda x: x - 7),
        lambda: layers.__setitem__(0, lambda x: x * 3.0),
        layers.reverse,
        layers.pop,
        lambda: layers.insert(0, functools.partial(np.add, 2.0)),
    ]


@case(True)
def keys_of_a_dict():
    table = {"a": 1.0, "b": ndx.ones(3)}

    def function(x):
        for name, value in table.items():
            x = x + value * len(name)
        return x if "c" in table else -x

    return function, [
        lambda: table.update(a=2.0),
        lambda: table.update(ccc=3.0),
        lambda: table.update(c=3.0),
        lambda: table.pop("a"),
        lambda: table.update(b=2.0),
    ]


@case(True)
def elements_of_a_set():
    names = {"a"}
    return lambda x: x * 2 if "b" in names else x + sum(len(n) for n in names), [
        lambda: names.add("c"),
        lambda: names.add("b"),
        lambda: names.discard("b"),
    ]


@case(True)
def functions_of_a_module():
    return lambda x: x * math.floor(outer_module.rate) + outer_module.scaled(x), [
        *setting(outer_module, "rate", 2.0, 3.5, 5.0, 2.0),
        *setting(outer_module, "scaled", lambda x: x - 1, outer_module.scaled),
    ]


@case(True)
def an_array_of_a_module():
    outer_module.weights = ndx.ones(3)
    values = [make() for make in ARRAYS]
    return lambda x: x + outer_module.weights, setting(outer_module, "weights", *values)


@case(True)
def a_function_that_is_called():
    thing = Thing(k=2.0)

    def inner(x):
        return x * thing.k

    def outer(x):
        return inner(x) + RATE

    return outer, [
        *setting(thing, "k", 3.0),
        *setting_global("RATE", 2.0, 4.0),
        lambda: setattr(inner, "__code__", (lambda x: x + thing.k).__code__),
    ]


@case(True)
def the_code_of_the_function():
    def function(x):
        return x * 2

    return function, setting(function, "__code__", (lambda x: x + 1).__code__)


@case(True)
def a_fused_function_that_is_called():
    thing = Thing(k=2.0)
    inner = ndx.fuse(lambda x: x * thing.k)
    return lambda x: inner(x) + 1, setting(thing, "k", 3.0, ndx.ones(3), 2)


@case(True)
def a_callable_object():
    class Layer(Thing):
        def __call__(self, x):
            return x * self.w

    layer = Layer(w=2.0)
    return lambda x: layer(x) + 1, [
        *setting(layer, "w", 3.0, ndx.ones(3)),
        *setting(Layer, "__call__", lambda self, x: x - self.w),
    ]


@case(True)
def a_builtin_that_is_replaced():
    setting_global("RATE", 2.0)
    return lambda x: x * abs(RATE - 5), [
        functools.partial(globals().__setitem__, "abs", lambda x: 100.0),
        lambda: globals().pop("abs"),
    ]


@case(True)
def a_builtin_of_all_modules():
    restored = builtins.abs
    return lambda x: x * abs(-2.0), setting(builtins, "abs", lambda x: 100.0, restored)


@case(True)
def a_class_that_an_object_belongs_to():
    class One(Thing):
        pass

    class Other(Thing):
        pass

    thing = One(k=2.0)
    return lambda x: x * thing.k if isinstance(thing, One) else x + thing.k, [
        *setting(thing, "__class__", Other),
        *setting(Other, "__bases__", (One,)),
        *setting(Other, "__bases__", (Thing,)),
        *setting(thing, "__class__", One),
    ]


@case(True)
def whether_something_is_none():
    thing = Thing(bias=None)

    def function(x):
        return x * 2 if thing.bias is None else x + thing.bias

    return function, setting(thing, "bias", ndx.ones(3), 2.0, None)


@case(True)
def which_object_something_is():
    one, other = Thing(), Thing()
    thing = Thing(current=one)
    return lambda x: x * (2 if thing.current is one else 3), setting(
        thing, "current", other, one
    )


@case(True)
def a_module_that_is_imported():
    def function(x):
        from fusing.outer_module import rate

        return x * rate

    return function, setting(outer_module, "rate", 4.0, 2.0)


@case(True)
def a_dtype():
    thing = Thing(dtype=ndx.float32)
    return lambda x: ndx.astype(x, thing.dtype), setting(
        thing, "dtype", ndx.float64, ndx.int64, np.float32, "complex128", bool
    )


@case(True)
def which_dtype_something_is():
    thing = Thing(u=ndx.ones(3), kind=np.float64, other=None)

    def function(x):
        same = thing.u.dtype == thing.kind, thing.u.dtype == np.float32
        return x * (2 if same[0] else 3) + same[1] + (thing.kind != thing.other)

    return function, [
        *setting(thing, "u", ndx.ones(3, dtype="f4")), *setting(thing, "kind", float),
        *setting(thing, "kind", np.float32, np.dtype("f4"), "f8", Thing),
        *setting(thing, "other", Thing, np.float32), *setting(thing, "kind", np.int8),
    ]  # fmt: skip


@case(True)
def a_slice():
    thing = Thing(key=slice(1, None))
    return lambda x: x[thing.key] * 2, setting(
        thing, "key", slice(0, 2), (slice(0, 1), None), 0, -1, ..., None, [0, 1]
    )


@case(True)
def a_value_computed_once():
    class Lazy(Thing):
        @functools.cached_property
        def rate(self):
            return self.k * 2

    lazy = Lazy(k=2.0)
    return lambda x: x * lazy.rate, [
        *setting(lazy, "rate", 7.0), *setting(lazy, "k", 3.0),
        lambda: delattr(lazy, "rate"),
    ]  # fmt: skip


@case(True)
def attributes_of_an_array():
    thing = Thing(u=ndx.ones((2, 3)))
    return lambda x: x * thing.u.shape[0] + thing.u.ndim, setting(
        thing, "u", ndx.ones((4, 3)), ndx.ones(7), np.ones((3, 1))
    )


@case(True)
def the_same_array_as_the_argument():
    thing = Thing(u=ndx.ones(3))

    def function(x):
        thing.u[...] = x * 2
        return x + thing.u

    return function, setting(thing, "u", ndx.zeros(3))


@case(True)
def an_array_in_a_list_that_is_changed():
    us = [ndx.ones(3), ndx.zeros(3)]
    table = {"u": ndx.ones(3)}

    def function(x):
        us[0] *= 2
        table["u"] += us[0]
        return x + us[0] + table["u"]

    return function, [us.reverse, lambda: us.__setitem__(0, ndx.ones(3))]


@case(True)
def variables_of_generators():
    def function(x):
        k = 1.0
        terms = (x * k for _ in range(2))
        k = RATE
        return sum(terms, x)

    return function, setting_global("RATE", 2.0, 4.0)


@case(True)
def a_function_that_yields():
    def numbers(k):
        for i in range(COUNT):
            yield i * k
        yield RATE

    changes = [*setting_global("COUNT", 3, 2), *setting_global("RATE", 2.0, 5.0)]
    return lambda x: sum((x * n for n in numbers(2)), x), changes


@case(True)
def whether_an_object_is_true():
    class Truthful(Thing):
        pass

    thing = Thing(current=Truthful())

    def function(x):
        return x * 2 if thing.current else x

    return function, [
        *setting(Truthful, "__len__", lambda self: 0),
        lambda: delattr(Truthful, "__len__"),
        *setting(Truthful, "__bool__", lambda self: False),
        *setting(thing, "current", [], [0], None, 1.0, "", ndx.ones(1)),
    ]


@case(True)
def floating_point_errors():
    thing = Thing(state=np.errstate())

    def enter(**how):
        thing.state.__exit__()
        thing.state = np.errstate(**how)
        thing.state.__enter__()

    thing.state.__enter__()
    return lambda x: (x - 1) / (x - 1), [
        functools.partial(enter, all="raise"), functools.partial(enter, all="ignore"),
        lambda: thing.state.__exit__(),
    ]  # fmt: skip


@case(True)
def an_integer_that_is_large():
    thing = Thing(n=10**6, m=10**30)
    return lambda x: x * thing.n + thing.m % 7, [
        *setting(thing, "n", 10**6 + 0, 10**6 + 1), *setting(thing, "m", 10**30 + 1)
    ]  # fmt: skip


@case(True)
def a_method_that_is_kept():
    thing = Thing(rate=2.0)
    kind = type("Kind", (Thing,), {"scaled": lambda self, x: x * self.rate})
    thing.__class__ = kind
    holder = Thing(function=thing.scaled)
    other = kind(rate=9.0)
    return lambda x: holder.function(x) + 1, [
        *setting(thing, "rate", 3.0), *setting(holder, "function", other.scaled),
        *setting(other, "rate", 4.0),
    ]  # fmt: skip


@case(True)
def a_partial_function():
    thing = Thing(f=functools.partial(np.multiply, 2.0))
    return lambda x: thing.f(x) + 1, setting(
        thing, "f", functools.partial(np.multiply, 3.0), functools.partial(np.add, 3),
        functools.partial(lambda x, k: x - k, k=ndx.ones(3)),
    )  # fmt: skip


# What can't be followed: the function is called.


@case(False)
def whether_an_object_can_be_called():
    class Callable(Thing):
        pass

    thing = Callable()

    def function(x):
        return x * 2 if callable(thing) else x + 1

    return function, setting(Callable, "__call__", lambda self: 0)


@case(False)
def a_list_that_is_changed():
    items = [1.0]

    def function(x):
        mine = items
        mine += [2.0]
        return x * len(mine)

    return function, [lambda: None] * 3


@case(False)
def an_array_that_replaces_itself():
    thing = Thing(u=ndx.ones(3))

    def function(x):
        thing.u = thing.u * 2
        return x + thing.u

    return function, [lambda: None] * 3


@case(False)
def a_scalar_that_is_printed():
    thing = Thing(k=np.float64(0.1) + 0.2)

    def precision(digits):
        np.set_printoptions(floatmode="fixed", precision=digits)

    return lambda x: x * float(f"{thing.k}") + len(repr(thing.k)), [
        functools.partial(precision, 3), functools.partial(precision, 8),
        lambda: np.set_printoptions(floatmode="maxprec", precision=8),
    ]  # fmt: skip


@case(False)
def which_of_equal_values():
    thing = Thing(mode="".join(["fa", "st"]))
    mode = thing.mode
    return lambda x: x * 2 if thing.mode is mode else x, setting(
        thing, "mode", "".join(["f", "ast"])
    )


@case(False)
def a_class_that_tells_a_dtype():
    kind = type("Kind", (), {"dtype": np.dtype("f4")})
    return lambda x: ndx.astype(x, np.dtype(kind)), setting(
        kind, "dtype", np.dtype("i4")
    )


@case(False)
def an_object_that_tells_another_class():
    kind = type("Kind", (Thing,), {"__class__": property(lambda self: self.told)})
    thing = kind(told=Thing)
    return lambda x: x * 2 if isinstance(thing, Thing) else x, setting(
        thing, "told", int
    )


@case(False)
def an_abstract_class():
    kind = type("Kind", (), {})
    thing = kind()
    base = abc.ABCMeta("Base", (), {})
    return lambda x: x * 2 if isinstance(thing, base) else x, [
        functools.partial(base.register, kind)
    ]


@case(False)
def a_context_variable():
    rate = contextvars.ContextVar("rate", default=2.0)
    return lambda x: x * rate.get(), [functools.partial(rate.set, 3.0)]


@case(False)
def a_weak_reference():
    thing = Thing(rate=2.0)
    reference = weakref.ref(thing)
    return lambda x: x * reference().rate, setting(thing, "rate", 3.0)


@case(False)
def globals_by_name():
    return lambda x: x * globals()["RATE"], setting_global("RATE", 2.0, 3.0)


@case(False)
def the_context():
    def function(x):
        return x * (2 if ndx.memory.current_workspace() is None else 3)

    return function, [lambda: None]


@case(False)
def a_random_number():
    random.seed(1)
    return lambda x: x * random.random(), [lambda: None] * 2


@case(False)
def a_generator():
    rng = np.random.default_rng(1)
    return lambda x: x * rng.random(), [lambda: None] * 2


@case(False)
def the_time():
    counted = iter(range(100))
    thing = Thing(now=lambda: float(next(counted)))
    return lambda x: x * (time.monotonic() > 0) + thing.now(), [lambda: None] * 2


@case(False)
def the_environment():
    os.environ["NDX_TEST_RATE"] = "2"
    return lambda x: x * float(os.environ["NDX_TEST_RATE"]), [
        functools.partial(os.environ.__setitem__, "NDX_TEST_RATE", "5")
    ]


@case(False)
def an_iterator():
    values = iter(range(100))
    return lambda x: x * next(values), [lambda: None] * 3


@case(False)
def a_counter():
    calls = []

    def function(x):
        calls.append(1)
        return x * len(calls)

    return function, [lambda: None] * 3


@case(False)
def a_global_that_is_set():
    def function(x):
        global RATE
        RATE += 1.0
        return x * RATE

    return function, setting_global("RATE", 2.0, 2.0, 7.0)


@case(False)
def an_attribute_that_is_set():
    thing = Thing(last=None, count=0)

    def function(x):
        thing.count += 1
        thing.last = x * thing.count
        return thing.last + 1

    return function, [lambda: None] * 3


@case(False)
def a_descriptor():
    class Counting:
        count = 0

        def __get__(self, instance, owner):
            self.count += 1
            return self.count

    kind = type("Kind", (Thing,), {"rate": Counting()})
    thing = kind()
    return lambda x: x * thing.rate, [lambda: None] * 3


@case(False)
def attributes_that_are_computed():
    class Lazy:
        count = 0

        def __getattr__(self, name):
            Lazy.count += 1
            return Lazy.count

    lazy = Lazy()
    return lambda x: x * lazy.rate, [lambda: None] * 3


@case(False)
def a_variable_of_the_thread():
    local = threading.local()
    local.rate = 2.0
    return lambda x: x * local.rate, setting(local, "rate", 3.0)


@case(False)
def a_member_of_an_enumeration():
    class Mode(enum.Enum):
        FAST = 2.0

    return lambda x: x * Mode.FAST.value, [lambda: None] * 2


@case(False)
def a_method_of_a_generator():
    draw = np.random.default_rng(1).random
    return lambda x: x * draw(), [lambda: None] * 3


@case(False)
def a_mapping():
    class Settings(dict):
        def __missing__(self, key):
            return float(len(self))

    settings = Settings()
    return lambda x: x * settings["rate"], [
        functools.partial(settings.update, a=1),
        functools.partial(settings.update, rate=9.0),
    ]


@case(False)
def a_generator_that_is_sent_values():
    def numbers():
        k = 1.0
        while True:
            k *= 2
            yield k

    made = numbers()
    return lambda x: x * made.send(None), [lambda: None] * 3


@case(False)
def a_proxy():
    table = {"rate": 2.0}
    proxy = types.MappingProxyType(table)
    return lambda x: x * proxy["rate"], [functools.partial(table.update, rate=3.0)]


@pytest.fixture(autouse=True)
def _restored():
    before = outer_module.rate, outer_module.scaled, builtins.abs
    yield
    outer_module.rate, outer_module.scaled, builtins.abs = before
    globals().update(WEIGHTS=None, FOREIGN=None)
    outer_module.weights = None


def outcomes(make, wrap):
    """Return what calls give: twice before, and twice after each change."""
    function, changes = make()
    wrapped = wrap(function)
    found = []
    for change in [None, *changes]:
        if change is not None:
            change()
        for _ in range(2):
            x = ndx.asarray([1.0, 2.0, 3.0])
            try:
                found.append((described(wrapped(x)), described(x)))
            except Exception as error:
                found.append(described(error))
    return found, wrapped


@pytest.mark.thread_unsafe(reason="cases change globals")
@pytest.mark.parametrize("name", CASES)
def test_reads_from_outside(name):
    make, fuses = CASES[name]
    expected, _ = outcomes(make, lambda function: function)
    found, fused = outcomes(make, ndx.fuse)
    assert found == expected, fused.explain()
    assert ("stage over" in fused.explain()) is fuses, fused.explain()


@pytest.mark.parametrize("name", [name for name, row in CASES.items() if row[1]])
def test_reads_of_what_is_not_changed_are_recorded_once(name):
    function, _ = CASES[name][0]()
    fused = ndx.fuse(function)
    for _ in range(2):
        fused(ndx.asarray([1.0, 2.0, 3.0]))
    about = fused.explain()
    for _ in range(3):
        fused(ndx.asarray([1.0, 2.0, 3.0]))
    assert fused.explain() == about

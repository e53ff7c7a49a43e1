"""Functions and methods on tracers: those of ndx, of NumPy, and of arrays.

A call is bound to the signature of the function that is called, so that wrong calls
raise what they raise otherwise, and then recorded by names.
"""

import inspect
import sys

import numpy as np

import ndx._fusing.rules as rules
from ndx._api.elementwise import UFUNCS
from ndx._api.statistical import division_dtype
from ndx._core import NDArray
from ndx._fusing.scalars import Scalar
from ndx._fusing.tracing import Tracer
from ndx._lib.caches import cached
from ndx._lib.trees import leaves
from ndx._methods.numpy_function_table import recorder_of, set_recorder

_NAMES = {rules.public_ufunc(name): name for name in [*UFUNCS, "rint"]}
_SUMS = {0: np.int64, 1: np.int64, 2: np.uint64}  # of the kinds of integers


def _sum(x, axis=None, dtype=None, keepdims=False):
    found = _SUMS.get(rules.kind(x._code)) if dtype is None else dtype
    code = x._code if found is None else rules.code_of(found)
    return x._trace.reduce("add", x._trace.cast(x, code), axis, keepdims)


def _mean(x, axis=None, keepdims=False):
    code = x._code if rules.kind(x._code) >= 3 else rules.code_of(np.float64)
    total = x._trace.reduce("add", x._trace.cast(x, code), axis, keepdims)
    count = x.size // total.size if total.size else None
    if count is None:
        x._trace.refuse("it is the mean of an array without elements")
    dtype = division_dtype(code, count)
    if dtype != code:
        total = x._trace.cast(total, dtype)
    return x._trace.cast(x._trace.inplace("divide", total, count), code)


def _extreme(name):
    def function(x, axis=None, keepdims=False):
        return x._trace.reduce(name, x, axis, keepdims)

    return function


def _test(name):
    def function(x, axis=None, keepdims=False):
        return x._trace.reduce(name, x._trace.truth(x), axis, keepdims)

    return function


def _clip(x, min=None, max=None, out=None):
    trace = x._trace
    if min is None and max is None:
        return trace.elementwise("positive", x, out=out)
    if min is None or max is None:
        name, bound = ("minimum", max) if min is None else ("maximum", min)
        return trace.elementwise(name, x, bound, out=out)
    low = trace.elementwise("maximum", x, min)
    return trace.elementwise("minimum", low, max, out=out)


def _astype(x, dtype, copy=True):
    code = rules.code_of(dtype)
    x._use()
    if code != x._code:
        return x._trace.cast(x, code)
    return _copy(x) if copy else x


def _copy(x):
    made = x._trace.new(x._code, x.shape, [x.strides])
    x._trace.convert(x, made, x.shape)
    return made


def _copy_in_order(x):
    made = x._trace.new(x._code, x.shape)
    x._trace.convert(x, made, x.shape)
    return made


def _asarray(x, dtype=None, copy=None):
    x._use()
    if dtype is not None and rules.code_of(dtype) != x._code:
        if copy is False:
            x._trace.refuse("it casts without a copy")
        return x._trace.cast(x, rules.code_of(dtype))
    if x._foreign and not copy:
        x._trace.refuse("it makes an array of NumPy its own")
    return _copy(x) if copy else x


def _round(x, out=None):
    name = "positive" if rules.kind(x._code) in (1, 2) else "rint"
    return x._trace.elementwise(name, x, out=out)


def _filled(value):
    def function(x, dtype=None):
        return _full_like(x, value, dtype)

    return function


def _full_like(x, fill_value, dtype=None):
    code = x._code if dtype is None else rules.code_of(dtype)
    if type(fill_value) is Tracer or isinstance(fill_value, np.generic):
        x._trace.refuse("full_like has an array as its value")
    number = fill_value._value if type(fill_value) is Scalar else fill_value
    rules.check_fill(code, number)
    x._use()
    made = x._trace.new(code, x.shape, [x.strides])
    x._trace.fill(made, fill_value)
    return made


# How functions are recorded, and by which parameters but the array: of ndx's function,
# of NumPy's, and of the method. None: it is not recorded.
_AXES = "axis keepdims"
_ROWS = [
    ("sum", _sum, "axis dtype keepdims", _AXES, _AXES),
    ("mean", _mean, _AXES, _AXES, _AXES),
    ("max", _extreme("maximum"), _AXES, _AXES, _AXES),
    ("min", _extreme("minimum"), _AXES, _AXES, _AXES),
    ("any", _test("logical_or"), _AXES, _AXES, _AXES),
    ("all", _test("logical_and"), _AXES, _AXES, _AXES),
    ("clip", _clip, "min max out", None, None),
    ("round", _round, "out", None, None),
    ("astype", _astype, "dtype copy", None, "dtype copy"),
    ("asarray", _asarray, "dtype copy", None, None),
    ("full_like", _full_like, "fill_value dtype", None, None),
    ("zeros_like", _filled(0), "dtype", "", None),
    ("ones_like", _filled(1), "dtype", "", None),
    ("empty_like", _filled(0), "dtype", "", None),
    ("copy", _copy, None, "", None),
    ("copy", _copy_in_order, None, None, ""),
]
_METHODS = [row[0] for row in _ROWS if row[4] is not None]
for _name, _recorder, *_options in _ROWS:
    for _owner, _given in zip((sys.modules["ndx"], np, NDArray), _options, strict=True):
        if _given is not None:
            set_recorder(getattr(_owner, _name), _recorder, _given.split())
for _name in ("amax", "amin"):
    set_recorder(getattr(np, _name), *recorder_of(getattr(np, _name[1:])))


@cached("signatures of recorded calls", 256)
def _signature(function):
    return inspect.signature(function)


def _record(trace, words, function, row, args, kwargs, *, numbers=True):
    """Record a call of a function whose first argument is the array.

    Full reductions by methods are numbers, as `numbers` says.
    """
    record, options = row
    if not options:
        if len(args) == 1 and not kwargs and type(args[0]) is Tracer:
            return record(args[0])
        return trace.refuse(f"{words} with options")
    given = _signature(function).bind(*args, **kwargs).arguments
    x = given.pop(next(iter(given)))
    if type(x) is not Tracer or given.keys() - options:
        return trace.refuse(f"{words} with options")
    made = record(x, **given)
    if "keepdims" in options and made.shape == ():
        made._buffer.number, made._buffer.reduced = numbers, True
    return made


def call_of_ndx(function, args, kwargs):
    """Record a call of a function of ndx that has a tracer among its arguments."""
    found = leaves([*args, *kwargs.values()], (list, tuple))
    trace = next(x._trace for x in found if type(x) is Tracer)
    name = function.__name__
    words = f"it calls {function.__module__}.{name}"
    if function.__module__ != "ndx":
        return trace.refuse(words)
    if row := recorder_of(function):
        return _record(trace, words, function, row, args, kwargs, numbers=False)
    if name in UFUNCS or name == "where":
        bound = _signature(function).bind(*args, **kwargs)
        if name == "where":
            return trace.where(*bound.args)
        return trace.elementwise(name, *bound.args, **bound.kwargs)
    return trace.refuse(words)


def call_ufunc(tracer, ufunc, method, inputs, kwargs):
    """Record a call of one of NumPy's ufuncs."""
    trace = tracer._trace
    name = _NAMES.get(ufunc)
    plain = name is not None and method == "__call__" and not kwargs.keys() - {"out"}
    arrays = [x for x in inputs if type(x) is Tracer]
    if not plain or all(x._foreign for x in arrays):
        return trace.refuse(f"it calls np.{ufunc.__name__}, or its methods or options")
    if any(rules.kind(x._code) < 3 for x in arrays) and (
        any(rules.is_narrow(x._code) for x in arrays) or name == "reciprocal"
    ):
        return trace.refuse(f"np.{ufunc.__name__} of such integers is NumPy's own")
    out = kwargs.get("out")
    out = out[0] if isinstance(out, tuple) else out
    return trace.elementwise(name, *inputs, out=out)


def call_function(tracer, function, args, kwargs):
    """Record a call of another function of NumPy."""
    trace = tracer._trace
    words = f"it calls np.{function.__name__}"
    if args and type(args[0]) is Tracer and not args[0]._foreign:
        if function is np.where and len(args) == 3 and not kwargs:
            return trace.where(*args)
        if row := recorder_of(function):
            return _record(trace, words, function, row, args, kwargs, numbers=False)
    return trace.refuse(words)


def _method(name):
    function = getattr(NDArray, name)
    row = recorder_of(function)

    def method(self, *args, **kwargs):
        words = f"it calls x.{name}"
        if self._foreign:
            return self._trace.refuse(f"{words} of an array of NumPy")
        return _record(self._trace, words, function, row, (self, *args), kwargs)

    return method


def _namespace(self, *, api_version=None):
    if api_version is not None:
        return self._trace.refuse("it asks for a version of the namespace")
    return np if self._foreign else sys.modules["ndx"]


for _name in _METHODS:
    setattr(Tracer, _name, _method(_name))
Tracer.__array_ufunc__ = lambda self, ufunc, method, *inputs, **kwargs: call_ufunc(
    self, ufunc, method, inputs, kwargs
)
Tracer.__array_function__ = lambda self, function, types, args, kwargs: call_function(
    self, function, args, kwargs
)
Tracer.__array_namespace__ = _namespace

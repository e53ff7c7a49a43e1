"""Functions and methods on tracers: those of ndx, of NumPy, and of arrays.

ndx's functions come here through `_api.public_function`, while something is recorded.
"""

import sys

import numpy as np

import ndx._fusing.rules as rules
from ndx._api.elementwise import UFUNCS
from ndx._fusing.tracing import Tracer

_NAMES = {rules.public_ufunc(name): name for name in [*UFUNCS, "rint"]}
_SUMS = {0: np.int64, 1: np.int64, 2: np.uint64}  # of the kinds of integers


def _sum(x, axis=None, dtype=None, keepdims=False):
    found = _SUMS.get(rules.kind(x.code)) if dtype is None else dtype
    code = x.code if found is None else rules.code_of(found)
    return x.trace.reduce("add", x.trace.cast(x, code), axis, keepdims)


def _mean(x, axis=None, keepdims=False):
    code = x.code if rules.kind(x.code) >= 3 else rules.code_of(np.float64)
    total = x.trace.reduce("add", x.trace.cast(x, code), axis, keepdims)
    count = x.size // total.size if total.size else None
    if count is None:
        x.trace.refuse("it is the mean of an array without elements")
    return x.trace.inplace("divide", total, count)


def _extreme(name):
    def function(x, axis=None, keepdims=False):
        return x.trace.reduce(name, x, axis, keepdims)

    return function


def _test(name):
    def function(x, axis=None, keepdims=False):
        return x.trace.reduce(name, x.trace.truth(x), axis, keepdims)

    return function


def _clip(x, min=None, max=None, out=None):
    trace = x.trace
    if min is None and max is None:
        return trace.elementwise("positive", x, out=out)
    if min is None or max is None:
        name, bound = ("minimum", max) if min is None else ("maximum", min)
        return trace.elementwise(name, x, bound, out=out)
    low = trace.elementwise("maximum", x, min)
    return trace.elementwise("minimum", low, max, out=out)


def _astype(x, dtype, copy=True):
    code = rules.code_of(dtype)
    if code != x.code:
        return x.trace.cast(x, code)
    return _copy(x) if copy else x


def _copy(x):
    made = x.trace.new(x.code, x.shape, [x.strides])
    x.trace.convert(x, made, x.shape)
    return made


def _asarray(x, dtype=None, copy=None):
    if dtype is not None and rules.code_of(dtype) != x.code:
        if copy is False:
            x.trace.refuse("it casts without a copy")
        return x.trace.cast(x, rules.code_of(dtype))
    if x.foreign and not copy:
        x.trace.refuse("it makes an array of NumPy its own")
    return _copy(x) if copy else x


def _round(x, out=None):
    name = "positive" if rules.kind(x.code) in (1, 2) else "rint"
    return x.trace.elementwise(name, x, out=out)


def _filled(value):
    def function(x, dtype=None):
        return _full_like(x, value, dtype)

    return function


def _full_like(x, value, dtype=None):
    code = x.code if dtype is None else rules.code_of(dtype)
    if type(value) is Tracer or isinstance(value, np.generic):
        x.trace.refuse("full_like has an array as its value")
    made = x.trace.new(code, x.shape, [x.strides])
    x.trace.fill(made, value)
    return made


REDUCTIONS = {
    "sum": _sum, "mean": _mean, "max": _extreme("maximum"), "min": _extreme("minimum"),
    "any": _test("logical_or"), "all": _test("logical_and"),
}  # fmt: skip
_FUNCTIONS = {
    **REDUCTIONS, "clip": _clip, "astype": _astype, "asarray": _asarray,
    "round": _round, "zeros_like": _filled(0), "ones_like": _filled(1),
    "empty_like": _filled(0), "full_like": _full_like,
}  # fmt: skip


_COPIES = {
    "copy": _copy,
    "zeros_like": _filled(0),
    "ones_like": _filled(1),
    "empty_like": _filled(0),
}


def find_trace(args, kwargs):
    """Return the trace of the first tracer among arguments; None without one."""
    for value in (*args, *kwargs.values()):
        if type(value) is Tracer:
            return value.trace
        if isinstance(value, list | tuple):
            trace = find_trace(value, {})
            if trace is not None:
                return trace
    return None


def call_of_ndx(function, args, kwargs):
    """Record a call of a function of ndx; NotImplemented if it has no tracer."""
    trace = find_trace(args, kwargs)
    if trace is None:
        return NotImplemented
    name = function.__name__
    if function.__module__ != "ndx":
        return trace.refuse(f"it calls {function.__module__}.{name}")
    if name in UFUNCS and not kwargs.keys() - {"out"}:
        if len(args) == rules.nin_of(name):
            return trace.elementwise(name, *args, **kwargs)
    elif name == "where" and len(args) == 3 and not kwargs:
        return trace.where(*args)
    elif name in _FUNCTIONS and type(args[0]) is Tracer:
        return _FUNCTIONS[name](*args, **kwargs)
    return trace.refuse(f"it calls ndx.{name}")


def call_ufunc(tracer, ufunc, method, inputs, kwargs):
    """Record a call of one of NumPy's ufuncs."""
    trace = tracer.trace
    name = _NAMES.get(ufunc)
    plain = name is not None and method == "__call__" and not kwargs.keys() - {"out"}
    arrays = [x for x in inputs if type(x) is Tracer]
    if not plain or all(x.foreign for x in arrays):
        return trace.refuse(f"it calls np.{ufunc.__name__}, or its methods or options")
    if any(rules.kind(x.code) < 3 for x in arrays) and (
        any(rules.is_narrow(x.code) for x in arrays) or name == "reciprocal"
    ):
        return trace.refuse(f"np.{ufunc.__name__} of such integers is NumPy's own")
    out = kwargs.get("out")
    out = out[0] if isinstance(out, tuple) else out
    return trace.elementwise(name, *inputs, out=out)


def call_function(tracer, function, args, kwargs):
    """Record a call of another function of NumPy."""
    name = function.__name__
    name = {"amax": "max", "amin": "min"}.get(name, name)
    if getattr(np, name, None) is not function:
        return tracer.trace.refuse(f"it calls NumPy's {name}")
    if type(args[0]) is Tracer and not args[0].foreign:
        if name in REDUCTIONS and not kwargs.keys() - {"axis", "keepdims"}:
            if len(args) <= 2:
                return REDUCTIONS[name](*args, **kwargs)
        elif name == "where" and len(args) == 3 and not kwargs:
            return tracer.trace.where(*args)
        elif len(args) == 1 and not kwargs and name in _COPIES:
            return _COPIES[name](*args)
    return tracer.trace.refuse(f"it calls np.{name}")


def _method(name):
    function = _FUNCTIONS[name]

    def method(self, *args, **kwargs):
        if self.foreign:
            return self.trace.refuse("it calls a method of an array of NumPy")
        if name in REDUCTIONS and (
            len(args) > 1 or kwargs.keys() - {"axis", "keepdims"}
        ):
            return self.trace.refuse(f"it calls x.{name} with options")
        return function(self, *args, **kwargs)

    return method


def _namespace(self, *, api_version=None):
    return sys.modules["ndx"]


for _name in REDUCTIONS:
    setattr(Tracer, _name, _method(_name))
Tracer.copy = lambda self: (
    self.trace.refuse("it copies") if self.foreign else _copy(self)
)
Tracer.astype = lambda self, dtype, *, copy=True: (
    self.trace.refuse("it casts NumPy's")
    if self.foreign
    else _astype(self, dtype, copy)
)
Tracer.__array_ufunc__ = lambda self, ufunc, method, *inputs, **kwargs: call_ufunc(
    self, ufunc, method, inputs, kwargs
)
Tracer.__array_function__ = lambda self, function, types, args, kwargs: call_function(
    self, function, args, kwargs
)
Tracer.__array_namespace__ = _namespace

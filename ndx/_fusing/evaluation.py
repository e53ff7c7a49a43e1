"""Evaluation of a function's operations during recording: calls, operators, loops.

Values are placeholders for arrays and floats (`tracing`, `scalars`), plain values,
lists and other containers that the function has made itself, and references to objects
from outside (`outside`). An operation that would have an effect, or reads what can't be
followed, is refused. Functions of Python are followed (`frames`); of others only those
are called that are known to have no effects and to depend on their arguments alone.
"""

import builtins
import cmath
import functools
import inspect
import math
import operator
import sys
import types

import numpy as np

from ndx._api.public_function import Function
from ndx._core import NDArray
from ndx._fusing.attributes import MISSING, of_class
from ndx._fusing.calls import call_of_ndx
from ndx._fusing.outside import HEAP, Opaque, Property, Reference
from ndx._fusing.plain import is_plain
from ndx._fusing.scalars import Placeholder, Scalar, settled
from ndx._fusing.steps import NotRecorded, Raised
from ndx._fusing.tracing import Tracer
from ndx._lib.caches import cached
from ndx._lib.numpy_private import part
from ndx._lib.trees import leaves
from ndx._numpy.wrappers import NumPyFunction, NumPyUfunc

_DISPATCHER = part("dispatcher")
_CONTAINERS = (list, tuple, dict)
# Types whose methods have no effects but on an object that the function has made.
_OWN = frozenset(
    {bool, int, float, complex, str, bytes, tuple, list, dict, set, frozenset, range,
     slice, type({}.keys()), type({}.values()), type({}.items()), np.finfo, np.iinfo}
)  # fmt: skip
# Functions that depend on their arguments alone.
_PURE = {
    abs, bool, bytes, chr, complex, divmod, enumerate, float, format, frozenset, int,
    max, min, ord, pow, range, repr, round, set, slice, str, sum, zip,
    *(getattr(math, name) for name in dir(math) if callable(getattr(math, name))),
    *(getattr(cmath, name) for name in dir(cmath) if callable(getattr(cmath, name))),
    np.broadcast_shapes, np.can_cast, np.dtype, np.finfo, np.iinfo, np.isdtype,
    np.isscalar, np.issubdtype, np.promote_types, np.result_type,
}  # fmt: skip
_PURE_OF_NDX = {"broadcast_shapes", "can_cast", "finfo", "iinfo", "isdtype",
                "result_type"}  # fmt: skip
_OPERATORS = {
    getattr(operator, name)
    for name in (
        "add", "and_", "eq", "floordiv", "ge", "gt", "iadd", "iand", "ifloordiv",
        "imul", "invert", "ior", "isub", "itruediv", "le", "lshift", "lt", "mod",
        "mul", "ne", "neg", "or_", "pos", "pow", "rshift", "sub", "truediv", "xor",
    )
}  # fmt: skip
_INPLACE = {
    getattr(operator, f"i{name}")
    for name in (
        "add", "and", "floordiv", "lshift", "matmul", "mod", "mul", "or", "pow",
        "rshift", "sub", "truediv", "xor",
    )
}  # fmt: skip
# Values that may be equal without being the same object.
_COPIED = (int, float, complex, str, bytes, tuple, frozenset, slice, range, np.generic)


_signature = cached("signatures of fused functions", 256)(inspect.signature)


class LocalFunction(Opaque):
    """A function that the function defines.

    Parameters
    ----------
    code : types.CodeType
    origin : Reference
        The function from outside whose globals it shares.
    """

    __slots__ = ("cells", "code", "defaults", "keyword_defaults", "origin")

    def __init__(self, code, origin):
        self.code, self.origin = code, origin
        self.defaults, self.keyword_defaults, self.cells = (), {}, ()


class Bound(Opaque):
    """A function with its first argument: a method and its object."""

    __slots__ = ("function", "owner")

    def __init__(self, function, owner):
        self.function, self.owner = function, owner


class LocalGenerator:
    """A generator that the function has made: each item is computed when it is next."""

    __repr__ = Opaque._refuse

    def __init__(self, frame):
        self.frame = frame

    def __iter__(self):
        return self

    def __next__(self):
        value = self.frame.run()
        if self.frame.place is None:
            raise StopIteration
        return value


class Super(Opaque):
    """What ``super()`` is in a method: the next class, and the object."""

    __slots__ = ("kind", "owner")

    def __init__(self, kind, owner):
        self.kind, self.owner = kind, owner


class Method(Opaque):
    """A method of a list, dict or other container from outside."""

    __slots__ = ("name", "owner")

    def __init__(self, owner, name):
        self.owner, self.name = owner, name


class Evaluation:
    """One recording of a function: its trace, what it reads, and what it may do.

    Parameters
    ----------
    outside : ndx._fusing.outside.Outside
    call_python : callable
        Walks along a function of Python (`ndx._fusing.frames.call`).
    fused : type
        Of fused functions.
    """

    def __init__(self, outside, call_python, fused):
        self.outside, self.call_python, self.fused = outside, call_python, fused
        self.depth = self.instructions = 0

    def refuse(self, reason):
        """Refuse the recording: the function is to be called as it is."""
        raise NotRecorded(reason)

    def perform(self, operation, *args, **kwargs):
        """Apply an operation to values; the function may catch what that raises.

        An error of the operation itself comes again when the operation is repeated. An
        error that does not, such as one of a signal's handler, belongs to the caller.
        """
        try:
            return operation(*args, **kwargs)
        except (NotRecorded, Raised):
            raise
        except Exception as error:
            try:
                operation(*args, **kwargs)
            except (NotRecorded, Raised):
                raise
            except Exception as again:
                if type(again) is type(error):
                    raise Raised(error) from None
            raise

    def words(self, value):
        """Return a short text that names a called object."""
        if type(value) is Reference:
            return self.outside.words(value)
        return getattr(value, "__qualname__", type(value).__name__)

    # ---- Reads

    def global_of(self, origin, name):
        """Return a global of a function."""
        try:
            return self.outside.global_of(origin, name)
        except NameError as error:
            raise Raised(error) from None

    def module(self, wanted, name):
        """Return a module that the function imports, if it is already known."""
        modules = self.outside.constant(sys.modules, "sys.modules")
        for needed in (name, wanted):
            try:
                found = self.outside.value(modules, needed)
            except KeyError:
                self.refuse(f"it imports {name}")
        return found

    def attribute(self, value, name):
        """Return an attribute, or a method, of a value."""
        kind = type(value)
        if kind is Super:
            found = self.attribute(value.kind, name)
            if type(found) is Reference and type(found.value) is types.FunctionType:
                return Bound(found, value.owner)
            return self.refuse(f"it uses super().{name}, which is no method")
        if kind is Reference:
            if type(value.value) in _CONTAINERS:
                return Method(value, name)
            try:
                found = self.outside.attribute(value, name)
            except AttributeError as error:
                raise Raised(error) from None
            if type(found) is Property:
                return self.call(found.getter, (found.owner,), {})
            if type(found) is Reference and type(found.value) is types.MethodType:
                return Bound(*self.outside.method(found, value))
            return found
        if (
            isinstance(value, Placeholder)
            or kind in _OWN
            or is_plain(value)
            or issubclass(kind, BaseException | np.dtype | np.generic)
            or (kind is type and not value.__flags__ & HEAP)
        ):
            if type(value) is Scalar and not hasattr(float, name):
                self.refuse(f"it uses x.{name} of a float")
            return self.perform(getattr, value, name)
        return self.refuse(f"it uses an attribute of a {kind.__name__}")

    def super_of(self, kind, owner):
        """Return ``super(kind, owner)``."""
        if type(kind) is not Reference or type(owner) is not Reference:
            self.refuse("it calls super() of no object")
        outside = self.outside
        orders = outside.attribute(outside.class_of(owner), "__mro__")
        classes = [outside.pinned(x) for x in outside.items(orders)]
        if kind.value not in classes:
            self.refuse("it calls super() of an object of another class")
        outside.pinned(kind)
        after = classes.index(kind.value) + 1
        # A class after the next one is found by the next one's own order.
        if tuple(classes[after:]) != classes[after].__mro__:
            self.refuse("it calls super() of several bases")
        return Super(outside.item(orders, after), owner)

    def is_list(self, value):
        """Whether a value is a list or tuple from outside."""
        if type(value) is not Reference:
            return False
        kind = type(value.value)
        if kind is list or kind is tuple:
            return True
        own = ("__getitem__", "__iter__", "__len__")
        return issubclass(kind, tuple) and all(
            getattr(kind, name) is getattr(tuple, name) for name in own
        )

    def is_dict(self, value):
        """Whether a value is a dict from outside."""
        return type(value) is Reference and type(value.value) is dict

    def taken(self, value):
        """Return a container from outside as a container of its items; others as is."""
        if self.is_list(value):
            items = self.outside.items(value)
            return items if type(value.value) is list else tuple(items)
        if self.is_dict(value):
            return self.mapping(value)
        if type(value) is Reference and type(value.value) in (set, frozenset):
            return type(value.value)(self.outside.keys(value))
        return value

    def mapping(self, value):
        """Return a dict from outside as one of its items."""
        if type(value) is dict:
            return value
        if not self.is_dict(value):
            return self.refuse(f"it unpacks {self.words(value)}")
        keys = self.outside.keys(value)
        return {key: self.outside.value(value, key) for key in keys}

    def unwrapped(self, value):
        """Return a type or function from outside itself, also in tuples."""
        if type(value) is tuple:
            return tuple(self.unwrapped(item) for item in value)
        if type(value) is not Reference:
            return value
        if self.is_list(value) or self.is_dict(value):
            return self.unwrapped(self.taken(value))
        found = value.value
        if type(found) is type:
            self.outside.pinned(value)
            return found
        return self.refuse(f"it passes on {self.words(value)}")

    def item(self, value, key):
        """Return ``value[key]``."""
        if self.is_list(value):
            if type(key) is not int:
                return self.perform(operator.getitem, self.taken(value), key)
            try:
                return self.outside.item(value, key)
            except IndexError as error:
                raise Raised(error) from None
        if self.is_dict(value):
            try:
                return self.outside.value(value, settled(key))
            except KeyError as error:
                raise Raised(error) from None
        if type(value) is Reference:
            return self.refuse(f"it takes an item of {self.words(value)}")
        return self.perform(operator.getitem, value, key)

    def store_item(self, target, key, value):
        """Perform ``target[key] = value``: in an array, or a container of its own."""
        if type(target) is Reference:
            # As the last step of ``us[0] *= 2``, where an array stays where it is.
            plain = self.is_dict(target) or type(target.value) is list
            if plain and type(value) is Tracer and self.item(target, key) is value:
                return
            self.refuse(f"it changes {self.words(target)}")
        self.perform(operator.setitem, target, key, value)

    def store_attribute(self, owner, name, value):
        """Refuse to set an attribute, unless it is set to the array that it already is.

        ``self.u *= 2`` ends with such an assignment.
        """
        if type(owner) is Reference and type(value) is Tracer:
            kind = type(owner.value)
            own = [c.__dict__[name] for c in kind.__mro__ if name in c.__dict__]
            if (
                kind.__setattr__ is object.__setattr__
                and all(type(x) is types.MemberDescriptorType for x in own)
                and self.attribute(owner, name) is value
            ):
                return
        self.refuse(f"it sets an attribute, {name}")

    # ---- Operators

    def binary(self, operation, one, other):
        """Return the result of a binary operator or a comparison."""
        if type(one) is Reference or type(other) is Reference:
            return self._binary_of_references(operation, one, other)
        if isinstance(one, np.generic) or isinstance(other, np.generic):
            # A warning would come once instead of at each call.
            with np.errstate(all="raise"):
                return self.perform(operation, one, other)
        return self.perform(operation, one, other)

    def _binary_of_references(self, operation, one, other):
        if type(one) is Reference and operation in _INPLACE:
            self.refuse(f"it changes {self.words(one)}")
        values = [self._identity(self.taken(x)) for x in (one, other)]
        opaque = [x for x in values if type(x) is Reference]
        if not opaque:
            # A dtype would read the attributes of a class.
            classes = [x for x in values if isinstance(x, type) and x.__flags__ & HEAP]
            if not classes or all(isinstance(x, type) or x is None for x in values):
                return self.perform(operation, *values)
            opaque = [one if type(one) is Reference else other]
        if operation in (operator.eq, operator.ne) and all(
            type(x) is Reference and type(x.value) is types.FunctionType for x in values
        ):
            return self.is_same(one, other) == (operation is operator.eq)
        kind = type(opaque[0].value).__name__
        return self.refuse(f"it computes with {self.words(opaque[0])}, a {kind}")

    def truth(self, value):
        """Return ``bool(value)``."""
        if type(value) is Reference:
            found = value.value
            if isinstance(found, _CONTAINERS) and type(found) in _CONTAINERS:
                return self.outside.length(value) != 0
            has = self.outside.has_method
            if has(value, "__bool__") or has(value, "__len__"):
                self.refuse(f"it asks whether {self.words(value)} is true")
            return True
        return True if isinstance(value, Opaque) else self.perform(bool, value)

    def is_same(self, one, other):
        """Return ``one is other``."""
        one, other = self._identity(one), self._identity(other)
        if type(one) is Scalar or type(other) is Scalar:
            if one is None or other is None or type(one) is not type(other):
                return False
            self.refuse("it asks which float is which")
        foreign = [type(x) is Tracer and x._foreign for x in (one, other)]
        if all(foreign) and one is not other:
            self.refuse("it asks which array is which")
        if not all(type(x) is Reference for x in (one, other)):
            if all(
                isinstance(x, _COPIED) and type(x) is not bool for x in (one, other)
            ):
                self.refuse("it asks which of equal values is which")
            # A reference is neither a plain value nor made by the function.
            return one is other
        if type(one.value) is not type(other.value):
            return False
        return self.outside.pinned(one) is self.outside.pinned(other)

    def _identity(self, value):
        """Return types and functions of C themselves, as the function may have them."""
        if type(value) is Reference and type(value.value) in (
            type, types.BuiltinFunctionType,
        ):  # fmt: skip
            return self.outside.pinned(value)
        return value

    def contains(self, container, item):
        """Return ``item in container``."""
        if self.is_dict(container):
            try:
                self.outside.value(container, settled(item))
            except KeyError:
                return False
            return True
        container = self.taken(container)
        return self.perform(operator.contains, container, self._identity(item))

    def iterate(self, value):
        """Return an iterator over a value."""
        if type(value) is Reference and type(value.value) in (set, frozenset):
            # A copy may have another order.
            return iter(self.outside.keys(value))
        value = self.taken(value)
        if type(value) is Reference:
            self.refuse(f"it iterates over {self.words(value)}")
        return self.perform(iter, value)

    # ---- Calls

    def call(self, function, args, kwargs):
        """Return the result of a call."""
        kind = type(function)
        if kind is Bound:
            return self.call(function.function, (function.owner, *args), kwargs)
        if kind is LocalFunction:
            return self.call_python(self, function, args, kwargs)
        if kind is Method:
            return self._call_method(function, args, kwargs)
        if kind is not Reference:
            return self._call_own(function, args, kwargs)
        value = function.value
        kind = type(value)
        if kind is types.FunctionType:
            return self.call_python(self, function, args, kwargs)
        if kind is types.MethodType:
            found = self.outside.method(function, None)
            return self.call(Bound(*found), args, kwargs)
        if kind is self.fused:
            wrapped = self.outside.attribute(function, "_function")
            return self.call(wrapped, args, kwargs)
        if kind is staticmethod:
            return self.call(self.attribute(function, "__func__"), args, kwargs)
        if kind is functools.partial:
            inner = self.attribute(function, "func")
            first = self.iterate(self.attribute(function, "args"))
            given = self.mapping(self.attribute(function, "keywords"))
            return self.call(inner, (*first, *args), {**given, **kwargs})
        return self._call_known(function, args, kwargs)

    def _call_known(self, function, args, kwargs):
        """Call an object that is no function of Python."""
        value = function.value
        try:
            own = _BUILTINS.get(value)
        except TypeError:
            own = None
        if own is not None:
            self.outside.pinned(function)
            try:
                _signature(own).bind(self, *args, **kwargs)
            except TypeError:
                self.refuse(f"it calls {self.words(function)} with other arguments")
            return own(self, *args, **kwargs)
        if isinstance(value, type) or type(value) in (
            types.BuiltinFunctionType, Function, NumPyFunction, NumPyUfunc, np.ufunc,
            _DISPATCHER,
        ):  # fmt: skip
            self.outside.pinned(function)
            return self._call_native(value, args, kwargs, self.words(function))
        call = type(value).__call__ if hasattr(type(value), "__call__") else None  # noqa: B004
        if type(call) is types.FunctionType:
            method = self.outside.attribute(self.outside.class_of(function), "__call__")
            return self.call(method, (function, *args), kwargs)
        return self.refuse(f"it calls {self.words(function)}")

    def _call_native(self, value, args, kwargs, words):
        """Call a function or type that is known to have no effects."""
        args = tuple(self._passed(item) for item in args)
        kwargs = {name: self._passed(item) for name, item in kwargs.items()}
        # NumPy looks for arrays in sequences, and in no other containers.
        found = list(leaves([*args, *kwargs.values()], (list, tuple)))
        traced = any(type(x) is Tracer for x in found)
        if value in _OPERATORS and not kwargs:
            if len(args) == 2:
                return self.binary(value, *args)
            return self.perform(value, *args)
        if type(value) is Function:
            if not traced:
                if value.__module__ != "ndx" or value.__name__ not in _PURE_OF_NDX:
                    self.refuse(f"it calls {words} without an array")
                return self.perform(value, *settled(args), **settled(kwargs))
            return self.perform(call_of_ndx, value, args, kwargs)
        if value in (str, repr, format) and any(
            isinstance(x, np.generic) for x in args
        ):
            self.refuse("it prints a scalar of NumPy, by options that may change")
        numeric = isinstance(value, type) and issubclass(value, np.generic)
        of_numpy = type(value) in (np.ufunc, NumPyUfunc)
        dispatches = type(value) in (_DISPATCHER, NumPyFunction)
        if not (value in _PURE or numeric or of_numpy or (dispatches and traced)):
            self.refuse(f"it calls {words}")
        if not traced:
            args, kwargs = settled(args), settled(kwargs)
            if of_numpy and not all(map(is_plain, [*args, *kwargs.values()])):
                self.refuse(f"it calls {words} of what is no number")
        with np.errstate(all="raise"):
            found = self.perform(value, *args, **kwargs)
        if type(value) is NumPyFunction and type(found) is Tracer:
            # NumPy's own function returns an array, where that of `ndx.numpy` does not.
            found._buffer.number |= found._buffer.reduced
        return found

    def _passed(self, value):
        """Return an argument for a function whose code is not followed."""
        if type(value) is Reference:
            found = self.unwrapped(value)
            if type(found) is type and found.__flags__ & HEAP:
                # The function may read attributes of the argument.
                self.refuse(f"it passes on {self.words(value)}")
            return found
        if type(value) in (list, tuple) and any(
            type(x) is Reference for x in leaves(value, (list, tuple))
        ):
            return type(value)(self._passed(item) for item in value)
        return value

    def _call_own(self, function, args, kwargs):
        """Call a method of a placeholder, or of an object of the function's own."""
        owner = getattr(function, "__self__", None)
        if isinstance(owner, Placeholder):
            args = tuple(self._passed(item) for item in args)
            kwargs = {name: self._passed(item) for name, item in kwargs.items()}
            found = self.perform(function, *args, **kwargs)
            if type(found) is types.ModuleType:
                return self.outside.constant(found, found.__name__)
            return found
        known = type(owner) in _OWN or isinstance(owner, np.generic | np.dtype)
        if known and isinstance(function, types.BuiltinFunctionType | _SLOT):
            if function.__name__ in ("extend", "join", "update"):
                args = tuple(self.taken(item) for item in args)
            if type(owner) in (list, dict, set):
                return self.perform(function, *args, **kwargs)
            return self.perform(function, *settled(args), **settled(kwargs))
        if type(function) is type and (
            function in _PURE or issubclass(function, np.generic)
        ):
            return self._call_native(function, args, kwargs, function.__name__)
        return self.refuse(f"it calls {self.words(function)}")

    def _call_method(self, method, args, kwargs):
        """Call a method of a list, tuple or dict from outside."""
        owner, name = method.owner, method.name
        words = f"{self.words(owner)}.{name}"
        if type(owner.value) is dict and not kwargs:
            if name == "get" and len(args) in (1, 2):
                default = args[1] if len(args) == 2 else None
                return self.outside.value(owner, settled(args[0]), default)
            if name in ("keys", "values", "items", "copy") and not args:
                return getattr(self.mapping(owner), name)()
        elif name in ("index", "count", "copy"):
            return self.perform(getattr(self.taken(owner), name), *args, **kwargs)
        return self.refuse(f"it calls {words}")


_SLOT = types.MethodWrapperType


# ---- Builtins that look at their arguments


def _type(evaluation, value):
    if type(value) is Reference:
        return evaluation.outside.class_of(value)
    if isinstance(value, Opaque | LocalGenerator):
        evaluation.refuse("it asks for the type of a function")
    if type(value) is Tracer:
        return np.ndarray if value._foreign else NDArray
    return float if type(value) is Scalar else type(value)


def _isinstance(evaluation, value, kinds):
    found = evaluation.unwrapped(kinds)
    if not all(type(kind) is type for kind in leaves(found, (list, tuple))):
        evaluation.refuse("it asks for an instance of an abstract class")
    if type(value) is not Reference:
        if isinstance(value, Opaque | LocalGenerator):
            evaluation.refuse("it asks for the type of a function")
        return evaluation.perform(isinstance, value, found)
    outside = evaluation.outside
    kind = outside.class_of(value)
    if of_class(value.value, "__class__") is not object.__dict__["__class__"]:
        evaluation.refuse("it asks for the type of what tells another one")
    if kind.value.__flags__ & HEAP:
        # The bases of a class may change.
        for base in outside.items(outside.attribute(kind, "__mro__")):
            outside.pinned(base)
    return issubclass(kind.value, found)


def _len(evaluation, value):
    if type(value) is Reference and type(value.value) in _CONTAINERS:
        return evaluation.outside.length(value)
    return evaluation.perform(len, evaluation.taken(value))


def _getattr(evaluation, value, name, default=MISSING):
    try:
        return evaluation.attribute(value, settled(name))
    except Raised as raised:
        if default is MISSING or not isinstance(raised.error, AttributeError):
            raise
        return default


def _hasattr(evaluation, value, name):
    return _getattr(evaluation, value, name, default=_NOTHING) is not _NOTHING


def _callable(evaluation, value):
    if type(value) is Reference:
        return evaluation.outside.has_method(value, "__call__")
    return isinstance(value, Opaque) or callable(value)


def _bool(evaluation, value=False):
    return evaluation.truth(value)


def _made(kind):
    def make(evaluation, *args):
        return kind(*(evaluation.iterate(item) for item in args))

    return make


def _dict(evaluation, *args, **kwargs):
    if not args:
        return kwargs
    return evaluation.perform(dict, evaluation.taken(args[0]), **kwargs)


def _combined(function):
    def combine(evaluation, *args, **kwargs):
        args = [evaluation.taken(item) for item in args]
        return evaluation.perform(function, *args, **kwargs)

    return combine


def _tested(wanted):
    def test(evaluation, values):
        found = (evaluation.truth(item) for item in evaluation.iterate(values))
        return any(x is wanted for x in found) is wanted

    return test


def _reversed(evaluation, values):
    return iter(list(evaluation.iterate(values))[::-1])


def _map(evaluation, function, *values):
    rows = zip(*map(evaluation.iterate, values), strict=False)
    return iter([evaluation.call(function, row, {}) for row in rows])


def _filter(evaluation, function, values):
    kept = []
    for item in evaluation.iterate(values):
        found = item if function is None else evaluation.call(function, (item,), {})
        if evaluation.truth(found):
            kept.append(item)
    return iter(kept)


def _reduce(evaluation, function, values, *initial):
    values = iter([*initial, *evaluation.iterate(values)])
    found = evaluation.perform(next, values)
    for item in values:
        found = evaluation.call(function, (found, item), {})
    return found


def _sorted(evaluation, values, *, reverse=False):
    items = list(evaluation.iterate(values))
    return evaluation.perform(sorted, items, reverse=reverse)


_NOTHING = object()
_BUILTINS = {
    builtins.type: _type, builtins.isinstance: _isinstance, builtins.len: _len,
    builtins.getattr: _getattr, builtins.hasattr: _hasattr,
    builtins.callable: _callable, builtins.bool: _bool, builtins.list: _made(list),
    builtins.tuple: _made(tuple), builtins.set: _made(set), builtins.dict: _dict,
    builtins.iter: lambda evaluation, values: evaluation.iterate(values),
    builtins.next: _combined(next), builtins.zip: _combined(zip),
    builtins.enumerate: _combined(enumerate), builtins.sum: _combined(sum),
    builtins.min: _combined(min), builtins.max: _combined(max),
    builtins.any: _tested(True), builtins.all: _tested(False),
    builtins.reversed: _reversed, builtins.map: _map, builtins.filter: _filter,
    builtins.sorted: _sorted, functools.reduce: _reduce,
}  # fmt: skip

"""Python's floats among the arguments of a function that is recorded."""

import operator

import numpy as np


class Placeholder:
    """Placeholder for an argument while a function is recorded."""

    __slots__ = ()


class Scalar(Placeholder):
    """Placeholder for a Python float among the arguments.

    As an operand of arrays the float is read at each replay. If the function looks at
    it in any other way, the recording holds for this value only.
    """

    __slots__ = ("_position", "_trace", "_value")

    def __init__(self, trace, position, value):
        self._trace, self._position, self._value = trace, position, value

    def _now(self):
        """Return the value, which becomes a part of the signature."""
        self._trace.by_value.add(self._position)
        return self._value

    @property
    def __class__(self):
        return float

    def __getattr__(self, name):
        return getattr(self._now(), name)

    def __array__(self, dtype=None, copy=None):
        return np.array(self._now(), dtype)

    def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
        """Compute with the value, unless a tracer computes."""
        if any(_is_tracer(x) for x in inputs):
            return NotImplemented
        return getattr(ufunc, method)(*settled(inputs), **settled(kwargs))

    def __array_function__(self, function, types, args, kwargs):
        """Compute with the value, unless a tracer computes."""
        if any(issubclass(kind, Placeholder) and kind is not Scalar for kind in types):
            return NotImplemented
        return function(*settled(args), **settled(kwargs))


def _is_tracer(value):
    return isinstance(value, Placeholder) and type(value) is not Scalar


def settled(value, entered=()):
    """Return a value, or lists, tuples and a dict of values, without a `Scalar`.

    No `map_tree`: what has no `Scalar` stays the same object, as in a call.
    """
    if type(value) is Scalar:
        return value._now()
    if id(value) in entered:
        return value
    if type(value) in (list, tuple):
        items = [settled(item, (*entered, id(value))) for item in value]
        same = all(map(operator.is_, items, value))
        return value if same else type(value)(items)
    if type(value) is dict:
        return {settled(key): settled(item) for key, item in value.items()}
    return value


def _before(operation):
    """Return the method of an operator whose first operand is the float."""

    def method(self, *others):
        if any(_is_tracer(x) for x in others):
            return NotImplemented
        # Not by the method of `float`: NumPy's scalars are floats, too, and come first.
        return operation(self._now(), *settled(others))

    return method


def _behind(name, operation):
    """Return the method of an operator whose second operand is the float."""

    def method(self, other, *modulo):
        if _is_tracer(other):
            return NotImplemented
        other = settled(other)
        found = getattr(self._now(), name)(other, *modulo)
        return operation(other, self._now()) if found is NotImplemented else found

    return method


def _forward(name):
    def method(self, *args):
        return getattr(self._now(), name)(*settled(args))

    method.__name__ = name
    return method


_OPERATORS = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul,
    "truediv": operator.truediv, "floordiv": operator.floordiv, "mod": operator.mod,
    "divmod": divmod, "pow": pow,
}  # fmt: skip
_COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge")
_OWN = (
    "__class__", "__getattribute__", "__init__", "__new__", "__setattr__",
    "__delattr__", "__init_subclass__", "__subclasshook__", "__getformat__",
    "__doc__", "__dir__", "__sizeof__", "__getstate__",
)  # fmt: skip
for _name in dir(float):
    if _name.startswith("__") and _name not in _OWN:
        setattr(Scalar, _name, _forward(_name))
for _name, _operation in _OPERATORS.items():
    setattr(Scalar, f"__{_name}__", _before(_operation))
    setattr(Scalar, f"__r{_name}__", _behind(f"__r{_name}__", _operation))
for _name in _COMPARISONS:
    setattr(Scalar, f"__{_name}__", _before(getattr(operator, _name)))

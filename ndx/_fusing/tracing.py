"""Tracers: placeholders for arrays while a function is recorded.

A `Trace` is the list of the function's steps, in order, on parts of *buffers*. A buffer
is an array among the arguments, or one that the function would make. A `Tracer` is a
part of a buffer: an offset and strides, as of any view. Each operation asks
`_fusing.rules` for dtypes, appends a step, and returns the tracer of a new buffer; an
assignment writes to the part of an old one. So aliases mean the same as for arrays.

What can't be recorded raises `NotRecorded`, and marks the trace, so that a function
which catches the exception is not recorded either.
"""

import math

import numpy as np

import ndx._fusing.rules as rules
from ndx._core import NDArray
from ndx._fusing.scalars import Placeholder, Scalar
from ndx._fusing.steps import (
    BOOL,
    Buffer,
    Constant,
    NotRecorded,
    Parameter,
    Part,
    Step,
    identity,
    may_clash,
)

_MOST_STEPS = 400


class Trace:
    """The steps of a function."""

    def __init__(self):
        self.steps = []
        self.reason = None
        self.by_value = set()
        self.used = set()  # arguments that must not be stale
        # Whether there are numbers at all: on a device, elements are arrays.
        self.numbers = True

    def refuse(self, reason):
        """Raise `NotRecorded`: the function is to be called as it is."""
        if self.reason is None:
            self.reason = reason
        raise NotRecorded(reason)

    def new(self, code, shape, operands=()):
        """Return the tracer of a new array, laid out like operands of its shape."""
        order, strides = rules.layout_of(shape, list(operands), rules.itemsize(code))
        return Tracer(self, Buffer(code, shape, strides, order), 0, shape, strides)

    def add(self, name, code, into, target, sources, shape=None, **how):
        """Append a step that writes to a tracer."""
        if len(self.steps) >= _MOST_STEPS:
            self.refuse(f"it has more than {_MOST_STEPS} steps")
        shape = target.shape if shape is None else shape
        self.steps.append(
            Step(name, code, into, shape, target._part(shape), tuple(sources), **how)
        )

    # ---- Operands

    def operand(self, value):
        """Return a tracer, a Python scalar, or a `Scalar`; refuse anything else."""
        if type(value) is Tracer or type(value) is Scalar:
            return value
        if rules.computes_itself(value):
            self.refuse(f"it computes with a {type(value).__name__}")
        if isinstance(value, np.generic):
            return self.element(value)
        if isinstance(value, int | float | complex):
            return value
        return self.refuse(f"it computes with a {type(value).__name__}")

    def element(self, value):
        """Return NumPy's scalar as a number."""
        code = rules.code_of(value.dtype)
        made = self.new(code, ())
        made._buffer.number = True
        data = Constant(np.asarray(value).astype(rules.dtype_of(code)).tobytes())
        self.add("copy", code, code, made, [data])
        return made

    def source(self, value, code, shape):
        """Return an operand of a step in a dtype: a part, broadcast; or a constant."""
        if type(value) is Tracer:
            return self.cast(value, code)._part(shape)
        if type(value) is Scalar:
            if rules.kind(code) < 3:
                return Constant(rules.scalar_bytes(value._now(), code))
            return Parameter(value._position, code)
        return Constant(rules.scalar_bytes(value, code))

    def cast(self, x, code):
        """Return the elements of a tracer in a dtype."""
        if x._code == code:
            return x
        made = self.new(code, x.shape, [x.strides])
        self.convert(x, made, x.shape)
        return made

    def convert(self, x, target, shape):
        """Append the step that copies or casts a tracer's elements to another's."""
        if x._code == target._code:
            self.add("copy", x._code, x._code, target, [x._part(shape)])
        elif target._code == BOOL:
            zero = Constant(rules.scalar_bytes(0, x._code))
            self.add("not_equal", x._code, BOOL, target, [x._part(shape), zero])
        elif rules.casts(x._code, target._code):
            self.add("cast", x._code, target._code, target, [x._part(shape)])
        else:
            names = rules.dtype_of(x._code), rules.dtype_of(target._code)
            self.refuse(f"it casts {names[0]} to {names[1]}")

    def common(self, values):
        """Return the dtype of an operation on tracers and Python scalars."""
        code = None
        for x in values:
            if type(x) is Tracer:
                code = x._code if code is None else rules.promoted(code, x._code)
        for x in values:
            if type(x) is not Tracer:
                code = rules.with_scalar(code, x._value if type(x) is Scalar else x)
        return code

    # ---- Operations

    def elementwise(self, name, *values, out=None, is_operator=False):
        """Record one of ndx's elementwise operations."""
        values = [self.operand(value) for value in values]
        if not any(type(x) is Tracer for x in values):
            self.refuse(f"{name} has no array among its operands")
        if (
            name == "pow"
            and type(values[0]) is Tracer
            and type(values[1]) is not Tracer
        ):
            exponent = values[1]._now() if type(values[1]) is Scalar else values[1]
            known = rules.power(values[0]._code, exponent, is_operator)
            if known is not None:
                if values[0]._code == BOOL:
                    self.refuse("it squares bools")
                name, values = known, values[:1]
        codes = [x._code for x in values if type(x) is Tracer]
        if len(codes) == 2 and rules.is_mixed(name, *codes):
            self.refuse(f"{name} takes uint64 with signed integers as they are")
        code = self.common(values)
        found = rules.operation(name, code)
        if found is None:
            self.refuse(f"{name} of {rules.dtype_of(code)} has no loop to replay")
        taken, result = found
        shape = np.broadcast_shapes(*(x.shape for x in values if type(x) is Tracer))
        sources = [self.source(x, taken, shape) for x in values]
        if out is not None:
            return self.write(name, taken, result, out, shape, sources)
        operands = [part.strides for part in sources if type(part) is Part]
        made = self.new(result, shape, operands)
        made._buffer.number = all(x._is_number for x in values if type(x) is Tracer)
        self.add(name, taken, result, made, sources)
        return made

    def write(self, name, taken, result, out, shape, sources):
        """Record an operation that writes to an existing array."""
        if type(out) is not Tracer or out._code != result or out.shape != shape:
            self.refuse(f"the result of {name} does not fit the array it is for")
        out._require_writeable()
        target = out._part(shape)
        if any(may_clash(target, part, shape) for part in sources):
            made = self.new(result, shape)
            self.add(name, taken, result, made, sources)
            self.convert(made, out, shape)
        else:
            self.add(name, taken, result, out, sources)
        return out

    def inplace(self, name, x, value):
        """Record ``x = x op value`` in the memory of `x`."""
        other = self.operand(value)
        code = self.common([x, other])
        found = rules.operation(name, code)
        if found is None:
            self.refuse(f"{name} of {rules.dtype_of(code)} has no loop to replay")
        if found[1] == x._code:
            return self.elementwise(name, x, other, out=x, is_operator=True)
        kinds = rules.kind(found[1]), rules.kind(x._code)
        if not rules.stores(found[1], x._code) or kinds == (1, 2):
            self.refuse(f"{name} in place does not keep the dtype")
        made = self.elementwise(name, x, other, is_operator=True)
        if made.shape != x.shape:
            self.refuse(f"{name} in place does not keep the shape")
        x._require_writeable()
        self.convert(made, x, x.shape)
        return x

    def where(self, condition, x1, x2):
        """Record `where`."""
        condition = self.operand(condition)
        values = [self.operand(x1), self.operand(x2)]
        if type(condition) is not Tracer or not any(type(x) is Tracer for x in values):
            self.refuse("where has too few arrays among its arguments")
        condition = self.truth(condition)
        code = self.common(values)
        found = [condition, *(x for x in values if type(x) is Tracer)]
        shape = np.broadcast_shapes(*(x.shape for x in found))
        sources = [
            condition._part(shape),
            *(self.source(x, code, shape) for x in values),
        ]
        operands = [part.strides for part in sources if type(part) is Part]
        made = self.new(code, shape, operands)
        self.add("select", code, code, made, sources)
        return made

    def truth(self, x):
        """Return which elements are not zero."""
        return x if x._code == BOOL else self.elementwise("not_equal", x, 0)

    def fill(self, target, value):
        """Record the assignment of a Python scalar to all elements."""
        number = value._value if type(value) is Scalar else value
        if not rules.stores(rules.with_scalar(target._code, number), target._code):
            if isinstance(number, complex):
                self.refuse("it stores a complex number in a real array")
            number = value._now() if type(value) is Scalar else value
            value = bool(number) if target._code == BOOL else int(number)
        source = self.source(value, target._code, target.shape)
        self.add("copy", target._code, target._code, target, [source])

    def reduce(self, name, x, axis, keepdims):
        """Record a reduction by an operation over axes."""
        ndim = len(x.shape)
        listed = axis if isinstance(axis, tuple) else (axis,)
        if type(keepdims) is not bool or (
            axis is not None and not all(map(_is_integer, listed))
        ):
            self.refuse("it reduces with options")
        axes = set(range(ndim)) if axis is None else _axes(listed, ndim)
        kept = tuple(1 if i in axes else n for i, n in enumerate(x.shape))
        count = math.prod(x.shape)
        if count == 0 and name in ("maximum", "minimum"):
            self.refuse(f"an empty array has no {name}")
        if rules.kind(x._code) == 4 and name in ("maximum", "minimum"):
            self.refuse(f"the {name} of complex numbers is not replayed")
        if rules.operation(name, x._code) is None or not rules.adds_up(x._code):
            self.refuse(f"{name} of {rules.dtype_of(x._code)} has no loop to replay")
        made = self.new(x._code, kept)
        start = Constant(rules.scalar_bytes(identity(name, x._code, count), x._code))
        self.add("copy", x._code, x._code, made, [start], starts=True)
        source = x._part(x.shape)
        if count:
            self.add(name, x._code, x._code, made, [source], x.shape, reduces=True)
        if not keepdims:
            shape = tuple(n for i, n in enumerate(x.shape) if i not in axes)
            strides = tuple(n for i, n in enumerate(made.strides) if i not in axes)
            return Tracer(self, made._buffer, 0, shape, strides)
        return made


def _axes(axes, ndim):
    """Return the axes of a reduction as a set of numbers from 0."""
    found = {i % ndim for i in axes if -ndim <= i < ndim}
    if len(found) != len(axes):
        msg = f"an axis is named twice, or out of range: {axes}"
        raise ValueError(msg)
    return found


def _is_integer(value):
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


class Tracer(Placeholder):
    """Placeholder for an array while a function is recorded.

    It has the attributes and methods of arrays that can be replayed; all others refuse.
    """

    __slots__ = (
        "_buffer", "_foreign", "_is_view", "_offset", "_readonly", "_shape", "_strides",
        "_trace",
    )  # fmt: skip
    __hash__ = None

    def __init__(self, trace, buffer, offset, shape, strides, foreign=False,
                 readonly=False):  # fmt: skip
        self._trace, self._buffer, self._offset = trace, buffer, offset
        self._shape, self._strides = shape, strides
        self._foreign, self._readonly = foreign, readonly
        self._is_view = False

    @property
    def _is_number(self):
        is_number = self._buffer.number and self._trace.numbers
        return is_number and not self._is_view and self._shape == ()

    def _use(self):
        """Note that the array must not be stale, though no element of it is read."""
        if self._buffer.argument is not None:
            self._trace.used.add(self._buffer.argument)

    def _part(self, shape):
        """Return the elements, broadcast to a shape."""
        self._use()
        missing = len(shape) - len(self.shape)
        strides = (0,) * missing + tuple(
            0 if n == 1 else step
            for n, step in zip(self.shape, self.strides, strict=True)
        )
        return Part(self._buffer, self._offset, strides)

    def _view(self, offset, shape, strides):
        """Return a part of the same elements."""
        self._use()
        if 0 in shape:
            _, strides = rules.layout_of(shape, [], self.itemsize)
        made = Tracer(self._trace, self._buffer, self._offset + offset, shape, strides,
                      self._foreign, self._readonly)  # fmt: skip
        made._is_view = True
        return made

    def _require_writeable(self):
        """Refuse writes that would raise, or that write an element twice."""
        if self._foreign or self._readonly:
            self._trace.refuse("it writes to an array of NumPy, or to a read-only one")
        if not rules.is_distinct(self.shape, self.strides, self.itemsize):
            self._trace.refuse("it writes to an array whose elements overlap")

    # ---- Attributes

    @property
    def shape(self):
        """Length of each axis."""
        return self._shape

    @shape.setter
    def shape(self, value):
        self._trace.refuse("it sets the shape of an array")

    @property
    def strides(self):
        """Bytes between elements along each axis."""
        return self._strides

    @property
    def __class__(self):
        return np.ndarray if self._foreign else NDArray

    @property
    def _code(self):
        """Code of the dtype."""
        return self._buffer.code

    @property
    def dtype(self):
        """Data type of the elements."""
        return rules.dtype_of(self._buffer.code)

    @property
    def ndim(self):
        """Number of axes."""
        return len(self.shape)

    @property
    def size(self):
        """Number of elements."""
        return math.prod(self.shape)

    @property
    def itemsize(self):
        """Bytes of one element."""
        return rules.itemsize(self._buffer.code)

    @property
    def nbytes(self):
        """Bytes of all elements."""
        return self.size * self.itemsize

    @property
    def T(self):
        """The array with its axes in reverse order."""
        return self._view(0, self.shape[::-1], self.strides[::-1])

    def __len__(self):
        if not self.shape:
            msg = "an array without axes has no len()"
            raise TypeError(msg)
        return self.shape[0]

    def __iter__(self):
        return self._trace.refuse("it iterates over an array")

    def __getattr__(self, name):
        if name in Tracer.__slots__ or not hasattr(self.__class__, name):
            msg = f"an array has no attribute {name!r}"
            raise AttributeError(msg)
        return self._trace.refuse(f"it uses x.{name}")

    # ---- Parts

    def __getitem__(self, key):
        view = self._view(*self._select(key))
        if view.shape or Ellipsis in _items(key):
            return view
        # An element is a copy.
        made = self._trace.new(self._code, ())
        self._trace.convert(view, made, ())
        made._buffer.number = self._shape != () or self._is_number
        made._foreign = self._foreign
        return made

    def __setitem__(self, key, value):
        target = self._view(*self._select(key))
        target._require_writeable()
        value = self._trace.operand(value)
        if type(value) is not Tracer:
            self._trace.fill(target, value)
            return
        if not rules.stores(value._code, self._code) and rules.kind(value._code) == 4:
            self._trace.refuse("it stores complex numbers in a real array")
        while len(value.shape) > len(target.shape) and value.shape[0] == 1:
            value = value._view(0, value.shape[1:], value.strides[1:])
        if np.broadcast_shapes(value.shape, target.shape) != target.shape:
            self._trace.refuse("it stores values of another shape")
        part, source = target._part(target.shape), value._part(target.shape)
        if part == source and self._code == value._code:
            return
        if may_clash(part, source, target.shape):
            made = self._trace.new(value._code, value.shape)
            self._trace.convert(value, made, value.shape)
            value = made
        self._trace.convert(value, target, target.shape)

    def _select(self, key):
        """Return (offset, shape, strides) of a key of slices and integers."""
        self._use()
        items = _items(key)
        for item in items:
            if not (item is None or item is Ellipsis or type(item) is slice
                    or _is_integer(item)):  # fmt: skip
                self._trace.refuse("it indexes by an array or a list")
        used = sum(item is not None and item is not Ellipsis for item in items)
        if used > len(self.shape) or sum(item is Ellipsis for item in items) > 1:
            msg = "too many indices"
            raise IndexError(msg)
        if Ellipsis not in items:
            items = (*items, Ellipsis)
        offset, axis, shape, strides = 0, 0, [], []
        for item in items:
            if item is None:
                shape.append(1)
                strides.append(0)
                continue
            if item is Ellipsis:
                rest = len(self.shape) - used
                shape += self.shape[axis : axis + rest]
                strides += self.strides[axis : axis + rest]
                axis += rest
                continue
            length, step = self.shape[axis], self.strides[axis]
            axis += 1
            if type(item) is slice:
                chosen = range(*item.indices(length))
                offset += chosen.start * step if len(chosen) else 0
                shape.append(len(chosen))
                strides.append(rules.stepped(step, chosen.step))
            else:
                if not -length <= item < length:
                    msg = f"index {item} is out of bounds"
                    raise IndexError(msg)
                offset += (int(item) % length) * step
        if len(shape) > rules.most_axes():
            msg = f"the result would have {len(shape)} axes"
            raise np.exceptions.AxisError(msg)
        return offset, tuple(shape), tuple(strides)


def _items(key):
    """Return the items of a key as a tuple."""
    return key if type(key) is tuple else (key,)


def _operator(name, swapped=False):
    def method(self, other):
        if isinstance(other, list | tuple) or other is None:
            return self._trace.refuse("it computes with a list, a tuple or None")
        foreign = type(other) is not Tracer or other._foreign
        if self._foreign and foreign:
            return self._trace.refuse("it computes with arrays of NumPy alone")
        values = (other, self) if swapped else (self, other)
        return self._trace.elementwise(name, *values, is_operator=True)

    return method


def _inplace(name):
    def method(self, other):
        if self._foreign:
            return self._trace.refuse("it writes to an array of NumPy")
        if self._is_number:
            return self._trace.elementwise(name, self, other, is_operator=True)
        return self._trace.inplace(name, self, other)

    return method


def _unary(name):
    def method(self):
        if self._foreign:
            return self._trace.refuse("it computes with arrays of NumPy alone")
        return self._trace.elementwise(name, self)

    return method


def _refusing(name):
    def method(self, *args, **kwargs):
        return self._trace.refuse(f"it uses {name}, which needs the elements")

    return method


_OPERATORS = {
    "add": "add", "sub": "subtract", "mul": "multiply", "truediv": "divide",
    "floordiv": "floor_divide", "mod": "remainder", "and": "bitwise_and",
    "or": "bitwise_or", "xor": "bitwise_xor", "lshift": "bitwise_left_shift",
    "rshift": "bitwise_right_shift", "pow": "pow",
}  # fmt: skip
_COMPARISONS = {
    "eq": "equal", "ne": "not_equal", "lt": "less", "le": "less_equal",
    "gt": "greater", "ge": "greater_equal",
}  # fmt: skip
_UNARY = {"neg": "negative", "pos": "positive", "abs": "abs",
          "invert": "bitwise_invert"}  # fmt: skip
_REFUSED = ("bool", "int", "float", "complex", "index", "contains", "matmul", "rmatmul",
            "imatmul", "array", "divmod", "rdivmod", "round", "format", "dlpack",
            "copy", "deepcopy", "delitem", "repr", "str", "reduce", "reduce_ex",
            "sizeof")  # fmt: skip
for _name, _operation in _OPERATORS.items():
    setattr(Tracer, f"__{_name}__", _operator(_operation))
    setattr(Tracer, f"__r{_name}__", _operator(_operation, swapped=True))
    setattr(Tracer, f"__i{_name}__", _inplace(_operation))
for _name, _operation in _COMPARISONS.items():
    setattr(Tracer, f"__{_name}__", _operator(_operation))
for _name, _operation in _UNARY.items():
    setattr(Tracer, f"__{_name}__", _unary(_operation))
for _name in _REFUSED:
    setattr(Tracer, f"__{_name}__", _refusing(f"__{_name}__"))

"""Frames: a function's bytecode is followed, one instruction after the other.

A fused function is recorded by following its bytecode with placeholders, instead of
running it. So everything that it reads, calls and changes is seen before it happens,
and a recording has no effects. An instruction or object that is not known here is
refused, and the function is then called.
"""

import dis
import functools
import inspect
import operator
import sys

import numpy as np

from ndx._fusing.evaluation import Bound, LocalFunction, LocalGenerator
from ndx._fusing.outside import Reference
from ndx._fusing.steps import NotRecorded, Raised
from ndx._lib.caches import cached

# Later versions may give the same instructions another meaning.
_KNOWN = (3, 11) <= sys.version_info[:2] <= (3, 14)
_MOST_FRAMES = 50
_MOST_INSTRUCTIONS = 20_000
_NULL = object()

# The operations of BINARY_OP, in order; then those in place.
_BINARY = [
    operator.add, operator.and_, operator.floordiv, operator.lshift, operator.matmul,
    operator.mul, operator.mod, operator.or_, operator.pow, operator.rshift,
    operator.sub, operator.truediv, operator.xor, operator.iadd, operator.iand,
    operator.ifloordiv, operator.ilshift, operator.imatmul, operator.imul,
    operator.imod, operator.ior, operator.ipow, operator.irshift, operator.isub,
    operator.itruediv, operator.ixor,
]  # fmt: skip
_SUBSCRIPT = 26
_COMPARISONS = {
    "<": operator.lt, "<=": operator.le, "==": operator.eq, "!=": operator.ne,
    ">": operator.gt, ">=": operator.ge,
}  # fmt: skip
_EFFECTS = {
    "STORE_ATTR": "it sets an attribute", "DELETE_ATTR": "it deletes an attribute",
    "STORE_GLOBAL": "it sets a global", "DELETE_GLOBAL": "it deletes a global",
    "STORE_NAME": "it sets a global", "RAISE_VARARGS": "it raises an exception",
    "DELETE_SUBSCR": "it deletes an item", "LOAD_ASSERTION_ERROR": "an assertion fails",
    "BEFORE_WITH": "it enters a context",
    "LOAD_SPECIAL": "it enters a context", "LOAD_BUILD_CLASS": "it makes a class",
}  # fmt: skip


class Cell:
    """A variable that inner functions share."""

    def __init__(self, value=_NULL):
        self.value = value


class OuterCell:
    """A variable of a function around the fused one: read only."""

    def __init__(self, outside, function, index, name):
        self.read = functools.partial(outside.cell_of, function, index, name)

    @property
    def value(self):
        """The value, which is read at each replay."""
        return self.read()

    @value.setter
    def value(self, value):
        msg = "it sets a variable of a function around it"
        raise NotRecorded(msg)


@cached("instructions of fused functions", 256)
def _instructions(code):
    """Return the instructions of a code object, and their places by offset."""
    listed = list(dis.get_instructions(code))
    places = {instruction.offset: i for i, instruction in enumerate(listed)}
    return listed, places, dis.Bytecode(code).exception_entries


class Frame:
    """A call of a function of Python.

    Parameters
    ----------
    evaluation : Evaluation
    function : Reference or LocalFunction
    variables : dict
        The arguments, by names of parameters.
    """

    def __init__(self, evaluation, function, variables):
        self.evaluation, self.variables = evaluation, variables
        self.origin, code, self.cells = _parts(evaluation, function)
        self.code = code
        self.listed, self.places, self.handlers = _instructions(code)
        self.stack, self.place, self.names = [], 0, ()

    def run(self):
        """Return what the function returns, or what a generator yields next."""
        evaluation = self.evaluation
        if self.place is None:
            return None
        if evaluation.depth >= _MOST_FRAMES:
            msg = f"it calls functions in {_MOST_FRAMES} functions"
            raise NotRecorded(msg)
        evaluation.depth += 1
        try:
            while True:
                instruction = self.listed[self.place]
                self.place += 1
                evaluation.instructions += 1
                if evaluation.instructions > _MOST_INSTRUCTIONS:
                    msg = f"it takes more than {_MOST_INSTRUCTIONS} instructions"
                    raise NotRecorded(msg)
                name = instruction.opname
                if name == "YIELD_VALUE":
                    # The caller goes on; None is sent to it.
                    value = self.stack.pop()
                    self.stack.append(None)
                    return value
                if name in ("RETURN_VALUE", "RETURN_CONST"):
                    constant = name == "RETURN_CONST"
                    value = instruction.argval if constant else self.stack.pop()
                    self.place = None
                    return value
                step = _STEPS.get(name)
                if step is None:
                    msg = _EFFECTS.get(name, f"it has the instruction {name}")
                    raise NotRecorded(msg)
                try:
                    step(self, instruction)
                except Raised as raised:
                    if not self._handle(raised.error, instruction.offset):
                        raise
        finally:
            evaluation.depth -= 1

    def _handle(self, error, offset):
        """Go on at the handler of an exception; False: there is none."""
        for entry in self.handlers:
            if entry.start <= offset < entry.end:
                del self.stack[entry.depth :]
                if entry.lasti:
                    self.stack.append(offset)
                self.stack.append(error)
                self.place = self.places[entry.target]
                return True
        return False

    def first(self):
        """Return the value of the first parameter, for ``super()``."""
        value = self.local(self.code.co_varnames[0])
        return value.value if type(value) is Cell else value

    def pop(self, count):
        """Take the last values from the stack."""
        if not count:
            return []
        taken = self.stack[-count:]
        del self.stack[-count:]
        return taken

    def jump(self, instruction):
        """Go on at another instruction."""
        self.place = self.places[instruction.argval]

    def local(self, name):
        """Return the value of a variable."""
        value = self.variables.get(name, _NULL)
        if value is _NULL:
            msg = f"its variable {name} has no value"
            raise NotRecorded(msg)
        return value


def _parts(evaluation, function):
    """Return where a function's globals are, its code, and the cells of others."""
    if type(function) is LocalFunction:
        return function.origin, function.code, function.cells
    code = function.value.__code__
    cells = [
        OuterCell(evaluation.outside, function, i, name)
        for i, name in enumerate(code.co_freevars)
    ]
    return function, code, cells


def call(evaluation, function, args, kwargs):
    """Follow a function of Python for some arguments; return its result."""
    if not _KNOWN:
        msg = "the bytecode of this version of Python is not known"
        raise NotRecorded(msg)
    if type(function) is LocalFunction:
        code = function.code
        defaults = dict(zip(_positional(code)[::-1], function.defaults[::-1],
                            strict=False))  # fmt: skip
        defaults.update(function.keyword_defaults)
        default = defaults.__getitem__
    else:
        code, outside = function.value.__code__, evaluation.outside
        names = _positional(code)
        first = len(names) - len(function.value.__defaults__ or ())
        indices = {name: i - first for i, name in enumerate(names) if i >= first}
        keyword = function.value.__kwdefaults__ or {}
        defaults = {*indices, *keyword}

        def default(name):
            if name in keyword:
                return outside.keyword_default_of(function, name)
            return outside.default_of(function, indices[name], name)

    flags = code.co_flags
    if flags & (inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR):
        msg = f"it calls {code.co_qualname}, a coroutine"
        raise NotRecorded(msg)
    variables = _bound(code, defaults, default, args, kwargs)
    frame = Frame(evaluation, function, variables)
    return LocalGenerator(frame) if flags & inspect.CO_GENERATOR else frame.run()


def _positional(code):
    return code.co_varnames[: code.co_argcount]


def _bound(code, defaults, default, args, kwargs):
    """Return arguments by the names of parameters."""
    count, only = code.co_argcount, code.co_kwonlyargcount
    names = code.co_varnames
    variables = dict(zip(names[:count], args, strict=False))
    rest, kwargs = args[count:], dict(kwargs)
    for name in names[code.co_posonlyargcount : count + only]:
        if name in kwargs:
            if name in variables:
                _mismatch(code)
            variables[name] = kwargs.pop(name)
    for name in names[: count + only]:
        if name not in variables:
            if name not in defaults:
                _mismatch(code)
            variables[name] = default(name)
    place = count + only
    if code.co_flags & inspect.CO_VARARGS:
        variables[names[place]] = tuple(rest)
        rest, place = (), place + 1
    if code.co_flags & inspect.CO_VARKEYWORDS:
        variables[names[place]] = kwargs
        kwargs = {}
    if rest or kwargs:
        _mismatch(code)
    return variables


def _mismatch(code):
    msg = f"the arguments don't fit the parameters of {code.co_qualname}"
    raise Raised(TypeError(msg))


# ---- Instructions

_STEPS = {}


def _step(*names):
    """Add a function as the step of instructions."""

    def added(function):
        _STEPS.update(dict.fromkeys(names, function))
        return function

    return added


@_step("RESUME", "NOP", "CACHE", "EXTENDED_ARG", "PRECALL", "NOT_TAKEN", "GEN_START",
       "SETUP_ANNOTATIONS")  # fmt: skip
def _nothing(frame, instruction):
    pass


@_step("POP_TOP", "POP_EXCEPT", "POP_ITER")
def _pop(frame, instruction):
    frame.stack.pop()


@_step("END_FOR")
def _end_for(frame, instruction):
    frame.pop(2 if sys.version_info < (3, 13) else 1)


@_step("PUSH_NULL")
def _push_null(frame, instruction):
    frame.stack.append(_NULL)


@_step("COPY")
def _copy(frame, instruction):
    frame.stack.append(frame.stack[-instruction.arg])


@_step("SWAP")
def _swap(frame, instruction):
    stack, i = frame.stack, -instruction.arg
    stack[-1], stack[i] = stack[i], stack[-1]


# Variables and constants.


@_step("LOAD_CONST", "LOAD_SMALL_INT", "LOAD_CONST_IMMORTAL")
def _constant(frame, instruction):
    frame.stack.append(instruction.argval)


@_step("LOAD_COMMON_CONSTANT")
def _common_constant(frame, instruction):
    known = {"tuple": tuple, repr(all): all, repr(any): any}
    if instruction.argrepr not in known:
        raise NotRecorded(_EFFECTS["LOAD_ASSERTION_ERROR"])
    frame.stack.append(known[instruction.argrepr])


@_step("LOAD_FAST", "LOAD_FAST_CHECK", "LOAD_FAST_BORROW", "LOAD_CLOSURE")
def _load(frame, instruction):
    frame.stack.append(frame.local(instruction.argval))


@_step("LOAD_FAST_LOAD_FAST", "LOAD_FAST_BORROW_LOAD_FAST_BORROW")
def _load_two(frame, instruction):
    frame.stack += map(frame.local, instruction.argval)


@_step("LOAD_FAST_AND_CLEAR")
def _load_and_clear(frame, instruction):
    frame.stack.append(frame.variables.pop(instruction.argval, _NULL))


@_step("STORE_FAST", "STORE_FAST_MAYBE_NULL")
def _store(frame, instruction):
    frame.variables[instruction.argval] = frame.stack.pop()


@_step("STORE_FAST_LOAD_FAST")
def _store_and_load(frame, instruction):
    first, second = instruction.argval
    frame.variables[first] = frame.stack.pop()
    frame.stack.append(frame.local(second))


@_step("STORE_FAST_STORE_FAST")
def _store_two(frame, instruction):
    for name in instruction.argval:
        frame.variables[name] = frame.stack.pop()


@_step("DELETE_FAST")
def _delete(frame, instruction):
    frame.local(instruction.argval)
    del frame.variables[instruction.argval]


@_step("MAKE_CELL")
def _make_cell(frame, instruction):
    name = instruction.argval
    frame.variables[name] = Cell(frame.variables.get(name, _NULL))


@_step("COPY_FREE_VARS")
def _free_variables(frame, instruction):
    frame.variables.update(zip(frame.code.co_freevars, frame.cells, strict=True))


@_step("LOAD_DEREF")
def _load_cell(frame, instruction):
    value = frame.variables[instruction.argval].value
    if value is _NULL:
        msg = f"its variable {instruction.argval} has no value"
        raise NotRecorded(msg)
    frame.stack.append(value)


@_step("STORE_DEREF")
def _store_cell(frame, instruction):
    frame.variables[instruction.argval].value = frame.stack.pop()


@_step("LOAD_GLOBAL")
def _load_global(frame, instruction):
    found = frame.evaluation.global_of(frame.origin, instruction.argval)
    _push_callable(frame, found, instruction.arg & 1)


def _push_callable(frame, value, with_null):
    """Push a value that may be called next, and nothing for its object."""
    if not with_null:
        frame.stack.append(value)
    elif sys.version_info < (3, 13):
        frame.stack += (_NULL, value)
    else:
        frame.stack += (value, _NULL)


# Operations.


@_step("LOAD_ATTR")
def _attribute(frame, instruction):
    value = frame.evaluation.attribute(frame.stack.pop(), instruction.argval)
    method = sys.version_info >= (3, 12) and instruction.arg & 1
    _push_callable(frame, value, method)


@_step("LOAD_SUPER_ATTR")
def _super_attribute(frame, instruction):
    function, kind, owner = frame.pop(3)
    if type(function) is not Reference or function.value is not super:
        msg = "it calls another super()"
        raise NotRecorded(msg)
    frame.evaluation.outside.pinned(function)
    found = frame.evaluation.super_of(kind, owner)
    value = frame.evaluation.attribute(found, instruction.argval)
    _push_callable(frame, value, instruction.arg & 1)


@_step("LOAD_METHOD")
def _method(frame, instruction):
    value = frame.evaluation.attribute(frame.stack.pop(), instruction.argval)
    _push_callable(frame, value, True)


@_step("IMPORT_NAME")
def _import(frame, instruction):
    level, names = frame.pop(2)
    name = instruction.argval
    if level:
        msg = f"it imports {name} from its own package"
        raise NotRecorded(msg)
    wanted = name if names else name.partition(".")[0]
    frame.stack.append(frame.evaluation.module(wanted, name))


@_step("IMPORT_FROM")
def _import_from(frame, instruction):
    found = frame.evaluation.attribute(frame.stack[-1], instruction.argval)
    frame.stack.append(found)


@_step("UNARY_NEGATIVE", "UNARY_POSITIVE", "UNARY_INVERT", "UNARY_NOT", "TO_BOOL")
def _unary(frame, instruction):
    evaluation, value = frame.evaluation, frame.stack.pop()
    name = instruction.opname
    if name == "TO_BOOL":
        found = evaluation.truth(value)
    elif name == "UNARY_NOT":
        found = not evaluation.truth(value)
    else:
        found = evaluation.perform(_UNARY[name], value)
    frame.stack.append(found)


_UNARY = {"UNARY_NEGATIVE": operator.neg, "UNARY_POSITIVE": operator.pos,
          "UNARY_INVERT": operator.invert}  # fmt: skip


@_step("CALL_INTRINSIC_1")
def _intrinsic(frame, instruction):
    if instruction.arg == 5:
        value = frame.evaluation.perform(operator.pos, frame.stack.pop())
    elif instruction.arg == 6:
        value = tuple(frame.stack.pop())
    else:
        msg = f"it has the instruction {instruction.argrepr or instruction.opname}"
        raise NotRecorded(msg)
    frame.stack.append(value)


@_step("LIST_TO_TUPLE")
def _list_to_tuple(frame, instruction):
    frame.stack.append(tuple(frame.stack.pop()))


@_step("BINARY_OP")
def _binary(frame, instruction):
    one, other = frame.pop(2)
    evaluation = frame.evaluation
    if instruction.arg == _SUBSCRIPT:
        found = evaluation.item(one, other)
    else:
        found = evaluation.binary(_BINARY[instruction.arg], one, other)
    frame.stack.append(found)


@_step("BINARY_SUBSCR")
def _subscript(frame, instruction):
    value, key = frame.pop(2)
    frame.stack.append(frame.evaluation.item(value, key))


@_step("BINARY_SLICE")
def _slice(frame, instruction):
    value, start, stop = frame.pop(3)
    frame.stack.append(frame.evaluation.item(value, slice(start, stop)))


@_step("STORE_SUBSCR")
def _store_item(frame, instruction):
    value, target, key = frame.pop(3)
    frame.evaluation.store_item(target, key, value)


@_step("STORE_SLICE")
def _store_slice(frame, instruction):
    value, target, start, stop = frame.pop(4)
    frame.evaluation.store_item(target, slice(start, stop), value)


@_step("STORE_ATTR")
def _store_attribute(frame, instruction):
    value, owner = frame.pop(2)
    frame.evaluation.store_attribute(owner, instruction.argval, value)


@_step("COMPARE_OP")
def _compare(frame, instruction):
    one, other = frame.pop(2)
    evaluation = frame.evaluation
    found = evaluation.binary(_COMPARISONS[instruction.argval], one, other)
    if sys.version_info >= (3, 13) and instruction.arg & 16:
        found = evaluation.truth(found)
    frame.stack.append(found)


@_step("IS_OP")
def _is(frame, instruction):
    one, other = frame.pop(2)
    frame.stack.append(frame.evaluation.is_same(one, other) != bool(instruction.arg))


@_step("CONTAINS_OP")
def _contains(frame, instruction):
    item, container = frame.pop(2)
    found = frame.evaluation.contains(container, item)
    frame.stack.append(found != bool(instruction.arg))


# Jumps and loops.


@_step("JUMP_FORWARD", "JUMP_BACKWARD", "JUMP_BACKWARD_NO_INTERRUPT")
def _jump(frame, instruction):
    frame.jump(instruction)


@_step(*(f"POP_JUMP_{way}IF_{what}" for way in ("", "FORWARD_", "BACKWARD_")
         for what in ("TRUE", "FALSE", "NONE", "NOT_NONE")))  # fmt: skip
def _jump_if(frame, instruction):
    evaluation, value = frame.evaluation, frame.stack.pop()
    what = instruction.opname.partition("IF_")[2]
    if what.endswith("NONE"):
        taken = evaluation.is_same(value, None) == (what == "NONE")
    else:
        taken = evaluation.truth(value) == (what == "TRUE")
    if taken:
        frame.jump(instruction)


@_step("JUMP_IF_TRUE_OR_POP", "JUMP_IF_FALSE_OR_POP")
def _jump_or_pop(frame, instruction):
    wanted = instruction.opname == "JUMP_IF_TRUE_OR_POP"
    if frame.evaluation.truth(frame.stack[-1]) == wanted:
        frame.jump(instruction)
    else:
        frame.stack.pop()


@_step("GET_ITER")
def _iterate(frame, instruction):
    frame.stack.append(frame.evaluation.iterate(frame.stack.pop()))


@_step("FOR_ITER")
def _next(frame, instruction):
    end = frame.evaluation.perform(next, frame.stack[-1], _NULL)
    if end is not _NULL:
        frame.stack.append(end)
        return
    if sys.version_info < (3, 12):
        frame.stack.pop()
    else:
        # END_FOR is next, which takes the item that is not there.
        frame.stack.append(None)
    frame.jump(instruction)


# Containers and texts.


@_step("BUILD_TUPLE", "BUILD_LIST", "BUILD_SET", "BUILD_SLICE", "BUILD_STRING")
def _build(frame, instruction):
    items = frame.pop(instruction.arg)
    evaluation, name = frame.evaluation, instruction.opname
    if name == "BUILD_TUPLE":
        made = tuple(items)
    elif name == "BUILD_LIST":
        made = items
    elif name == "BUILD_SET":
        made = evaluation.perform(set, items)
    elif name == "BUILD_SLICE":
        made = slice(*items)
    else:
        made = evaluation.perform("".join, items)
    frame.stack.append(made)


@_step("BUILD_MAP")
def _build_map(frame, instruction):
    items = frame.pop(2 * instruction.arg)
    pairs = zip(items[::2], items[1::2], strict=True)
    frame.stack.append(frame.evaluation.perform(dict, list(pairs)))


@_step("BUILD_CONST_KEY_MAP")
def _build_map_of_names(frame, instruction):
    keys = frame.stack.pop()
    frame.stack.append(dict(zip(keys, frame.pop(instruction.arg), strict=True)))


@_step("LIST_APPEND", "SET_ADD")
def _append(frame, instruction):
    value = frame.stack.pop()
    target = frame.stack[-instruction.arg]
    add = target.append if type(target) is list else target.add
    frame.evaluation.perform(add, value)


@_step("MAP_ADD")
def _add_to_map(frame, instruction):
    key, value = frame.pop(2)
    frame.evaluation.perform(
        operator.setitem, frame.stack[-instruction.arg], key, value
    )


@_step("LIST_EXTEND", "SET_UPDATE")
def _extend(frame, instruction):
    values = frame.evaluation.iterate(frame.stack.pop())
    target = frame.stack[-instruction.arg]
    add = target.extend if type(target) is list else target.update
    frame.evaluation.perform(add, list(values))


@_step("DICT_UPDATE", "DICT_MERGE")
def _update(frame, instruction):
    values = frame.evaluation.mapping(frame.stack.pop())
    target = frame.stack[-instruction.arg]
    if instruction.opname == "DICT_MERGE" and values.keys() & target.keys():
        msg = "an argument is given twice"
        raise NotRecorded(msg)
    target.update(values)


@_step("UNPACK_SEQUENCE", "UNPACK_EX")
def _unpack(frame, instruction):
    values = list(frame.evaluation.iterate(frame.stack.pop()))
    before, after = instruction.arg & 255, instruction.arg >> 8
    if instruction.opname == "UNPACK_SEQUENCE":
        before, after = instruction.arg, 0
        fits = len(values) == before
    else:
        fits = len(values) >= before + after
        end = len(values) - after
        values = [*values[:before], values[before:end], *values[end:]]
    if not fits:
        raise Raised(ValueError("wrong number of values to unpack"))
    frame.stack += values[::-1]


@_step("FORMAT_VALUE", "FORMAT_SIMPLE", "FORMAT_WITH_SPEC", "CONVERT_VALUE")
def _format(frame, instruction):
    name, evaluation, spec = instruction.opname, frame.evaluation, ""
    if name == "FORMAT_WITH_SPEC" or (name == "FORMAT_VALUE" and instruction.arg & 4):
        spec = frame.stack.pop()
    value = frame.stack.pop()
    if name in ("FORMAT_VALUE", "CONVERT_VALUE"):
        convert = (None, str, repr, ascii)[instruction.arg & 3]
        if convert is not None:
            value = evaluation.perform(convert, value)
    if name != "CONVERT_VALUE":
        if isinstance(value, np.generic):
            msg = "it prints a scalar of NumPy, by options that may change"
            raise NotRecorded(msg)
        value = evaluation.perform(format, value, spec)
    frame.stack.append(value)


# Functions and calls.


@_step("MAKE_FUNCTION")
def _make_function(frame, instruction):
    made = LocalFunction(frame.stack.pop(), frame.origin)
    for flag in (8, 4, 2, 1):
        if (instruction.arg or 0) & flag:
            _complete(made, flag, frame.stack.pop())
    frame.stack.append(made)


@_step("SET_FUNCTION_ATTRIBUTE")
def _set_function_attribute(frame, instruction):
    made = frame.stack.pop()
    _complete(made, instruction.arg, frame.stack.pop())
    frame.stack.append(made)


def _complete(function, flag, value):
    """Give a function its defaults or cells; annotations are not needed."""
    if flag == 8:
        function.cells = value
    elif flag == 2:
        function.keyword_defaults = value
    elif flag == 1:
        function.defaults = value


@_step("KW_NAMES")
def _keyword_names(frame, instruction):
    frame.names = frame.code.co_consts[instruction.arg]


@_step("CALL", "CALL_KW")
def _call(frame, instruction):
    names = frame.names
    frame.names = ()
    if instruction.opname == "CALL_KW":
        names = frame.stack.pop()
    args = frame.pop(instruction.arg)
    function = _callable(frame)
    count = len(args) - len(names)
    kwargs = dict(zip(names, args[count:], strict=True))
    _finish_call(frame, function, tuple(args[:count]), kwargs)


@_step("CALL_FUNCTION_EX")
def _call_with_all(frame, instruction):
    # Since Python 3.14 there is always a dict, or nothing in its place.
    with_dict = sys.version_info >= (3, 14) or instruction.arg & 1
    kwargs = frame.stack.pop() if with_dict else _NULL
    args = frame.stack.pop()
    function = _callable(frame)
    evaluation = frame.evaluation
    kwargs = {} if kwargs is _NULL else evaluation.mapping(kwargs)
    _finish_call(frame, function, tuple(evaluation.iterate(args)), kwargs)


def _callable(frame):
    """Pop a callable, and the object that it is bound to, from the stack."""
    one, other = frame.pop(2)
    if sys.version_info >= (3, 13):
        function, owner = one, other
    elif one is _NULL:
        function, owner = other, _NULL
    else:
        function, owner = one, other
    return function if owner is _NULL else Bound(function, owner)


def _finish_call(frame, function, args, kwargs):
    if type(function) is Reference and function.value is super and not kwargs:
        frame.evaluation.outside.pinned(function)
        args = args or (frame.local("__class__").value, frame.first())
        frame.stack.append(frame.evaluation.super_of(*args))
        return
    frame.stack.append(frame.evaluation.call(function, args, kwargs))


@_step("RETURN_GENERATOR")
def _generate(frame, instruction):
    # The body is run by its `LocalGenerator`, which begins here.
    frame.stack.append(None)


# Exceptions.


@_step("PUSH_EXC_INFO")
def _push_exception(frame, instruction):
    error = frame.stack.pop()
    frame.stack += (None, error)


@_step("CHECK_EXC_MATCH")
def _matches(frame, instruction):
    kinds = frame.evaluation.unwrapped(frame.stack.pop())
    frame.stack.append(isinstance(frame.stack[-1], kinds))


@_step("RERAISE")
def _raise_again(frame, instruction):
    raise Raised(frame.stack.pop())

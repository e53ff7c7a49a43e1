"""What a recorded function reads from outside: values, and how they were reached.

Each read is noted once, as a way from another value: a global of a function, an
attribute of an object, an item of a list. `_fusing.guards` repeats the reads before
each replay. What stands for a value in the recording depends on its type:

- an array or a float is an argument of the program, as those of the call are;
- a plain value (`_fusing.plain`) is itself, and is compared;
- any other object is a `Reference`, which lets nothing be done with the object but what
  `Outside` can note.
"""

import functools
import types

import numpy as np

from ndx._core import NDArray
from ndx._fusing.attributes import MISSING, is_computed, of_class
from ndx._fusing.guards import reads_plainly
from ndx._fusing.plain import is_plain
from ndx._fusing.steps import NotRecorded

HEAP = 1 << 9  # Py_TPFLAGS_HEAPTYPE: its attributes can be set
_NDX = __name__.partition(".")[0]
_MOST_READS = 1000
_MOST_ITEMS = 1000


class Read:
    """One read from outside: how, from which other read, and what is compared.

    Parameters
    ----------
    how, check : str
        See `_fusing.guards`.
    parent : int
        The place of the read of what has the value; -1 for none.
    key : object
        The name, index or key.
    expected : object
        What `check` compares with.
    words : str
        As the function would write it.
    """

    def __init__(self, how, check, parent, key, expected, words):
        self.how, self.check, self.parent = how, check, parent
        self.key, self.expected, self.words = key, expected, words
        self.of_type = False  # whether the parent of an attribute is a type
        self.position = None  # of a float among the scalars of the program
        self.defaults = 0  # of a function


class Opaque:
    """An object that only the recording can use: operators and others refuse it."""

    __slots__ = ()

    def _refuse(self, *args, **kwargs):
        what = type(self.value if type(self) is Reference else self).__name__
        msg = f"it computes with a {what}"
        raise NotRecorded(msg)

    __getattr__ = _refuse


for _name in (
    *(f"__{name}__" for name in (
        "bool", "int", "float", "complex", "index", "hash", "len", "iter", "next",
        "contains", "getitem", "setitem", "delitem", "call", "repr", "str", "format",
        "bytes", "neg", "pos", "abs", "invert", "round", "trunc", "floor", "ceil",
        "eq", "ne", "lt", "le", "gt", "ge", "reversed", "enter", "exit", "array",
        "array_ufunc", "array_function", "array_namespace", "dlpack", "reduce_ex",
        "copy", "deepcopy",
    )),
    *(f"__{kind}{name}__" for kind in ("", "r", "i") for name in (
        "add", "sub", "mul", "matmul", "truediv", "floordiv", "mod", "divmod", "pow",
        "lshift", "rshift", "and", "or", "xor",
    )),
):  # fmt: skip
    setattr(Opaque, _name, Opaque._refuse)


class Reference(Opaque):
    """An object from outside, at the place of its read."""

    __slots__ = ("place", "value")

    def __init__(self, value, place):
        self.value, self.place = value, place


class Outside:
    """The reads of one recording.

    Parameters
    ----------
    arguments : ndx._fusing.recording.Arguments
        Makes what stands for arrays and floats.
    """

    def __init__(self, arguments):
        self.arguments = arguments
        self.reads = []
        self.known = {}

    def note(self, how, check, parent, key, expected, words):
        """Append a read; return it, with its place."""
        if len(self.reads) >= _MOST_READS:
            msg = f"it reads more than {_MOST_READS} values from outside"
            raise NotRecorded(msg)
        self.reads.append(Read(how, check, parent, key, expected, words))
        return self.reads[-1], len(self.reads) - 1

    def take(self, how, parent, key, value, words, of_type=False):
        """Return the placeholder of a value that the function reads."""
        # Equal keys of different types may be different keys.
        known = self.known.setdefault((how, parent, type(key), key), [])
        if not known:
            known.append(self._new(how, parent, key, value, words, of_type))
        return known[0]

    def _new(self, how, parent, key, value, words, of_type):
        kind = type(value)
        read, place = self.note(how, "type", parent, key, kind, words)
        read.of_type = of_type
        if isinstance(value, NDArray) or (
            kind is np.ndarray and not value.dtype.hasobject
        ):
            read.check, read.expected = "array", None
            return self.arguments.outer_array(value)
        if kind is float:
            read.check, read.expected = "float", value
            made = self.arguments.outer_float(value)
            read.position = made._position
            return made
        if is_plain(value):
            read.check, read.expected = "equal", value
            return value
        if kind is types.FunctionType:
            read.check, read.expected = "code", value.__code__
            read.defaults = len(value.__defaults__ or ())
        return Reference(value, place)

    def absent(self, how, parent, key, words, of_type=False):
        """Note the read of a name under which there is no value."""
        known = (how, parent, type(key), key, "absent")
        if known not in self.known:
            read, _ = self.note(how, "absent", parent, key, None, words)
            read.of_type = of_type
            self.known[known] = True

    def words(self, reference):
        """Return the expression by which the function reaches a reference."""
        return self.reads[reference.place].words

    def pinned(self, reference):
        """Return the object of a reference; the program holds for no other object."""
        read = self.reads[reference.place]
        if read.check == "code":
            # The same function may be known by its code elsewhere.
            known = ("identical", reference.place)
            if known not in self.known:
                self.known[known] = True
                again, _ = self.note(read.how, "identical", read.parent, read.key,
                                     reference.value, read.words)  # fmt: skip
                again.of_type = read.of_type
        else:
            read.check, read.expected = "identical", reference.value
        return reference.value

    # ---- Ways from one value to another

    def function(self, function, words):
        """Return the reference to the fused function itself."""
        return self.take("function", -1, None, function, words)

    def constant(self, value, words):
        """Return the reference to an object that never changes, such as a module."""
        return self.take("constant", -1, _ById(value), value, words)

    def global_of(self, function, name):
        """Return a global of a function, or a builtin; raise NameError."""
        value = function.value
        if type(value.__globals__) is not dict or type(value.__builtins__) is not dict:
            msg = "its globals are no plain dict"
            raise NotRecorded(msg)
        found = value.__globals__.get(name, MISSING)
        if found is MISSING:
            found = value.__builtins__.get(name, MISSING)
        if found is MISSING:
            msg = f"name {name!r} is not defined"
            raise NameError(msg)
        return self.take("global", function.place, name, found, name)

    def cell_of(self, function, index, name):
        """Return a variable of an enclosing function."""
        try:
            value = function.value.__closure__[index].cell_contents
        except ValueError:
            msg = f"it reads {name}, which has no value yet"
            raise NotRecorded(msg) from None
        return self.take("cell", function.place, index, value, name)

    def default_of(self, function, index, name):
        """Return a default of a positional parameter."""
        value = function.value.__defaults__[index]
        return self.take("default", function.place, index, value, name)

    def keyword_default_of(self, function, name):
        """Return a default of a keyword-only parameter."""
        value = function.value.__kwdefaults__[name]
        return self.take("keyword default", function.place, name, value, name)

    def class_of(self, reference):
        """Return the class of an object."""
        words = f"type({self.words(reference)})"
        return self.take("class", reference.place, None, type(reference.value), words)

    def attribute(self, reference, name):
        """Return an attribute; a property and its object if it is one."""
        value, place = reference.value, reference.place
        words = f"{self.words(reference)}.{name}"
        if type(value) is types.ModuleType:
            found = vars(value).get(name, MISSING)
            if found is MISSING and value.__name__ == _NDX:
                # Its chapters are loaded when they are first read, and stay.
                getattr(value, name, None)
                found = vars(value).get(name, MISSING)
            if found is MISSING:
                if "__getattr__" in vars(value):
                    msg = f"it reads {words}, which the module makes when it is read"
                    raise NotRecorded(msg)
                self.absent("member", place, name, words)
                raise AttributeError(words)
            return self.take("member", place, name, found, words)
        if not reads_plainly(value):
            msg = f"it reads {words}, and {type(value).__name__} computes attributes"
            raise NotRecorded(msg)
        is_type = isinstance(value, type)
        own = of_class(value, name)
        if type(own) is property and not is_type:
            found = self.attribute(self.class_of(reference), name)
            return Property(self.attribute(found, "fget"), reference)
        if is_computed(value, name):
            if type(own) is functools.cached_property:
                held = self.attribute(reference, "__dict__")
                self.absent("key", held.place, name, words)
            msg = f"it reads {words}, which is computed when it is read"
            raise NotRecorded(msg)
        try:
            found = getattr(value, name)
        except AttributeError:
            self.absent("attribute", place, name, words, is_type)
            raise
        return self.take("attribute", place, name, found, words, is_type)

    def method(self, reference, owner):
        """Return the function of a bound method, and the reference to its object."""
        value, words = reference.value, self.words(reference)
        function = value.__func__
        if owner is not None and owner.value is value.__self__:
            key = owner.place
            found = self.take("method function", reference.place, key, function, words)
            return found, owner
        own = self.take("method self", reference.place, None, value.__self__, words)
        if type(own) is not Reference:
            msg = f"it calls {words}, a method of a value from outside"
            raise NotRecorded(msg)
        found = self.take("method function", reference.place, own.place, function,
                          words)  # fmt: skip
        return found, own

    def has_method(self, reference, name):
        """Whether the class of an object has a method of Python's own name."""
        kind = self.class_of(reference)
        if of_class(kind.value, name) is MISSING:
            if kind.value.__flags__ & HEAP:
                words = f"{self.words(kind)}.{name}"
                if name in type.__dict__:
                    # A class that lacks the method may have one of its own class's.
                    msg = f"it asks for {words}"
                    raise NotRecorded(msg)
                self.absent("attribute", kind.place, name, words, of_type=True)
            return False
        self.attribute(kind, name)
        return True

    def length(self, reference):
        """Return the length of a list, tuple or dict."""
        size = len(reference.value)
        words = f"len({self.words(reference)})"
        known = ("length", reference.place)
        if known not in self.known:
            self.known[known] = True
            self.note("length", "nothing", reference.place, size, None, words)
        return size

    def item(self, reference, index):
        """Return an item of a list or tuple."""
        size = len(reference.value)
        if not -size <= index < size:
            self.length(reference)
            msg = "index out of range"
            raise IndexError(msg)
        if index < 0:
            size = self.length(reference)
            index += size
        words = f"{self.words(reference)}[{index}]"
        value = reference.value[index]
        return self.take("item", reference.place, index, value, words)

    def items(self, reference):
        """Return all items of a list or tuple."""
        size = self.length(reference)
        if size > _MOST_ITEMS:
            msg = f"it walks along {size} items of {self.words(reference)}"
            raise NotRecorded(msg)
        return [self.item(reference, i) for i in range(size)]

    def value(self, reference, key, default=MISSING):
        """Return an item of a dict; a default, or KeyError, if there is none."""
        words = f"{self.words(reference)}[{key!r}]"
        if not is_plain(key) or key != key:
            # A NaN is found by identity.
            msg = f"it looks up {words}"
            raise NotRecorded(msg)
        found = reference.value.get(key, MISSING)
        if found is not MISSING:
            return self.take("key", reference.place, key, found, words)
        self.absent("key", reference.place, key, words)
        if default is MISSING:
            raise KeyError(key)
        return default

    def keys(self, reference):
        """Return the keys of a dict, or the elements of a set."""
        keys = tuple(reference.value)
        words = f"the keys of {self.words(reference)}"
        if not is_plain(keys) or len(keys) > _MOST_ITEMS:
            msg = f"it reads {words}"
            raise NotRecorded(msg)
        known = ("keys", reference.place)
        if known not in self.known:
            self.known[known] = True
            self.note("keys", "nothing", reference.place, None, keys, words)
        return keys


class _ById:
    """An object as the key of a read."""

    def __init__(self, value):
        self.value = value

    def __eq__(self, other):
        return self.value is other.value

    def __hash__(self):
        return id(self.value)


class Property:
    """A property that was read: a function to call with an object."""

    def __init__(self, getter, owner):
        self.getter, self.owner = getter, owner

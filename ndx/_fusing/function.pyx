"""`ndx.fuse`: functions that are recorded once for each kind of arguments.

A call makes the signature of its arguments, a few words of C: kinds, dtypes and shapes
of arrays, the values of other arguments. The signature's program is then replayed. A
new signature is recorded by calling the function with tracers. If that is impossible,
the signature has no program, and the function is called as it is.
"""

cimport cython
from cpython.buffer cimport PyObject_CheckBuffer
from cpython.iterator cimport PyIter_Check
from cpython.object cimport PyObject
from libc.stdint cimport int64_t, uint64_t, uintptr_t
from libc.string cimport memcmp, memcpy

import collections
import collections.abc
import functools
import queue
import random
import types

import numpy as np

from ndx._array.dispatch cimport device_engine
from ndx._array.storage cimport BaseArray, is_array
from ndx._compute.elementwise cimport as_operand
from ndx._fusing.replay cimport (
    ERRORS, FILES, HINDRANCES, MAX_SLOTS, OVERLAP, Program, are_apart,
)
from ndx._lib.numpy_objects cimport is_numpy_scalar

from ndx._fusing.calls import call_of_fused
from ndx._fusing.explaining import explain
from ndx._fusing.recording import record
from ndx._fusing.scalars import Scalar
from ndx._fusing.tracing import Tracer
from ndx.random import Generator

__all__ = ["FusedFunction", "fuse"]

cdef enum:
    WORDS = 160                  # of a signature; longer ones are not recorded
    SCALARS = 32
    PROGRAMS = 64                # kept for one function
    AT_ONCE = 8                  # signatures that are recorded at their first call
    SEEN = 256                   # later ones that are counted until their second

# Recordings in progress, of all threads.
cdef Py_ssize_t recordings = 0

cdef dict HINDERED = {
    ERRORS: "floating-point errors are reported",
    FILES: "arrays in large files",
    OVERLAP: "arguments overlap where one is written",
}

cdef extern from *:
    """
    /* Python 3.12 and 3.13 count calls of C, whatever these need of the stack. Their
       limit is that of the release that runs: 1,500 or 10,000 for Python 3.12. A call
       of a fused function needs about 3 KiB of the stack, with what it calls: it counts
       as several where the limit is high. */
    #if PY_VERSION_HEX >= 0x030C0000 && PY_VERSION_HEX < 0x030E0000
    static int ndx_counted = 1;
    static void ndx_measure_recursion(void) {
        int left = PyThreadState_Get()->c_recursion_remaining;
        ndx_counted = left < 2000 ? 1 : (left + 500) / 1000;
    }
    #else
    enum { ndx_counted = 1 };
    static void ndx_measure_recursion(void) { }
    #endif
    static void ndx_leave_recursion(void) {
        for (int i = 0; i < ndx_counted; i++)
            Py_LeaveRecursiveCall();
    }
    static int ndx_enter_recursion(const char *where) {
        for (int i = 0; i < ndx_counted; i++) {
            if (Py_EnterRecursiveCall(where)) {
                while (i-- > 0)
                    Py_LeaveRecursiveCall();
                return -1;
            }
        }
        return 0;
    }
    """
    int enter_recursion "ndx_enter_recursion"(const char *where) except -1
    void leave_recursion "ndx_leave_recursion"()
    void measure_recursion "ndx_measure_recursion"()

measure_recursion()

cdef extern from "ndx/internal/vectorcall.h":
    ctypedef PyObject *(*Vectorcall "ndx_vectorcall")(
        PyObject *, PyObject **, size_t, PyObject *) noexcept
    int ndx_set_vectorcall(object cls, Py_ssize_t offset) except -1
    Py_ssize_t ndx_count(size_t nargsf) noexcept
    object PyObject_Vectorcall(PyObject *, PyObject **, size_t, PyObject *)

cdef extern from "Python.h":
    long long PyLong_AsLongLongAndOverflow(object o, int *overflow) except? -1
    double PyFloat_AS_DOUBLE(object o) noexcept

# What starts the words of an argument.
cdef enum Tag:
    ARRAY = 1
    SAME                         # the array that an earlier argument is
    FOREIGN                      # an array of NumPy
    INT
    FLOAT                        # whose value does not matter
    VALUE                        # a float whose value does
    EQUAL                        # a string, dtype or type, found in `canonical`
    IDENTICAL
    TUPLE
    NAMES                        # of the keywords, whose values come last


cdef struct Words:
    int count
    int narrays
    int nscalars
    bint fits                    # False: can't be recorded
    bint inside                  # an argument stands for one of a function recorded
    int device                   # the one of all arrays; 0: the CPU
    int64_t words[WORDS]
    PyObject *arrays[MAX_SLOTS]
    PyObject *scalars[SCALARS]


@cython.final
cdef class Entry:
    """One signature, and its program; or the reason why it has none."""

    cdef uint64_t hash
    cdef int count
    cdef bytes words
    cdef Program program
    cdef object launch           # for a device, in place of `program`
    cdef int narrays             # what `launch` takes
    cdef int nscalars
    cdef unsigned int used       # bits of arguments that it reads or writes
    cdef unsigned int stored     # bits of those that it writes
    cdef list lines              # that describe it
    cdef readonly str reason
    cdef readonly str label
    cdef list kept               # objects that the words name by their addresses
    cdef readonly bint replayed  # at least once
    cdef Py_ssize_t hindered[HINDRANCES]    # calls that could not be replayed

    @property
    def about(self) -> Any:
        """The description of the program; None without one."""
        return self.lines if self.program is None else self.program.about

    @property
    def called(self) -> list[tuple[int, str]]:
        """The calls of the function itself in spite of a program, and why."""
        return [(self.hindered[<int>i], words) for i, words in HINDERED.items()
                if self.hindered[<int>i]]

    cdef bint writes(self) noexcept:
        return (self.stored if self.program is None else self.program.stored) != 0

    cdef int take(self, const Words *found, object program) except -1:
        """Let the engine of the device make the program."""
        try:
            self.launch = device_engine().fused(program)
        except NotImplementedError as error:
            self.reason = str(error)
            return 0
        self.narrays, self.nscalars = found.narrays, found.nscalars
        self.lines = program.about
        for i in program.used:
            self.used |= <unsigned int>1 << <int>i
        for i in program.stored:
            self.stored |= <unsigned int>1 << <int>i
        return 0

    cdef object run_on_device(self, const Words *found):
        """Compute; the caller has asked `are_apart`, and owns the arguments."""
        return self.launch([<object>found.arrays[i] for i in range(self.narrays)],
                           [<object>found.scalars[i] for i in range(self.nscalars)])


cdef inline void add(Words *found, int64_t word) noexcept:
    if found.count < WORDS:
        found.words[found.count] = word
        found.count += 1
    else:
        found.fits = False


cdef uint64_t hash_of(const Words *found) noexcept:
    cdef uint64_t result = 0x9E3779B97F4A7C15
    cdef int i
    for i in range(found.count):
        result = (result ^ <uint64_t>found.words[i]) * <uint64_t>0xFF51AFD7ED558CCD
        result ^= result >> 32
    return result


@cython.final
cdef class FusedFunction:
    """A function that `ndx.fuse` has made; see there.

    Parameters
    ----------
    function : callable
        The function to record and replay.
    """

    cdef Vectorcall vectorcall
    cdef object function
    cdef list entries            # of Entry, the latest used first
    cdef dict canonical
    cdef dict seen               # hashes of signatures that were met once
    cdef uint64_t by_value       # bits of floats on which the recording depended
    cdef Py_ssize_t signatures
    cdef Py_ssize_t cleared      # how often
    cdef Py_ssize_t unfit        # calls whose arguments have no signature
    cdef dict __dict__
    cdef object __weakref__

    def __cinit__(self, function: Callable[..., Any]) -> None:
        if not callable(function):
            raise TypeError(
                f"fuse takes a function, not {type(function).__name__}")
        self.function = function
        self.vectorcall = <Vectorcall><void *>call_fused
        self.entries = []
        self.canonical = {}
        self.seen = {}
        # Callable objects have no name of their own.
        self.__qualname__ = type(function).__qualname__
        functools.update_wrapper(self, function)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        # Only an explicit `__call__` comes here; calls go to `call_fused`, below.
        return self(*args, **kwargs)

    def __get__(self, instance, owner):
        return self if instance is None else types.MethodType(self, instance)

    def __reduce__(self):
        return self.__qualname__

    def __repr__(self):
        return f"<fused function {self.__module__}.{self.__qualname__}>"

    def explain(self) -> str:
        """Return a text: the signatures met, and how each is computed, or why not."""
        return explain(self.__qualname__, list(self.entries), self.unfit)

    def clear(self) -> None:
        """Forget all recordings: for after a change of a global that they have read."""
        self.entries = []
        self.canonical = {}
        self.seen = {}
        self.by_value = 0
        self.signatures = 0
        self.cleared += 1

    cdef int describe(self, Words *found, PyObject **args, Py_ssize_t count,
                      PyObject *names, dict canonical, list owned,
                      list kept) except -1:
        """Write the signature of a call.

        Equal values have one object's address, found in `canonical`, which lives as
        long as the words. `owned` keeps arrays made of NumPy's, and `kept`, if it is
        given, what the words name by its address.
        """
        cdef Py_ssize_t i, named = 0
        found.count = found.narrays = found.nscalars = found.device = 0
        found.fits = True
        found.inside = False
        if names != NULL:
            named = len(<tuple>names)
            add(found, NAMES)
            add(found, named)
            for name in <tuple>names:
                self.describe_value(found, name, canonical, owned, kept)
        for i in range(count + named):
            self.describe_value(found, <object>args[i], canonical, owned, kept)
        return 0

    cdef int describe_value(self, Words *found, object value, dict canonical,
                            list owned, list kept) except -1:
        cdef int overflow = 0
        cdef int64_t bits = 0
        cdef double number
        kind = type(value)
        if is_array(value):
            return describe_array(found, <BaseArray>value, ARRAY)
        if kind is float:
            if found.nscalars == SCALARS:
                found.fits = False
                return 0
            number = PyFloat_AS_DOUBLE(value)
            memcpy(&bits, &number, 8)
            if self.by_value >> found.nscalars & 1:
                add(found, VALUE)
                add(found, bits)
            else:
                add(found, FLOAT)
            found.scalars[found.nscalars] = <PyObject *>value
            found.nscalars += 1
        elif kind is int:
            bits = PyLong_AsLongLongAndOverflow(value, &overflow)
            if overflow:
                found.fits = False
            add(found, INT)
            add(found, bits)
        elif kind is tuple:
            add(found, TUPLE)
            add(found, len(<tuple>value))
            for item in <tuple>value:
                if not found.fits:
                    # Nested tuples may be deeper than the C stack.
                    break
                self.describe_value(found, item, canonical, owned, kept)
        elif value is None or kind is bool:
            add_address(found, IDENTICAL, value)
        elif is_numpy_scalar(value) and (
                issubclass(kind, np.void) or value.dtype.type is not kind):
            # Fields can be assigned to, and attributes of subclasses.
            found.fits = False
        elif kind is str or kind is bytes or kind is complex or \
                issubclass(kind, np.dtype) or is_numpy_scalar(value):
            one = one_of(value, canonical)
            add_address(found, EQUAL, one)
            if kept is not None:
                kept.append(one)
        elif kind is np.ndarray:
            try:
                array = as_operand(value)
            except TypeError:
                found.fits = False
                return 0
            owned.append(array)
            return describe_array(found, <BaseArray>array, FOREIGN)
        elif kind is Tracer or kind is Scalar:
            found.inside = True
        elif may_change(value):
            found.fits = False
        else:
            add_address(found, IDENTICAL, value)
            if kept is not None:
                kept.append(value)
        return 0

    cdef Entry find(self, const Words *found, uint64_t hash):
        cdef Entry entry
        cdef list entries = self.entries
        cdef list moved
        cdef Py_ssize_t i
        for i in range(len(entries)):
            entry = <Entry>entries[i]
            if entry.hash == hash and entry.count == found.count and memcmp(
                    <char *>entry.words, found.words, 8 * found.count) == 0:
                if i > 4:
                    # A new list: another thread may be walking along this one.
                    moved = [
                        entry, *[other for other in entries if other is not entry]]
                    if self.entries is entries:
                        self.entries = moved
                return entry
        return None

    cdef Entry learn(self, Words *found, PyObject **args, Py_ssize_t count,
                     PyObject *names, dict canonical, list owned):
        """Record a new signature; None: it is too early, or `clear` came meanwhile."""
        global recordings
        cdef Py_ssize_t cleared = self.cleared
        cdef list entries
        cdef Entry entry = Entry()
        cdef uint64_t hash = hash_of(found)
        cdef Py_ssize_t i
        if self.signatures >= AT_ONCE and hash not in self.seen:
            # Recording takes longer than a few operations, and each call may differ.
            if len(self.seen) >= SEEN:
                self.seen = {}
            self.seen[hash] = True
            return None
        # Kept before the recording, which calls the function, which may do anything.
        entry.kept = []
        self.describe(found, args, count, names, canonical, owned, entry.kept)
        named = () if names == NULL else <tuple>names
        positional = tuple([<object>args[i] for i in range(count)])
        keywords = {name: <object>args[count + i] for i, name in enumerate(named)}
        # Fused functions that call each other may be nested deeper than the C stack.
        enter_recursion(" while recording a fused function")
        recordings += 1
        try:
            recording = record(self.function, positional, keywords, found.device != 0)
        finally:
            recordings -= 1
            leave_recursion()
        entry.reason = recording.reason
        entry.label = recording.label
        if found.device == 0:
            entry.program = recording.program
        elif recording.program is not None:
            entry.take(found, recording.program)
        if recording.by_value:
            # Signatures have these values from now on.
            for i in recording.by_value:
                self.by_value |= <uint64_t>1 << i
            self.describe(found, args, count, names, canonical, owned, None)
            hash = hash_of(found)
        entry.hash = hash
        entry.count = found.count
        entry.words = (<char *>found.words)[:8 * found.count]
        entries = [entry, *self.entries[:PROGRAMS - 1]]
        if self.cleared != cleared:
            return None
        self.signatures += 1
        self.entries = entries
        return entry


cdef inline void add_address(Words *found, Tag tag, object value) noexcept:
    add(found, tag)
    add(found, <int64_t><uintptr_t><void *>value)


cdef object one_of(object value, dict canonical):
    """Return the object that stands for all that equal `value`."""
    # -0.0 equals 0.0, and a NaN nothing.
    if is_numpy_scalar(value):
        value = (value.dtype, value.tobytes())
    elif isinstance(value, complex):
        value = (complex, repr(value))
    return canonical.setdefault(value, value)


# Containers, what shows one that may change, and random generators.
cdef tuple CHANGING = (
    list, dict, set, collections.deque, np.ndarray, queue.Queue, queue.SimpleQueue,
    collections.abc.Mapping, collections.abc.MutableSequence,
    collections.abc.MutableSet,
    random.Random, Generator, np.random.Generator, np.random.RandomState,
    np.random.BitGenerator, np.random.SeedSequence,
)

cdef tuple METHODS = (
    types.MethodType, types.BuiltinMethodType, types.MethodWrapperType,
)
cdef tuple WRAPPERS = (*METHODS, functools.partial)

# How deeply methods and partial functions that wrap each other are examined.
cdef int MOST_WRAPPED = 8


cdef bint may_change(object value, int depth=MOST_WRAPPED) except -1:
    """Whether an object, or its result if it is called, may differ at the next call.

    A method changes with its object, and a partial function with its parts.
    """
    # Not `isinstance`, which may run code of the value's class.
    kind = type(value)
    if not issubclass(kind, WRAPPERS):
        return issubclass(kind, CHANGING) \
            or PyIter_Check(value) or PyObject_CheckBuffer(value)
    if issubclass(kind, types.MethodType):
        parts = (value.__self__, value.__func__)
    elif issubclass(kind, METHODS):
        parts = (value.__self__,)
    else:
        parts = (value.func, *value.args, *value.keywords.values())
    for part in parts:
        if depth == 0 or may_change(part, depth - 1):
            return True
    return False


cdef int describe_array(Words *found, BaseArray x, Tag tag) except -1:
    cdef int i
    if found.narrays == MAX_SLOTS or (
            found.narrays and x.block.device != found.device):
        found.fits = False
        return 0
    found.device = x.block.device
    for i in range(found.narrays):
        if found.arrays[i] == <PyObject *>x:
            add(found, SAME)
            add(found, i)
            return 0
    found.arrays[found.narrays] = <PyObject *>x
    found.narrays += 1
    add(found, tag | x.dtype << 8 | x.ndim << 16 | x.c_contiguous << 24
        | x.readonly << 25 | <int64_t>x.block.device << 32)
    for i in range(x.ndim):
        add(found, x.shape[i])
    if not x.c_contiguous:
        for i in range(x.ndim):
            add(found, x.strides[i])
    return 0


cdef object call_fused(PyObject *self, PyObject **args, size_t nargsf,
                       PyObject *names):
    cdef FusedFunction fused = <FusedFunction>self
    cdef Py_ssize_t count = ndx_count(nargsf)
    cdef Entry entry = None
    cdef Words found
    cdef list owned = None
    cdef dict canonical = fused.canonical
    cdef Py_ssize_t i
    cdef int hindrance
    if len(canonical) >= SEEN:
        # A new one: other threads may be describing their calls by the old one.
        canonical = fused.canonical = {}
    for i in range(count):
        if not is_array(<object>args[i]):
            owned = []
            break
    if names != NULL:
        owned = []
    fused.describe(&found, args, count, names, canonical, owned, None)
    if found.fits and not found.inside:
        entry = fused.find(&found, hash_of(&found))
        if entry is None:
            entry = fused.learn(&found, args, count, names, canonical, owned)
        if recordings and found.narrays:
            call_of_fused(fused, entry is not None and entry.writes())
        if entry is not None and entry.program is not None:
            hindrance = entry.program.hindrance(found.arrays)
            if hindrance == 0:
                entry.replayed = True
                return entry.program.run(found.arrays, found.scalars)
            entry.hindered[hindrance] += 1
        elif entry is not None and entry.launch is not None:
            if are_apart(found.arrays, entry.narrays, entry.used, entry.stored):
                entry.replayed = True
                return entry.run_on_device(&found)
            entry.hindered[<int>OVERLAP] += 1
    elif not found.fits and not found.inside:
        fused.unfit += 1
        if recordings:
            # The arguments may be, or contain, arrays that are not the outer one's.
            call_of_fused(fused, False)
    # A fused function may call itself, and fuse a fused function.
    enter_recursion(" while calling a fused function")
    try:
        return PyObject_Vectorcall(<PyObject *>fused.function, args, nargsf, names)
    finally:
        leave_recursion()


def fuse(function: Callable[P, R], /) -> Fused[P, R]:
    """Return a function that computes its elementwise steps together, in cache.

    The first call with arguments of a kind calls `function` with stand-ins for the
    arrays, which record its steps. This and later such calls then replay the steps for
    a few thousand elements at a time, so that intermediate values stay in the CPU's
    cache and need no arrays. Usually a decorator.

    Parameters
    ----------
    function : callable
        Of arrays, Python scalars, strings and other objects. Its steps may be operators
        and elementwise functions of ndx, NumPy or `ndx.numpy`, `where`, `clip`,
        `astype`, slices, assignments to slices and in place, and the reductions `sum`,
        `mean`, `max`, `min`, `any` and `all`.

    Returns
    -------
    callable
        With the name, docstring and signature of `function`. ``explain()`` says how
        each kind of arguments is computed, and ``clear()`` forgets all recordings.

    Notes
    -----
    Results, dtypes and errors are those of `function`; sums, and functions of strided
    arrays such as `atan2`, may be rounded otherwise.
    What can't be recorded is computed by calling `function`: conditions on elements,
    indexing by arrays, sorting, products of matrices, arrays that are not arguments,
    arrays in large files. The function should have no effects but on its arguments.
    Globals and attributes that it reads count as constants. For arrays on a GPU,
    `cupy.fuse` makes a kernel of the steps.

    Examples
    --------
    >>> import ndx
    >>> @ndx.fuse
    ... def score(a, b):
    ...     return (a - b) ** 2 / (a + b)
    >>> score(ndx.asarray([1.0, 2.0]), ndx.asarray([3.0, 6.0]))
    NDArray([1., 2.])
    """
    return FusedFunction(function)


cdef FusedFunction sample = FusedFunction(len)
ndx_set_vectorcall(
    FusedFunction, <char *>&sample.vectorcall - <char *><PyObject *>sample)

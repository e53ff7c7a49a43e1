"""`ndx.fuse`: functions that are recorded once for each kind of arguments.

A call makes the signature of its arguments, a few words of C: kinds, dtypes and shapes
of arrays, the values of numbers and strings, the types of other arguments. A program of
this signature is replayed if its guards hold: what it reads from outside is the same. A
new signature is recorded by following the function with placeholders for the arrays.
If that is impossible, the function is called as it is.
"""

cimport cython
from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF, Py_INCREF
from libc.stdint cimport int64_t, uint64_t, uintptr_t
from libc.string cimport memcmp, memcpy

import functools
import threading
import types

import numpy as np

from ndx._array.dispatch cimport engine_of
from ndx._array.storage cimport BaseArray, is_array
from ndx._compute.elementwise cimport as_operand
from ndx._fusing.guards cimport Guards
from ndx._fusing.replay cimport ERRORS, FILES, HINDRANCES, OVERLAP, Program, are_apart
from ndx._fusing.signatures cimport (
    ARRAY, EQUAL, FLOAT, FOREIGN, IDENTICAL, INT, NAMES, OBJECT, TUPLE, VALUE, Tag,
    Words, add, add_scalar, describe_array,
)
from ndx._lib.dtypes cimport is_numpy_scalar
from ndx._lib.free_threading cimport (
    NDX_SHARDS, ndx_get_count, ndx_get_object, ndx_items, ndx_set_count, ndx_set_object,
    ndx_shard, ndx_share, ndx_up_count,
)
from ndx._lib.integers cimport int_value

__all__ = ["FusedFunction", "fuse"]

cdef enum:
    PROGRAMS = 64                # kept for one function
    AT_ONCE = 8                  # signatures that are recorded at their first call
    SEEN = 256                   # later ones that are counted until their second

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
    double PyFloat_AS_DOUBLE(object o) noexcept


@cython.final
@cython.binding(False)
@cython.embedsignature(True)
cdef class Entry:
    """One recording of a signature: its program, or the reason why it has none."""

    cdef uint64_t hash
    cdef int count
    cdef bytes words
    cdef Program program
    cdef object launch           # for a device, in place of `program`
    cdef unsigned int used       # bits of arguments that it reads or writes
    cdef unsigned int stored     # bits of those that it writes
    cdef list lines              # that describe it
    cdef readonly str reason
    cdef readonly str label
    cdef Guards guards           # what the recording has read
    cdef list kept               # plain values that the words name by their addresses
    cdef readonly list outside   # names of what is read from outside
    cdef readonly bint replayed  # at least once
    cdef bint too_deep           # to be recorded
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

    cdef int take(self, const Words *found, object program) except -1:
        """Set the program, or let the engine of the device make one of it."""
        if found.device == 0:
            self.program = program
            return 0
        try:
            self.launch = engine_of(found.device).fused(program)
        except NotImplementedError as error:
            self.reason = str(error)
            return 0
        self.lines = program.about
        for i in program.used:
            self.used |= <unsigned int>1 << <int>i
        for i in program.stored:
            self.stored |= <unsigned int>1 << <int>i
        return 0

    cdef object run_on_device(self, const Words *found):
        """Compute; the caller has asked `are_apart`, and owns the arguments."""
        return self.launch([<object>found.arrays[i] for i in range(found.narrays)],
                           [<object>found.scalars[i] for i in range(found.nscalars)])


@cython.final
cdef class Known:
    """What a fused function has learned: other threads read it, so none is changed."""

    cdef list entries            # of Entry, the latest used first
    cdef dict canonical
    cdef dict seen               # how often signatures were met without a program
    cdef bint takes              # whether a program takes arguments from outside


@cython.final
cdef class Shard:
    """What the threads of one shard know of a fused function.

    Without a GIL threads that shared it would wait for one another, to count references
    to it, its entries and programs. So a shard is made by its thread, and records for
    itself.
    """

    cdef Known known             # by `now` and `replace` alone


cdef Shard new_shard():
    cdef Shard made = Shard.__new__(Shard)
    made.known = new_known([], {}, {}, False)
    return made


cdef Known new_known(list entries, dict canonical, dict seen, bint takes):
    cdef Known made = Known.__new__(Known)
    made.entries = entries
    made.canonical = canonical
    made.seen = seen
    made.takes = takes
    return made


cdef inline Known now(Shard shard):
    """Return what is known; without a GIL another thread may replace it."""
    cdef Known known
    with cython.critical_section(shard):
        known = shard.known
    return known


cdef bint replace(Shard shard, Known known, Known other) except -1:
    """Replace what is known, unless another thread has done so."""
    with cython.critical_section(shard):
        if shard.known is not known:
            return False
        # What was known goes after the section.
        known, shard.known = shard.known, other
    return True


cdef uint64_t hash_of(const Words *found) noexcept:
    cdef uint64_t result = 0x9E3779B97F4A7C15
    cdef int i
    for i in range(found.count):
        result = (result ^ <uint64_t>found.words[i]) * <uint64_t>0xFF51AFD7ED558CCD
        result ^= result >> 32
    return result


@cython.final
@cython.binding(False)
@cython.embedsignature(True)
cdef class FusedFunction:
    """A function that `ndx.fuse` has made; see there.

    Parameters
    ----------
    function : callable
        The function to record and replay.
    """

    cdef Vectorcall vectorcall
    cdef readonly object _function
    cdef Shard first             # of a thread that has none of its own yet
    cdef tuple shards
    cdef uint64_t by_value       # bits of floats on which the recording depended
    cdef Py_ssize_t signatures
    cdef Py_ssize_t cleared      # how often
    cdef Py_ssize_t unfit        # calls whose arguments have no signature
    cdef dict __dict__
    cdef object __weakref__

    def __cinit__(self, function: Callable[..., Any]) -> None:
        self._function = function
        self.vectorcall = <Vectorcall><void *>call_fused
        self.first = new_shard()
        self.shards = (self.first,) * NDX_SHARDS
        ndx_share(self)
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
        from ndx._fusing.explaining import explain

        return explain(self.__qualname__, self.entries(), self.unfit)

    cdef list entries(self):
        """Return the entries of all shards: each signature as the first one has it."""
        cdef Shard shard
        cdef Entry entry
        cdef list found = []
        cdef set met = set()
        for shard in self.all_shards():
            before = frozenset(met)
            for entry in now(shard).entries:
                met.add(entry.words)
                if entry.words not in before:
                    found.append(entry)
        return found

    def clear(self) -> None:
        """Forget all recordings."""
        cdef Shard shard
        with cython.critical_section(self):
            self.by_value = 0
            ndx_set_count(&self.signatures, 0)
            ndx_up_count(&self.cleared)
        for shard in self.all_shards():
            while not replace(shard, now(shard), new_known([], {}, {}, False)):
                pass

    cdef int describe(self, Words *found, PyObject **args, Py_ssize_t count,
                      PyObject *names, dict canonical, list owned, list kept,
                      list classes) except -1:
        """Write the signature of a call.

        Equal values have one object's address, found in `canonical`, which lives as
        long as the words. `owned` keeps arrays made of NumPy's. What the words name by
        its address comes into `kept` and `classes`, if these are given.
        """
        cdef Py_ssize_t i, named = 0
        found.count = found.narrays = found.nscalars = found.device = 0
        found.fits = True
        if names != NULL:
            named = len(<tuple>names)
            add(found, NAMES)
            add(found, named)
            for name in <tuple>names:
                self.describe_value(found, name, canonical, owned, kept, classes)
        for i in range(count + named):
            if is_array(<object>args[i]):
                describe_array(found, <BaseArray>args[i], ARRAY)
            else:
                self.describe_value(
                    found, <object>args[i], canonical, owned, kept, classes)
        return 0

    cdef int describe_value(self, Words *found, object value, dict canonical,
                            list owned, list kept, list classes) except -1:
        cdef int overflow = 0
        cdef int64_t bits = 0
        cdef double number
        kind = type(value)
        if is_array(value):
            return describe_array(found, <BaseArray>value, ARRAY)
        if kind is float:
            number = PyFloat_AS_DOUBLE(value)
            memcpy(&bits, &number, 8)
            if self.by_value >> found.nscalars & 1:
                add(found, VALUE)
                add(found, bits)
            else:
                add(found, FLOAT)
            add_scalar(found, value)
        elif kind is int:
            bits = int_value(value, &overflow)
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
                self.describe_value(found, item, canonical, owned, kept, classes)
        elif value is None or kind is bool:
            add_address(found, IDENTICAL, value)
        elif kind is str or kind is bytes or kind is complex or \
                issubclass(kind, np.dtype) or (
                    is_numpy_scalar(value) and not issubclass(kind, np.void)
                    and value.dtype.type is kind):
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
        else:
            # Guards compare what the function reads of the object.
            add_address(found, OBJECT, kind)
            if classes is not None:
                classes.append(kind)
        return 0

    cdef inline Shard shard(self):
        """Return the shard of this thread."""
        # No reference to the tuple is counted: all threads would write to its count.
        cdef PyObject *found = ndx_get_object(
            ndx_items(<PyObject *>self.shards) + ndx_shard())
        if NDX_SHARDS > 1 and found == <PyObject *>self.first:
            return self.add_shard()
        return <Shard>found

    cdef Shard add_shard(self):
        cdef PyObject **place = ndx_items(<PyObject *>self.shards) + ndx_shard()
        cdef Shard made = new_shard()
        with cython.critical_section(self):
            if place[0] == <PyObject *>self.first:
                Py_INCREF(made)
                ndx_set_object(place, <PyObject *>made)
                Py_DECREF(self.first)
            return <Shard>place[0]

    cdef list all_shards(self):
        """Return the shards there are."""
        cdef list shards
        with cython.critical_section(self):
            shards = list(self.shards)
        return list(dict.fromkeys(shards))

    cdef Entry find(self, Shard shard, Known known, Words *found, uint64_t hash,
                    PyObject **args, list owned):
        """Return the entry of a signature whose guards hold."""
        cdef Entry entry
        cdef list entries = known.entries
        cdef list moved
        cdef Py_ssize_t i
        for i in range(len(entries)):
            entry = <Entry>entries[i]
            if entry.hash == hash and entry.count == found.count and memcmp(
                    <char *>entry.words, found.words, 8 * found.count) == 0:
                if not entry.guards.hold(
                        found, args, <PyObject *>self._function, owned):
                    continue
                if i > 4:
                    moved = [
                        entry, *[other for other in entries if other is not entry]]
                    replace(shard, known, new_known(
                        moved, known.canonical, known.seen, known.takes))
                return entry
        return None

    cdef bint is_early(self, const Words *found, uint64_t hash) except -1:
        """Whether a signature is not to be recorded at this call.

        Recording takes longer than a few operations, and each call may differ, in its
        arguments or in what it reads from outside.
        """
        cdef Known known = now(self.shard())
        cdef Py_ssize_t met
        cdef int others = 0
        cdef Entry entry
        if ndx_get_count(&self.signatures) < AT_ONCE:
            return False
        if len(known.seen) >= SEEN:
            known.seen.clear()
        for entry in known.entries:
            others += entry.hash == hash and entry.count == found.count
        met = known.seen.get(hash, 0) + 1
        known.seen[hash] = met
        if others < AT_ONCE:
            return met == 1
        # Recordings get rare if the values that are read differ again and again.
        return (met & (met - 1)) != 0

    cdef Entry learn(self, Words *found, PyObject **args, Py_ssize_t count,
                     PyObject *names, dict canonical, list owned):
        """Record a new signature; None: it is too early, or `clear` came meanwhile."""
        cdef Py_ssize_t cleared = ndx_get_count(&self.cleared)
        cdef Entry entry = Entry()
        cdef uint64_t hash = hash_of(found)
        cdef list classes = []
        cdef int narrays, device
        cdef Py_ssize_t i
        if self.is_early(found, hash):
            return None
        from ndx._fusing.recording import record

        entry.kept = []
        self.describe(found, args, count, names, canonical, owned, entry.kept, classes)
        positional = tuple([<object>args[i] for i in range(count)])
        keywords = {} if names == NULL else {
            name: <object>args[count + i] for i, name in enumerate(<tuple>names)}
        recording = record(self._function, positional, keywords, FusedFunction)
        entry.reason = recording.reason
        entry.label = recording.label
        entry.too_deep = recording.too_deep
        entry.outside = recording.names()
        by_value = recording.by_value
        for i in by_value:
            if i < found.nscalars:
                # Signatures have these values from now on.
                with cython.critical_section(self):
                    self.by_value |= <uint64_t>1 << i
        if by_value:
            self.describe(found, args, count, names, canonical, owned, None, None)
        entry.hash = hash_of(found)
        entry.count = found.count
        entry.words = (<char *>found.words)[:8 * found.count]
        entry.guards = Guards(recording.reads, by_value, classes)
        narrays, device = found.narrays, found.device
        if not entry.guards.describe(found, recording.arrays):
            entry.reason = "it reads more arrays than fit, or such of another device"
        elif recording.program is not None:
            entry.take(found, recording.program)
        found.count, found.narrays, found.device = entry.count, narrays, device
        found.fits = True
        self.keep(entry, cleared)
        return entry

    cdef int keep(self, Entry entry, Py_ssize_t cleared) except -1:
        """Keep an entry, and not too many of its signature, unless `clear` came."""
        cdef Shard shard = self.shard()
        cdef Known known
        cdef Entry other
        cdef list entries
        cdef int same
        while True:
            known = now(shard)
            entries = [entry]
            same = 1
            for other in known.entries:
                if other.hash == entry.hash and other.words == entry.words:
                    same += 1
                    if same > AT_ONCE or not other.guards.alive:
                        continue
                entries.append(other)
            if ndx_get_count(&self.cleared) != cleared:
                return 0
            if replace(shard, known, new_known(
                    entries[:PROGRAMS], known.canonical, known.seen,
                    known.takes or entry.guards.takes)):
                ndx_up_count(&self.signatures)
                return 0


cdef inline void add_address(Words *found, Tag tag, object value) noexcept:
    add(found, tag)
    add(found, <int64_t><uintptr_t><void *>value)


cdef object one_of(object value, dict canonical):
    """Return the object that stands for all objects that equal `value`."""
    # -0.0 equals 0.0, and a NaN nothing.
    if is_numpy_scalar(value):
        value = (value.dtype, value.tobytes())
    elif isinstance(value, complex):
        value = (complex, repr(value))
    return canonical.setdefault(value, value)


# `too_deep`: within the first call of a function that was too deep to be recorded.
# Functions below it would be, too, each after a walk as long as the stack.
cdef object of_thread = threading.local()


cdef object call_fused(PyObject *self, PyObject **args, size_t nargsf,
                       PyObject *names):
    cdef FusedFunction fused = <FusedFunction>self
    cdef Py_ssize_t count = ndx_count(nargsf)
    cdef Entry entry = None
    cdef Words found
    cdef Shard shard = fused.shard()
    cdef Known known = now(shard)
    cdef list owned
    cdef int hindrance
    cdef bint too_deep = False
    cdef Py_ssize_t i
    if len(known.canonical) >= SEEN:
        # A new one: other threads may be describing their calls by the old one.
        replace(shard, known, new_known(known.entries, {}, known.seen, known.takes))
        known = now(shard)
    # Keeps arrays and floats alive that the caller does not.
    owned = [] if names != NULL or known.takes else None
    if owned is None:
        for i in range(count):
            if not is_array(<object>args[i]):
                owned = []
                break
    fused.describe(&found, args, count, names, known.canonical, owned, None, None)
    if found.fits:
        entry = fused.find(shard, known, &found, hash_of(&found), args, owned)
        if entry is None and not getattr(of_thread, "too_deep", False):
            owned = [] if owned is None else owned
            entry = fused.learn(&found, args, count, names, known.canonical, owned)
            too_deep = entry is not None and entry.too_deep
            if entry is not None and not entry.guards.hold(
                    &found, args, <PyObject *>fused._function, owned):
                entry = None
        if entry is not None and entry.program is not None:
            hindrance = entry.program.hindrance(found.arrays)
            if hindrance == 0:
                if not entry.replayed:
                    entry.replayed = True
                return entry.program.run(found.arrays, found.scalars)
            entry.hindered[hindrance] += 1
        elif entry is not None and entry.launch is not None:
            if are_apart(found.arrays, found.narrays, entry.used, entry.stored):
                entry.replayed = True
                return entry.run_on_device(&found)
            entry.hindered[<int>OVERLAP] += 1
    else:
        ndx_up_count(&fused.unfit)
    # A fused function may call itself, and fuse a fused function.
    enter_recursion(" while calling a fused function")
    try:
        if too_deep:
            of_thread.too_deep = True
        return PyObject_Vectorcall(<PyObject *>fused._function, args, nargsf, names)
    finally:
        if too_deep:
            of_thread.too_deep = False
        leave_recursion()


def fuse(function: Callable[P, R], /) -> Fused[P, R]:
    """Return a function that computes its elementwise steps together, in cache.

    The first call with arguments of a kind follows the bytecode of `function` with
    placeholders for the arrays, which record its steps. This and later such calls then
    replay the steps for a thousand or two elements at a time, so that intermediate
    values stay in the CPU's cache and need no arrays. Usually a decorator.

    Parameters
    ----------
    function : callable
        Of arrays, Python scalars, strings and other objects. Its steps may be operators
        and elementwise functions of ndx, NumPy or `ndx.numpy`, `where`, `ndx.clip`,
        `astype`, slices, assignments to slices and in place, and the reductions `sum`,
        `mean`, `max`, `min`, `any` and `all`.

    Returns
    -------
    callable
        With the name, docstring and signature of `function`. ``explain()`` says how
        each kind of arguments is computed, and ``clear()`` forgets all recordings.

    Raises
    ------
    TypeError
        For a function that is not called to its end at once: `async def`, generators.

    Notes
    -----
    Results, dtypes, effects and errors are those of `function`; sums, and functions of
    strided arrays such as `atan2`, may be rounded otherwise. Globals, attributes and
    other values that it reads are read at each call.
    What can't be recorded is computed by calling `function`: conditions on elements,
    indexing by arrays, sorting, products of matrices, arrays in large files, functions
    that have other effects than on arrays, or that read what can't be compared, as the
    time or a random number. For arrays on a GPU, `cupy.fuse` makes a kernel of the
    steps.

    Examples
    --------
    >>> import ndx
    >>> @ndx.fuse
    ... def score(a, b):
    ...     return (a - b) ** 2 / (a + b)
    >>> score(ndx.asarray([1.0, 2.0]), ndx.asarray([3.0, 6.0]))
    NDArray([1., 2.])
    """
    # Imported with the first fused function: it takes a fifth of the time of `import
    # ndx`.
    from ndx._fusing.recording import require_function

    require_function(function)
    return FusedFunction(function)


cdef FusedFunction sample = FusedFunction(len)
ndx_set_vectorcall(
    FusedFunction, <char *>&sample.vectorcall - <char *><PyObject *>sample)

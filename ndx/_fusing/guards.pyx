"""Guards: whether what a recorded function reads from outside is still the same.

A program of `ndx.fuse` holds for the values that the function had read when it was
recorded: globals, closures, defaults, attributes, items. `_fusing.outside` lists these
reads, each as a way from another value, and here they are repeated before each replay.
A value is compared, or becomes an argument of the program, as arrays and floats do.
No Python code runs meanwhile: the recording refuses reads that run some.

Objects are compared by address and not kept alive. When one dies, its guards fail.
"""

cimport cython
from cpython.mem cimport PyMem_Free, PyMem_Malloc
from cpython.object cimport Py_TYPE, PyObject
from cpython.ref cimport Py_XDECREF
from libc.stdlib cimport calloc, free
from libc.string cimport memcmp

import weakref

import numpy as np

from ndx._array.storage cimport BaseArray, is_array
from ndx._compute.elementwise cimport as_operand
from ndx._fusing.signatures cimport (
    ARRAY, FOREIGN, Words, add_scalar, describe_array,
)

from ndx._fusing.attributes import is_computed
from ndx._fusing.plain import is_equal

__all__ = ["Guards", "reads_plainly"]

cdef enum:
    FEW = 48                     # values that need no memory of their own

# How a value is found; `parent` is the value that has it.
cdef enum Read:
    READ_FUNCTION                # the fused function
    READ_CONSTANT                # a module, or another object that stays
    READ_ARGUMENT                # of the call
    READ_GLOBAL                  # of a function, or a builtin
    READ_CELL                    # of a function's closure
    READ_DEFAULT                 # of a function
    READ_KEYWORD_DEFAULT
    READ_ATTRIBUTE
    READ_MEMBER                  # of a module
    READ_CLASS                   # of an object
    READ_ITEM                    # of a list or tuple
    READ_KEY                     # of a dict
    READ_METHOD_FUNCTION         # of a bound method of the value `index`
    READ_METHOD_SELF
    READ_LENGTH                  # of a list, tuple or dict
    READ_KEYS                    # of a dict, or the elements of a set

# What is compared.
cdef enum Check:
    CHECK_TYPE
    CHECK_IDENTICAL
    CHECK_EQUAL                  # a number, a string, a tuple of them, ...
    CHECK_FLOAT                  # any; the program reads it
    CHECK_FLOAT_VALUE
    CHECK_ARRAY
    CHECK_CODE                   # of a function, and the number of its defaults
    CHECK_ABSENT
    CHECK_NOTHING                # the read has compared

cdef dict READS = {
    "function": READ_FUNCTION, "constant": READ_CONSTANT,
    "argument": READ_ARGUMENT, "global": READ_GLOBAL, "cell": READ_CELL,
    "default": READ_DEFAULT,
    "keyword default": READ_KEYWORD_DEFAULT, "attribute": READ_ATTRIBUTE,
    "member": READ_MEMBER, "class": READ_CLASS, "item": READ_ITEM, "key": READ_KEY,
    "method function": READ_METHOD_FUNCTION, "method self": READ_METHOD_SELF,
    "length": READ_LENGTH, "keys": READ_KEYS,
}
cdef dict CHECKS = {
    "type": CHECK_TYPE, "identical": CHECK_IDENTICAL, "equal": CHECK_EQUAL,
    "float": CHECK_FLOAT, "float value": CHECK_FLOAT_VALUE, "array": CHECK_ARRAY,
    "code": CHECK_CODE, "absent": CHECK_ABSENT, "nothing": CHECK_NOTHING,
}

cdef extern from *:
    """
    #if PY_VERSION_HEX >= 0x030D0000
    #define ndx_optional_attribute PyObject_GetOptionalAttr
    #else
    #define ndx_optional_attribute _PyObject_LookupAttr
    #endif
    /* New references: another thread may replace what is read. NULL: there is none. */
    static PyObject *ndx_value_in(PyObject *dict, PyObject *key) {
    #if PY_VERSION_HEX >= 0x030D0000
        PyObject *found;
        PyDict_GetItemRef(dict, key, &found);
        return found;
    #else
        return Py_XNewRef(PyDict_GetItemWithError(dict, key));
    #endif
    }
    static PyObject *ndx_item_in(PyObject *sequence, Py_ssize_t i) {
        if (PyTuple_Check(sequence))
            return i < PyTuple_GET_SIZE(sequence)
                ? Py_NewRef(PyTuple_GET_ITEM(sequence, i)) : NULL;
        if (!PyList_Check(sequence) || i >= PyList_GET_SIZE(sequence))
            return NULL;
    #if PY_VERSION_HEX >= 0x030D0000
        PyObject *found = PyList_GetItemRef(sequence, i);
        if (found == NULL)
            PyErr_Clear();
        return found;
    #else
        return Py_NewRef(PyList_GET_ITEM(sequence, i));
    #endif
    }
    static int ndx_has_plain_attributes(PyTypeObject *type) {
        return type->tp_getattro == PyObject_GenericGetAttr
            || type->tp_getattro == PyType_Type.tp_getattro;
    }
    #define ndx_getattro_of(o) ((void *)Py_TYPE(o)->tp_getattro)
    #define ndx_plain_getattro(of_type) ((void *)( \\
        (of_type) ? PyType_Type.tp_getattro : PyObject_GenericGetAttr))
    /* 0: it has none at present. It changes with any attribute of the class. */
    static unsigned int ndx_version_of(PyObject *value, int is_type) {
        PyTypeObject *type = is_type ? (PyTypeObject *)value : Py_TYPE(value);
    #if PY_VERSION_HEX < 0x030D0000
        if (!PyType_HasFeature(type, Py_TPFLAGS_VALID_VERSION_TAG))
            return 0;
    #endif
        return type->tp_version_tag;
    }
    #define ndx_builtins_of(o) (((PyFunctionObject *)(o))->func_builtins)
    #define ndx_is_module(o) Py_IS_TYPE(o, &PyModule_Type)
    #define ndx_is_function(o) Py_IS_TYPE(o, &PyFunction_Type)
    #define ndx_is_method(o) Py_IS_TYPE(o, &PyMethod_Type)
    #define ndx_is_static(o) (PyType_Check(o) && \\
        !PyType_HasFeature((PyTypeObject *)(o), Py_TPFLAGS_HEAPTYPE))
    """
    int optional_attribute "ndx_optional_attribute"(
        PyObject *, PyObject *, PyObject **) except -1
    PyObject *value_in "ndx_value_in"(PyObject *, PyObject *) except? NULL
    PyObject *item_in "ndx_item_in"(PyObject *, Py_ssize_t) noexcept
    bint has_plain_attributes "ndx_has_plain_attributes"(type) noexcept
    void *getattro_of "ndx_getattro_of"(PyObject *) noexcept
    void *plain_getattro "ndx_plain_getattro"(bint of_type) noexcept
    unsigned int version_of "ndx_version_of"(PyObject *, bint is_type) noexcept
    PyObject *builtins_of "ndx_builtins_of"(PyObject *) noexcept
    bint is_module "ndx_is_module"(PyObject *) noexcept
    bint is_function "ndx_is_function"(PyObject *) noexcept
    bint is_method "ndx_is_method"(PyObject *) noexcept
    bint is_static "ndx_is_static"(object) noexcept

cdef extern from "Python.h":
    PyObject *PyFunction_GET_CODE(PyObject *) noexcept
    PyObject *PyFunction_GET_GLOBALS(PyObject *) noexcept
    PyObject *PyFunction_GET_DEFAULTS(PyObject *) noexcept
    PyObject *PyFunction_GET_KW_DEFAULTS(PyObject *) noexcept
    PyObject *PyFunction_GET_CLOSURE(PyObject *) noexcept
    PyObject *PyMethod_GET_FUNCTION(PyObject *) noexcept
    PyObject *PyMethod_GET_SELF(PyObject *) noexcept
    PyObject *PyModule_GetDict(PyObject *) noexcept
    PyObject *PyCell_Get(PyObject *) except? NULL
    PyObject *Py_XNewRef(PyObject *) noexcept
    Py_ssize_t PyDict_Size(PyObject *) except -1
    int PyDict_Next(PyObject *, Py_ssize_t *, PyObject **, PyObject **) noexcept
    PyObject *PyTuple_GET_ITEM(PyObject *, Py_ssize_t) noexcept
    Py_ssize_t PyTuple_GET_SIZE(PyObject *) noexcept
    Py_ssize_t PyList_GET_SIZE(PyObject *) noexcept
    bint PyTuple_Check(PyObject *) noexcept
    bint PyList_Check(PyObject *) noexcept
    bint PyDict_Check(PyObject *) noexcept
    double PyFloat_AS_DOUBLE(PyObject *) noexcept


def reads_plainly(value):
    """Whether attributes of a value are read by the rules of `object` or `type`."""
    return has_plain_attributes(type(value))


cdef Py_ssize_t size_of(PyObject *value) except -2:
    """Return the length of a list, tuple or dict; -1 for anything else."""
    if PyTuple_Check(value):
        return PyTuple_GET_SIZE(value)
    if PyList_Check(value):
        return PyList_GET_SIZE(value)
    return PyDict_Size(value) if PyDict_Check(value) else -1


cdef inline PyObject *read_value(const Guard *guard, PyObject *parent,
                                 PyObject **values, PyObject **args,
                                 PyObject *function) except? NULL:
    """Read a value; return a new reference, or NULL: there is none."""
    cdef PyObject *found = NULL
    cdef int read = guard.read
    if read == READ_GLOBAL:
        found = value_in(PyFunction_GET_GLOBALS(parent), guard.key)
        return value_in(builtins_of(parent), guard.key) if found == NULL else found
    if read == READ_MEMBER:
        return value_in(PyModule_GetDict(parent), guard.key) if is_module(parent) \
            else NULL
    if read == READ_CELL:
        return PyCell_Get(PyTuple_GET_ITEM(PyFunction_GET_CLOSURE(parent), guard.index))
    if read == READ_ITEM:
        return item_in(parent, guard.index)
    if read == READ_KEY:
        return value_in(parent, guard.key)
    if read == READ_KEYWORD_DEFAULT:
        found = PyFunction_GET_KW_DEFAULTS(parent)
        return NULL if found == NULL else value_in(found, guard.key)
    if read == READ_FUNCTION:
        found = function
    elif read == READ_CONSTANT:
        found = guard.key
    elif read == READ_ARGUMENT:
        found = args[guard.index]
    elif read == READ_DEFAULT:
        found = PyTuple_GET_ITEM(PyFunction_GET_DEFAULTS(parent), guard.index)
    elif read == READ_CLASS:
        found = <PyObject *>Py_TYPE(<object>parent)
    elif read == READ_METHOD_FUNCTION:
        if is_method(parent) and PyMethod_GET_SELF(parent) == values[guard.index]:
            found = PyMethod_GET_FUNCTION(parent)
    elif read == READ_METHOD_SELF:
        if is_method(parent):
            found = PyMethod_GET_SELF(parent)
    elif read == READ_LENGTH:
        if size_of(parent) == guard.index:
            found = parent
    elif has_keys(parent, <tuple>guard.expected):
        found = parent
    return Py_XNewRef(found)


cdef bint is_plain_read(Guard *guard, PyObject *parent) except -1:
    """Whether an attribute of a changed class is still read without code of Python."""
    # Taken before: looking may give the class a version.
    guard.version = version_of(parent, guard.of_type)
    return not is_computed(<object>parent, <object>guard.key)


cdef bint has_keys(PyObject *value, tuple keys) except -1:
    """Whether a dict has keys, or a set elements, in order."""
    cdef PyObject *key = NULL
    cdef PyObject *item = NULL
    cdef Py_ssize_t place = 0, i = 0
    if not PyDict_Check(value):
        return is_equal(tuple(<object>value), keys)
    with cython.critical_section(<object>value):
        if PyDict_Size(value) != len(keys):
            return False
        while PyDict_Next(value, &place, &key, &item):
            if key != <PyObject *>keys[i] and not is_equal(<object>key, keys[i]):
                return False
            i += 1
    return True


cdef inline bint passes(const Guard *guard, PyObject *value, Words *found,
                        list owned) except -1:
    """Whether a value passes its guard; arrays and floats become arguments."""
    cdef int check = guard.check
    if value == NULL:
        return check == CHECK_ABSENT
    if check == CHECK_CODE:
        return is_function(value) and PyFunction_GET_CODE(value) == guard.expected \
            and guard.defaults == (0 if PyFunction_GET_DEFAULTS(value) == NULL else
                                   PyTuple_GET_SIZE(PyFunction_GET_DEFAULTS(value)))
    elif check == CHECK_TYPE:
        return <PyObject *>Py_TYPE(<object>value) == guard.expected
    elif check == CHECK_IDENTICAL:
        return value == guard.expected
    elif check == CHECK_EQUAL:
        return value == guard.expected or is_same(value, guard.expected)
    elif check == CHECK_FLOAT or check == CHECK_FLOAT_VALUE:
        return takes_float(guard, value, found, owned)
    elif check == CHECK_ARRAY:
        return describe_outer(found, <object>value, owned)
    return check == CHECK_NOTHING


cdef bint is_same(PyObject *value, PyObject *expected) except -1:
    """Whether a value equals the plain value that was recorded."""
    if type(<object>value) is int and type(<object>expected) is int:
        return <object>value == <object>expected
    return is_equal(<object>value, <object>expected)


cdef bint takes_float(const Guard *guard, PyObject *value, Words *found,
                      list owned) except -1:
    """Add a float to the words; False for another type, or a value that must stay."""
    cdef double number
    if type(<object>value) is not float:
        return False
    if guard.check == CHECK_FLOAT_VALUE:
        number = PyFloat_AS_DOUBLE(value)
        if memcmp(&number, &guard.number, sizeof(double)):
            return False
    owned.append(<object>value)
    add_scalar(found, <object>value)
    return found.fits


cdef bint describe_outer(Words *found, object value, list owned) except -1:
    """Add an array read from outside to the words; False if it does not fit."""
    if is_array(value):
        owned.append(value)
        describe_array(found, <BaseArray>value, ARRAY)
        return found.fits
    if type(value) is not np.ndarray:
        return False
    try:
        array = as_operand(value)
    except TypeError:
        return False
    owned.append(array)
    describe_array(found, <BaseArray>array, FOREIGN)
    return found.fits


cdef class Guards:
    """The reads of one recording, and the types that its signature names.

    Parameters
    ----------
    reads : list of Read
        Of `_fusing.outside`.
    by_value : set of int
        Floats on whose values the recording depends, by their places.
    named : list
        Objects that the signature names by address.
    """

    def __cinit__(self, list reads, by_value, list named):
        cdef Guard *guard
        cdef Py_ssize_t i
        self.alive = True
        self.words = b""
        self.kept = []
        self.guards = <Guard *>calloc(max(len(reads), 1), sizeof(Guard))
        if self.guards == NULL:
            raise MemoryError()
        for value in named:
            self.refer(value)
        for i, read in enumerate(reads):
            guard = &self.guards[i]
            guard.read = READS[read.how]
            guard.check = CHECKS[read.check]
            guard.parent = read.parent
            if guard.read == READ_CONSTANT:
                self.kept.append(read.key.value)
                guard.key = <PyObject *>read.key.value
            elif type(read.key) is int and guard.read != READ_KEY:
                guard.index = read.key
            else:
                self.kept.append(read.key)
                guard.key = <PyObject *>read.key
            if guard.read == READ_ATTRIBUTE:
                guard.of_type = read.of_type
                guard.getattro = plain_getattro(guard.of_type)
            expected = read.expected
            guard.expected = <PyObject *>expected
            self.takes |= guard.check == CHECK_FLOAT or guard.check == CHECK_ARRAY
            if guard.check == CHECK_FLOAT:
                if read.position in by_value:
                    guard.check = CHECK_FLOAT_VALUE
                    guard.number = expected
            elif guard.check == CHECK_CODE:
                guard.defaults = read.defaults
                self.kept.append(expected)
            elif guard.check == CHECK_EQUAL or guard.read == READ_KEYS:
                self.kept.append(expected)
            elif expected is not None:
                self.refer(expected)
        self.count = len(reads)

    def __dealloc__(self):
        free(self.guards)

    cdef int refer(self, object value) except -1:
        """Note that a value is named by its address."""
        if is_static(value):
            return 0
        try:
            self.kept.append(weakref.ref(value, forgetting(self)))
        except TypeError:
            self.kept.append(value)
        return 0

    cdef bint describe(self, Words *found, list arrays) except -1:
        """Describe the arrays read from outside in words; False: they don't fit."""
        cdef int start = found.count
        cdef list owned = []
        cdef bint fits
        for array in arrays:
            describe_outer(found, array, owned)
        self.nwords = found.count - start
        self.words = (<char *>&found.words[start])[:8 * self.nwords]
        fits = found.fits
        return fits

    cdef bint hold(self, Words *found, PyObject **args, PyObject *function,
                   list owned) except -1:
        """Whether all reads find what they found; add arrays and floats to the words.

        `owned` keeps these until the program has run.
        """
        cdef const Guard *first = self.guards
        if not self.alive:
            return False
        if self.count == 1 and first.read == READ_FUNCTION:
            # The function's own code is the only thing to compare.
            return passes(first, function, found, owned)
        return self.hold_all(found, args, function, owned)

    cdef bint hold_all(self, Words *found, PyObject **args, PyObject *function,
                       list owned) except -1:
        cdef PyObject *few[FEW]
        cdef PyObject **values = few
        cdef int done = 0, held, device = found.device
        cdef int start = found.count, narrays = found.narrays, nscalars = found.nscalars
        if self.count > FEW:
            values = <PyObject **>PyMem_Malloc(self.count * sizeof(PyObject *))
            if values == NULL:
                raise MemoryError()
        # An exception is held back until the values are released.
        held = (<Compare><void *>compare)(
            self, &done, values, found, args, function, owned)
        while done > 0:
            done -= 1
            Py_XDECREF(values[done])
        if values != few:
            PyMem_Free(values)
        if held < 0:
            return -1
        if held and self.alive and found.count - start == self.nwords \
                and memcmp(<char *>self.words, &found.words[start],
                           8 * self.nwords) == 0:
            return True
        found.count, found.narrays, found.nscalars = start, narrays, nscalars
        found.device, found.fits = device, True
        return False


cdef int compare(Guards self, int *done, PyObject **values, Words *found,
                 PyObject **args, PyObject *function, list owned) except -1:
    """Repeat the reads until a value differs; count the reads with an owned value."""
    cdef PyObject *parent
    cdef Guard *guard
    cdef int i
    for i in range(self.count):
        guard = &self.guards[i]
        parent = NULL if guard.parent < 0 else values[guard.parent]
        values[i] = NULL
        if guard.read != READ_ATTRIBUTE:
            values[i] = read_value(guard, parent, values, args, function)
        elif getattro_of(parent) != guard.getattro or (
                guard.version != version_of(parent, guard.of_type)
                or guard.version == 0) and not is_plain_read(guard, parent):
            return False
        else:
            optional_attribute(parent, guard.key, &values[i])
        done[0] = i + 1
        if not passes(guard, values[i], found, owned):
            return False
    return True


ctypedef int (*Compare)(Guards, int *, PyObject **, Words *, PyObject **, PyObject *,
                        list) noexcept


def forgetting(Guards guards):
    """Return a function that makes guards fail, and does not keep them."""
    def forget(reference, known=weakref.ref(guards)):
        cdef Guards found = known()
        if found is not None:
            found.alive = False

    return forget

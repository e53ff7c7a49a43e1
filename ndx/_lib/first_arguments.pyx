"""Builtin functions of other libraries that convert their first argument.

Some functions take an object's memory because of its type, and ask no protocol in which
the type would have a say. ``torch.asarray`` is one: it reads the bytes of all that has
a buffer as float32. To replace it by another function would not help those who have it
by another name (``from torch import asarray``), and what is known by its identity
(TorchScript, ``torch.compile``) would not be known any more. So the function stays the
object that it is, and its method definition is replaced by a copy. The copy has another
C function: it converts the argument, and calls the library's own.

That a builtin function has a pointer to its definition is a part of CPython's C API
(``PyCFunctionObject``), but not one that others are meant to change. Functions of other
kinds are refused.
"""

from cpython.object cimport PyObject, PyTypeObject
from cpython.ref cimport Py_INCREF

cdef extern from *:
    """
    /* A function that converts. It lives as long as the process. */
    typedef struct {
        PyMethodDef definition;
        PyCFunction original;
        PyTypeObject *cls;                 /* strong, as the next two */
        PyObject *convert;
        PyObject *keyword;                 /* the first argument's name */
        int nested;                        /* whether lists of such are converted */
    } ndx_function;

    /* Lists that are nested deeper are an error for those that read numbers. */
    #define NDX_DEEPEST 64
    /* Lists that are looked at. What has more may contain itself: the conversion ends
     * with an error then. */
    #define NDX_MOST_LISTS (1 << 22)

    /* Whether an object is to be converted. It runs no Python code. */
    static int ndx_is_meant(const ndx_function *function, PyObject *object, int depth,
                            int *lists) {
        PyObject **items;
        if (PyObject_TypeCheck(object, function->cls)) { return 1; }
        if (!function->nested || depth == NDX_DEEPEST ||
            !(PyList_CheckExact(object) || PyTuple_CheckExact(object))) {
            return 0;
        }
        if (++*lists > NDX_MOST_LISTS) { return 1; }
        items = PySequence_Fast_ITEMS(object);
        for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(object); ++i) {
            if (PyFloat_CheckExact(items[i]) || PyLong_CheckExact(items[i])) {
                continue;
            }
            if (ndx_is_meant(function, items[i], depth + 1, lists)) { return 1; }
        }
        return 0;
    }

    /* C functions carry no data, so that each conversion has one of its own. */
    #define NDX_WITH_KEYWORDS 9
    #define NDX_FUNCTIONS 11
    static ndx_function ndx_functions[NDX_FUNCTIONS];

    static PyObject *ndx_call(ndx_function *function, PyObject *self, PyObject *args,
                              PyObject *kwargs) {
        PyCFunctionWithKeywords original =
            (PyCFunctionWithKeywords)(void (*)(void))function->original;
        Py_ssize_t count = PyTuple_GET_SIZE(args);
        int lists = 0;
        PyObject *first = NULL, *converted, *result = NULL;
        if (count > 0) {
            first = PyTuple_GET_ITEM(args, 0);
        } else if (kwargs != NULL) {
            first = PyDict_GetItemWithError(kwargs, function->keyword);
        }
        if (first == NULL || !ndx_is_meant(function, first, 0, &lists)) {
            return original(self, args, kwargs);
        }
        converted = PyObject_CallOneArg(function->convert, first);
        if (converted == NULL) { return NULL; }
        if (count > 0) {
            PyObject *given = PyTuple_New(count);
            if (given != NULL) {
                PyTuple_SET_ITEM(given, 0, Py_NewRef(converted));
                for (Py_ssize_t i = 1; i < count; ++i) {
                    PyTuple_SET_ITEM(given, i, Py_NewRef(PyTuple_GET_ITEM(args, i)));
                }
                result = original(self, given, kwargs);
                Py_DECREF(given);
            }
        } else {
            PyObject *named = PyDict_Copy(kwargs);
            if (named != NULL &&
                PyDict_SetItem(named, function->keyword, converted) == 0) {
                result = original(self, args, named);
            }
            Py_XDECREF(named);
        }
        Py_DECREF(converted);
        return result;
    }

    static PyObject *ndx_call_of_one(ndx_function *function, PyObject *self,
                                     PyObject *arg) {
        PyObject *converted, *result;
        int lists = 0;
        if (!ndx_is_meant(function, arg, 0, &lists)) {
            return function->original(self, arg);
        }
        converted = PyObject_CallOneArg(function->convert, arg);
        if (converted == NULL) { return NULL; }
        result = function->original(self, converted);
        Py_DECREF(converted);
        return result;
    }

    #define NDX_CALL(i) static PyObject *ndx_call_##i( \
            PyObject *self, PyObject *args, PyObject *kwargs) { \
        return ndx_call(&ndx_functions[i], self, args, kwargs); }
    #define NDX_CALL_OF_ONE(i) static PyObject *ndx_call_##i( \
            PyObject *self, PyObject *arg) { \
        return ndx_call_of_one(&ndx_functions[i], self, arg); }
    NDX_CALL(0) NDX_CALL(1) NDX_CALL(2) NDX_CALL(3) NDX_CALL(4) NDX_CALL(5)
    NDX_CALL(6) NDX_CALL(7) NDX_CALL(8)
    NDX_CALL_OF_ONE(9) NDX_CALL_OF_ONE(10)

    #define NDX_AS_FUNCTION(f) (PyCFunction)(void (*)(void))(f)
    static const PyCFunction ndx_callers[NDX_FUNCTIONS] = {
        NDX_AS_FUNCTION(ndx_call_0), NDX_AS_FUNCTION(ndx_call_1),
        NDX_AS_FUNCTION(ndx_call_2), NDX_AS_FUNCTION(ndx_call_3),
        NDX_AS_FUNCTION(ndx_call_4), NDX_AS_FUNCTION(ndx_call_5),
        NDX_AS_FUNCTION(ndx_call_6), NDX_AS_FUNCTION(ndx_call_7),
        NDX_AS_FUNCTION(ndx_call_8), ndx_call_9, ndx_call_10,
    };
    """
    ctypedef void *PyCFunction
    ctypedef struct PyMethodDef:
        PyCFunction ml_meth
        int ml_flags
    ctypedef struct PyCFunctionObject:
        PyMethodDef *m_ml
    ctypedef struct ndx_function:
        PyMethodDef definition
        PyCFunction original
        PyTypeObject *cls
        PyObject *convert
        PyObject *keyword
        int nested
    ndx_function *ndx_functions
    const PyCFunction *ndx_callers
    int NDX_WITH_KEYWORDS, NDX_FUNCTIONS
    int METH_VARARGS, METH_KEYWORDS, METH_O, METH_STATIC
    bint PyCFunction_CheckExact(object o) noexcept

cdef int used[2]                 # functions with keywords, and those of one argument


def convert_first(
        function, str keyword not None, type cls not None, convert, bint nested=False):
    """Have a builtin function convert its first argument, if that is of a class.

    Parameters
    ----------
    function : builtin_function_or_method
        Takes ``*args, **kwargs``, or one argument. Once it converts, another conversion
        is ignored.
    keyword : str
        The first argument's name, by which it may be given.
    cls : type
        Objects of this class, and of classes derived from it, are converted.
    convert : callable
        Returns what the function is to be called with; its errors are the function's.
    nested : bool, default False
        Lists and tuples are converted, too, if such an object is in them, at any depth.

    Raises
    ------
    TypeError
        If the function is not a builtin one, or called in another way.
    RuntimeError
        If more functions are to convert than there is room for.
    """
    cdef PyCFunctionObject *builtin
    cdef ndx_function *converting
    cdef int flags, of_one, place
    if not PyCFunction_CheckExact(function):
        raise TypeError(f"{function!r} is not a builtin function")
    builtin = <PyCFunctionObject *><PyObject *>function
    flags = builtin.m_ml.ml_flags & ~METH_STATIC
    if flags not in (METH_VARARGS | METH_KEYWORDS, METH_O):
        raise TypeError(f"{function!r} is called in an unknown way (flags {flags:#x})")
    for place in range(NDX_FUNCTIONS):
        if builtin.m_ml == &ndx_functions[place].definition:
            return
    of_one = flags == METH_O
    place = used[of_one] + of_one * NDX_WITH_KEYWORDS
    if place == (NDX_FUNCTIONS if of_one else NDX_WITH_KEYWORDS):
        raise RuntimeError(f"there is no room for another function: {function!r}")
    used[of_one] += 1
    for kept in (function, keyword, cls, convert):
        Py_INCREF(kept)
    converting = &ndx_functions[place]
    converting.definition = builtin.m_ml[0]
    converting.original = builtin.m_ml.ml_meth
    converting.definition.ml_meth = ndx_callers[place]
    converting.keyword = <PyObject *>keyword
    converting.cls = <PyTypeObject *>cls
    converting.convert = <PyObject *>convert
    converting.nested = nested
    builtin.m_ml = &converting.definition

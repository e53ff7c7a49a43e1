"""Borders: functions of other libraries that are given NumPy's arrays for NDArrays.

Some code asks whether an argument is a `numpy.ndarray`, or a number, and does something
else where it is neither, without an error. Where a library has no entry point for other
arrays, such a function is replaced by one that converts NDArrays in some arguments, and
changes nothing else. Views share the memory, which is pinned while they live.

What is replaced is data: a module for each library (`ndx.pandas`, ...) has a tuple of
`Border`. The functions here are compiled, and so have no Python frame: a library's
warnings still name the line that called it.
"""

cimport cython

import functools
import inspect
import sys
from collections import namedtuple
from pkgutil import resolve_name

import numpy as np

cimport numpy as cnp
from cpython.object cimport PyObject

from ndx._core cimport NDArray

cnp.import_array()

Border = namedtuple("Border", ["owner", "names", "arguments"])
Border.__doc__ = """Functions that are given NumPy's arrays.

Parameters
----------
owner : str
    The module or class that has them: "pandas.core.indexing:_LocationIndexer".
names : str
    Their names there, separated by spaces. The library's classes may inherit them. "*"
    for all builtin functions of a module, whose arguments have no names.
arguments : dict of str to int
    The names of the arguments that are converted, and how: `VIEW`, `VALUE`, `ITEMS`,
    `CELLS` or `RESULTS`. With "*" for a name, all arguments are.
"""

cdef enum:
    AS_VIEW, AS_VALUE, AS_ITEMS, AS_CELLS, AS_RESULTS

# How an argument is converted.
VIEW = AS_VIEW  # an NDArray becomes a NumPy view
VALUE = AS_VALUE  # one without dimensions becomes NumPy's scalar; in dicts, too
ITEMS = AS_ITEMS  # the same in lists, tuples, sets, slices, and those in these
CELLS = AS_CELLS  # in the cells of an array of objects, if objects are returned
RESULTS = AS_RESULTS  # in what a function returns that is called


cpdef object convert(object value, int how):
    """Return an argument without NDArrays; the argument itself if it has none."""
    if how == AS_CELLS:
        return without_in_cells(value)
    if how == AS_RESULTS:
        if not callable(value) or isinstance(value, type):
            return value
        return ReturningNumPys(value)
    if how == AS_VIEW:
        return np.asarray(value) if isinstance(value, NDArray) else value
    return without(value, 2 if how == AS_ITEMS else 1 if isinstance(value, dict) else 0)


@cython.binding(False)
@cython.embedsignature(True)
cdef class ReturningNumPys:
    """A user's function whose NDArrays are returned as NumPy's arrays.

    Parameters
    ----------
    function : callable
        The function. Its attributes are those of this object, too.
    """

    cdef object function

    def __init__(self, function):
        self.function = function

    def __call__(self, *args, **kwargs):
        return without(self.function(*args, **kwargs), 1)

    def __getattr__(self, name):
        return getattr(self.function, name)

    def __reduce__(self):
        return ReturningNumPys, (self.function,)


def calling_with_numpys(instead):
    """Return what calls a function with NumPy's arrays and numbers for NDArrays.

    It takes its arguments as the protocol ``__torch_function__`` gives them.

    Parameters
    ----------
    instead : dict of callable to callable
        Functions for which others are called, with these arguments.
    """
    def call(function, types, args=(), kwargs=None):
        cdef list given = [convert(value, AS_ITEMS) for value in args]
        cdef dict named = {}
        if kwargs is not None:
            for name, value in kwargs.items():
                named[name] = convert(value, AS_ITEMS)
        return instead.get(function, function)(*given, **named)

    return call


cdef object without(object value, int depth):
    """Return a value with NumPy's arrays for NDArrays, down to some depth.

    As deep as the library looks for arrays, so that no `_lib.trees.map_tree` will do.
    """
    cdef type kind = type(value)
    if isinstance(value, NDArray):
        array = np.asarray(value)
        return array if array.ndim else array[()]
    if depth == 0:
        return value
    if kind is list or kind is tuple:
        return without_in(value, depth - 1)
    if kind is slice:
        parts = (value.start, value.stop, value.step)
        found = without_in(parts, 0)
        return value if found is parts else slice(*found)
    if kind is set or kind is frozenset:
        parts = list(value)
        found = without_in(parts, 0)
        return value if found is parts else kind(found)
    if isinstance(value, dict):
        parts = list(value.values())
        found = without_in(parts, depth - 1)
        return value if found is parts else dict(zip(value, found, strict=True))
    return value


cdef object without_in(object values, int depth):
    """Convert the NDArrays in a list or tuple; return itself if it has none."""
    cdef list found = None
    cdef Py_ssize_t k = 0
    for value in values:
        converted = without(value, depth)
        if converted is not value:
            if found is None:
                found = list(values)
            found[k] = converted
        k += 1
    if found is None:
        return values
    return found if type(values) is list else tuple(found)


cdef bint has_ndarrays(object values):
    """Whether an array of objects has an NDArray in a cell."""
    cdef cnp.ndarray cells = values.ravel()
    cdef PyObject **cell = <PyObject **>cnp.PyArray_DATA(cells)
    cdef Py_ssize_t k
    for k in range(cells.size):
        if cell[k] != NULL and isinstance(<object>cell[k], NDArray):
            return True
    return False


cdef object without_in_cells(object values):
    """Convert the NDArrays in an array of objects; return itself if it has none."""
    if type(values) is not np.ndarray or values.dtype != object:
        return values
    if not has_ndarrays(values):
        return values
    result = np.empty(values.size, dtype=object)
    for k, value in enumerate(values.ravel().tolist()):
        result[k] = without(value, 0)
    return result.reshape(values.shape)


cdef tuple argument_names(object function):
    """Return the names of a function's arguments, without what they are bound to.

    `inspect.signature` says the same, but takes 20 times as long.
    """
    code = inspect.unwrap(function).__code__
    return tuple(code.co_varnames[:code.co_argcount + code.co_kwonlyargcount])


def adapted_in_all(function, border):
    """Return a function like a builtin one; all its arguments are converted."""
    cdef int how = border.arguments["*"]

    def call(*args, **kwargs):
        for name, value in kwargs.items():
            kwargs[name] = convert(value, how)
        return function(*[convert(value, how) for value in args], **kwargs)

    result = functools.wraps(function)(call)
    result.border = border
    return result


def adapted(function, border):
    """Return a function like `function` that is given NumPy's arrays."""
    if "*" in border.arguments:
        return adapted_in_all(function, border)
    cdef dict by_name = border.arguments
    cdef tuple names = argument_names(function)
    cdef tuple by_position = tuple(
        [(names.index(name), how) for name, how in by_name.items()])
    cdef int only = by_position[0][1]

    def special(self, value):
        return function(self, convert(value, only))

    def call(*args, **kwargs):
        cdef list changed = None
        for position, how in by_position:
            if position < len(args):
                value = convert(args[position], how)
                if value is not args[position]:
                    if changed is None:
                        changed = list(args)
                    changed[position] = value
        if kwargs:
            for name, how in by_name.items():
                if name in kwargs:
                    kwargs[name] = convert(kwargs[name], how)
        return function(*(args if changed is None else changed), **kwargs)

    def infer(values, *args, **kwargs):
        # Most arrays of objects become numbers or strings, and so have no NDArray.
        result = function(values, *args, **kwargs)
        if type(result) is np.ndarray and result.dtype == object:
            value = convert(values, only)
            if value is not values:
                return function(value, *args, **kwargs)
        return result

    # Operators and `x[key]` are called by position, and are short.
    is_special = (len(names) == 2 and function.__name__.endswith("__")
                  and inspect.unwrap(function).__defaults__ is None)
    chosen = infer if only == AS_CELLS else special if is_special else call
    result = functools.wraps(function)(chosen)
    result.border = border
    return result


def install(library, borders, answers=None):
    """Replace the functions at a library's borders, once.

    Parameters
    ----------
    library : str
        Its name.
    borders : sequence of Border
        The functions.
    answers : callable, optional
        Uses some of them, with NDArrays, and returns whether all was right.

    Raises
    ------
    ImportError
        A function or argument is not there, or an answer is wrong: this version of the
        library is another than the borders were written for. All others are replaced.
    """
    missing = []
    owners = {}
    for border in borders:
        names = border.names.split()
        if names == ["*"]:
            names = [name for name, value in vars(resolve_name(border.owner)).items()
                     if inspect.isbuiltin(value)]
        for name in names:
            try:
                if border.owner not in owners:
                    owners[border.owner] = resolve_name(border.owner)
                replace(library, owners[border.owner], name, border)
            except (ImportError, AttributeError, ValueError):
                missing.append(f"{border.owner}.{name}")
    problem = f"lacks {', '.join(missing)}" if missing else ""
    if not problem and answers is not None and not answers():
        problem = "does not use the functions that were replaced"
    if problem:
        version = getattr(sys.modules[library], "__version__", "of this version")
        raise ImportError(
            f"{library} {version} {problem}; it may silently take NDArrays for "
            f"something else, so give it numpy.asarray(x)")


cdef bint is_of(str module, str library):
    """Whether a module is a library's, or its compiled part: `_duckdb`."""
    return module.partition(".")[0].lstrip("_") == library


def replace(library, owner, name, border):
    """Replace one function of a module or class."""
    if not isinstance(owner, type):
        function = getattr(owner, name)
        if not hasattr(function, "border"):
            call = adapted(function, border)
            # Modules that have imported the function by name have it, too.
            for known, module in list(sys.modules.items()):
                if is_of(known, library):
                    if getattr(module, "__dict__", {}).get(name) is function:
                        setattr(module, name, call)
        return
    for cls in owner.__mro__:
        if name in vars(cls) and is_of(cls.__module__, library):
            function = vars(cls)[name]
            if isinstance(function, staticmethod):  # as `__new__` is
                if not hasattr(function.__func__, "border"):
                    setattr(cls, name, staticmethod(adapted(function.__func__, border)))
            elif not hasattr(function, "border"):
                setattr(cls, name, adapted(function, border))
            return
    raise AttributeError(name)

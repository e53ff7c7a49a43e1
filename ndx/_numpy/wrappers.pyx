"""NumPy's functions and ufuncs as objects whose results are NDArrays."""

cimport cython
from cpython.object cimport PyObject

import functools

import numpy as np

from ndx._array.storage cimport BaseArray, is_array
from ndx._blocks.block cimport block_is_live
from ndx._lib.free_threading cimport ndx_keep_for_ever
from ndx._lib.numpy_private cimport restore, silence
from ndx._methods.numpy_dispatch cimport call_function as dispatch, compute_call
from ndx._methods.numpy_function_table cimport Row, row_of
from ndx._methods.ufuncs cimport (
    KnownUfunc, compute_known, compute_number, compute_outer, compute_over,
    compute_ufunc, known_ufunc,
)

from ndx._lib.numpy_private import NO_VALUE, part

__all__ = ["NumPyFunction", "NumPyIndexer", "NumPyUfunc", "call_function"]

cdef extern from "Python.h":
    object bind "PyMethod_New" (object function, object instance)

cdef extern from "ndx/internal/vectorcall.h":
    ctypedef PyObject *(*Vectorcall "ndx_vectorcall")(
        PyObject *, PyObject **, size_t, PyObject *) noexcept
    int ndx_set_vectorcall(object cls, Py_ssize_t offset) except -1
    Py_ssize_t ndx_count(size_t nargsf) noexcept

# Scalars, which have no memory of their own and override nothing.
cdef frozenset SCALARS = frozenset((
    bool, int, float, complex,
    *[each for each in np.sctypeDict.values() if np.dtype(each).kind in "biufc"],
))

cdef tuple KEEPING = (np.asarray, np.asanyarray, np.ascontiguousarray)
cdef object DISPATCHER = part("dispatcher")


cdef int describe(object wrapper, object function, str name, str module) except -1:
    """Set the attributes of a wrapper that `help`, `inspect` and pickling read."""
    functools.update_wrapper(wrapper, function, updated=())
    wrapper.__module__ = module
    wrapper.__name__ = wrapper.__qualname__ = name
    return 0


@cython.binding(False)
@cython.embedsignature(True)
cdef class NumPyFunction:
    """A function of NumPy that computes on NDArrays, and returns them.

    Parameters
    ----------
    function : callable
        NumPy's.
    name, module : str
        Where the object is found.
    """

    cdef Vectorcall vectorcall
    cdef object function
    cdef Row row                 # None: not called yet
    cdef bint dispatches         # whether NumPy lets arguments compute it
    cdef bint keeps              # whether it returns an array in C order as it is
    cdef bint binds              # whether it becomes a method of an instance
    cdef dict __dict__

    def __init__(self, function: Any, str name, str module) -> None:
        self.function = function
        self.dispatches = type(function) is DISPATCHER
        self.keeps = function in KEEPING
        self.binds = hasattr(type(function), "__get__")
        self.vectorcall = <Vectorcall><void *>call
        ndx_keep_for_ever(self)
        describe(self, function, name, module)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        # Only an explicit `__call__` comes here; calls go to `call`, below.
        return self(*args, **kwargs)

    def __get__(self, instance, owner):
        # A function that is a builtin in NumPy doesn't bind as a method.
        return self if instance is None or not self.binds else bind(self, instance)

    # Classes that override functions keep them in tables, and are given NumPy's own.
    def __eq__(self, other):
        return self.function is (
            (<NumPyFunction>other).function if type(other) is NumPyFunction else other)

    def __hash__(self):
        return hash(self.function)

    def __reduce__(self):
        return self.__name__

    def __repr__(self):
        return f"<function {self.__module__}.{self.__name__}>"

    def __getattr__(self, name: str) -> Any:
        return getattr(self.function, name)


cdef object call(PyObject *self, PyObject **args, size_t nargsf, PyObject *names):
    """Call a function."""
    cdef NumPyFunction function = <NumPyFunction>self
    cdef Py_ssize_t count = ndx_count(nargsf), i
    if function.keeps and count == 1 and names == NULL and is_array(<object>args[0]) \
            and block_is_live((<BaseArray>args[0]).block) \
            and (<BaseArray>args[0]).c_contiguous and (<BaseArray>args[0]).ndim:
        # The shortest way for what programs call on each argument.
        return <object>args[0]
    if function.row is None:
        row = row_of(function.function)
        # As long as the function: another thread may be about to set, or use, one.
        ndx_keep_for_ever(row)
        function.row = row
    if not function.dispatches:
        for i in range(count):
            refuse_placeholder(<object>args[i])
    return compute_call(function.row, args, count,
                        None if names == NULL else <object>names)


cdef int refuse_placeholder(object x) except -1:
    """Raise for a placeholder of `ndx.fuse`, which can't be an array of NumPy's."""
    kind = type(x)
    if not is_array(x) and kind is not int and kind is not tuple and kind is not list \
            and kind not in SCALARS and issubclass(x.__class__, BaseArray):
        x.__array__()
    return 0


cdef NumPyFunction sample = NumPyFunction(len, "len", "builtins")
ndx_set_vectorcall(
    NumPyFunction, <char *>&sample.vectorcall - <char *><PyObject *>sample)


cdef bint only_scalars(tuple args) except -1:
    """Whether all arguments are plain scalars."""
    for item in args:
        # The types of our numbers are equal to NumPy's.
        if is_array(item) or type(item) not in SCALARS:
            return False
    return True


# Each call counts references to it.
ndx_keep_for_ever(NO_VALUE)


cdef dict given(dict keywords):
    """Return the keywords that have a value."""
    return {key: value for key, value in keywords.items() if value is not NO_VALUE}


@cython.binding(False)
@cython.embedsignature(True)
cdef class NumPyUfunc:
    """A ufunc of NumPy that computes on NDArrays, and returns them.

    Parameters
    ----------
    ufunc : numpy.ufunc
        NumPy's.
    name, module : str
        Where the object is found.
    """

    cdef object ufunc
    cdef KnownUfunc known        # ndx's operation; None if it has none
    cdef dict __dict__

    def __init__(self, ufunc: np.ufunc, str name, str module) -> None:
        self.ufunc = ufunc
        self.known = known_ufunc(ufunc)
        ndx_keep_for_ever(self)
        describe(self, ufunc, name, module)

    cdef object compute(self, str method, tuple inputs, dict kwargs):
        result = compute_ufunc(self.ufunc, method, inputs, kwargs)
        if result is NotImplemented:
            # An operand is another library's array, which computes itself.
            return getattr(self.ufunc, method)(*inputs, **kwargs)
        return result

    def __call__(self, *args: Any, out: Any = NO_VALUE, where: Any = NO_VALUE,
                 axes: Any = NO_VALUE, axis: Any = NO_VALUE,
                 keepdims: Any = NO_VALUE, casting: Any = NO_VALUE,
                 order: Any = NO_VALUE, dtype: Any = NO_VALUE,
                 subok: Any = NO_VALUE, signature: Any = NO_VALUE,
                 sig: Any = NO_VALUE) -> Any:
        # Named one by one: for ``**kwargs`` each call would make a dict.
        cdef dict kwargs
        if out is where is axes is axis is keepdims is casting is order is dtype \
                is subok is signature is sig is NO_VALUE:
            result = compute_known(self.known, args)
            if result is not NotImplemented:
                return result
            if len(args) == 1:
                result = compute_number(self.known, args[0])
                if result is not None:
                    return result
            if only_scalars(args):
                token = silence()
                try:
                    return self.ufunc(*args)
                finally:
                    restore(token)
            kwargs = {}
        else:
            kwargs = given(dict(
                out=out, where=where, axes=axes, axis=axis, keepdims=keepdims,
                casting=casting, order=order, dtype=dtype, subok=subok,
                signature=signature, sig=sig))
        nin, nargs = self.ufunc.nin, self.ufunc.nargs
        if len(args) > nin:
            if len(args) > nargs or "out" in kwargs:
                return dispatch(self.ufunc, args, kwargs)
            kwargs["out"] = args[nin:] + (None,) * (nargs - len(args))
            args = args[:nin]
        return self.compute("__call__", args, kwargs)

    def reduce(self, array: Any, axis: Axes | None = 0, dtype: DTypeLike = None,
               out: Any = None, keepdims: bool = False, initial: Any = ...,
               where: Any = True) -> Any:
        """Reduce an array along axes; see `numpy.ufunc.reduce`."""
        if dtype is None and out is None and not keepdims and initial is ... \
                and where is True:
            result = compute_over(self.ufunc, "reduce", array, axis)
            if result is not NotImplemented:
                return result
        return dispatch(self.ufunc.reduce, (array,), given(dict(
            axis=axis, dtype=dtype, out=out, keepdims=keepdims, where=where,
            initial=NO_VALUE if initial is ... else initial)))

    def accumulate(self, array: Any, axis: int = 0, dtype: DTypeLike = None,
                   out: Any = None) -> Any:
        """Accumulate along an axis; see `numpy.ufunc.accumulate`."""
        if dtype is None and out is None:
            result = compute_over(self.ufunc, "accumulate", array, axis)
            if result is not NotImplemented:
                return result
        return dispatch(self.ufunc.accumulate, (array,), given(dict(
            axis=axis, dtype=dtype, out=out)))

    def reduceat(self, array: Any, indices: Any, axis: int = 0, dtype: DTypeLike = None,
                 out: Any = None) -> Any:
        """Reduce slices of an axis; see `numpy.ufunc.reduceat`."""
        return dispatch(self.ufunc.reduceat, (array, indices), given(dict(
            axis=axis, dtype=dtype, out=out)))

    def outer(self, A: Any, B: Any, /, **kwargs: Any) -> Any:
        """Compute all pairs of elements; see `numpy.ufunc.outer`."""
        if not kwargs:
            result = compute_outer(self.known, (A, B))
            if result is not NotImplemented:
                return result
        return dispatch(self.ufunc.outer, (A, B), kwargs)

    def at(self, a: Any, indices: Any, *b: Any) -> None:
        """Compute in place at indices, unbuffered; see `numpy.ufunc.at`."""
        self.compute("at", (a, indices, *b), {})

    def __eq__(self, other):
        return self.ufunc is (
            (<NumPyUfunc>other).ufunc if type(other) is NumPyUfunc else other)

    def __hash__(self):
        return hash(self.ufunc)

    def __reduce__(self):
        return self.__name__

    def __repr__(self):
        return f"<ufunc {self.__module__}.{self.__name__}>"

    def __getattr__(self, name: str) -> Any:
        return getattr(self.ufunc, name)


def call_function(function: Any, /, *args: Any, **kwargs: Any) -> Any:
    """Return the result of a function of NumPy, with NDArrays for NumPy's arrays.

    For modules in Python.
    """
    return dispatch(function, args, kwargs)


cdef class NumPyIndexer:
    """One of NumPy's objects that make arrays by indexing: `mgrid`, `r_`, ...

    Parameters
    ----------
    indexer : object
        NumPy's.
    """

    cdef object indexer
    cdef Row row
    cdef dict __dict__

    def __init__(self, indexer: Any) -> None:
        self.indexer = indexer
        self.row = row_of(indexer)
        self.__doc__ = indexer.__doc__

    def __getitem__(self, key: Any) -> Any:
        cdef PyObject *given = <PyObject *>key
        # One that only `__new__` has made has no row.
        if self.row is not None:
            result = self.row.compute_call(&given, 1, None)
            if result is not NotImplemented:
                return result
        return dispatch(self.indexer.__getitem__, (key,), {})

    def __getattr__(self, name: str) -> Any:
        return getattr(self.indexer, name)

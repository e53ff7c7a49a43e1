"""The table of NumPy's functions: what ndx computes itself, and how NumPy is called.

A row that ndx computes binds the arguments to names, in C, and calls a function of ndx
with them: by NumPy's protocol (`np.flip(x)`) as by `ndx.numpy.flip(x)`. What it does
not know, or what is wrong, it leaves to NumPy. Other rows say what NumPy's function
needs: its memory, the state of floating-point errors, checks of values.
"""

cimport cython
from cpython.object cimport PyObject

import sys
import types
from importlib import import_module

import numpy as np

from ndx._array.storage cimport BaseArray, is_array
from ndx._compute.elementwise cimport is_subclass
from ndx._compute.sequences cimport array_of
from ndx._context.context cimport placing_device
from ndx._lib.dtypes cimport KIND_FLOAT, kind_of
from ndx._lib.free_threading cimport ndx_keep_for_ever, ndx_set_address
from ndx._methods.values cimport STORING

from ndx._lib.numpy_private import part

__all__ = ["is_computed", "parameters_of", "recorder_of", "set_recorder"]

cdef extern from "Python.h":
    # Borrowed items of a tuple.
    PyObject **items_of "PySequence_Fast_ITEMS" (object sequence) noexcept
    object vectorcall "PyObject_Vectorcall" (
        object function, PyObject **args, Py_ssize_t count, PyObject *names)

# NumPy's function -> its row. Rows of others are made anew for each call: to keep them
# would keep what they are bound to.
cdef dict ROWS = {}

cdef frozenset functions(str names, object module=np):
    """Return NumPy's functions with these names, of those that this version has."""
    return frozenset([getattr(module, name) for name in names.split()
                      if hasattr(module, name)])


cdef frozenset methods(str names):
    """Return NumPy's methods with these names, and its functions that do the same."""
    return functions(names) | functions(names, np.ndarray)


# NumPy's functions that call functions of the caller's with arrays -> the parameter
# that has these. Other arguments may be callable, too, as a `numpy.poly1d` is.
cdef dict CALLING_BACK = {
    np.apply_along_axis: (0, "func1d"), np.apply_over_axes: (0, "func"),
    np.fromfunction: (0, "function"), np.piecewise: (2, "funclist"),
}

# Functions that visit each element, also of an array that repeats a few; or, the first,
# that need memory for each.
cdef frozenset VISITING = functions(
    "amax amin lexsort argwhere average count_nonzero median nanmax nanmean nanmedian "
    "nanmin nanprod nanstd nansum nanvar ptp") | methods(
    "all any argmax argmin max mean min prod std sum var")

# Functions that read beyond an output without axes, as `accumulate` of all ufuncs does.
cdef frozenset RUNNING = functions(
    "nancumsum nancumprod cumulative_sum cumulative_prod") | methods("cumsum cumprod")

# Functions whose results and temporaries are about as large as their operands, or as
# these broadcast: of small ones NumPy allocates them by itself.
cdef frozenset BOUNDED = functions(
    "allclose amax amin angle append argpartition argsort argwhere around array_equal "
    "array_equiv array_repr array_split array_str array2string atleast_1d atleast_2d "
    "atleast_3d average block choose clip column_stack common_type compress "
    "concatenate convolve copyto correlate count_nonzero cross cumprod cumsum "
    "cumulative_prod cumulative_sum delete diagonal diff digitize dsplit dstack "
    "ediff1d expand_dims extract fill_diagonal fix flip fliplr flipud gradient "
    "hsplit hstack imag insert interp intersect1d iscomplex iscomplexobj isclose "
    "isin isneginf isposinf isreal isrealobj isscalar iterable ix_ lexsort "
    "may_share_memory median moveaxis nan_to_num nanargmax nanargmin nancumprod "
    "nancumsum nanmax nanmean nanmedian nanmin nanpercentile nanprod nanquantile "
    "nanstd nansum nanvar ndim nonzero packbits partition percentile piecewise "
    "place poly polyadd polyder polydiv polyint polymul polysub polyval ptp put "
    "put_along_axis putmask quantile ravel real real_if_close require reshape "
    "result_type rollaxis rot90 row_stack searchsorted select setdiff1d setxor1d "
    "shape shares_memory sinc size sort sort_complex split squeeze stack swapaxes "
    "take take_along_axis trace transpose trapezoid tril trim_zeros triu union1d "
    "unique unique_all unique_counts unique_inverse unique_values unwrap vsplit "
    "vstack where"
) | functions(
    "cholesky cond det eig eigh eigvals eigvalsh inv lstsq matrix_norm matrix_power "
    "matrix_rank norm pinv qr slogdet solve svd svdvals vector_norm", np.linalg
) | methods(
    "all any argmax argmin argpartition argsort choose clip compress conj conjugate "
    "cumprod cumsum diagonal max mean min nonzero partition prod put searchsorted std "
    "sum take trace var")

# Functions of which that holds with the integers that they are given as factors.
cdef frozenset SCALED = functions(
    "array asarray diag_indices eye full full_like hamming hanning histogram identity "
    "indices linspace pad polyfit ravel_multi_index resize tri tril_indices "
    "triu_indices unravel_index vander")

# Functions that, called without keywords, neither compute nor cast floating-point
# numbers, and so report no errors of these.
cdef frozenset SILENT = functions(
    "append argpartition argsort argwhere array_equiv array_split atleast_1d "
    "atleast_2d atleast_3d bincount block broadcast_arrays broadcast_to can_cast "
    "choose column_stack common_type correlate delete diag diag_indices diagonal "
    "digitize dsplit dstack expand_dims extract flip fliplr flipud hsplit hstack imag "
    "intersect1d iscomplexobj isin isrealobj isscalar iterable ix_ lexsort "
    "may_share_memory meshgrid moveaxis ndim packbits partition ravel "
    "ravel_multi_index real reshape resize result_type rollaxis rot90 searchsorted "
    "setdiff1d setxor1d shape shares_memory size sort split squeeze stack swapaxes "
    "take_along_axis transpose tril tril_indices tril_indices_from trim_zeros triu "
    "triu_indices triu_indices_from union1d unique unpackbits unravel_index vsplit "
    "vstack")

# Methods of NumPy's generators that compute with their parameters.
cdef frozenset COMPUTING = frozenset((
    "choice", "dirichlet", "multinomial", "multivariate_hypergeometric",
    "multivariate_normal"))

# Functions that NumPy writes in Python, whose steps ndx computes faster. In a workspace
# they need memory for each step, so that this is done for small arrays.
cdef frozenset COMPOSITES = functions(
    "allclose bartlett blackman corrcoef geomspace hamming hanning i0 intersect1d isin "
    "logspace polyfit polyval setdiff1d setxor1d tensordot trapezoid tril_indices "
    "triu_indices union1d")
# Those of them whose results are elements of their operands.
cdef frozenset OF_SETS = functions("intersect1d setxor1d union1d")

# Functions whose results may be as large as the product of their operands' sizes.
cdef frozenset SPREADING = functions(
    "broadcast_arrays einsum inner ix_ kron meshgrid outer tensordot vdot")

cdef object DISPATCHER = part("dispatcher")
# Modules that NumPy loads at their first use -> the function that sets their rows.
cdef dict LATE = {}

cdef frozenset UFUNCS = frozenset(
    [value for value in vars(np).values() if isinstance(value, np.ufunc)])
cdef frozenset UFUNC_METHODS = frozenset(("accumulate", "at", "reduce", "reduceat"))
cdef object BUILTIN = types.BuiltinFunctionType
cdef object METHOD = type(np.ndarray.sum)


@cython.final
cdef class Row:
    """What ndx knows of one of NumPy's functions."""

    def __cinit__(self, object function):
        name = getattr(function, "__name__", "")
        self.function = self.without_dispatch = function
        if type(function) is DISPATCHER:
            self.without_dispatch = function.__wrapped__
        self.output = UNKNOWN
        self.is_linalg = getattr(function, "__module__", None) == "numpy.linalg"
        self.stores = function in STORING
        self.calls_back = function in CALLING_BACK
        self.repeats = function in VISITING
        self.runs = function in RUNNING or name == "accumulate"
        self.shuffles = name == "shuffle"
        self.spreads = function in SPREADING
        self.bounded = function in BOUNDED or self.spreads or function in UFUNCS \
            or name in UFUNC_METHODS and function.__self__ in UFUNCS
        self.is_composite = function in COMPOSITES
        self.scaled = function in SCALED
        self.silent = function in SILENT
        if getattr(function, "__module__", None) == "numpy.fft":
            self.bounded = name in ("fftshift", "ifftshift")
            self.scaled = name in ("fftfreq", "rfftfreq")
        if (getattr(function, "__module__", None) or "").startswith("numpy.random"):
            # A method, or one that is bound to NumPy's own generator.
            self.draws = self.scaled = True
            self.silent = name not in COMPUTING
            owner = getattr(np.random, function.__qualname__.partition(".")[0], None)
            if isinstance(owner, type):
                self.owner = owner

    cdef object compute_call(self, PyObject **args, Py_ssize_t count, object names):
        """Compute a call, of which keywords follow the arguments; or NotImplemented."""
        cdef PyObject *given[MOST_PARAMETERS]
        cdef Py_ssize_t i, place, more = 0 if names is None else len(<tuple>names)
        cdef Compute compute = compute_of(self)
        if self.is_composite:
            return self.compute_steps(args, count, names)
        if compute == NULL or count > self.positional:
            return NotImplemented
        if self.is_method and count and (
                type(<object>args[0]) is list or type(<object>args[0]) is tuple):
            return self.compute_list(args, count, names)
        for i in range(len(self.names)):
            given[i] = args[i] if i < count else NULL
        for i in range(more):
            place = place_of(self.names, (<tuple>names)[i])
            if place < 0 or given[place] != NULL:
                return NotImplemented
            given[place] = args[count + i]
        if self.is_method:
            if given[0] == NULL or not is_array(<object>given[0]):
                return NotImplemented
            # A subclass computes: as an operand, a bound or a mask.
            for i in range(1, len(self.names)):
                if given[i] != NULL and is_other_class(<object>given[i]):
                    return NotImplemented
        return compute(self, given)

    cdef object compute_list(self, PyObject **args, Py_ssize_t count, object names):
        """Compute a call whose first argument is a list or tuple, as an array."""
        cdef PyObject *given[MOST_PARAMETERS]
        cdef Py_ssize_t i, more = 0 if names is None else len(<tuple>names)
        if count + more > MOST_PARAMETERS or placing_device():
            return NotImplemented
        x = array_of(<object>args[0], -1)
        # Of nothing NumPy's functions warn, or raise their errors.
        if x is None or (<BaseArray>x).size == 0:
            return NotImplemented
        given[0] = <PyObject *>x
        for i in range(1, count + more):
            given[i] = args[i]
        return self.compute_call(given, count, names)

    cdef object compute_steps(self, PyObject **args, Py_ssize_t count, object names):
        """Compute a call of small arrays by NumPy's code over functions of ndx."""
        cdef Py_ssize_t i, more = 0 if names is None else len(<tuple>names)
        for i in range(count + more):
            if not is_small(<object>args[i]):
                return NotImplemented
        if self.exact and not are_exact(args, count + more, self.function in OF_SETS):
            return NotImplemented
        if self.composite is None:
            self.composite = import_module("ndx._numpy.composites").composite(
                self.function)
            if self.composite is None:
                return NotImplemented
        try:
            return vectorcall(self.composite, args, count,
                              <PyObject *>names if more else NULL)
        except (AttributeError, IndexError, TypeError, ValueError) as error:
            # What the handler of a signal raises meanwhile is not of the steps.
            if not import_module("ndx._numpy.composites").is_of_steps(error):
                raise
            return NotImplemented

    cdef object compute_tuple(self, tuple args, dict kwargs):
        """Compute a call of arguments and keywords; or NotImplemented."""
        cdef tuple values
        if self.whole is not None:
            return self.whole(args, kwargs)
        if not kwargs:
            return self.compute_call(items_of(args), len(args), None)
        values = (*args, *kwargs.values())
        return self.compute_call(items_of(values), len(args), tuple(kwargs))


cdef bint is_small(object x) except -1:
    """Whether an argument is a small array of the CPU's, a number or text."""
    if is_array(x):
        return not (<BaseArray>x).block.device and (<BaseArray>x).size <= SMALL
    kind = type(x)
    return kind is float or kind is int or kind is bool or x is None or kind is str


cdef bint are_exact(PyObject **args, Py_ssize_t count, bint as_sets) noexcept:
    """Whether arrays are real numbers that NumPy's own steps do not round."""
    cdef int dtype = -1
    cdef Py_ssize_t i
    for i in range(count):
        if not is_array(<object>args[i]):
            continue
        if kind_of[(<BaseArray>args[i]).dtype] < KIND_FLOAT and not as_sets \
                or dtype >= 0 and dtype != (<BaseArray>args[i]).dtype:
            return False
        dtype = (<BaseArray>args[i]).dtype
    return True


cdef bint is_other_class(object x) except -1:
    """Whether a value is an array of a subclass of NumPy's."""
    return not is_array(x) and is_subclass(x)


cdef Py_ssize_t place_of(tuple names, object name) except -2:
    """Return the place of a parameter; -1: there is none of that name."""
    cdef Py_ssize_t i
    for i in range(len(names)):
        if names[i] is name:
            return i
    for i in range(len(names)):
        if names[i] == name:
            return i
    return -1


cdef bint lasts(object function) except -1:
    """Whether a function is NumPy's or ndx's: no method of an object of the user's."""
    kind = type(function)
    if kind is DISPATCHER or kind is METHOD:
        return True
    if kind is np.ufunc:
        return function in UFUNCS
    if kind is BUILTIN:
        owner = function.__self__
        return owner is None or type(owner) is types.ModuleType or (
            type(owner) is np.ufunc and owner in UFUNCS)
    if kind is types.FunctionType:
        return (function.__module__ or "").startswith("numpy")
    if function is np.r_ or function is np.c_ \
            or getattr(function, "__module__", None) == "ndx":
        return True
    module = getattr(function, "__module__", None) or ""
    if getattr(function, "__self__", None) is not None \
            or not module.startswith("numpy"):
        return False
    # A method of a class that is compiled, or what a module has.
    return module.startswith("numpy.random") or function is getattr(
        sys.modules.get(module), getattr(function, "__name__", ""), None)


cdef Row row_of(object function):
    """Return the row of a function of NumPy, or of any other callable."""
    cdef Row row = ROWS.get(function)
    if row is None:
        add = LATE.pop(getattr(function, "__module__", None), None) if LATE else None
        if add is not None:
            add()
            return row_of(function)
        row = Row(function)
        if lasts(function):
            # Another thread may have made it meanwhile.
            row = ROWS.setdefault(function, row)
            ndx_keep_for_ever(row)
    return row


cdef int add_function(object function, str names, Compute compute,
                      object data=None) except -1:
    """Let ndx compute a function of NumPy.

    `names` are its parameters by position and, after a ``*``, by keyword alone.
    """
    cdef Row row = row_of(function)
    places = names.split()
    row.positional = places.index("*") if "*" in places else len(places)
    row.names = tuple([name for name in places if name != "*"])
    if len(row.names) > MOST_PARAMETERS:
        raise ValueError(f"{function}: more than {MOST_PARAMETERS} parameters")
    row.data = data
    # Last: another thread may look at the row.
    ndx_set_address(<const void **>&row.compute, <const void *>compute)
    return 0


cdef int add_late(str module, object add) except -1:
    """Let rows of a module of NumPy be set when one of its functions is called."""
    LATE[module] = add
    return 0


cdef int add_whole(object function, object whole) except -1:
    """Let ndx compute a function of NumPy: ``whole(args, kwargs)``."""
    row_of(function).whole = whole
    return 0


cdef int add_method(object function, str names, Compute compute,
                    object data=None) except -1:
    """Let what computes a method compute a function of NumPy, too.

    The first argument is an array, or a list that becomes one.
    """
    row_of(function).is_method = True
    return add_function(function, names, compute, data)


def parameters_of(function):
    """Return the names of a function's parameters that ndx knows."""
    return row_of(function).names


def is_computed(function):
    """Return whether ndx computes some calls of a function of NumPy."""
    cdef Row row = row_of(function)
    if compute_of(row) != NULL or row.whole is not None or row.known is not None:
        return True
    owner = getattr(function, "__self__", None)
    return isinstance(owner, np.ufunc) and row_of(owner).known is not None


def set_recorder(function, record, options):
    """Let `ndx.fuse` record calls of a function, of NumPy or of ndx.

    Parameters
    ----------
    function : callable
    record : callable
        ``record(x, **given)`` records a call with the array `x`.
    options : list of str
        The other parameters with which it does so.
    """
    row_of(function).recorder = record, options


def recorder_of(function):
    """Return what `set_recorder` has set for a function, or None."""
    return row_of(function).recorder

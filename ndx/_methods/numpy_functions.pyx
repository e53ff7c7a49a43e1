"""Calls of NumPy's functions with NDArrays: the one mechanism of NumPy's face.

The arrays among the arguments, also in lists, tuples and dicts, are replaced by NumPy
views, which pin their memory. NumPy's function then runs with its new arrays in memory
of ndx. In its results, NumPy's arrays are replaced:

- A view of an operand becomes a view of that NDArray, which goes stale with it.
- `out=` and other operands that are returned are the NDArrays that were given.
- New arrays are adopted without a copy or, in a workspace, moved to its arena. Where
  new arrays are on a device and no operand is an NDArray, they are copied to it.
- NumPy's scalars become arrays without axes, if one of the operands was an NDArray.
- Arrays of dtypes that an NDArray can't have (strings, dates, objects, float16,
  structured ones), and of subclasses such as ``np.ma.MaskedArray``, stay NumPy's.

References
----------
NEP 18, a dispatch mechanism for array functions:
https://numpy.org/neps/nep-0018-array-function-protocol.html
"""

import array
import functools
import inspect
from collections.abc import Sequence
from importlib import import_module

import numpy as np

from ndx._array.dispatch cimport device_engine
from ndx._array.storage cimport (
    BaseArray, as_number, holds_number, is_array, numpy_view, same_view,
)
from ndx._compute.copies cimport copy
from ndx._compute.elementwise cimport as_operand, is_subclass
from ndx._compute.numpy_results cimport call_numpy, own_or_keep, root_of
from ndx._context.placement cimport placing_device
from ndx._lib.dtypes cimport COMPLEX64, FLOAT32, FLOAT64, code_or_none, promote_table
from ndx._lib.numpy_scalars cimport DEEPEST, is_refused_array
from ndx._methods.numpy_shortcuts cimport shortcut
from ndx._methods.values cimport (
    checked_arguments, dtype_of, is_integer, made_by, number_of, numpy_scalar,
    stores_objects,
)


# `EXACT` and `MANY` of `ndx._methods.exact`: NumPy's function -> the function that
# computes it exactly, and the fewest terms that are added in another way than NumPy's.
# The first call of a function of NumPy loads that module.
cdef dict exact = None
cdef Py_ssize_t MANY = 0

# Functions that are exact but for integers as `dtype` -> the number of parameters
# before that.
cdef dict RANGES = {np.arange: 3, np.linspace: 5}
cdef frozenset SEARCHES = frozenset((np.searchsorted, np.ndarray.searchsorted))
# Functions that are exact but for float32 and complex64; and those that are exact but
# for integers, as first arguments.
cdef frozenset SUMS = frozenset((
    np.average, np.nanmean, np.nanstd, np.nansum, np.nanvar,
))
cdef frozenset OF_INTEGERS = frozenset((
    np.digitize, np.histogram, np.interp, np.intersect1d, np.nanpercentile,
    np.nanquantile, np.percentile, np.quantile, np.setxor1d, np.union1d,
))

# NumPy's function -> (the method of NDArray with the same parameters, how many of them
# it takes by position, the keywords that it lacks).
cdef dict methods = {}

# NumPy's functions that call functions of the caller's with arrays -> the parameter
# that has these. Other arguments may be callable, too, as a `numpy.poly1d` is.
cdef dict CALLING_BACK = {
    np.apply_along_axis: (0, "func1d"), np.apply_over_axes: (0, "func"),
    np.fromfunction: (0, "function"), np.piecewise: (2, "funclist"),
}

# Sequences of other items than arrays.
cdef tuple NUMBERS_OR_TEXT = (array.array, bytearray, bytes, memoryview, range, str)

cdef class Call:
    """The operands of one call, and the exchange of arrays for NumPy's views."""

    def __cinit__(self):
        self.views = []
        self.arrays = []
        self.foreign = []
        self.entered = {}
        self.outs = ()
        self.function = None
        self.args = ()

    cdef object unwrap(self, object x, int depth):
        """Return `x` with NumPy's views in place of NDArrays; itself without any.

        Numbers become NumPy's scalars, by whose classes NumPy asks. So do arrays
        without axes in sequences: NumPy checks scalars, where it casts an array, and as
        elements of NumPy's they must fit a dtype.
        """
        cdef Py_ssize_t i
        cdef bint changed = False
        kind = type(x)
        if self.asks:
            given = made_by(x)
            if given is not None:
                x = given
        if is_array(x):
            if (<BaseArray>x).block.device:
                self.on_device = True
                return x
            self.any_array = True
            if holds_number(<BaseArray>x) or depth > 1 and (<BaseArray>x).ndim == 0:
                return numpy_scalar(<BaseArray>x)
            if self.keeps and depth > 1:
                return x
            view = numpy_view(<BaseArray>x)
            self.views.append(view)
            self.arrays.append(x)
            return view
        if isinstance(x, np.ndarray):
            self.foreign.append(root_of(x))
        elif depth < DEEPEST and is_sequence(x):
            if depth > 1:
                # In sequences that contain each other there are 2**64 paths.
                if id(x) in self.entered:
                    return self.entered[id(x)][1]
                self.entered[id(x)] = x, x
            items = list(x)
            for i in range(len(items)):
                item = self.unwrap(items[i], depth + 1)
                changed |= item is not items[i]
                items[i] = item
            if changed:
                items = tuple(items) if isinstance(x, tuple) else items
                if depth > 1:
                    self.entered[id(x)] = x, items
                return items
        elif kind is dict and depth < DEEPEST:
            found = {}
            for key, value in x.items():
                # The arrays in a tuple of outputs stay arrays.
                item = self.unwrap(value, depth if key == "out" else depth + 1)
                changed |= item is not value
                found[key] = item
            # One in a sequence may be an object that an array is to hold.
            return found if changed or depth == 0 else x
        return x

    cdef object wrap(self, object result, int depth):
        """Return a result of NumPy with NDArrays in place of its arrays."""
        cdef Py_ssize_t i
        cdef bint changed = False
        kind = type(result)
        if kind is np.ndarray:
            for each in self.outs:
                if each is result:
                    return result
            for i in range(len(self.views)):
                if self.views[i] is result:
                    return self.arrays[i]
            if self.is_output(result):
                return result
            if not self.any_array and placing_device() \
                    and code_or_none(result.dtype) >= 0:
                return device_engine().upload(result, placing_device())
            return own_or_keep(result, self.views, self.foreign, True)
        if isinstance(result, np.generic):
            if not self.any_array or code_or_none(result.dtype) < 0:
                return result
            return as_operand(result)
        if kind is not tuple and kind is not list and not (
                issubclass(kind, tuple) and hasattr(kind, "_fields")):
            return result
        # What a caller's function has returned may contain itself.
        if depth == 0:
            self.entered = {}
        elif depth == DEEPEST:
            return result
        elif id(result) in self.entered:
            return self.entered[id(result)][1]
        self.entered[id(result)] = result, result
        items = [self.wrap(item, depth + 1) for item in result]
        for i, item in enumerate(result):
            changed |= items[i] is not item
        if not changed:
            # The sequence may be the caller's own, and is no copy.
            return result
        if kind is not list:
            items = tuple(items) if kind is tuple else kind(*items)
        self.entered[id(result)] = result, items
        return items

    cdef bint is_output(self, object result) except -1:
        """Whether an array of NumPy's was given by position as the output."""
        cdef Py_ssize_t i
        # No function has it first, where many return what they are given.
        for i in range(1, len(self.args)):
            if self.args[i] is result:
                return place_of_output(self.function) == i
        return False


cdef bint is_sequence(object x) except -1:
    """Whether an argument may be a sequence of arrays."""
    if isinstance(x, (list, tuple)):
        return True
    return isinstance(x, Sequence) and not isinstance(x, NUMBERS_OR_TEXT)


cdef Py_ssize_t place_of_output(object function) except -2:
    """Return the position of the parameter `out` of a function; -1: it has none."""
    try:
        names = list(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        return -1
    return names.index("out") if "out" in names else -1


cdef bint loaded = False


cdef int load_modules() except -1:
    """Load the modules that NumPy's functions load, and that keep arrays.

    These would be in memory of ndx, for good, if a function loaded them.
    """
    global loaded, exact, MANY
    import_module("numpy.ma")
    found = import_module("ndx._methods.exact")
    exact, MANY = found.EXACT, found.MANY
    # Set last: other threads call NumPy's functions while the modules are imported.
    loaded = True
    return 0


cdef object callback(Call call, object x):
    """Return a function, or each of a list of functions and values, for NumPy."""
    if isinstance(x, (list, tuple)):
        return [callback(call, item) for item in x]
    if callable(x) and not isinstance(x, type):
        return functools.partial(call_back, call, x)
    return x


def call_back(Call call not None, object function, /, *args, **kwargs):
    """Call a caller's function for NumPy, with NDArrays in place of its arrays."""
    return function(*call.wrap(args, 0), **kwargs)


# So many are sorted by indices of 8 bytes; NumPy does not check that these fit.
cdef object MOST_KEYS = 1 << 58

# NumPy visits each element, also of an array that repeats a few: for years, of more.
cdef object MOST_VISITED = 1 << 48
cdef frozenset VISITING = frozenset((
    np.argwhere, np.average, np.count_nonzero, np.median, np.nanmax, np.nanmean,
    np.nanmedian, np.nanmin, np.nanprod, np.nanstd, np.nansum, np.nanvar, np.ptp,
    *[getattr(np.ndarray, name) for name in (
        "all", "any", "argmax", "argmin", "max", "mean", "min", "prod", "std", "sum",
        "var")],
))

# Functions that read beyond an output without axes, as `accumulate` of all ufuncs does.
cdef frozenset RUNNING = frozenset((
    np.cumsum, np.cumprod,
    np.ndarray.cumsum, np.ndarray.cumprod, np.nancumsum, np.nancumprod,
    np.cumulative_sum, np.cumulative_prod,
))


cdef bint any_array(object values) except -1:
    for value in values:
        if is_array(value):
            return True
    return False


cdef bint any_subclass(tuple values, Py_ssize_t first) except -1:
    """Whether one of the values from `first` on is of a subclass of NumPy's array."""
    cdef Py_ssize_t i
    for i in range(first, len(values)):
        value = values[i]
        if not is_array(value) and is_subclass(value):
            return True
    return False


cdef int check_running_output(object function, object out) except -1:
    """Raise for an output on which NumPy (2.5 and before) crashes."""
    if out is not None and getattr(out, "ndim", 1) == 0:
        raise ValueError(
            f"{name_of(function)}: out has no axes, but the result has; give an array "
            "of the result's shape")
    return 0


cdef int check_sizes(list arrays, object function) except -1:
    """Raise for arrays that repeat a few elements so often that NumPy would not end."""
    for x in arrays:
        if function is np.lexsort:
            if x.size >= MOST_KEYS:
                raise ValueError(
                    f"lexsort: {x.size} keys are more than can be in memory")
        elif x.size > MOST_VISITED:
            raise ValueError(
                f"{name_of(function)}: NumPy would visit each of the {x.size} elements "
                f"of an array that repeats a few, which takes years; it is done for at "
                f"most {MOST_VISITED}. Compute it from the elements that are repeated")
    return 0


cdef object exact_of(object function, tuple args, dict kwargs):
    """Return the function that computes one of NumPy's: itself, or an exact one."""
    cdef int dtype
    found = exact.get(function)
    if found is None:
        return function
    if function in RANGES and "dtype" not in kwargs \
            and len(args) <= <int>RANGES[function]:
        return function
    if not args or not is_array(args[0]):
        return found
    dtype = (<BaseArray>args[0]).dtype
    if function in SEARCHES and len(args) > 1 and type(args[1]) not in (list, tuple) \
            and not are_mixed(dtype, dtype_of(args[1])):
        return function
    if function in OF_INTEGERS and not is_integer(dtype):
        return function
    if function in SUMS and (dtype != FLOAT32 and dtype != COMPLEX64
                             or (<BaseArray>args[0]).size < MANY):
        return function
    return found


cdef bint are_mixed(int dtype, int other) noexcept:
    """Whether two dtypes are integers that NumPy compares as floats; -1: no dtype."""
    return is_integer(dtype) and is_integer(other) \
        and promote_table[dtype][other] == FLOAT64


cdef object call_function(object function, tuple args, dict kwargs):
    """Return the result of NumPy's function for arguments with NDArrays.

    Objects that stand for an array are asked for it once NumPy has refused what they
    gave: the arrays of most are NumPy's, and some read a file for them.
    """
    try:
        return call_with(Call(), function, args, kwargs)
    except ValueError as error:
        if not is_refused_array(error):
            raise
    cdef Call call = Call()
    call.asks = True
    return call_with(call, function, args, kwargs)


cdef object call_with(Call call, object function, tuple args, dict kwargs):
    """Return the result of NumPy's function for the arguments of a call."""
    if not loaded:
        load_modules()
    if getattr(function, "__name__", None) == "shuffle" and not any_array(args) \
            and not any_array(kwargs.values()):
        # The caller's own sequence is shuffled, not a copy.
        return call_numpy(function, args, kwargs)
    args, kwargs = checked_arguments(function, args, kwargs)
    call.keeps = stores_objects(function, args, kwargs)
    taken = call.unwrap(args, 0)
    named = call.unwrap(kwargs, 0)
    if function in CALLING_BACK:
        place, name = CALLING_BACK[function]
        if place < len(args):
            taken = (*taken[:place], callback(call, taken[place]), *taken[place + 1:])
        elif name in kwargs:
            named[name] = callback(call, named[name])
    if function is np.piecewise:
        # A condition without axes is a number to NumPy, where operators return numbers.
        condition = taken[1] if len(args) > 1 else None
        if isinstance(condition, np.ndarray) and condition.ndim == 0:
            taken = (taken[0], condition[()], *taken[2:])
    if "initial" in kwargs:
        # A scalar must fit the dtype of the result; an array would be cast.
        initial = number_of(kwargs["initial"])
        named["initial"] = named["initial"] if initial is None else initial
    out = kwargs.get("out")
    call.outs = out if type(out) is tuple else (out,)
    call.function = function
    call.args = args
    if function is np.lexsort or function in VISITING:
        check_sizes(call.arrays, function)
    if call.on_device:
        return device_engine().numpy_function(name_of(function), args, kwargs)
    if out is not None and (
            function in RUNNING or getattr(function, "__name__", "") == "accumulate"):
        check_running_output(function, call.outs[0] if call.outs else None)
    return call.wrap(call_numpy(exact_of(function, args, kwargs), taken, named), 0)


cdef str name_of(object function):
    """Return the name of a function of NumPy after ``numpy.``."""
    owner = getattr(function, "__objclass__", None) or getattr(
        function, "__self__", None)
    name = getattr(function, "__name__", str(function))
    if isinstance(owner, type) or isinstance(owner, np.ufunc):
        return f"{owner.__name__}.{name}"
    module = getattr(function, "__module__", None) or "numpy"
    return f"{module}.{name}".removeprefix("numpy.")


cdef object dispatch_function(object function, object types, tuple args, dict kwargs):
    """Implement ``NDArray.__array_function__``."""
    for kind in types:
        if not issubclass(kind, BaseArray) and not issubclass(kind, np.ndarray) and \
                getattr(kind, "__array_function__", None) is not \
                np.ndarray.__array_function__:
            # Another library's array, which may know how to compute with an NDArray.
            # A subclass of NumPy's is asked again, with views of NDArrays.
            return NotImplemented
    if function is np.empty_like:
        _refuse_fields(*args, **kwargs)
    return as_array_of(args, compute_function(function, args, kwargs))


cdef object as_array_of(tuple args, object result):
    """Return a result for a library that computes with arrays of any kind.

    Of arrays it expects arrays: a number of ours would be a scalar for it, of no kind.
    """
    if is_array(result) and holds_number(<BaseArray>result):
        for item in args:
            if is_array(item) and holds_number(<BaseArray>item):
                return result
        return copy(<BaseArray>result)
    return result


cdef object compute_function(object function, tuple args, dict kwargs):
    """Return the result of a function: by ndx's own where it is the same."""
    if args and is_array(args[0]):
        known = methods.get(function)
        # A subclass computes: as an operand, a bound or a mask.
        if known is not None and len(args) <= <int>(<tuple>known)[1] and (
                not kwargs or (<tuple>known)[2].isdisjoint(kwargs)) \
                and not any_subclass(args, 1) \
                and not (kwargs and any_subclass(tuple(kwargs.values()), 0)):
            return (<tuple>known)[0](*args, **kwargs)
    result = shortcut(function, args, kwargs)
    if result is not NotImplemented:
        return result
    return call_function(function, args, kwargs)


# Functions that a method computes, and how many parameters mean the same by position.
cdef dict SAME = {
    "all": 64, "any": 64, "argmax": 64, "argmin": 64, "argsort": 4, "clip": 4,
    "cumprod": 64, "cumsum": 64, "max": 64, "mean": 64, "min": 64, "nonzero": 1,
    "prod": 64, "ravel": 1, "repeat": 3, "reshape": 2, "round": 2, "searchsorted": 4,
    "std": 64, "sum": 64, "swapaxes": 3,
    "take": 5, "transpose": 2, "var": 64, "amax": 64, "amin": 64,
}
cdef dict RENAMED = {"amax": "max", "amin": "min"}
# Keywords that the methods have by another name, or not at all.
cdef dict OTHER_KEYWORDS = {
    "clip": ["a_max", "a_min"], "reshape": ["shape"], "std": ["correction"],
    "transpose": ["axes"], "var": ["correction"],
}


def _refuse_fields(prototype, dtype=None, *args, **kwargs):
    """Refuse a structured dtype for `numpy.empty_like`, as CuPy does.

    Libraries such as dask ask in this way whether they can store records in arrays of
    this kind. They have another way, which keeps the kind, if they can't.
    """
    if dtype is not None and np.dtype(dtype).names is not None:
        raise TypeError(
            f"an NDArray has no fields, and dtype {np.dtype(dtype)} has; "
            f"np.empty(x.shape, dtype) makes an array of NumPy")


cdef object ndx_where = None


def _where(condition, *operands):
    """Compute `numpy.where`: by ndx's function for arrays, whose dtypes it promotes."""
    if not operands and is_array(condition):
        return condition.nonzero()
    if len(operands) == 2 and is_array(operands[0]) and is_array(operands[1]):
        return ndx_where(condition, *operands)
    return call_function(np.where, (condition, *operands), {})


def register_methods(kind, where):
    """Let methods of a class compute those of NumPy's functions that do the same.

    `where` is ndx's function.
    """
    global ndx_where
    ndx_where = where
    methods[np.where] = _where, 3, frozenset()
    for name, most in SAME.items():
        other = frozenset(OTHER_KEYWORDS.get(name, ()))
        methods[getattr(np, name)] = getattr(kind, RENAMED.get(name, name)), most, other


cdef object call_method(str name, tuple args, dict kwargs):
    """Return the result of NumPy's method of that name for the first argument.

    Keywords that are `np._NoValue`, or ``...`` as in signatures, are left out.
    """
    given = {key: value for key, value in kwargs.items()
             if value is not np._NoValue and value is not ...}
    function = getattr(np.ndarray, name)
    if not holds_number(<BaseArray>args[0]):
        return call_function(function, args, given)
    # The method of an array.
    result = call_function(function, (same_view(<BaseArray>args[0]), *args[1:]), given)
    return result if given.get("out") is not None or result is args[len(args) - 1] \
        else like_operand(<BaseArray>args[0], result)


cdef object like_operand(BaseArray x, object result):
    """Return a result as a number if the operand is one, else unchanged."""
    if not holds_number(x) or getattr(result, "ndim", 1) != 0:
        return result
    # As NumPy's scalars: an element, also of a dtype that no NDArray has.
    return as_number(<BaseArray>result) if is_array(result) else result[()]

"""Calls of NumPy's functions with NDArrays: the one mechanism of NumPy's face.

The arrays among the arguments, also in lists, tuples and dicts, are replaced by NumPy
views, which pin their memory. NumPy's function then runs with its new arrays in memory
of ndx. In its results, NumPy's arrays are replaced:

- A view of an operand becomes a view of that NDArray, which goes stale with it.
- `out=` and other operands that are returned are the NDArrays that were given.
- New arrays are adopted without a copy or, in a workspace, moved to its arena. Where
  new arrays are on a device and no operand is an NDArray, they are copied to it.
- NumPy's scalars become arrays without axes, if one of the operands was an NDArray.
- Arrays of dtypes that an NDArray can't have (strings, dates, objects,
  structured ones), and of subclasses such as ``np.ma.MaskedArray``, stay NumPy's.

References
----------
NEP 18, a dispatch mechanism for array functions:
https://numpy.org/neps/nep-0018-array-function-protocol.html
"""

cimport cython
cimport numpy as cnp
from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF
from cpython.sequence cimport PySequence_Check
from cpython.tuple cimport PyTuple_New, PyTuple_SET_ITEM

import array
import functools
import inspect
from collections.abc import Sequence
from importlib import import_module

import numpy as np

from ndx._array.dispatch cimport engine_for, engine_of
from ndx._array.storage cimport (
    BaseArray, as_number, holds_number, is_array, numpy_view, same_view,
)
from ndx._compute.copies cimport copy
from ndx._compute.elementwise cimport as_operand
from ndx._compute.numpy_results cimport call_numpy, own_or_keep, root_of, run_numpy
from ndx._context.context cimport placing_device
from ndx._lib.dtypes cimport (
    COMPLEX64, DEEPEST, FLOAT32, FLOAT64, code_or_none, is_refused_array, promote_table,
)
from ndx._lib.free_threading cimport ndx_get_flag, ndx_set_flag
from ndx._methods.numpy_function_table cimport (
    CALLING_BACK, SMALL, UNKNOWN, Compute, Row, compute_of, row_of,
)
from ndx._methods.values cimport (
    checked_arguments, dtype_of, is_integer, made_by, number_of, numpy_scalar,
    stores_objects,
)

from ndx._lib.device import device_of
from ndx._lib.numpy_private import NO_VALUE


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

# Sequences of other items than arrays.
cdef tuple NUMBERS_OR_TEXT = (array.array, bytearray, bytes, memoryview, range, str)

cdef enum:
    SPREAD = 1 << 20             # elements: larger products are not told apart


cdef bint is_leaf(object x) noexcept:
    """Whether an argument is plainly neither an array nor has one."""
    kind = type(x)
    return kind is float or kind is int or kind is str or kind is bool or x is None \
        or kind is slice or kind is complex or kind is type


@cython.final
@cython.freelist(8)
cdef class Call:
    """The operands of one call, and the exchange of arrays for NumPy's views."""

    def __cinit__(self, Row row not None):
        self.row = row
        self.product = self.spread = 1

    cdef tuple unwrap_all(self, tuple args):
        """Return arguments with NumPy's views in place of NDArrays."""
        cdef Py_ssize_t i
        cdef tuple taken = PyTuple_New(len(args))
        for i in range(len(args)):
            item = args[i]
            if i or self.row.owner is None or not isinstance(item, self.row.owner):
                if type(item) is tuple:
                    self.forget_parameters()
                item = self.unwrap(item, 1)
            Py_INCREF(item)
            PyTuple_SET_ITEM(taken, i, item)
        return taken

    cdef int scale(self, object x) except -1:
        """Take note of a value, by which a result may be larger than an operand.

        Texts may name a way to find a number of bins, and arrays may have sizes as
        elements.
        """
        cdef double size
        if not self.row.scaled:
            return 0
        if isinstance(x, cnp.generic):
            x = x.item()
        kind = type(x)
        if kind is int or kind is float:
            if kind is float and self.row.draws:
                return 0
            size = abs(<double>x) if -SMALL < x < SMALL else SMALL
            if size > 1:
                self.product = min(self.product * <Py_ssize_t>size, SMALL)
            return 0
        elif not isinstance(x, cnp.ndarray) and (
                kind is not str or self.row.function is not np.histogram):
            return 0
        self.product = SMALL
        return 0

    cdef void forget_parameters(self) noexcept:
        """Take a size that follows as the product: other integers are parameters."""
        if self.row.draws and self.row.silent:
            self.product = 1

    cdef bint is_small(self) noexcept:
        """Whether the memory that NumPy needs for its own arrays is small."""
        if self.is_odd or self.elements > SMALL or self.spread > 4 * SMALL and (
                self.is_wide and self.many or self.row.spreads):
            return False
        if self.row.draws:
            # As many numbers as a size says, or as there are of parameters or choices.
            return self.product < SMALL \
                and self.product * max(self.elements, 1) <= 4 * SMALL
        # A number may be the length of both axes.
        return self.row.bounded or self.row.scaled and \
            self.product * self.product * max(self.elements, 1) <= 16 * SMALL

    cdef void count(self, Py_ssize_t size) noexcept:
        """Take note of the elements of an operand."""
        self.elements += size
        self.spread *= min(max(size, 1), SPREAD)
        self.spread = min(self.spread, SPREAD)

    cdef object unwrap(self, object x, int depth):
        """Return `x` with NumPy's views in place of NDArrays; itself without any.

        Numbers become NumPy's scalars, by whose classes NumPy asks. So do arrays
        without axes in sequences: NumPy checks scalars, where it casts an array, and as
        elements of NumPy's they must fit a dtype. No tree of `_lib.trees`: what NumPy
        reads as a sequence counts, and each call of NumPy's functions comes this way.
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
                x = numpy_scalar(<BaseArray>x)
                self.scale(x)
                return x
            if self.keeps and depth > 1:
                return x
            view = numpy_view(<BaseArray>x)
            if self.asks:
                if self.made is None:
                    self.made = []
                self.made.append((view, x))
            self.is_wide |= (<BaseArray>x).ndim > 1
            self.count((<BaseArray>x).size)
            self.largest = max(self.largest, (<BaseArray>x).size)
            if (<BaseArray>x).ndim == 0 or is_integer((<BaseArray>x).dtype):
                self.scale(view)
            self.many = self.any_view
            self.any_view = True
            return view
        if is_leaf(x):
            self.scale(x)
            return x
        if isinstance(x, cnp.ndarray):
            self.is_wide = self.many = True
            if kind is not cnp.ndarray:
                # Its attributes may be of its own.
                self.is_odd = True
            else:
                self.count(x.size)
                if x.ndim == 0 or x.dtype.kind in "iu":
                    self.scale(x)
            if self.foreign is None:
                self.foreign = []
            self.foreign.append(root_of(x))
        elif depth < DEEPEST and is_sequence(x):
            if depth > 1:
                # In sequences that contain each other there are 2**64 paths.
                if self.entered is None:
                    self.entered = {}
                if id(x) in self.entered:
                    return self.entered[id(x)][1]
                self.entered[id(x)] = x, x
            items = list(x)
            self.count(len(items))
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
        elif isinstance(x, cnp.generic):
            self.scale(x)
        elif not isinstance(x, cnp.dtype):
            self.is_odd = True
        return x

    cdef object wrap(self, object result, int depth):
        """Return a result of NumPy with NDArrays in place of its arrays."""
        cdef Py_ssize_t i
        cdef bint changed = False
        kind = type(result)
        if kind is cnp.ndarray:
            operand = self.operand_of(result)
            if operand is not None:
                return operand
            if not self.any_array and placing_device() \
                    and code_or_none(result.dtype) >= 0:
                device = placing_device()
                return engine_of(device).upload(result, device_of(device))
            return own_or_keep(result, (self.taken, self.named) if self.any_view
                               else None, self.foreign, self.shares)
        if isinstance(result, cnp.generic):
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

    cdef object operand_of(self, object result):
        """Return the operand that NumPy's function has returned; None: another array.

        An array of NumPy's that was given by position is one if it is the output: many
        functions return what they are given, and it is to become ours.
        """
        cdef Py_ssize_t i
        for view, array in self.made or ():
            if view is result:
                return array
        for i in range(0 if self.taken is None else len(self.taken)):
            if self.taken[i] is result and (
                    is_array(self.args[i])
                    or i and place_of_output(self.row) == i):
                return self.args[i]
        if self.named is None:
            return None
        for name, value in self.named.items():
            given = self.kwargs[name]
            if value is result and (name == "out" or is_array(given)):
                return given
            if name == "out" and type(value) is tuple:
                for i in range(len(<tuple>value)):
                    if (<tuple>value)[i] is result:
                        return given[i]
        return None


cdef bint is_sequence(object x) except -1:
    """Whether an argument may be a sequence of arrays."""
    if isinstance(x, (list, tuple)):
        return True
    # A class of sequences has `__getitem__`.
    return PySequence_Check(x) and isinstance(x, Sequence) \
        and not isinstance(x, NUMBERS_OR_TEXT)


cdef Py_ssize_t place_of_output(Row row) except -2:
    """Return the position of the parameter `out` of a function; -1: it has none."""
    if row.output == UNKNOWN:
        names = row.names
        if names is None or "out" not in names:
            try:
                names = tuple(inspect.signature(row.function).parameters)
            except (TypeError, ValueError):
                # Functions in C have signatures since NumPy 2.4.
                names = ()
        row.output = names.index("out") if "out" in names else -1
    return row.output


cdef bint loaded = False
# Modules that are loaded before the first call: those that set rows.
cdef list first = []


def load_first(name):
    """Let a module be loaded before the first call of a function of NumPy."""
    first.append(name)


cdef int load_modules() except -1:
    """Load the modules that set rows, and those that NumPy's functions load.

    The latter keep arrays. These would be in memory of ndx, for good, if a function
    loaded them.
    """
    global exact, MANY
    import_module("numpy.ma")
    found = import_module("ndx._methods.exact")
    replacements, many = found.EXACT, found.MANY
    for name in first:
        import_module(name)
    with cython.critical_section(first):
        if not ndx_get_flag(&loaded):
            exact, MANY = replacements, many
            for function in exact:
                row_of(function).exact = True
            # Last: other threads call NumPy's functions meanwhile.
            ndx_set_flag(&loaded, True)
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
cdef Py_ssize_t MOST_KEYS = 1 << 58

# NumPy visits each element, also of an array that repeats a few: for years, of more.
cdef Py_ssize_t MOST_VISITED = 1 << 48

cdef bint any_array(object values) except -1:
    for value in values:
        if is_array(value):
            return True
    return False


cdef object output_of(Row row, tuple args, dict kwargs):
    """Return the output that a function is given, or None."""
    cdef Py_ssize_t place
    if "out" in kwargs:
        return kwargs["out"]
    place = place_of_output(row) if len(args) > 2 else -1
    return args[place] if 0 <= place < len(args) else None


cdef int check_output(Row row, object out) except -1:
    """Raise for an output on which NumPy (2.5 and before) crashes."""
    if row.draws:
        if out is not None and not is_array(out) and not isinstance(out, cnp.ndarray):
            raise TypeError(
                f"{row.function.__qualname__}: out must be an array, not "
                f"{type(out).__name__}")
        return 0
    if type(out) is tuple:
        out = out[0] if out else None
    if out is not None and getattr(out, "ndim", 1) == 0:
        raise ValueError(
            f"{name_of(row.function)}: out has no axes, but the result has; give an "
            "array of the result's shape")
    return 0


cdef int check_size(Py_ssize_t size, object function) except -1:
    """Raise for an array that repeats a few elements so often that NumPy would not end.
    """
    if function is np.lexsort:
        if size >= MOST_KEYS:
            raise ValueError(f"lexsort: {size} keys are more than can be in memory")
    elif size > MOST_VISITED:
        raise ValueError(
            f"{name_of(function)}: NumPy would visit each of the {size} elements of an "
            f"array that repeats a few, which takes years; it is done for at most "
            f"{MOST_VISITED}. Compute it from the elements that are repeated")
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
    """Return the result of NumPy's function for arguments with NDArrays."""
    if not ndx_get_flag(&loaded):
        load_modules()
    return call_row(row_of(function), args, kwargs)


cdef object call_row(Row row, tuple args, dict kwargs):
    """Return the result of NumPy's function of a row for arguments with NDArrays.

    Objects that stand for an array are asked for it once NumPy has refused what they
    gave: the arrays of most are NumPy's, and some read a file for them.
    """
    try:
        return call_once(row, False, args, kwargs)
    except ValueError as error:
        if not is_refused_array(error):
            raise
    return call_once(row, True, args, kwargs)


cdef object call_once(Row row, bint asks, tuple args, dict kwargs):
    """Return the result of NumPy's function; `asks`: of objects, for their arrays."""
    cdef Call call = Call(row)
    cdef bint small
    call.asks = asks
    if row.shuffles and not any_array(args) and not any_array(kwargs.values()):
        # The caller's own sequence is shuffled, not a copy.
        return call_numpy(row.function, args, kwargs)
    if row.stores:
        args, kwargs = checked_arguments(row.function, args, kwargs)
        call.keeps = stores_objects(row.function, args, kwargs)
    call.args = args
    call.taken = call.unwrap_all(args)
    if kwargs:
        call.kwargs = kwargs
        if "size" in kwargs:
            call.forget_parameters()
        call.named = call.unwrap(kwargs, 0)
        if "initial" in kwargs:
            # A scalar must fit the dtype of the result; an array would be cast.
            initial = number_of(kwargs["initial"])
            if initial is not None:
                call.named["initial"] = initial
    if row.repeats:
        check_size(call.largest, row.function)
    if call.on_device:
        name = name_of(row.function)
        return engine_for(name, (args, kwargs)).numpy_function(name, args, kwargs)
    if row.runs or row.draws:
        check_output(row, output_of(row, args, kwargs))
    function = exact_of(row.function, args, kwargs) if row.exact else row.function
    small = call.is_small()
    if not call.is_odd and function is row.function:
        # All arrays are of NumPy's own class: none computes itself.
        function = row.without_dispatch
    # What NumPy has allocated by itself is new, and is copied.
    call.shares = not small
    if row.calls_back:
        take_callbacks(call)
    try:
        return call.wrap(run_numpy(
            function, call.taken, call.named, not small,
            not row.silent or call.named is not None and not row.draws,
            row.is_linalg), 0)
    finally:
        if row.calls_back:
            # The functions for NumPy refer to the call: the collector would free it.
            call.taken = call.named = None


cdef int take_callbacks(Call call) except -1:
    """Let NumPy call functions of the caller's with NDArrays."""
    cdef list taken = list(call.taken)
    place, name = CALLING_BACK[call.row.function]
    if place < len(taken):
        taken[place] = callback(call, taken[place])
    elif call.named is not None and name in call.named:
        call.named[name] = callback(call, call.named[name])
    if call.row.function is np.piecewise and len(taken) > 1:
        # A condition without axes is a number to NumPy, where operators return numbers.
        condition = taken[1]
        if isinstance(condition, cnp.ndarray) and condition.ndim == 0:
            taken[1] = condition[()]
    call.taken = tuple(taken)
    return 0


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
    cdef Row row
    if not ndx_get_flag(&loaded):
        load_modules()
    row = row_of(function)
    result = row.compute_tuple(args, kwargs)
    return call_row(row, args, kwargs) if result is NotImplemented else result


cdef object compute_call(Row row, PyObject **args, Py_ssize_t count, object names):
    """Like `compute_function`, for a vector of arguments, then keywords."""
    cdef dict kwargs
    cdef tuple positional
    cdef Py_ssize_t i
    if not ndx_get_flag(&loaded):
        load_modules()
    if row.whole is None:
        result = row.compute_call(args, count, names)
        if result is not NotImplemented:
            return result
    positional = tuple([<object>args[i] for i in range(count)])
    kwargs = {}
    if names is not None:
        for i in range(len(<tuple>names)):
            kwargs[(<tuple>names)[i]] = <object>args[count + i]
    if row.whole is not None:
        result = row.whole(positional, kwargs)
        if result is not NotImplemented:
            return result
    return call_row(row, positional, kwargs)


def _refuse_fields(prototype, dtype=None, *args, **kwargs):
    """Refuse a structured dtype for `numpy.empty_like`, as CuPy does.

    Libraries such as dask ask in this way whether they can store records in arrays of
    this kind. They have another way, which keeps the kind, if they can't.
    """
    if dtype is not None and np.dtype(dtype).names is not None:
        raise TypeError(
            f"an NDArray has no fields, and dtype {np.dtype(dtype)} has; "
            f"np.empty(x.shape, dtype) makes an array of NumPy")


cdef object compute_method(Row row, PyObject **given, dict kwargs):
    """Return the result of a method: by what computes its row, or by NumPy's.

    `given` are the array and arguments by parameter (NULL: a default), `kwargs` others.
    """
    cdef list args
    cdef dict named
    cdef Py_ssize_t i
    cdef Compute compute = compute_of(row)
    if compute != NULL and not kwargs:
        result = compute(row, given)
        if result is not NotImplemented:
            return result
    args, named = [], dict(kwargs or ())
    for i in range(len(row.names)):
        if given[i] == NULL:
            continue
        if i == len(args) and i < row.positional:
            args.append(<object>given[i])
        else:
            named[row.names[i]] = <object>given[i]
    return call_row_of_method(row, tuple(args), named)


cdef object call_method(str name, tuple args, dict kwargs):
    """Return the result of NumPy's method of that name for the first argument."""
    return call_row_of_method(row_of(getattr(np.ndarray, name)), args, kwargs)


cdef object call_row_of_method(Row row, tuple args, dict kwargs):
    """Return the result of NumPy's method of a row for the first argument.

    Keywords that are `NO_VALUE`, as in NumPy's signatures, are left out.
    """
    if not ndx_get_flag(&loaded):
        load_modules()
    given = {key: value for key, value in kwargs.items() if value is not NO_VALUE}
    if not holds_number(<BaseArray>args[0]):
        return call_row(row, args, given)
    # The method of an array.
    result = call_row(row, (same_view(<BaseArray>args[0]), *args[1:]), given)
    return result if given.get("out") is not None or result is args[len(args) - 1] \
        else like_operand(<BaseArray>args[0], result)


cdef object like_operand(BaseArray x, object result):
    """Return a result as a number if the operand is one, else unchanged."""
    if not holds_number(x) or getattr(result, "ndim", 1) != 0:
        return result
    # As NumPy's scalars: an element, also of a dtype that no NDArray has.
    return as_number(<BaseArray>result) if is_array(result) else result[()]

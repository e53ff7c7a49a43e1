"""Methods of NumPy's arrays: the rows of the table that methods and functions share.

A function here has the method's parameters, by place, of which the first is an array;
NULL stands for a default. `x.sum(axis=0)` calls it, and so does `np.sum(x, axis=0)`,
whose parameters are the same. It returns NotImplemented for what it does not know.
"""

from cpython.object cimport PyObject

import numpy as np

from ndx._array.storage cimport BaseArray, as_number, is_array, same_view
from ndx._compute.elementwise cimport clip_between
from ndx._compute.manipulation cimport check_repeats
from ndx._compute.reductions cimport reduce_where
from ndx._compute.sorting cimport sort_in_place
from ndx._lib.dtypes cimport (
    BOOL, KIND_COMPLEX, KIND_FLOAT, dtype_object, has_arithmetic, kind_of,
)
from ndx._methods.files cimport write_elements, write_pickle
from ndx._methods.indexing cimport set_item
from ndx._methods.numpy_attributes cimport set_writeable
from ndx._methods.numpy_dispatch cimport call_method, like_operand
from ndx._methods.numpy_function_table cimport (
    Compute, Row, add_function, add_method, row_of,
)
from ndx._methods.numpy_layout cimport (
    axes_of, bytes_of, change_in_place, flat_view, has_axes, is_array_class, is_axis,
    is_contiguous, is_matrix, ones_of, ordered_copy, pickle_of, plain_cast,
    plain_product, plain_round, readonly_diagonal, repeats_plainly, resize,
    reverse_axes, searched, searches_plainly, sorts_plainly, stays_plain, swap_axes,
    takes_along, view_of_class,
)

# NumPy's kinds of sorting; ndx's own is stable.
cdef tuple KINDS = ("stable", "quicksort", "mergesort", "heapsort")
# Functions of NumPy that have another name than the method.
cdef dict ALIASES = {"max": "amax", "min": "amin", "round": "around"}


# ---- arguments -----------------------------------------------------------------------

cdef object value_of(PyObject *given):
    """Return an argument, by default None."""
    return None if given == NULL else <object>given


cdef bint is_none(PyObject *given) noexcept:
    return given == NULL or <object>given is None


cdef bint is_true(PyObject *given) noexcept:
    return given == NULL or <object>given is True


cdef bint is_flag(PyObject *given) noexcept:
    return given == NULL or type(<object>given) is bool


cdef bint flag_of(PyObject *given) noexcept:
    """Return a flag, by default False."""
    return given != NULL and <object>given is True


cdef bint is_text(PyObject *given, str text) except -1:
    """Whether an argument is a text, which is its default."""
    return given == NULL or type(<object>given) is str and <object>given == text


cdef bint are_default(PyObject **given, int start, int stop) noexcept:
    """Whether none of some arguments is given."""
    cdef int i
    for i in range(start, stop):
        if given[i] != NULL:
            return False
    return True


# ---- reductions ----------------------------------------------------------------------

cdef object reduce(Row row, PyObject **given, PyObject *keepdims, dict options=None):
    """Reduce along the axes of the second argument, by `row.data` with options."""
    if options is None and given[1] == NULL and keepdims == NULL:
        return as_number(row.data(<object>given[0]))
    if not has_axes(<BaseArray>given[0], value_of(given[1])) or not is_flag(keepdims):
        return NotImplemented
    if options is None:
        return as_number(row.data(<object>given[0], axis=value_of(given[1]),
                                  keepdims=flag_of(keepdims)))
    return as_number(row.data(<object>given[0], axis=value_of(given[1]),
                              keepdims=flag_of(keepdims), **options))


cdef object reduce_some(Row row, PyObject **given, PyObject *keepdims,
                        PyObject *initial, PyObject *where):
    """Reduce with an initial value, or where a mask holds."""
    cdef BaseArray x = <BaseArray>given[0], mask = None
    if x.block.device or not has_axes(x, value_of(given[1])) or not is_flag(keepdims) \
            or initial != NULL and type(<object>initial) not in (int, float):
        return NotImplemented
    if not is_true(where):
        if not is_array(<object>where) or (<BaseArray>where).block.device:
            return NotImplemented
        mask = <BaseArray>where
    found = reduce_where(row.data.__name__, x, value_of(given[1]), flag_of(keepdims),
                         value_of(initial), mask)
    return NotImplemented if found is None else as_number(found)


cdef object test(Row row, PyObject **given):
    """`all`, `any`: a, axis, out, keepdims, where"""
    if not is_none(given[2]):
        return NotImplemented
    if not is_true(given[4]):
        return reduce_some(row, given, given[3], NULL, given[4])
    return reduce(row, given, given[3])


cdef object find_extreme(Row row, PyObject **given):
    """`argmax`, `argmin`: a, axis, out, keepdims. Other axes NumPy refuses."""
    if not is_none(given[2]) or not is_none(given[1]) \
            and not isinstance(<object>given[1], int):
        return NotImplemented
    return reduce(row, given, given[3])


cdef object extreme(Row row, PyObject **given):
    """`max`, `min`: a, axis, out, keepdims, initial, where"""
    if kind_of[(<BaseArray>given[0]).dtype] == KIND_COMPLEX or not is_none(given[2]):
        return NotImplemented
    if given[4] != NULL or not is_true(given[5]):
        return reduce_some(row, given, given[3], given[4], given[5])
    return reduce(row, given, given[3])


cdef object mean(Row row, PyObject **given):
    """a, axis, dtype, out, keepdims, where"""
    if kind_of[(<BaseArray>given[0]).dtype] < KIND_FLOAT or not is_none(given[2]) \
            or not is_none(given[3]) or not is_true(given[5]) \
            or not has_arithmetic((<BaseArray>given[0]).dtype):
        return NotImplemented
    return reduce(row, given, given[4])


cdef object total(Row row, PyObject **given):
    """`sum`, `prod`: a, axis, dtype, out, keepdims, initial, where"""
    if not is_none(given[3]):
        return NotImplemented
    if given[5] != NULL or not is_true(given[6]):
        if not is_none(given[2]):
            return NotImplemented
        return reduce_some(row, given, given[4], given[5], given[6])
    if is_none(given[2]):
        if not has_arithmetic((<BaseArray>given[0]).dtype):
            return NotImplemented
        return reduce(row, given, given[4])
    if not stays_plain(<BaseArray>given[0], <object>given[2]):
        return NotImplemented
    return reduce(row, given, given[4], {"dtype": <object>given[2]})


cdef object spread(Row row, PyObject **given):
    """`std`, `var`: a, axis, dtype, out, ddof, keepdims, where, mean"""
    if kind_of[(<BaseArray>given[0]).dtype] != KIND_FLOAT or not is_none(given[2]) \
            or not is_none(given[3]) or not is_true(given[6]) or given[7] != NULL \
            or not has_arithmetic((<BaseArray>given[0]).dtype):
        return NotImplemented
    if given[4] == NULL:
        return reduce(row, given, given[5])
    if type(<object>given[4]) is not int or not 0 <= <object>given[4] <= 1:
        return NotImplemented
    return reduce(row, given, given[5], {"correction": <object>given[4]})


cdef object accumulate(Row row, PyObject **given):
    """`cumsum`, `cumprod`: a, axis, dtype, out"""
    cdef BaseArray x = <BaseArray>given[0]
    axis, dtype = value_of(given[1]), value_of(given[2])
    if x.ndim != 1 and not is_axis(x, axis) or not is_none(given[3]) \
            or not has_arithmetic(x.dtype) \
            or dtype is not None and not stays_plain(x, dtype):
        return NotImplemented
    return row.data(x, axis=axis, dtype=dtype)


cdef object peak_to_peak(Row row, PyObject **given):
    """`ptp`: a, axis, out, keepdims"""
    cdef object x = <object>given[0], axis = value_of(given[1])
    if (<BaseArray>x).dtype == BOOL or kind_of[(<BaseArray>x).dtype] == KIND_COMPLEX \
            or not has_axes(<BaseArray>x, axis) or not are_default(given, 2, 4):
        return NotImplemented
    return x.max(axis) - x.min(axis)


cdef object trace(Row row, PyObject **given):
    """a, offset, axis1, axis2, dtype, out"""
    if not is_matrix(<BaseArray>given[0]) or not are_default(given, 1, 6):
        return NotImplemented
    return row.data(readonly_diagonal(<BaseArray>given[0]))


# ---- views and copies ----------------------------------------------------------------

cdef object diagonal(Row row, PyObject **given):
    """a, offset, axis1, axis2"""
    if not is_matrix(<BaseArray>given[0]) or not are_default(given, 1, 4):
        return NotImplemented
    return readonly_diagonal(<BaseArray>given[0])


cdef object flatten(Row row, PyObject **given):
    """a, order"""
    if not is_text(given[1], "C"):
        return NotImplemented
    return row.data(<object>given[0], (-1,), copy=True)


cdef object ravel(Row row, PyObject **given):
    """a, order"""
    cdef BaseArray x = <BaseArray>given[0]
    if not is_text(given[1], "C"):
        return NotImplemented
    if is_contiguous(x):
        return flat_view(x)
    return row.data(x, (-1,), copy=None if x.c_contiguous else True)


cdef object repeat(Row row, PyObject **given):
    """a, repeats, axis"""
    cdef BaseArray x = <BaseArray>given[0]
    axis = value_of(given[2])
    if given[1] == NULL:
        return NotImplemented
    if not repeats_plainly(x, <object>given[1], axis):
        check_repeats(x, <object>given[1])
        return NotImplemented
    return row.data(x, <object>given[1], axis=axis)


cdef object reshape(Row row, PyObject **given):
    """a, shape, order, copy"""
    if given[1] == NULL or not is_text(given[2], "C") \
            or not is_none(given[3]) and not is_flag(given[3]):
        return NotImplemented
    return row.data(<object>given[0], <object>given[1], copy=value_of(given[3]))


cdef object squeeze(Row row, PyObject **given):
    """a, axis"""
    cdef BaseArray x = <BaseArray>given[0]
    axis = value_of(given[1])
    if not has_axes(x, axis):
        return NotImplemented
    return row.data(x, ones_of(x) if axis is None else axis)


cdef object swapaxes(Row row, PyObject **given):
    """a, axis1, axis2"""
    cdef BaseArray x = <BaseArray>given[0]
    if given[1] == NULL or given[2] == NULL or not is_axis(x, <object>given[1]) \
            or not is_axis(x, <object>given[2]):
        return NotImplemented
    return swap_axes(x, <object>given[1], <object>given[2])


cdef object transpose(Row row, PyObject **given):
    """a, axes"""
    if is_none(given[1]):
        return reverse_axes(<BaseArray>given[0])
    return row.data(<object>given[0], axes_of((<object>given[1],)))


cdef object resize_in_place(Row row, PyObject **given):
    """`resize`: a, new_shape, refcheck. It counts the references to the array."""
    if is_none(given[1]):
        return None
    zeros = row.data(axes_of((<object>given[1],)),
                     dtype=dtype_object((<BaseArray>given[0]).dtype))
    resize(<BaseArray>given[0], zeros)
    return None


cdef object view(Row row, PyObject **given):
    """a, dtype, type"""
    dtype, kind = value_of(given[1]), value_of(given[2])
    if is_array_class(dtype):
        dtype, kind = None, dtype
    found = same_view(<BaseArray>given[0]) if dtype is None \
        else call_method("view", (<object>given[0], dtype), {})
    return found if kind is None else view_of_class(found, kind)


# ---- elements ------------------------------------------------------------------------

cdef object fill(Row row, PyObject **given):
    """a, value. NumPy refuses sequences, which would be broadcast."""
    value = <object>given[1]
    if isinstance(value, (list, tuple)) or is_array(value) and (<BaseArray>value).ndim:
        change_in_place(<BaseArray>given[0])
        return NotImplemented
    set_item(<BaseArray>given[0], ..., <object>given[1])
    return None


cdef object nonzero(Row row, PyObject **given):
    """a"""
    return row.data(<object>given[0]) if (<BaseArray>given[0]).ndim else NotImplemented


cdef object change(Row row, PyObject **given):
    """`partition`, `put`, `setfield`: NumPy changes the array."""
    change_in_place(<BaseArray>given[0])
    return NotImplemented


cdef object searchsorted(Row row, PyObject **given):
    """a, v, side, sorter"""
    cdef BaseArray x = <BaseArray>given[0]
    side = "left" if given[2] == NULL else <object>given[2]
    if given[1] == NULL or not is_none(given[3]) \
            or not searches_plainly(x, <object>given[1], side):
        return NotImplemented
    return searched(x, <object>given[1], side == "right")


cdef object take(Row row, PyObject **given):
    """a, indices, axis, out, mode"""
    axis = value_of(given[2])
    if given[1] == NULL or not is_none(given[3]) or not is_text(given[4], "raise") \
            or not takes_along(<BaseArray>given[0], <object>given[1], axis):
        return NotImplemented
    return row.data(<object>given[0], <object>given[1], axis=axis)


cdef object argsort(Row row, PyObject **given):
    """a, axis, kind, order, stable, descending"""
    kind = value_of(given[2])
    if (<BaseArray>given[0]).ndim == 0 or not is_none(given[3]) \
            or given[1] != NULL and <object>given[1] is None \
            or not is_none(given[4]) or not is_none(given[5]) \
            or kind is not None and (type(kind) is not str or kind not in KINDS):
        return NotImplemented
    if given[1] == NULL:
        return row.data(<object>given[0])
    return row.data(<object>given[0], axis=<object>given[1])


cdef object sort(Row row, PyObject **given):
    """a, axis, kind, order, stable, descending: in place"""
    cdef BaseArray x = <BaseArray>given[0]
    axis = -1 if given[1] == NULL else <object>given[1]
    change_in_place(x)
    if not is_none(given[5]) or not sorts_plainly(
            x, axis, value_of(given[2]), value_of(given[3]), value_of(given[4])):
        return NotImplemented
    sort_in_place(x, axis + x.ndim if axis < 0 else axis, False)
    return None


# ---- numbers -------------------------------------------------------------------------

cdef object clip_with(PyObject **given, PyObject *low, PyObject *high):
    found = clip_between(<object>given[0], value_of(low), value_of(high),
                         value_of(given[3]))
    if found is None:
        return NotImplemented
    return like_operand(<BaseArray>given[0], found) if is_none(given[3]) else found


cdef object clip(Row row, PyObject **given):
    """a, min, max, out"""
    return clip_with(given, given[1], given[2])


cdef object clip_by_either(Row row, PyObject **given):
    """The function: a, a_min, a_max, out, min, max"""
    if given[1] == NULL and given[2] == NULL:
        return clip_with(given, given[4], given[5])
    if given[1] == NULL or given[2] == NULL or not are_default(given, 4, 6):
        return NotImplemented
    return clip_with(given, given[1], given[2])


cdef object dot(Row row, PyObject **given):
    """a, b, out"""
    if given[1] == NULL or not is_none(given[2]):
        return NotImplemented
    found = plain_product(<BaseArray>given[0], <object>given[1])
    return found if found is NotImplemented else as_number(found)


cdef object round_real(Row row, PyObject **given):
    """`round`: a, decimals, out"""
    if not is_none(given[2]):
        return NotImplemented
    return plain_round(<BaseArray>given[0], 0 if given[1] == NULL else <object>given[1])


# ---- conversions ---------------------------------------------------------------------

cdef object astype(Row row, PyObject **given):
    """a, dtype, order, casting, subok, copy"""
    cdef BaseArray x = <BaseArray>given[0]
    if not is_text(given[2], "K") or not is_text(given[3], "unsafe") \
            or not is_flag(given[5]):
        return NotImplemented
    found = plain_cast(x, <object>given[1], is_true(given[5]))
    return NotImplemented if found is None else like_operand(x, found)


cdef object byteswap(Row row, PyObject **given):
    """a, inplace"""
    if given[1] != NULL and <object>given[1]:
        change_in_place(<BaseArray>given[0])
    return NotImplemented


cdef object copy(Row row, PyObject **given):
    """a, order"""
    cdef BaseArray x = <BaseArray>given[0]
    order = "C" if given[1] == NULL else <object>given[1]
    if order not in ("C", "F"):
        return NotImplemented
    return like_operand(x, ordered_copy(x, order))


cdef object dump(Row row, PyObject **given):
    """a, file"""
    write_pickle(<BaseArray>given[0], <object>given[1])
    return None


cdef object dumps(Row row, PyObject **given):
    """a"""
    return pickle_of(<BaseArray>given[0])


cdef object tobytes(Row row, PyObject **given):
    """a, order"""
    cdef BaseArray x = <BaseArray>given[0]
    return bytes_of(x) if is_text(given[1], "C") and is_contiguous(x) \
        else NotImplemented


cdef object tofile(Row row, PyObject **given):
    """a, fid, sep, format"""
    write_elements(<BaseArray>given[0], <object>given[1],
                   "" if given[2] == NULL else <object>given[2],
                   "%s" if given[3] == NULL else <object>given[3])
    return None


cdef object setflags(Row row, PyObject **given):
    """a, write, align, uic"""
    if not is_none(given[1]):
        set_writeable(<BaseArray>given[0], <object>given[1])
    if not is_none(given[2]) and not <object>given[2] \
            or given[3] != NULL and <object>given[3]:
        raise ValueError("only write can be set: elements of an NDArray are aligned")
    return None


# ---- the table -----------------------------------------------------------------------

cdef int add(str name, str parameters, Compute compute, object data=None,
             int places=1) except -1:
    """Set the row of a method, and that of the function of NumPy that does the same.

    So many arguments are given to NumPy's method by position, if it computes; its
    signature is not always what it says.
    """
    add_alone(name, parameters, compute, data, places)
    for each in (name, ALIASES.get(name)):
        if each is not None:
            add_method(getattr(np, each), parameters, compute, data)
    return 0


cdef int add_alone(str name, str parameters, Compute compute, object data=None,
                   int places=1) except -1:
    """Set the row of a method."""
    # Of what NumPy has as a function only, the method has the row.
    method = numpys_method(name)
    if method is not None:
        add_function(method, parameters, compute, data)
        row_of(method).positional = places
    return 0


def set_rows(ndx):
    """Set the rows of methods, by functions of ndx; done once, at import."""
    add("all", "a axis out keepdims * where", test, ndx.all)
    add("any", "a axis out keepdims * where", test, ndx.any)
    add("argmax", "a axis out * keepdims", find_extreme, ndx.argmax)
    add("argmin", "a axis out * keepdims", find_extreme, ndx.argmin)
    add("cumprod", "a axis dtype out", accumulate, ndx.cumulative_prod)
    add("cumsum", "a axis dtype out", accumulate, ndx.cumulative_sum)
    add("max", "a axis out keepdims initial where", extreme, ndx.max)
    add("mean", "a axis dtype out keepdims * where", mean, ndx.mean)
    add("min", "a axis out keepdims initial where", extreme, ndx.min)
    add("prod", "a axis dtype out keepdims initial where", total, ndx.prod)
    add("ptp", "a axis out keepdims", peak_to_peak)
    add("std", "a axis dtype out ddof keepdims * where mean", spread, ndx.std)
    add("sum", "a axis dtype out keepdims initial where", total, ndx.sum)
    add("trace", "a offset axis1 axis2 dtype out", trace, ndx.sum)
    add("var", "a axis dtype out ddof keepdims * where mean", spread, ndx.var)

    add("diagonal", "a offset axis1 axis2", diagonal)
    add_alone("flatten", "a order", flatten, ndx.reshape)
    add("ravel", "a order", ravel, ndx.reshape)
    add("repeat", "a repeats axis", repeat, ndx.repeat, 2)
    add_alone("reshape", "a shape * order copy", reshape, ndx.reshape, 2)
    add_method(np.reshape, "a shape order * copy", reshape, ndx.reshape)
    add_alone("resize", "a new_shape * refcheck", resize_in_place, ndx.zeros)
    add("squeeze", "a axis", squeeze, ndx.squeeze)
    add("swapaxes", "a axis1 axis2", swapaxes, None, 3)
    add("transpose", "a axes", transpose, ndx.permute_dims, 2)
    add_alone("view", "a dtype type", view)

    add_alone("choose", "a choices * out mode", NULL, None, 2)
    add_alone("compress", "a condition axis out", NULL, None, 2)
    add_alone("fill", "a value", fill, None, 2)
    add("nonzero", "a", nonzero, ndx.nonzero)
    add_alone("put", "a indices values mode", change, None, 3)
    add("searchsorted", "a v side sorter", searchsorted, None, 2)
    add("take", "a indices axis out mode", take, ndx.take, 2)

    add_alone("argpartition", "a kth axis kind order", NULL, None, 2)
    add("argsort", "a axis kind order * stable descending", argsort, ndx.argsort)
    add_alone("partition", "a kth axis kind order", change, None, 2)
    add_alone("sort", "a axis kind order * stable descending", sort)

    add_alone("clip", "a min max out", clip, None, 3)
    add_method(np.clip, "a a_min a_max out * min max", clip_by_either)
    add_alone("conj", "a out", NULL, None, 2)
    add_alone("conjugate", "a out", NULL, None, 2)
    add("dot", "a b out", dot, None, 2)
    add("round", "a decimals out", round_real)

    add_alone("astype", "a dtype order casting subok copy", astype, None, 2)
    add_alone("byteswap", "a inplace", byteswap, None, 2)
    add_alone("copy", "a order", copy)
    add_alone("dump", "a file", dump)
    add_alone("dumps", "a", dumps)
    add_alone("getfield", "a dtype offset", NULL, None, 3)
    add_alone("setfield", "a value dtype offset", change, None, 4)
    add_alone("setflags", "a write align uic", setflags)
    add_alone("tobytes", "a order", tobytes)
    add_alone("tofile", "a fid sep format", tofile)


cdef Row row_of_method(str name):
    """Return the row of a method, or of the function that NumPy has in its place."""
    return row_of(numpys_method(name) or getattr(np, name))


cdef object numpys_method(str name):
    """Return a method of NumPy's arrays, or None."""
    # Until 2.3 NumPy has some that only raise AttributeError.
    return None if name == "ptp" else getattr(np.ndarray, name, None)

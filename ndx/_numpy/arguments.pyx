"""The arguments of a function of NumPy that ndx computes, and its result."""

from cpython.object cimport PyObject

from ndx._array.storage cimport BaseArray, as_number, is_array, require_live

# Axes, lengths and counts beyond that are left to NumPy.
cdef object BIG = 2**31


cdef BaseArray array_in(PyObject *given):
    """Return an argument that is an array of the CPU's with axes; None: it is not."""
    cdef BaseArray x
    if given == NULL or not is_array(<object>given):
        return None
    x = <object>given
    if x.block.device or x.ndim == 0:
        return None
    require_live(x)
    return x


cdef BaseArray any_array_in(PyObject *given):
    """Like `array_in`, also for arrays without axes and numbers."""
    if given == NULL or not is_array(<object>given) \
            or (<BaseArray>given).block.device:
        return None
    require_live(<BaseArray>given)
    return <BaseArray>given


cdef bint read_int(PyObject *given, Py_ssize_t *out) except -1:
    """Read an argument that is a small int, if it is given; False: it is another."""
    if given == NULL:
        return True
    if type(<object>given) is not int or not -BIG < <object>given < BIG:
        return False
    out[0] = <object>given
    return True


cdef int read_axis(PyObject *given, int ndim, int otherwise) except -2:
    """Return an axis from 0; the default if it is not given; -1: it is none."""
    cdef Py_ssize_t axis = otherwise
    if not read_int(given, &axis) or not -ndim <= axis < ndim:
        return -1
    return <int>(axis + ndim if axis < 0 else axis)


cdef bint is_plain_number(object x) noexcept:
    kind = type(x)
    return kind is float or kind is int or kind is bool


cdef object found_or_not(object found):
    return NotImplemented if found is None else found


cdef object reduced(object found):
    """Return a result that is a number if it has no axes; None is NotImplemented."""
    return NotImplemented if found is None else as_number(found)


cdef bint are_numbers(PyObject **given, int count) noexcept:
    """Whether the first arguments, as far as given, are ints and floats of Python's."""
    cdef int i
    for i in range(count):
        if given[i] != NULL:
            kind = type(<object>given[i])
            if kind is not int and kind is not float:
                return False
    return True

"""Orders of elements in memory, by name."""

from ndx._array.storage cimport BaseArray, new_array
from ndx._compute.copies cimport copy_elements, require_castable
from ndx._lib.layout cimport MAXDIMS


cdef int check_order(object order) except -1:
    if not isinstance(order, str) or order not in ("C", "F"):
        raise ValueError(
            f"order={order!r} is not an order of elements: valid are 'C' (the last "
            "axis fastest), 'F' (the first) and None (as they lie)")
    return 0


cdef bint lies_in(BaseArray x, object order):
    """Whether the elements lie in memory in an order: "C" or "F"; None: any."""
    return order is None or (x.c_contiguous if order == "C" else x.f_contiguous)


cdef BaseArray cast_ordered(BaseArray x, int dtype, object order):
    """Return a new array with the values of `x`, in an order."""
    cdef int axes[MAXDIMS]
    cdef int axis
    cdef BaseArray result
    for axis in range(x.ndim):
        axes[axis] = axis if order == "C" else x.ndim - 1 - axis
    result = new_array(x.block.device, dtype, x.ndim, x.shape, axes, False)
    require_castable(x.dtype, dtype)
    copy_elements(result, x, True)
    return result

from ndx._array.storage cimport BaseArray
from ndx._compute.loops cimport Loop
from ndx._lib.layout cimport Walk

cdef enum:
    # Elements from which the GIL is released. Releasing and acquiring it costs about
    # as much as computing a few hundred elements.
    LARGE = 32768

# A copy between layouts, and dtypes.
cdef struct Conversion:
    Loop loop                    # copies or casts
    Py_ssize_t itemsizes[2]
    bint same                    # whether both have one dtype

cdef bint can_store(int dtype, int into) noexcept
cdef BaseArray cast(BaseArray x, int dtype)
cdef BaseArray copy(BaseArray x)
cdef int copy_into(BaseArray out, BaseArray x) except -1
cdef int fill(BaseArray out, object scalar) except -1
cdef bint overlaps(BaseArray out, BaseArray x) noexcept
cdef int require_castable(int dtype, int into) except -1
cdef void plain_copy(Conversion *conversion, int dtype) noexcept
cdef void run_conversion(void *arg, char **data, const Walk *walk) noexcept nogil

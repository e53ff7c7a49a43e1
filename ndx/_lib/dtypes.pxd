# The list is in the header.
cdef extern from "ndx/internal/dtype_tables.h":
    enum:
        NDTYPES "NDX_DTYPE_COUNT"

    enum:
        BOOL "NDX_BOOL"
        INT8 "NDX_INT8"
        INT16 "NDX_INT16"
        INT32 "NDX_INT32"
        INT64 "NDX_INT64"
        UINT8 "NDX_UINT8"
        UINT16 "NDX_UINT16"
        UINT32 "NDX_UINT32"
        UINT64 "NDX_UINT64"
        FLOAT32 "NDX_FLOAT32"
        FLOAT64 "NDX_FLOAT64"
        COMPLEX64 "NDX_COMPLEX64"
        COMPLEX128 "NDX_COMPLEX128"
        FLOAT16 "NDX_FLOAT16"

    # In the order of promotion.
    enum:
        KIND_BOOL "NDX_KIND_BOOL"
        KIND_INT "NDX_KIND_INT"
        KIND_UINT "NDX_KIND_UINT"
        KIND_FLOAT "NDX_KIND_FLOAT"
        KIND_COMPLEX "NDX_KIND_COMPLEX"

    const Py_ssize_t *itemsize_of "ndx_itemsizes"
    const int *kind_of "ndx_kinds"
    const char **names_of_dtypes "ndx_dtype_names"
    # The dtype that elements are computed in.
    const int *computed_in "ndx_computed"


cdef inline bint has_arithmetic(int dtype) noexcept nogil:
    """Whether C computes with elements of a dtype as they are."""
    return computed_in[dtype] == dtype


cdef int typenum_of[NDTYPES]
cdef int promote_table[NDTYPES][NDTYPES]

cdef object dtype_object(int code)
cdef int known_code(object dtype) except -2
cdef int find_code(object dtype) except -2
cdef int dtype_code(object dtype) except -1
cdef int code_or_none(object dtype) noexcept
# Returns -1 for an empty list.
cdef int promote_all(list codes) except? -1
cdef int scalar_dtype(int array_dtype, object scalar) except -1
cdef int store_scalar(object scalar, int dtype, char *out) except -1

cdef enum:
    DEEPEST = 64                 # NumPy takes no sequences that are nested more deeply

cdef bint is_numpy_scalar(object x) noexcept
cdef bint is_numpy_bool(object x) noexcept
cdef bint is_refused_array(object error) except -1

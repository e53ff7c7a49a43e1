cdef enum:
    NDTYPES = 13

# Codes follow the order of the standard's list. Kinds are ordered by promotion.
cdef enum DType:
    BOOL = 0
    INT8
    INT16
    INT32
    INT64
    UINT8
    UINT16
    UINT32
    UINT64
    FLOAT32
    FLOAT64
    COMPLEX64
    COMPLEX128

cdef enum Kind:
    KIND_BOOL
    KIND_INT
    KIND_UINT
    KIND_FLOAT
    KIND_COMPLEX

cdef Py_ssize_t itemsize_of[NDTYPES]
cdef int kind_of[NDTYPES]
cdef int typenum_of[NDTYPES]
cdef int promote_table[NDTYPES][NDTYPES]

cdef object dtype_object(int code)
cdef int known_code(object dtype) except -2
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

# `cimport ndx`: the C level. "ndx/ndx.h" documents each function; `ndx.get_include()`
# returns the include path. All functions need the GIL. The memory of a view may be used
# without it.

from libc.stdint cimport int32_t

cdef extern from "ndx/ndx.h":
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

    enum:
        WRITABLE "NDX_WRITABLE"
        C_CONTIGUOUS "NDX_C_CONTIGUOUS"

    ctypedef struct ArrayView "ndx_array_view":
        void *data
        const Py_ssize_t *shape
        const Py_ssize_t *strides    # bytes
        Py_ssize_t size              # elements
        Py_ssize_t itemsize          # bytes
        int32_t ndim
        int32_t dtype                # FLOAT64, ...
        int32_t kind                 # c'b', c'i', c'u', c'f' or c'c'
        int32_t bits                 # of one element
        bint readonly
        bint c_contiguous
        int32_t device_type          # as in DLPack; 1 is the CPU
        int32_t device_id
        void *token

    int import_ndx "ndx_import" () except -1
    int acquire "ndx_acquire" (object array, ArrayView *view, int flags) except -1
    void release "ndx_release" (ArrayView *view) noexcept
    bint is_array "ndx_is_array" (object obj) except -1
    object empty "ndx_empty" (int ndim, const Py_ssize_t *shape, int dtype)

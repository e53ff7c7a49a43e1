"""The C level: a table of functions for packages that are compiled against ndx.

``ndx/ndx.h`` is the contract for C and C++, and ``cimport ndx`` for Cython. Modules
compiled against an earlier ndx keep working: entries of the table never change, and
new ones are appended.
"""

import os

cimport cython
from cpython.object cimport PyObject
from cpython.pycapsule cimport PyCapsule_New
from cpython.ref cimport Py_DECREF, Py_INCREF
from libc.stdint cimport int32_t, uint32_t
from libc.string cimport memset

from ndx._array.storage cimport (
    BaseArray, data_of, export_array, is_array, new_empty, require_live,
)
from ndx._blocks.block cimport Export, export_free
from ndx._lib.dtypes cimport (
    NDTYPES, dtype_object, itemsize_of, kind_of, names_of_dtypes,
)
from ndx._lib.layout cimport MAXDIMS, shape_tuple

__all__ = ["get_include"]

cdef extern from "ndx/ndx.h":
    enum:
        NDX_API_VERSION
        NDX_WRITABLE
        NDX_C_CONTIGUOUS
    const char *NDX_API_NAME

    ctypedef struct ndx_array_view:
        void *data
        const Py_ssize_t *shape
        const Py_ssize_t *strides
        Py_ssize_t size
        Py_ssize_t itemsize
        int32_t ndim
        int32_t dtype
        int32_t kind
        int32_t bits
        int32_t readonly
        int32_t c_contiguous
        int32_t device_type
        int32_t device_id
        void *token
        void (*drop)(ndx_array_view *view) noexcept

    ctypedef struct ndx_api:
        uint32_t version
        uint32_t size
        int (*acquire)(object array, ndx_array_view *view, int flags) except -1
        int (*is_array)(object obj) noexcept
        object (*empty)(int ndim, const Py_ssize_t *shape, int dtype)

cdef enum:
    DEVICE_CPU = 1               # DLPack's kDLCPU

# The field `kind` for each kind.
cdef const char *KINDS = b"biufc"


@cython.final
@cython.no_gc
@cython.freelist(16)
cdef class Acquired:
    """References of a view: the array, for its layout, and an export of its bytes.

    An object, because a dealloc keeps a pending exception.
    """

    cdef BaseArray array
    cdef Export *export

    def __dealloc__(self):
        if self.export != NULL:
            export_free(self.export)


cdef int acquire(object obj, ndx_array_view *view, int flags) except -1:
    cdef BaseArray x
    cdef Acquired acquired
    memset(view, 0, sizeof(ndx_array_view))
    if not is_array(obj):
        raise TypeError(
            f"expected an ndx.NDArray, not {type(obj).__name__}; convert with "
            "ndx.asarray")
    if flags & ~(NDX_WRITABLE | NDX_C_CONTIGUOUS):
        raise ValueError(
            f"unknown flags {flags:#x}; valid are NDX_WRITABLE ({NDX_WRITABLE:#x}) and "
            f"NDX_C_CONTIGUOUS ({NDX_C_CONTIGUOUS:#x})")
    x = obj
    acquired = Acquired.__new__(Acquired)
    require_live(x)
    acquired.export = export_array(x)
    acquired.array = x
    if flags & NDX_WRITABLE and x.readonly:
        raise unfit_error(x, "read-only, and was asked for to be written")
    if flags & NDX_C_CONTIGUOUS and not x.c_contiguous:
        raise unfit_error(x, "not C-contiguous, as was asked for")
    view.data = data_of(x)
    view.shape = x.shape
    view.strides = x.strides
    view.size = x.size
    view.itemsize = itemsize_of[x.dtype]
    view.ndim = x.ndim
    view.dtype = x.dtype
    view.kind = KINDS[kind_of[x.dtype]]
    view.bits = <int32_t>(8 * view.itemsize)
    view.readonly = x.readonly
    view.c_contiguous = x.c_contiguous
    view.device_type = DEVICE_CPU
    view.drop = drop
    Py_INCREF(acquired)
    view.token = <void *>acquired
    return 0


cdef object unfit_error(BaseArray x, str reason):
    return BufferError(
        f"the array of shape {shape_tuple(x.ndim, x.shape)} and dtype "
        f"{dtype_object(x.dtype)} is {reason}; pass a copy: ndx.asarray(x, copy=True, "
        "order='C')")


cdef void drop(ndx_array_view *view) noexcept:
    cdef PyObject *acquired = <PyObject *>view.token
    # Cleared first, because dropping the last reference may run Python code.
    memset(view, 0, sizeof(ndx_array_view))
    Py_DECREF(<object>acquired)


cdef int is_array_object(object obj) noexcept:
    return is_array(obj)


cdef object empty(int ndim, const Py_ssize_t *shape, int dtype):
    if ndim < 0 or ndim > MAXDIMS:
        raise ValueError(f"ndim={ndim} is out of range; valid are 0 to {MAXDIMS}")
    if dtype < 0 or dtype >= NDTYPES:
        raise ValueError(
            f"dtype code {dtype} is out of range; valid are NDX_BOOL (0) to "
            f"NDX_{names_of_dtypes[NDTYPES - 1].decode().upper()} ({NDTYPES - 1})")
    return new_empty(dtype, ndim, shape)


cdef ndx_api table
table.version = NDX_API_VERSION
table.size = sizeof(ndx_api)
table.acquire = acquire
table.is_array = is_array_object
table.empty = empty

C_API = PyCapsule_New(&table, NDX_API_NAME, NULL)


def get_include() -> str:
    """Return the directory that compilers need for ``ndx/ndx.h``.

    Returns
    -------
    str
        For ``include_dirs`` of an extension in C or C++, or one that does ``cimport
        ndx``. Cython itself finds the installed ndx.

    Examples
    --------
    >>> import os
    >>> import ndx
    >>> os.path.exists(os.path.join(ndx.get_include(), "ndx", "ndx.h"))
    True
    """
    return os.path.join(os.path.dirname(os.path.abspath(__file__)), "include")

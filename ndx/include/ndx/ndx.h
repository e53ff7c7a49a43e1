/* The C level of ndx, for C and C++: checked access to the memory of arrays. An export
 * keeps the memory in place, also without the GIL. In Cython, `cimport ndx` offers the
 * same.
 *
 *     ndx_array_view view;
 *     if (ndx_acquire(object, &view, NDX_C_CONTIGUOUS) < 0) { return NULL; }
 *     Py_BEGIN_ALLOW_THREADS
 *     ... view.data, view.shape ...
 *     Py_END_ALLOW_THREADS
 *     ndx_release(&view);
 *
 * All functions here need the GIL. Between acquire and release the memory stays in
 * place, even if the array is deleted, and any thread may use it without the GIL.
 *
 * `ndx.get_include()` returns the include path. Nothing is linked: the first call finds
 * the table of functions in `ndx._capi.C_API`. */
#ifndef NDX_NDX_H
#define NDX_NDX_H

#include <Python.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Increased by changes that break compiled modules. Additions only make the table
 * longer: a module runs with the ndx that it was compiled against, and later ones. */
#define NDX_API_VERSION 1
#define NDX_API_NAME "ndx._capi.C_API"

/* The codes of the dtypes: NDX_BOOL, NDX_INT8, ..., NDX_COMPLEX128. */
#include "dtypes.h"

/* Flags of ndx_acquire: properties that the array must have. */
enum {
    NDX_WRITABLE = 1,
    NDX_C_CONTIGUOUS = 2
};

/* An array between acquire and release. Its pointers are valid until the release. Don't
 * copy the struct: the copy would be released, too. */
typedef struct ndx_array_view {
    void *data;                  /* the first element, aligned for its dtype */
    const Py_ssize_t *shape;
    const Py_ssize_t *strides;   /* bytes */
    Py_ssize_t size;             /* elements */
    Py_ssize_t itemsize;         /* bytes */
    int32_t ndim;                /* at most 64 */
    int32_t dtype;               /* NDX_FLOAT64, ... */
    int32_t kind;                /* 'b', 'i', 'u', 'f' or 'c' */
    int32_t bits;                /* of one element: 8 * itemsize */
    int32_t readonly;            /* if true, writing is undefined behaviour */
    int32_t c_contiguous;
    int32_t device_type;         /* as in DLPack; always 1, the CPU: GPUs are refused */
    int32_t device_id;
    void *token;                 /* private */
    void (*drop)(struct ndx_array_view *view);   /* private; NULL: the view is empty */
    void *reserved[4];
} ndx_array_view;

/* The table. Functions are only ever appended. */
typedef struct {
    uint32_t version;
    uint32_t size;               /* bytes of the table */
    int (*acquire)(PyObject *array, ndx_array_view *view, int flags);
    int (*is_array)(PyObject *object);
    PyObject *(*empty)(int ndim, const Py_ssize_t *shape, int dtype);
} ndx_api;

/* Find and check the table. NULL with an ImportError set if it is not compatible. */
static inline const ndx_api *ndx_get_api(void) {
    static const ndx_api *found = NULL;
    const ndx_api *table;
    PyObject *module, *capsule;
    if (found != NULL) { return found; }
    module = PyImport_ImportModule("ndx._capi");
    if (module == NULL) { return NULL; }
    capsule = PyObject_GetAttrString(module, "C_API");
    Py_DECREF(module);
    if (capsule == NULL) { return NULL; }
    if (!PyCapsule_IsValid(capsule, NDX_API_NAME)) {
        Py_DECREF(capsule);
        PyErr_SetString(PyExc_ImportError, NDX_API_NAME " is not ndx's table of C "
                        "functions; is the installation of ndx damaged?");
        return NULL;
    }
    table = (const ndx_api *)PyCapsule_GetPointer(capsule, NDX_API_NAME);
    Py_DECREF(capsule);          /* the table itself is static */
    if (table->version != NDX_API_VERSION || table->size < sizeof(ndx_api)) {
        PyErr_Format(PyExc_ImportError,
                     "this module was compiled against version %d of ndx's C table (%d "
                     "bytes), but the installed ndx has version %d (%d bytes): %s",
                     NDX_API_VERSION, (int)sizeof(ndx_api), (int)table->version,
                     (int)table->size,
                     table->version > NDX_API_VERSION
                         ? "build the module again, with this ndx"
                         : "upgrade ndx, or build the module again, with this ndx");
        return NULL;
    }
    found = table;
    return table;
}

/* Find the table early, in a module's initialisation. Returns 0, or -1 with an
 * ImportError set. */
static inline int ndx_import(void) { return ndx_get_api() != NULL ? 0 : -1; }

/* Check that an array may be used, export its memory, and describe it in `view`.
 *
 * `flags` is 0 or the sum of NDX_WRITABLE and NDX_C_CONTIGUOUS. The memory stays in
 * place until ndx_release, even if the scope ends or the last reference is dropped, and
 * close() raises BufferError. Returns 0, or -1 with an exception set and an empty view:
 * TypeError (no NDArray, or on a GPU), ndx.StaleArrayError, BufferError (read-only or
 * not contiguous, against the flags), ValueError (unknown flags). */
static inline int ndx_acquire(PyObject *array, ndx_array_view *view, int flags) {
    const ndx_api *api = ndx_get_api();
    view->drop = NULL;
    return api != NULL ? api->acquire(array, view, flags) : -1;
}

/* End the export of a view, and make it empty. Does nothing if the view is already
 * empty, released or never acquired. Keeps a pending exception. */
static inline void ndx_release(ndx_array_view *view) {
    if (view->drop != NULL) { view->drop(view); }
}

/* Return 1 if `object` is an ndx.NDArray, else 0; -1 with an ImportError set. */
static inline int ndx_is_array(PyObject *object) {
    const ndx_api *api = ndx_get_api();
    return api != NULL ? api->is_array(object) : -1;
}

/* Return a new ndx.NDArray, not initialized, in the current workspace or on the current
 * backend. It is C-contiguous, and its data is 64-byte aligned. NULL with an exception
 * set: ValueError (ndim, shape or dtype), ndx.OutOfMemoryError. */
static inline PyObject *ndx_empty(int ndim, const Py_ssize_t *shape, int dtype) {
    const ndx_api *api = ndx_get_api();
    return api != NULL ? api->empty(ndim, shape, dtype) : NULL;
}

#ifdef __cplusplus
}
#endif

#endif

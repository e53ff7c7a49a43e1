/* The one list of dtypes: those of the Python Array API, in its order.
 *
 * Codes, names, sizes, kinds and their number come from it. What else depends on a dtype
 * says so by its code. Code that lists them all says NDX_DTYPES_ARE(13), and no longer
 * compiles when the list changes. */
#ifndef NDX_DTYPES_H
#define NDX_DTYPES_H

#include <stddef.h>

/* X(code, name, bytes of an element, kind) */
#define NDX_DTYPES(X)                                                                    \
    X(BOOL, bool, 1, BOOL)                                                               \
    X(INT8, int8, 1, INT)                                                                \
    X(INT16, int16, 2, INT)                                                              \
    X(INT32, int32, 4, INT)                                                              \
    X(INT64, int64, 8, INT)                                                              \
    X(UINT8, uint8, 1, UINT)                                                             \
    X(UINT16, uint16, 2, UINT)                                                           \
    X(UINT32, uint32, 4, UINT)                                                           \
    X(UINT64, uint64, 8, UINT)                                                           \
    X(FLOAT32, float32, 4, FLOAT)                                                        \
    X(FLOAT64, float64, 8, FLOAT)                                                        \
    X(COMPLEX64, complex64, 8, COMPLEX)                                                  \
    X(COMPLEX128, complex128, 16, COMPLEX)

#define NDX_DTYPE_CODE(code, name, itemsize, kind) NDX_##code,
enum { NDX_DTYPES(NDX_DTYPE_CODE) NDX_DTYPE_COUNT };
#undef NDX_DTYPE_CODE

/* Kinds in the order of promotion. */
enum { NDX_KIND_BOOL, NDX_KIND_INT, NDX_KIND_UINT, NDX_KIND_FLOAT, NDX_KIND_COMPLEX };

#ifdef __cplusplus
#define NDX_DTYPES_ARE(count) static_assert(NDX_DTYPE_COUNT == (count), "a list of dtypes")
#else
#define NDX_DTYPES_ARE(count)                                                            \
    _Static_assert(NDX_DTYPE_COUNT == (count), "a list of dtypes lacks one")
#endif

#endif

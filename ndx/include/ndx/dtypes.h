/* The one list of dtypes: those of the Python Array API, in its order, then others. A new
 * one goes to the end: compiled modules know the codes.
 *
 * Codes, names, sizes, kinds and their number come from it. What else depends on a dtype
 * says so by its code. Code that lists them all says NDX_DTYPES_ARE(14), code that lists
 * those with arithmetic in C says NDX_COMPUTED_ARE(13), and neither compiles any longer
 * when the list changes. */
#ifndef NDX_DTYPES_H
#define NDX_DTYPES_H

#include <stddef.h>

/* X(code, name, bytes of an element, kind, the dtype that such elements are computed in:
 * their own, unless C has no arithmetic for them) */
#define NDX_DTYPES(X)                                                                    \
    X(BOOL, bool, 1, BOOL, BOOL)                                                         \
    X(INT8, int8, 1, INT, INT8)                                                          \
    X(INT16, int16, 2, INT, INT16)                                                       \
    X(INT32, int32, 4, INT, INT32)                                                       \
    X(INT64, int64, 8, INT, INT64)                                                       \
    X(UINT8, uint8, 1, UINT, UINT8)                                                      \
    X(UINT16, uint16, 2, UINT, UINT16)                                                   \
    X(UINT32, uint32, 4, UINT, UINT32)                                                   \
    X(UINT64, uint64, 8, UINT, UINT64)                                                   \
    X(FLOAT32, float32, 4, FLOAT, FLOAT32)                                               \
    X(FLOAT64, float64, 8, FLOAT, FLOAT64)                                               \
    X(COMPLEX64, complex64, 8, COMPLEX, COMPLEX64)                                       \
    X(COMPLEX128, complex128, 16, COMPLEX, COMPLEX128)                                   \
    X(FLOAT16, float16, 2, FLOAT, FLOAT32)

#define NDX_DTYPE_CODE(code, name, itemsize, kind, computed) NDX_##code,
enum { NDX_DTYPES(NDX_DTYPE_CODE) NDX_DTYPE_COUNT };
#undef NDX_DTYPE_CODE

#define NDX_IS_COMPUTED(code, name, itemsize, kind, computed)                            \
    +((int)NDX_##code == (int)NDX_##computed)
enum { NDX_COMPUTED_COUNT = 0 NDX_DTYPES(NDX_IS_COMPUTED) };
#undef NDX_IS_COMPUTED

/* Kinds in the order of promotion. */
enum { NDX_KIND_BOOL, NDX_KIND_INT, NDX_KIND_UINT, NDX_KIND_FLOAT, NDX_KIND_COMPLEX };

#ifdef __cplusplus
#define NDX_ASSERT(condition) static_assert(condition, "a list of dtypes lacks one")
#else
#define NDX_ASSERT(condition) _Static_assert(condition, "a list of dtypes lacks one")
#endif
#define NDX_DTYPES_ARE(count) NDX_ASSERT(NDX_DTYPE_COUNT == (count))
#define NDX_COMPUTED_ARE(count) NDX_ASSERT(NDX_COMPUTED_COUNT == (count))

#endif

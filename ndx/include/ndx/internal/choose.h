/* One of two elements by a mask, and elements limited to an interval: by bits and by
 * comparisons that the compiler vectorises, without branches. */
#ifndef NDX_CHOOSE_H
#define NDX_CHOOSE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <ndx/dtypes.h>
#include "cpu.h"

typedef struct { uint64_t first, second; } ndx_pair;

#define NDX_CHOSEN(a, b) (T)(((a) & t) | ((b) & (T)~t))

/* out = mask ? a : b, by bits. The result shares no memory with the operands. */
#define NDX_CHOOSE_BODY {                                                                \
    const uint8_t *mask = (const uint8_t *)args[0];                                      \
    const T *__restrict a = (const T *)args[1], *__restrict b = (const T *)args[2];      \
    T *__restrict out = (T *)args[3];                                                    \
    const ptrdiff_t size = (ptrdiff_t)sizeof(T);                                         \
    T first, second;                                                                     \
    ptrdiff_t i;                                                                         \
    /* Constants may lie anywhere. */                                                    \
    memcpy(&first, args[1], sizeof(T));                                                  \
    memcpy(&second, args[2], sizeof(T));                                                 \
    if (steps[0] == 1 && steps[3] == size && steps[1] == size && steps[2] == size) {     \
        for (i = 0; i < n; i++) {                                                        \
            T t = (T)-(T)(mask[i] != 0);                                                 \
            out[i] = NDX_CHOSEN(a[i], b[i]);                                             \
        }                                                                                \
    } else if (steps[0] == 1 && steps[3] == size && steps[1] == size && !steps[2]) {     \
        for (i = 0; i < n; i++) {                                                        \
            T t = (T)-(T)(mask[i] != 0);                                                 \
            out[i] = NDX_CHOSEN(a[i], second);                                           \
        }                                                                                \
    } else if (steps[0] == 1 && steps[3] == size && !steps[1] && steps[2] == size) {     \
        for (i = 0; i < n; i++) {                                                        \
            T t = (T)-(T)(mask[i] != 0);                                                 \
            out[i] = NDX_CHOSEN(first, b[i]);                                            \
        }                                                                                \
    } else if (steps[0] == 1 && steps[3] == size && !steps[1] && !steps[2]) {            \
        for (i = 0; i < n; i++) {                                                        \
            T t = (T)-(T)(mask[i] != 0);                                                 \
            out[i] = NDX_CHOSEN(first, second);                                          \
        }                                                                                \
    } else {                                                                             \
        /* The address is chosen, without a branch, and only one element is read. */     \
        const ptrdiff_t over = steps[0], over_a = steps[1], over_b = steps[2];           \
        const ptrdiff_t onward = steps[3];                                               \
        uintptr_t from_a = (uintptr_t)args[1], from_b = (uintptr_t)args[2];              \
        char *to = args[3];                                                              \
        for (i = 0; i < n; i++) {                                                        \
            uintptr_t t = (uintptr_t)0 - (uintptr_t)(*mask != 0);                        \
            *(T *)to = *(const T *)(from_b + ((from_a - from_b) & t));                   \
            mask += over; from_a += over_a; from_b += over_b; to += onward;              \
        }                                                                                \
    }                                                                                    \
}
#define NDX_CHOOSE(name, U)                                                              \
NDX_AVX2 static void ndx_choose_##name##_avx2(char **args, const ptrdiff_t *steps,       \
                                              ptrdiff_t n) {                             \
    typedef U T;                                                                         \
    NDX_CHOOSE_BODY                                                                      \
}                                                                                        \
static void ndx_choose_##name(char **args, const ptrdiff_t *steps, ptrdiff_t n) {        \
    typedef U T;                                                                         \
    NDX_CHOOSE_BODY                                                                      \
}

NDX_CHOOSE(1, uint8_t)
NDX_CHOOSE(2, uint16_t)
NDX_CHOOSE(4, uint32_t)
NDX_CHOOSE(8, uint64_t)

static inline void ndx_choose(char **args, const ptrdiff_t *steps, ptrdiff_t n,
                              size_t itemsize) {
    ptrdiff_t i;
    switch (itemsize) {
    case 1: NDX_CALL_BEST(ndx_choose_1, n, (args, steps, n)); break;
    case 2: NDX_CALL_BEST(ndx_choose_2, n, (args, steps, n)); break;
    case 4: NDX_CALL_BEST(ndx_choose_4, n, (args, steps, n)); break;
    case 8: NDX_CALL_BEST(ndx_choose_8, n, (args, steps, n)); break;
    default:
        for (i = 0; i < n; i++) {
            uint64_t t = (uint64_t)0 - (uint64_t)(args[0][i * steps[0]] != 0);
            const ndx_pair *a = (const ndx_pair *)(args[1] + i * steps[1]);
            const ndx_pair *b = (const ndx_pair *)(args[2] + i * steps[2]);
            ndx_pair *out = (ndx_pair *)(args[3] + i * steps[3]);
            out->first = (a->first & t) | (b->first & ~t);
            out->second = (a->second & t) | (b->second & ~t);
        }
    }
}

#if defined(__GNUC__) && !defined(__clang__)
#define NDX_INDEPENDENT _Pragma("GCC ivdep")
#else
#define NDX_INDEPENDENT
#endif

/* out = min(max(x, low), high); NaN stays, and no bound is NaN. `out` may be `x`. */
#define NDX_CLIP_BODY {                                                                  \
    T low, high;                                                                         \
    const ptrdiff_t step = steps[0], out_step = steps[1];                                \
    const char *from = args[0];                                                          \
    char *to = args[1];                                                                  \
    ptrdiff_t i, row;                                                                    \
    memcpy(&low, lowest, sizeof(T));                                                     \
    memcpy(&high, highest, sizeof(T));                                                   \
    for (row = 0; row < rows; row++, from += row_steps[0], to += row_steps[1]) {         \
        if (n > 15 && step == (ptrdiff_t)sizeof(T) && out_step == step) {                \
            const T *x = (const T *)from;                                                \
            T *out = (T *)to;                                                            \
            NDX_INDEPENDENT                                                              \
            for (i = 0; i < n; i++) {                                                    \
                T v = x[i];                                                              \
                v = v < low ? low : v;                                                   \
                out[i] = v > high ? high : v;                                            \
            }                                                                            \
        } else {                                                                         \
            for (i = 0; i < n; i++) {                                                    \
                T v = *(const T *)(from + i * step);                                     \
                v = v < low ? low : v;                                                   \
                *(T *)(to + i * out_step) = v > high ? high : v;                         \
            }                                                                            \
        }                                                                                \
    }                                                                                    \
}
#define NDX_CLIP(name, U)                                                                \
NDX_AVX2 static void ndx_clip_##name##_avx2(                                             \
        char **args, ptrdiff_t rows, const ptrdiff_t *row_steps, ptrdiff_t n,            \
        const ptrdiff_t *steps, const char *lowest, const char *highest) {               \
    typedef U T;                                                                         \
    NDX_CLIP_BODY                                                                        \
}                                                                                        \
static void ndx_clip_##name(                                                             \
        char **args, ptrdiff_t rows, const ptrdiff_t *row_steps, ptrdiff_t n,            \
        const ptrdiff_t *steps, const char *lowest, const char *highest) {               \
    typedef U T;                                                                         \
    NDX_CLIP_BODY                                                                        \
}

NDX_CLIP(i8, int8_t)
NDX_CLIP(i16, int16_t)
NDX_CLIP(i32, int32_t)
NDX_CLIP(i64, int64_t)
NDX_CLIP(u8, uint8_t)
NDX_CLIP(u16, uint16_t)
NDX_CLIP(u32, uint32_t)
NDX_CLIP(u64, uint64_t)
NDX_CLIP(f32, float)
NDX_CLIP(f64, double)

/* Clip `rows` rows of `n` elements; the operands are the array and the result. */
static inline void ndx_clip(char **args, ptrdiff_t rows, const ptrdiff_t *row_steps,
                            ptrdiff_t n, const ptrdiff_t *steps, const char *low,
                            const char *high, int dtype) {
#define NDX_CLIP_AS(name)                                                                \
    NDX_CALL_BEST(ndx_clip_##name, n, (args, rows, row_steps, n, steps, low, high));     \
    break
    NDX_COMPUTED_ARE(13); /* bounds have no meaning for bools and complex numbers */
    switch (dtype) {
    case NDX_INT8: NDX_CLIP_AS(i8);
    case NDX_INT16: NDX_CLIP_AS(i16);
    case NDX_INT32: NDX_CLIP_AS(i32);
    case NDX_INT64: NDX_CLIP_AS(i64);
    case NDX_UINT8: NDX_CLIP_AS(u8);
    case NDX_UINT16: NDX_CLIP_AS(u16);
    case NDX_UINT32: NDX_CLIP_AS(u32);
    case NDX_UINT64: NDX_CLIP_AS(u64);
    case NDX_FLOAT32: NDX_CLIP_AS(f32);
    case NDX_FLOAT64: NDX_CLIP_AS(f64);
    }
}
#endif

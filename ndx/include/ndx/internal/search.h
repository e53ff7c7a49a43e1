/* Places of values in a sorted vector: several binary searches step by step together, so
 * that the processor waits for their elements at the same time, and without branches. */
#ifndef NDX_SEARCH_H
#define NDX_SEARCH_H

#include <stddef.h>
#include <stdint.h>

#include <ndx/dtypes.h>

#define NDX_TOGETHER 16

/* The number of elements before the first NaN: NaN is sorted last. */
#define NDX_ORDERED(name, T)                                                             \
static ptrdiff_t ndx_ordered_##name(const char *x, ptrdiff_t step, ptrdiff_t n) {        \
    ptrdiff_t low = 0;                                                                   \
    while (low < n) {                                                                    \
        ptrdiff_t middle = low + (n - low) / 2;                                          \
        T v = *(const T *)(x + middle * step);                                           \
        if (v == v) { low = middle + 1; } else { n = middle; }                           \
    }                                                                                    \
    return low;                                                                          \
}

/* LESS says whether an element `v` is before the place of a key. Keys in order are
 * searched between the places of the first and the last of them. */
#define NDX_PLACES(name, side, T, LESS, AFTER)                                           \
static inline void ndx_narrow_##name##_##side(const char *x, ptrdiff_t step,             \
                                              ptrdiff_t length, const T *keys,           \
                                              ptrdiff_t few, ptrdiff_t *base) {          \
    ptrdiff_t i;                                                                         \
    while (length > 1) {                                                                 \
        ptrdiff_t half = length / 2;                                                     \
        for (i = 0; i < few; i++) {                                                      \
            T v = *(const T *)(x + (base[i] + half - 1) * step);                         \
            base[i] += half & -(ptrdiff_t)(v LESS keys[i]);                              \
        }                                                                                \
        length -= half;                                                                  \
    }                                                                                    \
    for (i = 0; i < few && length; i++) {                                                \
        base[i] += *(const T *)(x + base[i] * step) LESS keys[i];                        \
    }                                                                                    \
}                                                                                        \
static void ndx_places_##name##_##side(int64_t *out, const char *x, ptrdiff_t step,      \
                                       ptrdiff_t n, ptrdiff_t ordered,                   \
                                       const char *values, ptrdiff_t count) {            \
    ptrdiff_t i, done;                                                                   \
    for (done = 0; done < count; done += NDX_TOGETHER) {                                 \
        const T *keys = (const T *)values + done;                                        \
        ptrdiff_t few = count - done < NDX_TOGETHER ? count - done : NDX_TOGETHER;       \
        ptrdiff_t base[NDX_TOGETHER] = {0}, length = ordered;                            \
        int rising = few == NDX_TOGETHER;                                                \
        for (i = 0; rising && i < few - 1; i++) { rising = keys[i] <= keys[i + 1]; }     \
        if (rising) {                                                                    \
            T ends[2];                                                                   \
            ends[0] = keys[0];                                                           \
            ends[1] = keys[few - 1];                                                     \
            ndx_narrow_##name##_##side(x, step, length, ends, 2, base);                  \
            length = base[1] - base[0];                                                  \
            for (i = 1; i < few; i++) { base[i] = base[0]; }                             \
        }                                                                                \
        ndx_narrow_##name##_##side(x, step, length, keys, few, base);                    \
        for (i = 0; i < few; i++) {                                                      \
            out[done + i] = keys[i] == keys[i] ? base[i] : AFTER;                        \
        }                                                                                \
    }                                                                                    \
}

#define NDX_SEARCH(name, T)                                                              \
NDX_ORDERED(name, T)                                                                     \
NDX_PLACES(name, left, T, <, ordered)                                                    \
NDX_PLACES(name, right, T, <=, n)

NDX_SEARCH(i8, int8_t)
NDX_SEARCH(i16, int16_t)
NDX_SEARCH(i32, int32_t)
NDX_SEARCH(i64, int64_t)
NDX_SEARCH(u8, uint8_t)
NDX_SEARCH(u16, uint16_t)
NDX_SEARCH(u32, uint32_t)
NDX_SEARCH(u64, uint64_t)
NDX_SEARCH(f32, float)
NDX_SEARCH(f64, double)

/* A call by dtype with arithmetic: complex numbers are not searched. */
NDX_COMPUTED_ARE(13);
#define NDX_SEARCH_BY(dtype, CALL)                                                       \
    switch (dtype) {                                                                     \
    case NDX_INT8: CALL(i8)                                                              \
    case NDX_INT16: CALL(i16)                                                            \
    case NDX_INT32: CALL(i32)                                                            \
    case NDX_INT64: CALL(i64)                                                            \
    case NDX_UINT16: CALL(u16)                                                           \
    case NDX_UINT32: CALL(u32)                                                           \
    case NDX_UINT64: CALL(u64)                                                           \
    case NDX_FLOAT32: CALL(f32)                                                          \
    case NDX_FLOAT64: CALL(f64)                                                          \
    case NDX_BOOL: case NDX_UINT8: CALL(u8)                                              \
    }

static inline ptrdiff_t ndx_ordered(const char *x, ptrdiff_t step, ptrdiff_t n,
                                    int dtype) {
#define NDX_CALL(name) return ndx_ordered_##name(x, step, n);
    NDX_SEARCH_BY(dtype, NDX_CALL)
    return n;
#undef NDX_CALL
}

/* Write where `count` values, contiguous, belong: `ordered` of n elements are no NaN. */
static inline void ndx_places(int64_t *out, const char *x, ptrdiff_t step, ptrdiff_t n,
                              ptrdiff_t ordered, const char *values, ptrdiff_t count,
                              int right, int dtype) {
#define NDX_CALL(name)                                                                   \
    if (right) { ndx_places_##name##_right(out, x, step, n, ordered, values, count); }   \
    else { ndx_places_##name##_left(out, x, step, n, ordered, values, count); }          \
    break;
    NDX_SEARCH_BY(dtype, NDX_CALL)
#undef NDX_CALL
}
#endif

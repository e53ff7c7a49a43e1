/* Sums of floats in NumPy's order, to the last bit, by vectors of the CPU at hand.
 *
 * NumPy halves a stretch until 128 elements or fewer are left (pairwise summation, and
 * halves are multiples of 8), and sums these by 8 accumulators, one after the other. Here
 * the 8 accumulators are one vector. The processor overlaps leaves by itself. */
#ifndef NDX_PAIRWISE_H
#define NDX_PAIRWISE_H

#include <stddef.h>

#if defined(__GNUC__) && defined(__x86_64__)
#define NDX_LEAF 128
/* Elements: a leaf is too short for the processor to see what comes next. */
#define NDX_AHEAD 1024

#define NDX_PAIRWISE(NAME, T, TARGET)                                                    \
typedef T NAME##_lanes __attribute__((vector_size(8 * sizeof(T)), aligned(sizeof(T)),    \
                                      may_alias));                                       \
                                                                                         \
/* A leaf: 8 elements or more. */                                                        \
TARGET static inline T NAME##_leaf(const T *x, ptrdiff_t n) {                            \
    NAME##_lanes r = *(const NAME##_lanes *)x;                                           \
    ptrdiff_t i;                                                                         \
    T sum;                                                                               \
    for (i = 8; i < n - n % 8; i += 8) {                                                 \
        r += *(const NAME##_lanes *)(x + i);                                             \
        __builtin_prefetch(x + i + NDX_AHEAD);                                           \
    }                                                                                    \
    sum = ((r[0] + r[1]) + (r[2] + r[3])) + ((r[4] + r[5]) + (r[6] + r[7]));             \
    for (; i < n; i++) sum += x[i];                                                      \
    return sum;                                                                          \
}                                                                                        \
                                                                                         \
TARGET static T NAME##_sum(const T *x, ptrdiff_t n) {                                    \
    ptrdiff_t half = n / 2 - n / 2 % 8, i;                                               \
    T sum = (T)-0.0;                                                                     \
    if (n > NDX_LEAF) return NAME##_sum(x, half) + NAME##_sum(x + half, n - half);       \
    if (n >= 8) return NAME##_leaf(x, n);                                                \
    for (i = 0; i < n; i++) sum += x[i];                                                 \
    return sum;                                                                          \
}                                                                                        \
                                                                                         \
TARGET static void NAME(char *total, const char *x, ptrdiff_t n) {                       \
    *(T *)total += NAME##_sum((const T *)x, n);                                          \
}

NDX_PAIRWISE(ndx_add_float32, float, )
NDX_PAIRWISE(ndx_add_float64, double, )
NDX_PAIRWISE(ndx_add_float32_avx2, float, __attribute__((target("avx2"))))
NDX_PAIRWISE(ndx_add_float64_avx2, double, __attribute__((target("avx2"))))
NDX_PAIRWISE(ndx_add_float64_avx512, double, __attribute__((target("avx512f"))))

typedef void (*ndx_sum)(char *total, const char *x, ptrdiff_t n);

/* The function that adds a sum of contiguous floats to a total, for this CPU. */
static ndx_sum ndx_find_sum(int wide) {
    __builtin_cpu_init();
    if (wide && __builtin_cpu_supports("avx512f")) return ndx_add_float64_avx512;
    if (__builtin_cpu_supports("avx2"))
        return wide ? ndx_add_float64_avx2 : ndx_add_float32_avx2;
    return wide ? ndx_add_float64 : ndx_add_float32;
}

#else
typedef void (*ndx_sum)(char *total, const char *x, ptrdiff_t n);
static ndx_sum ndx_find_sum(int wide) { (void)wide; return NULL; }
#endif
#endif

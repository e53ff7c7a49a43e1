/* Sums of floats in NumPy's order, to the last bit, by vectors of the CPU at hand.
 *
 * NumPy halves a stretch until 128 elements or fewer are left (pairwise summation, and
 * halves are multiples of 8), and sums these by 8 accumulators, one after the other. Here
 * the 8 accumulators are lanes of vectors. The processor overlaps leaves by itself. */
#ifndef NDX_PAIRWISE_H
#define NDX_PAIRWISE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <ndx/dtypes.h>
#include "cpu.h"

#if defined(__GNUC__) && defined(__x86_64__)
#include <immintrin.h>
#endif

/* Adds what is computed of a row of contiguous elements to a total; `mean` may be NULL. */
typedef void (*ndx_row_sum)(char *total, const char *x, ptrdiff_t n, const char *mean);

typedef void (*ndx_sum)(char *total, const char *x, ptrdiff_t n);

#if defined(__GNUC__)
#define NDX_LEAF 128
/* Elements: a leaf is too short for the processor to see what comes next. */
#define NDX_AHEAD 1024

/* A wider vector than those of the CPU would lie in memory. */
#define NDX_PAIRWISE(NAME, T, BYTES, TARGET)                                             \
typedef T NAME##_lanes __attribute__((vector_size(BYTES), aligned(sizeof(T)),            \
                                      may_alias));                                       \
                                                                                         \
/* A leaf: 8 elements or more. */                                                        \
TARGET static inline T NAME##_leaf(const T *x, ptrdiff_t n) {                            \
    enum { vectors = 8 * sizeof(T) / BYTES };                                            \
    NAME##_lanes lanes[vectors];                                                         \
    T r[8], sum;                                                                         \
    ptrdiff_t i;                                                                         \
    int k;                                                                               \
    _Pragma("GCC unroll 4") for (k = 0; k < vectors; k++) {                              \
        lanes[k] = ((const NAME##_lanes *)x)[k];                                         \
    }                                                                                    \
    for (i = 8; i < n - n % 8; i += 8) {                                                 \
        _Pragma("GCC unroll 4") for (k = 0; k < vectors; k++) {                          \
            lanes[k] += ((const NAME##_lanes *)(x + i))[k];                              \
        }                                                                                \
        __builtin_prefetch(x + i + NDX_AHEAD);                                           \
    }                                                                                    \
    memcpy(r, lanes, sizeof(r));                                                         \
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

NDX_PAIRWISE(ndx_add_float32, float, 16, )
NDX_PAIRWISE(ndx_add_float64, double, 16, )

#if defined(__x86_64__)
NDX_PAIRWISE(ndx_add_float32_avx2, float, 32, NDX_AVX2)
NDX_PAIRWISE(ndx_add_float64_avx2, double, 32, NDX_AVX2)
NDX_PAIRWISE(ndx_add_float64_avx512, double, 64, __attribute__((target("avx512f"))))
#endif

/* The function that adds a sum of contiguous floats to a total, for this CPU. */
static ndx_sum ndx_find_sum(int wide) {
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (wide && __builtin_cpu_supports("avx512f")) return ndx_add_float64_avx512;
    if (NDX_HAS_AVX2) return wide ? ndx_add_float64_avx2 : ndx_add_float32_avx2;
#endif
    return wide ? ndx_add_float64 : ndx_add_float32;
}
#else
static ndx_sum ndx_find_sum(int wide) { (void)wide; return NULL; }
#endif

#if defined(__GNUC__) && defined(__x86_64__)
/* Sums of the squares of distances from a mean, in the same order. LOAD reads 8 elements
 * as two vectors, V, of the mean's dtype, T. */
#define NDX_SQUARES(NAME, S, T, V, LOAD)                                                 \
NDX_AVX2 static inline T NAME##_leaf(const S *x, ptrdiff_t n, T mean) {                  \
    V r = {0}, q = {0}, v, w;                                                            \
    ptrdiff_t i;                                                                         \
    T sum, d;                                                                            \
    for (i = 0; i < n - n % 8; i += 8) {                                                 \
        LOAD(x + i);                                                                     \
        v -= mean;                                                                       \
        w -= mean;                                                                       \
        r += v * v;                                                                      \
        q += w * w;                                                                      \
    }                                                                                    \
    sum = ((r[0] + r[1]) + (r[2] + r[3])) + ((q[0] + q[1]) + (q[2] + q[3]));             \
    for (; i < n; i++) { d = (T)x[i] - mean; sum += d * d; }                             \
    return sum;                                                                          \
}                                                                                        \
                                                                                         \
NDX_AVX2 static T NAME##_sum(const S *x, ptrdiff_t n, T mean) {                          \
    ptrdiff_t half = n / 2 - n / 2 % 8, i;                                               \
    T sum = (T)-0.0, d;                                                                  \
    if (n > NDX_LEAF) {                                                                  \
        return NAME##_sum(x, half, mean) + NAME##_sum(x + half, n - half, mean);         \
    }                                                                                    \
    if (n >= 8) return NAME##_leaf(x, n, mean);                                          \
    for (i = 0; i < n; i++) { d = (T)x[i] - mean; sum += d * d; }                        \
    return sum;                                                                          \
}                                                                                        \
                                                                                         \
NDX_AVX2 static void NAME(char *total, const char *x, ptrdiff_t n, const char *mean) {   \
    *(T *)total += NAME##_sum((const S *)x, n, *(const T *)mean);                        \
}

#define NDX_FROM_INT32(values) {                                                         \
    __m256i eight = values;                                                              \
    v = _mm256_cvtepi32_pd(_mm256_castsi256_si128(eight));                               \
    w = _mm256_cvtepi32_pd(_mm256_extracti128_si256(eight, 1));                          \
}
#define NDX_FROM_INT8(x) NDX_FROM_INT32(_mm256_cvtepi8_epi32(                            \
    _mm_loadl_epi64((const __m128i *)(x))))
#define NDX_FROM_UINT8(x) NDX_FROM_INT32(_mm256_cvtepu8_epi32(                           \
    _mm_loadl_epi64((const __m128i *)(x))))
#define NDX_FROM_INT16(x) NDX_FROM_INT32(_mm256_cvtepi16_epi32(                          \
    _mm_loadu_si128((const __m128i *)(x))))
#define NDX_FROM_UINT16(x) NDX_FROM_INT32(_mm256_cvtepu16_epi32(                         \
    _mm_loadu_si128((const __m128i *)(x))))
#define NDX_FROM_WIDE(x) NDX_FROM_INT32(_mm256_loadu_si256((const __m256i *)(x)))
#define NDX_FROM_FLOAT32(x) { v = _mm_loadu_ps(x); w = _mm_loadu_ps((x) + 4); }
#define NDX_FROM_FLOAT64(x) { v = _mm256_loadu_pd(x); w = _mm256_loadu_pd((x) + 4); }

NDX_SQUARES(ndx_squares_int8, int8_t, double, __m256d, NDX_FROM_INT8)
NDX_SQUARES(ndx_squares_uint8, uint8_t, double, __m256d, NDX_FROM_UINT8)
NDX_SQUARES(ndx_squares_int16, int16_t, double, __m256d, NDX_FROM_INT16)
NDX_SQUARES(ndx_squares_uint16, uint16_t, double, __m256d, NDX_FROM_UINT16)
NDX_SQUARES(ndx_squares_int32, int32_t, double, __m256d, NDX_FROM_WIDE)
NDX_SQUARES(ndx_squares_float32, float, float, __m128, NDX_FROM_FLOAT32)
NDX_SQUARES(ndx_squares_float64, double, double, __m256d, NDX_FROM_FLOAT64)
#endif

#if defined(__GNUC__)
/* Sums of narrow integers, in parts whose sums P can hold. */
#define NDX_NARROW(NAME, S, P, PART, ONE)                                                \
NDX_AVX2 static int64_t NAME##_sum(const S *x, ptrdiff_t n) {                            \
    int64_t sum = 0;                                                                     \
    ptrdiff_t i, part;                                                                   \
    for (; n > 0; n -= part, x += part) {                                                \
        P some = 0;                                                                      \
        part = n < PART ? n : PART;                                                      \
        for (i = 0; i < part; i++) { some += (P)(ONE); }                                 \
        sum += some;                                                                     \
    }                                                                                    \
    return sum;                                                                          \
}                                                                                        \
NDX_INTEGERS(NAME, S)

#define NDX_INTEGERS(NAME, S)                                                            \
NDX_AVX2 static void NAME(char *total, const char *x, ptrdiff_t n, const char *mean) {   \
    uint64_t sum;                                                                        \
    (void)mean;                                                                          \
    memcpy(&sum, total, 8);                                                              \
    sum += (uint64_t)NAME##_sum((const S *)x, n);                                        \
    memcpy(total, &sum, 8);                                                              \
}                                                                                        \
                                                                                         \
/* In float64 the sum of a few is exact, so its order does not matter. */                \
NDX_AVX2 static double NAME##_halves(const S *x, ptrdiff_t n) {                          \
    ptrdiff_t half = n / 2 - n / 2 % 8;                                                  \
    if (n <= (ptrdiff_t)1 << 20) return (double)NAME##_sum(x, n);                        \
    return NAME##_halves(x, half) + NAME##_halves(x + half, n - half);                   \
}                                                                                        \
                                                                                         \
NDX_AVX2 static void NAME##_float64(char *total, const char *x, ptrdiff_t n,             \
                                    const char *mean) {                                  \
    (void)mean;                                                                          \
    *(double *)total += NAME##_halves((const S *)x, n);                                  \
}

NDX_NARROW(ndx_sum_int16, int16_t, int32_t, 1 << 15, x[i])
NDX_NARROW(ndx_sum_uint16, uint16_t, int32_t, 1 << 15, x[i])
NDX_NARROW(ndx_sum_int32, int32_t, int64_t, 1 << 20, x[i])
NDX_NARROW(ndx_sum_uint32, uint32_t, int64_t, 1 << 20, x[i])

#if defined(__x86_64__)
/* Sums of bytes: VALUE makes unsigned ones of a vector of them, each by BIAS too large. */
#define NDX_BYTES(NAME, S, BIAS, VALUE, ONE)                                             \
NDX_AVX2 static int64_t NAME##_sum(const S *x, ptrdiff_t n) {                            \
    __m256i sums = _mm256_setzero_si256(), v;                                            \
    int64_t sum = -(int64_t)BIAS * (n - n % 32);                                         \
    ptrdiff_t i;                                                                         \
    for (i = 0; i < n - n % 32; i += 32) {                                               \
        v = _mm256_loadu_si256((const __m256i *)(x + i));                                \
        sums = _mm256_add_epi64(sums, _mm256_sad_epu8(VALUE, _mm256_setzero_si256()));   \
    }                                                                                    \
    for (; i < n; i++) { sum += ONE; }                                                   \
    return sum + sums[0] + sums[1] + sums[2] + sums[3];                                  \
}                                                                                        \
NDX_INTEGERS(NAME, S)

NDX_BYTES(ndx_sum_bool, uint8_t, 0, _mm256_min_epu8(v, _mm256_set1_epi8(1)), x[i] != 0)
NDX_BYTES(ndx_sum_int8, int8_t, 128, _mm256_xor_si256(v, _mm256_set1_epi8(-128)), x[i])
NDX_BYTES(ndx_sum_uint8, uint8_t, 0, v, x[i])
#else
NDX_NARROW(ndx_sum_bool, uint8_t, int32_t, 1 << 15, x[i] != 0)
NDX_NARROW(ndx_sum_int8, int8_t, int32_t, 1 << 15, x[i])
NDX_NARROW(ndx_sum_uint8, uint8_t, int32_t, 1 << 15, x[i])
#endif

/* The function that adds elements of a dtype, converted to another, or the squares of
 * their distances from a mean; NULL: there is none for this CPU. */
static ndx_row_sum ndx_find_row_sum(int dtype, int into, int squares) {
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (!NDX_HAS_AVX2) return NULL;
    if (squares) {
        if (into == NDX_FLOAT32) return dtype == NDX_FLOAT32 ? ndx_squares_float32 : NULL;
        if (into != NDX_FLOAT64) return NULL;
        switch (dtype) {
        case NDX_INT8: return ndx_squares_int8;
        case NDX_UINT8: return ndx_squares_uint8;
        case NDX_INT16: return ndx_squares_int16;
        case NDX_UINT16: return ndx_squares_uint16;
        case NDX_INT32: return ndx_squares_int32;
        case NDX_FLOAT64: return ndx_squares_float64;
        default: return NULL;
        }
    }
#else
    if (squares) return NULL;
#endif
    if (into != NDX_INT64 && into != NDX_UINT64 && into != NDX_FLOAT64) return NULL;
    switch (dtype) {
#define NDX_INTEGERS_OF(NAME) return into == NDX_FLOAT64 ? NAME##_float64 : NAME
    case NDX_BOOL: NDX_INTEGERS_OF(ndx_sum_bool);
    case NDX_INT8: NDX_INTEGERS_OF(ndx_sum_int8);
    case NDX_UINT8: NDX_INTEGERS_OF(ndx_sum_uint8);
    case NDX_INT16: NDX_INTEGERS_OF(ndx_sum_int16);
    case NDX_UINT16: NDX_INTEGERS_OF(ndx_sum_uint16);
    case NDX_INT32: NDX_INTEGERS_OF(ndx_sum_int32);
    case NDX_UINT32: NDX_INTEGERS_OF(ndx_sum_uint32);
#undef NDX_INTEGERS_OF
    default: return NULL;
    }
}

#else
static ndx_row_sum ndx_find_row_sum(int dtype, int into, int squares) {
    (void)dtype; (void)into; (void)squares;
    return NULL;
}
#endif
#endif

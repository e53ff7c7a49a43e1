/* Indices that sort: keys and positions packed in 64 bits, which are sorted as integers.
 *
 * A number becomes an unsigned integer of the same order. Its highest bits and, below
 * them, its position along the axis are one integer, so that equal numbers stay in their
 * order. If not all bits of the numbers fit, those that agree in the ones that do are
 * compared once more (`ndx_unpack`). */
#ifndef NDX_PACKED_ARGSORT_H
#define NDX_PACKED_ARGSORT_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <ndx/dtypes.h>
#include "cpu.h"

#define NDX_SIGN ((uint64_t)1 << 63)
/* Up to so many different keys, indices are placed by counting. */
#define NDX_COUNTED 2048
/* Up to so many keys are inserted, one by one, among those before. */
#define NDX_INSERTED 64

static inline uint64_t ndx_key_i32(const char *x) {
    int32_t v;
    memcpy(&v, x, sizeof v);
    return (uint64_t)((int64_t)v) ^ NDX_SIGN;
}

static inline uint64_t ndx_key_i64(const char *x) {
    uint64_t v;
    memcpy(&v, x, sizeof v);
    return v ^ NDX_SIGN;
}

static inline uint64_t ndx_key_u32(const char *x) {
    uint32_t v;
    memcpy(&v, x, sizeof v);
    return v;
}

static inline uint64_t ndx_key_u64(const char *x) {
    uint64_t v;
    memcpy(&v, x, sizeof v);
    return v;
}

/* 0 and -0 are equal. NaN comes last. */
static inline uint64_t ndx_key_f32(const char *x) {
    float v;
    uint32_t bits;
    memcpy(&v, x, sizeof v);
    v += 0.0f;
    memcpy(&bits, &v, sizeof v);
    bits ^= ((uint32_t)0 - (bits >> 31)) | ((uint32_t)1 << 31);
    return v == v ? bits : UINT32_MAX;
}

static inline uint64_t ndx_key_f64(const char *x) {
    double v;
    uint64_t bits;
    memcpy(&v, x, sizeof v);
    v += 0.0;
    memcpy(&bits, &v, sizeof v);
    bits ^= ((uint64_t)0 - (bits >> 63)) | NDX_SIGN;
    return v == v ? bits : UINT64_MAX;
}

/* Keys of a whole array: `low` is subtracted, and they are shifted to the left. */
typedef struct {
    uint64_t low, high;          /* of all keys */
    int shift;
    int bits;                    /* the lowest ones hold the position */
    ptrdiff_t budget;            /* moves of `ndx_unpack` until it gives up */
} ndx_ranking;

#define NDX_RANKING(name)                                                               \
static void ndx_range_##name(ndx_ranking *job, const char *x, ptrdiff_t step,           \
                             ptrdiff_t n) {                                             \
    uint64_t low = job->low, high = job->high;                                          \
    ptrdiff_t i;                                                                        \
    for (i = 0; i < n; i++, x += step) {                                                \
        uint64_t key = ndx_key_##name(x);                                               \
        low = key < low ? key : low;                                                    \
        high = key > high ? key : high;                                                 \
    }                                                                                   \
    job->low = low;                                                                     \
    job->high = high;                                                                   \
}                                                                                       \
static void ndx_insert_##name(const char *x, ptrdiff_t step, char *out,                 \
                              ptrdiff_t out_step, ptrdiff_t n) {                        \
    uint64_t keys[NDX_INSERTED];                                                        \
    unsigned char places[NDX_INSERTED];                                                 \
    ptrdiff_t i, k;                                                                     \
    for (i = 0; i < n; i++, x += step) {                                                \
        const uint64_t key = ndx_key_##name(x);                                         \
        for (k = i; k > 0 && keys[k - 1] > key; k--) {                                  \
            keys[k] = keys[k - 1];                                                      \
            places[k] = places[k - 1];                                                  \
        }                                                                               \
        keys[k] = key;                                                                  \
        places[k] = (unsigned char)i;                                                   \
    }                                                                                   \
    for (i = 0; i < n; i++, out += out_step)                                            \
        *(int64_t *)out = places[i];                                                    \
}                                                                                       \
static void ndx_pack_##name(const ndx_ranking *job, const char *x, ptrdiff_t step,      \
                            char *out, ptrdiff_t out_step, ptrdiff_t n) {               \
    const uint64_t mask = ((uint64_t)1 << job->bits) - 1;                               \
    ptrdiff_t i;                                                                        \
    for (i = 0; i < n; i++, x += step, out += out_step) {                               \
        uint64_t key = (ndx_key_##name(x) - job->low) << job->shift;                    \
        /* They are sorted as signed integers. */                                       \
        *(uint64_t *)out = ((key & ~mask) | (uint64_t)i) ^ NDX_SIGN;                    \
    }                                                                                   \
}                                                                                       \
/* Write the positions of few different keys. Another thread may change these            \
 * meanwhile: then some positions are missing. */                                       \
static void ndx_place_##name(const ndx_ranking *job, const char *x, ptrdiff_t step,     \
                             char *out, ptrdiff_t out_step, ptrdiff_t n) {              \
    ptrdiff_t places[NDX_COUNTED + 1], i, place;                                        \
    const uint64_t most = job->high - job->low;                                         \
    const char *at = x;                                                                 \
    uint64_t k;                                                                         \
    memset(places, 0, (size_t)(most + 2) * sizeof(ptrdiff_t));                          \
    for (i = 0; i < n; i++, at += step) {                                               \
        k = ndx_key_##name(at) - job->low;                                              \
        places[(k < most ? k : most) + 1]++;                                            \
    }                                                                                   \
    for (k = 1; k <= most; k++)                                                         \
        places[k] += places[k - 1];                                                     \
    for (i = 0; i < n; i++, x += step) {                                                \
        k = ndx_key_##name(x) - job->low;                                               \
        place = places[k < most ? k : most]++;                                          \
        if (place < n)                                                                  \
            *(int64_t *)(out + place * out_step) = i;                                   \
    }                                                                                   \
}                                                                                       \
/* Make the sorted integers positions; put those right whose keys don't fit. */         \
static void ndx_unpack_##name(ndx_ranking *job, const char *x, ptrdiff_t step,          \
                              char *out, ptrdiff_t out_step, ptrdiff_t n) {             \
    const uint64_t mask = ((uint64_t)1 << job->bits) - 1;                               \
    uint64_t last = 0;                                                                  \
    ptrdiff_t i, k;                                                                     \
    if (job->shift >= job->bits) {                                                      \
        for (i = 0; i < n; i++, out += out_step)                                        \
            *(uint64_t *)out &= mask;                                                   \
        return;                                                                         \
    }                                                                                   \
    for (i = 0; i < n; i++) {                                                           \
        uint64_t *at = (uint64_t *)(out + i * out_step);                                \
        const uint64_t packed = *at, index = packed & mask;                             \
        *at = index;                                                                    \
        if (i && !((packed ^ last) & ~mask)) {                                          \
            const uint64_t key = ndx_key_##name(x + (ptrdiff_t)index * step);           \
            for (k = i; k > 0 && job->budget > 0; k--) {                                \
                uint64_t *to = (uint64_t *)(out + k * out_step);                        \
                const uint64_t before = *(uint64_t *)(out + (k - 1) * out_step);        \
                if (ndx_key_##name(x + (ptrdiff_t)before * step) <= key)                \
                    break;                                                              \
                *to = before;                                                           \
                *(uint64_t *)(out + (k - 1) * out_step) = index;                        \
                job->budget--;                                                          \
            }                                                                           \
        }                                                                               \
        last = packed;                                                                  \
    }                                                                                   \
}

NDX_RANKING(i32)
NDX_RANKING(i64)
NDX_RANKING(u32)
NDX_RANKING(u64)
NDX_RANKING(f32)
NDX_RANKING(f64)

#define NDX_RANK_CALL(F, ARGS)                                                          \
    switch (dtype) {                                                                    \
    case NDX_INT32: F##_i32 ARGS; break;                                                 \
    case NDX_INT64: F##_i64 ARGS; break;                                                 \
    case NDX_UINT32: F##_u32 ARGS; break;                                                \
    case NDX_UINT64: F##_u64 ARGS; break;                                                \
    case NDX_FLOAT32: F##_f32 ARGS; break;                                               \
    case NDX_FLOAT64: F##_f64 ARGS; break;                                               \
    }

static inline void ndx_range(ndx_ranking *job, const char *x, ptrdiff_t step,
                             ptrdiff_t n, int dtype) {
    NDX_RANK_CALL(ndx_range, (job, x, step, n))
}

/* Write the positions that sort at most `NDX_INSERTED` numbers. */
static inline void ndx_insert(const char *x, ptrdiff_t step, char *out,
                              ptrdiff_t out_step, ptrdiff_t n, int dtype) {
    NDX_RANK_CALL(ndx_insert, (x, step, out, out_step, n))
}

static inline int ndx_is_counted(const ndx_ranking *job, ptrdiff_t n) {
    const uint64_t most = job->high - job->low;
    return most < NDX_COUNTED && most <= (uint64_t)n;
}

static inline void ndx_place(const ndx_ranking *job, const char *x, ptrdiff_t step,
                             char *out, ptrdiff_t out_step, ptrdiff_t n, int dtype) {
    NDX_RANK_CALL(ndx_place, (job, x, step, out, out_step, n))
}

static inline void ndx_pack(const ndx_ranking *job, const char *x, ptrdiff_t step,
                            char *out, ptrdiff_t out_step, ptrdiff_t n, int dtype) {
    NDX_RANK_CALL(ndx_pack, (job, x, step, out, out_step, n))
}

static inline void ndx_unpack(ndx_ranking *job, const char *x, ptrdiff_t step, char *out,
                              ptrdiff_t out_step, ptrdiff_t n, int dtype) {
    NDX_RANK_CALL(ndx_unpack, (job, x, step, out, out_step, n))
}
/* Whether floats, as bits, have a zero of the negative sign, or a NaN. */
#define NDX_DIFFER(name, U, I)                                                          \
static int ndx_differ_##name(const U *x, ptrdiff_t n, I infinity) {                     \
    const U sign = (U)1 << (8 * sizeof(U) - 1);                                         \
    I found = 0;                                                                        \
    ptrdiff_t i;                                                                        \
    for (i = 0; i < n; i++)                                                             \
        found |= (I)((x[i] == sign) | ((I)(x[i] & ~sign) > infinity));                  \
    return found != 0;                                                                  \
}                                                                                       \
NDX_AVX2 static int ndx_differ_##name##_avx2(const U *x, ptrdiff_t n, I infinity) {     \
    const U sign = (U)1 << (8 * sizeof(U) - 1);                                         \
    I found = 0;                                                                        \
    ptrdiff_t i;                                                                        \
    for (i = 0; i < n; i++)                                                             \
        found |= (I)((x[i] == sign) | ((I)(x[i] & ~sign) > infinity));                  \
    return found != 0;                                                                  \
}

NDX_DIFFER(16, uint16_t, int16_t)
NDX_DIFFER(32, uint32_t, int32_t)
NDX_DIFFER(64, uint64_t, int64_t)

static inline int ndx_differ(const char *x, ptrdiff_t n, ptrdiff_t itemsize) {
    int found;
    if (itemsize == 2)
        found = NDX_BEST(ndx_differ_16, n, ((const uint16_t *)x, n, (int16_t)0x1F << 10));
    else if (itemsize == 8)
        found = NDX_BEST(ndx_differ_64, n, ((const uint64_t *)x, n, (int64_t)0x7FF << 52));
    else
        found = NDX_BEST(ndx_differ_32, n, ((const uint32_t *)x, n, (int32_t)0xFF << 23));
    return found;
}
#endif

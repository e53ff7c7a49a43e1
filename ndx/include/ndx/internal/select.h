/* Elements selected by masks, by index arrays and by bounds, without branches that depend
 * on the data: a random mask costs a misprediction for every second element.
 *
 * 64 elements of a mask become the bits of a word, and each bit that is set is one step of
 * a loop. Nothing is written for an element that is not selected: another thread may write
 * to that one. */
#ifndef NDX_SELECT_H
#define NDX_SELECT_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "arithmetic.h"
#include "cpu.h"
#include <ndx/dtypes.h>
#include "fill.h"

typedef struct { float real, imag; } ndx_complex64;
typedef struct { double real, imag; } ndx_complex128;

/* ---------------------------------------------------------------- truth */

/* Write whether elements are not zero, as bytes; count those that are not. */
#define NDX_TRUTH_BODY(TEST) {                                                           \
    size_t i;                                                                            \
    if (step == (ptrdiff_t)sizeof(T)) {                                                  \
        for (i = 0; i < n; i++) { T v = ((const T *)x)[i]; out[i] = TEST; }              \
    } else {                                                                             \
        for (i = 0; i < n; i++, x += step) { T v = *(const T *)x; out[i] = TEST; }       \
    }                                                                                    \
}
#define NDX_COUNT_BODY(C, TEST) {                                                        \
    size_t total = 0, i, part;                                                           \
    for (; n; n -= part, x += (ptrdiff_t)part * step) {                                  \
        C count = 0;                                                                     \
        part = n < 32767 ? n : 32767;                                                    \
        if (step == (ptrdiff_t)sizeof(T)) {                                              \
            for (i = 0; i < part; i++) {                                                 \
                T v = ((const T *)x)[i];                                                 \
                count = (C)(count + (TEST));                                             \
            }                                                                            \
        } else {                                                                         \
            for (i = 0; i < part; i++) {                                                 \
                T v = *(const T *)(x + (ptrdiff_t)i * step);                             \
                count = (C)(count + (TEST));                                             \
            }                                                                            \
        }                                                                                \
        total += (size_t)count;                                                          \
    }                                                                                    \
    *result = total;                                                                     \
}
#define NDX_TRUTH(name, U, C, TEST)                                                      \
static inline void ndx_truth_##name(const char *x, ptrdiff_t step, size_t n,             \
                                    uint8_t *out) {                                      \
    typedef U T;                                                                         \
    NDX_TRUTH_BODY(TEST)                                                                 \
}                                                                                        \
NDX_AVX2 static void ndx_truth_##name##_avx2(const char *x, ptrdiff_t step, size_t n,    \
                                             uint8_t *out) {                             \
    typedef U T;                                                                         \
    NDX_TRUTH_BODY(TEST)                                                                 \
}                                                                                        \
static void ndx_count_##name(const char *x, ptrdiff_t step, size_t n, size_t *result) {  \
    typedef U T;                                                                         \
    NDX_COUNT_BODY(C, TEST)                                                              \
}                                                                                        \
NDX_AVX2 static void ndx_count_##name##_avx2(const char *x, ptrdiff_t step, size_t n,    \
                                             size_t *result) {                           \
    typedef U T;                                                                         \
    NDX_COUNT_BODY(C, TEST)                                                              \
}

NDX_TRUTH(16, uint16_t, uint16_t, v != 0)
NDX_TRUTH(32, uint32_t, uint32_t, v != 0)
NDX_TRUTH(64, uint64_t, uint64_t, v != 0)
NDX_TRUTH(float16, uint16_t, uint16_t, (v & 0x7fff) != 0)
NDX_TRUTH(float32, float, uint32_t, v != 0.0f)
NDX_TRUTH(float64, double, uint64_t, v != 0.0)
NDX_TRUTH(complex64, ndx_complex64, uint32_t, (v.real != 0.0f) | (v.imag != 0.0f))
NDX_TRUTH(complex128, ndx_complex128, uint64_t, (v.real != 0.0) | (v.imag != 0.0))

static inline void ndx_truth_8(const char *x, ptrdiff_t step, size_t n, uint8_t *out) {
    size_t i;
    for (i = 0; i < n; i++, x += step) { out[i] = *x != 0; }
}
#define ndx_truth_8_avx2 ndx_truth_8
#define ndx_count_8_avx2 ndx_count_8

static inline void ndx_count_8(const char *x, ptrdiff_t step, size_t n, size_t *result) {
    size_t total = 0, i, part;
#if defined(__SSE2__)
    const __m128i zero = _mm_setzero_si128();
    if (step == 1) {
        while (n >= 32) {
            __m128i zeros = zero, more = zero;
            /* A byte of the counters overflows after 255 steps. */
            size_t steps = n / 32 < 255 ? n / 32 : 255;
            uint64_t sums[2];
            for (i = 0; i < steps; i++, x += 32) {
                zeros = _mm_sub_epi8(zeros, _mm_cmpeq_epi8(
                    _mm_loadu_si128((const __m128i *)x), zero));
                more = _mm_sub_epi8(more, _mm_cmpeq_epi8(
                    _mm_loadu_si128((const __m128i *)(x + 16)), zero));
            }
            zeros = _mm_add_epi64(_mm_sad_epu8(zeros, zero), _mm_sad_epu8(more, zero));
            _mm_storeu_si128((__m128i *)sums, zeros);
            total += steps * 32 - (size_t)(sums[0] + sums[1]);
            n -= steps * 32;
        }
    }
#endif
    for (; n; n -= part, x += (ptrdiff_t)part * step) {
        uint8_t count = 0;
        part = n < 255 ? n : 255;
        for (i = 0; i < part; i++) {
            count = (uint8_t)(count + (x[(ptrdiff_t)i * step] != 0));
        }
        total += count;
    }
    *result = total;
}

/* A call by dtype. */
NDX_DTYPES_ARE(14);
#define NDX_BY_DTYPE(dtype, F, n, ARGS)                                                  \
    switch (dtype) {                                                                     \
    case NDX_BOOL: case NDX_INT8: case NDX_UINT8: F##_8 ARGS; break;                     \
    case NDX_INT16: case NDX_UINT16: NDX_CALL_BEST(F##_16, n, ARGS); break;              \
    case NDX_INT32: case NDX_UINT32: NDX_CALL_BEST(F##_32, n, ARGS); break;              \
    case NDX_INT64: case NDX_UINT64: NDX_CALL_BEST(F##_64, n, ARGS); break;              \
    case NDX_FLOAT16: NDX_CALL_BEST(F##_float16, n, ARGS); break;                        \
    case NDX_FLOAT32: NDX_CALL_BEST(F##_float32, n, ARGS); break;                        \
    case NDX_FLOAT64: NDX_CALL_BEST(F##_float64, n, ARGS); break;                        \
    case NDX_COMPLEX64: NDX_CALL_BEST(F##_complex64, n, ARGS); break;                    \
    case NDX_COMPLEX128: NDX_CALL_BEST(F##_complex128, n, ARGS); break;                  \
    }

static inline size_t ndx_count(const char *x, ptrdiff_t step, size_t n, int dtype) {
    size_t count = 0;
    NDX_BY_DTYPE(dtype, ndx_count, n, (x, step, n, &count))
    return count;
}

/* The truth of at most 64 elements as bits, the first one lowest. */
static inline uint64_t ndx_bits(const char *x, ptrdiff_t step, size_t n, int dtype) {
    uint8_t truth[64];
    const uint8_t *bytes = truth;
    uint64_t bits = 0;
    int i;
    if (dtype == NDX_BOOL && step != 1) {
        while (n--) { bits = 2 * bits + (x[(ptrdiff_t)n * step] != 0); }
        return bits;
    }
    if (n == 64 && step == 1
        && (dtype == NDX_BOOL || dtype == NDX_INT8 || dtype == NDX_UINT8)) {
        bytes = (const uint8_t *)x;
    } else {
        if (n < 64) { memset(truth, 0, 64); }
        NDX_BY_DTYPE(dtype, ndx_truth, n, (x, step, n, truth))
    }
#if defined(__SSE2__)
    for (i = 0; i < 4; i++) {
        __m128i part = _mm_loadu_si128((const __m128i *)(bytes + 16 * i));
        part = _mm_cmpeq_epi8(part, _mm_setzero_si128());
        bits |= (uint64_t)(unsigned)_mm_movemask_epi8(part) << (16 * i);
    }
    return ~bits;
#else
    /* Eight bytes at a time: each becomes 0 or 1, and a product brings them together. */
    for (i = 0; i < 64; i += 8) {
        const uint64_t low = 0x7f7f7f7f7f7f7f7fu;
        uint64_t part;
        memcpy(&part, bytes + i, 8);
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
        part = __builtin_bswap64(part);
#endif
        part = (((part & low) + low) | part) >> 7 & 0x0101010101010101u;
        bits |= (part * 0x0102040810204080u >> 56) << i;
    }
    return bits;
#endif
}

/* ---------------------------------------------------------------- masks */

/* Each function reads `n` bytes of a mask, and moves at most `room` items (another thread
 * may have changed the mask since its elements were counted). It returns how many. */
#define NDX_FOR_EACH_TRUE NDX_FOR_EACH_TRUE_OR(;)
#define NDX_FOR_EACH_TRUE_OR(ALL)                                                        \
    for (start = 0; start < n; start += 64) {                                            \
        size_t length = n - start < 64 ? n - start : 64;                                 \
        uint64_t bits = ndx_bits(mask + (ptrdiff_t)start * mask_step, mask_step,         \
                                 length, 0);                                             \
        char *at = x + (ptrdiff_t)start * step;                                          \
        ALL                                                                              \
        for (; bits; bits &= bits - 1) {                                                 \
            char *item = at + ndx_lowest_bit(bits) * step;                               \
            if (done == room) { return done; }

/* Where all of 64 elements are selected, they are copied at once. */
#define NDX_COPY_64(T)                                                                   \
    if (!~bits && step == (ptrdiff_t)sizeof(T) && room - done >= 64) {                   \
        memcpy((T *)out + done, at, 64 * sizeof(T));                                     \
        done += 64;                                                                      \
        continue;                                                                        \
    }

#define NDX_MASKED(name, T)                                                              \
static inline size_t ndx_compress_##name(                                                \
        char *out, size_t room, char *x, ptrdiff_t step, const char *mask,               \
        ptrdiff_t mask_step, size_t n) {                                                 \
    size_t done = 0, start;                                                              \
    NDX_FOR_EACH_TRUE_OR(NDX_COPY_64(T)) ((T *)out)[done++] = *(const T *)item; } }      \
    return done;                                                                         \
}                                                                                        \
static inline size_t ndx_expand_##name(                                                  \
        const char *values, size_t room, char *x, ptrdiff_t step, const char *mask,      \
        ptrdiff_t mask_step, size_t n) {                                                 \
    size_t done = 0, start;                                                              \
    NDX_FOR_EACH_TRUE *(T *)item = ((const T *)values)[done++]; } }                      \
    return done;                                                                         \
}                                                                                        \
static inline size_t ndx_put_##name(                                                     \
        const char *value, size_t room, char *x, ptrdiff_t step, const char *mask,       \
        ptrdiff_t mask_step, size_t n) {                                                 \
    size_t done = 0, start;                                                              \
    const T v = *(const T *)value;                                                       \
    NDX_FOR_EACH_TRUE *(T *)item = v; done++; } }                                        \
    return done;                                                                         \
}

NDX_MASKED(1, uint8_t)
NDX_MASKED(2, uint16_t)
NDX_MASKED(4, uint32_t)
NDX_MASKED(8, uint64_t)
NDX_MASKED(16, ndx_complex128)

static inline size_t ndx_compress(char *out, size_t room, char *x, ptrdiff_t step,
                                  const char *mask, ptrdiff_t mask_step, size_t n,
                                  size_t nbytes) {
    size_t done = 0, start;
    switch (nbytes) {
    case 1: return ndx_compress_1(out, room, x, step, mask, mask_step, n);
    case 2: return ndx_compress_2(out, room, x, step, mask, mask_step, n);
    case 4: return ndx_compress_4(out, room, x, step, mask, mask_step, n);
    case 8: return ndx_compress_8(out, room, x, step, mask, mask_step, n);
    }
    NDX_FOR_EACH_TRUE memcpy(out + done++ * nbytes, item, nbytes); } }
    return done;
}

static inline size_t ndx_expand(const char *values, size_t room, char *x, ptrdiff_t step,
                                const char *mask, ptrdiff_t mask_step, size_t n,
                                size_t nbytes) {
    size_t done = 0, start;
    switch (nbytes) {
    case 1: return ndx_expand_1(values, room, x, step, mask, mask_step, n);
    case 2: return ndx_expand_2(values, room, x, step, mask, mask_step, n);
    case 4: return ndx_expand_4(values, room, x, step, mask, mask_step, n);
    case 8: return ndx_expand_8(values, room, x, step, mask, mask_step, n);
    }
    NDX_FOR_EACH_TRUE memcpy(item, values + done++ * nbytes, nbytes); } }
    return done;
}

/* Write one element of `itemsize` bytes to all elements of the selected items. */
static inline size_t ndx_put(const char *value, size_t room, char *x, ptrdiff_t step,
                             const char *mask, ptrdiff_t mask_step, size_t n,
                             size_t nbytes, size_t itemsize) {
    size_t done = 0, start;
    if (nbytes == itemsize) {
        switch (nbytes) {
        case 1: return ndx_put_1(value, room, x, step, mask, mask_step, n);
        case 2: return ndx_put_2(value, room, x, step, mask, mask_step, n);
        case 4: return ndx_put_4(value, room, x, step, mask, mask_step, n);
        case 8: return ndx_put_8(value, room, x, step, mask, mask_step, n);
        default: return ndx_put_16(value, room, x, step, mask, mask_step, n);
        }
    }
    NDX_FOR_EACH_TRUE ndx_fill(item, nbytes, value, itemsize); done++; } }
    return done;
}

/* Write the positions of elements that are not zero; the first one's is `first`. */
static inline size_t ndx_positions(int64_t *out, size_t room, const char *x,
                                   ptrdiff_t step, size_t n, int dtype,
                                   int64_t first) {
    size_t done = 0, start;
    for (start = 0; start < n; start += 64) {
        size_t length = n - start < 64 ? n - start : 64;
        uint64_t bits = ndx_bits(x + (ptrdiff_t)start * step, step, length, dtype);
        if (!~bits && room - done >= 64) {
            int i;
            for (i = 0; i < 64; i++) { out[done + i] = first + (int64_t)start + i; }
            done += 64;
            continue;
        }
        for (; bits; bits &= bits - 1) {
            if (done == room) { return done; }
            out[done++] = first + (int64_t)start + ndx_lowest_bit(bits);
        }
    }
    return done;
}

/* ---------------------------------------------------------------- index arrays */

/* Replace negative indices; return whether one is out of bounds. */
#define NDX_WRAP                                                                         \
    for (i = 0; i < n; i++) {                                                            \
        int64_t at = ((const int64_t *)index)[i];                                        \
        at += length & (at >> 63);                                                       \
        bad |= at | (length - 1 - at);                                                   \
        offsets[i] = (ptrdiff_t)at;                                                      \
    }

NDX_AVX2 static int ndx_wrap_avx2(ptrdiff_t *offsets, const char *index, size_t n,
                                  int64_t length) {
    int64_t bad = 0;
    size_t i;
    NDX_WRAP
    return bad < 0;
}

static inline int ndx_wrap(ptrdiff_t *offsets, const char *index, size_t n,
                           int64_t length) {
    int64_t bad = 0;
    size_t i;
    if (n >= 16 && NDX_HAS_AVX2) { return ndx_wrap_avx2(offsets, index, n, length); }
    NDX_WRAP
    return bad < 0;
}

/* Set the offsets of the elements that indices select along an axis, or add to them.
 * Return whether an index is out of bounds. */
#define NDX_OFFSETS(I)                                                                   \
    for (i = 0; i < n; i++) {                                                            \
        int64_t at = (int64_t)*(const I *)(index + (ptrdiff_t)i * index_step);           \
        at += length & -(int64_t)(at < 0);                                               \
        bad |= (uint64_t)at >= (uint64_t)length;                                         \
        offsets[i] = (ptrdiff_t)((uint64_t)at * (uint64_t)stride                         \
                                 + (more ? (uint64_t)offsets[i] : 0));                   \
    }                                                                                    \
    break;

static inline int ndx_offsets(ptrdiff_t *offsets, const char *index, ptrdiff_t index_step,
                              size_t n, int dtype, int64_t length, ptrdiff_t stride,
                              int more) {
    size_t i;
    int bad = 0;
    switch (dtype) {
    case NDX_INT8: NDX_OFFSETS(int8_t)
    case NDX_INT16: NDX_OFFSETS(int16_t)
    case NDX_INT32: NDX_OFFSETS(int32_t)
    case NDX_UINT8: NDX_OFFSETS(uint8_t)
    case NDX_UINT16: NDX_OFFSETS(uint16_t)
    case NDX_UINT32: NDX_OFFSETS(uint32_t)
    /* As in NumPy, uint64 is taken as int64. */
    case NDX_INT64: case NDX_UINT64:
        if (index_step == 8 && stride == 1 && !more) {
            return ndx_wrap(offsets, index, n, length);
        }
        NDX_OFFSETS(int64_t)
    }
    return bad;
}

/* Offsets are in bytes or, if `unit` is not 1, in elements of that many bytes. */
#define NDX_GATHER(T) {                                                                  \
        const T *elements = (const T *)x;                                                \
        T *to = (T *)out;                                                                \
        if (unit == sizeof(T)) {                                                         \
            for (i = 0; i + 4 <= n; i += 4) {                                            \
                T a = elements[offsets[i]], b = elements[offsets[i + 1]];                \
                T c = elements[offsets[i + 2]], d = elements[offsets[i + 3]];            \
                to[i] = a; to[i + 1] = b; to[i + 2] = c; to[i + 3] = d;                  \
            }                                                                            \
            for (; i < n; i++) { to[i] = elements[offsets[i]]; }                         \
            break;                                                                       \
        }                                                                                \
        for (i = 0; i < n; i++) { to[i] = *(const T *)(x + offsets[i]); }                \
        break;                                                                           \
    }
#define NDX_SCATTER(T) {                                                                 \
        const T *from = (const T *)values;                                               \
        if (unit == sizeof(T)) {                                                         \
            for (i = 0; i + 2 <= n; i += 2) {                                            \
                ptrdiff_t first = offsets[i], second = offsets[i + 1];                   \
                T a = from[i], b = from[i + 1];                                          \
                ((T *)x)[first] = a; ((T *)x)[second] = b;                               \
            }                                                                            \
            for (; i < n; i++) { ((T *)x)[offsets[i]] = from[i]; }                       \
            break;                                                                       \
        }                                                                                \
        for (i = 0; i < n; i++) { *(T *)(x + offsets[i]) = from[i]; }                    \
        break;                                                                           \
    }
#define NDX_SCATTER_ONE(T) {                                                             \
        const T v = *(const T *)value;                                                   \
        if (unit == sizeof(T)) {                                                         \
            for (i = 0; i + 4 <= n; i += 4) {                                            \
                ptrdiff_t a = offsets[i], b = offsets[i + 1];                            \
                ptrdiff_t c = offsets[i + 2], d = offsets[i + 3];                        \
                ((T *)x)[a] = v; ((T *)x)[b] = v; ((T *)x)[c] = v; ((T *)x)[d] = v;      \
            }                                                                            \
            for (; i < n; i++) { ((T *)x)[offsets[i]] = v; }                             \
            break;                                                                       \
        }                                                                                \
        for (i = 0; i < n; i++) { *(T *)(x + offsets[i]) = v; }                          \
        break;                                                                           \
    }

static inline void ndx_gather(char *out, const char *x, const ptrdiff_t *offsets, size_t n,
                              size_t nbytes, size_t unit) {
    size_t i;
    switch (nbytes) {
    case 1: NDX_GATHER(uint8_t)
    case 2: NDX_GATHER(uint16_t)
    case 4: NDX_GATHER(uint32_t)
    case 8: NDX_GATHER(uint64_t)
    default:
        for (i = 0; i < n; i++) { memcpy(out + i * nbytes, x + offsets[i], nbytes); }
    }
}

static inline void ndx_scatter(char *x, const char *values, const ptrdiff_t *offsets,
                               size_t n, size_t nbytes, size_t unit) {
    size_t i;
    switch (nbytes) {
    case 1: NDX_SCATTER(uint8_t)
    case 2: NDX_SCATTER(uint16_t)
    case 4: NDX_SCATTER(uint32_t)
    case 8: NDX_SCATTER(uint64_t)
    default:
        for (i = 0; i < n; i++) { memcpy(x + offsets[i], values + i * nbytes, nbytes); }
    }
}

static inline void ndx_scatter_one(char *x, const char *value, const ptrdiff_t *offsets,
                                   size_t n, size_t nbytes, size_t itemsize,
                                   size_t unit) {
    char item[16];
    size_t i;
    memcpy(item, value, itemsize);
    value = item;
    switch (nbytes == itemsize ? nbytes : 0) {
    case 1: NDX_SCATTER_ONE(uint8_t)
    case 2: NDX_SCATTER_ONE(uint16_t)
    case 4: NDX_SCATTER_ONE(uint32_t)
    case 8: NDX_SCATTER_ONE(uint64_t)
    default:
        for (i = 0; i < n; i++) {
            ndx_fill(x + offsets[i] * (ptrdiff_t)unit, nbytes, value, itemsize);
        }
    }
}
#endif

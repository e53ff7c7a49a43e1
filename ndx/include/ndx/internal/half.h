/* Elements of float16 as their bits, made from floats and made into floats. Numbers are
 * rounded to the nearest one, to even bits, and NaN keep the highest of their bits, as in
 * NumPy. */
#ifndef NDX_HALF_H
#define NDX_HALF_H

#include <stdint.h>
#include <string.h>

#if defined(__GNUC__) && defined(__aarch64__)
/* The CPU's own conversions, which NumPy calls there, too: they make NaN quiet. */
#define NDX_OF_HALF(name, F)                                                             \
static inline F ndx_##name##_of_half(uint16_t half) {                                    \
    __fp16 value;                                                                        \
    memcpy(&value, &half, sizeof(value));                                                \
    return (F)value;                                                                     \
}                                                                                        \
                                                                                         \
static inline uint16_t ndx_half_of_##name(F value) {                                     \
    const __fp16 rounded = (__fp16)value;                                                \
    uint16_t half;                                                                       \
    memcpy(&half, &rounded, sizeof(half));                                               \
    return half;                                                                         \
}

NDX_OF_HALF(float, float)
NDX_OF_HALF(double, double)
#else
/* Bits of two kinds, selected by a mask, so that a loop is vectorised; or by the compiler,
 * which is faster where it is not. */
#define NDX_BY_MASK(T, condition, a, b) ((b) ^ (((a) ^ (b)) & ((T)0 - (T)(condition))))
#define NDX_BY_CHOICE(T, condition, a, b) ((condition) ? (a) : (b))

/* T has the bits of F: an exponent from bit MANTISSA on, with 0 at BIAS. */
#define NDX_OF_HALF(name, F, T, MANTISSA, BIAS, SELECT)                                  \
static inline F ndx_##name##_of_half(uint16_t half) {                                    \
    const T rest = (T)(half & 0x7fff) << (MANTISSA - 10);                                \
    const T infinity = (T)(2 * BIAS + 1) << MANTISSA;                                    \
    const T normal = rest + ((T)(BIAS - 15) << MANTISSA);                                \
    const F tiny = (F)(half & 0x3ff) * (F)5.9604644775390625e-8; /* 2**-24 */            \
    T bits;                                                                              \
    F value;                                                                             \
    memcpy(&bits, &tiny, sizeof(bits));                                                  \
    bits = SELECT(T, rest >= (T)1 << MANTISSA, normal, bits);                            \
    bits = SELECT(T, rest >= (T)31 << MANTISSA, rest | infinity, bits);                  \
    bits |= (T)(half & 0x8000) << (8 * (int)sizeof(T) - 16);                             \
    memcpy(&value, &bits, sizeof(value));                                                \
    return value;                                                                        \
}

NDX_OF_HALF(float, float, uint32_t, 23, 127, NDX_BY_MASK)
NDX_OF_HALF(double, double, uint64_t, 52, 1023, NDX_BY_CHOICE)

/* The sum of a number and MAGIC, 2**(MANTISSA - 24), ends with the last bit that a tiny
 * number has. */
#define NDX_HALF_OF(name, F, T, MANTISSA, BIAS, MAGIC)                                   \
static inline uint16_t ndx_half_of_##name(F value) {                                     \
    const F magic = MAGIC;                                                               \
    const int cut = MANTISSA - 10, width = 8 * (int)sizeof(T);                           \
    const T infinity = (T)(2 * BIAS + 1) << MANTISSA;                                    \
    T bits, rest, tiny, base, half, kept;                                                \
    F sum;                                                                               \
    memcpy(&bits, &value, sizeof(bits));                                                 \
    rest = bits & (((T)1 << (width - 1)) - 1);                                           \
    memcpy(&sum, &rest, sizeof(sum));                                                    \
    sum += magic;                                                                        \
    memcpy(&tiny, &sum, sizeof(tiny));                                                   \
    memcpy(&base, &magic, sizeof(base));                                                 \
    half = (rest - ((T)(BIAS - 15) << MANTISSA) + (((T)1 << (cut - 1)) - 1)              \
            + ((rest >> cut) & 1)) >> cut;                                               \
    kept = 0x7c00 | ((rest >> cut) & 0x3ff);                                             \
    kept += kept == 0x7c00;                                                              \
    half = rest < (T)(BIAS - 14) << MANTISSA ? tiny - base : half;                       \
    half = rest < (T)(BIAS + 16) << MANTISSA ? half : 0x7c00;                            \
    half = rest > infinity ? kept : half;                                                \
    return (uint16_t)(half | (bits >> (width - 16) & 0x8000));                           \
}

NDX_HALF_OF(float, float, uint32_t, 23, 127, 0.5f)
NDX_HALF_OF(double, double, uint64_t, 52, 1023, 268435456.0)
#endif

#endif

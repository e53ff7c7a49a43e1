/* Running sums and products of lines of numbers: out[i] = out[i - 1] op x[i], computed
 * in order, as NumPy's loops do. Those read out[i - 1] back from memory. Here it stays in
 * a register, and four lines together hide the latency of an operation. */
#ifndef NDX_ACCUMULATE_H
#define NDX_ACCUMULATE_H

#include <stddef.h>
#include <stdint.h>

/* `step` is from element to element of a line, `across` from line to line, in bytes.
 * Lines have one element or more. */
typedef void (*ndx_accumulate)(char *out, ptrdiff_t out_step, ptrdiff_t out_across,
                               const char *x, ptrdiff_t step, ptrdiff_t across,
                               ptrdiff_t count, ptrdiff_t lines);

/* Integers are computed in `wide`, which is unsigned, so that they wrap around. */
#define NDX_ACCUMULATE(name, type, combine) \
static void name(char *out, ptrdiff_t out_step, ptrdiff_t out_across, \
                 const char *x, ptrdiff_t step, ptrdiff_t across, \
                 ptrdiff_t count, ptrdiff_t lines) { \
    for (; lines >= 4; lines -= 4, x += 4 * across, out += 4 * out_across) { \
        const char *from = x; \
        char *to = out; \
        type a = *(const type *)from, b = *(const type *)(from + across); \
        type c = *(const type *)(from + 2 * across); \
        type d = *(const type *)(from + 3 * across); \
        for (ptrdiff_t i = 0;;) { \
            *(type *)to = a; \
            *(type *)(to + out_across) = b; \
            *(type *)(to + 2 * out_across) = c; \
            *(type *)(to + 3 * out_across) = d; \
            if (++i == count) { break; } \
            from += step; \
            to += out_step; \
            a = combine(a, *(const type *)from); \
            b = combine(b, *(const type *)(from + across)); \
            c = combine(c, *(const type *)(from + 2 * across)); \
            d = combine(d, *(const type *)(from + 3 * across)); \
        } \
    } \
    for (; lines > 0; --lines, x += across, out += out_across) { \
        const char *from = x; \
        char *to = out; \
        type a = *(const type *)from; \
        *(type *)to = a; \
        for (ptrdiff_t i = 1; i < count; ++i) { \
            from += step; \
            to += out_step; \
            a = combine(a, *(const type *)from); \
            *(type *)to = a; \
        } \
    } \
}

/* Integers are computed in `wide`, which is unsigned, so that they wrap around. */
#define NDX_ACCUMULATE_REAL(kind, type, wide) \
static inline type ndx_plus_##kind(type a, type b) { \
    return (type)((wide)a + (wide)b); \
} \
static inline type ndx_times_##kind(type a, type b) { \
    return (type)((wide)a * (wide)b); \
} \
NDX_ACCUMULATE(ndx_sums_##kind, type, ndx_plus_##kind) \
NDX_ACCUMULATE(ndx_products_##kind, type, ndx_times_##kind)

NDX_ACCUMULATE_REAL(8, uint8_t, uint32_t)
NDX_ACCUMULATE_REAL(16, uint16_t, uint32_t)
NDX_ACCUMULATE_REAL(32, uint32_t, uint32_t)
NDX_ACCUMULATE_REAL(64, uint64_t, uint64_t)
NDX_ACCUMULATE_REAL(float, float, float)
NDX_ACCUMULATE_REAL(double, double, double)

/* Return the function for floats, or for integers, of `itemsize` bytes. */
static inline ndx_accumulate ndx_find_accumulate(int floats, ptrdiff_t itemsize,
                                                 int products) {
    switch (itemsize) {
    case 1: return products ? ndx_products_8 : ndx_sums_8;
    case 2: return products ? ndx_products_16 : ndx_sums_16;
    case 4:
        if (floats) { return products ? ndx_products_float : ndx_sums_float; }
        return products ? ndx_products_32 : ndx_sums_32;
    default:
        if (floats) { return products ? ndx_products_double : ndx_sums_double; }
        return products ? ndx_products_64 : ndx_sums_64;
    }
}

#endif

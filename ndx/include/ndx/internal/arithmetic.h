/* Arithmetic with overflow checks, and bit operations. The lengths, strides, offsets
 * and bytes of a new layout are computed with it. Values derived from a checked layout
 * (`set_layout`) need no check of their own. */
#ifndef NDX_ARITHMETIC_H
#define NDX_ARITHMETIC_H

#include <Python.h>
#include <stdint.h>

/* The fallback is for compilers without the builtins; a test compares both ways. */
#if defined(__GNUC__) && !defined(NDX_PORTABLE_ARITHMETIC)
#define NDX_OVERFLOW_BUILTINS
#endif

static inline Py_ssize_t ndx_magnitude(Py_ssize_t step) { return step < 0 ? -step : step; }

/* Set `out` to a * b and return 0; on overflow return 1, with `out` unspecified. */
static inline int ndx_multiply(Py_ssize_t a, Py_ssize_t b, Py_ssize_t *out) {
#ifdef NDX_OVERFLOW_BUILTINS
    return __builtin_mul_overflow(a, b, out);
#else
    if (a > 0 ? (b > 0 ? a > PY_SSIZE_T_MAX / b : b < PY_SSIZE_T_MIN / a)
              : (b > 0 ? a < PY_SSIZE_T_MIN / b
                       : a != 0 && b < PY_SSIZE_T_MAX / a)) { return 1; }
    *out = a * b;
    return 0;
#endif
}

/* Set `out` to a + b; as ndx_multiply. */
static inline int ndx_add(Py_ssize_t a, Py_ssize_t b, Py_ssize_t *out) {
#ifdef NDX_OVERFLOW_BUILTINS
    return __builtin_add_overflow(a, b, out);
#else
    if (b > 0 ? a > PY_SSIZE_T_MAX - b : a < PY_SSIZE_T_MIN - b) { return 1; }
    *out = a + b;
    return 0;
#endif
}

/* Saturating a * b and a + b of numbers that are not negative, for estimates. */
static inline Py_ssize_t ndx_multiply_most(Py_ssize_t a, Py_ssize_t b) {
    Py_ssize_t out;
    return ndx_multiply(a, b, &out) ? PY_SSIZE_T_MAX : out;
}

static inline Py_ssize_t ndx_add_most(Py_ssize_t a, Py_ssize_t b) {
    Py_ssize_t out;
    return ndx_add(a, b, &out) ? PY_SSIZE_T_MAX : out;
}

/* Round bytes to a multiple of a step, which is a power of two. Rounding up can't
 * overflow, because the sizes of ranges fit in a signed integer. */
static inline size_t ndx_round_up(size_t nbytes, size_t step) {
    return (nbytes + step - 1) & ~(step - 1);
}

static inline size_t ndx_round_down(size_t nbytes, size_t step) {
    return nbytes & ~(step - 1);
}

/* Return the index of the highest set bit of a nonzero number. */
static inline int ndx_highest_bit(size_t number) {
#if defined(__GNUC__)
    return (int)(8 * sizeof(unsigned long long)) - 1
           - __builtin_clzll((unsigned long long)number);
#else
    int bit = 0;
    while (number >>= 1) { ++bit; }
    return bit;
#endif
}

/* Return the index of the lowest set bit of a nonzero number. */
static inline int ndx_lowest_bit(uint64_t number) {
#if defined(__GNUC__)
    return __builtin_ctzll((unsigned long long)number);
#else
    int bit = 0;
    while (!(number & 1)) { number >>= 1; ++bit; }
    return bit;
#endif
}

#endif

/* What C has no operator for: arithmetic that says where a result does not fit, and
 * bits. Lengths, strides, offsets and bytes of a new layout are computed with it; what
 * follows from a layout that was checked (`set_layout`) needs no check of its own. */
#ifndef NDX_ARITHMETIC_H
#define NDX_ARITHMETIC_H

#include <Python.h>
#include <stdint.h>

/* Compilers without the builtins, and the test that compares both ways. */
#if defined(__GNUC__) && !defined(NDX_PORTABLE_ARITHMETIC)
#define NDX_OVERFLOW_BUILTINS
#endif

/* a * b into out; 1, with `out` as it was or undefined, if that does not fit. */
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

/* a + b into out; likewise. */
static inline int ndx_add(Py_ssize_t a, Py_ssize_t b, Py_ssize_t *out) {
#ifdef NDX_OVERFLOW_BUILTINS
    return __builtin_add_overflow(a, b, out);
#else
    if (b > 0 ? a > PY_SSIZE_T_MAX - b : a < PY_SSIZE_T_MIN - b) { return 1; }
    *out = a + b;
    return 0;
#endif
}

/* a * b and a + b of what is not negative, or the largest size: for estimates. */
static inline Py_ssize_t ndx_multiply_most(Py_ssize_t a, Py_ssize_t b) {
    Py_ssize_t out;
    return ndx_multiply(a, b, &out) ? PY_SSIZE_T_MAX : out;
}

static inline Py_ssize_t ndx_add_most(Py_ssize_t a, Py_ssize_t b) {
    Py_ssize_t out;
    return ndx_add(a, b, &out) ? PY_SSIZE_T_MAX : out;
}

/* A number of bytes as a multiple of a step, a power of two. Sizes of ranges are signed
 * in Python, so that rounding up can't overflow. */
static inline size_t ndx_round_up(size_t nbytes, size_t step) {
    return (nbytes + step - 1) & ~(step - 1);
}

static inline size_t ndx_round_down(size_t nbytes, size_t step) {
    return nbytes & ~(step - 1);
}

/* The index of the highest bit that is set; of a number that is not 0. */
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

/* The index of the lowest bit that is set; of a number that is not 0. */
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

/* What C has no operator for. */
#ifndef NDX_ARITHMETIC_H
#define NDX_ARITHMETIC_H

#include <Python.h>
#include <stdint.h>

/* a * b into out; 1 if that overflows. Both are positive. */
static inline int ndx_multiply(Py_ssize_t a, Py_ssize_t b, Py_ssize_t *out) {
#if defined(__GNUC__)
    return __builtin_mul_overflow(a, b, out);
#else
    if (a > PY_SSIZE_T_MAX / b) { return 1; }
    *out = a * b;
    return 0;
#endif
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

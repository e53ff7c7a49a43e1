/* Elements copied from one layout to another, and from one dtype to another.
 *
 * A block has rows of elements; all steps are in bytes. The operands share no memory, or
 * are elements of one size at the same addresses. */
#ifndef NDX_TRANSFER_H
#define NDX_TRANSFER_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "arithmetic.h"
#include "cpu.h"
#include <ndx/dtypes.h>
#include "fill.h"
#include "half.h"

#define NDX_SHORT_ROW 16
#define NDX_ROWS_AT_ONCE 512

/* A transposed copy writes a part of each row, so that the lines that it reads are in a
 * cache for the next row: fewer where their addresses are a power of 2 apart, which share
 * few places in it. */
#define NDX_WIDTH 256
#define NDX_NARROW_WIDTH 64

/* ---------------------------------------------------------------- copies */

typedef struct { uint64_t first, second; } ndx_bytes16;

/* Loops of a constant step are vectorised or, at least, take one instruction less. */
#define NDX_COPY(T)                                                                      \
static void ndx_copy_row_##T(char *out, ptrdiff_t out_step, const char *x,               \
                             ptrdiff_t x_step, ptrdiff_t n) {                            \
    const ptrdiff_t size = (ptrdiff_t)sizeof(T);                                         \
    ptrdiff_t i;                                                                         \
    if (out_step == size && x_step == 2 * size) {                                        \
        for (i = 0; i < n; i++) {                                                        \
            memcpy(out + i * size, x + 2 * i * size, sizeof(T));                         \
        }                                                                                \
        return;                                                                          \
    }                                                                                    \
    if (out_step == size && x_step == -size) {                                           \
        for (i = 0; i < n; i++) { memcpy(out + i * size, x - i * size, sizeof(T)); }     \
        return;                                                                          \
    }                                                                                    \
    for (i = 0; i + 4 <= n; i += 4) {                                                    \
        T a, b, c, d;                                                                    \
        memcpy(&a, x, sizeof(T));                                                        \
        memcpy(&b, x + x_step, sizeof(T));                                               \
        memcpy(&c, x + 2 * x_step, sizeof(T));                                           \
        memcpy(&d, x + 3 * x_step, sizeof(T));                                           \
        memcpy(out, &a, sizeof(T));                                                      \
        memcpy(out + out_step, &b, sizeof(T));                                           \
        memcpy(out + 2 * out_step, &c, sizeof(T));                                       \
        memcpy(out + 3 * out_step, &d, sizeof(T));                                       \
        out += 4 * out_step;                                                             \
        x += 4 * x_step;                                                                 \
    }                                                                                    \
    for (; i < n; i++) {                                                                 \
        memcpy(out, x, sizeof(T));                                                       \
        out += out_step;                                                                 \
        x += x_step;                                                                     \
    }                                                                                    \
}

NDX_COPY(uint8_t)
NDX_COPY(uint16_t)
NDX_COPY(uint32_t)
NDX_COPY(uint64_t)
NDX_COPY(ndx_bytes16)

/* ---------------------------------------------------------------- casts */

typedef struct { float real, imag; } ndx_cast_complex64;
typedef struct { double real, imag; } ndx_cast_complex128;

#define NDX_CAST(from, to, F, T, EXPRESSION)                                             \
static void ndx_cast_##from##_##to(char *out, ptrdiff_t out_step, const char *x,         \
                                   ptrdiff_t x_step, ptrdiff_t n) {                      \
    ptrdiff_t i;                                                                         \
    if (out_step == (ptrdiff_t)sizeof(T) && x_step == (ptrdiff_t)sizeof(F)) {            \
        for (i = 0; i < n; i++) {                                                        \
            F v = ((const F *)x)[i];                                                     \
            T made = EXPRESSION;                                                         \
            ((T *)out)[i] = made;                                                        \
        }                                                                                \
    } else {                                                                             \
        for (i = 0; i < n; i++) {                                                        \
            F v = *(const F *)(x + i * x_step);                                          \
            T made = EXPRESSION;                                                         \
            *(T *)(out + i * out_step) = made;                                           \
        }                                                                                \
    }                                                                                    \
}

/* To bools: comparisons of 64 bits vectorise with AVX2 only. */
#define NDX_NOT_ZERO_BODY { for (i = 0; i < n; i++) { out[i] = x[i] != 0; } }
#define NDX_CAST_TO_BOOL(from, F)                                                        \
NDX_AVX2 static void ndx_truth_##from##_avx2(uint8_t *out, const F *x, ptrdiff_t n) {    \
    ptrdiff_t i;                                                                         \
    NDX_NOT_ZERO_BODY                                                                    \
}                                                                                        \
static void ndx_truth_##from(uint8_t *out, const F *x, ptrdiff_t n) {                    \
    ptrdiff_t i;                                                                         \
    NDX_NOT_ZERO_BODY                                                                    \
}                                                                                        \
static void ndx_cast_##from##_bool(char *out, ptrdiff_t out_step, const char *x,         \
                                   ptrdiff_t x_step, ptrdiff_t n) {                      \
    ptrdiff_t i;                                                                         \
    if (out_step == 1 && x_step == (ptrdiff_t)sizeof(F)) {                               \
        NDX_CALL_BEST(ndx_truth_##from, n, ((uint8_t *)out, (const F *)x, n));           \
        return;                                                                          \
    }                                                                                    \
    for (i = 0; i < n; i++) {                                                            \
        *(uint8_t *)(out + i * out_step) = *(const F *)(x + i * x_step) != 0;            \
    }                                                                                    \
}

#define NDX_CASTS_TO_COMPLEX(from, F, REAL, IMAG)                                        \
NDX_CAST(from, c64, F, ndx_cast_complex64, {(float)(REAL) NDX_COMMA (float)(IMAG)})      \
NDX_CAST(from, c128, F, ndx_cast_complex128, {(double)(REAL) NDX_COMMA (double)(IMAG)})
#define NDX_COMMA ,
/* V is an element as a number, D as a double. */
#define NDX_CASTS_TO_NUMBERS(from, F, V, D)                                              \
NDX_CAST(from, i8, F, int8_t, (int8_t)(V))                                               \
NDX_CAST(from, i16, F, int16_t, (int16_t)(V))                                            \
NDX_CAST(from, i32, F, int32_t, (int32_t)(V))                                            \
NDX_CAST(from, i64, F, int64_t, (int64_t)(V))                                            \
NDX_CAST(from, u8, F, uint8_t, (uint8_t)(V))                                             \
NDX_CAST(from, u16, F, uint16_t, (uint16_t)(V))                                          \
NDX_CAST(from, u32, F, uint32_t, (uint32_t)(V))                                          \
NDX_CAST(from, u64, F, uint64_t, (uint64_t)(V))                                          \
NDX_CAST(from, f32, F, float, (float)(V))                                                \
NDX_CAST(from, f64, F, double, (double)(D))                                              \
NDX_CAST(from, c64, F, ndx_cast_complex64, {(float)(V) NDX_COMMA 0})                     \
NDX_CAST(from, c128, F, ndx_cast_complex128, {(double)(D) NDX_COMMA 0})                  \
NDX_CAST(from, f16, F, uint16_t, sizeof(F) == 8 ? ndx_half_of_double((double)(D))        \
                                                : ndx_half_of_float((float)(V)))
#define NDX_CASTS(from, F, V)                                                            \
NDX_CAST_TO_BOOL(from, F)                                                                \
NDX_CASTS_TO_NUMBERS(from, F, V, V)

NDX_CASTS(bool, uint8_t, v != 0)
NDX_CASTS(i8, int8_t, v)
NDX_CASTS(i16, int16_t, v)
NDX_CASTS(i32, int32_t, v)
NDX_CASTS(i64, int64_t, v)
NDX_CASTS(u8, uint8_t, v)
NDX_CASTS(u16, uint16_t, v)
NDX_CASTS(u32, uint32_t, v)
NDX_CASTS(u64, uint64_t, v)
NDX_CASTS(f32, float, v)
NDX_CASTS(f64, double, v)
NDX_CAST(f16, bool, uint16_t, uint8_t, (v & 0x7fff) != 0)
NDX_CASTS_TO_NUMBERS(f16, uint16_t, ndx_float_of_half(v), ndx_double_of_half(v))
NDX_CAST(c64, bool, ndx_cast_complex64, uint8_t, (v.real != 0) | (v.imag != 0))
NDX_CASTS_TO_COMPLEX(c64, ndx_cast_complex64, v.real, v.imag)
NDX_CAST(c128, bool, ndx_cast_complex128, uint8_t, (v.real != 0) | (v.imag != 0))
NDX_CASTS_TO_COMPLEX(c128, ndx_cast_complex128, v.real, v.imag)

typedef void (*ndx_cast)(char *out, ptrdiff_t out_step, const char *x, ptrdiff_t x_step,
                         ptrdiff_t n);

/* The cast between two dtypes; NULL: none, as of complex numbers to real ones. */
static inline ndx_cast ndx_cast_between(int dtype, int into) {
#define NDX_REAL_CASTS(from)                                                             \
    [NDX_INT8] = ndx_cast_##from##_i8, [NDX_INT16] = ndx_cast_##from##_i16,              \
    [NDX_INT32] = ndx_cast_##from##_i32, [NDX_INT64] = ndx_cast_##from##_i64,            \
    [NDX_UINT8] = ndx_cast_##from##_u8, [NDX_UINT16] = ndx_cast_##from##_u16,            \
    [NDX_UINT32] = ndx_cast_##from##_u32, [NDX_UINT64] = ndx_cast_##from##_u64,          \
    [NDX_FLOAT16] = ndx_cast_##from##_f16, [NDX_FLOAT32] = ndx_cast_##from##_f32,        \
    [NDX_FLOAT64] = ndx_cast_##from##_f64
#define NDX_OTHER_CASTS(from)                                                            \
    [NDX_BOOL] = ndx_cast_##from##_bool, [NDX_COMPLEX64] = ndx_cast_##from##_c64,        \
    [NDX_COMPLEX128] = ndx_cast_##from##_c128
#define NDX_ROW(code, from) [NDX_##code] = {NDX_REAL_CASTS(from), NDX_OTHER_CASTS(from)}
    NDX_DTYPES_ARE(14);
    static const ndx_cast table[NDX_DTYPE_COUNT][NDX_DTYPE_COUNT] = {
        NDX_ROW(BOOL, bool), NDX_ROW(INT8, i8), NDX_ROW(INT16, i16), NDX_ROW(INT32, i32),
        NDX_ROW(INT64, i64), NDX_ROW(UINT8, u8), NDX_ROW(UINT16, u16),
        NDX_ROW(UINT32, u32), NDX_ROW(UINT64, u64), NDX_ROW(FLOAT16, f16),
        NDX_ROW(FLOAT32, f32), NDX_ROW(FLOAT64, f64), [NDX_COMPLEX64] = {NDX_OTHER_CASTS(c64)},
        [NDX_COMPLEX128] = {NDX_OTHER_CASTS(c128)}};
    return table[dtype][into];
}

/* ---------------------------------------------------------------- blocks */

/* How elements are transferred: by a cast or, if that is NULL, as they are. */
typedef struct {
    ndx_cast cast;
    ptrdiff_t itemsize;                    /* if they are copied */
} ndx_transfer;

static inline void ndx_transfer_rows(const ndx_transfer *how, char *out, ptrdiff_t out_row,
                                     ptrdiff_t out_step, const char *x, ptrdiff_t x_row,
                                     ptrdiff_t x_step, ptrdiff_t rows, ptrdiff_t length) {
    ptrdiff_t size = how->itemsize, width = length, i;
    ndx_cast row = how->cast;
    if (row == NULL) {
        if (out_step == size && x_step == size) {
            for (i = 0; i < rows; i++) {
                memcpy(out + i * out_row, x + i * x_row, (size_t)(length * size));
            }
            return;
        }
        if (out_step == size && x_step == 0) {
            for (i = 0; i < rows; i++) {
                ndx_fill(out + i * out_row, (size_t)(length * size), x + i * x_row,
                         (size_t)size);
            }
            return;
        }
        switch (size) {
        case 1: row = ndx_copy_row_uint8_t; break;
        case 2: row = ndx_copy_row_uint16_t; break;
        case 4: row = ndx_copy_row_uint32_t; break;
        case 8: row = ndx_copy_row_uint64_t; break;
        default: row = ndx_copy_row_ndx_bytes16;
        }
    }
    if (rows > 1 && ndx_magnitude(x_row) < ndx_magnitude(x_step)
            && ndx_magnitude(out_step) < ndx_magnitude(out_row)) {
        width = x_step % 1024 ? NDX_WIDTH : NDX_NARROW_WIDTH;
    }
    for (; length > 0; length -= width) {
        if (width > length) { width = length; }
        for (i = 0; i < rows; i++) {
            row(out + i * out_row, out_step, x + i * x_row, x_step, width);
        }
        out += width * out_step;
        x += width * x_step;
    }
}

/* Transfer a block. Columns of short rows are gone through one by one. */
static inline void ndx_transfer_block(const ndx_transfer *how, char *out,
                                      ptrdiff_t out_row, ptrdiff_t out_step,
                                      const char *x, ptrdiff_t x_row, ptrdiff_t x_step,
                                      ptrdiff_t rows, ptrdiff_t length) {
    ptrdiff_t i, count;
    if (rows <= length || length >= NDX_SHORT_ROW) {
        ndx_transfer_rows(how, out, out_row, out_step, x, x_row, x_step, rows, length);
        return;
    }
    for (i = 0; i < rows; i += count) {
        count = rows - i < NDX_ROWS_AT_ONCE ? rows - i : NDX_ROWS_AT_ONCE;
        ndx_transfer_rows(how, out + i * out_row, out_step, out_row, x + i * x_row,
                          x_step, x_row, length, count);
    }
}
#endif

/* Copies of small blocks from one layout to another. */
#ifndef NDX_MOVE_H
#define NDX_MOVE_H

#include <stddef.h>
#include <string.h>

/* With a constant size, a copy is one instruction. */
static inline void ndx_move_sized(char *out, ptrdiff_t out_row, ptrdiff_t out_step,
                                  const char *x, ptrdiff_t x_row, ptrdiff_t x_step,
                                  ptrdiff_t rows, ptrdiff_t length, size_t itemsize) {
    ptrdiff_t i, j;
    /* The rows are short, so that the inner loop is along the columns. */
    for (j = 0; j < length; ++j) {
        char *to = out + j * out_step;
        const char *from = x + j * x_step;
        for (i = 0; i < rows; ++i) {
            memcpy(to, from, itemsize);
            to += out_row;
            from += x_row;
        }
    }
}

/* Copy rows of elements; the steps are in bytes. */
static inline void ndx_move(char *out, ptrdiff_t out_row, ptrdiff_t out_step,
                            const char *x, ptrdiff_t x_row, ptrdiff_t x_step,
                            ptrdiff_t rows, ptrdiff_t length, size_t itemsize) {
#define NDX_MOVE(n) \
    case n: \
        ndx_move_sized(out, out_row, out_step, x, x_row, x_step, rows, length, n); \
        return
    switch (itemsize) {
        NDX_MOVE(1);
        NDX_MOVE(2);
        NDX_MOVE(4);
        NDX_MOVE(8);
        NDX_MOVE(16);
    default:
        ndx_move_sized(out, out_row, out_step, x, x_row, x_step, rows, length,
                       itemsize);
    }
#undef NDX_MOVE
}

static inline void ndx_spread_sized(char *out, const char *x, ptrdiff_t x_row,
                                    ptrdiff_t rows, ptrdiff_t length, size_t itemsize) {
    ptrdiff_t i, j;
    if (length == 2) {
        for (i = 0; i < rows; ++i) {
            memcpy(out, x, itemsize);
            memcpy(out + itemsize, x, itemsize);
            x += x_row;
            out += 2 * itemsize;
        }
        return;
    }
    for (i = 0; i < rows; ++i) {
        for (j = 0; j < length; ++j) {
            memcpy(out, x, itemsize);
            out += itemsize;
        }
        x += x_row;
    }
}

/* Copy each of `rows` elements to the next `length` ones of contiguous memory. */
static inline void ndx_spread(char *out, const char *x, ptrdiff_t x_row, ptrdiff_t rows,
                              ptrdiff_t length, size_t itemsize) {
#define NDX_SPREAD(n) \
    case n: \
        ndx_spread_sized(out, x, x_row, rows, length, n); \
        return
    switch (itemsize) {
        NDX_SPREAD(1);
        NDX_SPREAD(2);
        NDX_SPREAD(4);
        NDX_SPREAD(8);
        NDX_SPREAD(16);
    default:
        ndx_spread_sized(out, x, x_row, rows, length, itemsize);
    }
#undef NDX_SPREAD
}

#endif

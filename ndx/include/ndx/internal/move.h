/* Copies of small blocks from one layout to another. */
#ifndef NDX_MOVE_H
#define NDX_MOVE_H

#include <stddef.h>
#include <string.h>

/* Bytes of a row in one piece from which a call copies it faster than its elements. */
#define NDX_LEAST_ROW 16

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
    if (x_step == (ptrdiff_t)itemsize && out_step == x_step
            && length * x_step >= NDX_LEAST_ROW) {
        for (; rows > 0; --rows, out += out_row, x += x_row) {
            memcpy(out, x, length * itemsize);
        }
        return;
    }
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

#endif

/* The operators that a type implements, from its slots. */
#ifndef NDX_OPERATORS_H
#define NDX_OPERATORS_H

#include <Python.h>

#define NDX_SLOT(x, group, slot) \
    (Py_TYPE(x)->group != NULL && Py_TYPE(x)->group->slot != NULL)

/* Whether the type of x implements + or * as a number. */
#define NDX_CALCULATES(x) \
    (NDX_SLOT(x, tp_as_number, nb_add) || NDX_SLOT(x, tp_as_number, nb_multiply))

/* Whether x * int repeats a sequence. */
#define NDX_REPEATS(x) \
    (NDX_SLOT(x, tp_as_sequence, sq_repeat) \
        && !NDX_SLOT(x, tp_as_number, nb_multiply))

#endif

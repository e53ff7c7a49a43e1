/* What the operators of a type do, by its slots. */
#ifndef NDX_OPERATORS_H
#define NDX_OPERATORS_H

#include <Python.h>

#define NDX_SLOT(x, group, slot) \
    (Py_TYPE(x)->group != NULL && Py_TYPE(x)->group->slot != NULL)

/* Whether a type computes with + or *. */
#define NDX_CALCULATES(x) \
    (NDX_SLOT(x, tp_as_number, nb_add) || NDX_SLOT(x, tp_as_number, nb_multiply))

/* Whether a type takes multiplication by an int for a repetition. */
#define NDX_REPEATS(x) \
    (NDX_SLOT(x, tp_as_sequence, sq_repeat) \
        && !NDX_SLOT(x, tp_as_number, nb_multiply))

#endif

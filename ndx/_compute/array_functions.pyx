"""NumPy's functions of dtypes, which its arrays call: sorting and searching in C.

They are public (``PyArray_ArrFuncs``). A call through an array takes as long as to sort
a hundred elements.
"""

import numpy as np

cimport numpy as cnp

from ndx._lib.dtypes cimport dtype_object

cnp.import_array()

cdef extern from *:
    """
    #include <numpy/arrayobject.h>
    typedef int (*ndx_sort)(void *, npy_intp, void *);
    typedef int (*ndx_search)(void *, npy_intp, npy_intp *, void *);
    #define NDX_FUNCTIONS(x) PyDataType_GetArrFuncs(PyArray_DESCR((PyArrayObject *)x))
    static ndx_sort ndx_sort_of(PyObject *x, int kind) {
        return NDX_FUNCTIONS(x) == NULL ? NULL : NDX_FUNCTIONS(x)->sort[kind];
    }
    static ndx_search ndx_search_of(PyObject *x, int largest) {
        if (NDX_FUNCTIONS(x) == NULL) return NULL;
        return (ndx_search)(
            largest ? NDX_FUNCTIONS(x)->argmax : NDX_FUNCTIONS(x)->argmin);
    }
    """
    int NPY_QUICKSORT, NPY_STABLESORT
    SortFunction ndx_sort_of(object array, int kind) noexcept
    SearchFunction ndx_search_of(object array, bint largest) noexcept

cdef list samples = []               # alive for ever


def _find():
    cdef int dtype
    for dtype in range(NDTYPES):
        sample = np.empty(0, dtype_object(dtype))
        samples.append(sample)
        array_functions[dtype].sample = <void *>sample
        array_functions[dtype].sort = ndx_sort_of(sample, NPY_QUICKSORT)
        array_functions[dtype].stable_sort = ndx_sort_of(sample, NPY_STABLESORT)
        array_functions[dtype].argmax = ndx_search_of(sample, True)
        array_functions[dtype].argmin = ndx_search_of(sample, False)


_find()

"""Casting elements to another dtype by NumPy, in a pass."""

cimport numpy as cnp
from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF, Py_INCREF

from ndx._array.pinning cimport Operands
from ndx._compute.numpy_private cimport restore, silence
from ndx._compute.passes.run cimport run_pass
from ndx._lib.dtypes cimport itemsize_of, typenum_of
from ndx._lib.layout cimport Walk

cnp.import_array()

cdef extern from "numpy/arrayobject.h":
    # Not a constant: NumPy's import sets its value.
    char array_type "PyArray_Type"
    int PyArray_CopyInto(cnp.ndarray out, cnp.ndarray x) except -1
    object make_view "PyArray_New" (
        void *cls, int ndim, const Py_ssize_t *shape, int typenum,
        const Py_ssize_t *strides, void *data, int itemsize, int flags, PyObject *obj)

# A conversion between two of NumPy's dtypes; `error` is a strong reference.
cdef struct Conversion:
    int source
    int target
    PyObject *error


cdef bint cast_walk(const Operands *held, const Walk *walk, int dtype,
                    int into) except -1:
    """Cast operand 0 to operand 1 if they are large and in files, else return False."""
    cdef Conversion conversion
    cdef Py_ssize_t[2] itemsizes = [itemsize_of[dtype], itemsize_of[into]]
    cdef bint done
    conversion.source = typenum_of[dtype]
    conversion.target = typenum_of[into]
    conversion.error = NULL
    try:
        done = run_pass(held, walk, itemsizes, compute_conversion, &conversion, "copy",
                        True)
        if conversion.error != NULL:
            raise <object>conversion.error
    finally:
        if conversion.error != NULL:
            Py_DECREF(<object>conversion.error)
    return done


cdef void compute_conversion(void *arg, char **data, const Walk *walk) noexcept nogil:
    cdef Conversion *conversion = <Conversion *>arg
    with gil:
        if conversion.error != NULL:
            return
        try:
            convert(conversion, data, walk)
        except BaseException as error:
            Py_INCREF(error)
            conversion.error = <PyObject *>error


cdef int convert(Conversion *conversion, char **data, const Walk *walk) except -1:
    token = silence()
    try:
        PyArray_CopyInto(
            <cnp.ndarray>make_view(&array_type, walk.ndim, walk.shape,
                                   conversion.target, walk.strides[1], data[1], 0,
                                   cnp.NPY_ARRAY_WRITEABLE, NULL),
            <cnp.ndarray>make_view(&array_type, walk.ndim, walk.shape,
                                   conversion.source, walk.strides[0], data[0], 0, 0,
                                   NULL))
    finally:
        restore(token)
    return 0

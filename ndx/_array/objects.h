/* Fast allocation of array objects: a LIFO free list. Objects are not tracked by the
 * cyclic collector at birth, and not resurrected at death.
 *
 * (Cython's own tp_new tracks each object, and its tp_dealloc of a derived class
 * untracks, tracks and untracks it again: a third of the cost of a small view.)
 *
 * This file has all that ndx changes in Cython's types. Objects are made and reused by
 * hand only if the type is as Cython makes it today. The fallback is its own slots. */
#ifndef NDX_OBJECTS_H
#define NDX_OBJECTS_H

#include <Python.h>
#include <string.h>

#define NDX_IDLE_OBJECTS 256

static PyObject *ndx_idle_objects[NDX_IDLE_OBJECTS];
static int ndx_idle_count = 0; /* guarded by the GIL, like all of these */
static int ndx_idle_most = 0;  /* 0: use the slots of the type */

/* Return whether objects of a type are `size` bytes of plain memory after the collector's
 * header. */
static inline int ndx_is_plain_type(PyTypeObject *type, size_t size) {
    unsigned long others = Py_TPFLAGS_HEAPTYPE;
#if defined(Py_TPFLAGS_MANAGED_DICT)
    others |= Py_TPFLAGS_MANAGED_DICT;
#endif
#if defined(Py_TPFLAGS_MANAGED_WEAKREF)
    others |= Py_TPFLAGS_MANAGED_WEAKREF;
#endif
    return PyType_IS_GC(type) && (type->tp_flags & others) == 0
        && type->tp_basicsize == (Py_ssize_t)size && type->tp_itemsize == 0
        && type->tp_dictoffset == 0 && type->tp_alloc == PyType_GenericAlloc
        && type->tp_free == PyObject_GC_Del;
}

/* Return an untracked object of `size` bytes, a constant, whose fields are all 0; NULL with
 * an exception. */
static inline PyObject *ndx_object_new(PyTypeObject *type, size_t size) {
    PyObject *object;
    char *fields;
    size_t half;
    if (ndx_idle_count > 0) {
        object = PyObject_Init(ndx_idle_objects[--ndx_idle_count], type);
    } else if (ndx_idle_most > 0) {
        object = PyObject_GC_New(PyObject, type);
        if (object == NULL) { return NULL; }
    } else {
        object = type->tp_alloc(type, 0);
        if (object != NULL) { PyObject_GC_UnTrack(object); }
        return object;
    }
    /* GCC writes up to 96 bytes by a few instructions, and more by a loop. */
    fields = (char *)object + sizeof(PyObject);
    half = (size - sizeof(PyObject)) / 2;
    memset(fields, 0, half);
    memset(fields + half, 0, size - sizeof(PyObject) - half);
    return object;
}

/* Free an untracked object, or keep it for reuse. */
static inline void ndx_object_free(PyObject *object) {
    PyTypeObject *type;
#ifndef Py_GIL_DISABLED                 /* CPython has a heap for each thread there */
    if (ndx_idle_count < ndx_idle_most) {
        ndx_idle_objects[ndx_idle_count++] = object;
        return;
    }
#endif
    type = Py_TYPE(object);
    type->tp_free(object);
    if (type->tp_flags & Py_TPFLAGS_HEAPTYPE) { Py_DECREF(type); }
}

/* Free what is kept for reuse. */
static inline void ndx_drop_idle_objects(void) {
    while (ndx_idle_count > 0) { PyObject_GC_Del(ndx_idle_objects[--ndx_idle_count]); }
}

/* Make and reuse objects of a type by hand, if its layout allows it. */
static inline void ndx_set_fast_objects(PyTypeObject *type, size_t size, int fast) {
    ndx_idle_most = fast && ndx_is_plain_type(type, size) ? NDX_IDLE_OBJECTS : 0;
    if (ndx_idle_most == 0) { ndx_drop_idle_objects(); }
}

/* Set the destructor of a type, and its public name. */
static inline void ndx_set_up_type(PyTypeObject *type, size_t size, destructor dealloc,
                                   const char *name) {
    type->tp_dealloc = dealloc;
    if (!(type->tp_flags & Py_TPFLAGS_HEAPTYPE)) { type->tp_name = name; }
    PyType_Modified(type);
    ndx_set_fast_objects(type, size, 1);
}

#endif

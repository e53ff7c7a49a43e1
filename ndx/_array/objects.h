/* Array objects without the cost of the general way: reused most recent first, not
 * tracked by the cyclic collector at birth, and not resurrected at death.
 *
 * (Cython's own tp_new tracks each object, and its tp_dealloc of a derived class
 * untracks, tracks and untracks it again: a third of the cost of a small view.) */
#ifndef NDX_OBJECTS_H
#define NDX_OBJECTS_H

#include <Python.h>
#include <string.h>

#define NDX_IDLE_OBJECTS 256

static PyObject *ndx_idle_objects[NDX_IDLE_OBJECTS];
static int ndx_idle_count = 0; /* guarded by the GIL, like the above */

/* Return an untracked object whose fields are all 0; NULL with an exception. */
static inline PyObject *ndx_object_new(PyTypeObject *type) {
    PyObject *object;
    if (ndx_idle_count > 0) {
        object = PyObject_Init(ndx_idle_objects[--ndx_idle_count], type);
    } else {
        object = PyObject_GC_New(PyObject, type);
        if (object == NULL) { return NULL; }
    }
    memset((char *)object + sizeof(PyObject), 0,
           (size_t)type->tp_basicsize - sizeof(PyObject));
    return object;
}

/* Take an untracked object back. */
static inline void ndx_object_free(PyObject *object) {
    if (ndx_idle_count < NDX_IDLE_OBJECTS) {
        ndx_idle_objects[ndx_idle_count++] = object;
    } else {
        PyObject_GC_Del(object);
    }
}

static inline void ndx_set_dealloc(PyTypeObject *type, destructor dealloc) {
    type->tp_dealloc = dealloc;
    PyType_Modified(type);
}

#endif

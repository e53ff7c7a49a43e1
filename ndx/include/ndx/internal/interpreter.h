/* Access to frames, code and weak references for recordings, without running Python. */
#ifndef NDX_INTERPRETER_H
#define NDX_INTERPRETER_H

#include <Python.h>

/* Frames and code objects as plain objects; all of these are new references. */
static inline PyObject *ndx_current_frame(void) {
    return (PyObject *)PyThreadState_GetFrame(PyThreadState_Get());
}

static inline PyObject *ndx_caller(PyObject *frame) {
    return (PyObject *)PyFrame_GetBack((PyFrameObject *)frame);
}

static inline PyObject *ndx_code_of(PyObject *frame) {
    return (PyObject *)PyFrame_GetCode((PyFrameObject *)frame);
}

/* Return the index of a frame's current instruction. */
static inline int ndx_position(PyObject *frame) {
    return PyFrame_GetLasti((PyFrameObject *)frame);
}

static inline int ndx_line_of(PyObject *code, int lasti) {
    return PyCode_Addr2Line((PyCodeObject *)code, lasti);
}

/* Return a new reference to the target of a weak reference; NULL if it is dead. */
static inline PyObject *ndx_weak_target(PyObject *reference) {
    PyObject *target;
#if PY_VERSION_HEX >= 0x030D0000
    if (PyWeakref_GetRef(reference, &target) < 0) {
        PyErr_Clear();
        return NULL;
    }
#else
    target = PyWeakref_GetObject(reference);
    if (target == Py_None) { return NULL; }
    Py_XINCREF(target);
#endif
    return target;
}

#endif

/* Private fields of CPython's thread state, for the versions whose fields are known.
 * `_lib/interpreter.pyx` checks them at import, and has a fallback. */
#ifndef NDX_THREAD_STATE_H
#define NDX_THREAD_STATE_H

#include <Python.h>

#define NDX_KNOWN_THREAD_STATE (PY_VERSION_HEX < 0x030F0000)

/* Return the current contextvars.Context, borrowed; NULL before its first use. */
static inline PyObject *ndx_context(void) {
#if NDX_KNOWN_THREAD_STATE
    return PyThreadState_Get()->context;
#else
    return NULL;
#endif
}

/* Return the address of the innermost Python frame. */
static inline void *ndx_frame(void) {
#if PY_VERSION_HEX < 0x030D0000
    return PyThreadState_Get()->cframe->current_frame;
#elif NDX_KNOWN_THREAD_STATE
    return PyThreadState_Get()->current_frame;
#else
    return NULL;
#endif
}

/* Return the address of the code of a frame; NULL for NULL. */
static inline void *ndx_frame_code(void *frame) {
#if PY_VERSION_HEX < 0x030C0000
    /* After the function, the globals, the builtins and the locals. */
    return frame == NULL ? NULL : ((void **)frame)[4];
#else
    /* The first field. From 3.14 on, its lowest bits are flags. */
    return frame == NULL ? NULL : (void *)(*(uintptr_t *)frame & ~(uintptr_t)7);
#endif
}

/* Return the same as `ndx_frame` by the public API, which makes a frame object. */
static inline void *ndx_frame_object(void) {
    PyFrameObject *frame = PyThreadState_GetFrame(PyThreadState_Get());
    Py_XDECREF(frame); /* borrowed from the frame, which is running */
    return frame;
}

static inline void *ndx_frame_object_code(void *frame) {
    PyCodeObject *code;
    if (frame == NULL) { return NULL; }
    code = PyFrame_GetCode((PyFrameObject *)frame);
    Py_DECREF(code); /* borrowed from the frame */
    return code;
}

#endif

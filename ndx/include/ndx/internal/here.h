/* Which thread, which context of contextvars and which frame run now. */
#ifndef NDX_HERE_H
#define NDX_HERE_H

#include <Python.h>
#include <stdint.h>

typedef struct {
    PyObject *home;  /* The contextvars.Context, borrowed; NULL before its first use. */
    void *frame;     /* Of the Python code that called: an address, only to compare. */
    uint64_t thread; /* Never given again, unlike an ident. */
} ndx_Here;

static inline ndx_Here ndx_here(void) {
    PyThreadState *state = PyThreadState_Get();
    ndx_Here here;
    here.home = state->context;
    here.thread = state->id;
#if PY_VERSION_HEX < 0x030D0000
    here.frame = state->cframe->current_frame;
#elif PY_VERSION_HEX < 0x030F0000
    here.frame = state->current_frame;
#else
    /* Not known: all frames compare equal, and the last entry is taken. */
    here.frame = NULL;
#endif
    return here;
}

/* Return whether a thread has not ended. */
static inline int ndx_thread_runs(uint64_t thread) {
    PyThreadState *state = PyInterpreterState_ThreadHead(PyInterpreterState_Get());
    while (state != NULL) {
        if (state->id == thread) { return 1; }
        state = PyThreadState_Next(state);
    }
    return 0;
}

#endif

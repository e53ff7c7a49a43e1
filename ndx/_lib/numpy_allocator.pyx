"""NumPy's allocator for the data of its new arrays (NEP 49), and how to switch it.

NumPy keeps the handler in a context variable, so it is set for one thread or task. New
threads start with an empty context, and so with the variable's default. CPython has no
function that changes a default, so that the field is written, if the checks below pass.
Otherwise each thread that `threading` starts sets the variable itself.
"""

cimport numpy as cnp
from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF

import contextvars
import functools
import threading

from ndx._lib.interpreter_checks import is_default

cnp.import_array()

cdef extern from "numpy/arrayobject.h":
    object PyDataMem_GetHandler()
    object PyDataMem_SetHandler(object handler)
    # Given NULL, it restores NumPy's default handler.
    object reset_numpy_handler "PyDataMem_SetHandler" (PyObject *handler)

# With either handler NumPy allocates from ndx: the first while ndx calls NumPy, the
# second in the scope of ``use(numpy=True)``. A module above this one makes them.
cdef object of_results = None
cdef object of_plain = None


cdef int set_handlers(object results, object plain) except -1:
    """Register the two handlers that allocate from ndx."""
    global of_results, of_plain
    of_results = results
    of_plain = plain
    return 0


cdef object switch_numpy(bint ours):
    """Let NumPy allocate from ndx or by itself; return the previous handler."""
    if ours:
        return PyDataMem_SetHandler(of_plain)
    return reset_numpy_handler(NULL)


cdef object suspend_handlers():
    """Let NumPy allocate by itself while a user's callback runs.

    Otherwise a callback inside an allocation that makes a NumPy array would reenter the
    same backend. Returns the handler for `restore_numpy`; None: nothing was changed.
    """
    handler = PyDataMem_GetHandler()
    if handler is of_results or handler is of_plain:
        return reset_numpy_handler(NULL)
    return None


cdef void restore_numpy(object handler) noexcept:
    """Restore the handler that `suspend_handlers` returned; None: do nothing."""
    if handler is None:
        return
    try:
        PyDataMem_SetHandler(handler)
    except MemoryError:
        # The next allocation of NumPy that finds no scope sets it.
        pass


# ---- in all threads ------------------------------------------------------------------

cdef extern from *:
    """
    /* The first fields of PyContextVarObject. */
    typedef struct {
        PyObject_HEAD
        PyObject *name;
        PyObject *default_value;
    } ndx_variable;
    """
    ctypedef struct ndx_variable:
        PyObject *default_value

cdef object variable = None      # NumPy's variable; None: not found, or not looked for
cdef object of_ndx = None        # its values: the handler that allocates from ndx,
cdef object of_numpy = None      # and NumPy's own
cdef bint looked = False
cdef bint wrapped = False        # whether new threads call `_run_thread`
cdef bint for_threads = False    # whether it is to change the allocator


def _default_address(variable):
    return <size_t>(<ndx_variable *><void *>variable).default_value


def _allocate_from_ndx():
    return switch_numpy(True)


cdef int find_variable() except -1:
    """Find NumPy's context variable and its default, in a context without others."""
    global looked, of_ndx, of_numpy, variable
    context = contextvars.Context()
    handler = context.run(_allocate_from_ndx)
    found = list(context)
    if len(found) == 1 and is_default(_default_address) \
            and _default_address(found[0]) == <size_t><void *>handler:
        of_numpy, of_ndx, variable = handler, context[found[0]], found[0]
    # Last: another thread may be about to look.
    looked = True
    return 0


cdef int switch_all_numpy(bint ours) except -1:
    """Let NumPy allocate from ndx or by itself, here and in all new threads."""
    global for_threads
    if not looked:
        find_variable()
    if variable is None:
        for_threads = ours
        tell_threading()
    else:
        handler = of_ndx if ours else of_numpy
        # The handlers are never freed, so that the field may own them for ever.
        Py_INCREF(handler)
        (<ndx_variable *><void *>variable).default_value = <PyObject *>handler
    switch_numpy(ours)
    return 0


cdef int tell_threading() except -1:
    """Let each new thread of `threading` set NumPy's allocator first."""
    global wrapped
    if wrapped:
        return 0
    start = threading.Thread.start

    @functools.wraps(start)
    def start_with_numpy(thread):
        thread.run = functools.partial(_run_thread, thread.run)
        start(thread)

    threading.Thread.start = start_with_numpy
    wrapped = True
    return 0


def _run_thread(run):
    if for_threads:
        switch_numpy(True)
    run()

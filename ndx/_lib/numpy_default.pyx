"""NumPy's allocator in all threads: the default of NumPy's context variable (NEP 49).

NumPy keeps its handler in a context variable. New threads start with an empty context,
and so with the variable's default. CPython has no function that changes a default, so
that the field is written, if the checks below pass. Otherwise each thread that
`threading` starts sets the variable itself.
"""

import contextvars
import functools
import threading

from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF

from ndx._lib.numpy_handler cimport switch_numpy

from ndx._lib.variable_checks import is_default

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
    looked = True
    context = contextvars.Context()
    handler = context.run(_allocate_from_ndx)
    found = list(context)
    if len(found) == 1 and is_default(_default_address) \
            and _default_address(found[0]) == <size_t><void *>handler:
        of_numpy, of_ndx, variable = handler, context[found[0]], found[0]
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

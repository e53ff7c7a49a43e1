"""The private parts of NumPy that ndx uses; each is checked at import.

- Inner loops. A NumPy ufunc holds, per signature, a C loop that was chosen for this CPU
  when NumPy was imported. Calling it needs neither the GIL nor the ufunc machinery. If
  known results are wrong, every operation uses NumPy's public functions.
- The state of floating-point errors. `numpy.errstate` makes a new state at each entry
  and sets NumPy's context variable to it. Setting the variable to a state made once
  costs a tenth of that. If it does not work, `errstate` itself is used.
"""

import contextvars
import warnings

from cpython.contextvars cimport PyContextVar_Reset, PyContextVar_Set

import numpy as np

from ndx._lib.free_threading cimport ndx_down_int, ndx_up_int
from ndx._lib.unraisable cimport report_ignored

cdef extern from "numpy/arrayobject.h":
    pass

cdef extern from "numpy/ufuncobject.h":
    ctypedef struct PyUFuncObject:
        int nin
        int nout
        int ntypes
        LoopFunction *functions
        void **data

cdef bint loops_are_known = False
cdef object variable = None       # NumPy's variable for the state of errors, or None
cdef object silent = None         # its value for all="ignore"


# ------------------------------------------------------------------- inner loops

cdef LoopFunction loop_at(object ufunc, Py_ssize_t index, void **data) noexcept:
    """Return the loop of a ufunc's signature, `ufunc.types[index]`, and its data.

    Return NULL if the layout of NumPy's structs is not known.
    """
    if not loops_are_known:
        return NULL
    # Ufuncs whose loops need no data may have none at all.
    data[0] = NULL
    if (<PyUFuncObject *><void *>ufunc).data != NULL:
        data[0] = (<PyUFuncObject *><void *>ufunc).data[index]
    return (<PyUFuncObject *><void *>ufunc).functions[index]


cdef bint loops_are_as_expected() except -1:
    """Compute a few known results through the loops' pointers."""
    cdef double a[4]
    cdef double b[4]
    cdef double out[4]
    cdef char *args[3]
    cdef Py_ssize_t counts[4]
    cdef Py_ssize_t steps[9]
    cdef PyUFuncObject *ufunc
    cdef int i
    for name, signature in (("add", "dd->d"), ("exp", "d->d"), ("less", "dd->?"),
                            ("matmul", "dd->d")):
        public = getattr(np, name)
        ufunc = <PyUFuncObject *><void *>public
        if type(public) is not np.ufunc or ufunc.nin != public.nin \
                or ufunc.nout != public.nout or ufunc.ntypes != public.ntypes \
                or ufunc.ntypes != len(public.types):
            return False
        i = public.types.index(signature)
        if ufunc.functions == NULL or ufunc.functions[i] == NULL:
            return False
        a[:] = [0.0, 1.0, 2.0, 3.0]
        b[:] = [5.0, 6.0, 1.0, 8.0]
        args[0] = <char *>a
        args[1] = <char *>b
        if name == "exp":
            args[1] = <char *>out
        args[2] = <char *>out
        counts[:] = [1 if name == "matmul" else 4, 2, 2, 2]
        steps[:] = [8, 8, 8, 16, 8, 16, 8, 16, 8]
        if name == "less":
            steps[2] = 1
        ufunc.functions[i](args, counts, steps, ufunc.data[i])
        if name == "add" and [out[0], out[1], out[2], out[3]] != [5.0, 7.0, 3.0, 11.0]:
            return False
        if name == "exp" and abs(out[1] - 2.718281828459045) > 1e-15:
            return False
        if name == "less" and (<unsigned char *>out)[2] != 0 \
                or name == "less" and (<unsigned char *>out)[3] != 1:
            return False
        if name == "matmul" and [out[0], out[1], out[2], out[3]] != [
                1.0, 8.0, 13.0, 36.0]:
            return False
    return True


loops_are_known = loops_are_as_expected()
if not loops_are_known:
    warnings.warn(
        f"ndx does not know the inner loops of NumPy {np.__version__} and computes "
        "through its public functions, which is slower", RuntimeWarning, stacklevel=2)


# ------------------------------------------------------- floating-point warnings

cdef int find_variable() except -1:
    global variable, silent
    try:
        from numpy._core.umath import _extobj_contextvar, _make_extobj

        found = _make_extobj(all="ignore")
        token = _extobj_contextvar.set(found)
        try:
            works = set(np.geterr().values()) == {"ignore"}
        finally:
            _extobj_contextvar.reset(token)
    except (ImportError, AttributeError, TypeError, ValueError):
        return 0
    if works:
        variable, silent = _extobj_contextvar, found
    return 0


find_variable()


# Whether NumPy's floating-point warnings are on, in `ndx.numpy.errstate`.
wanted = contextvars.ContextVar("ndx_reports_floating_point_errors", default=False)


cdef bint reports() noexcept:
    """Whether floating-point errors are reported here, as NumPy reports them."""
    try:
        return may_report() and <bint>wanted.get()
    except BaseException as error:
        report_ignored(wanted, error)
        return False


def begin_reports():
    """Report floating-point errors from here on; return a token for `end_reports`."""
    token = wanted.set(True)
    ndx_up_int(&reporting)
    return token


def end_reports(token):
    """End what `begin_reports` began."""
    ndx_down_int(&reporting)
    wanted.reset(token)


cdef object silence():
    """Turn floating-point warnings off; return a token for `restore`.

    They stay on in `ndx.numpy.errstate`.
    """
    if may_report() and reports():
        return None
    if variable is None:
        state = np.errstate(all="ignore")
        state.__enter__()
        return state
    return PyContextVar_Set(variable, silent)


cdef int restore(object token) except -1:
    """Restore the state from before `silence`."""
    if token is None:
        return 0
    if variable is None:
        token.__exit__(None, None, None)
    else:
        PyContextVar_Reset(variable, token)
    return 0

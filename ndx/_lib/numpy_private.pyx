"""NumPy's private parts: the table of those that ndx uses, and their checks.

A part is looked for when it is first asked for. If NumPy does not have it, or not as
ndx knows it, something public serves in its place. ``NDX_WITHOUT_NUMPYS``, read at
import, takes parts away by name, with commas: for tests, and to find out whether one of
them is to blame for something. ``python -m ndx info`` shows which are in use.

- Inner loops. A NumPy ufunc holds, per signature, a C loop that was chosen for this CPU
  when NumPy was imported. Calling it needs neither the GIL nor the ufunc machinery.
- The state of floating-point errors. `numpy.errstate` makes a new state at each entry
  and sets NumPy's context variable to it. Setting the variable to a state made once
  costs a tenth of that.
"""

import contextvars
import importlib
import inspect
import os
import types
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


# ------------------------------------------------------------------- the checks
# Each returns the part, or None if it is not as expected, or raises.

cdef bint loop_gives(str name, str signature, list counts, list steps,
                     list expected) except -1:
    """Whether the loop of a ufunc's signature computes a known result of numbers."""
    cdef double a[4]
    cdef double b[4]
    cdef double out[4]
    cdef char *args[3]
    cdef Py_ssize_t sizes[4]
    cdef Py_ssize_t strides[9]
    cdef PyUFuncObject *ufunc
    cdef Py_ssize_t i
    public = getattr(np, name)
    ufunc = <PyUFuncObject *><void *>public
    if type(public) is not np.ufunc or ufunc.nin != public.nin \
            or ufunc.nout != public.nout or ufunc.ntypes != public.ntypes \
            or ufunc.ntypes != len(public.types):
        return False
    a[:] = [0.0, 1.0, 2.0, 3.0]
    b[:] = [5.0, 6.0, 1.0, 8.0]
    out[:] = [0.0, 0.0, 0.0, 0.0]
    args[0] = <char *>a
    args[1] = <char *>b if ufunc.nin == 2 else <char *>out
    args[2] = <char *>out
    for i in range(len(counts)):
        sizes[i] = counts[i]
    for i in range(len(steps)):
        strides[i] = steps[i]
    i = public.types.index(signature)
    if ufunc.functions == NULL or ufunc.functions[i] == NULL:
        return False
    ufunc.functions[i](args, sizes, strides,
                       NULL if ufunc.data == NULL else ufunc.data[i])
    if signature.endswith("?"):
        return [(<unsigned char *>out)[i] for i in range(4)] == expected
    return all([abs(out[i] - expected[i]) <= 1e-15 * expected[i] for i in range(4)])


def find_loops():
    known = (
        ("add", "dd->d", [4], [8, 8, 8], [5.0, 7.0, 3.0, 11.0]),
        ("exp", "d->d", [4], [8, 8], np.exp(np.arange(4.0)).tolist()),
        ("less", "dd->?", [4], [8, 8, 1], [1, 1, 0, 1]),
        ("matmul", "dd->d", [1, 2, 2, 2], [8, 8, 8, 16, 8, 16, 8, 16, 8],
         [1.0, 8.0, 13.0, 36.0]),
    )
    for name, signature, counts, steps, expected in known:
        if not loop_gives(name, signature, counts, steps, expected):
            return None
    return True


def find_error_state():
    """Return NumPy's variable for the state of errors, and its value for silence."""
    umath = importlib.import_module("numpy._core.umath")
    state, ignoring = umath._extobj_contextvar, umath._make_extobj(all="ignore")
    token = state.set(ignoring)
    try:
        works = set(np.geterr().values()) == {"ignore"}
    finally:
        state.reset(token)
    return (state, ignoring) if works else None


def find_set_results():
    """Return the classes of what `unique_all`, `_counts` and `_inverse` return."""
    home = importlib.import_module("numpy.lib._arraysetops_impl")
    found = home.UniqueAllResult, home.UniqueCountsResult, home.UniqueInverseResult
    fields = [each._fields for each in found]
    return found if fields == [
        ("values", "indices", "inverse_indices", "counts"), ("values", "counts"),
        ("values", "inverse_indices")] else None


def find_default():
    """Return what stands for an argument that was not given, where None is a value."""
    defaults = np.sum.__wrapped__.__defaults__
    return np._NoValue if any([each is np._NoValue for each in defaults]) else None


def find_dispatcher():
    """Return the class of NumPy's functions that let their arguments compute."""
    cls = type(np.sum)
    return cls if cls is not types.FunctionType and cls is type(np.linalg.svd) \
        and isinstance(np.sum.__wrapped__, types.FunctionType) else None


def find_code():
    """Whether functions that NumPy writes in Python can be run with other globals."""
    code = np.fliplr.__wrapped__
    found = types.FunctionType(
        code.__code__, {"asanyarray": lambda x: np.empty((1, 2))})
    return True if found(None).shape == (1, 2) else None


# --------------------------------------------------------------------- the table

# Name: NumPy's part, what finds it, and what serves in its place.
cdef dict PARTS = {
    "loops": (
        "the loops of a ufunc (PyUFuncObject.functions, data, ntypes)",
        find_loops, "NumPy's public functions"),
    "linalg": (
        "the gufuncs of numpy.linalg (numpy.linalg._umath_linalg)",
        lambda: importlib.import_module("numpy.linalg._umath_linalg"),
        "NumPy's public functions"),
    "fft": (
        "the gufuncs of numpy.fft (numpy.fft._pocketfft_umath)",
        lambda: importlib.import_module("numpy.fft._pocketfft_umath"),
        "NumPy's public functions"),
    "errors": (
        "the state of errors (numpy._core.umath._extobj_contextvar, _make_extobj)",
        find_error_state, "numpy.errstate"),
    "strides": (
        "the base of as_strided's results (numpy.lib._stride_tricks_impl.DummyArray)",
        lambda: importlib.import_module("numpy.lib._stride_tricks_impl").DummyArray,
        "nothing: the array behind it is not found"),
    "sets": (
        "the named tuples of numpy.unique_all and others (numpy.lib._arraysetops_impl)",
        find_set_results, "the classes of results"),
    "default": (
        "the default of arguments (numpy._NoValue)",
        find_default, "the default in the signature of numpy.sum"),
    "dispatcher": (
        "the class of functions (numpy._ArrayFunctionDispatcher)",
        find_dispatcher, "NumPy's dispatch of each call"),
    "code": (
        "functions in Python, run over those of ndx (their code and globals)",
        find_code, "NumPy's public functions"),
}
# Name -> the part, or None.
cdef dict found = {}


cdef frozenset names_in(str text):
    """Return the names of parts that the environment's variable takes away."""
    names = frozenset([name.strip() for name in text.split(",")]) - {""}
    if names == {"all"}:
        return frozenset(PARTS)
    if not names <= PARTS.keys():
        raise ValueError(
            f"in the environment, NDX_WITHOUT_NUMPYS={text!r} must be 'all' or some of "
            f"these parts of NumPy, with commas: {', '.join(sorted(PARTS))}")
    return names


cdef frozenset absent = names_in(os.environ.get("NDX_WITHOUT_NUMPYS", ""))


def part(name):
    """Return a private part of NumPy; None: it is not as ndx knows it, or taken away.

    Parameters
    ----------
    name : str
        A name of the table.
    """
    if name not in found:
        try:
            value = None if name in absent else PARTS[name][1]()
        except (AttributeError, ImportError, LookupError, TypeError, ValueError):
            value = None
        found[name] = value
    return found[name]


def parts():
    """Return each part's name, what it is, and what serves in its place, or None."""
    return [
        (name, what, instead if part(name) is None else None)
        for name, (what, _, instead) in PARTS.items()
    ]


# The default of NumPy's arguments.
NO_VALUE = part("default")
if NO_VALUE is None:
    NO_VALUE = inspect.signature(np.sum).parameters["keepdims"].default


# ------------------------------------------------------------------- inner loops

cdef bint loops_are_known = part("loops") is not None
if not loops_are_known and "loops" not in absent:
    warnings.warn(
        f"ndx does not know the inner loops of NumPy {np.__version__} and computes "
        "through its public functions, which is slower", RuntimeWarning, stacklevel=2)


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


# ------------------------------------------------------- floating-point warnings

cdef object variable, silent
# NumPy's variable for the state of errors, or None; its value for all="ignore".
variable, silent = part("errors") or (None, None)


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

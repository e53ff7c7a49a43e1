"""Computing on a device: what meets its arrays is handed to the device's engine.

The CPU's code can't read a device's memory (`_blocks.block`). So that it is not
even tried, the public functions look at their operands first, and hand over by name.
The engine is of a room above this one, which registers how it is had. As long as
there is no device in use, all of this costs one test.
"""

cimport cython
from cpython.object cimport PyObject

import functools
import inspect
import types

from ndx._array.storage cimport BaseArray, is_array
from ndx._context.placement cimport placing_device
from ndx.backends.base cimport devices

from ndx._lib.device import CPU, find_device
from ndx.backends import _pressure

__all__ = ["Function", "dispatched", "set_engine", "synchronize", "waitall"]

cdef extern from "ndx/vectorcall.h":
    ctypedef PyObject *(*Vectorcall "ndx_vectorcall")(
        PyObject *, PyObject **, size_t, PyObject *) noexcept
    Vectorcall ndx_vectorcall_of(PyObject *callable) noexcept
    int ndx_set_vectorcall(object cls, Py_ssize_t offset) except -1
    Py_ssize_t ndx_count(size_t nargsf) noexcept

cdef extern from "Python.h":
    PyObject *PyTuple_GET_ITEM(PyObject *items, Py_ssize_t i) noexcept
    PyObject *PyList_GET_ITEM(PyObject *items, Py_ssize_t i) noexcept
    Py_ssize_t PY_SSIZE_T_MAX
    Py_ssize_t Py_SIZE(PyObject *x) noexcept
    bint PyTuple_CheckExact(PyObject *x) noexcept
    bint PyList_CheckExact(PyObject *x) noexcept

# The same, for a caller in Cython, which takes its result and raises its errors.
ctypedef object (*ObjectVectorcall)(PyObject *, PyObject **, size_t, PyObject *)

cdef object engine = None        # called with a name, args and kwargs
cdef object load_engine = None   # returns it


def set_engine(load):
    """Say how the engine is had: by a function, called when it is first needed."""
    global engine, load_engine
    engine, load_engine = None, load


cdef bint is_off_host(object x) noexcept:
    """Whether `x` is an array of a device."""
    return is_array(x) and (<BaseArray>x).block.device != 0


cdef object compute_elsewhere(str name, tuple args, dict kwargs):
    """Let the engine compute a public function, or what operators and methods do."""
    global engine
    if engine is None:
        engine = load_engine()
    return engine(name, args, kwargs)


cdef inline bint holds_off_host(PyObject *x) noexcept:
    """Whether an argument is an array of a device, or a sequence with one in it."""
    cdef Py_ssize_t i
    if is_array(<object>x):
        return (<BaseArray>x).block.device != 0
    if PyTuple_CheckExact(x):
        for i in range(Py_SIZE(x)):
            if is_off_host(<object>PyTuple_GET_ITEM(x, i)):
                return True
    elif PyList_CheckExact(x):
        for i in range(Py_SIZE(x)):
            if is_off_host(<object>PyList_GET_ITEM(x, i)):
                return True
    return False


# What a function does with the device on which new arrays are made.
cdef enum:
    COMPUTES = 0                 # nothing: its result lies where its operands do
    TAKES_DEVICE = 1             # it has `device=`; by default, that of its operand
    CREATES = 2                  # it has; by default, where new arrays are made
    ANYWHERE = 3                 # nothing: what it calls finds where operands lie


@cython.final
cdef class Function:
    """A public function, that hands over to the engine what is for a device.

    One that computes anywhere has a name by it, and no more.
    """

    cdef Vectorcall vectorcall
    cdef Vectorcall inner_vectorcall
    cdef PyObject *inner             # owned by `function`
    cdef object function
    cdef str name                    # as the engine knows it
    cdef Py_ssize_t most             # positional arguments that it takes
    cdef int kind
    cdef dict __dict__
    cdef object __weakref__

    def __cinit__(self, function, str name, str kind):
        self.function = function
        self.inner = <PyObject *>function
        self.inner_vectorcall = ndx_vectorcall_of(self.inner)
        self.name = name
        self.kind = {"computes": COMPUTES, "takes device": TAKES_DEVICE,
                     "creates": CREATES, "anywhere": ANYWHERE}[kind]
        self.vectorcall = call_inner if self.kind == ANYWHERE else call
        self.most = most_positional(function)
        functools.update_wrapper(self, function)

    def __call__(self, *args, **kwargs):
        # By its name only: calls go to `call`, below.
        return self(*args, **kwargs)

    def __get__(self, instance, owner):
        return self if instance is None else types.MethodType(self, instance)

    def __reduce__(self):
        return self.__qualname__

    def __repr__(self):
        return f"<function {self.__module__}.{self.__qualname__}>"


# Results and errors go through as they are, so that the C compiler jumps.
cdef PyObject *call(PyObject *self, PyObject **args, size_t nargsf,
                    PyObject *names) noexcept:
    if devices.in_use or (names != NULL and (<Function>self).kind != COMPUTES):
        return call_by_operands(self, args, nargsf, names)
    if ndx_count(nargsf) > (<Function>self).most:
        return refuse(self, args, nargsf, names)
    return (<Function>self).inner_vectorcall(
        (<Function>self).inner, args, nargsf, names)


cdef PyObject *call_inner(PyObject *self, PyObject **args, size_t nargsf,
                          PyObject *names) noexcept:
    if ndx_count(nargsf) > (<Function>self).most:
        return refuse(self, args, nargsf, names)
    return (<Function>self).inner_vectorcall(
        (<Function>self).inner, args, nargsf, names)


cdef object call_where_they_lie(PyObject *self, PyObject **args, size_t nargsf,
                                PyObject *names):
    if ndx_count(nargsf) > (<Function>self).most:
        refuse_positional(self, args, nargsf, names)
    if is_elsewhere(<Function>self, args, nargsf, names):
        return hand_over(<Function>self, args, nargsf, names)
    return (<ObjectVectorcall>(<Function>self).inner_vectorcall)(
        (<Function>self).inner, args, nargsf, names)


cdef object refuse_positional(PyObject *self, PyObject **args, size_t nargsf,
                              PyObject *names):
    """Say which arguments are given by name, where too many are given without one."""
    cdef Function function = <Function>self
    cdef Py_ssize_t most = function.most
    keywords = [parameter.name for parameter
                in inspect.signature(function.function).parameters.values()
                if parameter.kind is parameter.KEYWORD_ONLY]
    text = (f"{function.__name__}() takes {most} positional "
            f"argument{'s' * (most != 1)}, but {ndx_count(nargsf)} were given")
    if keywords:
        value = <object>args[most]
        shown = value.__name__ if isinstance(value, type) else repr(value)
        given = ", ".join(["x"] * min(most, 1) + ["..."] * (most > 1) + [
            f"{keywords[0]}={shown if len(shown) <= 20 else '...'}"])
        text += (f"; {', '.join([f'{name}=' for name in keywords])} "
                 f"{'is' if len(keywords) == 1 else 'are'} given by name, as in "
                 f"{function.__module__}.{function.__name__}({given})")
    raise TypeError(text)


cdef Py_ssize_t most_positional(object function) except -1:
    """Return how many positional arguments a function takes at most."""
    code = getattr(function, "__code__", None)
    if code is None or code.co_flags & inspect.CO_VARARGS:
        return PY_SSIZE_T_MAX
    return code.co_argcount


# Variables keep them out of `call`, which then needs no stack.
cdef Vectorcall call_by_operands = <Vectorcall><void *>call_where_they_lie
cdef Vectorcall refuse = <Vectorcall><void *>refuse_positional


cdef bint is_elsewhere(Function function, PyObject **args, size_t nargsf,
                       PyObject *names) except -1:
    """Whether the engine computes a call."""
    cdef Py_ssize_t given = ndx_count(nargsf), named = 0, i
    if names != NULL:
        named = Py_SIZE(names)
    for i in range(given + named):
        if holds_off_host(args[i]):
            return True
    if function.kind == COMPUTES:
        return False
    for i in range(named):
        if <object>PyTuple_GET_ITEM(names, i) == "device" and \
                <object>args[given + i] is not None:
            return find_device(<object>args[given + i]) != CPU
    return function.kind == CREATES and placing_device() != 0


cdef object hand_over(Function function, PyObject **args, size_t nargsf,
                      PyObject *names):
    cdef Py_ssize_t given = ndx_count(nargsf), i
    cdef list positional = []
    cdef dict kwargs = {}
    for i in range(given):
        positional.append(<object>args[i])
    if names != NULL:
        for i in range(Py_SIZE(names)):
            kwargs[<object>PyTuple_GET_ITEM(names, i)] = <object>args[given + i]
    return compute_elsewhere(function.name, tuple(positional), kwargs)


cdef Function sample = Function(len, "len", "computes")
ndx_set_vectorcall(
    Function, <char *>&sample.vectorcall - <char *><PyObject *>sample)


def synchronize(device=None):
    """Wait until what devices were given to compute is done.

    Parameters
    ----------
    device : Device or str, optional
        Default: all that are used. The CPU is always done.

    Notes
    -----
    Computing on a GPU goes on after the call that started it. What reads a result
    (`float`, `repr`, ``to_device("cpu")``) waits for it by itself.

    Examples
    --------
    >>> import ndx
    >>> ndx.synchronize()
    """
    if device is not None and find_device(device) == CPU:
        return
    if device is not None or devices.in_use:
        compute_elsewhere("synchronize", (), {"device": device})


def waitall(*, trim=False):
    """Wait until all devices are done with what they were given to compute.

    Parameters
    ----------
    trim : bool, default False
        Whether to give idle memory back then: of all backends, as
        `ndx.memory.empty_cache` does.

    Notes
    -----
    MXNet's ``waitall``: `synchronize`, of all devices.

    Examples
    --------
    >>> import ndx
    >>> ndx.waitall()
    >>> ndx.waitall(trim=True)
    """
    synchronize()
    if trim:
        for each in _pressure.live_pools():
            each.trim()


def dispatched(function, str name, str module, str kind="computes"):
    """Return a public function that computes on devices, too.

    Parameters
    ----------
    function : callable
        What computes on the CPU.
    name : str
        Its name in the namespace: ``"sum"``, ``"linalg.inv"``.
    module : str
        Where users find it.
    kind : {"computes", "takes device", "creates", "anywhere"}
        Whether it has ``device=`` and, if so, whether its default is where new arrays
        are made, or where the operand lies; "anywhere": nothing is handed over.
    """
    made = Function(function, name, kind)
    made.__module__ = module
    made.__name__ = made.__qualname__ = name.rpartition(".")[2]
    return made

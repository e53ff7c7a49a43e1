"""What a function of the namespace is: a call, a public name, and a telling error."""

cimport cython
from cpython.object cimport PyObject

import functools
import inspect
import types

__all__ = ["Function"]

cdef extern from "ndx/vectorcall.h":
    ctypedef PyObject *(*Vectorcall "ndx_vectorcall")(
        PyObject *, PyObject **, size_t, PyObject *) noexcept
    Vectorcall ndx_vectorcall_of(PyObject *callable) noexcept
    int ndx_set_vectorcall(object cls, Py_ssize_t offset) except -1
    Py_ssize_t ndx_count(size_t nargsf) noexcept

cdef extern from "Python.h":
    Py_ssize_t PY_SSIZE_T_MAX


@cython.final
cdef class Function:
    """A function by its public name: so it prints, pickles, and says what it takes.

    A compiled function prints its address, and says of a keyword-only argument that
    was given by position only that there were too many. A call costs one jump in C and
    no frame of Python.

    Parameters
    ----------
    function : callable
        What computes.
    name, module : str
        Where users find it.
    """

    cdef Vectorcall vectorcall
    cdef Vectorcall inner_vectorcall
    cdef PyObject *inner             # owned by `function`
    cdef object function
    cdef Py_ssize_t most             # positional arguments that it takes
    cdef dict __dict__
    cdef object __weakref__

    def __cinit__(self, function, str name, str module):
        self.function = function
        self.inner = <PyObject *>function
        self.inner_vectorcall = ndx_vectorcall_of(self.inner)
        self.vectorcall = call
        self.most = most_positional(function)
        functools.update_wrapper(self, function)
        self.__module__ = module
        self.__name__ = self.__qualname__ = name

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
    if ndx_count(nargsf) > (<Function>self).most:
        return refuse(self, args, nargsf, names)
    return (<Function>self).inner_vectorcall(
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


# A variable keeps it out of `call`, which then needs no stack.
cdef Vectorcall refuse = <Vectorcall><void *>refuse_positional

cdef Function sample = Function(len, "len", "builtins")
ndx_set_vectorcall(
    Function, <char *>&sample.vectorcall - <char *><PyObject *>sample)

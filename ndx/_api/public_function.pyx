"""The public wrapper of functions: a public name, and better errors for calls."""

cimport cython
from cpython.object cimport PyObject

import inspect
import types

from ndx._lib.free_threading cimport ndx_keep_for_ever

__all__ = ["Function"]

cdef extern from "ndx/internal/vectorcall.h":
    ctypedef PyObject *(*Vectorcall "ndx_vectorcall")(
        PyObject *, PyObject **, size_t, PyObject *) noexcept
    Vectorcall ndx_vectorcall_of(PyObject *callable) noexcept
    int ndx_set_vectorcall(object cls, Py_ssize_t offset) except -1
    Py_ssize_t ndx_count(size_t nargsf) noexcept

ctypedef object (*Inner)(PyObject *, PyObject **, size_t, PyObject *)

cdef extern from "Python.h":
    Py_ssize_t PY_SSIZE_T_MAX


@cython.final
@cython.binding(False)
@cython.embedsignature(True)
cdef class Function:
    """A function with a public name, for its repr, pickles and errors.

    The repr of a compiled function shows an address. Its error for a keyword-only
    argument given by position counts the arguments but does not name it. The wrapper
    costs one jump in C and no Python frame.

    Parameters
    ----------
    function : callable
        The function that computes.
    name, module : str
        Its public name, and the module that has it.
    """

    cdef Vectorcall vectorcall
    cdef Vectorcall inner_vectorcall
    cdef PyObject *inner             # owned by `function`
    cdef object function
    cdef Py_ssize_t most             # largest number of positional arguments
    cdef Py_ssize_t least            # smallest, for a renamed one; else 0
    cdef bint renamed                # whether the compiled function has another name
    cdef tuple keywords              # of a renamed one
    cdef dict __dict__
    cdef object __weakref__

    def __cinit__(self, function, str name, str module):
        self.function = function
        self.inner = <PyObject *>function
        self.inner_vectorcall = ndx_vectorcall_of(self.inner)
        self.vectorcall = call
        ndx_keep_for_ever(self)
        self.most = most_positional(function)
        code = getattr(function, "__code__", None)
        self.renamed = code is not None and code.co_name != name
        if self.renamed:
            self.least = min(code.co_posonlyargcount,
                             code.co_argcount - len(function.__defaults__ or ()))
            self.keywords = code.co_varnames[
                code.co_posonlyargcount : code.co_argcount + code.co_kwonlyargcount]
        # As `functools.update_wrapper` does.
        vars(self).update({
            **function.__dict__, "__annotations__": function.__annotations__,
            "__doc__": function.__doc__, "__module__": module, "__name__": name,
            "__qualname__": name, "__wrapped__": function,
        })

    def __call__(self, *args, **kwargs):
        # Only an explicit `__call__` comes here; calls go to `call`, below.
        return self(*args, **kwargs)

    def __get__(self, instance, owner):
        return self if instance is None else types.MethodType(self, instance)

    def __reduce__(self):
        return self.__qualname__

    def __repr__(self):
        return f"<function {self.__module__}.{self.__qualname__}>"


# Results and errors are passed on unchanged, so that the C compiler makes a tail call.
cdef PyObject *call(PyObject *self, PyObject **args, size_t nargsf,
                    PyObject *names) noexcept:
    if ndx_count(nargsf) > (<Function>self).most:
        return refuse(self, args, nargsf, names)
    if (<Function>self).renamed and (
            names != NULL or ndx_count(nargsf) < (<Function>self).least):
        return call_checked(self, args, nargsf, names)
    return (<Function>self).inner_vectorcall(
        (<Function>self).inner, args, nargsf, names)


cdef object checked(PyObject *self, PyObject **args, size_t nargsf, PyObject *names):
    """Call a function whose compiled code has another name, which no error may show."""
    cdef Function function = <Function>self
    cdef Py_ssize_t count = ndx_count(nargsf)
    if function.renamed and names != NULL:
        for name in <tuple>names:
            if name not in function.keywords:
                raise TypeError(
                    f"{function.__name__}() got an unexpected keyword argument "
                    f"{name!r}; valid {'is' if len(function.keywords) == 1 else 'are'} "
                    f"{'=, '.join(function.keywords)}=")
    if count < function.least:
        raise TypeError(counted(function, function.least, count))
    return (<Inner>function.inner_vectorcall)(function.inner, args, nargsf, names)


cdef str counted(Function function, Py_ssize_t expected, Py_ssize_t count):
    return (f"{function.__name__}() takes {expected} positional "
            f"argument{'s' * (expected != 1)}, but {count} were given")


cdef object refuse_positional(PyObject *self, PyObject **args, size_t nargsf,
                              PyObject *names):
    """Raise TypeError for too many positional arguments; name the keyword-only ones."""
    cdef Function function = <Function>self
    cdef Py_ssize_t most = function.most
    cdef Py_ssize_t count = ndx_count(nargsf)
    parameters = list(inspect.signature(function.function).parameters.values())
    keywords = [parameter.name for parameter in parameters
                if parameter.kind is parameter.KEYWORD_ONLY]
    text = counted(function, most, count)
    rest = [<object>args[i] for i in range(max(most - 1, 0), count)]
    several = together(parameters[most - 1].name, rest) if most else None
    if several is not None:
        text += (f"; `{parameters[most - 1].name}` is one argument, as in "
                 f"{function.__module__}.{function.__name__}("
                 f"{''.join(['x, '] * (most - 1))}{several})")
    elif keywords:
        value = <object>args[most]
        shown = value.__name__ if isinstance(value, type) else repr(value)
        given = ", ".join(["x"] * min(most, 1) + ["..."] * (most > 1) + [
            f"{keywords[0]}={shown if len(shown) <= 20 else '...'}"])
        text += (f"; {', '.join([f'{name}=' for name in keywords])} "
                 f"{'is' if len(keywords) == 1 else 'are'} given by name, as in "
                 f"{function.__module__}.{function.__name__}({given})")
    raise TypeError(text)


cdef object together(str name, list values):
    """Return how values that were given one by one are written as one; else None."""
    if name in ("shape", "axes", "repetitions") and \
            all([type(value) is int for value in values]):
        return repr(tuple(values))
    if name == "arrays" and \
            all([hasattr(type(value), "__array__") for value in values]):
        return f"[{', '.join([f'x{i + 1}' for i in range(len(values))])}]"
    return None


cdef Py_ssize_t most_positional(object function) except -1:
    """Return the largest number of positional arguments that a function accepts."""
    code = getattr(function, "__code__", None)
    if code is None or code.co_flags & inspect.CO_VARARGS:
        return PY_SSIZE_T_MAX
    return code.co_argcount


# The variables prevent inlining into `call`, which then needs no stack frame.
cdef Vectorcall call_checked = <Vectorcall><void *>checked
cdef Vectorcall refuse = <Vectorcall><void *>refuse_positional

cdef Function sample = Function(inspect.getdoc, "getdoc", "inspect")
ndx_set_vectorcall(
    Function, <char *>&sample.vectorcall - <char *><PyObject *>sample)

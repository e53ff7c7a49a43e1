"""NumPy's ufuncs on NDArrays: the implementation of ``NDArray.__array_ufunc__``.

References
----------
NEP 13, a mechanism for overriding ufuncs: https://numpy.org/neps/nep-0013
"""

import numpy as np

from ndx._array.storage cimport BaseArray, is_array, numpy_view, require_writeable
from ndx._compute.elementwise cimport as_operand, binary, unary
from ndx._compute.loops cimport Ufunc, find_ufunc
from ndx._compute.matmul cimport matmul
from ndx._compute.numpy_results cimport call_numpy, own_result

# NumPy's ufunc -> ndx's name of the operation.
cdef dict NAMES = {}

# (ufunc, method) -> the function of ndx that computes the same.
cdef dict METHODS = {
    ("add", "reduce"): "sum", ("multiply", "reduce"): "prod",
    ("maximum", "reduce"): "max", ("minimum", "reduce"): "min",
    ("logical_and", "reduce"): "all", ("logical_or", "reduce"): "any",
    ("add", "accumulate"): "cumulative_sum",
    ("multiply", "accumulate"): "cumulative_prod",
    ("multiply", "outer"): "linalg.outer",
}


cdef object compute_ufunc(object ufunc, str method, tuple inputs, dict kwargs):
    """Compute a call of a ufunc in ndx; refuse the ufunc's other methods."""
    cdef tuple out = outputs(kwargs.get("out"))
    if others_override(inputs) or (out is not None and others_override(out)):
        return NotImplemented
    if method != "__call__":
        raise method_error(ufunc, method)
    if len(inputs) != ufunc.nin or (out is not None and len(out) != ufunc.nout):
        # NumPy checks this before it calls an array, but other callers may not.
        raise TypeError(
            f"np.{ufunc.__name__} takes {ufunc.nin} inputs and, if any, {ufunc.nout} "
            f"outputs, not {len(inputs)} and {0 if out is None else len(out)}")
    if out is not None and all([target is None for target in out]):
        out = None
        del kwargs["out"]
    name = NAMES.get(ufunc)
    if name is not None and not (kwargs.keys() - {"out"}) and (
            out is None or is_array(out[0])):
        result = known_ufunc(name, inputs, None if out is None else out[0])
        if result is not NotImplemented:
            return result
    return through_numpy(ufunc, inputs, kwargs)


cdef tuple outputs(object out):
    """Return ``out=`` as a tuple; None: new arrays receive the results."""
    if out is None or type(out) is tuple:
        return out
    return (out,)


cdef object method_error(object ufunc, str method):
    """Return the error for a method of a ufunc; it names the function to call."""
    name = METHODS.get((ufunc.__name__, method))
    advice = "" if name is None else f"call ndx.{name}(x), or "
    if method == "at":
        advice = "assign to x[indices], or "
    return TypeError(
        f"np.{ufunc.__name__}.{method} does not compute on NDArrays, whose "
        f"__array_ufunc__ takes only calls of ufuncs: {advice}give np.asarray(x), a "
        "view of the same memory, to NumPy")


cdef bint others_override(tuple operands) except -1:
    """Whether an operand of another library overrides ufuncs."""
    for item in operands:
        if not is_array(item) and not isinstance(item, np.ndarray) and \
                hasattr(type(item), "__array_ufunc__") and \
                not isinstance(item, np.generic):
            return True
    return False


cdef object known_ufunc(str name, tuple inputs, BaseArray out):
    """Compute one of ndx's operations; NotImplemented if ndx can't use an operand."""
    cdef Ufunc known = find_ufunc(name)
    cdef BaseArray operand
    if name == "matmul":
        return matmul(inputs[0], inputs[1], out)
    if known.nin == 2:
        return binary(known, inputs[0], inputs[1], out)
    operand = as_operand(inputs[0])
    return NotImplemented if operand is None else unary(known, operand, out)


cdef object through_numpy(object ufunc, tuple inputs, dict kwargs):
    """Call a ufunc on NumPy views of the arrays, and adopt its results."""
    cdef tuple out = outputs(kwargs.get("out"))
    if out is not None:
        for target in out:
            if is_array(target):
                require_writeable(<BaseArray>target)
        kwargs["out"] = tuple([as_numpy(target) for target in out])
    if "where" in kwargs:
        kwargs["where"] = as_numpy(kwargs["where"])
    results = call_numpy(ufunc, tuple([as_numpy(item) for item in inputs]), kwargs)
    if out is not None:
        return out[0] if len(out) == 1 else out
    if isinstance(results, tuple):
        return tuple([own_result(np.asarray(item)) for item in results])
    return own_result(np.asarray(results))


cdef object as_numpy(object item):
    return numpy_view(<BaseArray>item) if is_array(item) else item


def register_ufuncs(names):
    """Let ndx compute NumPy's ufuncs of these operations on NDArrays."""
    for name in names:
        NAMES[find_ufunc(name).public] = name

"""Fused functions on a GPU: `cupy.fuse` makes their kernels.

A kernel's steps are written down as a function of CuPy's arrays, which CuPy traces and
compiles at its first call. It reads each part of an array once, and stores results at
its end, in place. Scalars are arguments, so that another value needs no new kernel.
"""

import numpy as np

import ndx._fusing.rules as rules
from ndx._cuda.calls import function_of
from ndx._cuda.overrides_elementwise import MENDED
from ndx._cuda.session import session_for
from ndx.backends import _cupy

__all__ = ["FusedCall"]

_REDUCTIONS = {"add": "sum", "maximum": "max", "minimum": "min",
               "logical_or": "any", "logical_and": "all"}  # fmt: skip
# Of integers, the standard's functions return them as they are.
_ROUNDING = ("ceil", "floor", "trunc")


class FusedCall:
    """A program of `ndx.fuse`, computed by CuPy.

    Parameters
    ----------
    program : ndx._fusing.device_lowering.DeviceProgram

    Raises
    ------
    NotImplementedError
        If a step is more to CuPy than one of its ufuncs.
    """

    def __init__(self, program):
        self.program = program
        self.launches = [
            _reduction(launch) if hasattr(launch, "axes") else _kernel(launch)
            for launch in program.launches
        ]

    def __call__(self, arrays, scalars):
        """Compute, for the arrays and scalars among the arguments of a call."""
        program = self.program
        session = session_for(arrays)
        with session.at_work():
            slots = [
                session.unwrap(x) if i in program.used else None
                for i, x in enumerate(arrays)
            ]
            slots += [_empty(*made) for made in program.made]
            for launch in self.launches:
                launch(slots, scalars)
            found = [*arrays, *[None] * len(program.made)]

            def returned(spec):
                kind, value, *view = spec
                if kind == "slot":
                    if found[value] is None:
                        found[value] = session.wrap(slots[value])
                    return found[value]
                if kind == "view":
                    base = slots[value]
                    if base is None:
                        base = session.unwrap(found[value])
                    return session.wrap(_part(base, base.dtype, *view))
                if kind == "tuple":
                    return tuple(returned(item) for item in value)
                if kind == "list":
                    return [returned(item) for item in value]
                if kind == "dict":
                    return {key: returned(item) for key, item in value}
                return value

            return returned(program.result)


def _empty(code, shape, order):
    """Return a new array of CuPy, whose axes lie in memory in an order."""
    cupy = _cupy.load()
    made = cupy.empty([shape[axis] for axis in order], rules.dtype_of(code))
    return made.transpose(np.argsort(order).tolist()) if len(order) > 1 else made


def _part(base, dtype, offset, shape, strides):
    """Return a part of an array of CuPy, by bytes from its first element."""
    if offset == 0 and (base.shape, base.strides) == (shape, strides):
        return base
    return _cupy.load().ndarray(shape, dtype, base.data + offset, strides)


def _leaf(slots, leaf):
    dtype = rules.dtype_of(leaf.code)
    return _part(slots[leaf.slot], dtype, leaf.offset, leaf.shape, leaf.strides)


def _element(value, code):
    """Return bytes as a scalar of NumPy."""
    return np.frombuffer(value, rules.dtype_of(code))[0]


def _reduction(launch):
    """Return a function that computes a reduction: of the slots and scalars."""

    def compute(slots, scalars):
        source, target = _leaf(slots, launch.source), _leaf(slots, launch.target)
        if not launch.axes:
            target[...] = source
            return
        how = {"dtype": source.dtype} if launch.name == "add" else {}
        function_of(_REDUCTIONS[launch.name])(
            source, axis=launch.axes, out=target, keepdims=True, **how
        )

    return compute


def _kernel(launch):
    """Return a function that computes elementwise steps: of the slots and scalars."""
    functions = [_function(step) for step in launch.steps]
    count = len(launch.leaves)

    def steps(*given):
        # The tracer of CuPy sees each value once: what is stored is not read again.
        known = {
            **{("leaf", i): x for i, x in enumerate(given[:count])},
            **{("value", i): x for i, x in enumerate(given[count:])},
        }
        for step, function in zip(launch.steps, functions, strict=True):
            result = function(*(known[operand] for operand in step.operands))
            dtype = rules.dtype_of(step.into)
            # CuPy's conj of bools is an integer.
            if result.dtype != dtype:
                result = result.astype(dtype)
            known[step.target] = result
        for target in dict.fromkeys(step.target for step in launch.steps):
            if target[0] == "leaf":
                given[target[1]][...] = known[target]

    fused = _cupy.load().fuse(kernel_name="ndx_fused")(steps)

    def compute(slots, scalars):
        values = [
            _element(value, code)
            if type(value) is bytes
            else _element(rules.scalar_bytes(scalars[value], code), code)
            for value, code in launch.scalars
        ]
        fused(*(_leaf(slots, leaf) for leaf in launch.leaves), *values)

    return compute


def _function(step):
    """Return the function of CuPy that computes a step."""
    dtype = rules.dtype_of(step.code)
    if step.name == "copy":
        # A scalar never changes.
        return _same if step.operands[0][0] == "value" else _copied
    if step.name == "cast":
        into = rules.dtype_of(step.into)
        return lambda x: x.astype(into)
    if step.name == "select":
        return function_of("where")
    cupy = _cupy.load()
    if step.name in _ROUNDING and dtype.kind != "f":
        return _copied
    if step.name == "sign" and dtype.kind == "f":
        # CuPy's sign of NaN is 0.
        return lambda x: cupy.where(cupy.isnan(x), x, cupy.sign(x))
    of_cupy = step.name in _ROUNDING or (step.name == "sign" and dtype.kind in "iu")
    function = getattr(cupy if of_cupy else _cupy.namespace(), step.name)
    kinds, _ = MENDED.get(step.name, ("", None))
    if dtype.kind in kinds or not isinstance(function, cupy.ufunc):
        msg = f"CuPy has no single function for {step.name} of {dtype}"
        raise NotImplementedError(msg)
    return function


def _same(x):
    return x


def _copied(x):
    return x.copy()

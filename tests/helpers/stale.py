"""Arrays that are stale, and how each function of the namespace takes one."""

import contextlib
import inspect

import numpy as np

import ndx

# How an array became stale. "open": its workspace is in a later cycle now.
KINDS = ("arena", "spilled", "adopted", "view", "open")

# Functions that take no array, or look at no more than its dtype.
NO_ARRAYS = frozenset(
    "arange broadcast_shapes can_cast current_backend empty eye fft.fftfreq "
    "fft.rfftfreq finfo get_include iinfo isdtype linspace ones result_type "
    "set_default workspace zeros".split()
)
# Positional parameters that are arrays, and what the others are given.
ARRAYS = frozenset({"x", "x1", "x2", "obj"})
GIVEN = {
    "axes": (1, 0),
    "axis": 0,
    "condition": np.ones((3, 3), dtype=bool),
    "destination": 1,
    "dtype": "float64",
    "fill_value": 1.0,
    "indices": np.zeros((1, 3), dtype=np.int64),
    "n": 2,
    "repeats": 2,
    "repetitions": (2, 1),
    "shape": (3, 3),
    "shift": 1,
    "source": 0,
}


def array(*shape, dtype="float64"):
    return lambda: ndx.ones(shape, dtype=dtype)


MATRIX = array(3, 3)
LINE = array(3)
# What makes the arrays of functions that don't take a matrix of float64.
MADE = {
    "bitwise_and": array(3, dtype="int64"),
    "bitwise_invert": array(3, dtype="int64"),
    "bitwise_left_shift": array(3, dtype="int64"),
    "bitwise_or": array(3, dtype="int64"),
    "bitwise_right_shift": array(3, dtype="int64"),
    "bitwise_xor": array(3, dtype="int64"),
    "cumulative_prod": LINE,
    "cumulative_sum": LINE,
    "fft.hfft": array(3, dtype="complex128"),
    "fft.irfft": array(3, dtype="complex128"),
    "imag": array(3, dtype="complex128"),
    "linalg.outer": LINE,
    "searchsorted": LINE,
    "squeeze": array(1, 3),
    "take": LINE,
}
GIVEN_TO = {"take": {"indices": np.zeros(2, dtype=np.int64)}}
# Arrays that are taken otherwise: (what makes the array, what uses it).
INT_LINE = array(3, dtype="int64")
BOOL_LINE = array(3, dtype="bool")
MORE = {
    "broadcast_arrays(s)": (LINE, lambda s, x: ndx.broadcast_arrays(s)),
    "broadcast_arrays(x, s)": (LINE, lambda s, x: ndx.broadcast_arrays(x, s)),
    "clip(min=s)": (LINE, lambda s, x: ndx.clip(x, min=s)),
    "clip(max=s)": (LINE, lambda s, x: ndx.clip(x, max=s)),
    "clip(out=s)": (LINE, lambda s, x: ndx.clip(x, 0.0, 1.0, out=s)),
    "concat([s])": (LINE, lambda s, x: ndx.concat([s])),
    "concat([x, s])": (LINE, lambda s, x: ndx.concat([x, s])),
    "concat(axis=None)": (LINE, lambda s, x: ndx.concat([x, s], axis=None)),
    "diff(prepend=s)": (LINE, lambda s, x: ndx.diff(x, prepend=s)),
    "diff(append=s)": (LINE, lambda s, x: ndx.diff(x, append=s)),
    "full(s)": (array(), lambda s, x: ndx.full(3, s)),
    "full_like(fill_value=s)": (array(), lambda s, x: ndx.full_like(x, s)),
    "matmul(out=s)": (MATRIX, lambda s, x: ndx.matmul(x, x, out=s)),
    "meshgrid(s)": (LINE, lambda s, x: ndx.meshgrid(s)),
    "meshgrid(x, s)": (LINE, lambda s, x: ndx.meshgrid(x, s)),
    "repeat(repeats=s)": (INT_LINE, lambda s, x: ndx.repeat(x, s)),
    "reshape(copy=True)": (LINE, lambda s, x: ndx.reshape(s, (1, 3), copy=True)),
    "searchsorted(sorter=s)": (
        INT_LINE,
        lambda s, x: ndx.searchsorted(x, x, sorter=s - s if s.in_scope else s),
    ),
    "stack([s])": (LINE, lambda s, x: ndx.stack([s])),
    "stack([x, s])": (LINE, lambda s, x: ndx.stack([x, s])),
    "take(indices=s)": (INT_LINE, lambda s, x: ndx.take(x, s)),
    "take_along_axis(indices=s)": (
        INT_LINE,
        lambda s, x: ndx.take_along_axis(x, s),
    ),
    "where(condition=s)": (BOOL_LINE, lambda s, x: ndx.where(s, x, x)),
    "where(s, 1, 2)": (BOOL_LINE, lambda s, x: ndx.where(s, 1, 2)),
}


def public_functions():
    functions = {
        name: getattr(ndx, name)
        for name in dir(ndx)
        if not name.startswith("_") and inspect.isroutine(getattr(ndx, name))
    }
    for chapter in (ndx.linalg, ndx.fft):
        for name in chapter.__all__:
            if inspect.isroutine(getattr(chapter, name)):
                functions[f"{chapter.__name__[4:]}.{name}"] = getattr(chapter, name)
    return functions


FUNCTIONS = public_functions()


@contextlib.contextmanager
def stale_array(make, kind):
    """Give (an array after its scope, its workspace, its generation)."""
    workspace = ndx.workspace(size=0 if kind == "spilled" else "1MiB")
    with workspace:
        generation = workspace.generation
        x = make()
        if kind == "adopted":
            x = x[np.arange(len(x))] if x.ndim else x[np.ones((), bool)][0]
        elif kind == "view":
            x = x[...]
    with workspace if kind == "open" else contextlib.nullcontext():
        yield x, workspace, generation


def function_paths():
    """Return {name: (what makes the array, what uses it)}, for each argument."""
    paths = {f"ndx.{name}": path for name, path in MORE.items()}
    for name, function in FUNCTIONS.items():
        if name in NO_ARRAYS:
            continue
        parameters = [
            parameter
            for parameter in inspect.signature(function).parameters.values()
            if parameter.default is parameter.empty
            and parameter.kind is not parameter.VAR_POSITIONAL
        ]
        given = GIVEN | GIVEN_TO.get(name, {})
        for chosen in parameters:
            if chosen.name in ARRAYS:
                made = matrix_for(name)
                use = call(function, parameters, chosen, given)
                paths[f"ndx.{name}({chosen.name})"] = made, use
    return paths


def matrix_for(name):
    if name.startswith("linalg.") and name not in MADE:
        return lambda: ndx.eye(3)
    if name.startswith("fft.ir"):
        return array(3, 3, dtype="complex128")
    return MADE.get(name, MATRIX)


def call(function, parameters, chosen, given):
    def use(stale, live):
        args = [
            stale if parameter is chosen
            else live if parameter.name in ARRAYS
            else given[parameter.name]
            for parameter in parameters
        ]  # fmt: skip
        return function(*args)

    return use

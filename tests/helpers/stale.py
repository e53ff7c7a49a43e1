"""Arrays that are stale, and how each function of the namespace takes one."""

import contextlib
import inspect

import numpy as np

import ndx

# How an array became stale. "open": its workspace is in a later cycle now.
KINDS = ("arena", "spilled", "adopted", "view", "open")

# Functions that take no array.
NO_ARRAYS = frozenset(
    "arange current_backend empty eye linspace ones set_default workspace zeros".split()
)
# Positional parameters that are arrays, and what the others are given.
ARRAYS = frozenset({"x", "x1", "x2", "obj"})
GIVEN = {"shape": (3,), "fill_value": 1.0, "axis": 0}
FUNCTIONS = {
    name: getattr(ndx, name)
    for name in dir(ndx)
    if not name.startswith("_") and inspect.isroutine(getattr(ndx, name))
}


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
    paths = {}
    for name, function in FUNCTIONS.items():
        if name in NO_ARRAYS:
            continue
        parameters = [
            parameter
            for parameter in inspect.signature(function).parameters.values()
            if parameter.default is parameter.empty
        ]
        for chosen in parameters:
            if chosen.name in ARRAYS:
                path = f"ndx.{name}({chosen.name})"
                paths[path] = make_operand(name), call(function, parameters, chosen)
    return paths


def make_operand(name):
    dtype = "int64" if name.startswith("bitwise") else "float64"
    return lambda: ndx.ones((3, 3), dtype=dtype)


def call(function, parameters, chosen):
    def use(stale, live):
        args = [
            stale if parameter is chosen
            else live if parameter.name in ARRAYS
            else GIVEN[parameter.name]
            for parameter in parameters
            if parameter.kind is not parameter.KEYWORD_ONLY
        ]  # fmt: skip
        return function(*args)

    return use

"""Arrays that are stale, and how each function of the namespace takes one."""

import contextlib

import numpy as np
import pytest

import ndx
from helpers.calls import CALLS, resolve

# How an array became stale. "open": its workspace is in a later cycle now.
KINDS = ("arena", "spilled", "adopted", "view", "open")


@contextlib.contextmanager
def stale_array(make, kind):
    """Give (an array after its scope, its workspace, its generation)."""
    workspace = ndx.workspace(size=0 if kind == "spilled" else "1MiB")
    with workspace:
        generation = workspace.generation
        x = make()
        if kind == "adopted":
            x = x[np.arange(len(x))] if x.ndim else x[np.ones((), bool)][0, ...]
        elif kind == "view":
            x = x[...]
    with workspace if kind == "open" else contextlib.nullcontext():
        yield x, workspace, generation


def function_paths():
    """Return {name: (what makes the array, what uses it)}, for each argument."""
    paths = {}
    for name, (operands, call) in CALLS.items():
        function = resolve(ndx, name)
        for chosen, operand in enumerate(operands):
            path = f"ndx.{name}({chosen})"
            paths[path] = _maker(operand), _use(function, call, operands, chosen)
    return paths


def _maker(operand):
    return lambda: ndx.asarray(operand, copy=True)


def _use(function, call, operands, chosen):
    def use(stale, live):
        args = [ndx.asarray(operand) for operand in operands]
        args[chosen] = stale
        return call(function, *args)

    return use


def message_of(use, *args):
    """Return the message of the StaleArrayError that `use` raises."""
    try:
        use(*args)
    except ndx.StaleArrayError as error:
        return str(error)
    pytest.fail("no StaleArrayError")

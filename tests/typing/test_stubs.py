"""The stubs say what is there at run time: names, parameters and defaults."""

import ast
import importlib
import inspect
import re
import subprocess
import sys
import types
from pathlib import Path

import numpy as np
import pytest
from ndx._lib.numpy_private import NO_VALUE

import ndx
import ndx.testing
from ndx import numpy
from ndx._numpy.wrappers import NumPyFunction

ROOT = Path(ndx.__file__).parent


def module_of(path):
    name = ".".join(["ndx", *path.relative_to(ROOT).with_suffix("").parts])
    return name.removesuffix(".__init__")


TEXTS = {
    module_of(path): path.read_text(encoding="utf-8") for path in ROOT.rglob("*.pyi")
}
STUBS = {
    module: ast.parse(text)
    for module, text in sorted(TEXTS.items())
    if text.startswith("# Generated")
}
# The stubs of `ndx.numpy` are those of the NumPy that ndx was built with.
[BUILT_WITH] = re.findall(r"those of NumPy ([\d.]+)\.", TEXTS["ndx.numpy"])
SAME_NUMPY = np.__version__.startswith(f"{BUILT_WITH}.")
# Filled in by Python, which names parameters of operators itself.
SLOTS = (types.WrapperDescriptorType, types.MethodDescriptorType)


def functions(node, owner, name):
    """Yield each function of a stub, with what it is at run time."""
    for each in node.body:
        if isinstance(each, ast.ClassDef):
            cls = getattr(owner, each.name)
            yield from functions(each, cls, f"{name}.{each.name}")
        elif isinstance(each, ast.FunctionDef) and not each.decorator_list:
            # Before 3.12 the buffer has no name; another NumPy has other functions.
            absent = owner is numpy and not hasattr(np, each.name)
            default = [None] if absent or each.name == "__buffer__" else []
            yield f"{name}.{each.name}", each, getattr(owner, each.name, *default)


FUNCTIONS = {
    name: (node, found)
    for module, tree in STUBS.items()
    for name, node, found in functions(tree, importlib.import_module(module), module)
    if found is not None and not isinstance(found, SLOTS)
}


def parameters_of(function):
    try:
        signature = inspect.signature(function)
    except ValueError:  # NumPy does not give all of its own functions one
        assert isinstance(function, NumPyFunction)
        signature = inspect.signature(lambda *args, **kwargs: None)
    # CPython's methods take `self` by position only, of which stubs need not tell.
    return [
        p.replace(kind=p.POSITIONAL_OR_KEYWORD) if p.name == "self" else p
        for p in signature.parameters.values()
    ]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_have_the_same_parameters(name):
    node, function = FUNCTIONS[name]
    made = {"np": np, "NO_VALUE": NO_VALUE}
    exec(f"from __future__ import annotations\n{ast.unparse(node)}", made)
    stub = inspect.signature(made[node.name]).parameters.values()
    runtime = parameters_of(function)
    if name.startswith("ndx.numpy.") and not SAME_NUMPY:
        return
    assert [(p.name, p.kind, p.default) for p in stub] == [
        (p.name, p.kind, p.default) for p in runtime
    ]


def names_of(body):
    """Yield the names that statements of a stub define."""
    for node in body:
        if isinstance(node, ast.ImportFrom):
            for alias in node.names:
                if alias.name == "*":
                    yield from importlib.import_module(node.module).__all__
                else:
                    yield alias.asname
        elif isinstance(node, ast.AnnAssign):
            yield node.target.id


def names_at_import():
    """Return the public names of the namespace when nothing else is imported yet."""
    program = "import ndx; print(*(n for n in vars(ndx) if n[0] != '_'))"
    return subprocess.check_output([sys.executable, "-c", program], text=True).split()


def test_the_namespace_has_the_same_public_names():
    found = {
        name
        for name, value in vars(ndx).items()
        if not name.startswith("_")
        and (not inspect.ismodule(value) or name in names_at_import())
    }
    found |= {"__array_api_version__", "__array_namespace_info__", "__version__"}
    found |= ndx._LATER.keys()
    assert set(names_of(STUBS["ndx"].body)) == found

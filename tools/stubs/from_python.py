"""What a module in Python declares that type checkers would not see in its source.

They read all other annotated modules themselves.
"""

import ast
import copy
import runpy
import sys
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

from stubs.from_cython import (
    documented,
    expression,
    function,
    is_annotated,
    parse,
    statement,
    statements_of,
)

FACTORY = "ndx._compute.ufunc_factory"


def read(path: Path) -> ast.Module:
    """Return the tree of a source in Python."""
    return ast.parse(path.read_text(encoding="utf-8"))


def docstring(node: ast.AST) -> list[ast.stmt]:
    """Return the body of a definition: its docstring."""
    return documented(ast.get_docstring(node, clean=False))


def constants(path: Path) -> dict[str, object]:
    """Return the constants that a module assigns to names."""
    found = {}
    for node in read(path).body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            try:
                found[node.targets[0].id] = ast.literal_eval(node.value)
            except ValueError:
                continue
    return found


def is_public(name: str) -> bool:
    """Whether users of a package see a name of it."""
    return name[0] != "_" or name.startswith("__array") or name == "__version__"


def package(path: Path, root: Path) -> list[ast.stmt]:
    """Return what a package imports under public names, at once or when asked for."""
    tree = read(path)
    body = docstring(tree)
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and node.module != "importlib":
            for each in node.names:
                name = each.asname or each.name
                if is_public(name):
                    alias = ast.alias(each.name, None if name == "*" else name)
                    body.append(ast.ImportFrom(node.module, [alias], 0))
    for name, value in constants(path).items():
        if name == "_CLASSES":
            for each, module in value.items():
                text = f"from ndx.backends.{module} import {each} as {each}"
                body.append(statement(text))
        elif name == "_LATER":
            for each, module in value.items():
                source = "ndx" if module == f"ndx.{each}" else module
                body.append(statement(f"from {source} import {each} as {each}"))
        elif is_public(name):
            kind = None if value is None else type(value).__name__
            body.append(statement(f"{name}: {kind}"))
    return body


def functions(path: Path, root: Path) -> list[ast.stmt]:
    """Return the annotated functions of a module."""
    tree = read(path)
    body = docstring(tree)
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and node.returns is not None:
            node.body = docstring(node)
            body.append(node)
    return body


def table_of_functions(path: Path, root: Path) -> list[ast.stmt]:
    """Return the functions that a module makes from a table.

    The module is run, for their docstrings. What it imports from ndx are stand-ins, so
    that nothing has to be built.
    """
    tree = read(path)
    lines = {e.lineno: e for e in ast.walk(tree) if isinstance(e, ast.FunctionDef)}
    imported = [node.module for node in tree.body if isinstance(node, ast.ImportFrom)]
    modules = {name: mock.MagicMock() for name in imported if name.startswith("ndx.")}
    modules[FACTORY] = factory(root)
    with mock.patch.dict(sys.modules, modules):
        found = runpy.run_path(str(path))
    body = [*docstring(tree), statement(f"__all__ = {found['__all__']!r}")]
    for name in found["__all__"]:
        made = found[name]
        like = getattr(made, "like", None) or lines[made.__code__.co_firstlineno]
        body.append(copy.deepcopy(like))
        body[-1].name = name
        body[-1].body = documented(made.__doc__)
    return body


def factory(root: Path) -> SimpleNamespace:
    """Return stand-ins for the makers of elementwise functions."""
    makers, kinds = {}, {}
    for node in statements_of(parse(root / "ndx/_compute/ufunc_factory.pyx").body):
        for each in filter(is_annotated, statements_of(getattr(node, "body", None))):
            makers[node.name] = function(each)
    for node in statements_of(parse(root / "ndx/_compute/loops.pyx").body):
        for each in getattr(node, "declarators", ()):
            if each.name == "UFUNCS":
                kinds = ast.literal_eval(expression(each.default))
    return SimpleNamespace(
        make_unary=lambda name: SimpleNamespace(like=makers["make_unary"]),
        make_binary=lambda name: SimpleNamespace(like=makers["make_binary"]),
        ufunc_domain=lambda name: kinds[name][1],
        check_operands=None,
    )

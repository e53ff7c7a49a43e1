"""What the modules of `ndx.numpy` have, from NumPy's modules and NumPy's own stubs.

Functions have NumPy's parameters. A result is an NDArray where each overload of NumPy's
stubs returns an array, and `Any` where some return a scalar.
"""

import ast
import functools
import importlib
import inspect
import re
from pathlib import Path
from types import ModuleType

import numpy as np

from stubs.from_cython import documented, statement
from stubs.from_python import docstring, read

VERSION = ".".join(np.__version__.split(".")[:2])
SAID = "The names and parameters are those of NumPy "
# Types of results in NumPy's stubs -> in ours.
RESULTS = {
    "None": r"None",
    "builtins.bool": r"(builtins\.|py_)?bool|TypeGuard\[.*",
    "str": r"str",
    "int": r"int",
    "DType": r"dtype\b.*",
    "NDArray": r"(np\.ndarray|ndarray|_?\w*Array\w*)\b.*",
    "list[NDArray]": r"list\[NDArray.*",
}
# Functions that NumPy's stubs declare as variables -> functions with the same results.
ALIKE = {
    **dict.fromkeys(("empty", "ones", "zeros"), "full"),
    "concat": "concatenate",
    "nancumprod": "cumprod",
    "nancumsum": "cumsum",
    "permute_dims": "transpose",
}


def namespace(path: Path, root: Path) -> list[ast.stmt]:
    """Return the names of a module that `ndx._numpy.namespace.fill` fills."""
    parts = path.relative_to(root / "ndx").with_suffix("").parts
    source = importlib.import_module(".".join(parts).removesuffix(".__init__"))
    tree = read(path)
    body = docstring(tree)
    body[0].value.value += f"\n\n{SAID}{VERSION}.\n"
    own = {}
    for node in tree.body:
        for each in getattr(node, "names", ()):
            name = each.asname or each.name
            if isinstance(node, ast.ImportFrom) and name[0] != "_":
                own[name] = f"from {node.module} import {each.name} as {name}"
    if "ndarray" in own:
        own["ndarray"] = "ndarray = NDArray"
    for name in own.keys() & {"timedelta64", "void"}:
        # Calls make objects of NumPy's class.
        own[name] = f"from numpy import {name} as {name}"
    found = getattr(source, "__all__", vars(source))
    names = sorted(name for name in found if not name.startswith("_"))
    for name in names:
        if name in own:
            body.append(statement(own[name]))
        elif name in vars(source):
            body += declared(source, name)
    imports = [each for each in body if isinstance(each, ast.ImportFrom)]
    return body[:1] + imports + [each for each in body[1:] if each not in imports]


def declared(source: ModuleType, name: str) -> list[ast.stmt]:
    """Return the declaration of a name of NumPy."""
    value = getattr(source, name)
    if isinstance(value, np.ufunc):
        return [statement(f"{name}: NumPyUfunc")]
    if name in ("c_", "index_exp", "mgrid", "ogrid", "r_", "s_"):
        return [statement(f"{name}: NumPyIndexer")]
    if callable(value) and not isinstance(value, type) and name != "test":
        return [function(name, value)]
    return [statement(f"from {source.__name__} import {name} as {name}")]


def function(name: str, value: object) -> ast.FunctionDef:
    """Return the declaration of a function of NumPy."""
    try:
        signature = inspect.signature(value)
    except (TypeError, ValueError):  # of those in C
        text = "(*args: Any, **kwargs: Any)"
    else:
        parameters = [
            each.replace(annotation=Written("Any"), default=default_of(each))
            for each in signature.parameters.values()
        ]
        text = str(inspect.Signature(parameters))
    made = statement(f"def {name}{text}: ...")
    made.returns = ast.parse(result(name), mode="eval").body
    made.body = documented(None)
    return made


class Written(str):
    """A text that stands for itself in a signature."""

    __repr__ = str.__str__


def default_of(parameter: inspect.Parameter) -> object:
    """Return what a stub has for a parameter's default."""
    default = parameter.default
    if default is parameter.empty:
        return default
    if default is np._NoValue:
        return Written("np._NoValue")
    if isinstance(default, type):
        return Written(default.__name__)
    try:
        ast.literal_eval(repr(default))
    except (SyntaxError, ValueError):
        return Written("...")
    return default


def result(name: str) -> str:
    """Return the annotation of what a function returns: `Any` if overloads differ."""
    found = {kind_of(each) for each in returned().get(ALIKE.get(name, name), {"Any"})}
    return found.pop() if len(found) == 1 else "Any"


def kind_of(annotation: str) -> str:
    """Return our annotation for one of NumPy's."""
    try:
        node = ast.parse(annotation, mode="eval").body
    except SyntaxError:  # ``*tuple[...]``, or a syntax of later versions of Python
        return "Any"
    if isinstance(node, ast.BinOp):  # a union
        kinds = {kind_of(ast.unparse(node.left)), kind_of(ast.unparse(node.right))}
        return kinds.pop() if len(kinds) == 1 else "Any"
    if annotation.startswith("tuple[") and isinstance(node.slice, ast.Tuple):
        items = {ast.unparse(each) for each in node.slice.elts} - {"..."}
        arrays = {kind_of(each) for each in items} == {"NDArray"}
        return "tuple[NDArray, ...]" if arrays else "Any"
    for kind, pattern in RESULTS.items():
        if re.fullmatch(pattern, annotation, re.DOTALL):
            return kind
    return "Any"


@functools.cache
def returned() -> dict[str, set[str]]:
    """Return what NumPy's stubs say that functions return, by name."""
    found: dict[str, set[str]] = {}
    folder = Path(np.__file__).parent
    for part in ("_core", "lib", "linalg", "fft"):
        for path in sorted((folder / part).glob("*.pyi")):
            try:
                body = read(path).body
            except SyntaxError:  # of later versions of Python
                continue
            for node in body:
                if isinstance(node, ast.FunctionDef):
                    kind = "Any" if node.returns is None else ast.unparse(node.returns)
                    found.setdefault(node.name, set()).add(kind)
    return found

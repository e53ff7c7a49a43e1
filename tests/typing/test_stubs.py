"""The stubs say what is there at run time: names, parameters and defaults."""

import ast
import importlib
import inspect
import types
from pathlib import Path

import pytest

import ndx
import ndx.testing

ROOT = Path(ndx.__file__).parent
STUBS = {
    ".".join(["ndx", *path.relative_to(ROOT).with_suffix("").parts]).removesuffix(
        ".__init__"
    ): ast.parse(path.read_text(encoding="utf-8"))
    for path in sorted(ROOT.rglob("*.pyi"))
    if path.name != "_typing.pyi"
}
# What Python and Cython add to a class, or object has as well.
IMPLIED = {"__getnewargs__", "__orig_bases__",  # of a NamedTuple

    "__array_priority__", "__annotations__", "__dataclass_fields__", "__doc__",
    "__dataclass_params__", "__dict__", "__getstate__", "__match_args__",
    "__module__", "__post_init__", "__del__",
    "__delattr__", "__eq__", "__getattribute__", "__hash__", "__init__", "__ne__",
    "__new__", "__pyx_vtable__", "__reduce__", "__reduce_ex__", "__replace__",
    "__repr__", "__setattr__", "__setstate__", "__signature__", "__slotnames__",
    "__slots__",
    "__static_attributes__",
    "__str__", "__weakref__", "__delitem__", "__firstlineno__", "__sizeof__",
    "__reduce_cython__", "__setstate_cython__", "__buffer__", "__release_buffer__",
}  # fmt: skip
SLOTS = (types.WrapperDescriptorType, types.MethodDescriptorType)


def is_public(name):
    return not name.startswith("_") or (name.startswith("__") and name.endswith("__"))


def all_of(tree):
    """Return the value of a stub's ``__all__``; None if it has none."""
    for node in tree.body:
        if isinstance(node, ast.Assign) and node.targets[0].id == "__all__":
            return ast.literal_eval(node.value)
    return None


def names_of(body):
    """Yield the names that statements of a stub define."""
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.AnnAssign):
            yield node.target.id
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                if alias.name == "*":
                    yield from all_of(STUBS[node.module])
                else:
                    yield alias.asname or alias.name


def declared(function, default):
    """Return the signature of a function of a stub; defaults are their source."""
    arguments, found = function.args, []
    kinds = inspect.Parameter
    positional = [*arguments.posonlyargs, *arguments.args]
    defaults = [None] * (len(positional) - len(arguments.defaults))
    defaults += arguments.defaults
    for i, (item, value) in enumerate(zip(positional, defaults, strict=True)):
        only = i < len(arguments.posonlyargs)
        kind = kinds.POSITIONAL_ONLY if only else kinds.POSITIONAL_OR_KEYWORD
        found.append((item.arg, kind, default(value)))
    if arguments.vararg:
        found.append((arguments.vararg.arg, kinds.VAR_POSITIONAL, default(None)))
    for item, value in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        found.append((item.arg, kinds.KEYWORD_ONLY, default(value)))
    if arguments.kwarg:
        found.append((arguments.kwarg.arg, kinds.VAR_KEYWORD, default(None)))
    return found


def functions():
    """Yield every function of the stubs, with what it is at run time."""
    for module, tree in STUBS.items():
        runtime = importlib.import_module(module)
        for node in tree.body:
            if isinstance(node, ast.FunctionDef):
                yield f"{module}.{node.name}", node, getattr(runtime, node.name)
            elif isinstance(node, ast.ClassDef):
                cls = getattr(runtime, node.name)
                for member in node.body:
                    if (
                        isinstance(member, ast.FunctionDef)
                        and not member.decorator_list
                    ):
                        name = f"{module}.{node.name}.{member.name}"
                        yield name, member, getattr(cls, member.name, None)


FUNCTIONS = {name: (node, found) for name, node, found in functions()}
CLASSES = {
    f"{module}.{node.name}": (node, getattr(importlib.import_module(module), node.name))
    for module, tree in STUBS.items()
    for node in tree.body
    if isinstance(node, ast.ClassDef)
}


@pytest.mark.parametrize("module", sorted(set(STUBS) - {"ndx"}))
def test_modules_have_the_same_public_names(module):
    runtime = importlib.import_module(module).__all__
    assert sorted(all_of(STUBS[module])) == sorted(runtime)
    assert set(runtime) <= set(names_of(STUBS[module].body))


def test_the_namespace_has_the_same_public_names():
    found = {
        name
        for name in vars(ndx)
        if not name.startswith("_")
        and name != "testing"  # there since we have imported it
    }
    found |= {"__array_api_version__", "__array_namespace_info__", "__version__"}
    assert set(filter(is_public, names_of(STUBS["ndx"].body))) == found


def test_every_public_module_has_a_stub():
    modules = {
        m.__name__ for m in vars(ndx).values() if isinstance(m, types.ModuleType)
    }
    public = {name for name in modules if name.startswith("ndx.") and "._" not in name}
    assert public <= set(STUBS)


@pytest.mark.parametrize("name", CLASSES)
def test_classes_have_the_same_members(name):
    node, cls = CLASSES[name]
    inherited = {
        member
        for base in cls.__mro__[1:]
        if base.__module__.startswith("ndx")
        for member in vars(base)
    }
    stub = {member for member in names_of(node.body) if is_public(member)} - IMPLIED
    # Attributes that only instances have are declared without being properties.
    of_instances = {n.target.id for n in node.body if isinstance(n, ast.AnnAssign)}
    assert {m for m in stub if not hasattr(cls, m)} <= of_instances | fields(cls)
    runtime = {member for member in vars(cls) if is_public(member)} - IMPLIED
    assert (runtime | fields(cls)) - inherited <= stub


def fields(cls):
    return set(getattr(cls, "__dataclass_fields__", ())) | set(
        getattr(cls, "__slots__", ())
    )


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_have_the_same_parameters(name):
    node, function = FUNCTIONS[name]
    if name == "ndx._core.NDArray.__buffer__":
        return  # Python has it from 3.12 on; the buffer is there before.
    assert function is not None
    if isinstance(function, SLOTS):
        return  # Filled in by Python, which names parameters of operators itself.
    runtime = list(inspect.signature(function).parameters.values())
    if name == "ndx._workspaces.registry.workspace":
        # The policies are listed for editors; at run time they are ``**policies``.
        policies = {item.arg for item in node.args.kwonlyargs} - {"backend", "config"}
        assert policies == set(ndx.WorkspaceConfig.__dataclass_fields__)
        return
    wanted = declared(node, lambda value: value is not None)
    assert wanted == [(p.name, p.kind, p.default is not p.empty) for p in runtime]
    for (parameter, _, text), p in zip(declared(node, source), runtime, strict=True):
        if text not in (None, "..."):
            assert ast.literal_eval(text) == p.default, parameter


def source(value):
    return None if value is None else ast.unparse(value)

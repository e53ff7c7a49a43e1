"""What a source in Cython declares to Python, as Python's own syntax trees.

Bodies are docstrings; bases, decorators and annotations stay as they are written.
"""

import ast
from pathlib import Path

from Cython.CodeWriter import ExpressionWriter
from Cython.Compiler import ExprNodes, Nodes
from Cython.Compiler.TreeFragment import parse_from_strings

C_TYPES = {"bint": "bool", "double": "float", "size_t": "int"}
COMPARISONS = ("__lt__", "__le__", "__gt__", "__ge__", "__eq__", "__ne__")
# What type checkers know.
DECORATORS = ("property", "staticmethod", "classmethod", "final", "dataclass")


def parse(path: Path, **level: str) -> Nodes.Node:
    """Return the tree of a source."""
    return parse_from_strings(path.stem, path.read_text(encoding="utf-8"), **level)


def statements_of(node):
    """Return the statements of a body: nested lists of them, or one alone."""
    if isinstance(node, Nodes.StatListNode):
        return [each for child in node.stats for each in statements_of(child)]
    return [] if node is None else [node]


def name_of(node):
    """Return the name that a statement binds; None if it binds none."""
    node = getattr(node, "lhs", getattr(node, "expr", node))
    return getattr(node, "class_name", getattr(node, "name", None))


def statement(text: str) -> ast.stmt:
    """Return the one statement of a source in Python."""
    return ast.parse(text).body[0]


def documented(doc: str | None) -> list[ast.stmt]:
    """Return the body of a definition: its docstring, or three dots."""
    return [ast.Expr(ast.Constant(... if doc is None else str(doc)))]


def expression(node):
    """Return an expression in Python; None stays None."""
    if node is None:
        return None
    if isinstance(node, ExprNodes.AnnotationNode):
        text = node.string.value
    else:
        text = ExpressionWriter().write(node)
    return ast.parse(text, mode="eval").body


def variable(node):
    """Return ``name: type`` of a statement that says so; None of others."""
    target = getattr(node, "lhs", getattr(node, "expr", None))
    if getattr(target, "annotation", None) is None:
        return None
    return statement(f"{target.name}: {target.annotation.string.value}")


def is_class(node):
    """Whether a statement defines a class."""
    return isinstance(node, Nodes.CClassDefNode | Nodes.PyClassDefNode)


def is_annotated(node):
    """Whether a statement, or one within it, has an annotation for Python."""
    if is_class(node):
        return any(map(is_annotated, statements_of(node.body)))
    if not isinstance(node, Nodes.DefNode):
        return variable(node) is not None
    arguments = [*node.args, node.star_arg, node.starstar_arg]
    return node.return_type_annotation is not None or any(
        each is not None and each.annotation is not None for each in arguments
    )


def decorators(node):
    """Return the decorators that matter to types."""
    found = [expression(each.decorator) for each in node.decorators or ()]
    texts = [ast.unparse(each).removeprefix("cython.") for each in found]
    known = [t for t in texts if t.startswith(DECORATORS) or t.endswith(".setter")]
    return [ast.parse(text, mode="eval").body for text in known]


def function(node) -> ast.FunctionDef:
    """Return a function of Python."""

    def argument(each):
        name = name_of(getattr(each, "declarator", each))
        in_c = getattr(getattr(each, "base_type", None), "name", None)
        if each.annotation is None and in_c is not None:
            return ast.arg(name, ast.Name(C_TYPES.get(in_c, in_c)))
        return ast.arg(name, expression(each.annotation))

    first, last = node.num_posonly_args, len(node.args) - node.num_kwonly_args
    arguments = ast.arguments(
        posonlyargs=[argument(each) for each in node.args[:first]],
        args=[argument(each) for each in node.args[first:last]],
        kwonlyargs=[argument(each) for each in node.args[last:]],
        defaults=[expression(e.default) for e in node.args[:last] if e.default],
        kw_defaults=[expression(each.default) for each in node.args[last:]],
        vararg=node.star_arg and argument(node.star_arg),
        kwarg=node.starstar_arg and argument(node.starstar_arg),
    )
    return ast.FunctionDef(
        name=node.name,
        args=arguments,
        body=documented(node.doc),
        decorator_list=decorators(node),
        returns=expression(node.return_type_annotation),
    )


def attributes(node, path: Path):
    """Yield what Python sees of a class's attributes in C.

    A comment ``# type: set[int]`` says more than the type in C.
    """
    lines = path.read_text(encoding="utf-8").splitlines()
    for each in statements_of(node.body):
        if isinstance(each, Nodes.CVarDefNode) and each.visibility != "private":
            _, _, told = lines[each.pos[1] - 1].partition("# type: ")
            found = told or C_TYPES.get(each.base_type.name, each.base_type.name)
            for name in (declarator.name for declarator in each.declarators):
                if each.visibility == "public":
                    yield statement(f"{name}: {found}")
                else:
                    yield statement(f"@property\ndef {name}(self) -> {found}: ...")


def members(node):
    """Yield the methods and variables of a class."""
    for each in statements_of(node.body):
        name = name_of(each)
        if variable(each) is not None:
            yield variable(each)
        elif name == "__hash__" and not isinstance(each, Nodes.DefNode):
            yield statement("__hash__: ClassVar[None]")
        elif name == "__getbuffer__":
            yield statement("def __buffer__(self, flags: int, /) -> memoryview: ...")
        elif name == "__cinit__":
            if is_annotated(each):
                found = function(each)
                found.name, found.args.vararg = "__init__", None  # of derived classes
                yield found
        elif name in ("__richcmp__", "__pow__", "__rpow__", "__ipow__"):
            for operator in COMPARISONS if "rich" in name else [name]:
                found = function(each)
                found.name = operator
                del found.args.args[2:]  # as Python calls it: by an operator
                yield found
        elif isinstance(each, Nodes.DefNode) and (is_annotated(each) or name[0] != "_"):
            yield function(each)


def class_of(node, path: Path) -> ast.ClassDef:
    """Return a class; its `.pxd` may declare attributes, too."""
    body = [*documented(node.doc), *attributes(node, path)]
    declared = path.with_suffix(".pxd")
    if declared.exists():
        for each in statements_of(parse(declared, level="module_pxd").body):
            if is_class(each) and name_of(each) == name_of(node):
                body += attributes(each, declared)
    bases = node.bases.args if node.bases is not None else []
    return ast.ClassDef(
        name=name_of(node),
        bases=[expression(each) for each in bases],
        keywords=[],
        body=[*body, *members(node)],
        decorator_list=decorators(node),
    )


def module(path: Path) -> list[ast.stmt]:
    """Return what is annotated or in ``__all__``; nothing where nothing is annotated.

    Of imports, those that ``__all__`` lists.
    """
    tree = parse(path)
    nodes = statements_of(tree.body)
    exported, body = [], []
    for node in nodes:
        if name_of(node) == "__all__":
            exported = [each.value for each in node.rhs.args if each.is_literal]
    for node in nodes:
        if isinstance(node, Nodes.FromImportStatNode):
            source = node.module.module_name.value
            for name in (name for name, _ in node.items if name in exported):
                body.append(statement(f"from {source} import {name} as {name}"))
        elif is_annotated(node) or name_of(node) in exported:
            if is_class(node):
                body.append(class_of(node, path))
            else:
                body.append(variable(node) or function(node))
    if not any(map(is_annotated, nodes)):
        return []
    # A class that nothing names is not for users.
    own = {n.name for n in body if isinstance(n, ast.ClassDef)} - set(exported)
    others = [n for n in body if getattr(n, "name", None) not in own]
    named = {e.id for n in others for e in ast.walk(n) if isinstance(e, ast.Name)}
    body = [n for n in body if getattr(n, "name", None) not in own - named]
    return [*documented(tree.doc), statement(f"__all__ = {exported!r}"), *body]

"""Check that ndx's modules import only downwards.

Read every ``import``, ``from`` and ``cimport`` in the package and fail on an import
that goes upward in ``LAYERS``, on a cycle, on an import of ndx's own modules inside a
function, and on a module that has no layer. Imports under ``if TYPE_CHECKING:`` and
stubs don't count. Usage: ``python tools/check_layers.py [PACKAGE_FOLDER]``
"""

import re
import sys
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path

# Lowest first. A module may import from lower layers and, without a cycle, its own.
# Names are relative to the package; "memory.*" covers all below it; an exact name wins.
LAYERS = [
    {"_errors", "_cupy", "_control_groups", "_machine", "_sizes", "_dtypes", "_layout",
     "_loops", "_loop_checks", "_special_cases", "_quiet", "_device", "_origin",
     "_collector", "_mapping", "_exclusion", "_version", "_numpy_handler", "_ignored",
     "_environment", "_circumstances", "_options", "_other_names", "_built", "_text",
     "_workspaces.config", "_arenas", "_workspaces", "_recording_log", "_passes",
     "_passes.settings", "_passes.tiles"},
    {"_source", "_pool_index", "_pool_options", "_budget", "_out_of_memory",
     "_pressure", "_files", "_file_io", "_npy"},
    {"_memory", "_relief", "_reserve", "backends.base"},
    {"_pool_store"}, {"_pool"}, {"_pool_trim", "_pool_report"}, {"_pool_history"},
    {"backends", "backends.*"},
    {"_arenas.*", "_plain_numpy"},
    {"_context"}, {"_serving", "_scopes"}, {"_use"},
    {"_array"},
    {"_gil"},
    {"_passes.engine", "_passes.copying"},
    {"_dispatch"},
    {"_workspaces.*"},
    {"_operations", "_interchange", "_recording", "_passes.steps"},
    {"_numpy_memory", "_repeats"},
    {"_indexing", "_matmul", "_placement", "_display", "_persistence", "_reductions",
     "_rounding", "_orders", "_passes.folding", "_passes.products", "_passes.sorting"},
    {"_ufunc_protocol", "_exports"},
    {"_core"},
    {"_engine"},
    {"_creation", "_elementwise", "_manipulation", "_searching", "_sorting", "_sets",
     "_statistical", "_utility", "_linear_algebra", "_data_types", "_info",
     "_broadcasting", "_views", "_parts", "_ranges", "_decompositions", "_functions",
     "_indexing_functions", "_joining", "linalg", "fft", "random", "memory", "memory.*",
     "_capi"},
    {"_cuda", "_cuda.*"},
    {"_devices", "cuda", "_public"},
    {"__init__"},
    {"testing", "testing.*", "_report", "_script"},
    {"__main__"},
]  # fmt: skip

# (importer, imported) patterns that may stand inside a function: loaded on first use.
LAZY = {("backends", "backends.*"), ("_cuda", "_cuda.*"), ("cuda", "_cuda.*")}

SKIP = re.compile(r'(?s)"""(?:\\.|.)*?"""|\'\'\'(?:\\.|.)*?\'\'\'|#[^\n]*|'
                  r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'')  # fmt: skip
IMPORT = re.compile(r"(from\s+(?P<base>[\w.]+)\s+)?c?import\s+(?P<names>.+)")
FUNCTION = re.compile(r"(async\s+)?def\s|c(p)?def\s+"
                      r"(?!extern|.*\bclass\b).*\)[^()]*:$")  # fmt: skip


def logical_lines(text: str) -> Iterator[tuple[int, int, str]]:
    """Yield (line number, indent, statement): brackets joined, no strings, comments."""
    text = SKIP.sub(lambda m: "''" * (m[0][0] != "#") + "\n" * m[0].count("\n"), text)
    joined, depth, start = "", 0, 0
    for number, line in enumerate(text.replace("\t", "    ").split("\n"), 1):
        start = start if joined else number
        depth += sum(map(line.count, "([{")) - sum(map(line.count, ")]}"))
        joined += line.rstrip("\\") + " "
        if depth > 0 or line.endswith("\\"):
            continue
        indent = len(joined) - len(joined.lstrip())
        for statement in filter(None, map(str.strip, joined.split(";"))):
            yield start, indent, statement
        joined, depth = "", 0


def imports(text: str) -> Iterator[tuple[int, bool, str, list[str]]]:
    """Yield (line, inside a function, module as written, names taken from it)."""
    blocks: list[tuple[int, str]] = []
    for number, indent, statement in logical_lines(text):
        while blocks and blocks[-1][0] >= indent:
            blocks.pop()
        if statement.endswith(":"):
            typing = re.match(r"if\s+(typing\.)?TYPE_CHECKING\s*:", statement)
            function = FUNCTION.match(statement)
            blocks.append((indent, "typing" if typing else "function" * bool(function)))
            continue
        match = IMPORT.match(statement)
        kinds = {kind for _, kind in blocks}
        if not match or "typing" in kinds:
            continue
        names = match["names"].strip("() ").split(",")
        names = [name.split()[0] for name in names if name.strip()]
        for base in [match["base"]] if match["base"] else names:
            yield number, "function" in kinds, base, names if match["base"] else []


def targets(
    package: str, module: str, modules: dict[str, bool], base: str, names: list[str]
) -> set[str]:
    """Return the modules of the package that one import statement reaches."""
    if base.startswith("."):
        up = len(base) - len(base.lstrip("."))
        home = [] if module == "__init__" else module.split(".")
        home = home if modules[module] else home[:-1]
        home = [package, *home[: len(home) - up + 1]]
        base = ".".join([*home, base.lstrip(".")]).rstrip(".")
    if base != package and not base.startswith(package + "."):
        return set()
    inside = base[len(package) + 1 :]
    while inside and inside not in modules:  # a class or a name declared in C
        inside = inside.rpartition(".")[0]
    parent = inside or "__init__"
    found = {n if parent == "__init__" else f"{parent}.{n}" for n in names}
    found = {n if n in modules else parent for n in found or {parent}}
    return (found & modules.keys()) - {module}


def layer_of(module: str) -> int | None:
    """Return the module's place in ``LAYERS``: its own name first, then a pattern."""
    for match in (str.__eq__, fnmatchcase):
        for level, layer in enumerate(LAYERS):
            if any(match(module, pattern) for pattern in layer):
                return level
    return None


def may_be_lazy(module: str, target: str) -> bool:
    """Return whether `module` may import `target` inside a function."""
    return any(fnmatchcase(module, a) and fnmatchcase(target, b) for a, b in LAZY)


def find_cycle(graph: dict[str, set[str]]) -> list[str]:
    """Return the modules of one import cycle in order, or nothing."""
    done: set[str] = set()

    def visit(module: str, path: list[str]) -> list[str]:
        if module in path:
            return [*path[path.index(module) :], module]
        if module in done:
            return []
        for target in sorted(graph[module]):
            if cycle := visit(target, [*path, module]):
                return cycle
        done.add(module)
        return []

    return next(filter(None, (visit(module, []) for module in sorted(graph))), [])


def check(root: Path) -> list[str]:
    """Return a message for every violation in the package at `root`."""
    files = sorted(p for p in root.rglob("*") if p.suffix in {".py", ".pyx", ".pxd"})
    modules: dict[str, bool] = {}  # name -> whether it is a package
    names = {}
    for path in files:
        parts = path.relative_to(root).with_suffix("").parts
        package = parts[-1] == "__init__"
        names[path] = ".".join(parts[:-1] if package else parts) or "__init__"
        modules[names[path]] = package
    problems = [
        f"{root.name}/: module {name!r} has no layer: add it to LAYERS"
        for name in sorted(modules)
        if layer_of(name) is None
    ]
    graph: dict[str, set[str]] = {name: set() for name in modules}
    for path in files:
        module = names[path]
        for number, local, base, members in imports(path.read_text(encoding="utf-8")):
            for target in targets(root.name, module, modules, base, members):
                where = f"{path.relative_to(root.parent).as_posix()}:{number}: "
                graph[module].add(target)
                if local and not may_be_lazy(module, target):
                    problems.append(f"{where}imports {target!r} inside a function")
                above, below = layer_of(target), layer_of(module)
                if above is not None and below is not None and above > below:
                    problems.append(f"{where}{module!r} (layer {below}) imports upward:"
                                    f" {target!r} (layer {above})")  # fmt: skip
    if cycle := find_cycle(graph):
        problems.append(f"{root.name}/: import cycle: {' -> '.join(cycle)}")
    return problems


def main(root: Path) -> int:
    """Report on the package at `root`; return the exit status."""
    problems = check(root)
    print("\n".join([*problems, f"layers: {len(problems)} problem(s)"]))
    return bool(problems)


if __name__ == "__main__":
    default = Path(__file__).resolve().parents[1] / "ndx"
    sys.exit(main(Path(sys.argv[1]).resolve() if sys.argv[1:] else default))

"""Check that ndx's rooms import only downwards.

A room is a folder of the package, or a module beside the folders. Read every
``import``, ``from`` and ``cimport`` and fail on an import that goes upward in
``LAYERS``, on a cycle of modules, on an import of ndx's own modules inside a function,
on a private module of another room in a room of ``TOOLS``, and on a room that has no
layer. To import a module of a package runs the package's
``__init__`` first, so that counts as an import, too. Imports under
``if TYPE_CHECKING:`` and stubs don't count. Fail also on a module that starts threads
by itself, not by that of ``THREADS``.
Usage: ``python tools/check_layers.py [PACKAGE_FOLDER]``
"""

import re
import sys
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path

# Lowest first: a room imports lower rooms, and those beside it without a cycle. A new
# file needs no row here; a new room is a decision about the architecture.
LAYERS = [
    ("_compiled",),
    ("_lib",), ("_files",), ("backends",), ("_blocks",), ("_arenas",), ("_context",),
    ("_array",), ("_workspaces",), ("_recording",), ("_compute",), ("_methods",),
    ("_core",), ("_api", "linalg", "fft", "random", "engines", "_capi"), ("_numpy",),
    ("numpy",), ("_fusing",), ("_cuda", "cuda"),
    ("memory",), ("__init__",), ("_pipelines", "metrics", "parallel"),
    ("_clusters", "distributed"),
    ("_borders", "_library_borders", "array_api_compat", "dask", "einops", "h5py",
     "numba", "opt_einsum", "pandas", "polars", "scipy", "threadpoolctl", "torch",
     "xarray", "zarr"),
    ("_cli", "__main__", "testing"),
]  # fmt: skip

# (importer, imported) patterns of imports allowed in functions: lazy imports.
LAZY = {
    ("_api.data_types", "_api.limits"), ("backends", "backends.*"),
    ("cuda", "_cuda.*"),
    ("_fusing.function", "_fusing.explaining"),
    ("_fusing.function", "_fusing.recording"),
    ("memory._trace", "memory._*"), ("_workspaces.slots", "_arenas.mirror"),
}  # fmt: skip

# Rooms that are built on what users have: of other rooms they import public modules, in
# whose names no part begins with "_", and those of FOUNDATION, which know no arrays.
TOOLS = {"_pipelines", "_clusters", "_cli"}
FOUNDATION = {"_lib", "_files"}

# Those that it starts take no signals of the program's.
THREADS = "_lib.background"
STARTS_THREADS = re.compile(
    r"\b(threading\.(Thread|Timer)|ThreadPoolExecutor|ThreadPool|start_new_thread"
    r"|start_joinable_thread|to_thread|run_in_executor)\s*\(")  # fmt: skip

SKIP = re.compile(r'(?s)"""(?:\\.|.)*?"""|\'\'\'(?:\\.|.)*?\'\'\'|#[^\n]*|'
                  r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'')  # fmt: skip
IMPORT = re.compile(r"(from\s+(?P<base>[\w.]+)\s+)?c?import\s+(?P<names>.+)")
FUNCTION = re.compile(r"(async\s+)?def\s|c(p)?def\s+"
                      r"(?!extern|.*\bclass\b).*\)[^()]*:$")  # fmt: skip


def logical_lines(text: str) -> Iterator[tuple[int, int, str]]:
    """Yield (line number, indent, statement), with brackets joined, without strings."""
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
    """Return the place of the module's room in ``LAYERS``."""
    room = module.partition(".")[0]
    return next((i for i, layer in enumerate(LAYERS) if room in layer), None)


def with_packages(module: str, target: str) -> set[str]:
    """Return the modules that run when `module` imports `target`, packages included."""
    found = {target}
    while target := target.rpartition(".")[0]:
        if not f"{module}.".startswith(f"{target}."):
            found.add(target)
    return found


def may_be_lazy(module: str, target: str) -> bool:
    """Return whether `module` may import `target` inside a function."""
    return any(fnmatchcase(module, a) and fnmatchcase(target, b) for a, b in LAZY)


def is_private_to(module: str, target: str) -> bool:
    """Return whether `module` is of a room in TOOLS, and `target` not for it."""
    room, other = module.partition(".")[0], target.partition(".")[0]
    if room not in TOOLS or other == room or other in FOUNDATION:
        return False
    parts = target.split(".")
    return any(part.startswith("_") and part != "__init__" for part in parts)


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


def thread_problems(root: Path, path: Path, module: str) -> list[str]:
    """Return a message for each thread that a module starts by itself."""
    where = path.relative_to(root.parent).as_posix()
    return [
        f"{where}:{number}: starts a thread, not by {THREADS}.BackgroundThread"
        for number, _, statement in logical_lines(path.read_text(encoding="utf-8"))
        if module != THREADS and STARTS_THREADS.search(statement)
    ]


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
        f"{root.name}/: room {name!r} has no layer: it belongs in LAYERS"
        for name in sorted({module.partition(".")[0] for module in modules})
        if layer_of(name) is None
    ]
    graph: dict[str, set[str]] = {name: set() for name in modules}
    for path in files:
        module = names[path]
        problems += thread_problems(root, path, module)
        for number, local, base, members in imports(path.read_text(encoding="utf-8")):
            for target in targets(root.name, module, modules, base, members):
                where = f"{path.relative_to(root.parent).as_posix()}:{number}: "
                graph[module] |= with_packages(module, target) & modules.keys()
                if local and not may_be_lazy(module, target):
                    problems.append(f"{where}imports {target!r} inside a function")
                if is_private_to(module, target):
                    problems.append(f"{where}imports {target!r}, which is private: "
                                    f"tools use what users have")  # fmt: skip
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

"""Check that only `ndx._array.pinning` hands out arrays' memory without the GIL.

A pointer to an array's memory is valid until Python runs, or another thread has the
GIL: then a scope may end, and its memory be reused. That module pins the memory. The
check fails on any other function that releases the GIL, takes the address of an array's
elements, pins a block, or lets threads share an operation, unless it is listed below
with a reason. It also fails on a listed function that no longer does so.
Usage: ``python tools/check_memory.py [FOLDER]``
"""

import re
import sys
from collections.abc import Iterator
from pathlib import Path

from check_layers import logical_lines

_POOL = "locks and the system's memory: no array lies in what is idle"
_FILE = "a file is mapped, or waited for: its owner keeps the mapping"

# Functions that may release the GIL (module:function or module:Class.method), and why.
NOGIL = {
    "_array.pinning:unlocked": "this is the one that computes; its operands are held",
    "_arenas.liveness:plan_offsets": "sorts numbers of its own; it has no array",
    "_files.mapping:MappedFile.map": _FILE,
    "_files.mapping:MappedFile.flush": _FILE,
    "_files.mapping:MappedFile.go_on_with": _FILE,
    "_files.mapping:reserve": _FILE,
    "_files.mapping:make_private": "waits for those that compute on the files",
    "backends.mmap:MmapBackend.freeze": "waits for those that compute on the files",
    "backends.base:Backend._damage": _POOL,
    "backends.base:Backend.trim": _POOL,
    "backends.base:Backend.stats": _POOL,
    "backends.base:Backend.reset_peak": _POOL,
    "backends.base:Backend.raise_peak": _POOL,
    "backends.buffer:Buffer.__cinit__": _POOL,
    "backends.buffer:give_back": _POOL,
    "backends._pool.trim:look_at_all": _POOL,
    "backends.host:HostBackend.placement": _POOL,
    "backends.pooled:PooledBackend._shrink": _POOL,
    "backends.pooled:PooledBackend.trim": _POOL,
    "backends.pooled:PooledBackend.synchronize": _POOL,
    "backends.pooled:PooledBackend.close_stream": _POOL,
    "testing._pool_timing:*": _POOL,
    "backends._relief:warm_up": "a range of its own, in which no array lies",
}

_EXPORT = "the export that was just made keeps the bytes"
_NOTHING_READ = "the address is compared, or looked up in a table; nothing is read"

# Functions that may take an address or pin a block, and why.
ADDRESSES = {
    "_array.pinning:*": "it is for that",
    "_array.storage:data_of": "what the others call",
    "_array.storage:strided": "layouts; `_lib.layout` reads no element",
    "_array.storage:array_dealloc": "the address is told to hooks; nothing is read",
    "_array.storage:as_number": "copies one element; no Python runs",
    "_array.storage:cell_of": "copies a few elements; no Python runs",
    "_array.storage:numpy_view": _EXPORT,
    "_array.storage:export_array": "pins, while the export is recorded; reads nothing",
    "_array.storage:transient_view": "its callers are listed here",
    "_array.storage:stale_error": _NOTHING_READ,
    "_array.storage:find_block_loss": _NOTHING_READ,
    "_capi:acquire": _EXPORT,
    "_array.interchange:export": _EXPORT,
    "_array.interchange:fill_buffer": _EXPORT,
    "_array.interchange:to_dlpack": _EXPORT,
    "_array.living:fill": _NOTHING_READ,
    "_compute.numpy_results:lies_within": _NOTHING_READ,
    "_compute.numpy_results:view_of_block": _NOTHING_READ,
    "_compute.elementwise:compute": "few elements: checked last, and with the GIL",
    "_compute.temporaries:is_alone": "pins are only compared with 0",
    "_methods.display:read_scalar": "one element, checked just before",
    "_methods.indexing:element": "one element, checked just before",
    "_methods.indexing:read_element": "one element, checked just before",
    "_methods.indexing:write_element": "one element, checked just before",
    "_methods.files:commit": "pins are only compared with its own",
    "_methods.pickling:pickled": _NOTHING_READ,
    "_compute.aliasing:overlaps": _NOTHING_READ,
    "_compute.passes.parts:steps_over": _NOTHING_READ,
    "_api.file_io:save": _NOTHING_READ,
    "_cuda.bridge:*": "memory of devices, which their streams order",
}

# Functions that may let threads share an operation; all others are jobs.
THREADS = {
    "_compute.executor:run_tiles": "this is the one that computes jobs",
    "_compute.folds:*": "tiles of a job, with a partial result for each",
    "_compute.passes.run:work_on_block": "tiles of a job over files",
    "_compute.threads:parallel_for": "what the others call",
    "_fusing.replay:run_stages": "blocks of a stage, which are numbered",
}

RULES = [
    ("releases the GIL", re.compile(r"\bwith\b.*\bnogil\b"), NOGIL),
    (
        "takes the address of an array's memory, or pins it",
        re.compile(
            r"\b(data_of|transient_view|block_pin|block_unpin)\s*\(|"
            r"\bblock\.ptr\b|\bblock\.pins\b"
        ),
        ADDRESSES,
    ),
    (
        "lets threads share an operation",
        re.compile(r"\b(parallel_for|ndx_begin_task|ndx_parallel_for)\s*\("),
        THREADS,
    ),
]
# The rooms below arrays handle blocks of arenas and pools themselves.
BELOW = ("_arenas.", "_blocks.", "_recording.", "backends.")
HEADERS = re.compile(r"Py_BEGIN_ALLOW_THREADS|PyEval_SaveThread|PyEval_ReleaseThread")
COMMENT = re.compile(r"(?s)/\*.*?\*/|//[^\n]*")
DEFINED = re.compile(
    r"(?:async\s+)?(?:(?:cdef|cpdef)\s+(?!class\b|extern\b|struct\b|enum\b)"
    r"(?:[^=(]*[\s*])?|def\s+)(?P<name>\w+)\s*\(.*:(\s*(return|pass)\b.*)?$"
)
DECLARED = re.compile(r"(?:cdef|cpdef)\s+[^=:]*$")
CLASS = re.compile(r"(?:cdef\s+)?class\s+(?P<name>\w+).*:$")
STATEMENT = re.compile(r"(if|while|for|with|elif|return|raise|assert|except)\b")


def places(text: str) -> Iterator[tuple[int, str, str]]:
    """Yield (line number, function or Class.method, statement)."""
    blocks: list[tuple[int, str]] = []
    for number, indent, statement in logical_lines(text):
        while blocks and blocks[-1][0] >= indent:
            blocks.pop()
        found = None
        if not STATEMENT.match(statement):
            found = DEFINED.match(statement) or CLASS.match(statement)
        if found:
            blocks.append((indent, found["name"]))
            statement = statement.rpartition(":")[2]
        elif DECLARED.match(statement):
            continue
        yield number, ".".join(name for _, name in blocks), statement


def _lines_of(match: re.Match[str]) -> str:
    return "\n" * match[0].count("\n")


def check(root: Path) -> list[str]:
    """Return a message for every violation in the package at `root`."""
    problems = []
    used: set[tuple[int, str]] = set()
    for path in sorted(p for p in root.rglob("*") if p.suffix in {".pyx", ".pxd"}):
        module = ".".join(path.relative_to(root).with_suffix("").parts)
        where = path.relative_to(root.parent).as_posix()
        for number, function, statement in places(path.read_text(encoding="utf-8")):
            for index, (what, pattern, allowed) in enumerate(RULES):
                if not pattern.search(statement):
                    continue
                if index == 1 and module.startswith(BELOW):
                    continue
                if index == 2 and not function:
                    # The declaration of what C defines.
                    continue
                names = (f"{module}:{function}", f"{module}:*")
                fitting = [name for name in names if name in allowed]
                used.update((index, name) for name in fitting)
                if not fitting:
                    problems.append(
                        f"{where}:{number}: {function or 'the module'} {what}; go "
                        "through ndx._array.pinning (compute_on, or hold and let_go) "
                        "or ndx._compute.executor (run), or say in "
                        "tools/check_memory.py why it may"
                    )
    for path in sorted(root.rglob("*.[ch]")):
        text = COMMENT.sub(_lines_of, path.read_text(encoding="utf-8"))
        for number, line in enumerate(text.split("\n"), 1):
            if HEADERS.search(line):
                where = path.relative_to(root.parent).as_posix()
                problems.append(f"{where}:{number}: a C file releases the GIL")
    problems += [
        f"tools/check_memory.py: nothing needs {name!r} in the list of what {what}"
        for index, (what, _, allowed) in enumerate(RULES)
        for name in allowed
        if (index, name) not in used
    ]
    return problems


def main(root: Path) -> int:
    """Report on the package at `root`; return the exit status."""
    problems = check(root)
    print("\n".join([*problems, f"memory: {len(problems)} problem(s)"]))
    return bool(problems)


if __name__ == "__main__":
    default = Path(__file__).resolve().parents[1] / "ndx"
    sys.exit(main(Path(sys.argv[1]).resolve() if sys.argv[1:] else default))

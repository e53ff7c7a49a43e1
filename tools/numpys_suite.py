"""Run NumPy's own tests with `ndx.numpy` in NumPy's place, and compare the outcomes.

The tests are those of the installed NumPy. They are copied into ``build/`` twice: as
they are, and with imports of NumPy's public modules replaced by those of ours. A test
that passes with NumPy, and does not with ndx, differs. What is expected to differ is in
``tables/numpys_suite.toml``, by cause; if another test differs, the status is 1.

The outcomes with NumPy are kept in ``build/``, for the next run.

Usage: ``python tools/numpys_suite.py [--only PART] [ARGUMENTS OF PYTEST]``, where PART
is part of the path of a file, such as ``lib/tests`` or ``test_io``; it may be repeated.
"""

import argparse
import ast
import json
import os
import shutil
import subprocess
import sys
import tomllib
from collections import Counter
from importlib import import_module
from pathlib import Path

import numpy as np
from ecosystem import Outcomes

ROOT = Path(__file__).resolve().parents[1]
BUILD = ROOT / "build/numpys-suite"
TABLE = ROOT / "tools/tables/numpys_suite.toml"
NUMPY = Path(np.__file__).parent
FACES = ("numpy", "ndx")
# As in NumPy's repository, whose wheel lacks the file.
CONFIGURATION = """\
[pytest]
filterwarnings =
    error
    ignore::pytest.PytestDeprecationWarning
    ignore::pytest.PytestUnraisableExceptionWarning
    ignore:the matrix subclass is not
    ignore:Importing from numpy.matlib is
"""
OPTIONS = (
    "--import-mode=importlib", "-p", "no:cacheprovider", "-p", "no:randomly",
    "--tb=short", "-q", "--no-header", "--timeout=600",
)  # fmt: skip


def rewritten(source: str) -> str:
    """Return a module with imports of NumPy's public modules replaced by ours."""
    lines = source.encode().splitlines(keepends=True)
    imports = [
        node
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Import | ast.ImportFrom)
    ]
    # From the end, so that the places of those before in a line stay as they are.
    for node in sorted(imports, key=lambda node: node.col_offset, reverse=True):
        first, last, start = node.lineno - 1, node.end_lineno, node.col_offset
        before, statement = lines[first][:start], lines[first][start:]
        if isinstance(node, ast.Import):
            names = ", ".join(map(imported, node.names)).encode()
            after = lines[last - 1][node.end_col_offset :]
            lines[first] = before + b"import " + names + after
            lines[first + 1 : last] = [b""] * (last - first - 1)
        elif node.level == 0 and is_ours(node.module):
            lines[first] = before + statement.replace(b" numpy", b" ndx.numpy", 1)
    return b"".join(lines).decode()


def imported(name: ast.alias) -> str:
    """Return one name of an import statement, with ours in place of NumPy's."""
    if name.name.split(".")[0] != "numpy":
        return name.name + (f" as {name.asname}" if name.asname else "")
    if name.asname is None:
        # It binds `numpy`.
        loaded = "" if is_ours(name.name) else f"{name.name}, "
        return f"{loaded}ndx.numpy as numpy"
    return f"{'ndx.' if is_ours(name.name) else ''}{name.name} as {name.asname}"


def is_ours(module: str | None) -> bool:
    """Return whether there is a module of ours of a name of NumPy's."""
    if module is None or module.split(".")[0] != "numpy":
        return False
    try:
        import_module(f"ndx.{module}")
    except ModuleNotFoundError:
        return False
    return True


def copy(face: str) -> Path:
    """Copy NumPy's tests for a face; return the folder."""
    folder = BUILD / face
    shutil.rmtree(folder, ignore_errors=True)
    for source in sorted(NUMPY.rglob("tests")):
        shutil.copytree(
            source,
            folder / "suite" / source.relative_to(NUMPY),
            ignore=shutil.ignore_patterns("__pycache__"),
            dirs_exist_ok=True,
        )
    # Files of the same name in several folders are modules of different packages.
    for path in [folder / "suite", *(folder / "suite").rglob("*/")]:
        (path / "__init__.py").touch()
    if face == "ndx":
        for path in folder.rglob("test_*.py"):
            path.write_text(rewritten(path.read_text("utf-8")), "utf-8")
    shutil.copy(NUMPY / "conftest.py", folder / "conftest.py")
    (folder / "pytest.ini").write_text(CONFIGURATION)
    return folder


def run(face: str, skipped: dict[str, str], only: list[str], more: list[str]) -> dict:
    """Run the tests of a face in a process of its own; return the outcomes by name."""
    is_all = not only and not set(more) & {"-k", "-m", "-x", "--maxfail"}
    kept = BUILD / f"{face}-{np.__version__}.json"
    log = BUILD / f"{face}.log"
    if face == "numpy" and kept.exists() and is_all:
        return json.loads(kept.read_text())
    folder = copy(face)
    files = [
        f"suite/{name}"
        for path in sorted((folder / "suite").rglob("test_*.py"))
        if not is_in(name := str(path.relative_to(folder / "suite")), skipped)
        and (not only or any(part in name for part in only))
    ]
    found = BUILD / f"{face}.json"
    found.unlink(missing_ok=True)
    crashing = [f"--deselect=suite/{name}" for name in skipped if "::" in name]
    command = [sys.executable, __file__, "--into", str(found)]
    command += [*OPTIONS, *crashing, *more, *files]
    # Tests of large arrays skip themselves.
    environment = {**os.environ, "NPY_AVAILABLE_MEM": "1 GB"}
    print(f"{len(files)} files with {face}; output: {log}", flush=True)
    with log.open("w") as output:
        status = subprocess.run(
            command,
            cwd=folder,
            env=environment,
            stdout=output,
            stderr=subprocess.STDOUT,
            check=False,
        ).returncode
    if status not in (0, 1):
        # Neither all tests nor some: pytest itself has failed.
        sys.exit(f"numpys_suite: pytest ended with {status}; see {log}")
    outcomes = {
        name.removeprefix("suite/"): outcome
        for name, outcome in json.loads(found.read_text()).items()
    }
    if is_all:
        kept.write_text(json.dumps(outcomes))
    return outcomes


def is_in(name: str, entries) -> bool:
    """Return whether a test is one of those of a table, or in one of its files."""
    return name in entries or any(
        name.startswith((f"{each}::", f"{each}[", f"{each}/")) for each in entries
    )


def report(before: dict, after: dict, causes: list[dict]) -> bool:
    """Print what differs by file and by cause; return whether all is expected."""
    passed = [name for name, outcome in before.items() if outcome == "passed"]
    differ = [name for name in passed if after.get(name) not in ("passed", "skipped")]
    expected = {test for cause in causes for test in cause["tests"]}
    by_file = Counter(name.split("::")[0] for name in passed)
    fewer = Counter(name.split("::")[0] for name in differ)
    print(f"\n{'file':44} {'NumPy':>7} {'ndx':>7} {'differ':>7}")
    for name, count in sorted(by_file.items()):
        print(f"{name:44} {count:7} {count - fewer[name]:7} {fewer[name] or '':>7}")
    total = len(passed)
    print(f"{'all':44} {total:7} {total - len(differ):7} {len(differ):7}")
    print("\nExpected to differ:")
    for cause in causes:
        count = sum(is_in(name, cause["tests"]) for name in differ)
        print(f"{count:6}  {cause['why']}")
    unused = [each for each in sorted(expected) if not any(
        is_in(name, {each}) for name in differ
    )]  # fmt: skip
    ran = set(by_file)
    unused = [each for each in unused if each.split("::")[0] in ran]
    for each in unused:
        print(f"no longer differs: {each}")
    unexpected = [name for name in differ if not is_in(name, expected)]
    for name in unexpected:
        print(f"differs: {name}")
    print(f"numpys_suite: {len(unexpected)} unexpected difference(s)")
    return not unexpected


def main(arguments: list[str]) -> int:
    """Run the tests with both, and compare; return the exit status."""
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("--only", action="append", default=[])
    parser.add_argument("--into", type=Path)
    options, more = parser.parse_known_args(arguments)
    if options.into is not None:
        import pytest

        outcomes = Outcomes()
        status = pytest.main(more, plugins=[outcomes])
        options.into.write_text(json.dumps(outcomes.found, indent=0))
        return int(status)
    table = tomllib.loads(TABLE.read_text("utf-8"))
    BUILD.mkdir(parents=True, exist_ok=True)
    before, after = (run(face, table["skip"], options.only, more) for face in FACES)
    return not report(before, after, table["cause"])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

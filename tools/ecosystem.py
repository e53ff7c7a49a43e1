"""Run the tests with other libraries, and write the tables of docs/interop.md.

Each row of `tables.ecosystem` names the tests of a library. A line of the page says
which version they ran with, and how many passed. If a test fails, nothing is written.
The line of a library that is not installed keeps what an earlier run has found.
Two more tables are made of what tests record: those of `READERS`, who shares memory,
and those of `CALLS`, how many calls of a library are answered as with NumPy's arrays.

Usage: ``python tools/ecosystem.py [--check] [ARGUMENTS OF PYTEST]``; a check runs and
writes nothing, and fails if the page is not of the table.
"""

import platform
import re
import sys
from collections import Counter
from fnmatch import fnmatchcase
from importlib.metadata import PackageNotFoundError, packages_distributions, version
from pathlib import Path

from tables.ecosystem import LIBRARIES, Library

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs/interop.md"
BEGIN = "<!-- The table is written by `make test-ecosystem`. -->\n\n"
HEAD = (
    "| library | version | tests | what works | what ndx does for it |\n"
    "|---|---|---|---|---|\n"
)
BEGIN_READERS = "<!-- Who reads memory is written by `make test-ecosystem`. -->\n\n"
READERS = "tests/interop/test_memory_readers.py"
BEGIN_CALLS = "<!-- The calls are counted by `make test-ecosystem`. -->\n\n"
CALLS = "tests/interop/test_calls.py"
LINE = re.compile(r"^\| ([^|]+) \| ([^|]+) \| ([^|]+) \| .* \|$", re.MULTILINE)
NOT_RUN = ("-", "not run")


class Outcomes:
    """A plugin of pytest that notes the outcome of each test, by its name."""

    def __init__(self) -> None:
        self.found: dict[str, str] = {}
        self.readers: dict[str, dict[str, str]] = {}
        self.calls: dict[str, Counter[str]] = {}

    def pytest_runtest_logreport(self, report) -> None:
        """Note a test that was called, or that was not because of its set-up."""
        known = report.nodeid in self.found and self.found[report.nodeid] == "failed"
        if not known and (report.when == "call" or report.outcome != "passed"):
            self.found[report.nodeid] = report.outcome
        noted = dict(report.user_properties)
        if report.when == "call" and "reader" in noted:
            row = self.readers.setdefault(noted["reader"], {})
            row[noted["layout"]] = noted["outcome"]
        if report.when == "call" and "calls" in noted:
            library, right, refused = noted["calls"]
            self.calls.setdefault(library, Counter()).update(
                {"right": right, "refused": refused}
            )

    def pytest_collectreport(self, report) -> None:
        """Note a file that could not be read; one that was skipped has no tests."""
        if report.failed:
            self.found[report.nodeid] = "failed"


def count(library: Library, outcomes: dict[str, str]) -> Counter[str]:
    """Return how many tests of a library had which outcome."""
    return Counter(
        outcome
        for name, outcome in outcomes.items()
        if any(matches(name, pattern) for pattern in library.tests)
    )


def matches(name: str, pattern: str) -> bool:
    """Return whether a test, such as ``tests/a.py::test_b[1]``, has a pattern."""
    return fnmatchcase(name, pattern if "*" in pattern else f"{pattern}::*")


def result(library: Library, outcomes: dict[str, str]) -> tuple[str, str] | None:
    """Return the version and the counts as text; None if no test ran."""
    counts = count(library, outcomes)
    if not counts["passed"]:
        return None
    try:
        if library.distribution is None:
            number = f"Python {platform.python_version()}"
        else:
            number = version(library.distribution)
    except PackageNotFoundError:
        return None
    skipped = f", {counts['skipped']} skipped" if counts["skipped"] else ""
    return number, f"{counts['passed']} passed{skipped}"


def parts(text: str, mark: str = BEGIN) -> tuple[str, str, str]:
    """Return the page before a table, the table, and the page after it."""
    before, begin, rest = text.partition(mark)
    if not begin:
        msg = f"{PAGE.name} has no line {mark.strip()!r}, which the table follows"
        raise ValueError(msg)
    table, _, after = rest.partition("\n\n")
    return before + begin, table + "\n", "\n" + after


def earlier(table: str) -> dict[str, tuple[str, str]]:
    """Return what a table says of each library."""
    return {name: (number, tests) for name, number, tests in LINE.findall(table)}


def written(results: dict[str, tuple[str, str]]) -> str:
    """Return the table."""
    lines = []
    for each in LIBRARIES:
        cells = (each.name, *results.get(each.name, NOT_RUN), each.works, each.done)
        lines.append(f"| {' | '.join(cells)} |\n")
    return HEAD + "".join(lines)


def readers(table: str, found: dict[str, dict[str, str]]) -> str:
    """Return the table of readers: what was found, and else what it was before."""
    layouts = list(max(found.values(), key=len))
    lines = dict(re.findall(r"^(\| `[^`]+` )(\|.*)$", table, re.MULTILINE))
    for name, row in found.items():
        cells = (
            outcome if " " in outcome or outcome.islower() else f"`{outcome}`"
            for outcome in (row.get(layout, "-") for layout in layouts)
        )
        lines[f"| `{name}` "] = f"| {' | '.join(cells)} |"
    head = f"| reader | {' | '.join(layouts)} |\n|{'---|' * (len(layouts) + 1)}\n"
    return head + "".join(f"{name}{rest}\n" for name, rest in lines.items())


def calls(table: str, found: dict[str, Counter[str]]) -> str:
    """Return the table of calls: what was found, and else what it was before."""
    lines = dict(re.findall(r"^(\| `[^`]+` )(\|.*)$", table, re.MULTILINE))
    distributions = packages_distributions()
    for name, counts in found.items():
        package = name.partition(".")[0]
        number = platform.python_version()
        if package != "python":
            number = version(distributions[package][0])
        right, refused = counts["right"], counts["refused"]
        cells = (number, str(right + refused), str(right), str(refused))
        lines[f"| `{name}` "] = f"| {' | '.join(cells)} |"
    head = "| library | version | calls | right | refused |\n|---|---|---|---|---|\n"
    ordered = sorted(lines.items(), key=lambda line: line[0].lower())
    return head + "".join(f"{name}{rest}\n" for name, rest in ordered)


def check(text: str) -> list[str]:
    """Return what is wrong with the table of a page."""
    _, table, _ = parts(text)
    problems = []
    if table != written(earlier(table)):
        problems.append("its lines are not those of tools/tables/ecosystem.py")
    for library in LIBRARIES:
        for pattern in library.tests:
            if not list(ROOT.glob(pattern.partition("::")[0])):
                problems.append(f"{library.name} has no tests {pattern}")
    return problems


def files() -> list[str]:
    """Return the files of all tests, as arguments of pytest."""
    patterns = {p.partition("::")[0] for each in LIBRARIES for p in each.tests}
    found = {path for pattern in patterns for path in ROOT.glob(pattern)}
    found |= {ROOT / READERS, ROOT / CALLS}
    return sorted(str(p.relative_to(ROOT)) for p in found if p.suffix == ".py")


def main(arguments: list[str]) -> int:
    """Check the page, or run the tests and write it; return the exit status."""
    text = PAGE.read_text(encoding="utf-8")
    if arguments == ["--check"]:
        problems = [f"docs/{PAGE.name}: {each}" for each in check(text)]
        print("\n".join([*problems, f"ecosystem: {len(problems)} problem(s)"]))
        return bool(problems)
    import pytest

    outcomes = Outcomes()
    status = pytest.main(["-m", "", *files(), *arguments], plugins=[outcomes])
    if status != pytest.ExitCode.OK:
        print("ecosystem: the table is not written", file=sys.stderr)
        return int(status)
    if outcomes.readers:
        before, table, after = parts(text, BEGIN_READERS)
        text = before + readers(table, outcomes.readers) + after
    if outcomes.calls:
        before, table, after = parts(text, BEGIN_CALLS)
        text = before + calls(table, outcomes.calls) + after
    before, table, after = parts(text)
    results = earlier(table)
    for library in LIBRARIES:
        found = result(library, outcomes.found)
        if found is None:
            print(f"ecosystem: {library.name} was not tested here")
        else:
            results[library.name] = found
    PAGE.write_text(before + written(results) + after, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

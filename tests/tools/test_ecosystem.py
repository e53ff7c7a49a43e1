"""The table of libraries says what the tests have found, and the page has it."""

import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import ecosystem
import pytest
from tables.ecosystem import LIBRARIES, Library

ZARR = next(each for each in LIBRARIES if each.name == "zarr")
TESTS = "tests/interop/test_zarr.py"


def test_the_page_has_the_lines_of_the_table(capsys):
    assert ecosystem.main(["--check"]) == 0, capsys.readouterr().out


def test_outcomes_are_counted_by_library():
    outcomes = {
        f"{TESTS}::test_a[1]": "passed",
        f"{TESTS}::test_a[2]": "skipped",
        f"{TESTS}::test_b": "passed",
        "tests/interop/test_zarr_more.py::test_b": "passed",
    }
    found = ecosystem.result(ZARR, outcomes)
    assert found == (version("zarr"), "2 passed, 1 skipped")


def test_patterns_choose_tests_of_a_file():
    library = Library("x", None, (f"{TESTS}::test_a*",), "")
    outcomes = {f"{TESTS}::test_a[1]": "passed", f"{TESTS}::test_b": "passed"}
    number, counts = ecosystem.result(library, outcomes)
    assert number.startswith("Python 3")
    assert counts == "1 passed"


@pytest.mark.parametrize("outcomes", [{}, {f"{TESTS}::test_a": "skipped"}])
def test_libraries_without_a_test_that_ran_keep_their_line(outcomes):
    assert ecosystem.result(ZARR, outcomes) is None
    missing = ZARR._replace(distribution="no-such-distribution")
    assert ecosystem.result(missing, {f"{TESTS}::test_a": "passed"}) is None


@pytest.fixture
def page(tmp_path):
    """Return the path of a page with an empty table."""
    path = tmp_path / "interop.md"
    path.write_text(
        f"# Title\n\n{ecosystem.BEGIN}{ecosystem.HEAD}\nThe rest.\n\nEnd.\n"
    )
    return path


PROGRAM = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv.pop(1))
import ecosystem
ecosystem.ROOT = Path.cwd()
ecosystem.PAGE = ecosystem.ROOT / "interop.md"
ecosystem.files = lambda: []
sys.exit(ecosystem.main(sys.argv[1:]))
"""


def run(test):
    """Run one file of tests, in a process of its own."""
    root = test.parents[2]
    (root / "pytest.ini").write_text("[pytest]\n")
    tools = str(Path(ecosystem.__file__).parent)
    command = [sys.executable, "-c", PROGRAM, tools, str(test.relative_to(root))]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True)
    return done.returncode, done.stderr


@pytest.fixture
def test_file(tmp_path):
    path = tmp_path / TESTS
    path.parent.mkdir(parents=True)
    path.write_text("def test_a(): pass\n\ndef test_b(): pass\n")
    return path


def test_a_run_writes_the_lines(page, test_file):
    assert ecosystem.check(page.read_text())
    assert run(test_file) == (0, "")
    text = page.read_text()
    assert text.startswith(f"# Title\n\n{ecosystem.BEGIN}{ecosystem.HEAD}| NumPy | - |")
    assert f"| zarr | {version('zarr')} | 2 passed | {ZARR.works} |" in text
    assert text.endswith("|\n\nThe rest.\n\nEnd.\n")
    # Those that are not tested in the next run keep their lines.
    other = test_file.with_name("test_other.py")
    other.write_text("def test_a(): pass\n")
    assert run(other) == (0, "")
    assert page.read_text() == text


def test_readers_are_noted(page, test_file):
    mark = f"{ecosystem.BEGIN_READERS}| reader | C |\n|---|---|\n| `f(x)` | copies |\n"
    page.write_text(f"{page.read_text()}\n{mark}\nLast.\n")
    test_file.write_text(
        "def test_a(record_property):\n"
        "    for noted in [('reader', 'g(x)'), ('layout', 'C'), ('outcome', 'Bad')]:\n"
        "        record_property(*noted)\n"
    )
    assert run(test_file) == (0, "")
    table = "| reader | C |\n|---|---|\n| `f(x)` | copies |\n| `g(x)` | `Bad` |\n"
    assert page.read_text().endswith(f"{ecosystem.BEGIN_READERS}{table}\nLast.\n")


def test_a_failure_writes_nothing(page, test_file):
    before = page.read_text()
    test_file.write_text("def test_a(): assert False\n")
    assert run(test_file) == (1, "ecosystem: the table is not written\n")
    assert page.read_text() == before


def test_pages_without_a_table_are_refused():
    with pytest.raises(ValueError, match="no line"):
        ecosystem.check("# Title\n")


def test_lines_and_tests_are_checked(monkeypatch):
    text = ecosystem.BEGIN + ecosystem.written({"zarr": ("3", "1 passed")})
    assert ecosystem.check(text + "\nThe rest.\n") == []
    assert ecosystem.check(text.replace("| zarr |", "| tzar |") + "\n")
    rows = (ZARR._replace(tests=("tests/no_such.py",)),)
    monkeypatch.setattr(ecosystem, "LIBRARIES", rows)
    assert "zarr has no tests tests/no_such.py" in ecosystem.check(text + "\n")

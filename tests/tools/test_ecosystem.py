"""The table of libraries says what the tests have found, and the page has it."""

from importlib.metadata import version

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
def page(tmp_path, monkeypatch):
    """Return the path of a page with an empty table."""
    path = tmp_path / "interop.md"
    path.write_text(
        f"# Title\n\n{ecosystem.BEGIN}{ecosystem.HEAD}\nThe rest.\n\nEnd.\n"
    )
    monkeypatch.setattr(ecosystem, "PAGE", path)
    return path


def run(monkeypatch, test):
    monkeypatch.setattr(ecosystem, "files", lambda: [str(test)])
    monkeypatch.setattr(ecosystem, "ROOT", test.parents[2])
    options = ["-q", "-p", "no:cacheprovider", "-p", "no:randomly", "-p", "no:xdist"]
    config = test.parents[2] / "pytest.ini"
    config.write_text("[pytest]\naddopts = --import-mode=importlib\n")
    return ecosystem.main([*options, "-c", str(config), f"--rootdir={config.parent}"])


@pytest.fixture
def test_file(tmp_path):
    path = tmp_path / TESTS
    path.parent.mkdir(parents=True)
    path.write_text("def test_a(): pass\n\ndef test_b(): pass\n")
    return path


def test_a_run_writes_the_lines(page, test_file, monkeypatch):
    assert ecosystem.check(page.read_text())
    assert run(monkeypatch, test_file) == 0
    text = page.read_text()
    assert text.startswith(f"# Title\n\n{ecosystem.BEGIN}{ecosystem.HEAD}| NumPy | - |")
    assert f"| zarr | {version('zarr')} | 2 passed | {ZARR.works} |" in text
    assert text.endswith("|\n\nThe rest.\n\nEnd.\n")
    # Those that are not tested in the next run keep their lines.
    other = test_file.with_name("test_other.py")
    other.write_text("def test_a(): pass\n")
    assert run(monkeypatch, other) == 0
    assert page.read_text() == text


def test_a_failure_writes_nothing(page, test_file, monkeypatch, capsys):
    before = page.read_text()
    test_file.write_text("def test_a(): assert False\n")
    assert run(monkeypatch, test_file) == 1
    assert page.read_text() == before
    assert "the table is not written" in capsys.readouterr().err


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

"""The table of libraries says what the tests have found, and the page has it."""

import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import ecosystem
import pytest
from tables.ecosystem import LIBRARIES

ZARR = next(each for each in LIBRARIES if each.name == "zarr")
TESTS = "tests/interop/test_zarr.py"


def test_the_page_has_the_lines_of_the_table(capsys):
    assert ecosystem.main(["--check"]) == 0, capsys.readouterr().out


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
    pytest.importorskip("zarr")
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


def test_a_failure_writes_nothing(page, test_file):
    before = page.read_text()
    test_file.write_text("def test_a(): assert False\n")
    assert run(test_file) == (1, "ecosystem: the table is not written\n")
    assert page.read_text() == before

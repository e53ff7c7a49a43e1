"""The size checker finds files above their cap, and only those."""

import check_sizes
import pytest


def write(root, name, lines):
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("x\n" * lines, encoding="utf-8")


@pytest.mark.parametrize(
    "name", ["ndx/a.pyx", "tests/test_a.py", "tools/a.py", "setup.py"]
)
def test_the_cap(tmp_path, capsys, name):
    write(tmp_path, name, 1000)
    assert check_sizes.main(tmp_path) == 0
    write(tmp_path, name, 1001)
    assert check_sizes.main(tmp_path) == 1
    assert f"{name}: 1001 lines, cap 1000: split it along an idea" in (
        capsys.readouterr().out
    )


def test_report_is_sorted_and_counts_the_package(tmp_path, capsys):
    write(tmp_path, "ndx/a.py", 1001)
    write(tmp_path, "ndx/b.pyx", 1100)
    write(tmp_path, "tests/test_a.py", 10)
    assert check_sizes.main(tmp_path) == 1
    first, second, last = capsys.readouterr().out.splitlines()
    assert first.startswith("ndx/b.pyx: 1100")
    assert second.startswith("ndx/a.py: 1001")
    assert last == "sizes: 2 of 3 files too long; ndx/: 2101 lines"


def test_other_files_do_not_count(tmp_path):
    write(tmp_path, "ndx/table.json", 5000)
    write(tmp_path, "build/ndx/a.py", 5000)
    assert check_sizes.main(tmp_path) == 0

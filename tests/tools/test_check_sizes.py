"""The size checker finds files above their cap, and only those."""

import check_sizes
import pytest


def write(root, name, lines):
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("x\n" * lines, encoding="utf-8")


@pytest.mark.parametrize(
    ("name", "cap"),
    [
        ("ndx/backends/_pool/pool.pyx", 600),
        ("ndx/_core.pyx", 775),
        ("ndx/backends/host.pyx", 600),
        ("tests/test_core.py", 500),
        ("tests/backends/test_host.py", 500),
        ("tools/check.py", 600),
        ("setup.py", 98),
    ],
)
def test_each_cap(tmp_path, capsys, name, cap):
    write(tmp_path, name, cap)
    assert check_sizes.main(tmp_path) == 0
    write(tmp_path, name, cap + 3)
    assert check_sizes.main(tmp_path) == 1
    assert f"{name}: {cap + 3} lines, cap {cap}: split it (3 too many)" in (
        capsys.readouterr().out
    )


def test_report_is_sorted_and_counts_the_package(tmp_path, capsys):
    write(tmp_path, "ndx/a.py", 601)
    write(tmp_path, "ndx/b.pyx", 700)
    write(tmp_path, "tests/test_a.py", 10)
    assert check_sizes.main(tmp_path) == 1
    first, second, last = capsys.readouterr().out.splitlines()
    assert first.startswith("ndx/b.pyx: 700")
    assert second.startswith("ndx/a.py: 601")
    assert last == "sizes: 2 of 3 files too long; ndx/: 1301 lines"


def test_other_files_do_not_count(tmp_path):
    write(tmp_path, "ndx/table.json", 5000)
    write(tmp_path, "build/ndx/a.py", 5000)
    assert check_sizes.main(tmp_path) == 0

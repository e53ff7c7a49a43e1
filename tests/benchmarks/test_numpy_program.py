"""The benchmark of plain NumPy in a control group: it measures, and it can fail."""

import json
import os

import numpy_program
import pytest
from helpers.sanitizers import counts_pages

pytestmark = pytest.mark.skipif(os.name != "posix", reason="control groups are Linux's")


@counts_pages
def test_a_program_that_is_killed_alone_finishes_in_files(tmp_path, capsys):
    arguments = ["--memory", "192MiB", "--walks", str(2**15), "--check", "--json"]
    status = numpy_program.main([*arguments, "--directory", str(tmp_path)])
    captured = capsys.readouterr()
    if captured.err.startswith("skipped: "):
        pytest.skip(f"needs a control group of memory: {captured.err}")
    assert (status, captured.err) == (0, "")
    rows = json.loads(captured.out)
    alone, bound, run = (
        rows[name]
        for name in (numpy_program.ALONE, numpy_program.BOUND, numpy_program.RUN)
    )
    assert alone["status"] == run["status"] == run["kills"] == 0
    assert bound["status"] < 0 < bound["kills"]
    assert run["output"] == alone["output"]
    assert run["output"].count("\n") == 7
    assert run["peak"] is None or run["peak"] <= 192 * 2**20
    assert f"spilled to files in {tmp_path}" in run["errors"]
    assert list(tmp_path.iterdir()) == []


def row(status=0, kills=0, output="1\n", errors=""):
    return {
        "status": status,
        "peak": 2**20,
        "kills": kills,
        "seconds": 1.0,
        "output": output,
        "errors": errors,
    }


@pytest.mark.parametrize(
    ("alone", "bound", "run", "text"),
    [
        (row(), row(-9, 1), row(), None),
        (row(1, errors="bad"), row(-9, 1), row(), "the program fails: bad"),
        (row(), row(), row(), "it needs less"),
        (row(), row(-9, 1), row(-9, 1), "ndx run failed"),
        (row(), row(-9, 1), row(output="2\n"), "other values"),
    ],
)
def test_what_is_missed_is_an_error(alone, bound, run, text, monkeypatch, capsys):
    rows = dict(
        zip(
            (numpy_program.ALONE, numpy_program.BOUND, numpy_program.RUN),
            (alone, bound, run),
            strict=True,
        )
    )
    monkeypatch.setattr(numpy_program, "compare", lambda options: rows)
    assert numpy_program.main(["--check"]) == (text is not None)
    assert (text or "") in capsys.readouterr().err
    assert numpy_program.main([]) == 0


def test_a_machine_that_can_not_hold_it_is_skipped(monkeypatch, capsys):
    def refuse(options):
        raise numpy_program.Unable("no control group can be made: no")

    monkeypatch.setattr(numpy_program, "compare", refuse)
    assert numpy_program.main(["--check"]) == 0
    assert capsys.readouterr().err == "skipped: no control group can be made: no\n"

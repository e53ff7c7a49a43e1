"""The benchmark of passes: its readers are right, and it says why it can't measure."""

import importlib.util
import json
import os
from pathlib import Path

import numpy as np
import pytest
from helpers.commands import run_python

pytestmark = pytest.mark.skipif(os.name != "posix", reason="maps files")
PATH = Path(__file__).parents[2] / "benchmarks" / "larger_than_ram.py"
SIZE = 2**24


@pytest.fixture(scope="module")
def benchmark():
    """Return the module, which has the name of an example."""
    spec = importlib.util.spec_from_file_location("larger_than_ram_benchmark", PATH)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_its_readers_are_right(benchmark, tmp_path):
    path = str(tmp_path / "x.npy")
    total = benchmark.make_file(path, SIZE + 8)
    x = np.load(path)
    assert x.nbytes == SIZE + 8
    assert total == pytest.approx(x.sum(), rel=1e-9)
    values = [x[0], x[x.size // 2], x[-1]]
    for threads in (1, 3):
        for name, reader in benchmark.READERS.items():
            result = reader(path, str(tmp_path), threads)
            benchmark.check_result(name, result, total, values)
    with pytest.raises(SystemExit, match="ndx sum is 1.0, not"):
        benchmark.check_result("ndx sum", 1.0, total, values)
    with pytest.raises(SystemExit, match=r"ndx a\*2\+1 is"):
        benchmark.check_result("ndx a*2+1", (0.0, 0.0, 0.0), total, values)


def test_it_measures_and_cleans_up(benchmark, tmp_path, capsys):
    arguments = ["--size", str(SIZE), "--memory", "256MiB", "--repeats", "1"]
    arguments += ["--directory", str(tmp_path)]
    assert benchmark.main([*arguments, "--json"]) == 0
    captured = capsys.readouterr()
    if captured.err.startswith("skipped: "):
        pytest.skip(f"needs a control group of memory: {captured.err}")
    found = json.loads(captured.out)
    assert [row["reader"] for row in found["rows"]] == list(benchmark.READERS)
    for row in found["rows"]:
        assert row["seconds"] > 0
        assert 0 < row["anonymous_bytes"] < 2**28
    assert [line[2] for line in found["ratios"]] == [row[2] for row in benchmark.RATIOS]
    assert list(tmp_path.iterdir()) == []


def test_a_process_in_the_group_knows_its_limit(benchmark):
    """What passes take for the memory that there is."""
    program = """
        import os, pathlib, sys
        from ndx._lib.system import memory_for_pages
        pathlib.Path(sys.argv[1], "cgroup.procs").write_text(str(os.getpid()))
        print(memory_for_pages())
    """
    try:
        with benchmark.control_group(2**28) as group:
            assert int(run_python(program, str(group))) == 2**27
    except benchmark.Unable as reason:
        pytest.skip(f"needs a control group of memory: {reason}")


def rows_of(benchmark, seconds):
    return [
        {
            "reader": name,
            "seconds": seconds.get(name, 1.0),
            "all_seconds": [seconds.get(name, 1.0)],
            "bytes_per_second": 1.0,
            "anonymous_bytes": 1,
        }
        for name in benchmark.READERS
    ]


def test_a_missed_target_is_an_error(benchmark, monkeypatch, capsys):
    slow, fast = {"ndx sum": 1.2}, {"ndx sum": 0.9, "ndx a*2+1": 0.9}
    for seconds, missed in ((slow, 1), (fast, 0)):
        rows = rows_of(benchmark, seconds)
        monkeypatch.setattr(benchmark, "compare", lambda options, rows=rows: rows)
        assert benchmark.main(["--check"]) == missed
        assert benchmark.main([]) == 0
        assert "ndx sum / readv" in capsys.readouterr().out


def test_a_machine_that_can_not_hold_it_is_skipped(benchmark, monkeypatch, capsys):
    def refuse(options):
        raise benchmark.Unable("no control group can be made: no")

    monkeypatch.setattr(benchmark, "compare", refuse)
    assert benchmark.main(["--check"]) == 0
    assert capsys.readouterr().err == "skipped: no control group can be made: no\n"


@pytest.mark.parametrize(
    "arguments", [["--size", "1MiB"], ["--size", "big"], ["--repeats", "0"], ["--no"]]
)
def test_wrong_options(benchmark, arguments, capsys):
    with pytest.raises(SystemExit) as error:
        benchmark.main(arguments)
    assert error.value.code == 2
    assert capsys.readouterr().err

"""The benchmark of GPUs: it runs where NumPy stands in for one; else it refuses."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

import ndx

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "gpu.py"


def test_it_runs(gpu, capsys):
    pytest.importorskip("sklearn")
    import gpu as benchmark

    assert benchmark.main(["--repeats", "1", "--epochs", "1", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert list(found["digits"]) == [
        "CuPy, eager", "ndx", "ndx + workspace", "ndx, fused", "ndx + graph",
        "fused + graph",
    ]  # fmt: skip
    assert all(row["ndx"] > 0 < row["CuPy"] for row in found["pool"].values())
    assert found["peak"]["ndx"] > 0
    benchmark.show({**found, "pool": {512: found["pool"]["512"]}})
    assert "malloc+free" in capsys.readouterr().out
    ndx.workspace("digits").destroy()


def test_one_that_fails_is_a_row(gpu, capsys, monkeypatch):
    pytest.importorskip("sklearn")
    import gpu as benchmark

    def failing(taken=None):
        def step(*args):
            raise ndx.DeviceError("no graph today")

        return step

    monkeypatch.setattr(benchmark, "replayed", failing)
    assert benchmark.main(["--repeats", "1", "--epochs", "2"]) == 0
    lines = capsys.readouterr().out.splitlines()
    (row,) = [line for line in lines if "ndx + graph" in line]
    assert row.split(None, 3)[3] == "DeviceError: no graph today      -"
    assert any("ndx + workspace" in line for line in lines)
    ndx.workspace("digits").destroy()


def test_it_refuses_without_a_gpu():
    code = (
        f"import sys, runpy; sys.modules['cupy'] = None; "
        f"sys.path.insert(0, {str(SCRIPT.parent)!r}); "
        f"runpy.run_path({str(SCRIPT)!r}, run_name='__main__')"
    )
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60
    )
    assert run.returncode == 2
    assert "CuPy" in run.stderr
    assert not run.stdout

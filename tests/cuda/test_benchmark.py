"""The benchmark of GPUs: it runs where NumPy stands in for one; else it refuses."""

import json
from pathlib import Path

import pytest

import ndx

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "gpu.py"


@pytest.mark.nightly
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

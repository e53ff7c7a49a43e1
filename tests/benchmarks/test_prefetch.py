"""The benchmark of prefetching: its sources are right, and nothing is allocated."""

import importlib.util
import json
from pathlib import Path

import pytest

import ndx

PATH = Path(__file__).parents[2] / "benchmarks" / "prefetch.py"


@pytest.fixture
def benchmark(monkeypatch):
    """Return the module, with small arrays."""
    spec = importlib.util.spec_from_file_location("prefetch_benchmark", PATH)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "SIZE", 2000)
    before = ndx.get_num_threads()
    yield module
    ndx.set_num_threads(before)


def test_it_measures_each_source(benchmark, capsys):
    assert benchmark.main(["--quick", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert [row["source"] for row in rows] == ["waiting", "NumPy", "files", "Python"]
    for row in rows:
        assert min(row["plain_ms"], row["prefetched_ms"], row["limit"]) > 0
        # After the first epoch, which is not counted.
        assert row["system_allocations"] == 0


def test_a_missed_target(benchmark, monkeypatch, capsys):
    monkeypatch.setattr(benchmark, "TARGET", 1e-9)
    assert benchmark.main(["--quick", "--check"]) == 1
    assert capsys.readouterr().out.count("missed") == 3
    monkeypatch.setattr(benchmark, "TARGET", 1e9)
    assert benchmark.main(["--quick", "--check"]) == 0


def test_a_wrong_batch_ends_it(benchmark, monkeypatch):
    sums = iter(range(100))
    monkeypatch.setattr(benchmark, "step", lambda x: float(next(sums)))
    with pytest.raises(SystemExit, match="with prefetch, not"):
        benchmark.measure("wrong", lambda i: None, None, 3, 1)

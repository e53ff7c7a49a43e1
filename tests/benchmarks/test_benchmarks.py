"""Benchmarks measure what they say, and what they promise of memory holds."""

import importlib.util
import json
import os
from pathlib import Path

import face_calls
import fused
import liveness
import modes
import numpy as np
import numpy_program
import parallel
import pytest
from helpers.parallel import nothing_left
from helpers.sanitizers import counts_pages

import ndx
import ndx.numpy as face

pytestmark = pytest.mark.nightly
FOLDER = Path(__file__).parents[2] / "benchmarks"
posix = pytest.mark.skipif(os.name != "posix", reason="maps files, in control groups")


def load(name):
    """Return a benchmark that has the name of another module."""
    spec = importlib.util.spec_from_file_location(
        f"{name}_bench", FOLDER / f"{name}.py"
    )
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_fused_expressions(capsys, monkeypatch):
    monkeypatch.setattr(fused, "CASES", [fused.CASES[0], fused.CASES[4]])
    assert fused.main(["--quick"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].split()[:2] == ["expression", "10"]
    assert lines[2].startswith("stencil_2d")


@posix
def test_doors_run_the_examples_of_their_page():
    doors = load("doors")
    assert doors.measure(2, 30)["arena"] == 0
    assert doors.measure(4, 30)["arena"] > 8 * 30 * 30
    assert max(examples for _, examples in doors.DOORS.values()) == len(
        doors.FENCE.findall(doors.PAGE.read_text())
    )
    ndx.memory.destroy_all()


def test_threads_on_small_arrays(capsys, monkeypatch):
    threads = load("threads")
    monkeypatch.setattr(threads, "SIZES", (10,))
    monkeypatch.setattr("sys.argv", ["threads.py", "--quick"])
    assert threads.main()
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2 + len(threads.kinds(100))
    assert all(float(line.split()[-1]) > 0 for line in lines[2:])


@posix
def test_readers_of_large_files_are_right(tmp_path):
    benchmark = load("larger_than_ram")
    path = str(tmp_path / "x.npy")
    total = benchmark.make_file(path, 2**24 + 8)
    x = np.load(path)
    assert x.nbytes == 2**24 + 8
    assert total == pytest.approx(x.sum(), rel=1e-9)
    values = [x[0], x[x.size // 2], x[-1]]
    for threads in (1, 3):
        for name, reader in benchmark.READERS.items():
            result = reader(path, str(tmp_path), threads)
            benchmark.check_result(name, result, total, values)


@posix
def test_large_files_are_read_in_little_memory(tmp_path, capsys):
    benchmark = load("larger_than_ram")
    arguments = ["--size", str(2**24), "--memory", "256MiB", "--repeats", "1"]
    assert benchmark.main([*arguments, "--directory", str(tmp_path), "--json"]) == 0
    captured = capsys.readouterr()
    if captured.err.startswith("skipped: "):
        pytest.skip(f"needs a control group of memory: {captured.err}")
    rows = json.loads(captured.out)["rows"]
    assert [row["reader"] for row in rows] == list(benchmark.READERS)
    assert all(0 < row["anonymous_bytes"] < 2**28 for row in rows)
    assert list(tmp_path.iterdir()) == []


def test_planned_arenas_are_hardly_larger_than_what_lives(capsys):
    assert liveness.main(["--repeats", "2", "--json", "--check"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert len(rows) == len(liveness.works())
    for row in rows:
        assert row["live"] <= row["liveness"] < row["sum"]
        assert row["ratio"] <= liveness.TARGET
        assert row["spilled"] == 0


def test_all_modes_compute_the_same():
    for phase in ("training", "inference"):
        runs = [modes.Run(phase, mode) for mode in modes.MODES]
        results = [
            [run.step(run.roles(), *batch) for batch in run.batches[-3:]]
            for run in runs
        ]
        assert results == [results[0]] * len(modes.MODES)


def test_modes_differ_in_their_peaks_of_memory(capsys):
    modes.main(["--quick", "--json"])
    rows = {
        (row["phase"], row["mode"]): row
        for row in json.loads(capsys.readouterr().out)["rows"]
    }
    assert len(rows) == 8
    for (_, mode), row in rows.items():
        assert row["system_per_step"] == 0
        assert (row["buffers_per_step"] > 0) == (mode == "none")
        assert (row["arena_bytes"] > 0) == (mode != "none")
    for phase in ("training", "inference"):
        single, separate, enabled = (
            rows[phase, mode]["peak_bytes"]
            for mode in ("single", "separate", "enabled")
        )
        assert enabled < separate < single
        assert enabled <= 1.1 * rows[phase, "none"]["peak_bytes"]


@posix
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


def test_workers(capsys, monkeypatch):
    monkeypatch.setattr(parallel, "TARGET", 0.0)
    before = ndx.get_num_threads()
    with nothing_left():
        assert parallel.main(["--quick", "--repeats", "1", "--check"]) == 0
    assert ndx.get_num_threads() == before
    shown = capsys.readouterr().out
    for name in ("the machine", "products", "elementwise", "transforms", "train"):
        assert name in shown


@pytest.mark.parametrize("workers", [0, 1, 2])
def test_any_number_of_workers_computes_the_same(workers):
    x = ndx.full((4, 4), 0.5)
    parallel.mapped(parallel.matrices, [x] * 3, workers)
    parallel.trained(ndx.zeros((4, 4)), [(x, x)] * 3, workers)


def test_prefetching_allocates_nothing_after_the_first_epoch(capsys, monkeypatch):
    benchmark = load("prefetch")
    monkeypatch.setattr(benchmark, "SIZE", 2000)
    before = ndx.get_num_threads()
    assert benchmark.main(["--quick", "--json"]) == 0
    ndx.set_num_threads(before)
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert [row["source"] for row in rows] == ["waiting", "NumPy", "files", "Python"]
    for row in rows:
        assert min(row["plain_ms"], row["prefetched_ms"], row["limit"]) > 0
        assert row["system_allocations"] == 0


@pytest.mark.parametrize("size", [10, 300])
@pytest.mark.parametrize("call", face_calls.CALLS)
def test_calls_of_the_face_are_numpys(call, size):
    plain, arrays = face_calls.operands(size)
    ours = {n: ndx.asarray(x, copy=True) for n, x in arrays.items()}
    expected = eval(f"np.{call}", {**arrays, **plain, "np": np})
    found = eval(f"np.{call}", {**ours, **plain, "np": face})
    assert type(found) is not np.ndarray
    if call != "array_repr(x)" and not call.startswith(("empty", "cross")):
        for each, its in zip(*map(parts, (found, expected)), strict=True):
            if not isinstance(its, (np.ndarray, np.number)):
                assert each == its
                continue
            assert each.dtype == its.dtype
            np.testing.assert_allclose(each, its, rtol=1e-6, atol=1e-12)
    for name, x in ours.items():
        assert np.array_equal(x, arrays[name]), f"{call} has changed {name}"


def parts(result):
    return result if isinstance(result, (list, tuple)) else [result]

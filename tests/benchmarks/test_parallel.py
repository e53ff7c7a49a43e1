"""The benchmark of workers measures what it says."""

import parallel
import pytest
from helpers.parallel import nothing_left

import ndx


def test_prints_a_row_for_each_kind_of_work(capsys, monkeypatch):
    monkeypatch.setattr(parallel, "TARGET", 0.0)
    before = ndx.get_num_threads()
    with nothing_left():
        assert parallel.main(["--quick", "--repeats", "1", "--check"]) == 0
    assert ndx.get_num_threads() == before
    shown = capsys.readouterr().out
    for name in ("the machine", "products", "elementwise", "transforms", "train"):
        assert name in shown


def test_a_missed_target_fails(monkeypatch):
    row = parallel.Row("map", 1.0, 1.0, 1.0, 1.0, 1.0)
    monkeypatch.setattr(parallel, "measure", lambda *args: [row])
    assert parallel.main(["--check"]) == 1
    assert parallel.main([]) == 0


@pytest.mark.parametrize("workers", [0, 1, 2])
def test_all_numbers_of_workers_compute_the_same(workers):
    x = ndx.full((4, 4), 0.5)
    parallel.mapped(parallel.matrices, [x] * 3, workers)
    parallel.trained(ndx.zeros((4, 4)), [(x, x)] * 3, workers)

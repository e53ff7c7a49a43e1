"""The example finds NumPy's result on processes, also if one of them is killed."""

import re

import numpy as np
import pytest
from helpers.commands import run_example
from helpers.sanitizers import counts_pages

import ndx

pytest.importorskip("distributed")

SMALL = ("--size", "24MiB", "--block", "512KiB", "--columns", "16")


@pytest.mark.parametrize("xp", [np, ndx], ids=["numpy", "ndx"])
def test_blocks_are_those_of_the_model(xp):
    from cluster_data import make_block, make_model

    model = make_model(2500, 6, 1000, seed=3)
    assert [model.rows_of(i) for i in range(model.blocks)] == [1000, 1000, 500]
    blocks = [make_block(xp, model, i) for i in range(model.blocks)]
    assert {type(block) for block in blocks} == {type(xp.zeros(1))}
    for i, block in enumerate(blocks):
        again = np.asarray(make_block(np, model, i))
        np.testing.assert_allclose(np.asarray(block), again, rtol=1e-13)
    assert not np.allclose(np.asarray(blocks[0]), np.asarray(blocks[1]))


def test_the_reference_is_the_covariance_of_all_rows():
    from cluster_data import make_block, make_model, reference

    model = make_model(2500, 6, 1000, seed=3)
    seen = []
    mean, covariance = reference(model, lambda: seen.append(1))
    rows = np.concatenate([make_block(np, model, i) for i in range(3)])
    np.testing.assert_allclose(mean, rows.mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(covariance, np.cov(rows, rowvar=False), rtol=1e-11)
    assert len(seen) == 3


def test_the_analysis_finds_the_components():
    from cluster_data import make_model, reference
    from cluster_pca import analyse, data_set, largest_error

    model = make_model(2500, 6, 1000, seed=3)
    names = []

    def watch(name, array):
        names.append(name)
        return array

    import dask

    with dask.config.set(scheduler="sync"):
        found = analyse(data_set(model), watch)
    mean, covariance = reference(model, lambda: None)
    assert names == ["mean", "covariance", "scores"]
    assert largest_error(found, mean, covariance) < 1e-12
    assert largest_error(found, mean, covariance * 1.01) > 0.005
    assert largest_error(found, mean + 0.1, covariance) > 0.005


# A worker whose memory is nearly its limit is paused.
@pytest.mark.nightly
@counts_pages
def test_a_worker_is_killed(tmp_path):
    done = run_example("cluster_pca.py", *SMALL, "--kill", "--directory", tmp_path)
    assert done.returncode == 0, done.stderr
    for text in ("make", "covariance", "scores", "killed", "192 MiB", "384 MiB"):
        assert text in done.stdout
    error = re.search(r"difference from NumPy: (\S+)", done.stdout)[1]
    assert float(error) < 1e-10
    assert "covariance: " in done.stderr, "the progress bar"
    assert list(tmp_path.iterdir()) == []


WRONG = """
import sys, cluster_pca
report = cluster_pca.memory_report

def reports(client):
    return [each._replace(peak_resident_bytes=2**40) for each in report(client)]

cluster_pca.memory_report = reports
cluster_pca.TOLERANCE = 0
sys.exit(cluster_pca.main(sys.argv[1:]))
"""


@pytest.mark.nightly
@counts_pages
def test_wrong_results_and_workers_above_their_limit_fail(tmp_path):
    options = ("--workers", 1, "--no-progress", "--directory", tmp_path)
    done = run_example("-c", WRONG, *SMALL, *options)
    assert done.returncode == 1
    assert done.stderr.splitlines() == [
        "FAILED: they differ by more than 0",
        "FAILED: a worker had 1 TiB of memory",
    ]

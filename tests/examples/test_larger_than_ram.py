"""The example does its job: it is right, in passes, with little memory."""

import os

import numpy as np
import pytest
from helpers.commands import run_example
from helpers.sanitizers import counts_pages

import ndx

pytestmark = pytest.mark.skipif(os.name != "posix", reason="maps files")


@pytest.mark.parametrize("memory", ["1GiB", 0], ids=["fits", "streams"])
def test_it_agrees_with_numpy(tmp_path, memory):
    from larger_than_ram import components, standardised

    a = np.random.default_rng(1).normal(size=(9000, 12)) * np.arange(1, 13) + 5
    names = set()
    passes = ndx.passes(
        progress=lambda done, total, name: names.add(name),
        threshold=0,
        block="64KiB",
        memory=memory,
    )
    with ndx.use("mmap", directory=tmp_path), passes:
        z = standardised(ndx.asarray(a, copy=True))
        covariance = z.T @ z / (a.shape[0] - 1)
        values, vectors = components(covariance, 3)
        expected = (a - a.mean(axis=0)) / a.std(axis=0)
        np.testing.assert_allclose(np.asarray(z), expected, rtol=1e-10, atol=1e-10)
        found = np.cov(expected, rowvar=False)
        np.testing.assert_allclose(np.asarray(covariance), found, atol=1e-12)
        np.testing.assert_allclose(
            np.asarray(values), np.linalg.eigvalsh(found)[::-1][:3], rtol=1e-10
        )
        residual = found @ np.asarray(vectors) - np.asarray(vectors * values)
        np.testing.assert_allclose(residual, 0, atol=1e-10)
    assert {"sum", "var", "subtract", "divide", "matmul"} <= names


def test_the_model_is_what_its_rows_have():
    from larger_than_ram import correlation, fill, make_model

    model = make_model(6, np.random.default_rng(2))
    x = ndx.empty((60_000, 6))
    fill(x, model, ndx.random.default_rng(3), 7_000)
    found = np.corrcoef(np.asarray(x), rowvar=False)
    np.testing.assert_allclose(found, correlation(model[0]), atol=0.03)
    np.testing.assert_allclose(np.asarray(x).mean(axis=0), model[2], atol=0.5)


@pytest.mark.nightly
def test_the_command(tmp_path):
    arguments = ("--memory", "4MiB", "--columns", "16", "--directory", str(tmp_path))
    done = run_example("larger_than_ram.py", *arguments)
    assert done.returncode == 0, done.stderr
    for word in (
        "make",
        "standardise",
        "covariance",
        "components",
        "16 MiB with 4 MiB",
    ):
        assert word in done.stdout
    assert "matmul" in done.stderr, "the progress bar"
    assert list(tmp_path.iterdir()) == []


@counts_pages
def test_it_takes_little_memory(tmp_path, capsys):
    """All of it, beyond what the program has before: less than it is allowed."""
    import larger_than_ram

    args = larger_than_ram.parse_args(
        ["--memory", "32MiB", "--no-progress", "--directory", str(tmp_path)]
    )
    meter = larger_than_ram.Meter(disable=True)
    before = larger_than_ram.anonymous_bytes()
    model = larger_than_ram.make_model(64, np.random.default_rng(0))
    shape = (4 * args.memory // (8 * 64), 64)
    with (
        ndx.use("mmap", directory=tmp_path),
        args.passes,
        ndx.passes(progress=meter.progress),
    ):
        larger_than_ram.analyse(tmp_path / "x.npy", shape, model, meter, args)
    assert [step.name for step in meter.steps][1] == "standardise"
    assert max(step.peak for step in meter.steps) - before < args.memory


def test_a_wrong_result_fails(monkeypatch, tmp_path, capsys):
    import larger_than_ram

    monkeypatch.setattr(larger_than_ram, "TOLERANCE", 1e-9)
    arguments = ["--no-progress", "--memory", "1MiB", "--directory", str(tmp_path)]
    assert larger_than_ram.main(arguments) == 1
    assert "FAILED: they differ" in capsys.readouterr().err

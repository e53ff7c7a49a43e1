"""The example does its job: it learns, and its workspace asks for nothing."""

import sys
import tracemalloc

import numpy as np
import pytest
from helpers.commands import run_example
from helpers.steps import CountedSteps, numpy_data_bytes

import ndx


@pytest.fixture(scope="module")
def digits():
    from digits_data import load_data

    return load_data(0)


def trained(xp, digits, epochs, *scope):
    from digits_network import Training

    run = Training(xp, *scope, digits=digits)
    for _ in range(epochs):
        run.repeat()
    return run


@pytest.mark.parametrize("learn", ["first", "liveness"])
def test_a_step_in_a_workspace_asks_for_nothing_after_the_first(digits, learn):
    steps = CountedSteps(learn=learn)
    trained(ndx, digits, 2, steps)
    assert len(steps.asked) > 20
    steps.check()


def test_no_numpy_data_within_a_step_either(digits):
    """Each operation of a step, one by one: NumPy allocates no array data for it."""
    from digits_network import init_params, sgd_step

    params = init_params(ndx, (64, 32, 10), 0)
    velocities = [tuple(ndx.zeros_like(p) for p in layer) for layer in params]
    batch = (
        ndx.asarray(digits.train_images[:50], copy=True),
        ndx.asarray(digits.train_targets[:50], copy=True),
    )
    workspace = ndx.workspace()
    seen = []

    def trace(frame, event, argument):
        if not frame.f_code.co_filename.endswith("digits_network.py"):
            return None
        if event == "line":
            seen.append(numpy_data_bytes())
        return trace

    for cycle in range(2):
        with workspace:
            if cycle:
                tracemalloc.start()
                sys.settrace(trace)
            try:
                sgd_step(ndx, params, velocities, batch)
            finally:
                sys.settrace(None)
                tracemalloc.stop()
    assert len(seen) > 30
    assert set(seen) == {(0, 0)}


def test_the_variants_agree(digits):
    workspaces = ndx.workspace(), ndx.workspace(learn="liveness")
    reference, *others = [
        trained(np, digits, 3),
        trained(ndx, digits, 3),
        *(trained(ndx, digits, 3, lambda w=w: w) for w in workspaces),
    ]
    for other in others:
        np.testing.assert_allclose(reference.history, other.history, rtol=1e-4)
        assert abs(reference.accuracy() - other.accuracy()) < 0.01


@pytest.mark.nightly
def test_the_command(tmp_path):
    picture = tmp_path / "memory.png"
    done = run_example(
        "train_digits.py", "--no-progress", "--epochs", "30", "--picture", str(picture)
    )
    assert done.returncode == 0, done.stderr
    for variant in ("NumPy", "ndx ", "ndx + workspace", "ndx + liveness"):
        assert variant in done.stdout
    assert picture.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("mode", ["enabled", "none"])
def test_a_step_in_roles_computes_the_same(digits, mode):
    """The step that names roles trains as the one without, in workspaces or none."""
    from digits_network import Training
    from digits_roles import StepInRoles

    run = Training(ndx, digits=digits, make_step=lambda: StepInRoles(mode))
    for _ in range(2):
        run.repeat()
    made = ndx.memory.stats("host")["total_allocations"]
    for batch in [(run.images[:128], run.targets[:128])] * 3:
        run.step(ndx, run.params, run.velocities, batch)
    made = ndx.memory.stats("host")["total_allocations"] - made
    assert (made == 0) == (mode == "enabled")
    assert (run.step.arena() is None) == (mode == "none")
    assert run.history == trained(ndx, digits, 2).history
    run.step.plan.destroy()


def test_the_network_is_evaluated(digits, tmp_path):
    """A trained network's report has the accuracy that the training reports."""
    from digits_network import Training
    from digits_roles import evaluate

    run = Training(ndx, digits=digits)
    for _ in range(3):
        run.repeat()
    report = evaluate(run.params, digits, 100, progress=False)
    assert report["classification"].accuracy == pytest.approx(run.accuracy())
    assert report["ROC"].auc() > 0.9
    assert report["cross-entropy"] > 0
    report.plot(tmp_path / "report.png")


def pipeline(digits, mode=None, prefetch=False, workers=None):
    """Return the training of a pipeline after three epochs."""
    import digits_pipelines
    from digits_network import Training
    from digits_roles import StepInRoles

    options = digits_pipelines.options(
        mode, prefetch, workers, lambda: StepInRoles(mode)
    )
    # 1437 = 8 * 179 + 5 samples.
    run = Training(ndx, digits=digits, batch_size=179, hidden=(16,), **options)
    for _ in range(3):
        run.repeat()
    return run


@pytest.mark.parametrize(
    "options",
    [
        {"prefetch": True},
        {"mode": "enabled", "prefetch": True},
        {"workers": 1},
        {"workers": 2, "mode": "none"},
        {"workers": 2, "prefetch": True},
        # The last batch has 5 samples: some workers have nothing to do.
        {"workers": 7},
    ],
    ids=str,
)
def test_a_pipeline_trains_as_the_loop(digits, options):
    """Batches made ahead, and workers that share each batch, change no loss."""
    expected = pipeline(digits)
    found = pipeline(digits, **options)
    np.testing.assert_allclose(found.history, expected.history, rtol=1e-5)
    assert abs(found.accuracy() - expected.accuracy()) < 0.01


def test_prefetched_steps_ask_for_nothing_after_the_first_epoch(digits):
    run = pipeline(digits, "enabled", prefetch=True)
    before = ndx.memory.stats("host")
    for _ in range(2):
        run.repeat()
    after = ndx.memory.stats("host")
    assert after["system_allocations"] == before["system_allocations"]
    run.feed.batches.close()
    run.step.plan.destroy()

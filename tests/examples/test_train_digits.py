"""The example does its job: it learns, and its workspace asks for nothing."""

import contextlib
import subprocess
import sys
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

import ndx

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture(scope="module", autouse=True)
def _examples_on_path():
    sys.path.insert(0, str(EXAMPLES))
    yield
    sys.path.remove(str(EXAMPLES))


@pytest.fixture(scope="module")
def digits():
    import train_digits

    return train_digits.load_data(0)


def numpy_data_bytes():
    """Return the bytes and the number of live blocks of NumPy's own array data."""
    snapshot = tracemalloc.take_snapshot().filter_traces(
        [tracemalloc.DomainFilter(True, np.lib.tracemalloc_domain)]
    )
    return sum(trace.size for trace in snapshot.traces), len(snapshot.traces)


class Steps:
    """A scope for each step that checks what the step asked for."""

    def __init__(self):
        self.workspace = ndx.workspace(size=0, learn="first")
        self.asked = []
        self.numpy_peaks = []

    @contextlib.contextmanager
    def __call__(self):
        before = ndx.memory.stats("host")
        with self.workspace:
            tracemalloc.start()
            yield
            # All traces of this step: the peak shows what was freed again, too.
            numpy_data = numpy_data_bytes()
            tracemalloc.stop()
        after = ndx.memory.stats("host")
        keys = ("system_allocations", "total_allocations")
        self.asked.append(tuple(after[key] - before[key] for key in keys))
        self.numpy_peaks.append(numpy_data)


def test_a_step_in_a_workspace_asks_for_nothing_after_the_first(digits):
    from digits_network import train

    steps = Steps()
    trained = train(ndx, digits, epochs=2, scope=steps)
    assert len(steps.asked) > 20
    # The first cycle is served by the backend, and its end makes the arena.
    assert steps.asked[0][1] > 10
    assert set(steps.asked[1:]) == {(0, 0)}
    assert set(steps.numpy_peaks[1:]) == {(0, 0)}
    assert steps.workspace.stats()["spilled_count"] == 0
    spills = steps.workspace.stats()["total_spills"]
    assert spills == steps.asked[0][1] - 1
    assert len(trained.losses) == 2


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


def test_the_three_variants_agree(digits):
    from digits_network import train

    workspace = ndx.workspace()
    variants = [
        train(np, digits, epochs=3),
        train(ndx, digits, epochs=3),
        train(ndx, digits, epochs=3, scope=lambda: workspace),
    ]
    for other in variants[1:]:
        np.testing.assert_allclose(variants[0].losses, other.losses, rtol=1e-4)
        assert abs(variants[0].accuracy - other.accuracy) < 0.01


def run(*arguments):
    return subprocess.run(
        [sys.executable, str(EXAMPLES / "train_digits.py"), *arguments],
        capture_output=True,
        text=True,
        timeout=240,
    )


def test_the_command(tmp_path):
    picture = tmp_path / "memory.png"
    done = run("--no-progress", "--epochs", "30", "--picture", str(picture))
    assert done.returncode == 0, done.stderr
    for variant in ("NumPy", "ndx", "ndx + workspace"):
        assert variant in done.stdout
    assert picture.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    "arguments",
    [
        ("--epochs", "0"),
        ("--epochs", "many"),
        ("--backend", "nosuch"),
        ("--seed", "-1"),
        ("--nosuch",),
    ],
    ids=" ".join,
)
def test_a_wrong_value_is_one_line(arguments, capsys):
    import train_digits

    with pytest.raises(SystemExit) as caught:
        sys.exit(train_digits.main(list(arguments)))
    assert caught.value.code == 2
    captured = capsys.readouterr()
    assert len(captured.err.strip().splitlines()) == 1
    assert not captured.out

"""The example does its job: it is right, and its workspace asks for nothing."""

import numpy as np
import pytest
from helpers.commands import run_example
from helpers.steps import CountedSteps
from helpers.threads import in_thread

import ndx


def simulated(xp, *scope, points=33, steps=40, fused=False):
    from heat_solver import Simulation, advance

    step = ndx.fuse(advance) if fused else advance
    run = Simulation(xp, *scope, points=points, steps=steps, step=step)
    run.repeat()
    assert not fused or "called as it is" not in step.explain()
    return run


@pytest.mark.parametrize("fused", [False, True])
@pytest.mark.parametrize("learn", ["first", "liveness"])
def test_a_step_in_a_workspace_asks_for_nothing_after_the_first(learn, fused):
    steps = CountedSteps(learn=learn)
    run = simulated(ndx, steps, steps=12, fused=fused)
    assert len(steps.asked) == 12
    steps.check(least=5 if fused else 10)
    assert run.error() < 2 / 32**2


def test_the_variants_agree_to_the_last_bit():
    workspaces = ndx.workspace(), ndx.workspace(learn="liveness")
    reference, *others = [
        simulated(np),
        simulated(ndx),
        *(simulated(ndx, lambda w=w: w) for w in workspaces),
        simulated(ndx, lambda: workspaces[1], fused=True),
    ]
    for other in others:
        np.testing.assert_array_equal(reference.u, np.asarray(other.u))
        np.testing.assert_allclose(reference.history, other.history, rtol=1e-14)


def test_it_is_exact_at_the_start_and_on_the_border():
    run = simulated(ndx, steps=1)
    u = np.asarray(run.u)
    assert run.time > 0
    for border in (u[0], u[-1], u[:, 0], u[:, -1]):
        np.testing.assert_allclose(border, 0, atol=1e-15)
    fresh = simulated(ndx, steps=1)
    fresh.u, fresh.time = ndx.asarray(u * 0), 10.0
    assert fresh.error() < 1e-15


def test_the_error_falls_with_the_square_of_the_mesh_width():
    from heat_equation import converge

    errors, orders = converge((9, 17, 33), 0.02)
    assert len(errors) == 3
    assert all(1.7 < order < 2.3 for order in orders)


def test_the_method_in_time_is_stable():
    """A mesh's roughest pattern fades, at the chosen time step."""
    from heat_solver import Simulation

    run = Simulation(ndx, points=17, steps=100)
    i, j = np.indices((15, 15))
    run.u[1:-1, 1:-1] = ndx.asarray((-1.0) ** (i + j))
    run.repeat()
    assert float(ndx.max(ndx.abs(run.u))) < 0.5


@pytest.mark.nightly
def test_the_command(tmp_path):
    picture = tmp_path / "memory.png"
    done = run_example(
        "heat_equation.py", "--no-progress", "--points", "33", "--picture", str(picture)
    )
    assert done.returncode == 0, done.stderr
    for variant in ("NumPy", "ndx ", "ndx + workspace", "ndx + liveness", "ndx, fused"):
        assert variant in done.stdout
    assert "orders 1.98, 2.01" in done.stdout
    assert picture.read_bytes().startswith(b"\x89PNG")


@in_thread
def test_a_wrong_result_fails(monkeypatch, tmp_path, capsys):
    import heat_equation

    monkeypatch.setattr(heat_equation, "REQUIRED_ERROR", 1e-9)
    arguments = ["--no-progress", "--points", "9", "--steps", "8", "--repeats", "2"]
    assert heat_equation.main([*arguments, "--picture", str(tmp_path / "p.png")]) == 1
    assert "error above 1.6e-11: NumPy, ndx," in capsys.readouterr().err

"""Plans: workspaces for training and for inference, by modes; and the switch."""

import pytest
from helpers.layers import Model, batches

import ndx

MODES = ("enabled", "none", "single", "separate")
plan_of = ndx.WorkspacePlan


def counters():
    stats = ndx.memory.stats("host")
    return stats["total_allocations"], stats["system_allocations"]


@pytest.mark.parametrize("mode", MODES)
def test_a_model_trains_and_infers_in_workspaces(mode):
    """One model, each mode: the same results; in workspaces, no allocations."""
    plan, model, reference = plan_of(mode, mode), Model(), Model()
    pairs = batches()
    for epoch in range(4):
        before = counters()
        for x, expected in pairs:
            loss, _ = model.train(plan.training(), x, expected)
            # The output is the one array that leaves: it is independent.
            made = counters()[0]
            outputs = model.infer(plan.inference(), x)
            left = counters()[0] - made
            plain, _ = reference.train(ndx.Roles.none(), x, expected)
            assert loss == plain
            expected_outputs = reference.infer(ndx.Roles.none(), x)
            assert outputs.tolist() == expected_outputs.tolist()
            if epoch >= 2 and mode != "none":
                assert left == 1
        assert counters()[1] == before[1] or epoch == 0


@pytest.mark.parametrize("mode", ["enabled", "single", "separate"])
def test_a_step_in_workspaces_makes_no_allocation_after_the_first_ones(mode):
    """The steady state: all arrays of a training step are in the arenas."""
    plan, model, pairs = plan_of(mode), Model(), batches()
    for _ in range(2):
        for x, expected in pairs:
            model.train(plan.training(), x, expected)
    before = counters()
    for x, expected in pairs:
        model.train(plan.training(), x, expected)
    assert counters() == before


def test_tools_use_workspaces_unless_the_process_wide_switch_is_off():
    """The tools use workspaces by default; one call turns that off, and on."""
    plan = ndx.WorkspacePlan()
    assert ndx.use_workspaces()
    assert plan.training()["activations"] is not None
    try:
        assert not ndx.use_workspaces(False)
        assert not ndx.use_workspaces()
        assert plan.training()["activations"] is plan.inference()["activations"] is None
        # What the program places itself is as ever.
        assert ndx.Roles({"a": "a"})["a"] is not None
        with ndx.workspace("a"):
            assert ndx.ones(1).attached
        with pytest.raises(ndx.WorkspaceError, match="no role 'typo'"):
            plan.training()["typo"]
    finally:
        ndx.use_workspaces(True)
    assert plan.training()["activations"] is not None


def test_the_switch_is_a_context_manager():
    """In a `with`, the switch goes back to what it was, also after an error."""

    def fail():
        with ndx.use_workspaces(False) as used:
            assert used is False
            with ndx.use_workspaces(True):
                assert ndx.use_workspaces()
            assert not ndx.use_workspaces()
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert ndx.use_workspaces()
    assert repr(ndx.use_workspaces()) == "ndx.use_workspaces(True)"


@pytest.mark.parametrize("bad", [1, 0, "yes", []])
def test_the_switch_takes_bools(bad):
    with pytest.raises(TypeError, match="takes True, False or None, not"):
        ndx.use_workspaces(bad)
    assert ndx.use_workspaces()


def names_of(roles):
    return {None if ws is None else ws.name for ws in roles.values()}


@pytest.mark.parametrize("training", MODES)
@pytest.mark.parametrize("inference", MODES)
def test_training_and_inference_have_modes_of_their_own(training, inference):
    """Every pair of modes: each phase is placed by its own, in its own workspaces."""
    plan = plan_of(training, inference, name="net")
    for phase, mode in (("training", training), ("inference", inference)):
        roles = getattr(plan, phase)()
        assert list(roles) == list(ndx.Role)
        expected = {
            "none": {None},
            "enabled": {f"net:{phase}"},
            "single": {f"net:{phase}"},
            "separate": {f"net:{phase}"},
        }[mode]
        assert names_of(roles) == expected
    assert repr(plan) == (
        f"WorkspacePlan(training={training!r}, inference={inference!r}, name='net')"
    )
    plan.destroy()


def roles_of(kind):
    """Return roles in one arena for all, in one for each, or those of a plan."""
    if kind == "plan":
        return ndx.WorkspacePlan(name=kind).training()
    config = ndx.WorkspaceConfig(overallocation=0.05, spill="grow")
    name = "{}:{}" if kind == "separate" else "{}"
    return ndx.Roles({role: (name.format(kind, role), config) for role in ndx.Role})


def held(kind):
    """Return the bytes of all arenas after three steps of training."""
    roles, model = roles_of(kind), Model()
    for x, expected in batches(3, rows=256):
        model.train(roles, x, expected)
    places = {ws.name: ws for ws in roles.values()}
    return sum(ws.size for ws in places.values()), len(places)


def test_separate_arenas_hold_less_than_a_single_one():
    """One arena holds the sum of a step; arenas by role reuse working memory.

    That of a plan, one arena that is planned by lifetimes, holds the least.
    """
    single, separate, plan = map(held, ("single", "separate", "plan"))
    assert single[1] == plan[1] == 1
    assert separate[1] == len(ndx.Role)
    assert plan[0] < separate[0] < single[0]


def test_in_a_single_arena_nothing_is_copied_between_roles():
    """Moving a result to its role copies between arenas, and not within one."""
    copied = {}
    for kind in ("single", "plan", "separate"):
        roles = roles_of(kind)
        with roles.scope("activations", "forward"):
            x = ndx.ones(3)
            copied[kind] = roles.leverage_to("activations", x) is not x
    assert copied == {"single": False, "plan": False, "separate": True}


@pytest.mark.parametrize("bad", ["ENABLED", "on", None, 3, ["none"]])
def test_unknown_modes_list_the_valid_ones(bad):
    with pytest.raises(ValueError, match="no mode of a WorkspacePlan") as error:
        ndx.WorkspacePlan(bad)
    assert "'enabled', 'none', 'single', 'separate'" in str(error.value)
    with pytest.raises(ValueError, match="inference="):
        ndx.WorkspacePlan(inference=bad)


def test_bad_arguments():
    with pytest.raises(TypeError, match="is one str"):
        ndx.WorkspacePlan(roles="activations")
    with pytest.raises(TypeError, match="name of a plan"):
        ndx.WorkspacePlan(name=3)
    with pytest.raises(TypeError, match="must be a WorkspaceConfig"):
        ndx.WorkspacePlan(config={"size": 3})


def test_roles_and_config_of_ones_own():
    config = ndx.WorkspaceConfig(size="1MiB", spill="fail")
    plan = ndx.WorkspacePlan(roles=["left", "right"], config=config, name="p")
    roles = plan.training()
    assert list(roles) == ["left", "right"]
    assert roles["left"].config == config
    with pytest.raises(ndx.WorkspaceError, match="'left', 'right'"):
        roles["activations"]
    plan.destroy()


def test_a_plan_gives_its_memory_back_even_when_the_switch_is_off():
    before = ndx.memory.stats("host")["allocated_bytes"]
    plan = ndx.WorkspacePlan(config=ndx.WorkspaceConfig(size="1MiB"))
    with plan.training().scope("inputs"), plan.inference().scope("inputs"):
        ndx.ones(1000)
    assert ndx.memory.stats("host")["allocated_bytes"] > before
    with ndx.use_workspaces(False):
        plan.destroy()
    assert ndx.memory.stats("host")["allocated_bytes"] == before

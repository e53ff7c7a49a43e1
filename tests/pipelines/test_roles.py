"""Roles: which workspace serves which arrays of a model."""

import asyncio
import threading

import numpy as np
import pytest
from helpers.layers import Model, batches

import ndx

APART = {role: f"of {role}" for role in ndx.Role}


def open_workspaces():
    return [ws.name for ws in ndx.memory.workspaces() if ws.is_open]


def test_each_role_has_its_workspace_by_any_form_of_a_place():
    """A mapping of roles to workspaces: by name, config, both, object; or to none."""
    config = ndx.WorkspaceConfig(size="1KiB")
    mine = ndx.workspace()
    roles = ndx.Roles(
        {
            "inputs": None,
            "activations": "acts",
            "gradients": ("grads", config),
            "updater": config,
            "own": mine,
        }
    )
    assert roles["inputs"] is None
    assert roles["activations"] is ndx.workspace("acts")
    assert roles["gradients"].name == "grads"
    assert roles["gradients"].config == config == roles["updater"].config
    assert roles["updater"].name == "roles:updater"
    assert roles["own"] is mine
    assert list(roles) == ["inputs", "activations", "gradients", "updater", "own"]
    assert len(roles) == 5
    assert "own" in roles
    assert "other" not in roles


def test_an_unknown_role_is_an_error_that_lists_the_known_ones():
    """A misspelt role raises, with what is meant and what there is."""
    roles = ndx.Roles({"activations": "acts", "inputs": None})
    for use in (
        roles.__getitem__,
        roles.borrow,
        roles.assert_open,
        lambda role: roles.scope(role),
        lambda role: roles.create(role, 3),
    ):
        with pytest.raises(ndx.WorkspaceError, match="did you mean 'activations'") as e:
            use("activation")
        assert "'activations', 'inputs'" in str(e.value)
    with pytest.raises(ndx.WorkspaceError, match="roles here are none"):
        ndx.Roles()["x"]


@pytest.mark.parametrize("bad", [3, ("a",), ("a", "b"), ("a", {}), object, b"a"])
def test_bad_places_and_names(bad):
    with pytest.raises(TypeError, match="no place for role 'inputs'; valid are"):
        ndx.Roles({"inputs": bad})
    with pytest.raises(TypeError, match="no place for role 'default'"):
        ndx.Roles(default=bad)
    with pytest.raises(TypeError, match="a role is a str"):
        ndx.Roles({3: None})
    with pytest.raises(TypeError, match="a role is a str"):
        ndx.Roles.none()[3]
    with pytest.raises(TypeError, match="must be a mapping, .* not int; .* default="):
        ndx.Roles(5)
    for method in ("leverage_to", "validate"):
        with pytest.raises(TypeError, match="for NDArrays, not int: make one by"):
            getattr(ndx.Roles({"inputs": None}), method)("inputs", 3)
    with pytest.raises(ValueError, match="at least one role"):
        ndx.Roles.none().scope()


def test_arrays_are_made_in_the_workspace_of_their_role():
    """`create` and `copy` place an array by its role, wherever the code is."""
    roles = ndx.Roles(APART)
    with roles.scope("activations", "gradients", "forward") as ws:
        assert ws is ndx.workspace("of forward")
        x = roles.create("activations", (2, 3))
        y = roles.create("gradients", 4, dtype="int16", fill=7)
        z = roles.copy("activations", np.arange(3.0))
        assert ndx.ones(1).workspace == "of forward"
        assert [a.workspace for a in (x, y, z)] == [
            "of activations",
            "of gradients",
            "of activations",
        ]
        assert x.shape == (2, 3)
        assert x.dtype == ndx.float64
        assert y.tolist() == [7] * 4
        assert y.dtype == ndx.int16
        assert roles.create("forward", 3, fill=0).tolist() == [0.0] * 3
        with roles.borrow("gradients") as borrowed:
            assert ndx.ones(1).workspace == borrowed.name == "of gradients"
    assert not x.in_scope
    assert open_workspaces() == []


def test_a_copy_is_a_copy_of_what_is_there_already():
    """`copy` never returns its argument."""
    roles = ndx.Roles(APART)
    with roles.scope("activations"):
        x = roles.create("activations", 3, fill=1)
        y = roles.copy("activations", x)
        y[0] = 5
        assert x.tolist() == [1, 1, 1]
    z = ndx.Roles.none().copy("anything", np.ones(2))
    assert not z.attached


def test_a_role_whose_workspace_is_not_open_is_a_clear_error():
    """Creating, copying, borrowing and moving need an open scope of the role."""
    roles = ndx.Roles(APART)
    with roles.scope("forward"):
        x = ndx.ones(3)
        for use in (
            lambda: roles.create("activations", 3),
            lambda: roles.copy("activations", x),
            lambda: roles.borrow("activations"),
            lambda: roles.leverage_to("activations", x),
            lambda: roles.validate("activations", x, migrate=True),
            lambda: roles.assert_open("forward", "activations"),
        ):
            with pytest.raises(ndx.WorkspaceError, match="roles.scope.'activations'"):
                use()
        roles.assert_open("forward")
        with pytest.raises(ndx.WorkspaceError, match="'forward'.*which is open here"):
            roles.assert_not_open("activations", "forward")
        with pytest.raises(ndx.WorkspaceError, match="which is open here"):
            roles.assert_not_open()
    roles.assert_not_open()
    ndx.Roles.none().assert_open("anything")
    ndx.Roles.none().assert_not_open("anything")


def test_assert_current():
    roles = ndx.Roles({**APART, "inputs": None})
    roles.assert_current("inputs")
    with roles.scope("activations"):
        roles.assert_current("activations")
        with pytest.raises(ndx.WorkspaceError, match="made in workspace 'of activatio"):
            roles.assert_current("inputs")
        with roles.scope("inputs"):
            roles.assert_current("inputs")
            with pytest.raises(ndx.WorkspaceError, match="are made in no workspace"):
                roles.assert_current("activations")


@pytest.mark.parametrize("places", ["training", "inference", "none"])
def test_the_same_model_code_runs_with_any_placement(places):
    """Training, inference and no workspaces differ in the roles, not in the code."""
    roles = {
        "training": ndx.Roles(APART),
        "inference": ndx.Roles(
            dict.fromkeys(["activations", "forward"], "infer"), default=None
        ),
        "none": ndx.Roles.none(),
    }[places]
    model, reference = Model(), Model()
    for x, expected in batches():
        loss, (activations, gradients) = model.train(roles, x, expected)
        plain, _ = reference.train(ndx.Roles.none(), x, expected)
        assert loss == plain
        assert activations == {
            {"training": "of activations", "inference": "infer", "none": None}[places]
        }
        assert gradients == {"of gradients" if places == "training" else None}
        outputs = model.infer(roles, x)
        assert outputs.tolist() == reference.infer(ndx.Roles.none(), x).tolist()
        assert not outputs.attached
    assert open_workspaces() == []


def test_leverage_to_moves_to_the_role_or_detaches():
    """An array is copied to the role's workspace, or out of all for a role in none."""
    roles = ndx.Roles({"activations": "acts", "forward": "work", "outputs": None})
    independent = ndx.ones(2)
    with roles.scope("activations", "forward"):
        x = ndx.full(3, 2.0)
        y = roles.leverage_to("activations", x)
        assert (x.workspace, y.workspace) == ("work", "acts")
        assert roles.leverage_to("activations", y) is y
        assert roles.leverage_to("activations", independent) is independent
        out = roles.leverage_to("outputs", y)
        assert not out.attached
    assert out.tolist() == [2.0] * 3
    with pytest.raises(ndx.StaleArrayError), roles.scope("activations"):
        roles.leverage_to("activations", x)
    with pytest.raises(ndx.StaleArrayError):
        roles.leverage_to("outputs", x)


def test_validate_finds_arrays_in_wrong_places():
    roles = ndx.Roles({"activations": "acts", "forward": "work", "outputs": None})
    independent = ndx.ones(2)
    assert roles.validate("activations", independent) is independent
    with pytest.raises(ndx.WorkspaceError, match="'acts'.*'activations'.*no workspace"):
        roles.validate("activations", independent, independent=False)
    with roles.scope("activations", "forward"):
        x = ndx.ones(3)
        assert roles.validate("forward", x) is x
        with pytest.raises(ndx.WorkspaceError, match="'acts'.*but it is in .*'work'"):
            roles.validate("activations", x)
        with pytest.raises(ndx.WorkspaceError, match="in no workspace.*'work'"):
            roles.validate("outputs", x)
        moved = roles.validate("activations", x, migrate=True)
        assert moved.workspace == "acts"
        assert not roles.validate("outputs", x, migrate=True).attached
        moved = roles.validate("forward", independent, True, independent=False)
        assert moved.workspace == "work"
    for role in roles:
        with pytest.raises(ndx.StaleArrayError):
            roles.validate(role, x)


@pytest.mark.threads
def test_validate_tells_workspaces_of_one_name_apart():
    """A thread's arrays are not in the workspace that another has by that name."""
    roles, found, ready, done = (
        ndx.Roles({"a": "a"}),
        [],
        *map(threading.Barrier, (2, 2)),
    )

    def other():
        with roles.scope("a"):
            found.append(ndx.ones(3))
            ready.wait(10)
            done.wait(10)

    thread = threading.Thread(target=other)
    thread.start()
    ready.wait(10)
    try:
        with pytest.raises(ndx.WorkspaceError, match="is to be in workspace 'a'"):
            roles.validate("a", found[0])
        with roles.scope("a"):
            with pytest.raises(ndx.WorkspaceError, match="is to be in workspace 'a'"):
                roles.validate("a", found[0])
            mine = roles.leverage_to("a", found[0])
            assert roles.validate("a", mine) is mine
    finally:
        done.wait(10)
        thread.join()


def test_arrays_of_a_ring_are_valid_after_their_scope():
    roles = ndx.Roles({"loader": ndx.WorkspaceConfig(reset="ring", slots=3)})
    with roles.scope("loader"):
        x = ndx.ones(3)
    assert roles.validate("loader", x) is x


def test_roles_without_workspaces():
    """`Roles.none()`: any role, no workspace, also inside those of the caller."""
    roles = ndx.Roles.none()
    with ndx.workspace("outer") as outer:
        x = ndx.ones(3)
        with roles.scope("anything", "else") as ws:
            assert ws is None
            assert not ndx.ones(3).attached
        assert ndx.ones(3).workspace == "outer"
        assert not roles.create("activations", 3).attached
        y = roles.leverage_to("activations", x)
        assert not y.attached
        assert roles.validate("x", y) is y
    assert outer.stats()["cycles"] == 1
    assert y.tolist() == [1, 1, 1]
    assert repr(roles) == "Roles.none()"


@pytest.mark.parametrize("layer", [0, 1])
@pytest.mark.parametrize("error", [MemoryError, KeyboardInterrupt, ndx.WorkspaceError])
def test_an_error_in_a_forward_pass_leaves_no_workspace_open(layer, error):
    """An exception in a layer closes its scope and those around it, and no other."""

    def fail(which):
        if which == layer:
            raise error("in the middle")

    roles, model = ndx.Roles(APART), Model(fail)
    x, expected = batches(1)[0]
    with ndx.workspace("mine") as mine:
        for use in (
            lambda: model.train(roles, x, expected),
            lambda: model.infer(roles, x),
        ):
            with pytest.raises(error, match="in the middle"):
                use()
            assert open_workspaces() == ["mine"]
            assert ndx.ones(1).workspace == "mine"
        assert mine.is_open
    model.on_forward = lambda layer: None
    loss, _ = model.train(roles, x, expected)
    assert loss > 0
    assert open_workspaces() == []


@pytest.mark.threads
def test_a_scope_that_fails_to_open_leaves_none_of_its_roles_open():
    """If the second of two workspaces can't be entered, the first one is left."""
    other = []
    thread = threading.Thread(target=lambda: other.append(ndx.workspace()))
    thread.start()
    thread.join()
    roles = ndx.Roles({"activations": "acts", "forward": other[0]})
    with pytest.raises(ndx.WorkspaceError, match="another thread"):
        roles.scope("activations", "forward").__enter__()
    assert open_workspaces() == []


def test_roles_work_within_workspaces_of_the_caller():
    """A model whose code enters its workspaces runs in an outer one, on every place."""
    model, roles = Model(), ndx.Roles(APART)
    x, expected = batches(1)[0]
    for _ in range(3):
        with ndx.workspace("outer"), ndx.workspace("outer 2"):
            loss, _ = model.train(roles, x, expected)
            out = model.infer(roles, x)
        assert np.isfinite(loss)
        assert np.isfinite(np.asarray(out)).all()


def test_a_scope_may_be_entered_again_within_itself():
    roles = ndx.Roles({"a": "a", "b": "b"})
    scope = roles.scope("a", "b")
    with scope:
        x = ndx.ones(3)
        with scope, roles.scope("a"):
            assert ndx.ones(3).workspace == "a"
        assert x.in_scope
        assert ndx.ones(3).workspace == "b"
    assert not x.in_scope
    assert open_workspaces() == []


def test_tasks_have_workspaces_of_their_own():
    roles = ndx.Roles({"a": "a"})

    async def task(value):
        roles.assert_not_open("a")
        with roles.scope("a"):
            x = roles.create("a", 100, fill=value)
            await asyncio.sleep(0.001)
            roles.assert_open("a")
            assert roles.validate("a", x) is x
            assert roles.leverage_to("a", x) is x
            return float(ndx.sum(x))

    async def all_tasks():
        return await asyncio.gather(*map(task, range(4)))

    assert asyncio.run(all_tasks()) == [0, 100, 200, 300]


def test_changed_copies_and_comparisons():
    roles = ndx.Roles({"a": "x", "b": None})
    changed = roles | {"a": None, "c": "y"}
    assert changed == ndx.Roles({"a": None, "b": None, "c": "y"})
    assert roles["a"].name == "x"
    assert roles != changed
    assert (roles | ndx.Roles.none())["other"] is None
    assert (ndx.Roles.none() | roles)["other"] is None
    assert roles != {"a": "x"}
    with pytest.raises(TypeError):
        roles | 3
    assert "'a': ('x', None)" in repr(roles)
    assert "default='d'" in repr(ndx.Roles(default="d"))
    assert ndx.Roles(default="d")["anything"].name == "d"


def test_destroy_gives_the_memory_back():
    roles = ndx.Roles({"a": "x", "b": "x", "c": ndx.WorkspaceConfig(size="1MiB")})
    before = ndx.memory.stats("host")["allocated_bytes"]
    with roles.scope("a", "b", "c"):
        ndx.ones(1000)
    assert ndx.memory.stats("host")["allocated_bytes"] >= before + 2**20
    roles.destroy()
    assert ndx.memory.stats("host")["allocated_bytes"] == before

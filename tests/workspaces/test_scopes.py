"""Entering and leaving: names, nesting, order, exceptions, configuration."""

import numpy as np
import pytest
from helpers.threads import in_thread

import ndx


def where():
    """Return the name of the workspace that serves a new array here."""
    return ndx.zeros(1).workspace


# ---- names and configuration -------------------------------------------------


@in_thread
def test_a_name_is_found_again():
    first = ndx.workspace("step", size="1KiB")
    assert ndx.workspace("step") is first
    assert ndx.workspace("step", size=1024) is first
    assert ndx.workspace("step", size="1 KiB", learn="first") is first
    assert ndx.workspace("other") is not first
    assert first.name == "step"
    assert first.config == ndx.WorkspaceConfig(size=1024)


def test_without_a_name_each_is_new():
    first, second = ndx.workspace(), ndx.workspace(None)
    assert first is not second
    assert first.name != second.name


@in_thread
def test_another_config_for_a_name_is_an_error():
    workspace = ndx.workspace("step", size="1KiB")
    for config in (
        {"size": 2048},
        {"size": 1024, "spill": "fail"},
        {"overallocation": 0.5},
        {"learn": "none", "size": "1KiB"},
    ):
        with pytest.raises(ndx.WorkspaceError, match="'step' exists with") as caught:
            ndx.workspace("step", **config)
        assert "size=1024" in str(caught.value)
    with pytest.raises(ndx.WorkspaceError, match="'step' exists on <HostBackend"):
        ndx.workspace("step", backend=ndx.backends.get("host", limit="1GiB"))
    assert ndx.workspace("step", backend="host") is workspace
    assert ndx.workspace("step") is workspace


@pytest.mark.parametrize(
    ("config", "error", "match"),
    [
        ({"size": -1}, ValueError, "size=-1 is negative"),
        ({"size": "big"}, ValueError, "size='big' is not a size"),
        ({"size": "1 parsec"}, ValueError, "'64MiB'"),
        ({"size": 1.5}, TypeError, "size must be an int or a string"),
        ({"size": True}, TypeError, "not bool"),
        ({"size": None}, TypeError, "not NoneType"),
        ({"size": 2**63}, ValueError, "beyond the address space"),
        ({"learn": "second"}, ValueError, "'first', 'over-time', 'none', 'liveness'"),
        ({"learn": None}, ValueError, "learn=None"),
        ({"spill": "grow?"}, ValueError, "spill='grow\\?'.*'external', 'grow', 'fail'"),
        ({"spill": ["fail"]}, ValueError, "'external', 'grow', 'fail'"),
        ({"overallocation": -0.1}, ValueError, "overallocation=-0.1"),
        ({"overallocation": "much"}, ValueError, "from 0 to 100"),
        ({"overallocation": float("nan")}, ValueError, "from 0 to 100"),
        ({"overallocation": float("inf")}, ValueError, "from 0 to 100"),
        ({"overallocation": "none"}, ValueError, "from 0 to 100"),
        ({"reset": "never"}, ValueError, "reset='never'.*'scope', 'ring'"),
        ({"escape": "copy"}, ValueError, "escape='copy'.*'raise', 'detach'"),
        ({"slots": 3}, ValueError, "slots=3 is for reset='ring'"),
        ({"slots": True, "reset": "ring"}, TypeError, "slots must be an int, not bool"),
        ({"cycles": True}, TypeError, "cycles must be an int, not bool"),
        ({"slots": 1, "reset": "ring"}, ValueError, "a ring has 2 to"),
        ({"slots": 2.0, "reset": "ring"}, TypeError, "slots must be an int"),
        ({"cycles": 3}, ValueError, "cycles=3 is not valid with learn='first'"),
        ({"cycles": -1, "learn": "over-time"}, ValueError, "cycles=-1"),
        ({"cycles": True, "learn": "over-time"}, TypeError, "cycles must be an int"),
        ({"size": 10, "max_size": 9}, ValueError, "max_size=9 is not valid with size"),
        ({"min_size": 10, "max_size": 9}, ValueError, "with min_size=10"),
        ({"max_size": 0}, ValueError, "max_size=0"),
        ({"spill": "fail", "learn": "none"}, ValueError, "never be an arena"),
        ({"min_size": -1}, ValueError, "min_size=-1 is negative"),
        ({"max_size": "?"}, ValueError, "max_size='\\?' is not a size"),
        ({"debug": 1}, TypeError, "debug must be True or False"),
        ({"config": {"size": 1}}, TypeError, "must be an ndx.WorkspaceConfig"),
        ({"colour": 1}, TypeError, "no policy 'colour'; valid are backend, size"),
        ({"backend": "nowhere"}, ValueError, "unknown backend 'nowhere'"),
        ({"backend": 3}, TypeError, "a backend is given by name"),
    ],
)
def test_bad_config(config, error, match):
    # Arrays of other tests may still go from the default one.
    with ndx.use(ndx.backends.HostBackend()) as backend:
        before = backend.stats()
        with pytest.raises(error, match=match):
            ndx.workspace(**config)
        with pytest.raises(error, match=match):
            ndx.workspace("bad config", **config)
        assert backend.stats() == before


@in_thread
def test_a_bad_config_of_a_name_does_not_take_it():
    with pytest.raises(ValueError, match="size"):
        ndx.workspace("step", size="?")
    assert ndx.workspace("step", size=64).size == 64


@pytest.mark.parametrize("name", [1, b"step", ("a",)])
def test_a_name_must_be_a_string(name):
    with pytest.raises(TypeError, match="name must be a str"):
        ndx.workspace(name)


def test_a_size_above_the_limit():
    backend = ndx.backends.get("host", limit="1MiB")
    with pytest.raises(ndx.OutOfMemoryError, match="its limit is 1 MiB"):
        ndx.workspace(backend=backend, size="2MiB")
    assert backend.stats()["reserved_bytes"] == 0


def test_sizes_round_up_to_lines():
    assert ndx.workspace(size=1).size == 64
    assert ndx.workspace(size="1.5KiB").size == 1536


def test_workspaces_are_made_by_the_function():
    with pytest.raises(TypeError, match=r"ndx\.workspace"):
        ndx.Workspace()


def test_the_backend_is_the_one_that_is_given():
    backend = ndx.backends.get("host", limit="1MiB")
    workspace = ndx.workspace(size="1KiB", backend=backend)
    with ndx.use("host", limit="2MiB"), workspace:
        assert ndx.current_backend() is backend
        assert ndx.zeros(3).backend is backend
        assert ndx.zeros(3000).backend is backend
    assert ndx.zeros(3).backend is not backend


# ---- nesting -----------------------------------------------------------------


@in_thread
def test_nested_scopes():
    a, b = ndx.workspace("a", size="1KiB"), ndx.workspace("b", size="1KiB")
    assert where() is None
    with a:
        x = ndx.ones(3)
        with b:
            y = x + 1
            assert y.workspace == "b"
        assert where() == "a"
        assert x.in_scope
        assert not y.in_scope
    assert where() is None
    assert not x.in_scope


@in_thread
def test_a_in_a_is_the_same_cycle():
    a = ndx.workspace("a", size="1KiB")
    with a:
        x = ndx.ones(3)
        with a, a:
            y = x + 1
        assert a.is_open
        assert (x + y).tolist() == [3.0] * 3
        assert a.stats()["cycles"] == 0
    assert a.stats()["cycles"] == 1
    assert not x.in_scope
    assert not y.in_scope


@in_thread
def test_a_in_b_in_a():
    a, b = ndx.workspace("a", size="1KiB"), ndx.workspace("b", size="1KiB")
    with a:
        x = ndx.ones(3)
        with b:
            y = ndx.ones(3)
            with a:
                z = x + y
                assert z.workspace == "a"
            assert where() == "b"
            assert z.in_scope
        assert where() == "a"
        assert not y.in_scope
        assert (x + z).tolist() == [3.0] * 3
    assert a.generation == b.generation == 2


@in_thread
def test_use_within_a_workspace_goes_first():
    backend = ndx.backends.get("host", limit="1MiB")
    with ndx.workspace("a", size="1KiB"):
        with ndx.use(backend):
            x = ndx.ones(3)
            assert x.backend is backend
            assert not x.attached
            with ndx.workspace("a"):
                assert where() == "a"
            assert ndx.current_backend() is backend
        assert where() == "a"
    assert x.tolist() == [1.0] * 3


def test_detach_within_use_within_a_workspace():
    backend = ndx.backends.get("host", limit="1MiB")
    with ndx.workspace(size="1KiB"):
        x = ndx.ones(3)
        with ndx.use(backend):
            y = x.detach()
    assert y.backend is backend
    assert y.tolist() == [1.0] * 3


def test_in_place_operations_stay_where_they_are():
    x, y = ndx.zeros(3), np.zeros(3)
    with ndx.workspace(size="1KiB"):
        x += ndx.ones(3)
        x[0] = ndx.full((), 5.0)
        ndx.add(x, x, out=x)
        y += ndx.ones(3)
    assert x.tolist() == [10.0, 2.0, 2.0]
    assert y.tolist() == [1.0] * 3


# ---- order and exceptions ----------------------------------------------------


@in_thread
def test_leaving_out_of_order_changes_nothing():
    a, b = ndx.workspace("a", size="1KiB"), ndx.workspace("b", size="1KiB")
    with a:
        x = ndx.ones(3)
        with b:
            y = ndx.ones(3)
            with pytest.raises(ndx.WorkspaceError, match="out of order"):
                a.__exit__(None, None, None)
            assert where() == "b"
            assert (x + y).tolist() == [2.0] * 3
            assert a.is_open
            assert a.stats()["cycles"] == 0
        # An exit comes only once: it takes effect when the scopes above have left.
        assert where() is None
        assert not a.is_open
        assert not x.in_scope
        with a:
            assert where() == "a"
    assert not a.is_open
    assert a.stats()["cycles"] == 2
    with a:
        assert where() == "a"
    with pytest.raises(ndx.WorkspaceError, match="out of order"):
        a.__exit__(None, None, None)


def test_leaving_what_was_not_entered():
    workspace = ndx.workspace(size="1KiB")
    with pytest.raises(ndx.WorkspaceError, match="out of order"):
        workspace.__exit__(None, None, None)
    assert workspace.stats()["cycles"] == 0
    with ndx.use("host", limit="1MiB") as backend, pytest.raises(ndx.WorkspaceError):
        workspace.__exit__(None, None, None)
    with workspace:
        assert ndx.current_backend() is not backend
    assert workspace.generation == 2


def test_use_left_out_of_order():
    outer, inner = ndx.use("host", limit=1), ndx.use("host", limit=2)
    with outer:
        with inner:
            with pytest.raises(ndx.WorkspaceError, match="out of order"):
                outer.__exit__(None, None, None)
            assert ndx.current_backend().limit == 2
        assert ndx.current_backend().limit is None
    with pytest.raises(ndx.WorkspaceError, match="out of order"):
        inner.__exit__(None, None, None)


@in_thread
def test_a_generator_that_leaves_out_of_order():
    a, b = ndx.workspace("a", size="1KiB"), ndx.workspace("b", size="1KiB")

    def generate():
        with a:
            yield ndx.ones(3)

    generator = generate()
    x = next(generator)
    with b:
        y = x + 1
        with pytest.raises(ndx.WorkspaceError, match="out of order"):
            generator.close()
        assert (x + y).tolist() == [3.0] * 3
        assert where() == "b"
    # As it said: it is left when what was entered after it is.
    assert where() is None
    assert not a.is_open
    assert not x.in_scope
    assert a.stats()["cycles"] == 1


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, GeneratorExit])
def test_an_exception_in_a_scope_ends_it(error):
    workspace = ndx.workspace(size="1KiB")
    with pytest.raises(error), workspace, workspace:  # noqa: PT012
        x = ndx.ones(3)
        raise error
    assert not workspace.is_open
    assert workspace.stats()["cycles"] == 1
    assert not x.in_scope
    assert where() is None


def test_an_exception_in_use_ends_it():
    before = ndx.current_backend()
    with pytest.raises(ValueError, match="inside"), ndx.use("host", limit="1MiB"):
        raise ValueError("inside")
    assert ndx.current_backend() is before


def test_a_failed_operation_leaves_the_scope_as_it_was():
    with ndx.workspace(size="1KiB") as workspace:
        x = ndx.ones(3)
        before = workspace.stats()
        for operation in (
            lambda: x + ndx.empty.__call__,
            lambda: x @ ndx.empty,
            lambda: x[5],
            lambda: x + "a",
            lambda: ndx.sum(x, axis=3),
            lambda: ndx.zeros(-1),
        ):
            with pytest.raises((TypeError, ValueError, IndexError)):
                operation()
        assert workspace.stats() == before
        assert x.tolist() == [1.0] * 3


# ---- decorators --------------------------------------------------------------


def test_use_as_a_decorator():
    backend = ndx.backends.get("host", limit="1MiB")

    @ndx.use(backend)
    def make(n, *, value=1.0):
        """Make one."""
        return ndx.full(n, value)

    x = make(3, value=2.0)
    assert x.backend is backend
    assert x.tolist() == [2.0] * 3
    assert make.__name__ == "make"
    assert make.__doc__ == "Make one."
    assert ndx.zeros(1).backend is not backend


@in_thread
def test_use_entered_twice():
    scope = ndx.use("host", limit="1MiB")
    with scope as first:
        with scope as second:
            assert first is second
        assert ndx.current_backend() is first
    assert ndx.current_backend() is not first


def test_set_default_does_not_reach_into_a_scope():
    backend = ndx.backends.get("host", limit="1MiB")
    with ndx.use("host", limit="2MiB") as inner:
        ndx.set_default(backend)
        assert ndx.current_backend() is inner
    assert ndx.current_backend() is backend

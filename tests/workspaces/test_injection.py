"""A failure injected at each step of a scope leaves the context and the counters.

By backends that fail at one request, and by Python's own allocator, which fails once
at each of its requests.
"""

import contextlib
import contextvars
import gc
import json
import operator
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from helpers import nomemory
from helpers.nd4j import cycle, lines, where
from helpers.nomemory import assert_same, state

import ndx
from ndx.testing.backends import ByteArrayBackend

TESTS = Path(__file__).parents[1]


# ---- Python's own memory -----------------------------------------------------


@pytest.fixture(scope="module")
def outcomes():
    """What became of each step, in a process of its own: the hook is process-wide."""
    paths = [str(Path(ndx.__file__).parents[1]), str(TESTS)]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(paths)}
    done = subprocess.run(
        [sys.executable, "-X", "faulthandler", str(TESTS / "helpers" / "nomemory.py")],
        capture_output=True,
        text=True,
        timeout=240,
        env=environment,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout)


@pytest.mark.skipif(
    nomemory._testcapi is None,
    reason="this Python has no _testcapi, which fails allocations",
)
@pytest.mark.parametrize("kind", nomemory.KINDS)
@pytest.mark.parametrize("step", nomemory.STEPS)
def test_each_allocation_of_python_fails_once(outcomes, step, kind):
    failures, wrong = outcomes[f"{kind}: {step}"]
    assert wrong is None
    # These ask Python for nothing: an allocation in an arena, and a scope of a
    # workspace that was entered here before; and leaving does not fail.
    nothing = {"allocate", "enter", "leave", "leave, nested"}
    if sys.version_info >= (3, 14):
        nothing |= {"detach", "leverage"}
    assert failures or step in nothing


# ---- backends ----------------------------------------------------------------

ERRORS = [MemoryError, RuntimeError, KeyboardInterrupt]


class Armed(ByteArrayBackend):
    """A backend that raises an error at one request, after so many others."""

    def __init__(self):
        super().__init__()
        self.error = None
        self.after = 0

    def arm(self, error, after=0):
        self.error, self.after = error, after

    def acquire(self, nbytes):
        if self.error is not None:
            if self.after == 0:
                # A refusal is asked for once more, after idle memory was freed.
                if self.error is not MemoryError:
                    error, self.error = self.error, None
                    raise error("injected")
                raise MemoryError
            self.after -= 1
        return super().acquire(nbytes)


@pytest.fixture
def backend():
    made = Armed()
    yield made
    gc.collect()  # errors that were raised hold frames, and these arrays
    assert made.stats()["allocated_bytes"] == 0
    assert made.acquired == made.discarded


def raised(error):
    return ndx.OutOfMemoryError if error is MemoryError else error


ALLOCATIONS = {
    "zeros": lambda x, outer: ndx.zeros(1000),
    "add": lambda x, outer: x + 1,
    "sum": lambda x, outer: ndx.sum(x, axis=0),
    "matmul": lambda x, outer: x @ x,
    "copy": lambda x, outer: ndx.asarray(x, copy=True),
    "index": lambda x, outer: x[[0, 2]],
    "list": lambda x, outer: ndx.asarray([1.0, 2.0]),
    "leverage": lambda x, outer: x.leverage_to(outer),
}


@pytest.mark.parametrize("error", ERRORS)
@pytest.mark.parametrize("size", [0, lines(24)], ids=["learning", "full"])
@pytest.mark.parametrize("allocate", ALLOCATIONS)
def test_an_allocation_that_fails(backend, error, size, allocate):
    outer = ndx.workspace(size=64, backend=backend)
    workspace = ndx.workspace(size=size, backend=backend)
    with outer, workspace:
        ndx.ones(8)
        with outer:
            ndx.ones(8)
        x = ndx.reshape(ndx.arange(16.0), (4, 4))
        before = state(workspace, outer)
        backend.arm(error)
        with pytest.raises(raised(error)):
            ALLOCATIONS[allocate](x, outer)
        backend.arm(None)
        assert_same(before, state(workspace, outer))
        assert float(x[3, 3]) == 15.0
        assert ALLOCATIONS[allocate](x, outer).attached
    assert where() is None


@pytest.mark.parametrize("error", ERRORS)
def test_a_detach_that_fails(backend, error):
    with ndx.use(backend), ndx.workspace(size="4KiB") as workspace:
        x = ndx.arange(10.0)
        before = state(workspace)
        backend.arm(error)
        for way in (
            operator.methodcaller("detach"),
            operator.methodcaller("leverage"),
            operator.methodcaller("leverage_to", "nowhere", missing="detach"),
        ):
            backend.arm(error)
            with pytest.raises(raised(error)):
                way(x)
            assert_same(before, state(workspace))
        backend.arm(None)
        assert x.detach().tolist() == list(range(10))


@pytest.mark.parametrize("error", ERRORS)
@pytest.mark.parametrize("policies", [{}, {"learn": "liveness"}, {"spill": "grow"}])
def test_an_exit_whose_arena_cannot_be_made(backend, error, policies):
    """The scope has ended all the same, and the context is the one around it."""
    workspace = ndx.workspace(backend=backend, overallocation=0, **policies)
    with ndx.workspace(size="4KiB") as outer:
        kept = ndx.ones(3)
        workspace.__enter__()
        x = ndx.ones(10)
        backend.arm(error)
        if error is MemoryError:
            workspace.__exit__(None, None, None)
        else:
            with pytest.raises(error, match="injected"):
                workspace.__exit__(None, None, None)
        backend.arm(None)
        assert where() == outer.name
        assert not workspace.is_open
        assert not x.in_scope
        assert (workspace.size, workspace.stats()["cycles"]) == (0, 1)
        # It is asked for again.
        for _ in range(3):
            cycle(workspace, 10)
        assert workspace.size == lines(10)
        assert kept.tolist() == [1.0] * 3


@pytest.mark.parametrize("error", ERRORS)
def test_an_exit_whose_growth_fails(backend, error):
    workspace = ndx.workspace(backend=backend, overallocation=0, spill="grow")
    cycle(workspace, 10)
    workspace.__enter__()
    view = np.asarray(ndx.ones(20))
    backend.arm(error)
    if error is MemoryError:
        workspace.__exit__(None, None, None)
    else:
        with pytest.raises(error, match="injected"):
            workspace.__exit__(None, None, None)
    backend.arm(None)
    assert where() is None
    assert not workspace.is_open
    for _ in range(3):
        cycle(workspace, 20)
    assert workspace.size == lines(20)
    assert workspace.stats()["spilled_count"] == 0
    assert view.tolist() == [1.0] * 20
    del view


@pytest.mark.parametrize("error", ERRORS)
@pytest.mark.parametrize("after", [0, 1, 2])
def test_an_exit_whose_survivors_find_no_memory(backend, error, after):
    """They keep their places, so that no value is lost."""
    workspace = ndx.workspace(size="4KiB", escape="detach")
    with ndx.use(backend):
        workspace.__enter__()
        kept = [ndx.full(10, float(number)) for number in range(3)]
        views = [x[5:] for x in kept]
        backend.arm(error, after)
        with contextlib.suppress(error):
            workspace.__exit__(None, None, None)
        backend.arm(None)
        assert where() is None
        assert not workspace.is_open
        for _ in range(5):
            with workspace:
                while workspace.stats()["spilled_count"] == 0:
                    ndx.full(64, 0xEE, dtype="uint8")
        for number, (x, view) in enumerate(zip(kept, views, strict=True)):
            assert x.tolist() == [float(number)] * 10
            view += 1
            assert x.tolist()[5:] == [number + 1.0] * 5
    del kept, views, x, view
    assert workspace.stats()["pinned_count"] == 0


@pytest.mark.parametrize("error", ERRORS)
def test_an_enter_whose_slot_cannot_be_made(backend, error):
    """A refusal lets the cycle spill; another error lets nothing begin."""
    ring = ndx.workspace(reset="ring", backend=backend, overallocation=0)
    x = cycle(ring, 10)[0]
    before = state(ring)
    backend.arm(error)
    if error is MemoryError:
        with ring:
            backend.arm(None)
            ndx.ones(10)
            assert ring.stats()["spilled_count"] == 1
    else:
        with pytest.raises(error, match="injected"):
            ring.__enter__()
        assert_same(before, state(ring))
        cycle(ring, 10)
        # The failed one took no slot.
        assert x.tolist() == [10.0] * 10
    for _ in range(4):
        cycle(ring, 10)
    assert ring.stats()["spilled_count"] == 0
    assert where() is None
    assert not x.in_scope


@pytest.mark.parametrize("error", ERRORS)
@pytest.mark.parametrize("policies", [{}, {"reset": "ring"}])
def test_an_enter_on_another_backend_that_fails(backend, error, policies):
    """The workspace stays where it was."""
    # Its counters are those of this test alone.
    with ndx.use(ndx.backends.HostBackend()):
        workspace = ndx.workspace(size="4KiB", **policies)
        x = cycle(workspace, 10)[0]
        where_it_was = workspace.backend
        before = state(workspace)
        with ndx.use(backend):
            backend.arm(error)
            with pytest.raises(raised(error)):
                workspace.__enter__()
            backend.arm(None)
        assert workspace.backend is where_it_was
        assert_same(before, state(workspace))
        assert x.in_scope == bool(policies)
        cycle(workspace, 10)
        assert workspace.backend is where_it_was
        with ndx.use(backend):
            cycle(workspace, 10)
        assert workspace.backend is backend
        assert workspace.stats()["cycles"] == 3
        workspace.destroy()


@pytest.mark.parametrize("error", ERRORS)
def test_an_enter_of_a_task_whose_sibling_finds_no_memory(backend, error):
    """No sibling is left that nobody ever entered."""
    workspace = ndx.workspace(size="4KiB", backend=backend)

    def siblings():
        return [
            each.number
            for each in ndx.memory.workspaces()
            if each.name == workspace.name
        ]

    def enter_and_fail():
        before = state(workspace)
        backend.arm(error)
        with pytest.raises(raised(error)):
            contextvars.copy_context().run(workspace.__enter__)
        backend.arm(None)
        assert_same(before, state(workspace))

    with workspace:
        x = ndx.ones(10)
        enter_and_fail()
        assert siblings() == [0]
        task = contextvars.copy_context()
        sibling = task.run(workspace.__enter__)
        assert siblings() == [0, 1]
        enter_and_fail()
        assert siblings() == [0, 1]
        task.run(workspace.__exit__, None, None, None)
        assert not sibling.is_open
        assert x.tolist() == [1.0] * 10
    workspace.destroy()


def test_an_error_in_the_scope_goes_before_one_at_its_end(backend, monkeypatch):
    unraised = []
    monkeypatch.setattr(
        "sys.unraisablehook", lambda info: unraised.append(type(info.exc_value))
    )
    workspace = ndx.workspace(backend=backend)
    with pytest.raises(KeyError, match="inside"), workspace:  # noqa: PT012
        ndx.ones(10)
        backend.arm(RuntimeError)
        raise KeyError("inside")
    assert unraised == [RuntimeError]
    assert where() is None
    assert not workspace.is_open


def test_a_backend_that_cannot_take_back(backend, monkeypatch):
    """It is told of, but the scope ends, and all else is given back."""
    unraised = []
    monkeypatch.setattr(
        "sys.unraisablehook", lambda info: unraised.append(str(info.exc_value))
    )

    class Grudging(ByteArrayBackend):
        def discard(self, buffer):
            super().discard(buffer)
            raise RuntimeError("not again")

    grudging = Grudging()
    workspace = ndx.workspace(backend=grudging, learn="none")
    kept = cycle(workspace, 10, 10, 10)
    assert unraised == ["not again"] * 3
    assert where() is None
    assert not any(x.in_scope for x in kept)
    assert grudging.stats()["allocated_bytes"] == 0


def test_a_backend_that_enters_the_workspace_it_serves(monkeypatch):
    """Memory may not be asked for in a cycle that begins or ends."""

    class Curious(ByteArrayBackend):
        workspace = None
        found = ()

        def acquire(self, nbytes):
            if self.workspace is not None:
                try:
                    with self.workspace:
                        ndx.ones(3)
                except ndx.WorkspaceError as error:
                    self.found = (*self.found, str(error))
            return super().acquire(nbytes)

    curious = Curious()
    workspace = ndx.workspace(backend=curious)
    workspace.__enter__()
    ndx.ones(10)
    curious.workspace = workspace
    workspace.__exit__(None, None, None)
    curious.workspace = None
    assert where() is None
    assert not workspace.is_open
    assert workspace.size > 0
    cycle(workspace, 10)
    assert workspace.stats()["spilled_count"] == 0

"""Fail each of Python's own allocations once, in the steps of a workspace's scope.

Run as a program, since the hook of ``_testcapi`` is for all threads of the process:
it prints, as JSON, for each step how many of its allocations failed, and what was
wrong after that.
"""

import contextvars
import gc
import itertools
import json
import os
import tempfile
import traceback

import ndx

try:
    import _testcapi
except ImportError:
    # Not every build of Python has it; the tables below are there all the same.
    _testcapi = None

KINDS = {
    "sized": {"size": "64KiB"},
    "learned": {},
    "growing": {"spill": "grow"},
    "liveness": {"learn": "liveness"},
    "ring": {"reset": "ring", "size": "64KiB"},
    "escaping": {"size": "64KiB", "escape": "detach"},
    "debug": {"size": "64KiB", "debug": True},
}
# How many allocations in a row must not be reached, for the step to be over.
QUIET = 12


def state(*workspaces):
    """Return what a failure may not change, by name."""
    found = {"current": ndx.zeros(0).workspace, "backend": ndx.current_backend().name}
    for number, workspace in enumerate(workspaces):
        found[f"{number}: open"] = workspace.is_open
        found |= {f"{number}: {k}": v for k, v in workspace.stats().items()}
        stats = workspace.backend.stats()
        for key in ("allocated_bytes", "allocated_count"):
            found[f"{number}: backend, {key}"] = stats[key]
    return found


def assert_same(before, after):
    """Check that no value has changed; say which have."""
    changed = {k: (v, after[k]) for k, v in before.items() if v != after[k]}
    assert not changed, f"changed: {changed}"


def fail_each(step, before, check):
    """Run `step` with one allocation more each time, until all went well.

    `before` is called first each time; `check` gets what it gave, and what `step`
    returned (None where it failed), and whether it failed. Returns how many failed.
    """
    failures = quiet = number = 0
    while quiet < QUIET and number < 2000:
        prepared = before()
        gc.disable()
        _testcapi.set_nomemory(number, number + 1)
        try:
            result = step(prepared)
        except MemoryError:
            _testcapi.remove_mem_hooks()
            failed = True
            result = None
        else:
            _testcapi.remove_mem_hooks()
            failed = False
        gc.enable()
        failures += failed
        quiet = 0 if failed else quiet + 1
        check(prepared, result, failed)
        number += 1
    return failures


def enter(workspace, other):
    """Enter: nothing has happened if it fails."""

    def check(prepared, result, failed):
        if failed:
            assert_same(prepared, state(workspace, other))
        else:
            assert workspace.is_open
            assert ndx.zeros(0).workspace == workspace.name
            workspace.__exit__(None, None, None)
        assert ndx.zeros(0).workspace is None

    return fail_each(
        lambda _: workspace.__enter__(), lambda: state(workspace, other), check
    )


def enter_anew(workspace, other):
    """Enter where nothing of ndx was entered before: that makes a context."""

    def before():
        return state(workspace, other), contextvars.Context()

    def check(prepared, result, failed):
        unchanged, fresh = prepared
        if failed:
            assert_same(unchanged, state(workspace, other))
            assert fresh.run(lambda: ndx.zeros(0).workspace) is None
        else:
            assert workspace.is_open
            assert fresh.run(lambda: ndx.zeros(0).workspace) == workspace.name
            fresh.run(workspace.__exit__, None, None, None)
        assert not workspace.is_open

    return fail_each(lambda given: given[1].run(workspace.__enter__), before, check)


def allocate(workspace, other):
    """Make an array: all counters are as before if it fails."""
    kept = []

    def check(prepared, result, failed):
        if failed:
            assert_same(prepared, state(workspace, other))
        else:
            assert result.workspace == workspace.name
            kept.append(result)

    with workspace:
        return fail_each(lambda _: ndx.empty(5), lambda: state(workspace, other), check)


def moving(method):
    """Return a step that moves an array out of a scope."""

    def move(workspace, other):
        def check(prepared, result, failed):
            assert x.tolist() == [3.0] * 5
            if failed:
                assert_same(prepared, state(workspace, other))
            else:
                assert result is not x
                assert result.tolist() == [3.0] * 5

        with other, workspace:
            x = ndx.full(5, 3.0)
            return fail_each(
                lambda _: getattr(x, method)(), lambda: state(workspace, other), check
            )

    return move


def leave(workspace, other):
    """Exit: the scope is over, or all is as before and it can be left again."""

    def before():
        workspace.__enter__()
        cycles = workspace.stats()["cycles"]
        return ndx.full(5, 4.0), cycles

    def check(prepared, result, failed):
        x, cycles = prepared
        if workspace.is_open:
            assert failed
            assert ndx.zeros(0).workspace == workspace.name
            assert x.tolist() == [4.0] * 5
            workspace.__exit__(None, None, None)
        assert not workspace.is_open
        assert ndx.zeros(0).workspace is None
        assert workspace.stats()["cycles"] == cycles + 1
        if workspace.config.escape == "detach":
            assert x.tolist() == [4.0] * 5
        elif workspace.config.reset == "scope":
            assert not x.in_scope

    return fail_each(lambda _: workspace.__exit__(None, None, None), before, check)


def nested_leave(workspace, other):
    """Exit from within another scope: that one is current again."""
    with other:
        kept = ndx.full(5, 1.0)

        def before():
            workspace.__enter__()

        def check(prepared, result, failed):
            if workspace.is_open:
                assert failed
                workspace.__exit__(None, None, None)
            assert ndx.zeros(0).workspace == other.name
            assert kept.tolist() == [1.0] * 5

        return fail_each(lambda _: workspace.__exit__(None, None, None), before, check)


def borrow(workspace, other):
    """Borrow, and give back."""
    with workspace, other:

        def check(prepared, result, failed):
            if not failed:
                assert ndx.zeros(0).workspace == workspace.name
                result.__exit__(None, None, None)
            assert_same(prepared, state(workspace, other))

        def step(_):
            borrowed = workspace.borrow()
            borrowed.__enter__()
            return borrowed

        return fail_each(step, lambda: state(workspace, other), check)


def make(workspace, other):
    """Make a workspace: a name that could not be made is not taken."""

    def check(prepared, result, failed):
        if failed:
            assert not [
                found
                for found in ndx.memory.workspaces()
                if found.name == "new" and found.size
            ]
        else:
            assert ndx.workspace("new") is result
            result.destroy()

    return fail_each(lambda _: ndx.workspace("new", size="1KiB"), lambda: None, check)


STEPS = {
    "make": make,
    "enter": enter,
    "enter anew": enter_anew,
    "allocate": allocate,
    "detach": moving("detach"),
    "leverage": moving("leverage"),
    "leave": leave,
    "leave, nested": nested_leave,
    "borrow": borrow,
}


def run(kind, name):
    """Return how many allocations of a step failed, and what was wrong then."""
    workspace = ndx.workspace(**KINDS[kind])
    other = ndx.workspace(size="64KiB")
    for _ in range(2):
        with workspace:
            ndx.full(5, 1.0)
    try:
        return STEPS[name](workspace, other), None
    except Exception as error:
        # A scope that is left because of one may raise the next.
        while error.__context__ is not None:
            error = error.__context__
        line = traceback.extract_tb(error.__traceback__)[-1].lineno
        return None, f"line {line}: {type(error).__name__}: {error}"


def main():
    """Run every step in every kind of workspace, each in a process of its own."""
    found = {}
    for kind, name in itertools.product(KINDS, STEPS):
        with tempfile.TemporaryFile("w+") as file:
            child = os.fork()
            if child == 0:
                json.dump(run(kind, name), file)
                file.flush()
                os._exit(0)
            status = os.waitpid(child, 0)[1]
            file.seek(0)
            outcome = (None, f"wait status {status}") if status else json.load(file)
        found[f"{kind}: {name}"] = outcome
    return found


if __name__ == "__main__":
    print(json.dumps(main(), indent=1))

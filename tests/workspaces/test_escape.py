"""Arrays that leave: by policy, by a decorator, by leverage; and what stays behind."""

import asyncio
import dataclasses
import gc
import pickle
import threading
from typing import NamedTuple

import hypothesis
import hypothesis.strategies as st
import numpy as np
import pytest
from helpers.threads import in_thread, run_in_thread

import ndx
from ndx.testing.backends import FailingBackend


def escaping(**config):
    return ndx.workspace(escape="detach", overallocation=1, **config)


def warmed(workspace, n=1000):
    with workspace:
        x = ndx.empty(n)
        del x
    return workspace


@pytest.mark.parametrize("config", [{}, {"learn": "liveness"}, {"debug": True}])
def test_survivors_are_moved_out(config):
    workspace = warmed(escaping(**config))
    with workspace:
        x = ndx.arange(100.0)
        dropped = x + 1
        del dropped
        assert x.attached
    assert not x.attached
    assert x.in_scope
    assert x.workspace is None
    assert x.backend is ndx.current_backend()
    assert workspace.stats()["escaped_bytes"] == 800
    for _ in range(2):
        with workspace:
            ndx.zeros(1000)
    assert x.tolist() == list(range(100))
    x += 1
    assert x[0] == 1


@pytest.mark.parametrize("config", [{}, {"learn": "liveness"}])
def test_views_move_with_their_base(config):
    workspace = warmed(escaping(**config))
    with workspace:
        x = ndx.zeros((10, 10))
        row, column, reverse = x[3], x[:, 4], x[::-1, ::-2]
        del x
    assert workspace.stats()["escaped_count"] == 1
    row[...] = ndx.full((10,), 7.0)
    assert column.tolist() == [0.0] * 3 + [7.0] + [0.0] * 6
    assert reverse[6, :].tolist() == [7.0] * 5
    assert workspace.stats()["escaped_bytes"] == 800


def test_spilled_survivors_are_not_copied():
    backend = ndx.backends.get("host", limit="1MiB")
    workspace = escaping(backend=backend)
    with workspace:
        x = ndx.arange(100.0)
        before = np.asarray(x).__array_interface__["data"][0]
    assert np.asarray(x).__array_interface__["data"][0] == before
    assert x.tolist() == list(range(100))
    assert not x.attached
    assert workspace.stats()["escaped_bytes"] == 0
    del x
    assert backend.stats()["allocated_bytes"] == workspace.size


def test_results_of_numpy_survive():
    workspace = warmed(escaping())
    with workspace:
        order = ndx.argsort(ndx.asarray([3.0, 1.0, 2.0]))
        values = ndx.linalg.inv(ndx.eye(3) * 2)
    assert order.tolist() == [1, 2, 0]
    assert values[0, 0] == 0.5
    assert not order.attached


def test_empty_arrays_survive():
    workspace = warmed(escaping())
    with workspace:
        x = ndx.empty((0, 3))
    assert not x.attached
    assert ndx.concat([x, ndx.ones((1, 3))]).tolist() == [[1.0] * 3]


@pytest.mark.parametrize("config", [{}, {"learn": "liveness"}])
def test_exported_survivors_keep_their_range(config):
    workspace = warmed(escaping(**config))
    with workspace:
        x = ndx.arange(100.0)
        seen = np.asarray(x[10:20])
    assert not x.attached
    stats = workspace.stats()
    assert stats["pinned_count"] == 1
    assert stats["escaped_bytes"] == 0
    x[10] = -1.0
    assert seen[0] == -1.0
    for _ in range(3):
        with workspace:
            assert ndx.sum(ndx.zeros(800)) == 0
    assert x.tolist() == [*range(10), -1.0, *range(11, 100)]
    del seen
    with workspace:
        ndx.full(800, 5.0)
    assert x[50] == 50
    del x
    with workspace:
        pass
    assert workspace.stats()["pinned_count"] == 0


def test_it_goes_to_the_backend_around_the_scope():
    outer = ndx.backends.get("host", limit="1MiB")
    workspace = warmed(escaping(backend="host"))
    with ndx.use(outer), workspace:
        x = ndx.ones(10)
    assert x.backend is outer


def test_in_a_scope_of_another_workspace_it_is_detached():
    workspace = warmed(escaping())
    with ndx.workspace(size="1KiB"):
        with workspace:
            x = ndx.ones(10)
        assert not x.attached
    assert x.tolist() == [1.0] * 10


def test_without_memory_for_the_copies_they_stay_where_they_are():
    outer = FailingBackend()
    workspace = warmed(escaping(backend="host"))
    with ndx.use(outer), workspace:
        x, y = ndx.arange(10.0), ndx.arange(20.0)
        outer.fail_at = 1
    assert outer.stats()["allocated_bytes"] == 0
    stats = workspace.stats()
    assert (stats["pinned_count"], stats["escaped_bytes"]) == (2, 0)
    for _ in range(3):
        with workspace:
            ndx.full(500, 9.0)
    assert x.tolist() == list(range(10))
    assert y.tolist() == list(range(20))
    assert not x.attached
    del x, y
    with workspace:
        pass
    assert workspace.stats()["pinned_count"] == 0


def test_a_backend_that_drops_arrays_while_they_escape():
    class Dropping(ndx.backends.PythonBackend):
        def acquire(self, nbytes):
            holder.clear()
            gc.collect()
            return bytearray(nbytes)

    workspace = warmed(escaping(backend="host"))
    holder = []
    with ndx.use(Dropping()), workspace:
        kept = ndx.arange(10.0)
        holder += [ndx.ones(5), ndx.ones(6)]
    assert kept.tolist() == list(range(10))
    assert workspace.stats()["pinned_count"] == 0
    with workspace:
        assert workspace.stats()["live_bytes"] == 0


def test_a_backend_that_enters_the_scope_while_it_ends():
    failures = []

    class Entering(ndx.backends.PythonBackend):
        def acquire(self, nbytes):
            try:
                with workspace:
                    pass
            except ndx.WorkspaceError as error:
                failures.append(str(error))
            return bytearray(nbytes)

    workspace = warmed(escaping(backend="host"))
    with ndx.use(Entering()), workspace:
        x = ndx.ones(5)
    assert "while a scope of it starts or ends" in failures[0]
    assert x.tolist() == [1.0] * 5
    with workspace:
        assert ndx.ones(3).attached


@hypothesis.given(
    sizes=st.lists(st.integers(0, 200), min_size=1, max_size=12),
    keep=st.lists(st.integers(0, 11), max_size=6),
    export=st.lists(st.integers(0, 11), max_size=3),
    learn=st.sampled_from(["first", "liveness", "none"]),
)
def test_any_survivors_keep_their_values(sizes, keep, export, learn):
    workspace = ndx.workspace(escape="detach", learn=learn, size=0)
    survivors = []
    for cycle in range(4):
        made = []
        with workspace:
            for i, n in enumerate(sizes):
                made.append(ndx.full(n, 100 * cycle + i, dtype="int32"))
            for i in keep:
                x = made[i % len(made)]
                survivors.append((x, [100 * cycle + i % len(made)] * x.size))
            for i in export:
                x = made[i % len(made)]
                survivors.append(
                    (np.asarray(x), [100 * cycle + i % len(made)] * x.size)
                )
            made = x = None
        for array, values in survivors:
            assert array.tolist() == values
    survivors.clear()
    array = None
    with workspace:
        pass
    assert workspace.stats()["pinned_count"] == 0


# ---- decorators --------------------------------------------------------------


class Pair(NamedTuple):
    left: object
    right: object


@dataclasses.dataclass
class Result:
    loss: object
    extra: dict


@pytest.mark.parametrize("learn", ["first", "liveness"])
def test_what_a_decorated_function_returns_is_detached(learn):
    leaked = []

    @ndx.workspace(learn=learn)
    def step(n):
        """Say so."""
        x = ndx.arange(float(n))
        leaked.append(x + 1)
        return Result(x[2:], {"a": [x, (ndx.sum(x),)], "b": Pair(x, "text"), "c": x})

    for _ in range(3):
        result = step(5)
        assert result.loss.tolist() == [2.0, 3.0, 4.0]
        assert result.extra["a"][1][0] == 10
        assert result.extra["b"].left is result.extra["c"]
        assert not result.loss.attached
        result.extra["c"][2] = 9.0
        assert result.loss[0] == 9
    assert not any(x.in_scope for x in leaked)
    assert step.__doc__ == "Say so."


@in_thread
def test_arrays_of_outer_workspaces_are_left_where_they_are():
    @ndx.workspace("inner of the decorator")
    def step(x):
        return x, x + 1

    with ndx.workspace("outer of the decorator"):
        same, new = step(ndx.ones(3))
        assert same.workspace == "outer of the decorator"
        assert new.workspace is None
    assert new.tolist() == [2.0] * 3


def test_a_result_that_holds_itself():
    @ndx.workspace()
    def step():
        loop = [ndx.ones(3)]
        loop.append(loop)
        return loop

    for _ in range(2):
        assert step()[1][0].tolist() == [1.0] * 3


def test_a_result_that_is_nested_deeply():
    @ndx.workspace()
    def step():
        nested = [ndx.ones(2)]
        for _ in range(200_000):
            nested = [nested]
        return nested

    nested = step()
    while isinstance(nested, list):
        nested = nested[0]
    assert nested.tolist() == [1.0] * 2


@pytest.mark.parametrize("function", [3, "name", None, type("Class", (), {})])
def test_only_functions_are_decorated(function):
    with pytest.raises(TypeError, match="decorates functions"):
        ndx.workspace()(function)


@pytest.mark.parametrize("bad", [3, None, [], b"outer"])
def test_what_is_no_workspace_to_leverage_to(bad):
    with ndx.workspace("outer"), pytest.raises(TypeError, match="by its name"):
        ndx.ones(3).leverage_to(bad)


def test_workspaces_are_not_pickled():
    with pytest.raises(TypeError, match="Pickle its config"):
        pickle.dumps(ndx.workspace())
    config = ndx.WorkspaceConfig(reset="ring", slots=3)
    assert pickle.loads(pickle.dumps(config)) == config


def test_a_decorated_function_that_calls_itself():
    @ndx.workspace()
    def power(x, n):
        return x if n == 0 else power(x, n - 1) * x

    assert power(ndx.asarray([2.0]), 5).tolist() == [64.0]
    assert not power(ndx.asarray([2.0]), 5).attached


def test_a_decorated_function_that_raises():
    workspace = ndx.workspace()

    @workspace
    def step():
        ndx.ones(3)
        raise KeyError("inside")

    for _ in range(2):
        with pytest.raises(KeyError, match="inside"):
            step()
    assert not workspace.is_open


@pytest.mark.threads
def test_each_thread_has_its_own_workspace_of_a_decorator():
    seen = set()

    @ndx.workspace()
    def step(n):
        x = ndx.full(100, n)
        barrier.wait()
        seen.add(np.asarray(x).__array_interface__["data"][0])
        return ndx.sum(x)

    barrier = threading.Barrier(4)
    totals = []

    def run(n):
        for _ in range(5):
            totals.append(int(step(n)))

    threads = [threading.Thread(target=run, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(totals) == [0] * 5 + [100] * 5 + [200] * 5 + [300] * 5
    assert len(seen) >= 4


def test_coroutines():
    @ndx.workspace()
    async def step(n):
        x = ndx.full(10, n)
        await asyncio.sleep(0)
        return {"sum": ndx.sum(x)}

    async def main():
        return await asyncio.gather(*[step(n) for n in range(20)])

    results = asyncio.run(main())
    assert [int(result["sum"]) for result in results] == list(range(0, 200, 10))


def test_generator_functions_are_refused():
    def numbers():
        yield 1

    async def later():
        yield 1

    for function in (numbers, later):
        with pytest.raises(TypeError, match="is a generator function"):
            ndx.workspace()(function)


# ---- leverage ----------------------------------------------------------------


@pytest.mark.parametrize("method", ["leverage", "leverage_to", "migrate"])
@in_thread
def test_arguments_are_checked(method):
    with ndx.workspace("here"):
        x = ndx.ones(3)
        if method == "leverage":
            with pytest.raises(TypeError):
                x.leverage(missing="keep")
            return
        call = getattr(x, method)
        arguments = ("here",) if method == "leverage_to" else ()
        with pytest.raises(ValueError, match="missing='no' is not valid"):
            call(*arguments, missing="no")


@in_thread
def test_leverage_to_what_is_not_open_here():
    other = ndx.workspace("not open")
    with ndx.workspace(size="1KiB"):
        x = ndx.ones(3)
        for target in (other, "not open", "unknown"):
            assert x.leverage_to(target) is x
            assert not x.leverage_to(target, missing="detach").attached
            with pytest.raises(ndx.WorkspaceError, match="no scope of workspace"):
                x.leverage_to(target, missing="raise")
        with other:
            assert run_in_thread(lambda: x.leverage_to(other)) is x


@in_thread
def test_leverage_skips_scopes_of_the_same_workspace():
    outer, inner = ndx.workspace("outer", size=1024), ndx.workspace("inner", size=1024)
    with outer, inner, inner, inner.borrow():
        x = ndx.ones(3)
        y = x.leverage()
        assert y.workspace == "outer"
        assert y.leverage() is y
        with ndx.no_workspace():
            assert not x.leverage().attached
    with inner:
        z = ndx.ones(3).leverage()
    assert not z.attached


def test_what_stays_in_an_outgrown_arena_has_its_backend():
    workspace = ndx.workspace(escape="detach", size=1024, spill="grow")
    with workspace:
        x = ndx.ones(3)
        view = np.asarray(x)
        ndx.ones(1000)
    assert workspace.stats()["retired_bytes"] == 1024
    assert x.backend is ndx.current_backend()
    assert repr(x) == "NDArray([1., 1., 1.])"
    assert view.tolist() == [1, 1, 1]

"""Generators and asynchronous generators whose scopes end out of order, or late."""

import asyncio
import gc

import pytest
from helpers.nd4j import where
from helpers.threads import in_thread, run_in_thread

import ndx


@pytest.fixture
def unraised(monkeypatch):
    """The errors that could not be raised, where a finalizer ran."""
    found = []
    monkeypatch.setattr("sys.unraisablehook", lambda info: found.append(info.exc_value))
    return found


def within(name, values):
    """Yield arrays that are made in a scope of one's own."""
    with ndx.workspace(name, size="4KiB"):
        for value in values:
            yield ndx.full(3, value)


def closed(*names):
    return not any(ndx.workspace(name).is_open for name in names)


@in_thread
def test_a_generator_keeps_its_scope_open_between_its_values():
    values = []
    for x in within("a", [1.0, 2.0]):
        # A generator has no context of its own: its scope is the caller's.
        assert where() == "a"
        values.append(float(x[0]))
    assert values == [1.0, 2.0]
    assert where() is None
    assert closed("a")


@in_thread
def test_generators_that_end_in_the_order_in_which_they_began():
    first, second = within("a", [1.0]), within("b", [2.0])
    x, y = next(first), next(second)
    assert where() == "b"
    with pytest.raises(ndx.WorkspaceError, match="out of order"):
        next(first, None)
    # Nothing was changed by that.
    assert where() == "b"
    assert (x + y).tolist() == [3.0] * 3
    # But it was the only exit there will be, so it takes effect with the next.
    assert next(second, None) is None
    assert where() is None
    assert closed("a", "b")
    assert not x.in_scope
    assert not y.in_scope
    assert [float(x[0]) for x in within("a", [5.0])] == [5.0]
    assert ndx.workspace("a").stats()["cycles"] == 2


@in_thread
def test_three_generators_ended_from_the_outside_in():
    names = ["a", "b", "c"]
    generators = [within(name, [1.0]) for name in names]
    arrays = [next(generator) for generator in generators]
    for generator in generators[:2]:
        with pytest.raises(ndx.WorkspaceError, match="out of order"):
            generator.close()
        assert where() == "c"
        assert all(x.in_scope for x in arrays)
    generators[2].close()
    assert where() is None
    assert closed(*names)
    assert not any(x.in_scope for x in arrays)


@in_thread
def test_a_generator_that_is_dropped_within_another_scope(unraised):
    generator = within("a", [1.0])
    x = next(generator)
    with ndx.workspace("b", size="4KiB"):
        del generator
        gc.collect()
        assert [type(error) for error in unraised] == [ndx.WorkspaceError]
        assert where() == "b"
        assert x.in_scope
    unraised.clear()
    assert where() is None
    assert closed("a", "b")
    assert not x.in_scope


@in_thread
def test_a_generator_that_is_dropped_while_its_scope_is_innermost(unraised):
    generator = within("a", [1.0])
    x = next(generator)
    del generator
    gc.collect()
    assert unraised == []
    assert where() is None
    assert not x.in_scope


@in_thread
def test_a_generator_with_an_error_inside():
    generator = within("a", [1.0, 2.0])
    next(generator)
    with pytest.raises(KeyError, match="thrown"):
        generator.throw(KeyError("thrown"))
    assert where() is None
    assert closed("a")


@in_thread
def test_a_generator_with_no_workspace_out_of_order():
    def outside():
        with ndx.no_workspace():
            yield

    with ndx.workspace("a", size="4KiB"):
        generator = outside()
        next(generator)
        assert where() is None
        with ndx.workspace("b", size="4KiB"):
            with pytest.raises(ndx.WorkspaceError, match="out of order"):
                generator.close()
            assert where() == "b"
        assert where() == "a"
    assert where() is None


@pytest.mark.threads
def test_a_generator_that_is_closed_in_another_thread():
    def work():
        generator = within("a", [1.0])
        x = next(generator)
        run_in_thread(generator.close)
        # Its scope is over, and what it made is stale.
        assert where() is None
        assert not x.in_scope
        assert closed("a")
        assert [float(y[0]) for y in within("a", [2.0])] == [2.0]

    run_in_thread(work)


@pytest.mark.threads
def test_a_generator_that_goes_on_in_another_thread():
    def work():
        generator = within("a", [1.0])
        x = next(generator)
        with pytest.raises(ndx.WorkspaceError, match="not entered in this thread"):
            run_in_thread(next, generator, None)
        assert where() == "a"
        assert x.in_scope
        ndx.workspace("a").__exit__(None, None, None)
        assert where() is None

    run_in_thread(work)


# ---- asynchronous generators -------------------------------------------------


async def slowly(name, values):
    with ndx.workspace(name, size="4KiB"):
        for value in values:
            await asyncio.sleep(0)
            yield ndx.full(3, value)


def run(main):
    return run_in_thread(lambda: asyncio.run(main()))


def test_an_asynchronous_generator():
    async def main():
        values = [float(x[0]) async for x in slowly("a", [1.0, 2.0])]
        assert values == [1.0, 2.0]
        assert where() is None
        assert closed("a")

    run(main)


def test_two_of_them_end_in_the_order_in_which_they_began():
    async def main():
        first, second = slowly("a", [1.0]), slowly("b", [2.0])
        x, y = await anext(first), await anext(second)
        with pytest.raises(ndx.WorkspaceError, match="out of order"):
            await first.aclose()
        assert where() == "b"
        assert (x + y).tolist() == [3.0] * 3
        await second.aclose()
        assert where() is None
        assert closed("a", "b")

    run(main)


def test_one_that_is_left_in_the_middle_and_dropped(unraised):
    """The loop closes it in a task of its own, whose context is another."""

    async def main():
        async for x in slowly("a", [1.0, 2.0]):
            assert x.in_scope
            break
        gc.collect()
        for _ in range(3):
            await asyncio.sleep(0)
        assert not x.in_scope
        assert where() is None
        assert closed("a")
        assert [float(y[0]) async for y in slowly("a", [3.0])] == [3.0]

    run(main)
    assert unraised == []


def test_one_that_is_dropped_within_another_scope():
    async def main():
        generator = slowly("a", [1.0, 2.0])
        x = await anext(generator)
        with ndx.workspace("b", size="4KiB"):
            y = ndx.ones(3)
            del generator
            gc.collect()
            for _ in range(3):
                await asyncio.sleep(0)
            assert not x.in_scope
            assert where() == "b"
            assert y.tolist() == [1.0] * 3
        assert where() is None
        assert closed("a", "b")

    run(main)


def test_one_that_another_task_closes():
    async def main():
        generator = slowly("a", [1.0, 2.0])
        x = await anext(generator)
        await asyncio.create_task(generator.aclose())
        assert not x.in_scope
        assert where() is None
        assert closed("a")

    run(main)


def test_one_that_is_iterated_by_a_task_and_ended_by_another():
    async def main():
        generator = slowly("a", [1.0])

        async def begin():
            return await anext(generator), ndx.workspace("a")

        x, workspace = await asyncio.create_task(begin())
        assert x.in_scope
        # The task that opened the scope is gone, so nothing is made in it any more.
        assert where() is None
        await generator.aclose()
        assert not x.in_scope
        assert not workspace.is_open

    run(main)


def test_the_loops_end_closes_what_is_left(unraised):
    kept = []

    async def main():
        generator = slowly("a", [1.0, 2.0])
        kept.append(generator)
        kept.append(await anext(generator))

    run(main)
    assert not kept[1].in_scope
    assert unraised == []

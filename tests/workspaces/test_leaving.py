"""Which entry an exit is for: generators, finalizers, borrowing, threads."""

import contextlib
import contextvars
import threading

import pytest
from helpers.nd4j import where
from helpers.threads import in_thread, run_in_thread

import ndx


def inside(scope):
    """Yield once in a scope, which is left when the generator ends."""
    with scope:
        yield


def elsewhere(function, *args):
    """Call a function in a copy of this context, as a task would."""
    return contextvars.copy_context().run(function, *args)


def in_other_thread(function, *args):
    return run_in_thread(function, *args)


ELSEWHERE = pytest.mark.parametrize("call", [elsewhere, in_other_thread])


@pytest.fixture
def scopes():
    a, b = ndx.workspace("a", size="64KiB"), ndx.workspace("b", size="64KiB")
    yield a, b
    a.destroy()
    b.destroy()


# ---- an exit is for the entry that its own frame made ------------------------


@ELSEWHERE
def test_a_generator_closed_elsewhere_leaves_its_own_entry_not_a_later_one(
    call, scopes
):
    a, b = scopes
    generator = inside(a)
    next(generator)
    with b:
        with a:
            x = ndx.ones(3)
            call(generator.close)
            assert where() == "a"
            assert (x + ndx.ones(3)).tolist() == [2.0] * 3
        assert where() == "b"
        assert not a.is_open
        assert not x.in_scope
    assert where() is None
    assert (a.stats()["cycles"], b.stats()["cycles"]) == (1, 1)


@ELSEWHERE
def test_a_generator_closed_elsewhere_leaves_its_own_entry_not_an_earlier_one(
    call, scopes
):
    a, b = scopes
    with a:
        x = ndx.ones(3)
        with b:
            generator = inside(a)
            next(generator)
            assert where() == "a"
            call(generator.close)
            assert where() == "b"
        assert where() == "a"
        assert x.tolist() == [1.0] * 3
    assert not x.in_scope
    assert where() is None


@ELSEWHERE
def test_a_generator_with_no_workspace_closed_elsewhere(call, scopes):
    a, _ = scopes
    with a:
        generator = inside(ndx.no_workspace())
        next(generator)
        assert where() is None
        call(generator.close)
        assert where() == "a"


@ELSEWHERE
@pytest.mark.parametrize("covered", [False, True])
def test_a_generator_with_use_closed_elsewhere(call, covered):
    backend = ndx.backends.get("host", limit="1MiB")
    before = ndx.current_backend()
    inner = ndx.use("host", limit="2MiB")
    with contextlib.ExitStack() as stack:
        generator = inside(ndx.use(backend))
        next(generator)
        if covered:
            stack.enter_context(inner)
        call(generator.close)
        assert ndx.current_backend() is (inner.backend if covered else before)
    assert ndx.current_backend() is before


@ELSEWHERE
def test_what_was_entered_within_a_use_that_is_closed_elsewhere_goes_on(call, scopes):
    a, b = scopes
    backend = ndx.backends.get("host", limit="1MiB")
    before = ndx.current_backend()
    with a:
        generator = inside(ndx.use(backend))
        next(generator)
        assert ndx.current_backend() is backend
        with b:
            call(generator.close)
            assert where() == "b"
            with ndx.no_workspace():
                assert ndx.current_backend() is before
        assert where() == "a"
    assert ndx.current_backend() is before


@ELSEWHERE
def test_uses_that_are_closed_elsewhere_from_within(call, scopes):
    a, _ = scopes
    before = ndx.current_backend()
    outer = inside(ndx.use("host", limit="1MiB"))
    inner = inside(ndx.use("host", limit="2MiB"))
    next(outer)
    next(inner)
    with a:
        call(inner.close)
        call(outer.close)
        with ndx.no_workspace():
            assert ndx.current_backend() is before
    assert ndx.current_backend() is before


def test_a_use_that_was_inherited_goes_on_after_scopes_within_it(scopes):
    a, _ = scopes
    backend = ndx.backends.get("host", limit="1MiB")
    with ndx.use("host", limit="2MiB"), ndx.use(backend):
        copied = contextvars.copy_context()

    def work():
        with a, ndx.no_workspace():
            assert ndx.current_backend() is backend
        return ndx.current_backend()

    for _ in range(2):
        assert copied.run(work) is backend


def test_use_for_numpy_too_is_not_left_elsewhere():
    # NumPy's own variable could not be set there.
    backend = ndx.backends.get("host", limit="1MiB")
    scope = ndx.use(backend, numpy=True)
    generator = inside(scope)
    next(generator)
    with pytest.raises(ndx.WorkspaceError, match="numpy=True"):
        elsewhere(generator.close)
    assert ndx.current_backend() is backend
    scope.__exit__(None, None, None)
    assert ndx.current_backend() is not backend


@in_thread
def test_an_early_exit_is_that_of_the_generator_and_not_of_what_is_innermost():
    a, b = ndx.workspace("a", size="64KiB"), ndx.workspace("b", size="64KiB")
    generator = inside(a)
    next(generator)
    with b:
        with a:
            x = ndx.ones(3)
            with pytest.raises(ndx.WorkspaceError, match="out of order"):
                generator.close()
            assert where() == "a"
        assert where() == "b"
        assert x.in_scope
    assert where() is None
    assert not x.in_scope


@in_thread
def test_an_early_exit_of_a_borrowed_scope():
    a, b = ndx.workspace("a", size="64KiB"), ndx.workspace("b", size="64KiB")
    with a:
        generator = inside(a.borrow())
        next(generator)
        with b:
            with pytest.raises(ndx.WorkspaceError, match="out of order"):
                generator.close()
            assert where() == "b"
        assert where() == "a"
    assert where() is None


@in_thread
def test_an_exit_stack_leaves_what_it_entered():
    a, b = ndx.workspace("a", size="64KiB"), ndx.workspace("b", size="64KiB")
    with contextlib.ExitStack() as stack:
        for scope in (a, b, a, ndx.no_workspace(), b):
            stack.enter_context(scope)
        assert where() == "b"
    assert where() is None
    assert not a.is_open
    assert not b.is_open


def entered(*scopes):
    """Return a stack that has entered scopes, and outlives the function."""
    with contextlib.ExitStack() as stack:
        for scope in scopes:
            stack.enter_context(scope)
        return stack.pop_all()


@in_thread
@pytest.mark.parametrize("inner", ["stack", "opened", "with", "borrowed"])
def test_exit_stacks_that_enter_one_workspace_leave_it_in_the_right_order(inner):
    """ExitStack's `__exit__` may have the address that its `enter_context` had."""
    a = ndx.workspace("a", size="64KiB")
    for cycle in range(3):
        with contextlib.ExitStack() as stack:
            stack.enter_context(a)
            if inner == "stack":
                with contextlib.ExitStack() as another:
                    another.enter_context(a)
            else:
                with (
                    a
                    if inner == "with"
                    else entered(a.borrow() if inner == "borrowed" else a)
                ):
                    assert where() == "a"
            assert a.is_open
        assert not a.is_open
        assert a.stats()["cycles"] == cycle + 1


@in_thread
def test_an_exit_stack_after_an_early_exit_of_what_it_covers():
    a = ndx.workspace("a", size="64KiB")
    a.__enter__()
    stack = entered(a)
    with pytest.raises(ndx.WorkspaceError, match="out of order"):
        a.__exit__(None, None, None)
    # Not the one that is early already, though it is of this workspace, too.
    stack.close()
    assert not a.is_open


@in_thread
def test_a_scope_that_was_left_early_in_one_thread_is_not_left_for_another():
    scope = ndx.use("host", limit="1MiB")
    generator = inside(scope)
    next(generator)
    with (
        ndx.use("host", limit="2MiB"),
        pytest.raises(ndx.WorkspaceError, match="out of order"),
    ):
        generator.close()

    def other():
        before = ndx.current_backend()
        scope.__enter__()
        with ndx.use("host", limit="2MiB") as inner:
            with pytest.raises(ndx.WorkspaceError, match="out of order"):
                scope.__exit__(None, None, None)
            assert ndx.current_backend() is inner
        assert ndx.current_backend() is before

    run_in_thread(other)


@pytest.mark.threads
def test_one_use_in_two_threads_left_early_in_both():
    scope = ndx.use("host", limit="1MiB")
    inner = ndx.use("host", limit="2MiB")
    one_early, two_early = threading.Event(), threading.Event()
    found = []

    def work(mine, other):
        before = ndx.current_backend()
        scope.__enter__()
        inner.__enter__()
        with pytest.raises(ndx.WorkspaceError, match="out of order"):
            scope.__exit__(None, None, None)
        mine.set()
        other.wait()
        inner.__exit__(None, None, None)
        found.append(ndx.current_backend() is before)

    threads = [
        threading.Thread(target=work, args=(one_early, two_early)),
        threading.Thread(target=work, args=(two_early, one_early)),
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [True, True]


@in_thread
def test_an_early_exit_may_come_once_more_when_it_has_taken_effect():
    a, b = ndx.workspace("a", size="64KiB"), ndx.workspace("b", size="64KiB")
    with a, a:
        with b, pytest.raises(ndx.WorkspaceError, match="out of order"):
            a.__exit__(None, None, None)
        # The inner of the two was left; its own exit comes now, and is not the outer's.
        assert where() == "a"
    assert where() is None
    with pytest.raises(ndx.WorkspaceError, match="out of order"):
        a.__exit__(None, None, None)


@in_thread
def test_many_early_exits_leave_nothing_behind():
    a, b = ndx.workspace("a", size="64KiB"), ndx.workspace("b", size="64KiB")
    for _ in range(100):
        generator = inside(a)
        next(generator)
        with b, pytest.raises(ndx.WorkspaceError, match="out of order"):
            generator.close()
        assert where() is None
        with a:
            assert where() == "a"
        assert where() is None
    assert a.stats()["cycles"] == 200


@ELSEWHERE
def test_what_was_left_too_early_ends_with_what_is_closed_elsewhere(call, scopes):
    a, b = scopes
    outer, inner = inside(a), inside(b)
    next(outer)
    x = ndx.ones(3)
    next(inner)
    with pytest.raises(ndx.WorkspaceError, match="out of order"):
        outer.close()
    call(inner.close)
    assert where() is None
    assert not a.is_open
    assert not x.in_scope


# ---- borrowing ---------------------------------------------------------------


@ELSEWHERE
def test_a_borrowed_workspace_stays_open_when_its_own_scope_ends(call, scopes):
    a, _ = scopes
    generator = inside(a)
    next(generator)
    with a.borrow():
        call(generator.close)
        assert a.is_open
        x = ndx.full(100, 1.0)
        with a:
            y = ndx.full(100, 2.0)
            assert x.tolist() == [1.0] * 100
            with pytest.raises(ndx.WorkspaceError, match="while a scope of it is open"):
                a.destroy()
        assert float(ndx.sum(x + y)) == 300.0
    assert not a.is_open
    assert not x.in_scope
    assert a.stats()["cycles"] == 1


@ELSEWHERE
def test_borrowing_in_a_generator_that_is_closed_elsewhere(call, scopes):
    a, b = scopes
    with a:
        x = ndx.ones(3)
        with b:
            generator = inside(a.borrow())
            next(generator)
            assert where() == "a"
            call(generator.close)
            assert where() == "b"
        assert x.in_scope
    assert not x.in_scope
    assert a.stats()["cycles"] == 1


def test_borrowing_counts_as_an_entry(scopes):
    a, b = scopes
    with a, b, a.borrow() as borrowed, a.borrow():
        assert borrowed is a
        assert a.parent is None
        assert where() == "a"
    assert (a.stats()["cycles"], b.stats()["cycles"]) == (1, 1)
    assert not a.is_open


# ---- the table ---------------------------------------------------------------


def test_the_table_has_one_row_for_each_state_and_event_that_can_be():
    from ndx._context import scopes

    rows = [row[:2] for row in scopes.RULES]
    assert len({*rows}) == len(rows)
    entered = {"innermost", "covered", "early"}
    possible = {(state, event) for state in entered for event in scopes.EVENTS}
    # Another entry is another row's; what is innermost covers nothing.
    possible -= {(state, "enter") for state in entered}
    possible -= {("innermost", "uncover")}
    possible |= {("out", "enter"), ("out", "leave"), ("settled", "leave")}
    assert {*rows} == possible
    assert {row[2] for row in scopes.RULES} == {*scopes.STATES}
    assert {row[3] for row in scopes.RULES} == {*scopes.ACTIONS}


@ELSEWHERE
def test_a_generator_that_left_too_early_is_closed_elsewhere(call, scopes):
    a, b = scopes

    def body():
        with a:
            yield ndx.ones(3)
            with pytest.raises(ndx.WorkspaceError, match="out of order"):
                a.__exit__(None, None, None)
            yield

    generator = body()
    x = next(generator)
    with b:
        next(generator)
        assert a.is_open
        call(generator.close)
        # It is over at once, not when what covers it is.
        assert not a.is_open
        assert not x.in_scope
        assert where() == "b"
    assert where() is None
    with pytest.raises(ndx.WorkspaceError, match="out of order"):
        a.__exit__(None, None, None)
    assert (a.stats()["cycles"], b.stats()["cycles"]) == (1, 1)

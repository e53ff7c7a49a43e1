"""Private fields of CPython: the checks at import, and what is done without them."""

import contextvars
import itertools
import sys

import pytest
from helpers.commands import run_python

from ndx._lib.interpreter_checks import is_code, is_context, is_frame

WITHOUT = """
import sys, types
unknown = types.SimpleNamespace(
    is_context=lambda address: {context}, is_frame=lambda address: {frame},
    is_code=lambda address: {code}, is_default=lambda address: False)
sys.modules["ndx._lib.interpreter_checks"] = unknown
"""
# These enter a contextvars.Context by hand: without its address it can't be told from
# the thread or task that enters it. Nor can a `use` that another thread leaves.
BY_HAND = "copied_context or elsewhere"


def test_the_fields_of_this_version_are_known():
    from ndx._lib import interpreter

    known = sys.version_info < (3, 15)
    assert is_context(interpreter._context_address) == known
    assert is_frame(interpreter._frame_address) == known
    assert is_code(interpreter._code_address) == known


@pytest.mark.parametrize("wrong", [0, 1])
def test_one_address_for_all_contexts_is_not_that_of_each(wrong):
    assert not is_context(lambda: wrong)


def test_an_address_of_the_thread_is_not_that_of_a_context():
    outside = id(contextvars.copy_context())
    assert not is_context(lambda: outside)


def test_an_object_that_changes_with_each_call_is_no_context():
    count = itertools.count(1)
    assert not is_context(lambda: next(count))


@pytest.mark.parametrize("wrong", [0, 1])
def test_one_address_for_all_frames_is_not_that_of_each(wrong):
    assert not is_frame(lambda: wrong)


def test_an_address_that_changes_within_a_function_is_not_its_frames():
    count = itertools.count(1)
    assert not is_frame(lambda: next(count))


@pytest.mark.parametrize("wrong", [0, 1])
def test_one_address_for_all_code_is_not_that_of_each(wrong):
    assert not is_code(lambda: wrong)


@pytest.mark.costly
@pytest.mark.parametrize("context", [True, False])
@pytest.mark.parametrize(
    ("frame", "code"), [(True, True), (True, False), (False, True)]
)
def test_scopes_without_private_fields(context, frame, code, request):
    folder = request.path.parents[1] / "workspaces"
    tests = [folder / f"test_{name}.py" for name in ("tasks", "generators", "leaving")]
    program = WITHOUT.format(context=context, frame=frame, code=code) + (
        "import pytest\n"
        "sys.exit(pytest.main(['-q', '-p', 'no:cacheprovider', '-k', sys.argv[1],"
        " '--rootdir', sys.argv[2], *sys.argv[3:]]))\n"
    )
    chosen = f"not ({BY_HAND})" if not context else ""
    printed = run_python(program, chosen, request.config.rootpath, *tests)
    assert " passed" in printed
    assert " failed" not in printed


@pytest.mark.threads
def test_tasks_that_interleave_have_arenas_of_their_own_without_private_fields():
    program = (
        WITHOUT.format(context=False, frame=False, code=False)
        + """
import asyncio
import ndx

async def inherit():
    x = ndx.ones(8)
    return x.attached

async def work(turn, other):
    with ndx.workspace("step", size="1MiB") as ws:
        x = ndx.ones(8)
        other.set()
        await turn.wait()
        y = ndx.ones(8)
        assert x.attached and y.attached
        assert not await asyncio.create_task(inherit())
        assert not await asyncio.to_thread(lambda: ndx.ones(8).attached)
    return ws

async def main():
    first, second = asyncio.Event(), asyncio.Event()
    a, b = await asyncio.gather(work(first, second), work(second, first))
    assert a is not b
    print("apart")

asyncio.run(main())
"""
    )
    assert run_python(program) == "apart\n"

"""Threads that share scopes, contexts and defaults."""

import sys

import pytest
from helpers.together import FREE_THREADED, run_together

import ndx

PROGRAMS = {
    "threads enter the same scopes": """
    use, outside = ndx.use("host"), ndx.no_workspace()
    def work():
        for i in range(4 * ROUNDS):
            with use, outside, use:
                assert float(ndx.full(20, float(i))[3]) == i
    run(work, work, work)
    """,
    "threads run in copies of one context": """
    import contextvars
    def work():
        workspace = ndx.workspace("own")
        for i in range(20):
            with workspace:
                assert float(ndx.full(20, float(i))[3]) == i
    with ndx.workspace("before"):
        pass
    for _ in range(ROUNDS // 20):
        contexts = [contextvars.copy_context() for _ in range(3)]
        run(*[lambda context=context: context.run(work) for context in contexts])
    """,
    "the default is replaced": """
    def work():
        for i in range(3 * ROUNDS):
            assert float(ndx.full(2000, float(i))[3]) == i
        over.set()
    def replace():
        while not over.is_set():
            ndx.set_default("host", limit="1GiB")
    run(work, work, replace)
    """,
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_threads_share(name):
    run_together(PROGRAMS[name])


@pytest.mark.skipif(not FREE_THREADED, reason="with the GIL all counts are cheap")
def test_references_to_defaults_are_not_counted():
    # Else threads would wait for one another at each new array.
    backend = ndx.backends.HostBackend()
    assert sys.getrefcount(backend) < 100
    default = ndx.set_default(backend)
    try:
        before = sys.getrefcount(default)
        more = [default] * 10
        assert sys.getrefcount(default) == before > 1000
        del more
    finally:
        ndx.set_default("host")

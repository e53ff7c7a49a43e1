"""Threads that share options of passes."""

import pytest
from helpers.together import run_together

PROGRAMS = {
    "threads enter the same options of passes": """
    once = ndx.passes(threads=1)
    def work():
        for _ in range(20 * ROUNDS):
            with once, once:
                pass
    run(work, work, work)
    """,
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_threads_share(name):
    run_together(PROGRAMS[name])

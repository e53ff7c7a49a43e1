"""Programs of several threads at once, without the GIL where Python can.

Elsewhere they run with the GIL.
"""

import os
import platform
import sys
import sysconfig
from pathlib import Path

import pytest
from ndx._compute.temporaries import known_callers

from helpers.commands import run_python

FREE_THREADED = bool(sysconfig.get_config_var("Py_GIL_DISABLED"))
ROUNDS = int(os.environ.get("NDX_EXAMPLES", "20")) * 100

# Whether operators can tell temporaries: by glibc's list of callers. From CPython 3.14
# on the interpreter's loop may be a part of a function, without its name.
TEMPORARIES_KNOWN = (
    platform.libc_ver()[0] == "glibc"
    and not FREE_THREADED
    and (sys.version_info < (3, 14) or known_callers() > 0)
)

# CPython 3.13t keeps classes and functions for ever once a thread has started.
CLASSES_STAY = FREE_THREADED and sys.version_info < (3, 14)
skip_where_classes_stay = pytest.mark.skipif(
    CLASSES_STAY, reason="classes and functions are immortal there"
)
# docs/architecture.md, "Without the GIL".
only_where_threads_end_scopes = pytest.mark.skipif(
    FREE_THREADED, reason="a scope's own thread ends it, later"
)
only_with_free_lists = pytest.mark.skipif(
    FREE_THREADED, reason="CPython's allocator keeps what is dropped"
)
only_with_small_arrays = pytest.mark.skipif(
    FREE_THREADED, reason="small arrays have ranges of their own"
)

START = f"""if True:
    import functools, queue, sys, threading
    import numpy as np
    import ndx
    sys.path.insert(0, {str(Path(__file__).parents[1])!r})
    from helpers.threads import running
    ROUNDS = {ROUNDS}
    over = threading.Event()
    box = [None]
    def guarded(function):
        try:
            function()
        except BaseException:
            over.set()
            raise
    def run(*functions):
        with running(*[functools.partial(guarded, each) for each in functions]):
            pass
"""


def run_together(program):
    """Run a program with `run`, `over`, `box`, `ROUNDS`; fail unless it ends well."""
    environment = {"PYTHON_GIL": "0"} if FREE_THREADED else {}
    code = START + program + "\n    print('done')"
    assert run_python(code, environment=environment) == "done\n"

"""Programs of the command line, and code in a process of its own."""

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import ndx

PACKAGE = str(Path(ndx.__file__).parents[1])


def start_python(program, *arguments, environment=None):
    """Start a program as a process of its own, with ndx and pipes."""
    return subprocess.Popen(
        [sys.executable, "-X", "faulthandler", "-W", "ignore", "-c"]
        + [textwrap.dedent(program)]
        + [str(argument) for argument in arguments],
        env={**os.environ, "PYTHONPATH": PACKAGE, **(environment or {})},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def run_python(program, *arguments, environment=None):
    """Run a program as a process of its own, with ndx; return what it printed."""
    process = start_python(program, *arguments, environment=environment)
    return finish_python(process)


def finish_python(process, said=""):
    """Tell a process something, and wait for its end; return what it printed."""
    try:
        printed, errors = process.communicate(said, timeout=240)
    except subprocess.TimeoutExpired:
        process.kill()
        raise
    assert (process.returncode, errors) == (0, ""), f"{printed}\n{errors}"
    return printed

"""Processes of tests: Python, code with ndx, and the command ``python -m ndx``."""

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import ndx
from ndx.__main__ import main

PACKAGE = str(Path(ndx.__file__).parents[1])
EXAMPLES = Path(__file__).parents[2] / "examples"
TIMEOUT = 240


def start(*arguments, cwd=None, **environment):
    """Start Python with arguments, with pipes, and with ndx on its path."""
    path = os.pathsep.join(filter(None, [PACKAGE, os.environ.get("PYTHONPATH")]))
    return subprocess.Popen(
        [sys.executable, *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": path, **environment},
    )


def finish(process, said=""):
    """Tell a process something, and wait for its end; return what came of it."""
    try:
        printed, errors = process.communicate(said, timeout=TIMEOUT)
    except subprocess.TimeoutExpired:
        process.kill()
        raise
    return subprocess.CompletedProcess(
        process.args, process.returncode, printed, errors
    )


def says(done):
    """Return what a program printed, which ended well and in silence."""
    assert (done.returncode, done.stderr) == (0, ""), f"{done.stdout}\n{done.stderr}"
    return done.stdout


# ---- code --------------------------------------------------------------------


def start_python(program, *arguments, environment=None):
    """Start a program as a process of its own."""
    options = ("-X", "faulthandler", "-W", "ignore", "-c", textwrap.dedent(program))
    return start(*options, *arguments, **(environment or {}))


def finish_python(process, said=""):
    """Tell a process something, and wait for its end; return what it printed."""
    return says(finish(process, said))


def run_python(program, *arguments, environment=None):
    """Run a program as a process of its own; return what it printed."""
    return finish_python(start_python(program, *arguments, environment=environment))


def run_example(*arguments):
    """Run Python in the folder of the examples; return what came of it."""
    return finish(start(*arguments, cwd=EXAMPLES))


# ---- the command -------------------------------------------------------------


def call(*arguments, cwd, **environment):
    """Run ``python -m ndx`` with arguments."""
    return finish(start("-m", "ndx", *arguments, cwd=cwd, **environment))


def run(tmp_path, source, *options, arguments=()):
    """Run a script with options of the command; return what came of it."""
    script = tmp_path / "script.py"
    script.write_text(source)
    return call("run", *options, script, *arguments, cwd=tmp_path)


def refusal(capsys, *arguments):
    """Return what the command says of arguments with which it does nothing."""
    with pytest.raises(SystemExit) as caught:
        main([str(each) for each in arguments])
    printed = capsys.readouterr()
    assert (caught.value.code, printed.out) == (2, "")
    return printed.err

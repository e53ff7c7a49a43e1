"""The command ``python -m ndx`` as a process of its own, and Python without it."""

import os
import subprocess
import sys

import pytest

from helpers.commands import PACKAGE
from ndx.__main__ import main

TIMEOUT = 240


def start(*arguments, cwd, **environment):
    """Start Python with arguments, and with ndx on its path."""
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
    """Wait for a process; return its output, its errors and its status."""
    try:
        printed, errors = process.communicate(said, timeout=TIMEOUT)
    except subprocess.TimeoutExpired:
        process.kill()
        raise
    return subprocess.CompletedProcess(
        process.args, process.returncode, printed, errors
    )


def call(*arguments, cwd, **environment):
    """Run ``python -m ndx`` with arguments."""
    return finish(start("-m", "ndx", *arguments, cwd=cwd, **environment))


def run(tmp_path, source, *options, arguments=()):
    """Run a script with options of the command; return the process."""
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


def says(done):
    """Return what a program printed, which ended well and in silence."""
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return done.stdout

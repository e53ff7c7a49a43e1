"""Shrinking of a failing program; each try is a process of its own."""

import json
import os
import signal
from pathlib import Path

from fuzzing.faces import FUSED
from fuzzing.programs import OF_PARENT, temporary_folder

TIMEOUT = 60  # seconds; a program may never end

HEAD = '''\
import contextlib, copy, gc, os, pickle, tempfile, threading, types
import numpy as np
import ndx

folder = {folder!r}
os.makedirs(folder, exist_ok=True)

def pattern(x):
    """Return small whole numbers in the shape and dtype of an array."""
    return (np.arange(x.size) % 11 - 5).reshape(x.shape).astype(x.dtype)

def in_thread(function):
    """Return what a function returns in a thread of its own."""
    found = []
    thread = threading.Thread(target=lambda: found.append(function()))
    thread.start()
    thread.join()
    return found.pop()

fuse = ndx.fuse

{functions}
fused = types.SimpleNamespace(**globals())

v20 = ndx.asarray(np.arange(12.0).reshape(3, 4) % 5)
v21 = ndx.asarray(np.arange(40.0) % 7)
v22 = ndx.asarray(np.arange(16.0).reshape(4, 4) % 3 - 1)
v23 = ndx.asarray(np.arange(40_000.0) % 11)

'''


class Script:
    """The lines of a program, written at once, because the next one may crash.

    Parameters
    ----------
    path : str
        The file.
    """

    def __init__(self, path):
        self.file = open(path, "w", buffering=1)  # noqa: SIM115
        self.said = False

    def begin(self):
        self.said = False

    def append(self, line):
        self.file.write(f"{line}\n")
        self.said = True

    def refuse(self):
        """Record that the last line raised, as expected."""
        if self.said:
            self.file.write("\0\n")


def read_script(path, folder):
    """Return the text of a script, with its set-up."""
    lines = []
    for line in Path(path).read_text().splitlines():
        if line == "\0":
            lines[-1] = f"with contextlib.suppress(Exception): {lines[-1]}"
        else:
            lines.append(line)
    return HEAD.format(folder=folder, functions=FUSED) + "\n".join(lines) + "\n"


def outcome_of(run, program, every, script=None):
    """Run a program in a forked child; return how it failed, or None.

    Parameters
    ----------
    run : callable
        Takes a program, a folder, and the keywords of `run_program`; raises `Report`.
    program : dict
        The program.
    every : int
        Steps between comparisons.
    script : str, optional
        The file for the script.

    Returns
    -------
    tuple or None
        The signal's name or the step's kind, and the message.
    """
    with temporary_folder() as folder:
        report = os.path.join(folder, "report")
        work = os.path.join(folder, "work")
        os.mkdir(work)
        pid = os.fork()
        if pid == 0:
            os.environ[OF_PARENT] = folder
            status = 1
            try:
                status = try_program(run, program, every, script, work, report)
            finally:
                os._exit(status)
        status = os.waitpid(pid, 0)[1]
        if os.WIFSIGNALED(status):
            return signal.Signals(os.WTERMSIG(status)).name, ""
        code = os.WEXITSTATUS(status)
        if code == 0:
            return None
        if not os.path.exists(report):
            return f"exit {code}", ""
        return tuple(json.loads(Path(report).read_text()))


def try_program(run, program, every, script, work, report):
    """Run a program, and write its failure to a file; return an exit status."""
    devnull = os.open(os.devnull, os.O_WRONLY)
    if not os.environ.get("NDX_FUZZ_STDERR"):
        os.dup2(devnull, 2)
    signal.alarm(TIMEOUT)
    lines = None if script is None else Script(script)
    error = run(program, work, every=every, lines=lines)
    if error is None:
        return 0
    Path(report).write_text(json.dumps([error.op, error.message]))
    return 3


def shrink(run, program, every, say=lambda text: None):
    """Return the least program found with the same failure, and the failure."""
    wanted = outcome_of(run, program, every)
    if wanted is None:
        return program, None
    steps = program["steps"]
    size = len(steps) // 2
    while size >= 1:
        first = 0
        while first < len(steps):
            fewer = steps[:first] + steps[first + size :]
            found = outcome_of(run, {**program, "steps": fewer}, every)
            if found is not None and kind_of(found) == kind_of(wanted):
                steps, wanted = fewer, found
                say(f"{len(steps)} steps: {found[0]}")
            else:
                first += size
        size //= 2
    return {**program, "steps": steps}, wanted


def kind_of(outcome):
    """Return the part of a failure that identifies it."""
    op, message = outcome
    for sign in ("no StaleArrayError", "StaleArrayError", "Error", "in workspace"):
        if sign in message:
            return sign, ""
    return (op, "") if op.startswith(("SIG", "exit")) else ("wrong", "")

"""Running a program as Python does, while its memory is recorded."""

import builtins
import os
import runpy
import sys
import threading
import types
from importlib.machinery import SourceFileLoader

import ndx
from ndx.memory._trace import record, writer_for

__all__ = ["new_trace", "run_traced"]


def new_trace(output, max_events, stacks):
    """Return a trace; raise ValueError if it can't be saved as `output`."""
    writer_for(output)
    folder = os.path.dirname(os.path.abspath(output))
    if not os.access(folder, os.W_OK):
        msg = f"can't write {output!r}: {folder!r} is no folder that can be written to"
        raise ValueError(msg)
    return record(max_events=max_events, stacks=stacks)


def run_traced(trace, output, program, arguments, is_module):
    """Run a script or module, save the trace, and return the exit status."""
    process = os.getpid()
    run = _run_module if is_module else _run_script
    status = 0
    try:
        with trace:
            try:
                run(program, arguments)
            except SystemExit as stop:
                status = _status_of(stop)
            except Exception as error:
                # Reported as by Python, without the frames of this package.
                error.__traceback__ = _of_program(error.__traceback__)
                sys.excepthook(type(error), error, error.__traceback__)
                status = 1
            _join_threads()
    finally:
        # A forked child that returns to here saves nothing.
        if os.getpid() == process:
            trace.save(output)
            print(f"{trace.summary()}\n\nsaved as {output}", file=sys.stderr)
    return status


def _run_script(path, arguments):
    if os.path.isdir(path):
        sys.argv[:] = [path, *arguments]
        runpy.run_path(path, run_name="__main__")
        return
    with open(path, "rb") as file:
        source = file.read()
    sys.argv[:] = [path, *arguments]
    # `-m ndx` has put the working directory there.
    sys.path[0] = os.path.dirname(os.path.abspath(path))
    module = types.ModuleType("__main__")
    module.__dict__.update(
        __file__=path,
        __builtins__=builtins,
        __loader__=SourceFileLoader("__main__", path),
        __cached__=None,
    )
    # Kept: threads, finalizers and pickles need it after the script's end.
    sys.modules["__main__"] = module
    exec(compile(source, path, "exec"), module.__dict__)


def _run_module(name, arguments):
    # runpy replaces the first item by the module's file.
    sys.argv[:] = [name, *arguments]
    runpy.run_module(name, run_name="__main__", alter_sys=True)


def _status_of(stop):
    """Return the exit status that Python gives for a SystemExit."""
    if stop.code is None:
        return 0
    if isinstance(stop.code, int):
        return stop.code
    print(stop.code, file=sys.stderr)
    return 1


def _of_program(traceback):
    """Return the program's part of a traceback."""
    ours = os.path.dirname(ndx.__file__) + os.sep
    while traceback is not None and traceback.tb_frame.f_code.co_filename.startswith(
        (ours, "<frozen ")
    ):
        traceback = traceback.tb_next
    return traceback


def _join_threads():
    """Wait for the threads for which Python would wait."""
    for thread in threading.enumerate():
        if thread is not threading.current_thread() and not thread.daemon:
            thread.join()

"""Running a program as `python` does: its `__main__`, arguments, errors and end."""

import builtins
import os
import pkgutil
import runpy
import sys
import types
from importlib.machinery import SourceFileLoader, SourcelessFileLoader
from importlib.util import find_spec

__all__ = ["check_program", "run_program"]

# What Python itself puts into `__main__`, in the versions that do.
_OF_PYTHON = ("__annotations__", "__cached__")


def check_program(program, is_module):
    """Raise ValueError if there is no such program to run."""
    if is_module:
        if find_spec(program.partition(".")[0]) is None:
            msg = f"no module named {program!r}"
            raise ValueError(msg)
    elif program == "-":
        msg = "can't run a script from the standard input: give a file, or -m MODULE"
        raise ValueError(msg)
    elif not os.access(program, os.R_OK):
        msg = f"can't read the script {program!r}"
        raise ValueError(msg)


def run_program(program, arguments, is_module, explain=None):
    """Run a script, a folder, a zip file or a module as `__main__`.

    Parameters
    ----------
    program : str
        Its path, or the module's name.
    arguments : list of str
        What follows in `sys.argv`.
    is_module : bool
        Whether `program` is a module.
    explain : callable, optional
        Called with the exception that ends the program, before Python reports it.

    Notes
    -----
    Exceptions pass, to end the process as Python ends it: SystemExit by its status,
    KeyboardInterrupt by the signal. The traceback that is printed has no frames of
    this package.
    """
    main = _new_main()
    try:
        if is_module:
            sys.argv[:] = ["-m", *arguments]
            _run_as_main(program, True)
        elif pkgutil.get_importer(program) is not None:
            sys.argv[:] = [program, *arguments]
            _set_path(_absolute(program), True)
            _run_as_main("__main__", False)
        else:
            sys.argv[:] = [program, *arguments]
            _set_path(os.path.dirname(os.path.realpath(program)), False)
            _run_script(_absolute(program), main)
    except SystemExit:
        raise
    except BaseException as error:
        if explain is not None:
            explain(error)
        _report_without_us(error)
        raise


def _new_main():
    """Make the module `__main__` of a program that starts now."""
    ours = vars(sys.modules["__main__"])
    main = types.ModuleType("__main__")
    main.__builtins__ = builtins
    for name in _OF_PYTHON:
        if name in ours:
            setattr(main, name, {} if name == "__annotations__" else None)
    # Kept, because threads, finalizers and pickles need `__main__` after the program's
    # end.
    sys.modules["__main__"] = main
    return main


def _set_path(folder, always):
    """Set the first item of the path, where `-m ndx` has put the working directory."""
    if not sys.flags.safe_path:
        sys.path[0] = folder
    elif always:
        sys.path.insert(0, folder)


def _absolute(path):
    """Return a path as Python makes it absolute: `.` and `..` stay."""
    return os.path.join(os.getcwd(), path)


def _run_script(path, main):
    with open(path, "rb") as file:
        code = pkgutil.read_code(file)
    loader = SourceFileLoader if code is None else SourcelessFileLoader
    main.__file__ = path
    main.__loader__ = loader("__main__", path)
    if code is None:
        with open(path, "rb") as file:
            code = compile(file.read(), path, "exec", dont_inherit=True)
    exec(code, vars(main))


def _run_as_main(name, alter_argv):
    """Run a module as `python -m` does, in the namespace of `__main__`."""
    runner = getattr(runpy, "_run_module_as_main", None)
    if runner is not None:
        runner(name, alter_argv)
    elif name == "__main__":
        runpy.run_path(sys.argv[0], run_name="__main__")
    else:
        runpy.run_module(name, run_name="__main__", alter_sys=True)


def _report_without_us(error):
    """Let Python report an error with the traceback of the program alone."""
    traceback = error.__traceback__
    while traceback is not None and traceback.tb_frame.f_code.co_filename == __file__:
        traceback = traceback.tb_next
    usual = getattr(sys, "excepthook", _missing_hook)

    def report(kind, value, _):
        sys.excepthook = usual
        sys.last_traceback = traceback
        usual(kind, value.with_traceback(traceback), traceback)

    # Python itself calls the hook, when the error has passed through this package.
    sys.excepthook = report


def _missing_hook(kind, value, traceback):
    del sys.excepthook
    print("sys.excepthook is missing", file=sys.stderr)
    sys.__excepthook__(kind, value, traceback)

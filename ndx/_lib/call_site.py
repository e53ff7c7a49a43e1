"""The line of the user's program that is running."""

import os
import sys

import numpy as np

_PACKAGE = os.path.dirname(os.path.dirname(__file__)) + os.sep
_NUMPY = os.path.dirname(np.__file__) + os.sep
_PYTHON = os.path.dirname(os.__file__) + os.sep
_INSTALLED = os.path.join(_PYTHON, "site-packages") + os.sep
# What a child of `multiprocessing` runs first. If it was forked, the frames below are
# its parent's, at the line that forked.
_CHILD = "BaseProcess._bootstrap"


def current_line():
    """Return ``"file:line in function"`` of the innermost frame outside of ndx."""
    frame = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame = frame.f_back
    if frame is None:
        return "an unknown line"
    code = frame.f_code
    return f"{shown(code.co_filename)}:{frame.f_lineno} in {code.co_qualname}"


def users_frame(frame):
    """Return the innermost frame of the user's program, from `frame` on; or None."""
    while frame is not None and is_ours(frame.f_code.co_filename):
        if begins_process(frame.f_code):
            return None
        frame = frame.f_back
    return frame


def begins_process(code):
    """Return whether a function of Python's own is where a child process begins."""
    return code.co_qualname == _CHILD


def shown(filename):
    """Return the name of a file; for a cell of a notebook, its number: ``"In[3]"``.

    IPython compiles cells as files with names of no meaning.
    """
    shell = getattr(sys.modules.get("IPython"), "get_ipython", None)
    try:
        label = shell and shell().compile.format_code_name(filename)
    except Exception:
        # There is no shell of IPython, or one that names cells otherwise.
        return filename
    return label[1] if label else filename


def is_ours(filename):
    """Return whether a file belongs to ndx, NumPy or Python's own modules."""
    if filename.startswith((_PACKAGE, _NUMPY, "<frozen ")):
        return True
    # Python's own modules run users' functions: `threading` and `copy`, for example.
    return filename.startswith(_PYTHON) and not filename.startswith(_INSTALLED)

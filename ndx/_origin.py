"""Which line of the user's program is running."""

import os
import sys

_PACKAGE = os.path.dirname(__file__) + os.sep


def current_line():
    """Return ``"file:line in function"`` of the innermost frame outside of ndx."""
    frame = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame = frame.f_back
    if frame is None:
        return "an unknown line"
    code = frame.f_code
    return f"{code.co_filename}:{frame.f_lineno} in {code.co_qualname}"

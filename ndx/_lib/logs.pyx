"""Rare events of memory, and likely mistakes, for the logger "ndx" of `logging`."""

import sys

from ndx._lib.unraisable cimport report_ignored


cdef void log_event(str message, tuple arguments) noexcept:
    """Log an event at the level INFO; `message` is a format for the arguments."""
    log("info", message, arguments)


cdef void log_warning(str message, tuple arguments) noexcept:
    """Log what is likely to be a mistake, at the level WARNING."""
    log("warning", message, arguments)


cdef void log(str level, str message, tuple arguments) noexcept:
    """Log a message at a level.

    Nothing is imported, since files may be what is short: a program that has not
    imported `logging` reads no logs. A handler that fails can't break an allocation.
    """
    # Another thread may be importing `logging` at this moment.
    get_logger = getattr(sys.modules.get("logging"), "getLogger", None)
    if get_logger is not None:
        try:
            getattr(get_logger("ndx"), level)(message, *arguments)
        except BaseException as failure:
            report_ignored(get_logger, failure)

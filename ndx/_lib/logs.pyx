"""Rare events of memory, for the logger "ndx" of the standard library's logging."""

import sys

from ndx._lib.unraisable cimport report_ignored


cdef void log_event(str message, tuple arguments) noexcept:
    """Log an event at the level INFO; `message` is a format for the arguments.

    Nothing is imported, since files may be what is short: a program that has not
    imported `logging` reads no logs. A handler that fails can't break an allocation.
    """
    logging = sys.modules.get("logging")
    if logging is not None:
        try:
            logging.getLogger("ndx").info(message, *arguments)
        except BaseException as failure:
            report_ignored(logging, failure)

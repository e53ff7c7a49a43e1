"""Which thread a workspace belongs to, and which workspaces there are."""

import threading
import weakref

all_workspaces = weakref.WeakSet()
_of_thread = threading.local()


class Names(dict):
    """Workspaces by name; a dict that has weak references."""

    __slots__ = ("__weakref__",)


def named_workspaces():
    """Return the workspaces of this thread by name; it dies with the thread."""
    try:
        return _of_thread.workspaces
    except AttributeError:
        _of_thread.workspaces = Names()
        return _of_thread.workspaces

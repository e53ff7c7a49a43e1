"""Which thread a workspace belongs to, which task runs, which workspaces there are."""

import sys
import threading
import weakref

all_workspaces = weakref.WeakSet()
_of_thread = threading.local()


class Names(dict):
    """Workspaces by name; a dict that has weak references."""

    __slots__ = ("__weakref__",)


def current_task():
    """Return the asyncio task that runs; None outside of one."""
    # Not imported for this: without it, or without a running loop, there is no task.
    asyncio = sys.modules.get("asyncio")
    if asyncio is None or asyncio._get_running_loop() is None:
        return None
    return asyncio.current_task()


def named_workspaces():
    """Return the workspaces of this thread by name; it dies with the thread."""
    try:
        return _of_thread.workspaces
    except AttributeError:
        _of_thread.workspaces = Names()
        return _of_thread.workspaces

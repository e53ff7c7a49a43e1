"""Which thread or task a workspace belongs to, and which workspaces there are."""

import sys
import threading
import weakref

all_workspaces = weakref.WeakSet()
_of_thread = threading.local()
_of_tasks = weakref.WeakKeyDictionary()


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
    """Return the workspaces of this thread or task by name; it dies with its owner."""
    task = current_task()
    if task is None:
        try:
            return _of_thread.workspaces
        except AttributeError:
            _of_thread.workspaces = Names()
            return _of_thread.workspaces
    return _of_tasks.setdefault(task, Names())

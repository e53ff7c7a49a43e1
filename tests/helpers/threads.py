"""Threads in tests: running in one of their own, and waiting for what they do."""

import contextlib
import functools
import threading
import time

import pytest


def wait_until(condition, seconds=30.0):
    """Wait until a condition holds; fail if it does not in time."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it took too long"
        time.sleep(0.001)
    return True


def run_in_thread(function, *args, **kwargs):
    """Return what `function` returns in a thread that ends with it."""
    outcome = {}

    def target():
        try:
            outcome["result"] = function(*args, **kwargs)
        except BaseException as error:
            outcome["error"] = error

    thread = threading.Thread(target=target)
    thread.start()
    thread.join()
    if "error" in outcome:
        error = outcome.pop("error")
        try:
            raise error
        finally:
            del error
    return outcome["result"]


def in_thread(test):
    """Run a test in a thread of its own, so that its named workspaces end with it."""

    @pytest.mark.threads
    @functools.wraps(test)
    def wrapper(*args, **kwargs):
        return run_in_thread(test, *args, **kwargs)

    return wrapper


@contextlib.contextmanager
def running(*functions):
    """Run functions in threads while the block runs; their errors are raised."""
    errors = []

    def guarded(function):
        try:
            function()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=guarded, args=(f,)) for f in functions]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        for thread in threads:
            thread.join()
    if errors:
        raise errors[0]

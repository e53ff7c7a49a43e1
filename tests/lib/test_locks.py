"""Locks of modules: their holder may come back; in a forked child they are free."""

import os
import threading

import pytest
from helpers.threads import wait_until

from ndx._lib.locks import module_lock


def test_its_holder_may_come_back():
    lock = module_lock()
    with lock:
        assert lock.acquire(blocking=False)
        lock.release()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
@pytest.mark.filterwarnings("ignore:This process")
def test_it_is_free_in_a_forked_child():
    lock = module_lock()
    held, over = threading.Event(), threading.Event()

    def hold():
        with lock:
            held.set()
            over.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    assert wait_until(held.is_set)
    child = os.fork()
    if child == 0:
        os._exit(0 if lock.acquire(blocking=False) else 1)
    over.set()
    thread.join()
    assert os.waitpid(child, 0)[1] == 0

"""Processes that end, or fork, while memory is acquired or exported."""

import os

import pytest

SETUP = """
import atexit, gc, os, sys, threading
import numpy as np
import ndx
import consumer, counting_backend, plain

class ByteArrays(ndx.backends.PythonBackend):
    def acquire(self, nbytes):
        return bytearray(nbytes)
    def discard(self, buffer):
        assert len(buffer) > 0

def made(where):
    if where == "workspace":
        with ndx.workspace(size="64KiB"):
            return consumer.Held(ndx.ones(100)), ndx.ones(100), np.asarray(ndx.ones(9))
    if where == "open workspace":
        scope = ndx.workspace("left open")
        scope.__enter__()
        return consumer.Held(ndx.ones(100)), ndx.ones(100), scope
    if where == "foreign":
        return consumer.Held(ndx.asarray(np.ones(100))), ndx.asarray(np.ones(100))
    backend = {"counting": counting_backend.CountingBackend, "python": ByteArrays,
               "host": lambda: "host"}[where]()
    with ndx.use(backend):
        x = ndx.ones(100)
        return (consumer.Held(x), x, memoryview(x), np.asarray(x), x.__dlpack__(),
                np.from_dlpack(x), ndx.workspace(size="4KiB"))
"""
EXITS = {
    "never released": "with ndx.workspace(): plain.leak(ndx.ones(9))",
    "in the module": "kept = made(where)",
    "in sys": "sys.kept = made(where)",
    "in a cycle": "kept = [made(where)]; kept.append(kept)",
    "at exit": "atexit.register(lambda kept: kept[0].release(), made(where))",
    "in a thread's locals": """
local = threading.local()
started = threading.Event()
def wait():
    local.kept = made(where)
    started.set()
    threading.Event().wait()
threading.Thread(target=wait, daemon=True).start()
started.wait()
""",
    "in a destructor": """
class Late:
    def __del__(self, consumer=consumer, made=made):
        for held in self.kept:
            if isinstance(held, consumer.Held):
                held.release()
sys.late = Late()
sys.late.kept = made(where)
""",
}
WHERE = ["host", "python", "counting", "foreign", "workspace", "open workspace"]


@pytest.mark.parametrize("how", EXITS)
def test_exit_with_views(run_python, how):
    code = f"{SETUP}\nwhere = 'workspace'\n{EXITS[how]}\nprint('end')"
    assert run_python(code) == "end\n"


@pytest.mark.parametrize("where", WHERE)
def test_exit_with_all_kinds(run_python, where):
    everything = "\n".join(
        f"def use_{number}():\n    where = {where!r}\n    global kept\n"
        + "\n".join("    " + line for line in code.strip().splitlines())
        + f"\nuse_{number}()"
        for number, code in enumerate(EXITS.values())
    )
    assert run_python(f"{SETUP}\n{everything}\nprint('end')") == "end\n"


@pytest.mark.threads
def test_exit_while_threads_compute(run_python):
    code = """
import threading
import ndx, consumer
working = threading.Semaphore(0)
def work():
    with ndx.workspace("step"):
        x = ndx.ones(2_000_000)
        while True:
            consumer.total(x)
            working.release()
for _ in range(3):
    threading.Thread(target=work, daemon=True).start()
for _ in range(30):
    working.acquire()
print("end")
"""
    assert run_python(code) == "end\n"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.parametrize("ending", ["os._exit(0)", "sys.exit(0)"])
def test_fork_with_views(run_python, ending):
    code = f"""
{SETUP}
kept = [made(where) for where in
        ("host", "python", "counting", "foreign", "workspace", "open workspace")]
held = kept[4][0]
child = os.fork()
if child == 0:
    assert held.values() == [1] * 100
    for items in kept:
        assert items[0].values() == [1] * 100
        items[0].release()
    with ndx.workspace("step"):
        x = ndx.ones(1000)
        assert consumer.total(x) == 1000
        held = consumer.Held(x)
    assert held.values() == [1] * 1000
    {ending}
assert os.waitpid(child, 0)[1] == 0
for _ in range(50):
    with ndx.workspace("step", size="64KiB"):
        assert consumer.total(ndx.full(1000, 2.0)) == 2000
assert all(items[0].values() == [1] * 100 for items in kept)
print("end")
"""
    assert run_python(code) == "end\n"

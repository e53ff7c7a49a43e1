"""What ``NDX_DEBUG_MEMORY`` finds: writes out of bounds, and after the end."""

import json
import os
import signal

import pytest
from helpers import commands
from helpers.sanitizers import writes_out_of_bounds

import ndx
from ndx import memory

START = """\
import ctypes, gc, json, os, sys, warnings
import numpy as np
import ndx

def address_of(x):
    return np.asarray(x).__array_interface__["data"][0]

def write(address, nbytes=1):
    ctypes.memset(address, 7, nbytes)

def found(act, *arguments):
    '''Return what is raised, or would be raised soon, as (kind, first, last, bytes).'''
    try:
        act(*arguments)
        for _ in range(3):
            len([])
    except ndx.MemoryDamageError as error:
        return [[d.kind, d.first, d.last, d.found.hex()] for d in error.damages]
    return []

class Bytes(ndx.backends.PythonBackend):
    def acquire(self, nbytes):
        return bytearray(nbytes)

class Ranges(ndx.backends.PythonSource):
    def acquire(self, nbytes):
        return bytearray(nbytes)

"""


def start(mode, program, **variables):
    """Run a program with guards; return how it ended."""
    return commands.finish(
        commands.start("-c", START + program, NDX_DEBUG_MEMORY=mode, **variables)
    )


def run(mode, program):
    """Return what a program prints, as JSON."""
    return [*map(json.loads, commands.says(start(mode, program)).splitlines())]


EACH_BACKEND = """
makers = {
    "host": lambda: ndx.backends.get("host", limit="64MiB"),
    "unpooled": lambda: ndx.backends.get("host", pool="unpooled"),
    "round": lambda: ndx.backends.get("host", pool="round"),
    "arena": lambda: ndx.backends.get("host", pool="arena", limit="4MiB"),
    "mmap": lambda: ndx.backends.get("mmap", limit="64MiB"),
    "simulated": lambda: ndx.backends.get("simulated"),
    "whole": lambda: ndx.backends.get("simulated", page=0),
    "python": Bytes,
    "source": lambda: ndx.backends.PooledBackend(Ranges()),
    "adaptor": lambda: ndx.memory.LimitingAdaptor(Bytes(), "1MiB"),
}
for name, make in makers.items():
    backend = make()
    with ndx.use(backend):
        for shape in (1, 3, 9, 1000, 20000):
            x = ndx.zeros(shape, dtype="float64")
            at, nbytes = address_of(x), 8 * shape
            write(at - 2, 2)
            write(at + nbytes, 3)
            write(at + nbytes + 63)
            by_check = found(ndx.memory.check)
            again = found(ndx.memory.check)
            write(at - 64)
            def drop():
                global x
                del x
            by_drop = found(drop)
            freed = []
            if name not in ("python", "adaptor", "unpooled"):
                write(at + 5, 2)
                freed = found(ndx.memory.check)
                write(at + 5, 2)
                freed += found(lambda: ndx.empty(shape))
            print(json.dumps([name, nbytes, at % 64, by_check, again, by_drop, freed]))
        stats = backend.stats()
        assert stats["allocated_bytes"] == 0, stats
"""


@writes_out_of_bounds
def test_each_backend_is_guarded():
    lines = run("raise", EACH_BACKEND)
    assert len(lines) == 50
    for name, nbytes, misaligned, by_check, again, by_drop, freed in lines:
        assert misaligned == 0
        assert by_check == [
            ["before", -2, -1, "0707"],
            ["behind", nbytes, nbytes + 63, "070707" + 13 * "fd"],
        ], (name, nbytes)
        assert again == []
        assert by_drop == [["before", -64, -64, "07"]]
        if name not in ("python", "adaptor", "unpooled"):
            assert {(kind, found) for kind, _, _, found in freed} == {("freed", "0707")}
            assert len(freed) == 2


@writes_out_of_bounds
def test_a_write_is_found_where_it_was():
    """Random sizes, offsets and lives: each byte out of bounds is told, none within."""
    lines = run(
        "raise",
        """
import random
draw = random.Random(int(os.environ.get("SEED", "1")))
alive = []
for turn in range(400):
    nbytes = draw.choice([draw.randint(1, 200), draw.randint(1, 200_000)])
    x = ndx.empty(nbytes, dtype="uint8")
    x[...] = 1
    alive.append(x)
    if len(alive) > 20:
        alive.pop(draw.randrange(20))
    target = draw.choice(alive)
    at = draw.choice([draw.randint(-64, -1), target.nbytes + draw.randint(0, 63)])
    write(address_of(target) + at)
    (kind, first, last, byte), = found(ndx.memory.check)
    assert (first, last, byte) == (at, at, "07"), (at, first, last)
    assert kind == ("before" if at < 0 else "behind")
    assert found(ndx.memory.check) == []
print(json.dumps(len(alive)))
""",
    )
    assert lines == [20]


def test_memory_that_was_not_written_shows():
    lines = run(
        "raise",
        """
print(json.dumps(bool(ndx.all(ndx.isnan(ndx.empty(1000))))))
for n in (1, 1000, 10**6):
    del_me = ndx.ones(n)
    del del_me
    assert ndx.all(ndx.zeros(n) == 0)
    assert ndx.all(ndx.isnan(ndx.empty(n, dtype="float32")))
    assert ndx.all(ndx.empty(n, dtype="int8") == -1)
""",
    )
    assert lines == [True]


def test_counters_are_of_what_was_asked_for():
    lines = run(
        "raise",
        """
backend = ndx.backends.get("host", limit="1MiB")
with ndx.use(backend):
    xs = [ndx.zeros(n) for n in (1, 100, 1000)]
    stats = backend.stats()
    print(json.dumps([stats["allocated_bytes"], stats["rounded_bytes"]]))
    print(json.dumps(backend.guard_nbytes))
    assert len(ndx.memory.live(backend)) == 3
    assert ndx.memory.live(backend).nbytes == 8808
    try:
        while True:
            xs.append(ndx.zeros(100))
    except ndx.OutOfMemoryError:
        assert backend.stats()["reserved_bytes"] <= 2**20
backend = Bytes(limit=1000)
with ndx.use(backend):
    x = ndx.zeros(100)
    stats = backend.stats()
    print(json.dumps([stats["allocated_bytes"], stats["reserved_bytes"]]))
""",
    )
    assert lines == [[8808, 8896 + 3 * 128], 64, [800, 928]]


@writes_out_of_bounds
def test_a_warning():
    lines = run(
        "warn",
        """
ndx.memory.track()
x = ndx.ones((2, 3))
write(address_of(x) + 48, 20)
with warnings.catch_warnings(record=True) as told:
    warnings.simplefilter("always")
    damages = ndx.memory.check()
    del x
print(json.dumps([str(each.message) for each in told]))
print(json.dumps([damages[0].shape, damages[0].dtype, damages[0].line]))
""",
    )
    (text,), (shape, dtype, line) = lines
    assert "something wrote behind 48 bytes at 0x" in text
    assert "(backend 'host'), an array of float64 and shape (2, 3), made at " in text
    assert "at its end + 0 to 19, 20 in all: 07 07" in text
    assert text.count(" 07") == 16
    assert " ... " not in text or text.index(" ... ") > text.index("07")
    assert (shape, dtype, line) == ([2, 3], "float64", "<string>:31 in <module>")


@writes_out_of_bounds
@pytest.mark.parametrize("way", ["del x", "ndx.memory.check()"])
def test_an_abort(way):
    ended = start("abort", f"x = ndx.ones(3)\nwrite(address_of(x) + 24)\n{way}\n")
    assert ended.returncode == -signal.SIGABRT
    assert "ndx: something wrote behind 24 bytes at 0x" in ended.stderr
    assert "most recent call first" in ended.stderr


@writes_out_of_bounds
def test_a_warning_that_is_an_error_is_raised():
    ended = start(
        "warn",
        "warnings.simplefilter('error')\n"
        "x = ndx.ones(3)\nwrite(address_of(x) + 24)\n"
        "try:\n    del x\n    len([])\nexcept RuntimeWarning:\n    print('raised')\n",
    )
    assert (ended.stdout, ended.returncode) == ("raised\n", 0)


@writes_out_of_bounds
def test_what_nobody_freed_is_checked_at_exit():
    ended = start("raise", "x = ndx.ones(3)\nwrite(address_of(x) + 24)\n")
    assert "MemoryDamageError" in ended.stderr
    assert start("raise", "x = ndx.ones(3)\n").stderr == ""


@writes_out_of_bounds
def test_memory_of_numpys_results():
    lines = run(
        "raise",
        """
x = ndx.linalg.inv(ndx.eye(3))
write(address_of(x) - 1)
write(address_of(x) + 72)
print(json.dumps(found(ndx.memory.check)))
with ndx.use("host", numpy=True):
    y = np.ones(5)
    y.resize(5000, refcheck=False)
    z = np.zeros(0)
    write(y.ctypes.data - 64)
    write(y.ctypes.data + y.nbytes)
    print(json.dumps(found(ndx.memory.check)))
    del y, z
""",
    )
    assert [each[:3] for each in lines[0]] == [["before", -1, -1], ["behind", 72, 72]]
    assert [each[:2] for each in lines[1]] == [["before", -64], ["behind", 40000]]


@pytest.mark.parametrize("mode", ["warn", "raise", "abort"])
def test_workspaces(mode):
    program = """
workspace = ndx.workspace("step", size="4KiB")
def step(by_check):
    with workspace:
        x, y = ndx.ones(3), ndx.ones(3)
        write(address_of(x) + 24)
        if by_check:
            try:
                damages = ndx.memory.check()
            except ndx.MemoryDamageError as error:
                damages = error.damages
            print(json.dumps([[d.kind, d.workspace, d.shape] for d in damages]))
with warnings.catch_warnings(record=True) as told:
    warnings.simplefilter("always")
    if not os.environ["NDX_DEBUG_MEMORY"] == "abort":
        step(True)
    del told[:]
    try:
        step(False)
    except ndx.WorkspaceError as error:
        told.append(warnings.WarningMessage(error, None, None, None))
print(json.dumps([str(each.message) for each in told]))
"""
    if mode == "abort":
        ended = start(mode, program)
        assert ended.returncode == -signal.SIGABRT
        assert "(backend 'host', workspace 'step')" in ended.stderr
        return
    damages, (text,) = run(mode, program)
    assert damages == [["behind", "step", [3]]]
    assert "workspace 'step'" in text
    assert "24 bytes" in text


def test_views_that_outlive_their_array():
    """What a scope retires is shrunk to the exported bytes, and has no guards then."""
    lines = run(
        "raise",
        """
big = 10**6
workspace = ndx.workspace()
with workspace:
    x = ndx.ones(big)
    view = np.asarray(x)[big // 2 : big // 2 + 10]
    del x
assert view.tolist() == [1.0] * 10
del view
gc.collect()
print(json.dumps(found(ndx.memory.check)))
""",
    )
    assert lines == [[]]


@pytest.mark.threads
def test_threads_that_check_and_make_arrays():
    lines = run(
        "raise",
        """
import threading
stop = threading.Event()
def make():
    buffers = []
    while not stop.is_set():
        buffers = [ndx.backends.Buffer("host", n) for n in (24, 9000, 200_000)]
        x = ndx.ones(50) + ndx.ones(50)
threads = [threading.Thread(target=make) for _ in range(4)]
for each in threads:
    each.start()
for _ in range(100):
    assert ndx.memory.check() == []
stop.set()
for each in threads:
    each.join()
print(json.dumps(ndx.memory.check()))
""",
    )
    assert lines == [[]]


@writes_out_of_bounds
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child():
    lines = run(
        "raise",
        """
x = ndx.ones(3)
child = os.fork()
if not child:
    write(address_of(x) + 24)
    print(json.dumps(found(ndx.memory.check)), flush=True)
    os._exit(0)
os.waitpid(child, 0)
print(json.dumps(found(ndx.memory.check)))
""",
    )
    assert lines == [[["behind", 24, 24, "07"]], []]


@pytest.mark.parametrize("value", ["1", "yes", "RAISE"])
def test_a_bad_value(value):
    ended = start(value, "")
    assert ended.returncode == 1
    assert f"NDX_DEBUG_MEMORY={value!r} is not valid; valid are warn" in ended.stderr


def test_a_misspelt_name():
    ended = start("", "", NDX_DEBUG_MEMRY="raise")
    assert "did you mean NDX_DEBUG_MEMORY?" in ended.stderr


def test_without_guards():
    ended = start(
        "", "print(ndx.memory.check(), ndx.backends.get('host').guard_nbytes)"
    )
    assert ended.stdout == "[] 0\n"
    assert "RuntimeWarning: ndx.memory.check() has nothing to compare" in ended.stderr


def test_in_a_debugged_workspace_check_finds_writes():
    import ctypes

    import numpy as np

    workspace = ndx.workspace(debug=True)
    with workspace:
        x = ndx.ones(3)
        ctypes.memset(np.asarray(x).__array_interface__["data"][0] + 24, 7, 1)
        with pytest.raises(ndx.MemoryDamageError, match="behind 24 bytes") as caught:
            memory.check()
        (damage,) = caught.value.damages
        assert (damage.kind, damage.first, damage.workspace) == (
            "behind",
            24,
            workspace.name,
        )
        assert "test_guards.py" in damage.line

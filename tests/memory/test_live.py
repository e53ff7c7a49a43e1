"""What is alive now: every array, and every byte that a backend counts."""

import gc
import json
import os
import re
import subprocess
import sys
import threading
import weakref

import numpy as np
import pytest
from helpers.threads import in_thread, running, wait_until
from hypothesis import given
from hypothesis import strategies as st

import ndx
from ndx import memory
from ndx.backends import HostBackend, MmapBackend


@pytest.fixture
def backend():
    with ndx.use(HostBackend()) as made:
        yield made


def counted(backend):
    return backend.stats()["allocated_bytes"]


def arrays_of(backend):
    return [each for each in memory.live(backend) if each.arrays]


def test_what_is_told_of_an_array(backend):
    x = ndx.zeros((20, 30), dtype="int16")
    (each,) = memory.live(backend)
    assert each.nbytes == 1200
    assert each.shape == (20, 30)
    assert each.dtype == "int16"
    assert each.backend == "host"
    assert each.arrays == 1
    assert each.place == "backend"
    assert each.workspace is each.line is None
    assert each.address == np.asarray(x).ctypes.data
    assert each.age >= 0
    assert not each.exported
    assert each.counted


def test_views_share_their_memory(backend):
    x = ndx.zeros(1000)
    views = [x[3:], x[::2], x.reshape((10, 100))]
    (each,) = memory.live(backend)
    assert (each.nbytes, each.arrays, each.shape) == (8000, 4, (1000,))
    del x
    (each,) = memory.live(backend)
    assert (each.nbytes, each.arrays) == (8000, 3)
    views.clear()
    assert list(memory.live(backend)) == []


def test_small_arrays_and_their_views(backend):
    small = [ndx.ones(n) for n in (1, 2, 6)]
    found = arrays_of(backend)
    assert sorted(each.nbytes for each in found) == [8, 16, 48]
    assert memory.live(backend).nbytes == counted(backend) == 72
    views = [x[:1] for x in small]
    assert memory.live(backend).nbytes == counted(backend) == 72
    small.clear()
    assert memory.live(backend).nbytes == counted(backend) == 72
    del views
    assert memory.live(backend).nbytes == counted(backend) == 0


def test_arrays_without_axes(tmp_path):
    program = (
        "import ndx\n"
        "x = ndx.zeros(())\n"
        "print(*[each.shape for each in ndx.memory.live()])"
    )
    found = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True
    )
    assert found.stdout == "()\n", found.stderr


def test_arrays_without_elements(backend):
    x = ndx.zeros((3, 0))
    (each,) = arrays_of(backend)
    assert (each.nbytes, each.shape) == (0, (3, 0))
    del x


@in_thread
def test_workspaces():
    with ndx.use(HostBackend()) as backend:
        with ndx.workspace("live", size="64KiB"):
            x = ndx.ones(100)
            large = ndx.ones(100_000)
            found = {
                each.place: each for each in memory.live() if each.workspace == "live"
            }
            assert set(found) == {"workspace", "arena", "spilled"}
            assert found["arena"].nbytes == 800
            assert not found["arena"].counted
            assert found["spilled"].nbytes == 800_000
            assert found["workspace"].nbytes == 64 * 1024
            assert memory.live(backend).nbytes == counted(backend)
        (stale,) = {
            each
            for each in memory.live()
            if each.shape == (100,) and each.workspace == "live"
        }
        assert stale.place == "stale"
        assert memory.live(backend).nbytes == counted(backend)
        ndx.workspace("live").destroy()
    assert memory.live(backend).nbytes == counted(backend) == 0
    del x, large


def test_memory_of_other_libraries(backend):
    owner = np.ones(50)
    x = ndx.asarray(owner, copy=False)
    (each,) = memory.live().where(place="foreign", shape=(50,))
    assert each.address == owner.ctypes.data
    assert each.backend is None
    assert not each.counted
    assert memory.live(backend).nbytes == counted(backend) == 0
    del x


def test_results_that_numpy_has_allocated(backend):
    x = ndx.full((64,), 4, dtype="int8").flatten("F")
    (each,) = memory.live(backend)
    assert (each.shape, each.place, each.backend) == ((64,), "backend", "host")
    assert each.nbytes == counted(backend) >= 64
    empty = ndx.asarray([], dtype="uint8")
    assert counted(backend) == each.nbytes
    del x, empty


def test_memory_that_no_array_has(backend):
    x = ndx.ones(1000)
    exported = memoryview(x)
    (each,) = memory.live(backend)
    assert each.exported
    buffer = ndx.backends.Buffer(backend, 5000)
    (other,) = memory.live(backend).where(place="other")
    assert other.nbytes == 5000
    assert memory.live(backend).nbytes == counted(backend) == 13_000
    del buffer
    exported.release()
    del x


def test_a_backend_in_a_file(tmp_path):
    with ndx.use(MmapBackend(directory=tmp_path)) as backend:
        x = ndx.ones(10_000)
        (each,) = memory.live(backend)
        assert (each.nbytes, each.backend) == (80_000, "mmap")
    del x


def test_a_backend_that_lists_nothing():
    with ndx.use(ndx.backends.SimulatedBackend()) as backend:
        x = ndx.ones(1000)
        assert memory.live(backend).nbytes == counted(backend) == 8000
        assert [each.shape for each in memory.live(backend)] == [(1000,)]
    del x


def test_an_adaptor_counts_with_the_backend_inside():
    inside = HostBackend()
    with ndx.use(memory.LimitingAdaptor(inside, "1MiB")) as backend:
        x = ndx.ones(1000)
        assert memory.live(backend).nbytes == 8000
        assert memory.live(inside).nbytes == 8000
    del x


STEPS = st.lists(
    st.tuples(st.sampled_from(["array", "view", "drop", "scope", "export"]),
              st.integers(0, 3000)),
    max_size=25,
)  # fmt: skip


@given(STEPS)
@in_thread
def test_every_byte_is_told(steps):
    with ndx.use(HostBackend()) as backend:
        kept, exports = [], []
        scope = ndx.workspace("told", size=1000)
        for what, number in steps:
            if what == "array":
                kept.append(ndx.empty(number % 40 if number % 3 else number))
            elif what == "view" and kept:
                kept.append(kept[number % len(kept)][: number // 2])
            elif what == "drop" and kept:
                del kept[number % len(kept)]
            elif what == "export" and kept:
                exports.append(memoryview(kept[number % len(kept)]))
            elif what == "scope":
                with scope:
                    kept.append(ndx.empty(number).detach())
                    inside = ndx.empty(number)
                    assert memory.live(backend).nbytes == counted(backend)
                del inside
            found = memory.live(backend)
            assert found.nbytes == counted(backend)
            if not exports:
                assert not found.where(place="other")
        for each in exports:
            each.release()
        del kept
        scope.destroy()
        assert memory.live(backend).nbytes == counted(backend) == 0


def test_what_came_since(backend):
    old = [ndx.ones(100) for _ in range(10)]
    before = memory.live(backend)
    assert list(before - before) == []
    new = ndx.ones((3, 100))
    del old[3:7]
    more = old[0][5:]
    buffer = ndx.backends.Buffer(backend, 700)
    after = memory.live(backend)
    assert [(each.nbytes, each.place) for each in after - before] == [
        (2400, "backend"), (700, "other")]  # fmt: skip
    assert (after - before).nbytes == 3100
    with pytest.raises(TypeError):
        after - [1]
    del buffer
    del new, more


def test_groups_and_parts(backend):
    kept = [ndx.ones(100), ndx.ones((2, 100)), ndx.ones(100, dtype="int8")]
    found = memory.live(backend)
    assert len(found) == 3
    assert [each.nbytes for each in found[1:]] == [800, 100]
    groups = found.by("dtype")
    assert {name: part.nbytes for name, part in groups.items()} == {
        "float64": 2400, "int8": 100}  # fmt: skip
    assert list(groups) == ["float64", "int8"]
    assert found.where(dtype="int8", shape=(100,)).nbytes == 100
    with pytest.raises(AttributeError):
        found.by("colour")
    del kept


def test_tables(backend):
    kept = [ndx.ones((n, 1000)) for n in range(1, 30)]
    found = memory.live(backend)
    lines = str(found).splitlines()
    assert len(lines) == 1 + 20 + 1 + 1
    assert lines[0].split() == ["nbytes", "arrays", "shape", "dtype", "backend",
                                "workspace", "place", "age", "line"]  # fmt: skip
    assert "(29, 1000)" in lines[1]
    assert lines[-2].startswith("and 9 more")
    assert len(found.table(100).splitlines()) == 31
    assert "<pre" in found._repr_html_()
    assert repr(found) == "<Live: 29 pieces, 3.319 MiB>"
    assert json.loads(json.dumps(found.rows()))[0]["shape"] == [29, 1000]
    del kept


def test_the_page(backend, tmp_path):
    memory.track()
    try:
        x = ndx.ones((7, 1000))
    finally:
        memory.track(False)
    path = tmp_path / "<live>.html"
    memory.live(backend).save(path)
    text = path.read_text()
    assert "<td>56000</td>" in text
    assert "<td>(7, 1000)</td>" in text
    assert "in test_the_page" in text
    del x


def make(n):
    return ndx.ones(n)


def test_lines_of_makers(backend):
    before = make(100)
    memory.track(2)
    try:
        x = make(200)
        y = x + x
        view = x[3:]
        small = make(2)
    finally:
        memory.track(False)
    later = make(300)
    found = {each.shape: each.stack for each in memory.live(backend)}
    assert found[(100,)] == found[(300,)] == ()
    makers = [
        [line.split(" in ")[1] for line in each.stack]
        for each in memory.live(backend).where(shape=(200,))
    ]
    assert ["make", "test_lines_of_makers"] in makers
    assert sorted(stack[0] for stack in makers) == ["make", "test_lines_of_makers"]
    assert len(found[(2,)]) == 2
    del before, x, y, view, small, later


def test_an_error_names_the_lines_that_made_most():
    with ndx.use("host", limit="1MiB"):
        before = ndx.ones(10_000)
        memory.track()
        try:
            x = [make(40_000), make(40_000)]
            view = x[0][1:]
            with pytest.raises(ndx.OutOfMemoryError) as caught:
                make(90_000)
        finally:
            memory.track(False)
        with pytest.raises(ndx.OutOfMemoryError) as later:
            make(90_000)
    text = str(caught.value)
    assert re.search(r"2 arrays, +625 KiB: \S*test_live.py:\d+ in make", text)
    assert re.search(r"1 arrays, +78.12 KiB: not known", text)
    assert "in make" not in str(later.value)
    del before, x, view


def test_what_made_arrays_may_end():
    code = compile("x = ndx.ones(3)", "made.py", "exec")
    ended = weakref.ref(code)
    memory.track()
    try:
        exec(code, {"ndx": ndx})
        del code
        gc.collect()
        assert ended() is None
    finally:
        memory.track(False)


@pytest.mark.parametrize("stacks", [-1, "all", 1.5])
def test_bad_numbers_of_lines(stacks):
    with pytest.raises((TypeError, ValueError), match="stacks"):
        memory.track(stacks)


def test_the_environment():
    program = (
        "import ndx\n"
        "x = ndx.ones((5, 5))\n"
        "print(ndx.memory.live().where(shape=(5, 5))[0].line)"
    )

    def run(value):
        return subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "NDX_TRACK": value}, capture_output=True, text=True,
        )  # fmt: skip

    assert run("1").stdout == "<string>:2 in <module>\n"
    assert run("").stdout == "None\n"
    assert "NDX_TRACK='many'" in run("many").stderr


def test_age_is_noted_by_each_look(backend):
    x = ndx.ones(100)
    (first,) = memory.live(backend)
    (second,) = memory.live(backend)
    assert first.age <= second.age
    assert second.age > 0
    y = ndx.ones(1000)
    assert memory.live(backend).where(shape=(1000,))[0].age == 0
    del x, y


def test_it_keeps_nothing_alive(backend):
    x = ndx.ones(1000)
    found = memory.live(backend)
    del x
    assert counted(backend) == 0
    assert len(found) == 1


def test_many_arrays_come_and_go(backend):
    kept = [ndx.empty(1) for _ in range(50_000)]
    assert memory.live(backend).nbytes == counted(backend) == 400_000
    del kept[::2]
    assert len(memory.live(backend)) == 25_000
    kept.clear()
    for _ in range(20_000):
        ndx.empty(1)
    assert len(memory.live(backend)) == 0


def test_while_an_array_is_made(backend):
    """Who has no memory may ask what is alive."""
    told = []
    backend.limit = 100_000

    def look(nbytes):
        told.append(memory.live(backend))

    memory.on_oom(look)
    x = ndx.ones(10_000)
    try:
        with pytest.raises(ndx.OutOfMemoryError):
            ndx.ones(10_000)
    finally:
        memory.remove_on_oom(look)
    assert told
    assert all(found.nbytes == 80_000 for found in told)
    del x


def test_finalizers_see_no_dead_array(backend):
    import weakref

    seen = []
    x = ndx.ones(1000)
    reference = weakref.ref(x, lambda _: seen.append(len(arrays_of(backend))))
    del x
    assert seen == [0]
    del reference


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_child(backend):
    x = ndx.ones(1000)
    process = os.fork()
    if not process:
        y = ndx.ones(500)
        good = memory.live(backend).nbytes == counted(backend) == 12_000
        del y
        os._exit(0 if good else 1)
    assert os.waitpid(process, 0)[1] == 0
    del x


@pytest.mark.threads
def test_other_threads_make_and_drop_arrays(backend):
    stop = threading.Event()

    def work():
        with ndx.use(backend):
            kept = []
            while not stop.is_set():
                kept.append(ndx.empty(len(kept) * 3))
                kept.append(kept[-1][1:])
                if len(kept) > 60:
                    del kept[::2]

    with running(work, work, work):
        before = memory.live(backend)
        for _ in range(50):
            for each in memory.live(backend) - before:
                assert each.nbytes <= 100_000
        stop.set()
    gc.collect()
    assert memory.live(backend).nbytes == counted(backend) == 0


@pytest.mark.threads
def test_threads_that_share_a_table(backend):
    """Without a GIL there are 16 tables: an array may move just after it was added."""
    begin, known = threading.Event(), []

    def work():
        with ndx.use(backend):
            known.append(ndx.empty(7))
            assert begin.wait(30)
            kept = [None] * 5
            for turn in range(30_000):
                kept[turn % 5] = ndx.empty(7)
            known.append(kept)

    def choose_a_table():
        known.append(ndx.empty(7))

    threads = [threading.Thread(target=work)]
    threads += [threading.Thread(target=choose_a_table) for _ in range(15)]
    threads.append(threading.Thread(target=work))
    for number, each in enumerate(threads):
        each.start()
        assert wait_until(lambda number=number: len(known) > number)
    begin.set()
    for each in threads:
        each.join()
    found = memory.live(backend)
    assert found.nbytes == counted(backend)
    assert not found.where(place="other")
    known.clear()
    gc.collect()
    assert list(memory.live(backend)) == []

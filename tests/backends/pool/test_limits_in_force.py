"""No request is granted above a limit in force, from fresh or idle memory alike."""

import gc
import itertools
import threading
import time

import numpy as np
import pytest
from helpers.commands import run_python
from helpers.pools import MAKERS, check, device, host, take
from helpers.sanitizers import counts_pages
from helpers.threads import wait_until
from ndx.backends._budget import process_reserved, resident_nbytes

import ndx
from ndx import memory
from ndx.backends import HostBackend

MIB = 2**20
SIZES = [100, 70_000, 2 * MIB]


@pytest.fixture(autouse=True)
def _no_limits():
    gc.collect()
    memory.empty_cache()
    yield
    memory.set_limit(None, process=None)


def by_backend(backend, nbytes):
    backend.limit = nbytes


def by_ndx(backend, nbytes):
    held = backend.stats()["reserved_bytes"]
    memory.set_limit(None if nbytes is None else process_reserved() - held + nbytes)


def refused(backend, nbytes):
    """Whether a request is refused; None of what is held is passed if it is not."""
    try:
        x = take(backend, nbytes)
    except ndx.OutOfMemoryError:
        return True
    bound = memory.limit()
    assert backend.limit is None or backend.stats()["reserved_bytes"] <= backend.limit
    assert bound is None or process_reserved() <= bound
    x.release()
    return False


# ------------------------------------------------------------------ a limit is lowered


@pytest.mark.parametrize("lower", [by_backend, by_ndx])
@pytest.mark.parametrize("kind", ["split", "round", "naive"])
@pytest.mark.parametrize("nbytes", SIZES)
def test_a_lower_limit_holds_at_once(lower, kind, nbytes):
    backend = host(pool=kind, idle_release=None)
    live = take(backend, MIB)
    for x in [take(backend, each) for each in [*SIZES, 8 * MIB]]:
        x.release()
    held = live.rounded
    lower(backend, held + MIB)
    assert backend.stats()["reserved_bytes"] <= held + MIB
    assert refused(backend, nbytes) == (nbytes > MIB)
    # Below what lives: nothing more, whatever it would be served from.
    lower(backend, held - 1)
    assert backend.idle_nbytes == 0
    assert refused(backend, nbytes)
    lower(backend, None)
    assert not refused(backend, nbytes)
    lower(backend, held // 2)
    live.release()
    assert refused(backend, nbytes) == (nbytes > held // 2)
    lower(backend, None)
    check(backend)


@pytest.mark.parametrize("nbytes", SIZES)
def test_memory_that_is_freed_above_a_limit_is_not_handed_out_again(nbytes):
    backend = host(idle_release=None)
    live = [take(backend, nbytes) for _ in range(80)]
    backend.limit = 4096
    for x in live[:-1]:
        x.release()
    assert refused(backend, nbytes) == (nbytes > 4096)
    live[-1].release()
    assert backend.stats()["reserved_bytes"] <= 4096
    assert refused(backend, nbytes) == (nbytes > 4096)
    check(backend)


@pytest.mark.parametrize("source", sorted(MAKERS))
def test_every_source_keeps_to_a_lower_limit(source):
    backend = MAKERS[source]()
    live = take(backend, 4 * MIB)
    take(backend, 8 * MIB).release()
    backend.limit = 2 * MIB
    with pytest.raises(ndx.OutOfMemoryError):
        take(backend, 100_000)
    live.release()
    if source != "plain device":
        take(backend, 100_000).release()
        assert backend.stats()["reserved_bytes"] <= 2 * MIB
    check(backend)


def test_zero_refuses_everything():
    backend = host()
    take(backend, 100).release()
    for lower in (by_backend, by_ndx):
        lower(backend, 0)
        assert refused(backend, 100)
        lower(backend, None)


def test_a_limit_has_one_home():
    backend = ndx.backends.get("host", limit="64MiB", initial="16MiB")
    backend.limit = "8MiB"
    assert backend.limit == backend.options.limit == backend.stats()["limit"] == 8 * MIB
    assert backend.options.initial == 8 * MIB
    assert memory.info(backend).limit == 8 * MIB
    assert "8388608" in repr(backend)
    backend.limit = None
    assert backend.limit is backend.options.limit is None
    other = host()
    backend._replace_fallback(other)
    assert backend.options.fallback is other
    small = memory.LimitingAdaptor(backend, "1KiB")
    assert small.limit == small.allowed == 1024


@pytest.mark.parametrize("way", ["initial", "reserve", "workspace", "ring", "adaptor"])
def test_what_holds_idle_memory_gives_it_back_for_a_lower_limit(way):
    backend = host(**({"initial": "8MiB"} if way == "initial" else {}))
    if way == "reserve":
        memory.reserve("8MiB", backend)
    elif way == "adaptor":
        take(backend, 8 * MIB).release()
        backend = memory.TrackingAdaptor(backend).upstream
    elif way in ("workspace", "ring"):
        policies = {"reset": "ring", "slots": 2} if way == "ring" else {}
        with ndx.use(backend):
            workspace = ndx.workspace(size="8MiB", **policies)
            for _ in range(2):
                with workspace:
                    ndx.ones(10)
    assert backend.stats()["reserved_bytes"] >= 8 * MIB
    backend.limit = MIB
    if way == "ring":
        # Its arrays are alive until their slot's turn.
        assert refused(backend, 1000)
        workspace.destroy()
    assert backend.stats()["reserved_bytes"] <= MIB
    assert not refused(backend, 1000)


# ------------------------------------------------------------------ a process that grew


@counts_pages
@pytest.mark.parametrize("nbytes", [1000, MIB])
def test_idle_memory_goes_back_where_others_fill_the_process(nbytes):
    backend = host(idle_release=None)
    for x in [take(backend, nbytes) for _ in range(64 * MIB // nbytes)]:
        np.asarray(memoryview(x))[...] = 1
        x.release()
    limit = resident_nbytes() + 32 * MIB
    memory.set_limit(process=limit)
    others = np.ones(8 * MIB)  # 64 MiB
    time.sleep(0.02)
    deadline = time.monotonic() + 10
    while resident_nbytes() > limit + 2 * MIB and time.monotonic() < deadline:
        # Each 16th of fast requests looks at the clock.
        try:
            take(backend, nbytes).release()
        except ndx.OutOfMemoryError:
            break
    assert resident_nbytes() <= limit + 4 * MIB
    more = np.ones(16 * MIB)
    time.sleep(0.02)
    assert any(refused(backend, nbytes) for _ in range(40))
    del others, more
    take(backend, nbytes).release()


# ------------------------------------------------------------------ what is set aside


@pytest.mark.parametrize("way", ["initial", "reserve"])
@pytest.mark.parametrize("make", [host, device])
def test_what_is_set_aside_is_kept_until_it_is_trimmed(way, make):
    backend = make(**({"initial": "32MiB"} if way == "initial" else {}))
    if way == "reserve":
        memory.reserve("32MiB", backend)
    for nbytes in (24, 70_000, 3 * MIB, 40 * MIB, 24):
        take(backend, nbytes).release()
        assert backend.stats()["reserved_bytes"] >= 32 * MIB
    memory.trim(backend)
    assert backend.stats()["reserved_bytes"] == 0


def test_what_is_set_aside_goes_last_for_another_backend():
    one, two = host(initial="8MiB"), host()
    take(two, 8 * MIB).release()
    memory.set_limit(process_reserved() + MIB)
    x = take(host(), 4 * MIB)
    assert one.stats()["reserved_bytes"] >= 8 * MIB
    y = take(host(), 12 * MIB)
    assert one.stats()["reserved_bytes"] < 8 * MIB
    del x, y


# ---------------------------------------------------------------- closed workspaces


def test_the_arena_of_a_closed_workspace_serves_before_an_error():
    backend = host(limit="16MiB")
    with ndx.use(backend):
        workspace = ndx.workspace("closed", size="12MiB")
        with workspace:
            ndx.ones(10)
        assert backend.stats()["idle_arena_bytes"] == 12 * MIB
        assert backend.stats()["cached_bytes"] >= 12 * MIB
        x = ndx.ones(MIB)
        assert workspace.size == 0
        with workspace:
            y = ndx.ones(10)
            assert float(ndx.sum(y)) == 10
        del x

        def has_its_arena():
            with workspace:
                ndx.ones(10)
            return workspace.size == 12 * MIB

        wait_until(has_its_arena)
        workspace.destroy()
    check(backend)


def test_arenas_of_another_pool_serve_a_limit_of_ndx():
    one, two = host(), host()
    with ndx.use(one):
        workspace = ndx.workspace(size="8MiB")
        with workspace:
            ndx.ones(10)
    memory.set_limit(process_reserved() + MIB)
    x = take(two, 6 * MIB)
    assert one.stats()["reserved_bytes"] <= 4 * MIB
    x.release()


def test_arenas_that_are_used_stay():
    backend = host(limit="16MiB")
    with ndx.use(backend):
        with ndx.workspace("open", size="6MiB") as opened:
            x = ndx.ones(10)
            exported = ndx.workspace("read", size="6MiB")
            with exported:
                view = np.asarray(ndx.ones(10))
            with pytest.raises(ndx.OutOfMemoryError) as caught, ndx.no_workspace():
                ndx.ones(MIB)
            assert float(ndx.sum(x)) == view.sum() == 10
            assert opened.size == exported.size == 6 * MIB
        text = str(caught.value)
        assert "6 MiB of 'open', which is open" in text
        assert "6 MiB of 'read', which is closed" in text
        assert "ndx.memory.destroy_all()" in text
        del view
        for each in (opened, exported):
            each.destroy()


def test_an_arena_that_is_set_aside_stays_until_its_first_cycle():
    backend = host(limit="16MiB")
    with ndx.use(backend):
        workspace = ndx.workspace("aside")
        workspace.reserve("12MiB")
        with pytest.raises(ndx.OutOfMemoryError, match="destroy_all"):
            ndx.ones(MIB)
        assert workspace.size == 12 * MIB
        workspace.destroy()


def test_the_makers_are_named_while_a_recording_runs():
    with ndx.use("host", limit="8MiB"), memory.record():
        kept = [ndx.ones(MIB // 8) for _ in range(5)]
        kept.pop()
        with pytest.raises(ndx.OutOfMemoryError) as caught:
            ndx.ones(MIB - 1000)
    text = str(caught.value)
    assert "4 arrays,      4 MiB: " in text
    assert "test_limits_in_force.py" in text.split("by:")[1]


# --------------------------------------------------------------------- time, not counts


@pytest.mark.parametrize("nbytes", [800, 8 * MIB])
def test_idle_memory_goes_back_though_requests_are_few(nbytes):
    backend = host(idle_release=0.1)
    take(backend, 64 * MIB).release()
    count = itertools.count()

    def is_idle_no_more():
        time.sleep(0.02)
        take(backend, nbytes).release()
        next(count)
        return backend.idle_nbytes <= 24 * MIB

    wait_until(is_idle_no_more)
    # 64 requests were one look.
    assert next(count) < 60


def test_a_pool_without_requests_is_looked_at_by_those_of_others():
    idle, busy = host(idle_release=0.1), host()
    take(idle, 64 * MIB).release()

    def is_looked_at():
        take(busy, 100).release()
        return idle.idle_nbytes <= MIB

    wait_until(is_looked_at)


# ------------------------------------------------------------- threads, and what moves


@pytest.mark.threads
def test_limits_that_move_hold_for_threads():
    """Where no limit changed meanwhile, what is held fits after each grant."""
    backend = HostBackend(idle_release=None)
    stop, version, failures = threading.Event(), [0], []

    def work(number):
        rng = np.random.default_rng(number)
        kept = []
        while not stop.is_set():
            before = version[0]
            try:
                kept.append(take(backend, int(rng.choice(SIZES))))
            except ndx.OutOfMemoryError:
                kept.clear()
                continue
            held, limit = backend.stats()["reserved_bytes"], backend.limit
            # An odd version: the limit is being changed.
            same = version[0] == before and before % 2 == 0
            if limit is not None and held > limit and same:
                failures.append((held, limit))
            if len(kept) > 10:
                del kept[:: int(rng.integers(1, 4))]

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for each in threads:
        each.start()
    rng = np.random.default_rng(9)
    for _ in range(100):
        version[0] += 1
        backend.limit = int(rng.integers(0, 32 * MIB))
        version[0] += 1
        time.sleep(0.001)
    stop.set()
    for each in threads:
        each.join()
    assert failures == []
    backend.limit = None
    check(backend)
    assert backend.stats()["allocated_bytes"] == 0


def test_a_forked_child_keeps_to_the_limit_that_is_passed():
    code = """
import os, ndx
from ndx.backends import HostBackend
backend = HostBackend()
with ndx.use(backend):
    live = ndx.ones(2**20)
    x = ndx.ones(100)
    del x
    backend.limit = 2**20
    child = os.fork()
    try:
        ndx.ones(100)
    except ndx.OutOfMemoryError as error:
        assert error.reason == "limit"
    else:
        os._exit(1)
    if child == 0:
        del live
        ndx.ones(100)
        os._exit(0)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
"""
    run_python(code)


# --------------------------------------------------------------- zeros that stay lazy


@counts_pages
def test_recycled_zeros_need_no_memory_until_they_are_written():
    backend = host(idle_release=None)
    with ndx.use(backend):
        x = ndx.zeros(32 * MIB, dtype="uint8")
        x[:8] = 7
        del x
        before = resident_nbytes()
        x = ndx.zeros(32 * MIB, dtype="uint8")
        assert resident_nbytes() < before + 8 * MIB
        assert not ndx.any(x[: 2**16])
        x[...] = 9
        del x
        x = ndx.zeros(32 * MIB - 24, dtype="uint8")
        assert not ndx.any(x)
        del x


@counts_pages
def test_large_recycled_zeros_give_back_what_was_written():
    backend = host(idle_release=None)
    with ndx.use(backend):
        x = ndx.empty(256 * MIB, dtype="uint8")
        x[...] = 9
        del x
        before = resident_nbytes()
        x = ndx.zeros(256 * MIB, dtype="uint8")
        assert resident_nbytes() < before - 200 * MIB
        assert not ndx.any(x[:: 2**12])
        del x


def test_recycled_zeros_in_files_are_zeros(tmp_path):
    with ndx.use("mmap", directory=tmp_path) as backend:
        for nbytes in (48 * MIB + 24, 33 * MIB, 48 * MIB + 24):
            x = ndx.empty(nbytes, dtype="uint8")
            x[...] = 7
            del x
            x = ndx.zeros(nbytes, dtype="uint8")
            assert not ndx.any(x)
            x[...] = 5
            assert int(x[-1]) == 5
            del x
        check(backend)


@counts_pages
def test_memory_that_numpy_freed_goes_back_at_once():
    code = """
import numpy as np
from ndx.backends._budget import resident_nbytes
before = resident_nbytes()
x = np.ones(2**28, "u1")
assert resident_nbytes() > before + 2**27
del x
assert resident_nbytes() < before + 2**27, (resident_nbytes() - before) >> 20
"""
    run_python(f"import ndx\nndx.set_default('host', numpy=True)\n{code}")


# ------------------------------------------------------------------ smaller promises


def test_trim_takes_a_target():
    backend = host()
    with ndx.use(backend):
        workspace = ndx.workspace(size="4MiB")
        with workspace:
            ndx.ones(10)
        take(backend, 8 * MIB).release()
        assert memory.trim(target="6MiB") > 0
        assert 4 * MIB <= backend.stats()["reserved_bytes"] <= 6 * MIB
        assert workspace.size == 4 * MIB
        memory.trim(backend, target=MIB)
        assert backend.stats()["reserved_bytes"] <= MIB
        assert workspace.size == 0
    with pytest.raises(ValueError, match="target"):
        memory.trim(backend, target="lots")

    class Bytes(ndx.backends.PythonBackend):
        def acquire(self, nbytes):
            return bytearray(nbytes)

    with pytest.raises(TypeError, match="has no pool"):
        memory.trim(Bytes(), target=1)
    assert memory.trim(Bytes()) == 0


def test_a_limit_of_a_backend_that_protects_from_nothing_warns():
    with pytest.warns(RuntimeWarning, match="more than the process can have"):
        backend = host(limit="1024TiB")
    with pytest.warns(RuntimeWarning, match="more than the process can have"):
        backend.limit = "512TiB"
    assert backend.limit == 2**49


def test_a_type_of_pool_by_the_environment_in_capitals():
    code = "import ndx; print(ndx.backends.get('host').kind)"
    printed = run_python(code, environment={"NDX_HOST_POOL": "Round"})
    assert printed.strip() == "round"


def test_files_without_descriptors_are_an_error_of_the_system():
    code = """
import os, resource, ndx
hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (3, hard))
try:
    ndx.backends.get("mmap", directory=os.getcwd())
except OSError as error:
    assert error.errno == 24, error
    assert "ulimit -n" in str(error), error
else:
    raise AssertionError
"""
    run_python(code)

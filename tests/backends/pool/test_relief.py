"""Memory is short: only what can help is done, and the error says what is true."""

import gc
import io
import logging
import threading

import pytest
from helpers.commands import run_python
from helpers.examples import examples
from helpers.pools import check, device, files, host, plain_device, take
from helpers.sanitizers import counts_pages
from hypothesis import given
from hypothesis import strategies as st
from ndx.backends._budget import process_reserved

import ndx
from ndx.backends import PooledBackend, PythonBackend, PythonSource
from ndx.backends._pressure import release_others
from ndx.memory import FailureCallbackAdaptor, LimitingAdaptor, LoggingAdaptor

KIB = 2**10
MIB = 2**20


@pytest.fixture
def collections():
    """Count the full collections; Python starts none itself."""
    seen = []

    def note(phase, info):
        if phase == "start":
            seen.append(info["generation"])

    gc.collect()
    gc.disable()
    gc.callbacks.append(note)
    yield seen
    gc.callbacks.remove(note)
    gc.enable()


@pytest.fixture
def process_limit():
    yield lambda more: ndx.memory.set_limit(process_reserved() + more)
    ndx.memory.set_limit(None)


@pytest.fixture
def on_oom():
    added = []

    def add(callback):
        ndx.memory.on_oom(callback)
        added.append(callback)

    yield add
    for callback in added:
        ndx.memory.remove_on_oom(callback)


# ------------------------------------------------------------------- what is done


@pytest.mark.parametrize("make", [host, files, device, plain_device])
@pytest.mark.parametrize("nbytes", [100, 8000, 70_000, MIB])
def test_beyond_a_limit_the_fallback_serves_at_once(make, nbytes, collections):
    # The idle thread, which may look at any time, counts its looks as trims.
    other = host(idle_release=None)
    take(other, 8 * MIB).release()
    limit = max(64 * KIB, 2 * nbytes) // 65536 * 65536
    backend = make(limit=limit, fallback=host(), idle_release=None)
    with ndx.use(backend):
        arrays = []
        while not arrays or arrays[-1].backend is backend:
            arrays.append(ndx.empty(nbytes, dtype="uint8"))
        before = backend.events()["trims"], other.events()["trims"]
        arrays += [ndx.empty(nbytes, dtype="uint8") for _ in range(60)]
        assert {x.backend for x in arrays[-60:]} == {backend.fallback}
        assert (backend.events()["trims"], other.events()["trims"]) == before
        assert collections == []
        assert other.stats()["cached_bytes"] >= 8 * MIB
        del arrays
    check(backend)


def test_what_is_larger_than_a_limit_starts_no_collection(collections):
    for backend in (
        host(limit="64KiB"),
        device(capacity="1MiB"),
        host(pool="arena", initial="64KiB"),
    ):
        with pytest.raises(ndx.OutOfMemoryError) as caught:
            take(backend, 2 * MIB)
        assert caught.value.reason == "size"
    assert collections == []


def test_a_collection_frees_what_only_a_cycle_holds():
    with ndx.use("host", limit="1MiB"):
        cycle = [ndx.empty(MIB, dtype="uint8")]
        cycle.append(cycle)
        del cycle
        assert ndx.empty(MIB, dtype="uint8").nbytes == MIB


def test_other_pools_keep_their_idle_memory_where_it_would_not_help(process_limit):
    ndx.memory.empty_cache()
    other, disk = host(), files()
    for pool in (other, disk):
        take(pool, 4 * MIB).release()
    small = host(limit="1MiB")
    kept = take(small, MIB)
    full = device(capacity="1MiB")
    kept_too = take(full, MIB)
    for backend in (small, full):
        with pytest.raises(ndx.OutOfMemoryError):
            take(backend, 1000)
    process_limit(0)
    # All that is idle would not be enough.
    ndx.memory.set_limit(process_reserved() + MIB)
    with pytest.raises(ndx.OutOfMemoryError) as caught:
        take(host(), 900 * MIB)
    assert caught.value.reason == "ndx"
    assert other.stats()["cached_bytes"] >= 4 * MIB
    # It is enough; files are not what that limit is on.
    x = take(host(), 4 * MIB + 100_000)
    assert other.stats()["cached_bytes"] < MIB
    assert disk.stats()["cached_bytes"] >= 4 * MIB
    for each in (kept, kept_too, x):
        each.release()


def test_a_full_disk_is_relieved_by_files_of_the_same_disk(tmp_path):
    one, other = (ndx.backends.get("mmap", directory=tmp_path) for _ in range(2))
    memory = host()
    for pool in (other, memory):
        take(pool, 4 * MIB).release()
    assert one.resource == other.resource != memory.resource
    # As if that disk were too small for both.
    assert release_others(one, MIB, "source") >= 4 * MIB
    assert other.stats()["cached_bytes"] < MIB
    assert memory.stats()["cached_bytes"] >= 4 * MIB


def test_a_machine_that_is_full_is_relieved_by_pools_of_its_memory():
    memory, disk = host(), files()
    for pool in (memory, disk):
        take(pool, 4 * MIB).release()

    class Full(PythonSource):
        """A source that has what others give back."""

        def acquire(self, nbytes):
            if memory.stats()["cached_bytes"] > MIB:
                raise MemoryError
            return bytearray(nbytes)

    take(PooledBackend(Full()), 100_000).release()
    assert memory.stats()["cached_bytes"] < MIB
    assert disk.stats()["cached_bytes"] >= 4 * MIB


def test_a_pool_gives_back_no_more_of_its_own_than_it_must(process_limit):
    backend = host(idle_release=None)
    live = [take(backend, MIB) for _ in range(16)]
    for x in live[::2]:
        x.release()
    process_limit(0)
    # All 8 MiB are idle, in pieces that do not serve.
    live = [*live[1::2], take(backend, 2 * MIB)]
    assert 5 * MIB <= backend.idle_nbytes <= 6 * MIB + 64 * KIB
    check(backend, live)


def test_another_pool_gives_what_a_pool_has_not(process_limit):
    ndx.memory.empty_cache()
    other = host(idle_release=None)
    take(other, 8 * MIB).release()
    process_limit(MIB)
    x = take(device(), 3 * MIB)
    assert other.idle_nbytes <= 6 * MIB
    x.release()


def test_a_fallback_serves_through_an_adaptor():
    backend = host(limit="64KiB", fallback=device())
    adaptor = LoggingAdaptor(backend, io.StringIO())
    with ndx.use(adaptor):
        x = ndx.ones(100_000)
        assert float(ndx.sum(x)) == 100_000
        assert adaptor.stats()["allocated_bytes"] == 800_000
        assert backend.fallback.stats()["allocated_bytes"] == 800_000
        del x
    assert adaptor.stats()["allocated_bytes"] == 0
    assert backend.fallback.stats()["allocated_bytes"] == 0
    adaptor.close()


def test_a_fallback_is_pressed_for_what_it_is_short_of(process_limit):
    ndx.memory.empty_cache()
    idle = host()
    take(idle, 4 * MIB).release()
    backend = files(limit="64KiB", fallback=device())
    process_limit(MIB)
    x = take(backend, 3 * MIB)
    assert idle.stats()["cached_bytes"] < 4 * MIB
    x.release()


@examples(25)
@given(
    st.sampled_from([None, 64 * KIB, 256 * KIB, MIB]),
    st.sampled_from([None, 256 * KIB, MIB]),
    st.lists(st.integers(0, 6), max_size=25),
)
def test_the_limits_hold_and_nothing_is_lost(own, whole, steps):
    """Requests of all sizes, with and without fallbacks, at limits of two kinds."""
    ndx.memory.empty_cache()
    backends = [
        host(limit=own),
        files(limit=own, fallback=host(limit=64 * KIB)),
        device(limit=own, capacity="2MiB", fallback=files(limit=64 * KIB)),
    ]
    start = process_reserved()
    ndx.memory.set_limit(None if whole is None else start + whole)
    live, reasons = [], set()
    try:
        for number, step in enumerate(steps):
            backend = backends[number % 3]
            if step == 6 and live:
                live.pop(0).release()
                continue
            try:
                live.append(take(backend, 10 ** (step + 1)))
            except ndx.OutOfMemoryError as error:
                reasons.add(error.reason)
            for each in backends:
                if own is not None:
                    assert each.stats()["reserved_bytes"] <= own
            if whole is not None:
                assert process_reserved() <= start + whole
    finally:
        ndx.memory.set_limit(None)
        for each in live:
            each.release()
    assert reasons <= {"limit", "ndx", "size", "source"}
    for each in backends:
        check(each)


# --------------------------------------------------------------- callbacks of users


def test_a_callback_that_needs_memory_is_not_called_for_that(on_oom):
    asked = []

    def greedy(nbytes):
        asked.append(nbytes)
        return bool(ndx.ones(900_000).size)

    on_oom(greedy)
    with ndx.use("host", limit="8MiB"):
        kept = ndx.ones(900_000)
        with pytest.raises(ndx.OutOfMemoryError, match="its limit is 8 MiB"):
            ndx.ones(900_000)
        assert asked == [7_200_000]
        # It is called again the next time.
        with pytest.raises(ndx.OutOfMemoryError):
            ndx.ones(900_000)
        del kept
    assert asked == [7_200_000] * 2


@pytest.mark.threads
def test_a_callback_in_another_thread_is_called_all_the_same(on_oom):
    asked = []

    def work():
        with pytest.raises(ndx.OutOfMemoryError):
            take(host(limit="64KiB"), 70_000)

    def start(nbytes):
        asked.append(threading.get_ident())
        if len(asked) == 1:
            thread = threading.Thread(target=work)
            thread.start()
            thread.join()
        return False

    on_oom(start)
    with pytest.raises(ndx.OutOfMemoryError):
        take(host(limit="64KiB"), 70_000)
    assert len(asked) == len(set(asked)) == 2


def test_a_callback_may_raise_the_limit(on_oom):
    backend = host(limit="64KiB")

    def more(nbytes):
        backend.limit = "1MiB"
        return True

    on_oom(more)
    take(backend, 100_000).release()


def test_the_callback_of_an_adaptor_may_use_the_adaptor():
    asked = []

    def greedy(nbytes):
        asked.append(nbytes)
        return bool(ndx.ones(900_000).size)

    adaptor = FailureCallbackAdaptor(host(limit="8MiB"), greedy)
    with ndx.use(adaptor):
        kept = ndx.ones(900_000)
        with pytest.raises(ndx.OutOfMemoryError):
            ndx.ones(900_000)
        del kept
        assert ndx.ones(10).size == 10
    assert len(asked) == 1


# ------------------------------------------------------------------ what is said


class Refusing(PythonBackend):
    """A backend whose memory is out."""

    def acquire(self, nbytes):
        """Refuse."""
        raise MemoryError


def message(backend, nbytes, reason):
    with pytest.raises(ndx.OutOfMemoryError) as caught:
        take(backend, nbytes) if isinstance(backend, PooledBackend) else (
            ndx.empty(nbytes, dtype="uint8"))  # fmt: skip
    assert caught.value.reason == reason
    assert caught.value.requested == nbytes
    return str(caught.value)


def test_a_limit_is_named_only_where_it_refused(tmp_path, process_limit):
    text = message(
        ndx.backends.get("mmap", directory=tmp_path, limit="4PiB"), 2**50, "size"
    )
    assert f"the file system of {str(tmp_path)!r} has" in text
    assert "its limit" not in text
    text = message(device(capacity="1MiB", limit="8MiB"), 2 * MIB, "size")
    assert "its device has 1 MiB in all" in text
    assert "limit" not in text
    full = device(capacity="1MiB", limit="8MiB")
    kept = take(full, 512 * KIB)
    text = message(full, 600 * KIB, "source")
    assert "its device has 512 KiB free of 1 MiB" in text
    assert "limit" not in text
    kept.release()
    ndx.memory.empty_cache()
    process_limit(MIB)
    text = message(host(limit="100MiB"), 200 * MIB, "size")
    assert "its limit is 100 MiB" in text
    text = message(host(limit="100MiB"), 64 * MIB, "ndx")
    assert "the limit of ndx is" in text
    assert "ndx.memory.set_limit" in text
    assert "its limit" not in text


def test_a_full_arena_says_so():
    with ndx.use("host", pool="arena", initial="1MiB") as backend:
        kept = ndx.ones(100_000)
        text = message(backend, 800_000, "arena")
        assert "its arena of 1 MiB has no room for it" in text
        assert "initial=..." in text
        assert "the system" not in text
        del kept
    assert "its arena of 1 MiB" in message(backend, 2 * MIB, "size")


def test_the_system_and_backends_that_give_no_reason():
    with ndx.use(Refusing()) as backend:
        assert "the system has no more" in message(backend, 100, "system")
    with ndx.use(Refusing(limit="1KiB")) as backend:
        assert "its limit is 1 KiB" in message(backend, 2000, "size")
        assert "the system has no more" in message(backend, 100, "system")


def test_more_than_the_machine_has():
    assert "more than the machine has" in message(host(), 2**60, "size")


def test_an_adaptor_speaks_of_itself():
    upstream = host()
    kept = take(upstream, 5000)
    adaptor = LimitingAdaptor(LoggingAdaptor(upstream, io.StringIO()), "1KiB")
    with ndx.use(adaptor):
        x = ndx.ones(100)
        text = message(adaptor, 1000, "adaptor")
        assert "its LimitingAdaptor lets no more than 1 KiB (1024 bytes)" in text
        assert "it has 800 B in 1 arrays" in text
        assert "larger bound" in text
        assert "reserved" not in text
        assert "all ranges of the backend 'host' that is behind it" in text
        assert "limit=" not in text
        del x
    outer = LoggingAdaptor(adaptor, io.StringIO())
    with ndx.use(outer):
        assert "its LimitingAdaptor" in message(outer, 2000, "adaptor")
    kept.release()


def test_a_fallback_that_refuses_is_named_with_its_own_reason():
    last = device(capacity="1MiB")
    text = message(host(limit="64KiB", fallback=last), 2 * MIB, "size")
    assert "its limit is 64 KiB" in text
    assert "Nor can 'simulated': its device has 1 MiB in all" in text
    assert "fallback=" not in text


def test_files_are_named_where_they_would_do():
    remedy = "ndx.use('host', fallback='mmap')"
    assert remedy in message(host(limit="64KiB"), MIB, "size")
    assert remedy not in message(host(limit="64KiB"), 2**60, "size")
    text = message(files(limit="64KiB"), MIB, "size")
    assert "fallback" not in text
    with ndx.use(Refusing()) as backend:
        assert "fallback" not in message(backend, 100, "system")


@pytest.mark.skipif(not hasattr(threading, "get_native_id"), reason="needs Linux")
@counts_pages
def test_thousands_of_pools_have_room():
    """Each reserves address space in advance: of all that there is, not all."""
    code = """
import ndx
arrays = []
for _ in range(9000):
    with ndx.use("host", limit="1MiB"):
        arrays.append((ndx.empty(100), ndx.empty(10_000)))
sizes = [s["total_size"] for x in (arrays[0], arrays[-1])
         for s in x[1].backend.snapshot()]
print(len(arrays), max(sizes[:2]) > 4 * max(sizes[2:]))
"""
    assert run_python(code).split() == ["9000", "True"]


@counts_pages
def test_the_address_space_that_is_rationed_is_named():
    code = """
import resource, sysconfig
# Without a GIL, CPython's allocator reserves much itself.
limit = 2**32 if sysconfig.get_config_var("Py_GIL_DISABLED") else 2**30
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
import ndx
try:
    x = ndx.empty(limit, dtype="uint8")
except ndx.OutOfMemoryError as error:
    print(error.reason, "ulimit -v" in str(error))
"""
    assert run_python(code).split() == ["system", "True"]


def test_slow_steps_are_logged(caplog):
    caplog.set_level(logging.INFO, "ndx")
    backend = host(limit=MIB)
    kept = take(backend, KIB)
    assert not caplog.messages
    with pytest.raises(ndx.OutOfMemoryError):
        take(backend, MIB)
    assert caplog.messages == [
        f"{backend!r} is short of memory (limit): {MIB} bytes were asked for"
    ]
    del kept


def test_a_handler_that_fails_breaks_no_request(caplog, monkeypatch):
    seen = []
    monkeypatch.setattr("sys.unraisablehook", lambda each: seen.append(each.exc_value))
    monkeypatch.setattr(caplog.handler, "emit", lambda record: 1 / 0)
    caplog.set_level(logging.INFO, "ndx")
    with pytest.raises(ndx.OutOfMemoryError):
        take(host(limit=MIB), 2 * MIB - 1)
    assert [type(each) for each in seen] == [ZeroDivisionError]

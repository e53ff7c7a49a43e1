"""Code of the user that runs inside an allocation: backends, sources, hooks in Python.

It may use NumPy, and whatever it gives or does wrong is an error that names it.
"""

import contextlib
import ctypes
import gc
import os
import threading
import weakref

import numpy as np
import pytest
from helpers.threads import run_in_thread, running
from hypothesis import given
from hypothesis import strategies as st

import ndx
from ndx.backends import HostBackend, PooledBackend, PythonBackend, PythonSource
from ndx.memory import Adaptor, FailureCallbackAdaptor


class NumPySource(PythonSource):
    def acquire(self, nbytes):
        return np.empty(nbytes, dtype=np.uint8)

    def discard(self, buffer):
        np.empty(10).fill(0)


class NumPyBackend(PythonBackend):
    acquire, discard = NumPySource.acquire, NumPySource.discard


class NumPyAdaptor(Adaptor):
    def before(self, nbytes):
        return np.empty(nbytes).size >= 0

    def allocated(self, nbytes, address):
        np.empty(nbytes)

    def released(self, nbytes, address):
        np.empty(nbytes)


def hooked():
    backend = HostBackend()
    backend.add_hook(lambda action, nbytes, address: np.empty(nbytes))
    return backend


BACKENDS = {
    "backend": NumPyBackend,
    "source": lambda: PooledBackend(NumPySource()),
    "source without a cache": lambda: PooledBackend(NumPySource(), pool="unpooled"),
    "adaptor": lambda: NumPyAdaptor(HostBackend()),
    "failure callback": lambda: FailureCallbackAdaptor(
        HostBackend(limit="256KiB"), lambda nbytes: np.empty(nbytes).size < 0
    ),
    "hook": hooked,
}
CALLS = {
    "sort": lambda: ndx.sort(ndx.asarray([2.0, 1.0])),
    "inv": lambda: ndx.linalg.inv(ndx.asarray([[2.0, 0.0], [0.0, 4.0]])),
    "lists": lambda: ndx.asarray([[2.0, 1.0]]),
    "index": lambda: ndx.arange(4.0)[ndx.asarray([1, 2])],
    "fft": lambda: ndx.fft.fft(ndx.ones(8)),
}


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("kind", BACKENDS)
def test_numpy_arrays_in_callbacks_are_numpys_own(kind, call):
    want = np.asarray(CALLS[call]())
    with ndx.use(BACKENDS[kind]()):
        got = CALLS[call]()
    assert np.array_equal(np.asarray(got), want)
    del got
    gc.collect()


@pytest.mark.parametrize("kind", BACKENDS)
def test_numpys_own_arrays_on_a_backend_that_uses_numpy(kind):
    with ndx.use(BACKENDS[kind](), numpy=True) as backend:
        array = np.ones(1000)
        assert array.sum() == 1000
        assert backend.stats()["allocated_bytes"] >= array.nbytes
        small = np.arange(3) + 1
        assert backend.stats()["allocated_count"] == 2
        # The handler is ndx's again, as before the callback.
        del array, small
    assert backend.stats()["allocated_count"] == 0


def test_what_on_oom_calls_uses_numpys_own_memory():
    seen = []
    with ndx.use("host", limit="1MiB", numpy=True) as backend:
        held = np.ones(100_000)

        def callback(nbytes):
            seen.append(np.zeros(100_000).nbytes)
            return False

        ndx.memory.on_oom(callback)
        try:
            with pytest.raises(MemoryError):
                np.ones(100_000)
        finally:
            ndx.memory.remove_on_oom(callback)
        del held
        assert backend.stats()["allocated_count"] == 0
    assert seen == [800_000] * len(seen)
    assert seen


# ------------------------------------------------------------ what acquire may not give

READ_ONLY = np.zeros(4096, dtype=np.uint8)
READ_ONLY.flags.writeable = False
WRONG = {
    "None": (lambda n: None, "returned None"),
    "an int": (lambda n: n, "returned an object of type int"),
    "bytes": (bytes, "returned an object of type bytes"),
    "read-only": (lambda n: READ_ONLY, "returned an object of type ndarray"),
    "strided": (lambda n: np.empty(2 * n, np.uint8)[::2], "object of type ndarray"),
    "short": (lambda n: bytearray(n - 1), "returned a buffer of"),
    "objects": (lambda n: np.empty(n // 8 + 1, object), "a buffer of objects"),
    "records": (lambda n: np.empty(n // 8 + 1, [("a", "O")]), "a buffer of objects"),
    "references": (
        lambda n: (ctypes.py_object * (n // 8 + 1))(),
        "a buffer of objects",
    ),
    "strings": (
        lambda n: np.empty(n // 16 + 1, np.dtypes.StringDType()),
        "object of type ndarray",
    ),
}


def make_backend(acquire, discard):
    methods = {"acquire": acquire, "discard": discard}
    return type("Odd", (PythonBackend,), methods)()


def make_pool(acquire, discard):
    methods = {"acquire": acquire, "discard": discard}
    return PooledBackend(type("Odd", (PythonSource,), methods)())


@pytest.mark.parametrize("make", [make_backend, make_pool])
@pytest.mark.parametrize("wrong", WRONG)
def test_what_acquire_gives_wrong_is_named(make, wrong):
    give, match = WRONG[wrong]
    given_back = []
    backend = make(lambda _, n: give(n), lambda _, buffer: given_back.append(buffer))
    with ndx.use(backend):
        with pytest.raises((TypeError, ValueError), match=match) as caught:
            ndx.ones(10)
        assert "Odd" in str(caught.value)
        assert "acquire(" in str(caught.value)
        assert "writable, contiguous" in str(caught.value)
    # What was given is given back, once.
    assert len(given_back) == (wrong != "None")
    stats = backend.stats()
    assert stats["allocated_count"] == stats["reserved_bytes"] == 0


EXPECTED = (TypeError, ValueError, MemoryError, KeyError)


@given(st.lists(st.sampled_from([*WRONG, "right", "refuses", "raises"]), max_size=12))
def test_failures_of_acquire_change_nothing(turns):
    plan = iter([])

    def acquire(self, nbytes):
        turn = next(plan, "right")
        if turn == "refuses":
            raise MemoryError
        if turn == "raises":
            raise KeyError(turn)
        return WRONG[turn][0](nbytes) if turn in WRONG else np.empty(nbytes, np.uint8)

    for make in (make_backend, make_pool):
        plan = iter([each for each in turns for _ in range(1 + (each == "refuses"))])
        backend = make(acquire, lambda _, buffer: None)
        kept = []
        with ndx.use(backend):
            for _ in turns:
                with contextlib.suppress(*EXPECTED):
                    kept.append(ndx.full(300_000, 7.0))
        assert all(float(ndx.sum(x)) == 2_100_000 for x in kept)
        assert backend.stats()["allocated_count"] == len(kept)
        del kept
        backend.trim()
        assert backend.stats()["reserved_bytes"] == 0


def test_names_of_fields_are_no_references():
    """Of a record: their letters are not those of a format."""
    backend = make_backend(
        lambda _, n: np.empty(n, [("O", "u1")]), lambda _, buffer: None
    )
    with ndx.use(backend):
        assert float(ndx.sum(ndx.ones(10))) == 10


# -------------------------------------------- callbacks that come back to their own


@pytest.mark.parametrize("where", ["acquire", "discard"])
def test_a_source_that_makes_arrays_on_its_own_pool(where, monkeypatch):
    failures = []
    monkeypatch.setattr("sys.unraisablehook", lambda hook: failures.append(hook))

    class Source(PythonSource):
        def acquire(self, nbytes):
            if where == "acquire":
                ndx.zeros(nbytes)
            return bytearray(nbytes)

        def discard(self, buffer):
            if where == "discard":
                ndx.zeros(2 * len(buffer))

    match = "source 'Source' made an array .* it serves itself"
    with ndx.use(PooledBackend(Source(), pool="unpooled")):
        if where == "acquire":
            with pytest.raises(RuntimeError, match=match):
                ndx.ones(10)
        else:
            x = ndx.ones(10)
            del x
            assert "it serves itself" in str(failures[0].exc_value)


@pytest.mark.parametrize("action", ["allocate", "free"])
def test_a_hook_that_makes_arrays_on_its_own_pool(action, monkeypatch):
    failures = []
    monkeypatch.setattr("sys.unraisablehook", lambda hook: failures.append(hook))
    backend = HostBackend()

    def hook(each, nbytes, address):
        if each == action:
            ndx.ones(nbytes)

    backend.add_hook(hook)
    with ndx.use(backend):
        if action == "allocate":
            with pytest.raises(RuntimeError, match="a hook of backend 'host' made an"):
                ndx.ones(10)
        else:
            x = ndx.ones(10)
            del x
            assert "a hook of backend 'host' made an" in str(failures[0].exc_value)
        backend.remove_hook(hook)
        assert backend.stats()["allocated_count"] == 0
        assert float(ndx.sum(ndx.ones(10))) == 10


def test_hooks_may_drop_arrays_of_their_own_pool():
    kept, seen = [], []
    backend = HostBackend()
    with ndx.use(backend):
        kept.extend([ndx.ones(3), ndx.ones(4)])

    def hook(action, nbytes, address):
        seen.append((action, nbytes))
        if kept:
            kept.pop()

    backend.add_hook(hook)
    with ndx.use(backend):
        ndx.ones(5)
    assert sorted(seen) == [("allocate", 40), ("free", 24), ("free", 32), ("free", 40)]


@pytest.mark.threads
def test_other_threads_use_a_source_while_it_acquires():
    inside, go_on = threading.Event(), threading.Event()

    class Source(PythonSource):
        def acquire(self, nbytes):
            if threading.current_thread() is not threading.main_thread():
                inside.set()
                assert go_on.wait(60)
            return bytearray(nbytes)

    backend = PooledBackend(Source(), pool="unpooled")

    def other():
        with ndx.use(backend):
            results.append(float(ndx.sum(ndx.ones(10))))

    results = []
    thread = threading.Thread(target=other)
    thread.start()
    try:
        assert inside.wait(60)
        with ndx.use(backend):
            results.append(float(ndx.sum(ndx.ones(20))))
    finally:
        go_on.set()
        thread.join()
    assert results == [20.0, 10.0]


def fail(*args):
    raise KeyError("as it may")


class FailingAdaptor(Adaptor):
    released = fail


@pytest.mark.parametrize("kind", ["adaptor", "hook"])
def test_what_fails_at_a_release_is_reported_as_it_was_raised(kind, monkeypatch):
    failures = []
    monkeypatch.setattr("sys.unraisablehook", failures.append)
    backend = HostBackend()
    if kind == "adaptor":
        backend = FailingAdaptor(backend)
    with ndx.use(backend):
        x = ndx.ones(10)
        if kind == "hook":
            backend.add_hook(fail)
        del x
    [failure] = failures
    assert failure.exc_type is KeyError
    assert failure.exc_value.args == ("as it may",)
    assert failure.object is backend
    assert failure.exc_traceback is not None


@pytest.mark.threads
def test_a_limit_counts_what_discard_still_has():
    inside, go_on = threading.Event(), threading.Event()

    class Slow(PythonBackend):
        def acquire(self, nbytes):
            return bytearray(nbytes)

        def discard(self, buffer):
            inside.set()
            assert go_on.wait(60)

    backend = Slow(limit=1000)

    def make_and_drop():
        with ndx.use(backend):
            ndx.ones(100)

    with running(make_and_drop):
        try:
            assert inside.wait(60)
            assert backend.stats()["allocated_count"] == 0
            assert backend.stats()["reserved_bytes"] == 800
            with ndx.use(backend), pytest.raises(ndx.OutOfMemoryError, match="limit"):
                ndx.ones(100)
        finally:
            go_on.set()
    assert backend.stats()["reserved_bytes"] == 0


@pytest.mark.parametrize("kind", ["backend", "source"])
def test_the_text_of_a_refusal_is_in_the_error(kind):
    def acquire(self, nbytes):
        raise MemoryError("the quota is used up")

    make = make_backend if kind == "backend" else make_pool
    backend = make(acquire, lambda _, buffer: None)
    for used in (backend, ndx.memory.Adaptor(backend)):
        with ndx.use(used), pytest.raises(ndx.OutOfMemoryError) as caught:
            ndx.ones(10)
        assert "it says: the quota is used up, and" in str(caught.value)
        assert type(caught.value.__cause__) is MemoryError
        assert str(caught.value.__cause__) == "the quota is used up"


def test_a_refusal_without_a_text():
    def acquire(self, nbytes):
        raise MemoryError from OSError("why")

    with ndx.use(make_backend(acquire, None)), pytest.raises(MemoryError) as caught:
        ndx.ones(10)
    assert "the system has no more" in str(caught.value)
    assert str(caught.value.__cause__.__cause__) == "why"


def test_a_refusal_keeps_nothing_alive():
    class Small(PythonSource):
        def acquire(self, nbytes):
            try:
                return bytearray(min(nbytes, 200_000) if refused else bytes)
            except TypeError as error:
                refused.append(nbytes)
                raise MemoryError from error

    refused = []
    source = Small()
    backend = PooledBackend(source)
    with ndx.use(backend):
        x = ndx.ones(10)
    assert refused
    del x
    source = weakref.ref(source)
    gc.disable()
    try:
        del backend
        assert source() is None
    finally:
        gc.enable()


@pytest.mark.threads
@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
@pytest.mark.parametrize("make", [make_backend, make_pool])
def test_a_forked_child_knows_no_threads_of_its_parent(make):
    inside, go_on = threading.Event(), threading.Event()
    parent, main = os.getpid(), threading.main_thread()

    def acquire(self, nbytes):
        if os.getpid() == parent and threading.current_thread() is not main:
            inside.set()
            assert go_on.wait(60)
        return bytearray(nbytes)

    backend = make(acquire, lambda _, buffer: None)

    def use():
        with ndx.use(backend):
            return float(ndx.sum(ndx.ones(1000)))

    with running(use):
        try:
            assert inside.wait(60)
            if (child := os.fork()) == 0:
                status = 1
                with contextlib.suppress(BaseException):
                    # Threads of the child get the idents of those of the parent.
                    status = 0 if run_in_thread(use) == 1000 else 2
                os._exit(status)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        finally:
            go_on.set()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_a_fork_inside_acquire_stays_inside():
    found = []

    def acquire(self, nbytes):
        if not found:
            found.append(None)
            if (child := os.fork()) == 0:
                status = 1
                try:
                    ndx.ones(3)
                except RuntimeError as error:
                    status = 0 if "made an array in this very" in str(error) else 2
                os._exit(status)
            found[0] = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        return bytearray(nbytes)

    with ndx.use(make_backend(acquire, lambda _, buffer: None)):
        ndx.ones(3)
    assert found == [0]


class Named(PythonBackend):
    """Has attributes of the names that adaptors and pools have."""

    def __init__(self, *, limit=None):
        self.fallback = "host"
        self.arrays = 0

    def acquire(self, nbytes):
        return bytearray(nbytes)


class BehindItself(Named):
    @property
    def upstream(self):
        return self


@pytest.mark.parametrize("kind", [Named, BehindItself])
def test_attributes_of_a_backend_are_its_own(kind):
    backend = kind(limit="1KiB")
    if kind is Named:
        backend.upstream = "host"
    with ndx.use(backend), pytest.raises(ndx.OutOfMemoryError, match="limit is 1 KiB"):
        ndx.ones(10**6)

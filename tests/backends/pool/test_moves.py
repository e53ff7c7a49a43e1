"""Memory that another thread moves just now, into the pool or out of it, is awaited."""

import threading

import pytest
from helpers.pools import take
from helpers.threads import wait_until

import ndx
from ndx.backends import PooledBackend, PythonSource
from ndx.memory import FailureCallbackAdaptor

MIB = 2**20


class Gate(PythonSource):
    """A source whose work takes as long as its gate is shut."""

    def __init__(self):
        self.open = threading.Event()
        self.open.set()
        self.waiting = 0

    def wait(self):
        self.waiting += 1
        self.open.wait()
        self.waiting -= 1

    def acquire(self, nbytes):
        self.wait()
        return bytearray(nbytes)

    def discard(self, buffer):
        self.wait()


@pytest.fixture
def gate():
    source = Gate()
    yield source
    source.open.set()


class Asked(threading.Thread):
    """A request of a thread of its own: what it got, or why it was refused."""

    def __init__(self, ask):
        super().__init__(daemon=True)
        self.ask = ask
        self.reason = None
        self.start()

    def run(self):
        try:
            self.got = self.ask()
        except ndx.OutOfMemoryError as error:
            self.reason = error.reason

    def result(self):
        self.join(60)
        assert not self.is_alive()
        assert self.reason is None
        return self.got

    def refusal(self):
        self.join(60)
        assert not self.is_alive()
        return self.reason


def refusals(backend):
    return backend.events()["refusals"]


def test_a_first_segment_on_its_way_is_awaited(gate):
    backend = PooledBackend(gate, limit=2 * MIB)
    gate.open.clear()
    first = Asked(lambda: take(backend, 1000))
    wait_until(lambda: gate.waiting)
    others = [Asked(lambda: take(backend, 1000)) for _ in range(3)]
    wait_until(lambda: refusals(backend) >= 3)
    gate.open.set()
    ranges = [x.result() for x in (first, *others)]
    stats = backend.stats()
    assert len({x.address for x in ranges}) == 4
    assert stats["system_allocations"] == 1
    assert stats["peak_reserved_bytes"] <= 2 * MIB
    assert backend.relief()["out_of_memory_errors"] == 0


def check_awaited(gate, backend, give_back):
    """Check that a request is served by memory that another thread gives back."""
    gate.open.clear()
    other = Asked(give_back)
    wait_until(lambda: gate.waiting)
    request = Asked(lambda: take(backend, MIB))
    wait_until(lambda: refusals(backend))
    gate.open.set()
    assert request.result().nbytes == MIB
    assert backend.stats()["peak_reserved_bytes"] <= backend.limit
    return other.result()


def test_memory_that_a_trim_gives_back_is_awaited(gate):
    backend = PooledBackend(gate, limit=4 * MIB, pool="naive")
    take(backend, 4 * MIB).release()
    assert check_awaited(gate, backend, backend.trim) == 4 * MIB


def test_memory_of_a_pool_without_a_cache_is_awaited(gate):
    backend = PooledBackend(gate, limit=MIB, pool="unpooled")
    check_awaited(gate, backend, take(backend, MIB).release)


def test_what_could_not_do_is_not_awaited(gate):
    backend = PooledBackend(gate, limit=2 * MIB, pool="naive")
    held = take(backend, MIB)
    gate.open.clear()
    other = Asked(lambda: take(backend, MIB))
    wait_until(lambda: gate.waiting)
    assert Asked(lambda: take(backend, 3 * MIB // 2)).refusal() == "limit"
    gate.open.set()
    assert other.result().nbytes == MIB
    held.release()


def test_patience_has_an_end(gate):
    backend = PooledBackend(gate, limit=2 * MIB)
    gate.open.clear()
    other = Asked(lambda: take(backend, 1000))
    wait_until(lambda: gate.waiting)
    assert Asked(lambda: take(backend, 1000)).refusal() == "limit"
    gate.open.set()
    assert other.result().nbytes == 1000


def test_an_adaptor_is_not_told_of_what_is_awaited(gate):
    told = []
    backend = PooledBackend(gate, limit=2 * MIB)
    adaptor = FailureCallbackAdaptor(backend, told.append)
    gate.open.clear()
    first = Asked(lambda: take(backend, 1000))
    wait_until(lambda: gate.waiting)

    def ask():
        with ndx.use(adaptor):
            return ndx.empty(1000, dtype="uint8")

    request = Asked(ask)
    wait_until(lambda: refusals(backend))
    gate.open.set()
    first.result()
    assert request.result().nbytes == 1000
    assert told == []

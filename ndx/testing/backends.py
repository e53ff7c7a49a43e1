"""Backends for tests, and the suite of tests that every backend must pass.

A new backend needs only ``class TestMine(BackendContract)`` with a ``make`` method. It
runs under pytest.
"""

import gc
import itertools

import numpy as np

import ndx
from ndx._lib.background import BackgroundThread

try:
    import pytest
except ImportError as error:
    msg = "ndx.testing.backends is for pytest: pip install pytest"
    raise ImportError(msg) from error

__all__ = ["BackendContract", "ByteArrayBackend", "FailingBackend"]

KIB = 1024
# Around the borders of size classes and of backends' caches.
SIZES = (1, 7, 63, 64, 65, 128, 1000, 1024, 1025, 4097, 65536, 65537, 200_000)


class ByteArrayBackend(ndx.backends.PythonBackend):
    """A backend over bytearrays that checks how it is used.

    Attributes
    ----------
    acquired, discarded : int
        The number of buffers acquired and discarded.

    Examples
    --------
    >>> import ndx
    >>> backend = ByteArrayBackend()
    >>> with ndx.use(backend):
    ...     x = ndx.ones(3)
    >>> del x
    >>> backend.acquired, backend.discarded
    (1, 1)
    """

    def __init__(self, *, limit=None):
        super().__init__(limit=limit)
        self.acquired = self.discarded = 0
        self.held = {}

    def acquire(self, nbytes):
        """Return a dirty bytearray with a few more bytes than asked for."""
        buffer = bytearray(b"\xa5" * (nbytes + 3))
        self.acquired += 1
        self.held[id(buffer)] = buffer
        return buffer

    def discard(self, buffer):
        """Take a bytearray back, which must be one of its own."""
        # Raises if something still holds its buffer.
        self.held.pop(id(buffer)).clear()
        self.discarded += 1


class FailingBackend(ByteArrayBackend):
    """A backend that refuses all requests from one on.

    Parameters
    ----------
    fail_at : int, optional
        The first refused request, counted from 0; all later ones are refused, too.
        None: never.

    Notes
    -----
    Run an operation with ``fail_at`` = 0, 1, 2, ... until it succeeds: each of its
    allocations has then failed once.
    """

    def __init__(self, *, fail_at=None, limit=None):
        super().__init__(limit=limit)
        self.fail_at = fail_at

    def acquire(self, nbytes):
        """Return a bytearray, or refuse."""
        if self.fail_at is not None and self.acquired >= self.fail_at:
            raise MemoryError
        return super().acquire(nbytes)


def address(x):
    """Return the address of an array's first element."""
    return np.asarray(x).__array_interface__["data"][0]


class BackendContract:
    """The tests for every backend; derive from it and define `make`."""

    def make(self, **options):
        """Return a new backend; `options` may hold ``limit``."""
        raise NotImplementedError

    def test_is_a_backend_with_a_name(self):
        backend = self.make()
        assert isinstance(backend, ndx.backends.Backend)
        assert backend.name
        assert repr(backend.name) in repr(backend)
        assert backend.limit is None
        assert backend.device == "cpu"

    def test_ranges_are_aligned_and_apart(self):
        backend = self.make()
        with ndx.use(backend):
            arrays = [ndx.empty(n, dtype="uint8") for n in SIZES for _ in range(3)]
        starts = [address(x) for x in arrays]
        assert all(start % 64 == 0 for start in starts)
        ranges = sorted((s, s + x.nbytes) for s, x in zip(starts, arrays, strict=True))
        for (_, end), (start, _) in itertools.pairwise(ranges):
            assert end <= start

    def test_ranges_keep_their_values(self):
        backend = self.make()
        rng = np.random.default_rng(0)
        live = {}
        with ndx.use(backend):
            for number in range(300):
                if live and rng.random() < 0.5:
                    value = rng.choice(list(live))
                    x = live.pop(value)
                    assert (np.asarray(x) == value % 251).all()
                else:
                    size = int(rng.integers(1, 3000))
                    live[number] = ndx.full(size, number % 251, dtype="uint8")
        for value, x in live.items():
            assert (np.asarray(x) == value % 251).all()

    def test_zero_means_zero_in_dirty_memory(self):
        backend = self.make()
        with ndx.use(backend):
            for size in SIZES:
                dirty = [ndx.full(size, 255, dtype="uint8") for _ in range(3)]
                del dirty
                for _ in range(3):
                    x = ndx.zeros(size, dtype="uint8")
                    assert not np.asarray(x).any()

    def test_counters(self):
        backend = self.make()
        with ndx.use(backend):
            x = ndx.empty(1000, dtype="uint8")
            y = ndx.empty(5000, dtype="uint8")
            stats = backend.stats()
            assert stats["allocated_bytes"] == 6000
            assert stats["allocated_count"] == 2
            assert stats["total_allocations"] == 2
            assert stats["reserved_bytes"] >= 6000
            assert stats["limit"] is None
            del x
            stats = backend.stats()
            assert stats["allocated_bytes"] == 5000
            assert stats["peak_bytes"] == 6000
            assert stats["peak_count"] == 2
            assert stats["peak_reserved_bytes"] >= 6000
            backend.reset_peak()
            assert backend.stats()["peak_bytes"] == 5000
            assert backend.stats()["peak_count"] == 1
            del y
        stats = backend.stats()
        assert stats["allocated_bytes"] == stats["allocated_count"] == 0
        assert stats["total_allocations"] == 2
        backend.trim()
        stats = backend.stats()
        assert stats["reserved_bytes"] == 0
        assert stats["system_allocations"] == stats["system_frees"]

    def test_no_elements_cost_nothing(self):
        backend = self.make()
        with ndx.use(backend):
            x = ndx.zeros((0, 5))
            assert x.backend is backend
            assert (x + x).shape == (0, 5)
        assert backend.stats()["total_allocations"] == 0

    def test_views_share_a_range(self):
        backend = self.make()
        with ndx.use(backend):
            x = ndx.zeros((10, 10))
        view = x[2:5].T
        assert view.backend is backend
        assert backend.stats()["allocated_count"] == 1
        del x
        assert backend.stats()["allocated_count"] == 1
        del view
        assert backend.stats()["allocated_count"] == 0

    def test_the_limit_is_exact(self):
        limit = 64 * KIB
        backend = self.make(limit=limit)
        assert backend.limit == limit
        with ndx.use(backend):
            x = ndx.empty(limit, dtype="uint8")
            assert backend.stats()["reserved_bytes"] <= limit
            with pytest.raises(ndx.OutOfMemoryError):
                ndx.empty(1, dtype="uint8")
            del x
            with pytest.raises(ndx.OutOfMemoryError):
                ndx.empty(limit + 1, dtype="uint8")
            ndx.empty(limit, dtype="uint8")
        assert backend.stats()["peak_reserved_bytes"] <= limit

    def test_the_limit_holds_through_many_sizes(self):
        limit = 50 * KIB
        backend = self.make(limit=limit)
        rng = np.random.default_rng(1)
        live = []
        with ndx.use(backend):
            for _ in range(150):
                try:
                    live.append(ndx.empty(int(rng.integers(1, 9000)), dtype="uint8"))
                except ndx.OutOfMemoryError:
                    del live[:: int(rng.integers(1, 3))]
                assert backend.stats()["reserved_bytes"] <= limit
        assert backend.stats()["peak_reserved_bytes"] <= limit

    def test_a_limit_as_a_string(self):
        assert self.make(limit="1.5MiB").limit == 3 * 512 * KIB

    def test_a_limit_of_zero_refuses_all(self):
        with ndx.use(self.make(limit=0)):
            ndx.zeros(0)
            with pytest.raises(ndx.OutOfMemoryError):
                ndx.zeros(1)

    @pytest.mark.parametrize(
        ("limit", "error"),
        [
            (-1, ValueError),
            ("12 parsecs", ValueError),
            ("", ValueError),
            (2**64, ValueError),
            (1.5, TypeError),
            (True, TypeError),
        ],
    )
    def test_a_bad_limit(self, limit, error):
        with pytest.raises(error, match="limit"):
            self.make(limit=limit)

    def test_refusal_changes_nothing_and_says_all(self):
        backend = self.make(limit="1MiB")
        with ndx.use(backend):
            kept = ndx.ones(1000)
            before = backend.stats()
            with pytest.raises(ndx.OutOfMemoryError) as caught:
                ndx.zeros(2**20)
            assert backend.stats() == before
        error = caught.value
        assert isinstance(error, MemoryError)
        assert error.requested == 8 * 2**20
        assert error.allocated == 8000
        assert 8000 <= error.reserved <= 2**20
        assert error.limit == 2**20
        assert error.backend == backend.name
        for part in (repr(backend.name), "8 MiB", "8388608 bytes", "1 MiB", "1 arrays"):
            assert part in str(error)
        assert kept.tolist() == [1.0] * 1000

    def test_beyond_the_address_space(self):
        backend = self.make()
        with ndx.use(backend), pytest.raises(ndx.OutOfMemoryError):
            ndx.empty(2**62, dtype="uint8")
        assert backend.stats()["reserved_bytes"] == 0
        with ndx.use(backend), pytest.raises(ValueError, match="address space"):
            ndx.empty(2**62)

    def test_garbage_is_collected_before_a_refusal(self):
        class Node:
            pass

        with ndx.use(self.make(limit=100 * KIB)):
            node = Node()
            node.self, node.array = node, ndx.zeros(80 * KIB, dtype="uint8")
            del node
            assert ndx.zeros(80 * KIB, dtype="uint8").nbytes == 80 * KIB

    def test_a_backend_lives_as_long_as_its_arrays(self):
        with ndx.use(self.make()):
            x = ndx.ones(1000)
        gc.collect()
        view = x[::2]
        del x
        assert ndx.sum(view).item() == 500.0

    def test_numpy_results_are_adopted(self):
        backend = self.make()
        with ndx.use(backend):
            x = ndx.ones(100)[np.arange(50)]
        assert x.backend is backend
        assert backend.stats()["allocated_count"] == 1
        assert x.tolist() == [1.0] * 50
        del x
        assert backend.stats()["allocated_count"] == 0

    def test_a_workspace_settles(self):
        backend = self.make()
        workspace = ndx.workspace(backend=backend)
        for cycle in range(4):
            before = backend.stats()["total_allocations"]
            with workspace:
                x = ndx.ones(1000)
                assert ndx.sum(x * 2 + x).item() == 3000.0
                assert x.backend is backend
            if cycle:
                assert backend.stats()["total_allocations"] == before
        del workspace, x
        gc.collect()
        assert backend.stats()["allocated_count"] == 0

    def test_threads(self):
        backend = self.make()
        failures = []

        def work(seed):
            rng = np.random.default_rng(seed)
            live = []
            with ndx.use(backend):
                for _ in range(200):
                    x = ndx.full(int(rng.integers(1, 2000)), seed, dtype="uint8")
                    live.append(x)
                    if len(live) > 5:
                        y = live.pop(int(rng.integers(5)))
                        if not (np.asarray(y) == seed).all():
                            failures.append(seed)

        threads = [BackgroundThread(target=work, args=(seed,)) for seed in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not failures
        stats = backend.stats()
        assert stats["allocated_bytes"] == stats["allocated_count"] == 0
        assert stats["total_allocations"] == 800

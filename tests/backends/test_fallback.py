"""A range knows the backend that served it: every way that gives it back goes there."""

import io

import numpy as np
import pytest
from helpers.examples import examples
from helpers.pools import Bytes, check, device, files, host
from hypothesis import given
from hypothesis import strategies as st

import ndx
from ndx.backends import Buffer
from ndx.memory import LimitingAdaptor, LoggingAdaptor, TrackingAdaptor

KIB = 2**10
MIB = 2**20
LIMIT = 64 * KIB


def live(backend):
    return backend.stats()["allocated_bytes"]


@pytest.mark.parametrize("make", [host, files, device, Bytes])
def test_what_a_fallback_serves_is_the_fallbacks_in_every_respect(make):
    backend = host(limit=LIMIT, fallback=make())
    with ndx.use(backend):
        x = ndx.full(MIB, 3, dtype="uint8")
        view = np.asarray(x[10:20])
        assert x.backend is backend.fallback
        del x
        # An export keeps the range, of which whole pages may have gone back.
        assert view.tolist() == [3] * 10
        del view
    assert live(backend) == live(backend.fallback) == 0


@pytest.mark.parametrize("make", [host, device, Bytes])
def test_a_range_for_another_library_names_the_backend_that_served(make):
    backend = host(limit=LIMIT, fallback=make())
    small, large = Buffer(backend, 100), Buffer(backend, MIB)
    assert small.backend is backend
    assert large.backend is backend.fallback
    assert large.rounded == (0 if make is Bytes else MIB)
    large.record_use(1)
    large.release()
    small.release()
    assert live(backend) == live(backend.fallback) == 0


@pytest.mark.parametrize("adaptors", [1, 2, 3])
def test_adaptors_see_what_a_fallback_serves_and_pass_it_back(adaptors):
    backend = around = host(limit=LIMIT, fallback=LimitingAdaptor(host(), 4 * MIB))
    for _ in range(adaptors):
        around = TrackingAdaptor(around)
    with ndx.use(around):
        arrays = [ndx.full(n, 5, dtype="uint8") for n in (100, MIB, MIB + 1, 200)]
        assert {x.backend for x in arrays} == {around}
        assert live(around) == 2 * MIB + 301
        assert live(backend.fallback) == 2 * MIB + 1
        view = np.asarray(arrays[1])[:7]
        del arrays
        assert view.tolist() == [5] * 7
        assert live(around) == MIB
        del view
    assert live(around) == live(backend) == live(backend.fallback) == 0
    assert around.outstanding() == []


def test_an_adaptor_that_refuses_a_range_of_a_fallback_gives_it_back():
    class Picky(LoggingAdaptor):
        def allocated(self, nbytes, address):
            raise KeyError(nbytes)

    backend = host(limit=LIMIT, fallback=host())
    with ndx.use(Picky(backend, io.StringIO())) as adaptor:
        for nbytes in (100, MIB):
            with pytest.raises(KeyError):
                ndx.empty(nbytes, dtype="uint8")
    assert live(adaptor) == live(backend) == live(backend.fallback) == 0


@pytest.mark.parametrize("config", [{}, {"learn": "liveness"}, {"reset": "ring"}])
def test_an_arena_that_a_fallback_serves_is_the_fallbacks(config):
    backend = host(limit=LIMIT, fallback=host())
    workspace = ndx.workspace(size=MIB, backend=backend, **config)
    for _ in range(3):
        with workspace:
            x = ndx.ones(1000)
            assert x.backend is backend.fallback
            kept = np.asarray(x[5:9])
    assert live(backend.fallback) >= MIB
    workspace.destroy()
    # The outgrown arena lives for as long as foreign code reads it.
    assert live(backend.fallback) >= MIB
    assert kept.tolist() == [1.0] * 4
    del kept, x
    assert live(backend) == live(backend.fallback) == 0


@examples(40)
@given(st.lists(st.integers(1, 3 * LIMIT), max_size=12), st.integers(0, 12))
def test_what_escapes_goes_back_to_the_backend_that_took_it(sizes, dropped):
    """Survivors are copied to a backend at its limit: some to its fallback."""
    backend = host(limit=LIMIT, fallback=device())
    inner = host()
    with ndx.use(backend):
        with ndx.workspace(size=4 * MIB, escape="detach", backend=inner):
            arrays = [ndx.full(n, n % 251, dtype="uint8") for n in sizes]
        for x in arrays:
            assert x.backend in (backend, backend.fallback)
            assert x.nbytes <= LIMIT or x.backend is backend.fallback
            assert x.tolist() == [x.nbytes % 251] * x.nbytes
        assert live(backend) + live(backend.fallback) == sum(sizes)
        del arrays[:dropped]
        x = None
        assert live(backend) + live(backend.fallback) == sum(sizes[dropped:])
        del arrays
    check(backend)
    check(backend.fallback)
    assert live(backend) == live(backend.fallback) == 0

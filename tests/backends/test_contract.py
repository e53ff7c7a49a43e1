"""All backends of ndx pass the contract, and so do its pools of every type."""

import mmap

import pytest

import ndx
from ndx.backends import HostBackend, PooledBackend, PythonSource, SimulatedBackend
from ndx.testing.backends import BackendContract, ByteArrayBackend


class TestHost(BackendContract):
    def make(self, **options):
        return HostBackend(**options)


class TestRound(BackendContract):
    def make(self, **options):
        return HostBackend(pool="round", **options)

    # Its 80 KiB are 128 KiB here, beyond the test's limit.
    test_garbage_is_collected_before_a_refusal = None


class TestNaive(BackendContract):
    def make(self, **options):
        return HostBackend(pool="naive", **options)


class TestUnpooled(BackendContract):
    def make(self, **options):
        return HostBackend(pool="unpooled", **options)


class TestDevice(BackendContract):
    def make(self, **options):
        return SimulatedBackend(page=512, **options)


class TestPlainDevice(BackendContract):
    def make(self, **options):
        return SimulatedBackend(page=0, **options)


class TestByteArrays(BackendContract):
    def make(self, **options):
        return ByteArrayBackend(**options)


class Maps(PythonSource):
    def acquire(self, nbytes):
        try:
            return mmap.mmap(-1, nbytes)
        except (OSError, OverflowError) as error:
            raise MemoryError from error

    def discard(self, buffer):
        buffer.close()


class TestPythonSource(BackendContract):
    def make(self, **options):
        return PooledBackend(Maps(), **options)

    def test_takes_only_sources(self):
        with pytest.raises(TypeError, match="Source, not int"):
            PooledBackend(3)


@pytest.mark.parametrize("make", [HostBackend, SimulatedBackend])
@pytest.mark.parametrize(
    ("options", "error", "match"),
    [
        ({"pool": "best"}, ValueError, "'best'.*split, round, naive, unpooled, arena"),
        ({"pool": 3}, ValueError, "pool=3"),
        ({"pool": "arena"}, ValueError, "initial= or limit="),
        ({"idle_release": -1}, ValueError, "idle_release"),
        ({"idle_release": "soon"}, ValueError, "idle_release"),
        ({"reserve_fraction": 1}, ValueError, "reserve_fraction"),
        ({"reserve_fraction": -0.1}, ValueError, "reserve_fraction"),
        ({"initial": "x"}, ValueError, "initial"),
        ({"colour": "red"}, TypeError, "colour"),
    ],
)
def test_bad_options(make, options, error, match):
    with pytest.raises(error, match=match):
        make(**options)


def test_base_classes_are_refused():
    for base in (ndx.backends.Backend, ndx.backends.PythonBackend):
        with pytest.raises(TypeError, match=r"base class.*host"):
            ndx.use(base())
        with pytest.raises(TypeError, match="base class"):
            ndx.set_default(base())


def test_a_python_backend_is_called_as_its_class():
    assert ByteArrayBackend().name == "ByteArrayBackend"


@pytest.mark.parametrize("where", ["acquire", "discard"])
def test_a_backend_that_makes_arrays_in_itself(where):
    class Selfish(ByteArrayBackend):
        def acquire(self, nbytes):
            if where == "acquire":
                ndx.zeros(3)
            return super().acquire(nbytes)

        def discard(self, buffer):
            super().discard(buffer)
            if where == "discard":
                with pytest.raises(RuntimeError, match="made an array in this very"):
                    ndx.zeros(3)

    with ndx.use(Selfish()):
        if where == "acquire":
            with pytest.raises(RuntimeError, match="made an array in this very"):
                ndx.ones(3)
        else:
            x = ndx.ones(3)
            del x

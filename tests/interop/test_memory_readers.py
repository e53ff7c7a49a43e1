"""Whoever reads an array's memory reads the numbers that are in it, or refuses.

The table of docs/interop.md that says who shares the memory is made of these tests.
"""

import contextlib
import ctypes
import gc
import io
import socket
import struct
import warnings
from collections import Counter

import numpy as np
import pytest
from helpers.memory_readers import READERS, arrays, combinations, numbers
from helpers.numpy_versions import since

import ndx


@pytest.fixture(autouse=True)
def _quietly():
    """Let readers warn of read-only memory, of old spellings, and of empty arrays."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def reader_of(name):
    reader = READERS[name]
    module = pytest.importorskip(reader.package)
    if reader.package == "jax":
        module.config.update("jax_enable_x64", True)
    return reader


def attempt(reader, x):
    """Return what a reader makes of an array, and the numbers in it; or its error."""
    try:
        made = reader.take(x)
    except Exception as error:
        return error, None
    if isinstance(made, float | complex):
        return made, np.array(made)
    return made, np.array(reader.now(made))


def assert_right(reader, found, a):
    """Check that what was read is what is read of the NumPy array `a`."""
    made, expected = attempt(reader, a)
    if isinstance(made, Exception) or expected.dtype == object:
        # NumPy's array is refused, or put into a sequence as an object.
        assert found.ravel().tolist() == a.ravel().tolist()
        return
    if not reader.empties and not a.size:
        assert not found.size
        return
    np.testing.assert_array_equal(found, expected, strict=True)


def outcome(reader, a, x, memory):
    """Return what a reader does with an array: how it refuses, shares or copies."""
    made, found = attempt(reader, x)
    if isinstance(made, Exception):
        assert not isinstance(made, MemoryError | SystemError), made
        return type(made).__name__
    assert_right(reader, found, a)
    if not x.size:
        return "takes it"
    # Other numbers, of which a reader that shares the memory must see all.
    other = numbers(x.dtype, memory.shape)[..., ::-1] if memory.ndim else 0
    memory[...] = other * 0 if memory.size < 2 or memory.dtype == bool else other
    after = np.array(reader.now(made))
    if np.array_equal(after, found):
        return "copies"
    assert_right(reader, after, np.array(x))
    return "shares"


@pytest.mark.parametrize(("name", "layout"), combinations(READERS))
def test_readers_see_the_numbers_or_refuse(name, layout, record_property):
    reader = reader_of(name)
    outcomes = Counter()
    for dtype in reader.dtypes:
        for a, x, memory in arrays(layout, dtype):
            outcomes[outcome(reader, a, x, memory)] += 1
    done = [found for found in ("shares", "copies", "takes it") if outcomes[found]]
    record_property("reader", name)
    record_property("layout", layout)
    record_property("outcome", " or ".join(done) or outcomes.most_common(1)[0][0])


@pytest.mark.parametrize("name", READERS)
def test_readers_see_a_number_or_refuse(name):
    """A number is read as NumPy's scalar is, or as an array without axes."""
    reader = reader_of(name)
    for dtype in reader.dtypes:
        if dtype == "bool" and not since("bools of NumPy are no integers"):
            continue
        a = numbers(dtype, (12,))
        made, found = attempt(reader, ndx.asarray(a)[5])
        if isinstance(made, Exception):
            assert not isinstance(made, MemoryError | SystemError), made
            continue
        scalar, expected = attempt(reader, a[5])
        if isinstance(scalar, Exception) or expected.dtype == object:
            assert found.ravel().tolist() == [a[5].item()]
        else:
            assert found.tolist() == expected.tolist()


def one(dtype="float64"):
    return ndx.asarray(numbers(dtype, (12,)), copy=True)


@pytest.mark.costly
@pytest.mark.parametrize("dropped", [True, False])
@pytest.mark.parametrize("name", READERS)
def test_memory_of_a_workspace_stays_while_it_is_read(name, dropped):
    """Also that of readers who give the buffer back, and go on reading."""
    reader = reader_of(name)
    for dtype in ("float64", "uint8"):
        with ndx.workspace("readers", size="4KiB") as workspace:
            x = one(dtype)
            made, found = attempt(reader, x)
            if dropped:
                del x
        for _ in range(3):
            with ndx.workspace("readers"):
                ndx.full(1000, 0xAA, dtype="uint8")
        if not isinstance(made, Exception):
            np.testing.assert_array_equal(np.array(reader.now(made)), found)
        del made
        gc.collect()
        workspace.destroy()


@pytest.mark.parametrize("name", READERS)
def test_memory_is_not_released_while_it_is_read(name):
    reader = reader_of(name)
    backend = ndx.backends.get("host")
    with ndx.use(backend):
        x = one()
        made, found = attempt(reader, x)
        try:
            x.close()
        except BufferError:
            return  # it is read
        backend.trim()
        others = [ndx.full(12, 0.5) for _ in range(20)]
        if not isinstance(made, Exception):
            np.testing.assert_array_equal(np.array(reader.now(made)), found)
        del others


@pytest.mark.parametrize("name", READERS)
def test_readers_of_files_see_the_numbers_or_refuse(name, tmp_path):
    reader = reader_of(name)
    a = numbers("float64", (12,))
    ndx.save(tmp_path / "x.npy", ndx.asarray(a))
    content = (tmp_path / "x.npy").read_bytes()
    made, found = attempt(reader, ndx.open(tmp_path / "x.npy"))
    if not isinstance(made, Exception):
        assert_right(reader, found, a)
        write_if_possible(made)
    assert (tmp_path / "x.npy").read_bytes() == content


def write_if_possible(made):
    """Try to write to the first element: never a crash."""
    with contextlib.suppress(
        TypeError, ValueError, IndexError, KeyError, AttributeError
    ):
        made[0] = made[1]


def received(x):
    one, other = socket.socketpair()
    with one, other:
        one.sendall(bytes(8))
        return other.recv_into(x, 8)


WRITERS = {
    "file.readinto": lambda x: io.BytesIO(bytes(8)).readinto(x),
    "socket.recv_into": received,
    "struct.pack_into": lambda x: struct.pack_into("d", x, 0, 0.0),
    "ctypes.from_buffer": lambda x: (ctypes.c_char * 8).from_buffer(x),
    "memoryview": lambda x: memoryview(x).__setitem__(0, 0.0),
    "np.asarray": lambda x: np.asarray(x).__setitem__(0, 0.0),
    "np.from_dlpack": lambda x: np.from_dlpack(x).__setitem__(0, 0.0),
    "np.ndarray": lambda x: np.ndarray((12,), "f8", x).__setitem__(0, 0.0),
    "np.copyto": lambda x: np.copyto(np.asarray(x), 0.0),
}


@pytest.mark.parametrize("name", WRITERS)
def test_read_only_memory_is_not_written_to(name, tmp_path):
    ndx.save(tmp_path / "x.npy", one())
    for x in (ndx.open(tmp_path / "x.npy"), ndx.asarray(np.frombuffer(bytes(one())))):
        with pytest.raises((TypeError, ValueError, BufferError)):
            WRITERS[name](x)
        assert x.tolist() == one().tolist()

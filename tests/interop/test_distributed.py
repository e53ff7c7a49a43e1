"""distributed sends NDArrays without copies, and counts their bytes."""

import pickle
import subprocess
import sys

import numpy as np
import pytest
from helpers.commands import run_python
from helpers.consumers import FEATURES

import ndx
from ndx.testing import assert_equal

pytest.importorskip("distributed")

from dask.sizeof import sizeof
from distributed.protocol import deserialize, dumps, loads, serialize, to_serialize

LAYOUTS = {
    "C": lambda x: x,
    "Fortran": lambda x: x.T,
    "scalar": lambda x: x[0, 0],
    "empty": lambda x: x[:0, :],
    "one row": lambda x: x[3, :],
    "not contiguous": lambda x: x[::2, 1:],
    "repeated rows": lambda x: ndx.broadcast_to(x[0, :], (5, 4)),
    "repeated columns": lambda x: ndx.broadcast_to(x[:, :1], (30, 7)),
    "one element repeated": lambda x: ndx.broadcast_to(x[0, 0], (3, 4, 5)),
    "4 axes": lambda x: ndx.permute_dims(ndx.reshape(x, (2, 15, 2, 2)), (3, 0, 2, 1)),
}
SHARED = ["C", "Fortran", "one row", "repeated rows", "one element repeated"]


def made(layout, dtype=ndx.float64):
    return LAYOUTS[layout](ndx.astype(ndx.asarray(FEATURES * 9), dtype))


@pytest.mark.parametrize("layout", LAYOUTS)
def test_arrays_arrive_as_they_were(layout):
    x = made(layout)
    found = deserialize(*serialize(x))
    assert isinstance(found, ndx.NDArray)
    assert_equal(found, x)


@pytest.mark.parametrize(
    "dtype", ["bool", "int8", "uint16", "int64", "float32", "complex64", "complex128"]
)
def test_all_dtypes_arrive(dtype):
    x = made("C", np.dtype(dtype))
    found = deserialize(*serialize(x))
    assert found.dtype == x.dtype
    assert_equal(found, x)


@pytest.mark.parametrize("layout", SHARED)
def test_frames_are_the_memory_of_the_array(layout):
    x = made(layout)
    before = ndx.memory.stats("host")["total_allocations"]
    header, frames = serialize(x)
    assert header["serializer"] == "dask"
    assert ndx.memory.stats("host")["total_allocations"] == before
    (frame,) = frames
    assert np.shares_memory(np.frombuffer(frame, np.uint8), np.asarray(x))


def test_repeated_elements_are_sent_once():
    _, (frame,) = serialize(made("repeated rows"))
    assert frame.nbytes == 4 * 8
    _, (frame,) = serialize(made("one element repeated"))
    assert frame.nbytes == 8


def test_a_frame_pins_the_memory():
    with ndx.workspace("step", size="1KiB"):
        x = ndx.ones(16)
        _, (frame,) = serialize(x)
        del x
    with ndx.workspace("step"):
        ndx.zeros(100)
        assert np.frombuffer(frame).tolist() == [1.0] * 16
        del frame


def test_arrays_in_files_are_copied(tmp_path):
    """Their readers would get SIGBUS if the file were cut short."""
    with ndx.use("mmap", directory=tmp_path):
        x = ndx.asarray(FEATURES, copy=True)
    header, (frame,) = serialize(x)
    assert not np.shares_memory(np.frombuffer(frame, np.uint8), np.asarray(x))
    assert_equal(deserialize(header, [frame]), FEATURES)


@pytest.mark.parametrize("layout", ["C", "Fortran", "repeated rows"])
def test_arrays_arrive_in_the_current_backend(layout):
    header, frames = serialize(made(layout))
    with ndx.use("host", limit="1MiB") as backend, ndx.workspace("step"):
        found = deserialize(header, frames)
        assert found.backend is backend
        assert not found.attached
        assert not np.shares_memory(
            np.frombuffer(frames[0], np.uint8), np.asarray(found)
        )
        assert backend.stats()["allocated_bytes"] == frames[0].nbytes
    if layout == "C":
        found[...] = 0.0


def test_an_array_that_does_not_fit_is_refused():
    header, frames = serialize(ndx.zeros(10_000))
    with ndx.use("host", limit="64KiB"), pytest.raises(ndx.OutOfMemoryError):
        deserialize(header, frames)


def test_stale_arrays_are_refused():
    with ndx.workspace("step"):
        x = ndx.ones(3)
    with pytest.raises(TypeError) as caught:
        serialize(x, on_error="raise")
    assert isinstance(caught.value.__cause__, ndx.StaleArrayError)


COLLECTIONS = {
    "list": lambda x: [x, x + 1],
    "dict": lambda x: {"total": x, "n": 3},
    "nested": lambda x: {"parts": [(x, "a"), (x[::2], "b")]},
    "bound": lambda x: {("a", 1): x},
}


@pytest.mark.parametrize("name", COLLECTIONS)
@pytest.mark.parametrize("compression", [None, "zlib"])
def test_messages_of_arrays(name, compression):
    """In pieces, as on a wire, and compressed or not."""
    value = COLLECTIONS[name](ndx.asarray(np.arange(30_000.0)))
    frames = dumps(
        {"data": to_serialize(value)},
        context={"compression": compression},
        frame_split_size=50_000,
    )
    found = loads([bytes(frame) for frame in frames])["data"]
    assert pickle.dumps(found) == pickle.dumps(value)


def test_size_in_bytes_is_that_of_the_memory():
    x = ndx.zeros((10, 10))
    assert sizeof(x) == sizeof(x[:, :]) == 800
    assert sizeof(ndx.broadcast_to(ndx.zeros(10), (50, 10))) == 80
    assert sizeof(ndx.broadcast_to(ndx.zeros((0, 1)), (0, 10))) == 0
    assert sizeof([x, x[:5, :]]) >= 1200


def test_sizes_of_stale_arrays():
    with ndx.workspace("step"):
        x = ndx.ones(3)
        y = ndx.broadcast_to(x, (5, 3))
    assert sizeof(x) == sizeof(y) == 24


@pytest.mark.parametrize("first", ["ndx, distributed", "distributed, ndx"])
def test_the_order_of_imports_is_free(first):
    code = (
        f"import {first}; from distributed.protocol import serialize;"
        "from dask.sizeof import sizeof;"
        "print(serialize(ndx.ones(3))[0]['serializer'], sizeof(ndx.ones(3)))"
    )
    command = [sys.executable, "-W", "error", "-c", code]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("dask 24\n", "")


def test_ndx_imports_neither_dask_nor_distributed():
    found = run_python(
        """
        import sys, ndx
        print({"dask", "distributed", "tornado"} & set(sys.modules))
        """
    )
    assert found == "set()\n"

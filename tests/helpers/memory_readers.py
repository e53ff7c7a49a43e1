"""Functions of other libraries that read an array's memory, and arrays of any layout.

`READERS` is a table: a reader's name is what a user writes. It is run with NumPy's
arrays, too: what it makes of these is what it has to make of NDArrays.
"""

import array
import base64
import ctypes
import hashlib
import io
import itertools
import pickle
import socket
import sqlite3
import struct
import tempfile
import zlib
from collections.abc import Callable
from contextlib import closing
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np

import ndx
from helpers import dtypes


class Reader(NamedTuple):
    """A function that reads an array's memory.

    Attributes
    ----------
    package : str
        The module that it needs.
    take : callable
        Returns what the function makes of an array.
    now : callable
        Returns what is in that now, as a NumPy array.
    dtypes : tuple of str
    empties : bool
        Whether arrays without elements keep their dtype and shape.
    """

    package: str
    take: Callable[[Any], Any]
    now: Callable[[Any], np.ndarray] = np.asarray
    dtypes: tuple[str, ...] = dtypes.STANDARD
    empties: bool = True


FEW = ("float64", "int16", "complex64")  # for readers that are slow


def called(module, name, *args, **kwargs):
    return lambda x: getattr(import_module(module), name)(x, *args, **kwargs)


def of_bytes(made):
    return np.frombuffer(bytes(made), "u1")


def nbytes(x):
    return x.size * x.itemsize


def torch_dtype(x):
    return getattr(import_module("torch"), str(x.dtype))


def frombuffer_of_torch(x):
    return import_module("torch").frombuffer(x, dtype=torch_dtype(x))


def asarray_with_dtype(x):
    torch = import_module("torch")
    return torch.asarray(x, dtype=torch.complex128)


def in_a_table(x):
    return import_module("pyarrow").table({"a": x})


def flipped_by_opencv(x):
    """Flip rows; a number would be one of OpenCV's scalars, of four channels."""
    return import_module("cv2").flip(x if x.ndim else x[None], 0)


def written_to_hdf5(x):
    file = import_module("h5py").File(io.BytesIO(), "w")
    file["x"] = x
    return file["x"]


def written_directly(x):
    file = import_module("h5py").File(io.BytesIO(), "w")
    file.create_dataset("x", x.shape, str(x.dtype)).write_direct(x)
    return file["x"]


def identity_of_numba():
    made = []

    def take(x):
        if not made:
            made.append(import_module("numba").njit(lambda x: x))
        return made[0](x)

    return take


def sparse_of_parts(x):
    ends = np.asarray([0, x.size])
    columns = np.arange(x.size)
    sparse = import_module("scipy.sparse")
    return sparse.csr_array((x, columns, ends), shape=(1, x.size))


def written_to_a_file(x):
    with tempfile.TemporaryFile() as file:
        file.write(x)
        file.seek(0)
        return file.read()


def sent(x):
    one, other = socket.socketpair()
    with one, other:
        one.sendall(x)
        one.close()
        return other.recv(1 << 16)


def from_bytes(x):
    found = array.array("B")
    found.frombytes(x)
    return found


def in_a_database(x):
    with closing(sqlite3.connect(":memory:")) as database:
        return database.execute("select ?", (x,)).fetchone()[0]


class Described:
    """Describes an array by `__array_interface__`, and keeps it."""

    def __init__(self, x):
        self.__array_interface__ = x.__array_interface__
        self.x = x


class Convertible:
    """Is converted by the array's own `__array__`."""

    def __init__(self, x):
        self.__array__ = x.__array__


def tensor(made):
    return made.numpy()


def decoded(made):
    return import_module("numcodecs").Zlib().decode(made)


READERS = {
    "numpy.asarray(x)": Reader("numpy", np.asarray),
    "numpy.array(x)": Reader("numpy", np.array),
    "numpy.from_dlpack(x)": Reader("numpy", np.from_dlpack),
    "numpy.from_dlpack(x, copy=True)": Reader(
        "numpy", lambda x: np.from_dlpack(x, copy=True)
    ),
    "numpy.frombuffer(x, x.dtype)": Reader(
        "numpy", lambda x: np.frombuffer(x, str(x.dtype))
    ),
    "numpy.ndarray(n, x.dtype, x)": Reader(
        "numpy", lambda x: np.ndarray((x.size,), str(x.dtype), x)
    ),
    "numpy.asarray(memoryview(x))": Reader(
        "numpy", lambda x: np.asarray(memoryview(x))
    ),
    "x.__array_interface__": Reader("numpy", lambda x: np.asarray(Described(x))),
    "torch.asarray(x)": Reader("torch", called("torch", "asarray"), tensor),
    "torch.asarray(x, dtype=complex128)": Reader("torch", asarray_with_dtype, tensor),
    "torch.as_tensor(x)": Reader("torch", called("torch", "as_tensor"), tensor),
    "torch.tensor(x)": Reader("torch", called("torch", "tensor"), tensor),
    "torch.from_numpy(x)": Reader("torch", called("torch", "from_numpy"), tensor),
    "torch.from_dlpack(x)": Reader("torch", called("torch", "from_dlpack"), tensor),
    "torch.from_dlpack(x.__dlpack__())": Reader(
        "torch", lambda x: import_module("torch").from_dlpack(x.__dlpack__()), tensor
    ),
    "torch.frombuffer(x, dtype=...)": Reader("torch", frombuffer_of_torch, tensor),
    "t.new_tensor(x)": Reader(
        "torch", lambda x: import_module("torch").zeros(1).new_tensor(x), tensor
    ),
    "array_api_compat.torch.asarray(x)": Reader(
        "torch", called("array_api_compat.torch", "asarray"), tensor
    ),
    "array_api_strict.asarray(x)": Reader(
        "array_api_strict", called("array_api_strict", "asarray")
    ),
    "array_api_strict.from_dlpack(x)": Reader(
        "array_api_strict", called("array_api_strict", "from_dlpack")
    ),
    "jax.numpy.asarray(x)": Reader("jax", called("jax.numpy", "asarray"), dtypes=FEW),
    "jax.numpy.array(x)": Reader("jax", called("jax.numpy", "array"), dtypes=FEW),
    "jax.numpy.from_dlpack(x)": Reader(
        "jax", called("jax.numpy", "from_dlpack"), dtypes=FEW
    ),
    "jax.device_put(x)": Reader("jax", called("jax", "device_put"), dtypes=FEW),
    "pyarrow.array(x)": Reader(
        "pyarrow",
        called("pyarrow", "array"),
        lambda made: made.to_numpy(zero_copy_only=False),
        empties=False,
    ),
    "pyarrow.table({'a': x})": Reader(
        "pyarrow", in_a_table, lambda made: made["a"].to_numpy(), empties=False
    ),
    "pyarrow.py_buffer(x)": Reader("pyarrow", called("pyarrow", "py_buffer"), of_bytes),
    "pyarrow.Tensor.from_numpy(x)": Reader(
        "pyarrow",
        lambda x: import_module("pyarrow").Tensor.from_numpy(x),
        lambda made: made.to_numpy(),
    ),
    "polars.Series(x)": Reader(
        "polars", called("polars", "Series"), lambda made: made.to_numpy()
    ),
    "polars.DataFrame({'a': x})": Reader(
        "polars",
        lambda x: import_module("polars").DataFrame({"a": x}),
        lambda made: made["a"].to_numpy(),
    ),
    "polars.from_numpy(x)": Reader(
        "polars", called("polars", "from_numpy"), lambda made: made.to_numpy()
    ),
    "duckdb.sql('from x')": Reader(
        "duckdb",
        lambda x: import_module("duckdb").sql("from x").fetchnumpy(),
        lambda made: np.asarray(next(iter(made.values()))),
        dtypes=FEW,
    ),
    "pandas.Series(x)": Reader(
        "pandas",
        called("pandas", "Series"),
        lambda made: made.to_numpy(),
        empties=False,
    ),
    "pandas.DataFrame(x)": Reader(
        "pandas",
        called("pandas", "DataFrame"),
        lambda made: made.to_numpy(),
        empties=False,
    ),
    "PIL.Image.fromarray(x)": Reader("PIL", called("PIL.Image", "fromarray")),
    "PIL.Image.frombuffer('L', size, x, ...)": Reader(
        "PIL",
        lambda x: import_module("PIL.Image").frombuffer(
            "L", (1, nbytes(x)), x, "raw", "L", 0, 1
        ),
    ),
    "PIL.Image.frombytes('L', size, x)": Reader(
        "PIL",
        lambda x: import_module("PIL.Image").frombytes("L", (1, nbytes(x)), x),
    ),
    "cv2.flip(x, 0)": Reader(
        "cv2",
        flipped_by_opencv,
        lambda made: np.empty(0) if made is None else made,
        empties=False,
    ),
    "file['x'] = x (h5py)": Reader(
        "h5py", written_to_hdf5, lambda made: made[...], dtypes=FEW
    ),
    "dataset.write_direct(x) (h5py)": Reader(
        "h5py", written_directly, lambda made: made[...], dtypes=FEW
    ),
    "zarr.array(x)": Reader(
        "zarr", called("zarr", "array"), lambda made: made[...], dtypes=FEW
    ),
    "numcodecs.Zlib().encode(x)": Reader(
        "numcodecs",
        lambda x: import_module("numcodecs").Zlib().encode(x),
        lambda made: of_bytes(decoded(made)),
    ),
    "f(x), by numba.njit": Reader("numba", identity_of_numba(), dtypes=("float64",)),
    "scipy.sparse.csr_array(x)": Reader(
        "scipy", called("scipy.sparse", "csr_array"), lambda made: made.toarray()
    ),
    "scipy.sparse.coo_array(x)": Reader(
        "scipy", called("scipy.sparse", "coo_array"), lambda made: made.toarray()
    ),
    "scipy.sparse.csr_array((x, i, p))": Reader(
        "scipy", sparse_of_parts, lambda made: made.toarray()
    ),
    "numexpr.evaluate('x')": Reader(
        "numexpr", lambda x: import_module("numexpr").evaluate("x"), dtypes=("float64",)
    ),
    "memoryview(x)": Reader(
        "builtins", memoryview, lambda made: of_bytes(made.tobytes())
    ),
    "memoryview(x).tolist()": Reader("builtins", lambda x: memoryview(x).tolist()),
    "bytes(x)": Reader("builtins", bytes, of_bytes),
    "bytearray(x)": Reader("builtins", bytearray, of_bytes),
    "b''.join([x])": Reader("builtins", lambda x: b"".join([x]), of_bytes),
    "int.from_bytes(x)": Reader(
        "builtins",
        lambda x: int.from_bytes(x, "little"),
        lambda made: np.asarray(str(made)),
    ),
    "array.array('d', x)": Reader("array", lambda x: array.array("d", x)),
    "array.array('B').frombytes(x)": Reader("array", from_bytes, of_bytes),
    "struct.unpack_from(format, x)": Reader(
        "struct", lambda x: struct.unpack_from(f"{nbytes(x)}B", x), of_bytes
    ),
    "(ctypes.c_char * n).from_buffer(x)": Reader(
        "ctypes", lambda x: (ctypes.c_char * nbytes(x)).from_buffer(x), of_bytes
    ),
    "(ctypes.c_char * n).from_buffer_copy(x)": Reader(
        "ctypes", lambda x: (ctypes.c_char * nbytes(x)).from_buffer_copy(x), of_bytes
    ),
    "io.BytesIO(x)": Reader("io", io.BytesIO, lambda made: of_bytes(made.getvalue())),
    "file.write(x)": Reader("io", written_to_a_file, of_bytes),
    "socket.sendall(x)": Reader("socket", sent, of_bytes),
    "hashlib.sha256(x)": Reader(
        "hashlib", hashlib.sha256, lambda made: of_bytes(made.digest())
    ),
    "zlib.compress(x)": Reader(
        "zlib", zlib.compress, lambda made: of_bytes(zlib.decompress(made))
    ),
    "base64.b64encode(x)": Reader("base64", base64.b64encode, of_bytes),
    "pickle.PickleBuffer(x)": Reader(
        "pickle", lambda x: pickle.PickleBuffer(x).raw(), of_bytes
    ),
    "sqlite3: execute('select ?', (x,))": Reader("sqlite3", in_a_database, of_bytes),
}


def numbers(dtype, shape):
    """Return a NumPy array of telling, small numbers, from 1 on."""
    found = np.arange(1, np.prod(shape, dtype=int) + 1).reshape(shape)
    dtype = np.dtype(dtype)
    if dtype.kind == "b":
        return np.asarray(found % 3 == 1)
    return np.asarray(found + 1j * (found % 5) if dtype.kind == "c" else found, dtype)


def frozen(x):
    found = x.view()
    found.flags.writeable = False
    return found


# The shape of an array, and how to make another layout of it. Each is there with one
# axis and with two, since many readers take just one number of axes.
LAYOUTS = {
    "C": {(12,): lambda x: x, (3, 4): lambda x: x},
    "Fortran": {(4, 3): lambda x: x.T},
    "strided": {(24,): lambda x: x[::2], (6, 8): lambda x: x[::2, ::2]},
    "reversed": {(12,): lambda x: x[::-1], (3, 4): lambda x: x[:, ::-1]},
    "broadcast": {
        (1,): lambda x: np.broadcast_to(x, (12,)),
        (1, 4): lambda x: np.broadcast_to(x, (3, 4)),
    },
    "0-d": {(): lambda x: x},
    "empty": {(0,): lambda x: x, (0, 4): lambda x: x},
    "read-only": {(12,): frozen, (3, 4): frozen},
}


def arrays(layout, dtype):
    """Yield NumPy's arrays, NDArrays of that layout, and what these are views of."""
    for shape, make in LAYOUTS[layout].items():
        a, memory = numbers(dtype, shape), ndx.asarray(numbers(dtype, shape), copy=True)
        yield make(a), make(memory), memory


def combinations(names):
    """Return all readers' names with all layouts."""
    return list(itertools.product(names, LAYOUTS))

"""Files that are no arrays, or lie about them: each a clear error with its name."""

import io
import os
import pickle
import socket

import numpy as np
import pytest
from numpy.lib import format as npy

import ndx

FLOATS = np.arange(4.0)


def header(shape=(4,), descr="<f8", order=False, version=(1, 0)):
    """Return the bytes of a header, of whatever values."""
    text = f"{{'descr': {descr!r}, 'fortran_order': {order!r}, 'shape': {shape!r}, }}"
    return framed(text.encode("latin1"), version)


def framed(text, version=(1, 0), size=None):
    width = 2 if version == (1, 0) else 4
    text += b" " * (-(8 + width + len(text) + 1) % 64) + b"\n"
    size = len(text) if size is None else size
    return npy.MAGIC_PREFIX + bytes(version) + size.to_bytes(width, "little") + text


def pickled():
    file = io.BytesIO()
    np.save(file, np.asarray([{"a": 1}, None], dtype=object), allow_pickle=True)
    return file.getvalue()


def zipped():
    file = io.BytesIO()
    np.savez(file, a=FLOATS)
    return file.getvalue()


DATA = FLOATS.tobytes()
BAD = {
    "empty": (b"", "is empty"),
    "text": (b"1,2,3\n4,5,6\n", "starts with"),
    "two bytes": (b"\x93N", "starts with"),
    "magic alone": (npy.MAGIC_PREFIX, "starts with"),
    "pickle": (pickle.dumps([1]), "pickle"),
    "npz": (zipped(), "npz"),
    "object dtype": (pickled(), "pickled objects"),
    "object dtype by hand": (header(descr="|O") + DATA, "pickled objects"),
    "version 4": (header(version=(4, 0)), "version 4.0"),
    "version 0": (header(version=(0, 9)), "version 0.9"),
    "no size": (header()[:9], "header does not end"),
    "header cut": (header()[:40], "header does not end"),
    "header beyond the end": (framed(b"{}", size=9000), "header does not end"),
    "header of 4 GiB": (framed(b"{}", (2, 0), size=2**32 - 1), "4294967295 bytes"),
    "data cut": (header() + DATA[:-1], "cut short"),
    "no data": (header(), "cut short"),
    "huge": (header((2**40,)) + DATA, "cut short"),
    "overflow": (header((2**62, 2**62)) + DATA, "no memory can hold"),
    "overflow of bytes": (header((2**61,)) + DATA, "no memory can hold"),
    "beyond 64 bits": (header((2**70,)) + DATA, "no memory can hold"),
    "beyond 64 bits, empty": (header((2**70, 0)) + DATA, "no memory can hold"),
    "negative": (header((-4,)) + DATA, "shape is"),
    "two negatives": (header((-2, -2)) + DATA, "shape is"),
    "bool length": (header((True, 4)) + DATA, "shape is"),
    "float length": (header((4.0,)) + DATA, "shape"),
    "shape of text": (header("4") + DATA, "shape"),
    "65 axes": (header((1,) * 65) + DATA, "65 axes"),
    "no shape": (framed(b"{'descr': '<f8', 'fortran_order': False}") + DATA, "header"),
    "no dict": (framed(b"[1, 2]") + DATA, "header"),
    "no Python": (framed(b"{'descr': ") + DATA, "header"),
    "an expression": (framed(b"__import__('os').abort()") + DATA, "header"),
    "nested": (framed(b"(" * 5000 + b")" * 5000) + DATA, "header"),
    "order of text": (header(order="C") + DATA, "header"),
    "unknown dtype": (header(descr="<q9") + DATA, "header"),
    "structured": (header(descr=[("a", "<f8")]) + DATA, "not a dtype of the array"),
    "subarrays": (header((2,), descr=("<f8", (2,))) + DATA, "can't|not a dtype"),
    "long double": (header((2,), descr="<f16") + DATA, "not a dtype|header"),
    "text dtype": (header(descr="<U2") + DATA, "not a dtype"),
    "bytes dtype": (header(descr="|S8") + DATA, "not a dtype"),
    "dates": (header(descr="<M8[s]") + DATA, "not a dtype"),
    "void": (header(descr="|V8") + DATA, "not a dtype"),
    "elements of nothing": (header(descr="|S0") + DATA, "not a dtype"),
}


@pytest.fixture(params=["load", "r", "r+", "c"])
def read(request):
    if request.param == "load":
        return ndx.load
    return lambda path: ndx.open(path, request.param)


@pytest.mark.parametrize("name", BAD)
def test_bad_files(tmp_path, read, name):
    content, words = BAD[name]
    path = tmp_path / "bad.npy"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=words) as caught:
        read(path)
    assert str(path) in str(caught.value)
    assert path.read_bytes() == content


@pytest.mark.parametrize("version", [(1, 0), (2, 0), (3, 0)])
def test_all_versions_are_read(tmp_path, read, version):
    path = tmp_path / "x.npy"
    path.write_bytes(header(version=version) + DATA)
    np.testing.assert_array_equal(np.asarray(read(path)), FLOATS)


def test_more_bytes_than_elements_are_left_alone(tmp_path, read):
    path = tmp_path / "x.npy"
    path.write_bytes(header((3,)) + DATA)
    x = read(path)
    np.testing.assert_array_equal(np.asarray(x), FLOATS[:3])
    assert path.read_bytes() == header((3,)) + DATA


UNFIT = {
    "big-endian": (header(descr=">f8") + FLOATS.astype(">f8").tobytes(), "byte order"),
    "misaligned": (
        npy.MAGIC_PREFIX + b"\x01\x00" + (61).to_bytes(2, "little")
        + b"{'descr': '<f8', 'fortran_order': False, 'shape': (4,)}     \n"
        + DATA,
        "at byte 71",
    ),
}  # fmt: skip


@pytest.mark.parametrize("mode", ["r", "r+", "c"])
@pytest.mark.parametrize("name", UNFIT)
def test_elements_that_need_conversion_are_loaded_not_opened(tmp_path, name, mode):
    content, words = UNFIT[name]
    path = tmp_path / "x.npy"
    path.write_bytes(content)
    np.testing.assert_array_equal(np.asarray(ndx.load(path)), FLOATS)
    with pytest.raises(ValueError, match=words) as caught:
        ndx.open(path, mode)
    assert str(path) in str(caught.value)
    assert "ndx.load" in str(caught.value)
    assert path.read_bytes() == content


def places(tmp_path):
    """Make what is no regular file; return the paths, with the errors to expect."""
    folder, fifo, missing = tmp_path / "folder", tmp_path / "fifo", tmp_path / "none"
    folder.mkdir()
    os.mkfifo(fifo)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(os.path.relpath(tmp_path / "socket"))
    listener.close()
    return {
        folder: IsADirectoryError,
        fifo: OSError,
        tmp_path / "socket": OSError,
        missing: FileNotFoundError,
        missing / "x.npy": FileNotFoundError,
        tmp_path / "fifo" / "x.npy": NotADirectoryError,
    }


def test_what_is_no_file_is_refused_at_once(tmp_path, read):
    for path, error in places(tmp_path).items():
        with pytest.raises(error) as caught:
            read(path)
        assert caught.value.filename == str(path)


def test_what_is_no_file_is_not_replaced(tmp_path):
    kinds = places(tmp_path)
    before = sorted(os.listdir(tmp_path))
    for path, error in kinds.items():
        if path.name == "none":
            continue
        for write in (
            lambda p: ndx.save(p, ndx.ones(3)),
            lambda p: ndx.open(p, "w+", shape=3),
        ):
            with pytest.raises(error) as caught:
                write(path)
            assert str(path) == caught.value.filename
        assert sorted(os.listdir(tmp_path)) == before


def test_devices_are_refused(read):
    with pytest.raises(OSError, match="not a regular file"):
        read("/dev/zero")

"""Elements: `x[i]` with integers for all axes, independent arrays of one number."""

import copy
import gc
import pickle

import numpy as np
import pytest
from helpers.dtypes import ALL
from helpers.patterns import pool

import ndx


def test_an_element_outlives_the_scope_of_its_array():
    outside = ndx.arange(3)
    with ndx.workspace("elements", size="1KiB"):
        inside = ndx.arange(3)
        column = ndx.reshape(inside, (3, 1))
        found = [outside[1], inside[1], list(inside)[1], column[1, 0]]
        for element in found:
            assert element.workspace is None
            assert element.detach() is element
            assert element.in_scope
            assert not element.attached
        total = inside[1] + 1
    with ndx.workspace("elements", size="1KiB"):
        ndx.full(100, 9)
    assert [int(element) for element in found] == [1, 1, 1, 1]
    found[0] += 1
    assert (int(found[0]), int(outside[1])) == (2, 1)
    with pytest.raises(ndx.StaleArrayError):
        inside[0]
    with pytest.raises(ndx.StaleArrayError):
        int(total)


@pytest.mark.parametrize("method", ["leverage", "migrate"])
def test_an_element_is_moved_into_a_workspace_as_other_arrays_are(method):
    element = ndx.arange(3)[2]
    with ndx.workspace("outer", size="1KiB"), ndx.workspace("inner", size="1KiB"):
        moved = getattr(element, method)()
        assert int(moved) == 2
        assert moved.workspace == ("inner" if method == "migrate" else None)


def test_elements_take_nothing_of_an_arena():
    with ndx.workspace("iterated", size="4KiB") as ws:
        x = ndx.arange(100.0)
        before = ws.stats()
        kept = [*x, x[3], ndx.reshape(x, (10, 10))[3, 4]]
        assert sum(float(each) for each in kept) == 4950.0 + 3.0 + 34.0
        assert ws.stats() == before


def test_elements_take_nothing_of_a_backend():
    backend = ndx.backends.HostBackend(limit="64KiB")
    with ndx.use(backend):
        x = ndx.arange(100)
        before = backend.stats()
        kept = list(x)
        assert backend.stats() == before
        assert len(kept) == 100
        assert kept[0].backend is None


@pytest.mark.parametrize("dtype", ALL)
def test_an_element_has_the_bytes_of_its_array(dtype):
    values = pool(dtype)
    x = ndx.asarray(values, copy=True)
    kept = list(x)
    for element, expected in zip(kept, values, strict=True):
        found = np.asarray(element)
        assert found.flags.aligned
        assert found.flags.writeable
        assert found.tobytes() == expected.tobytes()
        assert element.nbytes == element.itemsize == found.itemsize
        assert element.strides == element.shape == ()
    again = ndx.asarray(np.empty_like(values), copy=True)
    for i, element in enumerate(kept):
        again[i] = element
    assert np.asarray(again).tobytes() == values.tobytes()


@pytest.mark.parametrize("dtype", ["complex128", "float64", "int8", "bool"])
def test_foreign_code_keeps_an_element_alive(dtype):
    def seen():
        x = ndx.ones(5, dtype=dtype)
        return [
            *[np.asarray(each) for each in x],
            np.from_dlpack(x[1]),
            np.asarray(memoryview(x[2])),
            np.asarray(Interface(x[3])),
        ]

    with ndx.workspace("read", size="1KiB"):
        views = seen()
    gc.collect()
    others = [list(ndx.zeros(50, dtype=dtype)) for _ in range(3)]
    assert all(view == 1 for view in views)
    del others


class Interface:
    """Shows NumPy an array's interface, and nothing else."""

    def __init__(self, array):
        self.array = array

    @property
    def __array_interface__(self):
        return self.array.__array_interface__


def test_an_element_is_written_to():
    x = ndx.arange(3.0)
    element = x[1]
    same = element
    element += 2
    ndx.add(element, 4, out=element)
    element[()] = element * 10
    np.asarray(element)[()] += 1
    assert same is element
    assert float(element) == 71.0
    assert x.tolist() == [0.0, 1.0, 2.0]


def test_an_element_is_copied_pickled_and_saved(tmp_path):
    element = ndx.asarray([1j, 2j])[1]
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        assert complex(pickle.loads(pickle.dumps(element, protocol))) == 2j
    buffers = []
    kept = pickle.dumps(element, 5, buffer_callback=buffers.append)
    ndx.save(tmp_path / "x.npy", element)
    again = [
        copy.copy(element),
        copy.deepcopy(element),
        ndx.load(tmp_path / "x.npy"),
        ndx.asarray(element, copy=True),
        ndx.astype(element, ndx.complex64),
    ]
    element[...] = 3
    assert [complex(each) for each in again] == [2j] * 5
    del element
    assert complex(pickle.loads(kept, buffers=buffers)) in (2j, 3)


def test_views_of_an_element_share_it():
    element = ndx.arange(3)[1]
    views = [element[...], element[None], ndx.reshape(element, (1, 1)),
             ndx.broadcast_to(element, (2, 3))]  # fmt: skip
    element += 5
    del element
    list(ndx.zeros(50))
    for view in views:
        assert np.asarray(view).tolist() == np.full(view.shape, 6).tolist()


def test_an_element_is_closed():
    x = ndx.arange(3)
    found = x[1]
    view = np.asarray(found)
    with pytest.raises(BufferError):
        found.close()
    assert view == 1
    del view
    found.close()
    with pytest.raises(ndx.StaleArrayError):
        int(found)
    assert int(x[1]) == 1


def test_an_element_of_an_array_in_a_file_is_independent(tmp_path):
    ndx.save(tmp_path / "x.npy", ndx.arange(5.0))
    x = ndx.open(tmp_path / "x.npy", "r+")
    found = x[2]
    x[2] = 9.0
    assert float(found) == 2.0
    found[...] = 5.0
    assert x.tolist() == [0.0, 1.0, 9.0, 3.0, 4.0]


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint64", "float32", "complex64"])
def test_lists_and_items_of_vectors(dtype):
    a = np.arange(-2, 5).astype(dtype)
    for b in (a, a[::-1], a[1::2], a[:0]):
        x = ndx.asarray(b)
        assert x.tolist() == b.tolist()
        assert [type(item) for item in x.tolist()] == [type(y) for y in b.tolist()]
        for i in range(-len(b), len(b)):
            assert x.item(i) == b.item(i)
        with pytest.raises(IndexError):
            x.item(len(b))

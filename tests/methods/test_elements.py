"""Elements: `x[i]` with integers for all axes; see also `test_numbers`."""

import copy
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
    assert int(total) == 2
    with pytest.raises(ndx.StaleArrayError):
        inside[0]


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
        found = np.asarray(memoryview(element))
        assert found.flags.aligned
        assert not found.flags.writeable
        assert found.tobytes() == expected.tobytes()
        assert element.nbytes == element.itemsize == found.itemsize
        assert element.strides == element.shape == ()
    again = ndx.asarray(np.empty_like(values), copy=True)
    for i, element in enumerate(kept):
        again[i] = element
    assert np.asarray(again).tobytes() == values.tobytes()


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
    assert [complex(each) for each in again] == [2j] * 5
    del element
    assert complex(pickle.loads(kept, buffers=buffers)) == 2j


def test_views_of_an_element_share_it():
    element = ndx.arange(3)[1]
    views = [element[...], element[None], ndx.reshape(element, (1, 1)),
             ndx.broadcast_to(element, (2, 3))]  # fmt: skip
    del element
    list(ndx.zeros(50))
    for view in views:
        assert np.asarray(view).tolist() == np.full(view.shape, 1).tolist()


def test_an_element_of_an_array_in_a_file_is_independent(tmp_path):
    ndx.save(tmp_path / "x.npy", ndx.arange(5.0))
    x = ndx.open(tmp_path / "x.npy", "r+")
    found = x[2]
    x[2] = 9.0
    assert float(found) == 2.0
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

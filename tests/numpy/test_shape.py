"""``x.shape = ...`` changes an array in place, as in NumPy."""

import threading
import warnings

import numpy as np
import pytest
from helpers.hostile import Index

import ndx
import ndx.numpy


def pair(shape=(2, 3, 4)):
    a = np.arange(np.prod(shape), dtype=float).reshape(shape)
    return a, ndx.asarray(a, copy=True)


@pytest.mark.parametrize(
    "shape", [24, -1, (24,), [4, 6], (2, -1), (1,) * 7 + (24,), (2, 2, 2, 3, 1), (3, 8)]
)
def test_all_elements_stay_where_they_are(shape):
    a, x = pair()
    before = x
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        a.shape = shape
    x.shape = shape
    assert x is before
    assert (x.shape, x.strides, x.ndim, len(x)) == (a.shape, a.strides, a.ndim, len(a))
    assert (x.flags.c_contiguous, x.size) == (True, 24)
    np.testing.assert_array_equal(np.asarray(x + 1), a + 1)


def test_it_goes_from_many_axes_to_few_and_back():
    _, x = pair((2, 3, 4))
    for shape in [
        (1, 2, 1, 3, 1, 4),
        (24,),
        (2,) * 3 + (3, 1, 1, 1),
        (6, 4),
        (2, 3, 4),
    ]:
        x.shape = shape
        assert x.shape == shape
    x = ndx.asarray(7.0)
    x.shape = (1, 1, 1, 1, 1, 1)
    x.shape = ()
    assert float(x) == 7.0


def test_a_view_has_a_shape_of_its_own():
    _, x = pair((4, 6))
    y = x[:]
    y.shape = (3, 8)
    assert (x.shape, y.shape) == ((4, 6), (3, 8))
    y[0, 7] = -1
    assert float(x[1, 1]) == -1


def test_a_chain_of_assignments_as_in_programs():
    np = ndx.numpy
    x, y = np.mgrid[0:3, 0:4]
    x.shape = y.shape = 12
    assert (x.shape, y.shape) == ((12,), (12,))
    assert (4 * x + y).tolist() == list(range(12))


@pytest.mark.parametrize("shape", [(5,), (2, 5), (-1, 5), "a", 1.5, (-1, -1), None])
def test_a_shape_that_does_not_fit_is_refused(shape):
    _, x = pair()
    with pytest.raises((ValueError, TypeError)):
        x.shape = shape
    assert x.shape == (2, 3, 4)


def test_a_shape_that_needs_a_copy_is_refused():
    _, x = pair((4, 6))
    for view in (x.T, x[:, ::-1], x[:, 1:]):
        shape = view.shape
        with pytest.raises(ValueError, match="copy"):
            view.shape = -1
        assert view.shape == shape


def test_a_stale_or_closed_array_is_refused():
    with ndx.workspace():
        x = ndx.ones(6)
    with pytest.raises(ndx.StaleArrayError):
        x.shape = (2, 3)
    y = ndx.ones(6)
    y.close()
    with pytest.raises(ndx.StaleArrayError):
        y.shape = (2, 3)
    assert (x.shape, y.shape) == ((6,), (6,))


@pytest.mark.parametrize("export", [memoryview, np.asarray, lambda x: x.data])
def test_nothing_changes_under_an_export(export):
    x = ndx.ones(6)
    held = export(x)
    with pytest.raises(BufferError, match="use x.reshape"):
        x.shape = (2, 3)
    assert x.shape == (6,)
    del held
    x.shape = (2, 3)
    assert x.shape == (2, 3)


@pytest.mark.parametrize("key", [lambda i: (i, 0), lambda i: slice(i, None)])
def test_nothing_changes_while_an_index_is_read(key):
    x = ndx.ones((4, 1))
    seen = []

    def change():
        try:
            x.shape = (1, 4)
        except BufferError as error:
            seen.append(error)

    x[key(Index(3, before=change))]
    assert seen
    assert x.shape == (4, 1)


def test_an_iterator_ends_with_the_new_shape():
    x = ndx.asarray(np.arange(6.0), copy=True)
    seen = []
    for item in x:
        seen.append(item.shape)
        x.shape = (2, 3)
    assert seen == [(), (3,)]
    for _ in x:
        x.shape = (6, 1)
    x = ndx.ones(1)
    for _ in x:
        x.shape = ()
    assert x.shape == ()


def test_threads_that_compute_see_one_shape_or_the_other():
    x = ndx.ones((300, 400))
    wrong = []

    def compute():
        for _ in range(200):
            y = x + 1
            if y.size != 120_000 or float(y.sum()) != 240_000:
                wrong.append(y.shape)

    threads = [threading.Thread(target=compute) for _ in range(3)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        for shape in ((400, 300), (120_000,), (2, 2, 3, 2, 5000), (300, 400)):
            try:
                x.shape = shape
            except BufferError:
                continue
    for thread in threads:
        thread.join()
    assert wrong == []

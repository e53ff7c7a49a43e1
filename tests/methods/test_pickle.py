"""Pickles and copies: values, dtypes and layouts come back, in our own memory."""

import copy
import pickle
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import cloudpickle
import numpy as np
import pytest
from helpers import dtypes, patterns
from helpers.compare import assert_same
from hypothesis import given
from hypothesis import strategies as st

import ndx

PROTOCOLS = range(pickle.HIGHEST_PROTOCOL + 1)
COPIES = {
    **{
        f"pickle {protocol}": lambda x, p=protocol: pickle.loads(pickle.dumps(x, p))
        for protocol in PROTOCOLS
    },
    "cloudpickle": lambda x: cloudpickle.loads(cloudpickle.dumps(x)),
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "asarray": lambda x: ndx.asarray(x, copy=True),
}
SHARED = {"out-of-band": lambda x: out_of_band(x)[0]}


def out_of_band(x):
    buffers = []
    data = pickle.dumps(x, 5, buffer_callback=buffers.append)
    return pickle.loads(data, buffers=buffers), data, buffers


@given(st.data(), st.sampled_from(dtypes.ALL), st.sampled_from(sorted(COPIES)))
def test_copies_are_equal_and_apart(data, dtype, how):
    a = data.draw(patterns.arrays(dtype, data.draw(patterns.shapes())))
    x = ndx.asarray(a)
    y = COPIES[how](x)
    assert_same(y, a)
    assert not np.shares_memory(np.asarray(y), a)
    assert y.backend is ndx.current_backend()
    # Whatever the original was, a copy can be written to.
    y[...] = np.zeros((), dtype)


@given(st.data(), st.sampled_from(dtypes.ALL))
def test_out_of_band_arrays_share_the_buffers_given(data, dtype):
    a = data.draw(patterns.arrays(dtype, data.draw(patterns.shapes())))
    x = ndx.asarray(a)
    y, _, (buffer,) = out_of_band(x)
    assert_same(y, a)
    if a.size:
        assert np.shares_memory(np.asarray(y), np.frombuffer(buffer, dtype))


@pytest.mark.parametrize("how", {**COPIES, **SHARED})
def test_the_order_in_memory_is_kept(how):
    again = {**COPIES, **SHARED}[how]
    for a in (np.ones((3, 4)), np.ones((3, 4), order="F"), np.ones((4, 3)).T):
        assert again(ndx.asarray(a)).strides == a.strides


@pytest.mark.parametrize("how", {**COPIES, **SHARED})
def test_axes_in_any_order(how):
    again = {**COPIES, **SHARED}[how]
    a = np.arange(24).reshape(2, 3, 4)
    for order in ((1, 0, 2), (0, 2, 1), (1, 2, 0), (2, 0, 1)):
        assert_same(again(ndx.asarray(a.transpose(order))), a.transpose(order))


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_unpickling_makes_nothing_in_a_workspace(protocol):
    data = pickle.dumps(ndx.arange(100), protocol)
    with ndx.use("host", limit="1MiB") as backend, ndx.workspace(size="4KiB"):
        x = pickle.loads(data)
        y = copy.deepcopy(x)
    assert x.backend is backend
    assert x.tolist() == list(range(100))
    assert not x.attached
    # A copy is a new array like others.
    assert not y.in_scope


def test_out_of_band_buffers_are_not_copied():
    x = ndx.arange(100_000)
    y, data, buffers = out_of_band(x)
    assert len(data) < 1000
    (buffer,) = buffers
    assert np.shares_memory(np.frombuffer(buffer, np.int64), np.asarray(x))
    assert_same(y, np.arange(100_000))


@pytest.mark.parametrize(
    ("wrap", "shared"),
    [
        (bytes, True),
        (lambda raw: memoryview(bytearray(raw)), True),
        (np.asarray, True),
        (bytearray, False),  # the type that data in the stream has
    ],
)
def test_buffers_may_come_as_anything(wrap, shared):
    buffers = []
    data = pickle.dumps(ndx.arange(6), 5, buffer_callback=buffers.append)
    received = wrap(buffers[0].raw())
    x = pickle.loads(data, buffers=[received])
    assert x.tolist() == list(range(6))
    assert np.shares_memory(np.asarray(x), np.frombuffer(received, "B")) is shared
    assert x.flags.writeable is not (wrap is bytes)


def test_a_buffer_lives_as_long_as_its_array():
    buffers = []
    data = pickle.dumps(ndx.arange(6), 5, buffer_callback=buffers.append)
    raw = bytearray(buffers[0].raw())
    x = pickle.loads(data, buffers=[memoryview(raw)])
    with pytest.raises(BufferError):
        raw.append(0)
    raw[0] = 7
    assert x.tolist() == [7, 1, 2, 3, 4, 5]
    del x
    raw.append(0)


def test_read_only_arrays_come_back_writeable_in_band_only():
    a = np.arange(6)
    a.flags.writeable = False
    x = ndx.asarray(a, copy=False)
    assert pickle.loads(pickle.dumps(x, 5)).flags.writeable
    assert not out_of_band(x)[0].flags.writeable


def test_pickles_in_the_stream_go_to_the_current_backend():
    data = pickle.dumps(ndx.arange(6), 5)
    with ndx.use("host") as backend:
        assert pickle.loads(data).backend is backend


def test_buffers_need_no_alignment():
    buffers = []
    data = pickle.dumps(ndx.arange(6), 5, buffer_callback=buffers.append)
    shifted = bytearray(1) + bytes(buffers[0].raw())
    received = [memoryview(shifted)[1:]]
    assert pickle.loads(data, buffers=received).tolist() == list(range(6))


def test_buffers_that_are_too_short():
    buffers = []
    data = pickle.dumps(ndx.arange(6), 5, buffer_callback=buffers.append)
    with pytest.raises(ValueError, match=r"."):
        pickle.loads(data, buffers=[bytes(buffers[0].raw())[:-8]])


def test_a_pickle_pins_no_longer_than_its_buffer():
    x = ndx.arange(6)
    buffers = []
    pickle.dumps(x, 5, buffer_callback=buffers.append)
    with pytest.raises(BufferError):
        x.close()
    buffers.clear()
    x.close()


def test_shared_arrays_within_one_pickle():
    x = ndx.arange(3)
    first, second = pickle.loads(pickle.dumps([x, x]))
    assert first is second
    first, second = copy.deepcopy([x, x])
    assert first is second


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_other_public_things(protocol):
    for thing in (
        ndx.float32, ndx.Device("cpu"), ndx.add, ndx.sum, ndx.zeros, ndx.NDArray,
        ndx.StaleArrayError, ndx.WorkspaceConfig(size=64), ndx.linalg.svd,
    ):  # fmt: skip
        found = pickle.loads(pickle.dumps(thing, protocol))
        assert found == thing
        assert type(found) is type(thing)


def test_every_public_function_pickles_by_name():
    for chapter in (ndx, ndx.linalg, ndx.fft):
        for name in dir(chapter):
            function = getattr(chapter, name)
            if name.startswith("_") or not callable(function):
                continue
            assert pickle.loads(pickle.dumps(function)) is function, name


def test_process_pools():
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        assert_same(pool.submit(ndx.sum, ndx.arange(5)).result(), np.array(10))
        found = list(pool.map(ndx.add, [ndx.ones(2)] * 2, [ndx.ones(2)] * 2))
    assert [x.tolist() for x in found] == [[2.0, 2.0]] * 2

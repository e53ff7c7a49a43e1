"""multiprocessing sends NDArrays to processes, by pipes, queues and pools."""

import multiprocessing

import numpy as np
import pytest
from helpers.consumers import MATRIX
from helpers.parallel import answer

import ndx
from ndx.testing import assert_equal


@pytest.fixture(params=["spawn", "forkserver"])
def context(request):
    if request.param not in multiprocessing.get_all_start_methods():
        pytest.skip(f"there is no {request.param} here")
    return multiprocessing.get_context(request.param)


def test_pipes(context):
    here, there = context.Pipe()
    process = context.Process(target=answer, args=(there,))
    process.start()
    there.close()  # if the child ends, its end is the last
    for x in (ndx.asarray(MATRIX), ndx.asarray(MATRIX).T, ndx.ones(3, dtype=ndx.int8)):
        here.send(x)
        found, in_backend = here.recv()
        assert isinstance(found, ndx.NDArray)
        assert_equal(found, np.asarray(x) * np.asarray(2, dtype=x.dtype))
        assert in_backend
    here.send(None)
    process.join()
    assert process.exitcode == 0
    here.close()


def test_pools(context):
    parts = [ndx.asarray(MATRIX) + i for i in range(4)]
    with context.Pool(1) as pool:
        for part, found in zip(parts, pool.imap(ndx.exp, parts), strict=True):
            assert_equal(found, ndx.exp(part))
        pool.close()
        pool.join()


def test_queues():
    queue = multiprocessing.get_context("spawn").Queue()
    queue.put(ndx.asarray(MATRIX))
    assert_equal(queue.get(), MATRIX)
    queue.close()
    queue.join_thread()


def test_shared_memory():
    from multiprocessing import shared_memory

    memory = shared_memory.SharedMemory(create=True, size=MATRIX.nbytes)
    try:
        x = ndx.asarray(np.frombuffer(memory.buf).reshape(MATRIX.shape), copy=None)
        x[...] = ndx.asarray(MATRIX)
        again = np.array(np.frombuffer(memory.buf))
        assert np.array_equal(again.reshape(MATRIX.shape), MATRIX)
        del x
    finally:
        memory.close()
        memory.unlink()

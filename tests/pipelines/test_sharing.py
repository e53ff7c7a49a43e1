"""How arrays arrive in another process: the same dtype, values and order in memory.

A table of layouts against every road: each must agree with a small array's pickle.
"""

import contextlib
import functools
import os
import pickle
import subprocess
import sys

import numpy as np
import pytest
from helpers.commands import PACKAGE
from helpers.parallel import (
    METHODS,
    AddsToItsOwn,
    Keeps,
    adds_to_its_own,
    described,
    described_and_back,
)

import ndx
from ndx._pipelines.sharing import LEAST_NBYTES, MEMORY, Exchange, share
from ndx.testing import assert_equal

pytestmark = [
    pytest.mark.usefixtures("nothing_left_behind"),
    pytest.mark.skipif(os.name != "posix", reason="there are no files in memory"),
    pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning"),
]


SMALL, LARGE = (3, 4, 5), (30, 40, 50)
LAYOUTS = {
    "C order": lambda x: x,
    "Fortran order": lambda x: ndx.permute_dims(x, (2, 1, 0)),
    "matrix in Fortran order": lambda x: ndx.reshape(x, (-1, x.shape[2])).T,
    "axes in another order": lambda x: ndx.permute_dims(x, (1, 0, 2)),
    "every second": lambda x: x[:, ::2],
    "backwards": lambda x: x[::-1],
    "backwards in Fortran order": lambda x: ndx.permute_dims(x, (2, 1, 0))[:, ::-1],
    "repeated": lambda x: ndx.broadcast_to(x[:1], x.shape),
    "read-only": lambda x: _read_only(x),
    "0-d": lambda x: x[0, 0, 0, ...],
    "number": lambda x: x[0, 0, 0],
    "empty": lambda x: x[:0],
    "empty in Fortran order": lambda x: ndx.permute_dims(x[:0], (2, 1, 0)),
    "one axis of length 1": lambda x: ndx.permute_dims(x[:, :1], (2, 0, 1)),
}
DTYPES = ["bool", "int8", "uint16", "int64", "float16", "float64", "complex128"]
SIZES = pytest.mark.parametrize("shape", [SMALL, LARGE], ids=["small", "large"])


def _read_only(x):
    x = ndx.asarray(x, copy=True)
    x.flags.writeable = False
    return x


def array_of(shape, dtype="float64"):
    values = np.arange(np.prod(shape)).reshape(shape) % 100
    return ndx.asarray(values.astype(dtype))


def every_layout(shape):
    return {name: made(array_of(shape)) for name, made in LAYOUTS.items()}


def every_array(shape):
    return [
        *every_layout(shape).values(),
        *(ndx.permute_dims(array_of(shape, dtype), (2, 1, 0)) for dtype in DTYPES),
    ]


def as_item(x, exchange):
    return exchange.loads(exchange.dumps(x))


def as_result(x, exchange):
    """As a worker answers, whose exchange is the caller's."""
    return exchange.loads(Exchange(exchange.folders).dumps(x))


def with_function(x, exchange):
    return exchange.loads(exchange.dumps(x, for_all=True), keep=True)


def by_buffers(x, exchange):
    buffers = []
    stream = pickle.dumps(x, protocol=5, buffer_callback=buffers.append)
    copies = [bytearray(each.raw()) for each in buffers]
    return pickle.loads(stream, buffers=copies)


ROADS = {
    "item of a map": as_item,
    "result of a map": as_result,
    "with the function": with_function,
    **{
        f"pickle, protocol {number}": functools.partial(
            lambda x, exchange, number: pickle.loads(pickle.dumps(x, number)),
            number=number,
        )
        for number in range(pickle.HIGHEST_PROTOCOL + 1)
    },
    "pickle with buffers apart": by_buffers,
    "shared": lambda x, exchange: share(x),
}


def assert_arrives(found, sent):
    """Fail unless an array is as NumPy's pickles are: in one of the two orders."""
    assert_equal(found, np.asarray(sent))
    assert found.dtype == sent.dtype
    assert type(found) is type(sent) or type(sent) is not ndx.NDArray
    is_fortran = sent.flags.f_contiguous and not sent.flags.c_contiguous
    assert found.flags.f_contiguous if is_fortran else found.flags.c_contiguous


@SIZES
@pytest.mark.parametrize("road", ROADS)
def test_arrays_arrive_as_they_are(road, shape):
    exchange = Exchange()
    with contextlib.closing(exchange):
        for sent in every_array(shape):
            found = ROADS[road](sent, exchange)
            assert_arrives(found, sent)
            # A copy is the receiver's; bytes apart are those that the sender offers.
            if isinstance(sent, ndx.NDArray) and road != "pickle with buffers apart":
                assert found.flags.writeable or type(found) is not ndx.NDArray


@SIZES
@pytest.mark.parametrize("method", METHODS)
def test_arrays_go_to_real_processes_and_back(shape, method):
    sent = every_array(shape)
    as_pickled = [described(pickle.loads(pickle.dumps(x))) for x in sent]
    ((there, back),) = ndx.parallel.map(
        described_and_back, [sent], processes=1, start_method=method
    )
    assert there == as_pickled
    for found, x in zip(back, sent, strict=True):
        assert_arrives(found, x)
    (kept,) = ndx.parallel.map(Keeps(sent), [0], processes=1, start_method=method)
    # A forked process has the very arrays.
    assert kept == ([described(x) for x in sent] if method == "fork" else as_pickled)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("order", ["C", "F"])
def test_views_of_what_is_shared_keep_their_strides(layout, order):
    """They go by name, so that nothing is copied."""
    if order == "C":
        shared = share(array_of(SMALL))
    else:
        shared = share(ndx.permute_dims(array_of(SMALL[::-1]), (2, 1, 0)))
        assert shared.flags.f_contiguous
    sent = LAYOUTS[layout](shared)
    exchange = Exchange()
    with contextlib.closing(exchange):
        found = as_item(sent, exchange)
    assert_equal(found, np.asarray(sent))
    if np.shares_memory(np.asarray(sent), np.asarray(shared)):
        assert found.strides == sent.strides
        assert np.shares_memory(np.asarray(found), np.asarray(shared))


def test_a_read_only_view_of_what_all_may_write_stays_so():
    shared = share(ndx.zeros(10), writable=True)
    view = shared[2:]
    view.flags.writeable = False
    exchange = Exchange()
    with contextlib.closing(exchange):
        assert not as_item(view, exchange).flags.writeable
        assert as_item(shared[2:], exchange).flags.writeable
        whole = shared[...]
        whole.flags.writeable = False
        assert not as_item(whole, exchange).flags.writeable


@pytest.mark.parametrize("size", [10, LEAST_NBYTES])
@pytest.mark.parametrize("method", METHODS)
def test_a_process_may_write_to_its_copy_of_what_the_function_has(method, size):
    table = ndx.zeros(size)
    found = list(
        ndx.parallel.map(
            AddsToItsOwn(table), range(3), processes=1, start_method=method
        )
    )
    assert found == [1.0, 2.0, 3.0]
    assert float(table[0]) == 0.0


@pytest.mark.skipif("fork" not in METHODS, reason="there is no fork")
@pytest.mark.parametrize("size", [10, LEAST_NBYTES])
def test_what_a_forked_process_writes_to_a_result_stays_there(size):
    (result,) = ndx.parallel.map(same, [ndx.zeros(size)], processes=1)
    (found,) = ndx.parallel.map(
        lambda item: adds_to_its_own(result), [0], processes=1, start_method="fork"
    )
    assert (found, float(result[0])) == (1.0, 0.0)


def same(x):
    return x


@pytest.mark.skipif(not os.path.isdir(MEMORY), reason="there are no files in memory")
def test_kept_results_need_no_descriptors():
    """Far more of them than the process may have open files."""
    program = """
import resource
from helpers.parallel import doubled
import ndx
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
x = ndx.arange(10_000.0)
kept = list(ndx.parallel.map(doubled, (x for i in range(300)), processes=1))
print(len(kept), all(float(each[-1]) == 19998.0 for each in kept))
"""
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join([PACKAGE, os.path.dirname(__file__) + "/.."]),
        },
        timeout=120,
    )
    assert (done.stdout, done.returncode) == ("300 True\n", 0), done.stderr


def test_a_result_is_in_no_file_that_could_be_flushed():
    (result,) = ndx.parallel.map(same, [ndx.ones(LEAST_NBYTES)], processes=1)
    for method in (result.flush, result.commit):
        with pytest.raises(ValueError, match="it is in no file that it could keep"):
            method()
    result += 1.0
    assert_equal(result, np.full(LEAST_NBYTES, 2.0))
    result.close()
    with pytest.raises(ndx.StaleArrayError):
        result + 1

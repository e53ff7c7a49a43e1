"""threadpoolctl limits ndx's threads as it limits those of BLAS."""

import sys

import pytest
from helpers.commands import run_python

import ndx

threadpoolctl = pytest.importorskip("threadpoolctl", minversion="3.5")

pytestmark = [
    pytest.mark.threads,
    pytest.mark.skipif(
        sys.platform == "win32", reason="the pool's symbols are not exported"
    ),
]


@pytest.fixture(autouse=True)
def _three_threads():
    before = ndx.get_num_threads()
    ndx.set_num_threads(3)
    yield
    ndx.set_num_threads(before)


def test_the_pool_is_found_once():
    found = [x for x in threadpoolctl.threadpool_info() if x["user_api"] == "ndx"]
    assert [x["num_threads"] for x in found] == [3]
    assert found[0]["internal_api"] == "ndx"


@pytest.mark.parametrize(
    ("limits", "within"), [(1, 1), ({"ndx": 2}, 2), ({"blas": 1}, 3), (100_000, 256)]
)
def test_limits_hold_for_a_block(limits, within):
    x = ndx.ones(400_000)
    with threadpoolctl.threadpool_limits(limits):
        assert ndx.get_num_threads() == within
        assert float(ndx.sum(x + x)) == 800_000
    assert ndx.get_num_threads() == 3


def test_limits_of_blas_alone_leave_it():
    with threadpoolctl.threadpool_limits(1, user_api="blas"):
        assert ndx.get_num_threads() == 3
    with threadpoolctl.threadpool_limits(1, user_api="ndx"):
        assert ndx.get_num_threads() == 1


@pytest.mark.parametrize("order", ["threadpoolctl, ndx", "ndx, threadpoolctl"])
def test_either_may_be_imported_first(order):
    code = (
        f"import {order}\n"
        "ndx.set_num_threads(4)\n"
        "with threadpoolctl.threadpool_limits(2):\n"
        "    print(ndx.get_num_threads())\n"
        "print(ndx.get_num_threads())"
    )
    assert run_python(code) == "2\n4\n"

"""The simulated policies of others do what the others' own tests say that they do."""

import importlib
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[3] / "benchmarks"
U, MIB = 512, 2**20


@pytest.fixture(scope="module")
def policies():
    if not FOLDER.exists():
        pytest.skip("no benchmarks beside the tests")
    sys.path.insert(0, str(FOLDER))
    yield importlib.import_module("policies")
    sys.path.remove(str(FOLDER))


def test_cupy_rounds_to_512(policies):
    pool = policies.CuPy()
    assert [pool.round(n) for n in (U - 1, U, U + 1)] == [U, U, 2 * U]


def test_cupy_splits_and_merges(policies):
    pool = policies.CuPy()
    whole = pool.allocate(4 * U)
    start = whole.address
    pool.free(whole)
    head, tail = pool.allocate(2 * U), pool.allocate(2 * U)
    assert (head.address, tail.address) == (start, start + 2 * U)
    pool.free(tail)
    pool.free(head)
    assert pool.allocate(4 * U).address == start
    assert pool.reserved == 4 * U


def test_cupy_does_not_grow_in_place_nor_across_streams(policies):
    pool = policies.CuPy()
    first = pool.allocate(4 * U)
    start = first.address
    pool.free(first)
    assert pool.allocate(8 * U).address != start
    assert pool.allocate(4 * U, stream=1).address != start
    assert pool.allocate(4 * U).address == start


def test_cupy_splits_however_little_is_cut_out(policies):
    pool = policies.CuPy()
    pool.free(pool.allocate(1024 * MIB))
    pool.allocate(1)
    assert pool.reserved == 1024 * MIB
    pool.allocate(1024 * MIB)
    assert pool.reserved == 2048 * MIB


@pytest.mark.parametrize(
    ("nbytes", "segment"),
    [
        (1, 2),
        (MIB, 2),
        (MIB + 1, 20),
        (10 * MIB - 512, 20),
        (10 * MIB, 10),
        (11 * MIB, 12),
    ],
)
def test_pytorchs_segments(policies, nbytes, segment):
    pool = policies.PyTorch()
    pool.allocate(nbytes)
    assert pool.reserved == segment * MIB


def test_pytorch_keeps_small_and_large_apart(policies):
    pool = policies.PyTorch()
    pool.free(pool.allocate(20 * MIB))
    pool.allocate(512)
    assert pool.reserved == 22 * MIB


def test_pytorch_splits_large_blocks_from_a_mib_on(policies):
    pool = policies.PyTorch()
    pool.free(pool.allocate(12 * MIB))
    block = pool.allocate(11 * MIB)
    assert block.nbytes == 12 * MIB
    pool.free(block)
    assert pool.allocate(10 * MIB).nbytes == 10 * MIB


def test_mxnets_naive_pool_serves_the_very_size_only(policies):
    pool = policies.Naive()
    assert [pool.round(n) for n in (1, 4097, 2 * MIB, 2 * MIB + 1)] == [
        4096, 8192, 2 * MIB, 4 * MIB]  # fmt: skip
    block = pool.allocate(10_000)
    pool.free(block)
    assert pool.allocate(8000) is not block
    assert pool.allocate(9000) is block


def test_mxnets_round_pool(policies):
    pool = policies.Round()
    for first, second in ((32, 4095), (2 * MIB + 1, 3 * MIB)):
        block = pool.allocate(first)
        pool.free(block)
        assert pool.allocate(second) is block
    assert pool.round(16 * MIB + 1) == 32 * MIB

"""No more memory in the midst of what CuPy computes: ndx's own errors, always."""

import gc

import pytest

import ndx

from .conftest import made_or_skip

MIB = 1 << 20

# Each takes a temporary of its argument's size, or more.
SORTS = {
    "sort": ndx.sort,
    "argsort": ndx.argsort,
    "descending": lambda x: ndx.sort(x, descending=True),
}


@pytest.mark.parametrize("function", SORTS.values(), ids=SORTS)
@pytest.mark.parametrize("source", ["pool", "async"])
def test_sorting(gpu, function, source):
    if source == "async" and gpu is None:
        made_or_skip(ndx.backends.CudaBackend, source="async")
    # Room for the argument, and by chance for a result, but not for all that it takes.
    with ndx.use("cuda:0", limit="22MiB", source=source) as backend:
        x = ndx.ones(MIB)
        with pytest.raises(ndx.OutOfMemoryError, match="its limit is 22 MiB") as raised:
            function(x)
        assert raised.value.limit == 22 * MIB
        del raised
        gc.collect()
        assert backend.stats()["allocated_bytes"] == 8 * MIB
        assert float(ndx.sum(x)) == MIB
        assert function(x[:100]).shape == (100,)


@pytest.mark.parametrize("function", SORTS.values(), ids=SORTS)
def test_in_a_workspace(gpu, function):
    with (
        ndx.use("cuda:0"),
        ndx.workspace("full", size="22MiB", spill="fail") as ws,
    ):
        x = ndx.ones(MIB)
        with pytest.raises(ndx.OutOfMemoryError, match="workspace 'full' is full"):
            function(x)
    ws.destroy()


def test_other_refusals_are_no_lack_of_memory(gpu):
    x = ndx.asarray([3.0, 1.0, 2.0], device="cuda:0")

    @ndx.cuda.graph
    def outside(x):
        with ndx.no_workspace():
            ndx.sort(x)
        return x

    outside(x)
    with pytest.raises(ndx.DeviceError, match="while a graph is captured"):
        outside(x)
    assert ndx.sort(x).tolist() == [1.0, 2.0, 3.0]


def test_an_error_is_not_remembered(gpu):
    with ndx.use("cuda:0", limit="22MiB"):
        x = ndx.ones(MIB)
        with pytest.raises(ndx.OutOfMemoryError):
            ndx.sort(x)
    with ndx.use("cuda:0", limit="21MiB"):
        y = ndx.ones(MIB)
        with pytest.raises(ndx.OutOfMemoryError, match="21 MiB"):
            y + ndx.concat([y, y])[:MIB]
    del x, y

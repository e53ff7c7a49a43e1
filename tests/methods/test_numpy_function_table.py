"""Functions of NumPy that NumPy computes: whose memory, which errors, whose classes."""

import warnings

import numpy as np
import pytest
from helpers.commands import run_python

import ndx
import ndx.numpy as face

# Small operands, and a result or temporaries that are not: an int, a float, a text or
# broadcasting makes them large.
GROWING = {
    "full": lambda x: face.full((400, 400), x),
    "resize": lambda x: face.resize(x, 100_000),
    "pad": lambda x: face.pad(x, 50_000),
    "tile": lambda x: face.tile(x, (2, 20_000)),
    "repeat": lambda x: face.repeat(x, 20_000),
    "vander": lambda x: face.vander(x, 50_000),
    "tri": lambda x: face.tri(400),
    "indices": lambda x: face.indices((300, 300)),
    "hanning": lambda x: face.hanning(1e5),
    "histogram": lambda x: face.histogram(x, bins=100_000),
    "linspace": lambda x: face.linspace(0 * x, x, 50_000),
    "bincount": lambda x: face.bincount(face.asarray([0, 100_000])),
    "where": lambda x: face.where(long(x)[:, None] > 0, long(x), x[0] + 0j),
    "outer": lambda x: face.multiply.outer(long(x), long(x).astype("float32")),
    "kron": lambda x: face.kron(long(x), long(x)),
    "einsum": lambda x: face.einsum("i,j,k->ijk", x, long(x), long(x)),
    "cov": lambda x: face.cov(face.broadcast_to(long(x)[:, None], (500, 2))),
    "polyfit": lambda x: face.polyfit(long(x), long(x), 400),
    "full, a size of NumPy's": lambda x: face.full(np.int64(10**5), 1j),
    "full, a size of ours": lambda x: face.full(face.asarray([10**5])[0], 1j),
    "full, sizes in an array": lambda x: face.full(face.asarray([400, 400]), 1j),
    "eye, a size without axes": lambda x: face.eye(face.asarray(1000)),
    "select": lambda x: face.select([long(x)[:, None] > 0], [long(x)], 0.0),
}


def long(x):
    return face.broadcast_to(x[:1], (500,))


@pytest.mark.parametrize("name", GROWING)
@pytest.mark.filterwarnings("ignore:Polyfit may be poorly conditioned")
def test_what_grows_is_in_memory_of_ndx(name):
    with ndx.use("host", limit="100KiB"):
        x = face.arange(1.0, 6.0)
        with pytest.raises(MemoryError):
            GROWING[name](x)


@pytest.mark.parametrize("size", [3, 1000, 5000])
def test_results_are_in_memory_of_ndx(size):
    x = face.arange(float(size))
    with ndx.workspace("table", size="1MiB"):
        found = face.angle(x), face.unwrap(x), face.interp(x, x, x)
        assert all(each.workspace == "table" for each in found)
    assert not any(each.in_scope for each in found)


def test_arrays_that_numpy_has_made_are_not_shared():
    x = face.arange(4.0)
    kept = []

    def function(row):
        kept.append(row)
        return row

    found = face.apply_along_axis(function, 0, x)
    found[0] = 7.0
    assert x[0] == 0.0
    assert kept[0][0] == 0.0


def test_a_large_result_is_adopted():
    """One that NumPy had allocated by itself would be there twice for a moment."""
    run_python(
        """
        import tracemalloc
        import numpy as np
        import ndx.numpy as face
        x = face.arange(3.0)
        face.pad(x, 10)
        tracemalloc.start()
        for width in 10**6, np.int64(10**6), face.asarray([10**6])[0]:
            tracemalloc.reset_peak()
            nbytes = face.pad(x, width).nbytes
            assert tracemalloc.get_traced_memory()[1] < 1.5 * nbytes, type(width)
        rng = face.random.default_rng(1)
        draws = {
            "size": lambda: rng.normal(size=10**6),
            "a tuple": lambda: rng.normal(100, 20, (1000, 1000)),
            "by place": lambda: rng.random(10**6),
            "parameters": lambda: rng.normal(face.zeros(1000), 1.0, (1000, 1000)),
            "a number of ours": lambda: rng.random(face.asarray([10**6])[0]),
            "the old generator": lambda: face.random.RandomState(1).rand(1000, 1000),
            "NumPy's own generator": lambda: face.random.standard_normal(10**6),
        }
        for name, draw in draws.items():
            draw()
            tracemalloc.reset_peak()
            nbytes = draw().nbytes
            assert tracemalloc.get_traced_memory()[1] < 1.5 * nbytes, name
        """
    )


def test_a_size_of_numpys_is_no_value_that_is_stored():
    for size in np.int64(2), face.asarray([2])[0], face.asarray(2):
        assert face.full(size, 1j).tolist() == [1j, 1j]
    with pytest.raises(OverflowError):
        face.full(np.int64(2), 300, dtype="int8")


SILENT_CASTS = {
    "stack": lambda x: face.stack([x, x], dtype="float32", casting="same_kind"),
    "hstack": lambda x: face.hstack([x, x], dtype="float32", casting="same_kind"),
    "require": lambda x: face.require(x, dtype="float32"),
    "einsum": lambda x: face.einsum("i,i,i->", x, x, x, optimize=True),
    "take": lambda x: face.take(x, [0], None, face.zeros(1, "float32")),
    "compress": lambda x: face.compress([True], x, 0, face.zeros(1, "float32")),
}


@pytest.mark.parametrize("name", SILENT_CASTS)
def test_no_warning_of_a_cast(name):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        SILENT_CASTS[name](face.full(2, 1e308))


def test_arrays_of_one_memory_share_it():
    memory = np.arange(4.0)
    x, y = (ndx.asarray(memory, copy=False) for _ in range(2))
    for function in face.shares_memory, face.may_share_memory:
        assert function(x, y)
        assert function(x, x[1:])
        assert not function(x, ndx.ones(4))
    assert not face.shares_memory(x[::2], y[1::2])
    assert face.may_share_memory(x[::2], y[1::2])


@pytest.mark.parametrize("size", [3, 5000])
def test_no_warning_of_what_numpy_computes(size):
    x = face.zeros(size) - 1.0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.isnan(face.emath.sqrt(x * 0.0) / 0.0).all()
        face.nan_to_num(face.log(x))
        face.average(x, weights=face.ones(size) * 1e308)
        with face.errstate(all="raise"), pytest.raises(FloatingPointError):
            face.unwrap(x * np.inf - x * np.inf)


def test_other_classes_compute_themselves():
    x = face.arange(4.0)

    class Other:
        def __array_function__(self, function, types, args, kwargs):
            return function.__name__

    assert np.append(x, Other()) == "append"
    assert face.append(x, Other()) == "append"
    masked = np.ma.masked_greater(np.arange(4.0), 2)
    assert type(face.nan_to_num(masked)) is type(np.nan_to_num(masked))
    assert face.median(face.asarray(masked)) == 1.5

"""Passes of operations that go from part to part: the same results as without."""

import os

import numpy as np
import pytest
from helpers.numpy_versions import needs_part
from helpers.passes import LARGE, in_file, passing, same

import ndx

pytestmark = [
    needs_part("loops"),
    pytest.mark.threads,
    pytest.mark.skipif(os.name != "posix", reason="maps files"),
]
RNG = np.random.default_rng(7)

# Whether all operands fit in memory, some do, or none.
MEMORY = pytest.mark.parametrize("memory", ["1GiB", "100KiB", 0])
AXES = pytest.mark.parametrize("axis", [None, 0, 1, 2, (0, 2), (0, 1, 2)])


def integers(*shape, dtype="float64"):
    return RNG.integers(-9, 9, shape).astype(dtype)


def named(calls):
    return {name for _, _, name in calls}


@MEMORY
@AXES
@pytest.mark.parametrize("order", [(0, 1, 2), (2, 0, 1)])
def test_reductions_of_what_is_converted_first(tmp_path, memory, axis, order):
    with passing(tmp_path, memory=memory) as calls:
        a = integers(20, 70, 40, dtype="int32").transpose(order)
        x = ndx.permute_dims(in_file(a.transpose(np.argsort(order))), order)
        del calls[:]
        for keepdims in (False, True):
            options = {"axis": axis, "keepdims": keepdims}
            for name in ("sum", "any", "all", "count_nonzero"):
                same(getattr(ndx, name)(x, **options), getattr(np, name)(a, **options))
            for name in ("mean", "std"):
                found = getattr(ndx, name)(x, **options)
                same(found, getattr(np, name)(a, **options), exact=False)
        assert named(calls) == {"sum", "any", "all", "count_nonzero", "mean", "var"}
        same(ndx.prod(x // 9 * 2 + 1, axis=axis), (a // 9 * 2 + 1).prod(axis=axis))


@MEMORY
@AXES
def test_variances_without_a_copy(tmp_path, memory, axis):
    with passing(tmp_path, memory=memory) as calls:
        a = RNG.normal(size=(20, 70, 40)) + 1e6
        x = in_file(a)
        del calls[:]
        same(ndx.var(x, axis=axis, correction=1), a.var(axis=axis, ddof=1), exact=False)
        assert named(calls) == {"sum", "var"}
        assert calls[-1][:2] == (x.nbytes, x.nbytes)


def test_variances_take_no_room_in_files_nor_in_workspaces(tmp_path):
    with passing(tmp_path), ndx.use("mmap", directory=tmp_path) as backend:
        x = in_file(RNG.normal(size=3_000_000))
        with ndx.workspace("step", size="64KiB", spill="fail"):
            before = backend.stats()["peak_reserved_bytes"]
            y = ndx.var(x)
            assert y.workspace == "step"
        assert backend.stats()["peak_reserved_bytes"] - before < x.nbytes / 4


@MEMORY
@pytest.mark.parametrize("dtype", ["float64", "int8", "complex64"])
def test_running_results(tmp_path, memory, dtype):
    with passing(tmp_path, memory=memory) as calls:
        a = integers(20, 70, 40, dtype=dtype)
        a = np.sign(a) if dtype == "complex64" else a
        x = in_file(a)
        del calls[:]
        for axis in (0, 1, 2):
            same(ndx.cumulative_sum(x, axis=axis), wide(np.cumsum(a, axis=axis)))
            first = ndx.cumulative_prod(x, axis=axis, include_initial=True)
            found = np.asarray(first).take(range(1, a.shape[axis] + 1), axis)
            np.testing.assert_array_equal(found, np.cumprod(a, axis=axis))
        assert named(calls) == {"cumulative_sum", "cumulative_prod"}
        flat = ndx.reshape(x, (-1,))
        same(ndx.cumulative_sum(flat), wide(np.cumsum(a)))


def wide(a):
    return a.astype("int64") if a.dtype.kind == "i" else a


@MEMORY
def test_running_sums_are_the_same_to_the_last_bit(tmp_path, memory):
    with passing(tmp_path, memory=memory):
        a = RNG.normal(size=200_000)
        same(ndx.cumulative_sum(in_file(a)), np.cumsum(a))


@pytest.mark.costly
@MEMORY
@pytest.mark.parametrize("transposed", [(0, 0), (0, 1), (1, 0), (1, 1)])
@pytest.mark.parametrize(
    "sizes",
    [(300, 200, 10), (10, 3000, 12), (3, 2, 40000), (200, 210, 220), (40000, 2, 3)],
)
def test_products(tmp_path, sizes, transposed, memory):
    m, k, n = sizes
    with passing(tmp_path, memory=memory) as calls:
        a, b = integers(m, k), integers(k, n)
        x = in_file(a.T).T if transposed[0] else in_file(a)
        y = in_file(b.T).T if transposed[1] else in_file(b)
        del calls[:]
        same(x @ y, a @ b)
        assert named(calls) == {"matmul"}
        assert calls[-1][0] == calls[-1][1] == 8 * (m * k + k * n + m * n)
        out = in_file(np.ones((n, m)))
        ndx.matmul(x, y, out=out.T)
        same(out, (a @ b).T)
        same(x[1] @ y, a[1] @ b)
        same(x @ y[:, 1], a @ b[:, 1])
        same(x[1] @ y[:, 1], a[1] @ b[:, 1])
        same(ndx.reshape(x, (1, m, k)) @ y, (a @ b)[None])
        same(x.T @ x, a.T @ a) if max(sizes) < 5000 else None


@MEMORY
def test_products_of_float16_are_rounded_once(tmp_path, memory):
    # The sums of panels are beyond float16's range, or would be rounded one by one.
    a = np.ones((3, 300_000), dtype="float16")
    a[:, 150_000:] = -1
    b = RNG.normal(size=(300_000, 2)).astype("float16")
    with passing(tmp_path, memory=memory) as calls:
        x, y = in_file(a), in_file(b)
        ones = ndx.ones(300_000, dtype="float16")
        del calls[:]
        same(x @ ones, np.zeros(3, dtype="float16"))
        assert named(calls) == {"matmul"}
        wanted = a.astype("float64") @ b.astype("float64")
        np.testing.assert_allclose(np.asarray(x @ y), wanted, rtol=2e-3)
        np.testing.assert_allclose(np.asarray(x[0] @ y), wanted[0], rtol=2e-3)


@MEMORY
@pytest.mark.parametrize("name", ["argmax", "argmin"])
def test_places_of_extremes(tmp_path, memory, name):
    with passing(tmp_path, memory=memory) as calls:
        for dtype in ("float64", "int16", "bool"):
            a = integers(20, 70, 40, dtype=dtype)
            if dtype == "float64":
                a[3, 5, 7] = a[18, 5, 7] = a[3, 50, 7] = np.nan
            for order in ((0, 1, 2), (2, 0, 1)):
                x = ndx.permute_dims(in_file(a), order)
                b = a.transpose(order)
                del calls[:]
                for axis in (None, 0, 1, 2):
                    for keepdims in (False, True):
                        options = {"axis": axis, "keepdims": keepdims}
                        same(
                            getattr(ndx, name)(x, **options),
                            getattr(np, name)(b, **options),
                        )
                assert named(calls) == {name}


@MEMORY
def test_taking(tmp_path, memory):
    with passing(tmp_path, memory=memory) as calls:
        a = integers(60, 30, 40)
        x = in_file(a)
        for axis in (0, 1, 2):
            chosen = RNG.integers(-30, 30, 500)
            del calls[:]
            same(ndx.take(x, ndx.asarray(chosen), axis=axis), a.take(chosen, axis))
            assert "take" in named(calls)
        bad = np.zeros(40_000, np.int64)
        bad[39_000] = 60
        with pytest.raises(IndexError, match="index 60 is out of bounds"):
            ndx.take(x, ndx.asarray(bad), axis=0)


@pytest.mark.parametrize("shape", [(40_000,), (300, 400), (20, 30, 200), (3, 40_000)])
@pytest.mark.parametrize("axis", [0, -1])
def test_index_arrays_are_read_in_steps(tmp_path, shape, axis):
    rng = np.random.default_rng(3)
    a = rng.normal(size=shape)
    count = 120_000 * a.shape[axis] // a.size
    index = rng.integers(-a.shape[axis], a.shape[axis], count)
    key = (index,) if axis == 0 else (..., index)
    with passing(tmp_path, threads=1) as calls:
        x = in_file(a)
        found = x[tuple(ndx.asarray(k) if k is index else k for k in key)]
        same(found, a[key])
        assert "take" in named(calls)
        done = [call[0] for call in calls if call[2] == "take"]
        assert done == sorted(done)
        assert len(done) > 2


# ---------------------------------------------------------------- sorting


def values_to_sort(dtype, n):
    """Return arrays that are hard to cut into equal intervals."""
    if np.dtype(dtype).kind == "b":
        yield RNG.random(n) < 0.5
        return
    yield RNG.integers(0, 100, n).astype(dtype)
    yield np.zeros(n, dtype)
    yield np.arange(n).astype(dtype)[::-1].copy()
    skewed = np.ones(n, dtype)
    skewed[:: n // 50] = 3
    yield skewed
    if np.dtype(dtype).kind in {"f", "c"}:
        many = RNG.normal(size=n).astype(dtype)
        many[RNG.integers(0, n, n // 3)] = np.nan
        many[RNG.integers(0, n, n // 10)] = 0.0
        many[RNG.integers(0, n, n // 10)] = -0.0
        many[:100] = np.inf
        yield many


@pytest.mark.costly
@MEMORY
@pytest.mark.parametrize("dtype", ["bool", "uint8", "int64", "float32", "complex128"])
@pytest.mark.parametrize("descending", [False, True])
def test_sorting_by_merging(tmp_path, memory, dtype, descending):
    n = 60_000
    with passing(tmp_path, memory=memory, block="4KiB") as calls:
        for a in values_to_sort(dtype, n):
            x = in_file(a)
            del calls[:]
            found = ndx.sort(x, descending=descending)
            expected = np.sort(a[::-1] if descending else a, kind="stable")
            expected = expected[::-1] if descending else expected
            same(found, expected)
            if a.dtype.kind == "f":
                np.testing.assert_array_equal(
                    np.signbit(np.asarray(found))[~np.isnan(expected)],
                    np.signbit(expected)[~np.isnan(expected)],
                )
            assert "sort" in named(calls)
            assert calls[-1][0] == calls[-1][1]
            same(x, a)


@pytest.mark.costly
@MEMORY
@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("block", ["4KiB", "64KiB"])
def test_sorting_along_axes(tmp_path, memory, axis, block):
    with passing(tmp_path, memory=memory, block=block) as calls:
        for shape in ((20, 70, 40), (2, LARGE, 1), (1, 3, LARGE)):
            a = integers(*shape)
            same(ndx.sort(in_file(a), axis=axis), np.sort(a, axis=axis))
            x = ndx.permute_dims(in_file(a), (2, 0, 1))
            b = a.transpose((2, 0, 1))
            same(ndx.sort(x, axis=axis), np.sort(b, axis=axis))
        assert "sort" in named(calls)


# ---------------------------------------------------------------- what ends them


@pytest.mark.parametrize("memory", ["1GiB", 0])
@pytest.mark.parametrize(
    "compute",
    [
        lambda x: ndx.var(x),
        lambda x: ndx.sum(x, dtype=ndx.complex128),
        lambda x: ndx.cumulative_sum(x),
        lambda x: ndx.reshape(x, (300, 500)) @ ndx.reshape(x, (500, 300)),
        lambda x: ndx.argmax(x),
        lambda x: ndx.take(x, ndx.zeros(100_000, dtype=ndx.int64)),
        lambda x: ndx.sort(x),
    ],
    ids=["var", "sum", "cumulative", "matmul", "argmax", "take", "sort"],
)
def test_what_the_callback_raises_ends_them(tmp_path, compute, memory):
    with ndx.use("mmap", directory=tmp_path) as backend:
        x = in_file(np.arange(150_000.0))
        before = backend.stats()["allocated_bytes"]
        calls = []

        def stop(done, total, name):
            calls.append(ndx.current_backend() is backend)
            if len(calls) == 2:
                raise KeyboardInterrupt

        passes = ndx.passes(
            progress=stop, threads=1, threshold=0, block="16KiB", memory=memory
        )
        with passes, pytest.raises(KeyboardInterrupt):
            compute(x)
        assert calls == [True, True], "the callback computes as the user does"
        assert ndx.current_backend() is backend
        assert backend.stats()["allocated_bytes"] == before
        same(x, np.arange(150_000.0))
        x.close()


# ---------------------------------------------------------------- degenerate products


@pytest.mark.costly
@MEMORY
@pytest.mark.parametrize("block", ["4KiB", "8KiB", "1MiB"])
@pytest.mark.parametrize(
    ("first", "second"),
    [
        ((1, 100, 400), (400,)),
        ((400,), (1, 400, 100)),
        ((1, 1, 100, 400), (400,)),
        ((400,), (1, 1, 400, 100)),
        ((1, 100, 400), (400, 3)),
        ((1, 100, 400), (1, 400, 1)),
        ((1, 1, 40000), (40000,)),
        ((40000,), (1, 40000, 1)),
        ((100, 400), (400,)),
        ((400,), (400, 100)),
        ((40000,), (40000,)),
        ((1, 40000), (40000, 1)),
        ((300, 1), (1, 300)),
        ((1, 300, 1), (1,)),
        ((300, 0), (0, 300)),
        ((2, 100, 400), (400,)),
    ],
)
def test_products_with_stacks_of_one_and_vectors(
    tmp_path, first, second, block, memory
):
    with passing(tmp_path, block=block, memory=memory):
        for dtype in ("float64", "int64"):
            a, b = integers(*first, dtype=dtype), integers(*second, dtype=dtype)
            x, y = in_file(a), in_file(b)
            same(x @ y, a @ b)
            out = ndx.full((a @ b).shape, -1, dtype=dtype)
            assert ndx.matmul(x, y, out=out) is out
            same(out, a @ b)


@MEMORY
@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "uint8"])
def test_imaginary_parts_are_never_dropped(tmp_path, dtype, memory):
    with passing(tmp_path, memory=memory):
        x = in_file(np.full(LARGE, 1 + 1j))
        for function in (ndx.cumulative_sum, ndx.cumulative_prod, ndx.sum, ndx.prod):
            with pytest.raises(TypeError, match="imaginary parts would be lost"):
                function(x, dtype=np.dtype(dtype))
        with pytest.raises(TypeError, match="imaginary parts would be lost"):
            ndx.astype(x, np.dtype(dtype))
        with pytest.raises(TypeError, match="can't be stored"):
            in_file(np.zeros(LARGE, dtype))[...] = x

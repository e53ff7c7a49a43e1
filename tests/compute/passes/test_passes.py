"""Operations on arrays in files: the same results, block by block."""

import math
import os

import numpy as np
import pytest
from helpers.examples import examples
from helpers.numpy_versions import needs_part
from helpers.passes import LARGE, in_file, passing, same
from hypothesis import given
from hypothesis import strategies as st

import ndx

pytestmark = [
    needs_part("loops"),
    pytest.mark.threads,
    pytest.mark.skipif(os.name != "posix", reason="maps files"),
]
RNG = np.random.default_rng(5)

# Whether all operands fit in memory: pages are mapped there, else pieces are read.
MEMORY = pytest.mark.parametrize("memory", ["1GiB", 0], ids=["fits", "streams"])

shapes = st.sampled_from([
    (40000,), (200, 200), (3, 40000), (20000, 2), (40, 33, 30), (1, 50000), (2,) * 16,
])  # fmt: skip


@st.composite
def layouts(draw, shape):
    """Return a function that makes a view of a shape, of a new array of `values`."""
    order = draw(st.permutations(range(len(shape))))
    few = len(shape) <= 3
    steps = [
        draw(st.sampled_from([1, 1, 1, 2, 3, -1, -2] if few else [1, -1]))
        for _ in shape
    ]
    pad = [draw(st.integers(0, 2 if few else 0)) for _ in shape]

    def view(make):
        x = make(tuple(abs(steps[axis]) * shape[axis] + pad[axis] for axis in order))
        back = tuple(order.index(axis) for axis in range(len(shape)))
        x = x.transpose(back) if type(x) is np.ndarray else ndx.permute_dims(x, back)
        keys = []
        for axis, step in enumerate(steps):
            start = pad[axis] if step > 0 else shape[axis] * -step + pad[axis] - 1
            stop = start + step * shape[axis]
            keys.append(slice(start, None if stop < 0 else stop, step))
        return x[tuple(keys)]

    return view


@st.composite
def cases(draw):
    shape = draw(shapes)
    options = {
        "memory": draw(st.sampled_from(["1GiB", 0])),
        "threads": draw(st.sampled_from([1, 2, 5])),
        "block": draw(st.sampled_from(["4KiB", "100KB", "64MiB"])),
    }
    return shape, [draw(layouts(shape)) for _ in range(3)], options


def pair(layout, dtype="float64"):
    """Return a view of an array in a file, and NumPy's of the same values."""
    made = []

    def make(shape):
        values = RNG.integers(-99, 99, shape).astype(dtype)
        made.append(values)
        return in_file(values)

    x = layout(make)
    return x, layout(lambda shape: made[0])


@examples(10)
@given(case=cases())
def test_elementwise_in_any_layout(tmp_path, case):
    _, layouts, options = case
    with passing(tmp_path, **options) as calls:
        x, a = pair(layouts[0])
        y, b = pair(layouts[1])
        del calls[:]
        same(x + y, a + b)
        assert {name for _, _, name in calls} == {"add"}
        same(x * 2.5, a * 2.5)
        same(ndx.abs(x), np.abs(a))
        same(x < y, a < b)
        same(ndx.where(x < y, x, y), np.where(a < b, a, b))
        out, _ = pair(layouts[2])
        ndx.subtract(x, y, out=out)
        same(out, a - b)
        x -= y
        same(x, a - b)
        out[...] = y
        same(out, b)


@examples(25)
@given(case=cases(), dtype=st.sampled_from(["bool", "int16", "uint64", "float32"]))
def test_copies_to_another_dtype(tmp_path, case, dtype):
    _, layouts, options = case
    with passing(tmp_path, **options) as calls:
        x, a = pair(layouts[0])
        x[...] = ndx.abs(x)
        a = np.abs(a)
        out, b = pair(layouts[1], dtype)
        del calls[:]
        same(ndx.astype(x, np.dtype(dtype)), a.astype(dtype))
        out[...] = True
        same(out, np.ones_like(b))
        out[...] = ndx.astype(x, np.dtype(dtype))
        same(out, a.astype(dtype))
        assert {name for _, _, name in calls} == {"copy", "fill"}


@examples(25)
@given(case=cases(), data=st.data())
def test_reductions_in_any_layout(tmp_path, case, data):
    shape, layouts, options = case
    axes = data.draw(
        st.one_of(
            st.none(), st.sets(st.integers(0, len(shape) - 1), min_size=1).map(tuple)
        )
    )
    keepdims = data.draw(st.booleans())
    with passing(tmp_path, **options) as calls:
        x, a = pair(layouts[0])
        y, b = pair(layouts[1], "int64")
        for name in ("sum", "mean", "max", "min", "var"):
            del calls[:]
            found = getattr(ndx, name)(x, axis=axes, keepdims=keepdims)
            with np.errstate(all="ignore"):
                expected = getattr(np, name)(a, axis=axes, keepdims=keepdims)
            same(found, expected, exact=name in ("max", "min"))
            assert name in ("mean", "var") or calls[-1][2] == name
        for name in ("sum", "max", "min", "prod"):
            same(getattr(ndx, name)(y, axis=axes), getattr(np, name)(b, axis=axes))
        for name in ("any", "all"):
            same(
                getattr(ndx, name)(x > 98, axis=axes),
                getattr(np, name)(a > 98, axis=axes),
            )


@MEMORY
@pytest.mark.parametrize("dtype", ["bool", "int8", "uint32", "float16", "float32",
                                   "float64", "complex64", "complex128"])  # fmt: skip
def test_what_reductions_start_from(tmp_path, dtype, memory):
    """The parts of a result start from what leaves every element as it is."""
    with passing(tmp_path, memory=memory):
        for value in (0, 1, -1, math.inf, -math.inf, math.nan):
            if value != value or abs(value) > 1:
                if np.dtype(dtype).kind not in "fc":
                    continue
            elif value < 0 and np.dtype(dtype).kind in {"b", "u"}:
                continue
            a = np.full(5 * LARGE, value, dtype)
            x = in_file(a)
            for name in ("max", "min"):
                if np.dtype(dtype).kind != "c":
                    same(getattr(ndx, name)(x), getattr(np, name)(a))
            with np.errstate(all="ignore"):
                same(ndx.sum(x, dtype=x.dtype), np.sum(a, dtype=dtype), exact=False)
                same(ndx.prod(x, dtype=x.dtype), np.prod(a, dtype=dtype))
        zeros = in_file(np.full(5 * LARGE, -0.0))
        assert math.copysign(1, float(ndx.sum(zeros))) == -1
        assert math.copysign(1, float(ndx.max(zeros))) == -1


@MEMORY
def test_sums_do_not_depend_on_threads_and_are_pairwise(tmp_path, memory):
    a = RNG.standard_normal(2_000_000).astype(np.float32) + 1
    b = a.reshape(2000, 1000)
    with passing(tmp_path, memory=memory, block="64MiB"):
        x = in_file(a)
        found = set()
        for threads in (1, 2, 3, 7):
            with ndx.passes(threads=threads, block="100KB"):
                found.add(float(ndx.sum(x)))
        assert len(found) == 1
        exact = math.fsum(a)
        assert (
            abs(found.pop() - exact) <= 2 * abs(float(np.sum(a)) - exact) + 1e-6 * exact
        )
        rows = np.asarray(ndx.sum(ndx.reshape(x, b.shape), axis=0))
        np.testing.assert_allclose(rows, b.astype(np.float64).sum(axis=0), rtol=1e-5)


def test_integers_to_negative_powers(tmp_path):
    with passing(tmp_path, threads=4):
        x = in_file(np.arange(-LARGE, LARGE))
        with pytest.raises(ValueError, match="negative integer powers"):
            x**-1
        with pytest.raises(ValueError, match="negative integer powers"):
            2**x
        same(x**2, np.arange(-LARGE, LARGE) ** 2)


# ---------------------------------------------------------------- degenerate shapes


SINGLE = [
    ((1, 40000), 0),
    ((40000, 1), 1),
    ((40000, 1), -1),
    ((1, 200, 1, 200), (0, 2)),
    ((200, 200), ()),
    ((40000,), ()),
]


@pytest.mark.costly
@MEMORY
@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize(("shape", "axis"), SINGLE)
def test_reductions_over_nothing_but_single_elements(
    tmp_path, shape, axis, keepdims, memory
):
    with passing(tmp_path, memory=memory) as calls:
        # Leaves numbers in the room for pieces that the next pass has.
        in_file(np.full(4 * LARGE, 12345.0)) * 3.0
        options = {"axis": axis, "keepdims": keepdims}
        for dtype in ("bool", "int8", "int64", "uint64", "float32", "float64",
                      "complex128"):  # fmt: skip
            a = RNG.integers(0, 9, shape).astype(dtype)
            for x in (in_file(a), ndx.asarray(a)):
                names = ["sum", "prod", "all", "any", "mean"]
                names += ["max", "min", "var", "std"] * (dtype != "complex128")
                for name in names:
                    del calls[:]
                    found = getattr(ndx, name)(x, **options)
                    same(found, getattr(np, name)(a, **options))
                    assert calls
                for name in ("sum", "prod"):
                    found = getattr(ndx, name)(x, dtype=x.dtype, **options)
                    same(found, getattr(np, name)(a, dtype=dtype, **options))


@MEMORY
def test_results_in_a_workspace_of_a_file(tmp_path, memory):
    a = RNG.integers(0, 9, (1, 5 * LARGE)).astype("float64")
    options = {"threshold": 0, "block": "64KiB", "memory": memory}
    with ndx.passes(**options), ndx.workspace("w", size="8MiB", path=tmp_path / "ws"):
        same(ndx.sum(ndx.asarray(a), axis=0), a[0])
        same(ndx.max(ndx.asarray(a), axis=()), a)


@MEMORY
def test_broadcast_operands_have_no_bytes_to_report(tmp_path, memory):
    with passing(tmp_path, memory=memory, progress=lambda d, t, n: d / t):
        row = in_file(np.arange(300.0))
        x = ndx.broadcast_to(row, (300, 300))
        same(ndx.sum(x, axis=1), np.full(300, np.arange(300.0).sum()))
        same(ndx.sum(x, axis=0), np.arange(300.0) * 300)
        same(x + x, np.broadcast_to(np.arange(300.0) * 2, (300, 300)))


@MEMORY
@pytest.mark.parametrize(("shape", "axis"), SINGLE)
def test_single_elements_that_are_converted_in_a_pass_of_their_own(
    tmp_path, shape, axis, memory
):
    """What is small enough to be converted as a whole, and is large once it was."""
    with passing(tmp_path, memory=memory, threshold="64KiB") as calls:
        in_file(np.full(4 * LARGE, 12345.0)) * 3.0
        for dtype in ("bool", "int8"):
            a = RNG.integers(0, 9, shape).astype(dtype)
            x = in_file(a)
            assert x.nbytes < 2**16 < 8 * x.size
            for name in ("sum", "prod", "mean", "var", "all", "any", "count_nonzero"):
                if axis == () and name == "count_nonzero":
                    continue
                found = getattr(ndx, name)(x, axis=axis)
                same(found, getattr(np, name)(a, axis=axis))
        assert {"sum", "prod"} <= {name for _, _, name in calls}


@MEMORY
def test_traces_and_counts_of_single_elements(tmp_path, memory):
    with passing(tmp_path, memory=memory):
        in_file(np.full(4 * LARGE, 12345.0)) * 3.0
        a = RNG.integers(0, 9, (2 * LARGE, 1, 1)).astype("float64")
        same(ndx.linalg.trace(in_file(a)), a[:, 0, 0])
        for shape, axis in SINGLE:
            b = RNG.integers(0, 2, shape).astype("float64")
            found = ndx.count_nonzero(in_file(b), axis=axis)
            same(found, np.sum(b != 0, axis=axis))


@MEMORY
@pytest.mark.parametrize("mode", ["r", "r+", "c"])
def test_single_elements_of_a_file_that_was_opened(tmp_path, mode, memory):
    a = RNG.integers(0, 9, (1, 2 * LARGE)).astype("float64")
    np.save(tmp_path / "x.npy", a)
    with passing(tmp_path, memory=memory):
        in_file(np.full(4 * LARGE, 12345.0)) * 3.0
        x = ndx.open(tmp_path / "x.npy", mode)
        for name in ("max", "sum"):
            same(getattr(ndx, name)(x, axis=0), a[0])
            same(getattr(ndx, name)(x, axis=()), a)

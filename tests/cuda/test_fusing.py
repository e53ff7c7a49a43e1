"""`ndx.fuse` of arrays on a GPU: kernels of `cupy.fuse`."""

import numpy as np
import pytest
from fusing.programs import DTYPES, STEPS, assert_same, on_cpu, same
from helpers.examples import examples
from hypothesis import given
from hypothesis import strategies as st

import ndx

SHAPES = [(), (0,), (1,), (5,), (3, 4), (1, 4), (4, 1), (0, 3), (2, 3, 4), (70, 60)]


def on_gpu(values):
    return ndx.asarray(values, device="cuda:0")


def full(shape, value=1.0):
    return ndx.full(shape, value, device="cuda:0")


def expression(a, b, c):
    return (a * b + c) / 2.0 - ndx.exp(-a)


def test_steps_are_one_kernel(machine):
    fused = ndx.fuse(expression)
    a, b, c = (on_gpu(np.linspace(1, 2, 12).reshape(3, 4) + i) for i in range(3))
    fused(a, b, c)
    machine.calls.clear()
    found = fused(a, b, c)
    kernels = [call for call in machine.calls if call[0] == "kernel"]
    assert len(kernels) == 1
    assert found.device == "cuda:0"
    np.testing.assert_array_equal(
        found.tolist(), expression(a, b, c).tolist(), strict=True
    )
    about = fused.explain().splitlines()
    assert about[1] == "  kernel over (3, 4): multiply add divide negative exp subtract"
    assert about[2] == "  1 arrays made, 0 of them temporary"


def test_only_results_take_memory(gpu):
    fused = ndx.fuse(expression)
    a = full((100, 10))
    used = {}
    for function in (fused, fused.__wrapped__):
        for _ in range(3):
            with ndx.workspace(f"{function}", backend="cuda:0") as workspace:
                function(a, a, a)
        used[function] = workspace.size
    assert used[fused] < 1.5 * a.nbytes
    assert used[fused.__wrapped__] > 4 * a.nbytes


def test_stencils_in_place_and_reductions(gpu):
    @ndx.fuse
    def step(u, rate):
        inner = u[1:-1, 1:-1]
        change = u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:] - 4.0 * inner
        inner += rate * change
        return ndx.mean(u), ndx.max(abs(change), axis=0), u

    values = np.random.default_rng(1).standard_normal((9, 8))
    one, other = on_gpu(values), on_gpu(values)
    for rate in (0.1, 0.2):
        mean, most, same_array = step(one, rate)
        mean_, most_, _ = step.__wrapped__(other, rate)
        assert same_array is one
        np.testing.assert_array_equal(one.tolist(), other.tolist())
        np.testing.assert_array_equal(most.tolist(), most_.tolist())
        np.testing.assert_allclose(float(mean), float(mean_), rtol=1e-14)
    assert step.explain().count("step(") == 1
    assert "called as it is" not in step.explain()


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (lambda x: x % 2.0 + 1, "CuPy has no single function for remainder of float64"),
        (lambda x: x // 2.0 + 1, "CuPy has no single function for floor_divide"),
        (lambda x: x + x.device, "x.device"),
        (lambda x: ndx.sort(x) + 1, "ndx.sort"),
    ],
)
def test_what_is_not_fused_says_why(gpu, function, reason):
    fused = ndx.fuse(function)
    x = on_gpu([1.5, -2.0, 3.0])
    if reason == "x.device":
        with pytest.raises(TypeError):
            fused(x)
    else:
        assert fused(x).tolist() == function(x).tolist()
    assert f"called as it is: {reason}" in fused.explain().replace("it uses ", "") \
        .replace("it calls ", "")  # fmt: skip


def test_signs_and_roundings(gpu):
    fused = ndx.fuse(lambda x, n: (ndx.sign(x), ndx.floor(x), ndx.ceil(n), ndx.sign(n)))
    x, n = on_gpu([-1.5, 0.0, -0.0, np.nan, np.inf]), on_gpu([-3, 0, 2, 4, 5])
    for found, expected in zip(fused(x, n), fused.__wrapped__(x, n), strict=True):
        assert same(on_cpu(found), on_cpu(expected))
    assert "kernel" in fused.explain()


def test_devices_have_signatures_of_their_own(gpu):
    fused = ndx.fuse(lambda a, b: a * b + 1)
    x = np.arange(6.0)
    assert fused(ndx.asarray(x), ndx.asarray(x)).device == "cpu"
    assert fused(on_gpu(x), on_gpu(x)).device == "cuda:0"
    assert fused(ndx.asarray(x), ndx.asarray(x)).tolist() == (x * x + 1).tolist()
    assert fused(on_gpu(x), on_gpu(x)).tolist() == (x * x + 1).tolist()
    for pair in ((on_gpu(x), ndx.asarray(x)), (x, on_gpu(x)), (on_gpu(x), x)):
        with pytest.raises(ValueError, match="different devices"):
            fused(*pair)
    assert fused.explain().count("float64") == 4


def test_arguments_that_overlap(gpu):
    @ndx.fuse
    def shifted(a, b):
        a += b
        return a * 2

    x, y = on_gpu(np.arange(8.0)), on_gpu(np.arange(8.0))
    for a, b in ((x, y), (x[1:], x[:-1]), (x[:4], x[4:])):
        before, other = np.asarray(a.tolist()), np.asarray(b.tolist())
        found = shifted(a, b)
        assert a.tolist() == (before + other).tolist()
        assert found.tolist() == ((before + other) * 2).tolist()


def test_kernels_with_too_many_parameters(gpu):
    fused = ndx.fuse(lambda x, n: sum((x[i : i + 5] for i in range(1, n)), x[:5]))
    x = full((100, 3))
    for n, reason in ((50, "kernel over"), (90, "bytes of parameters, more than")):
        assert fused(x, n).tolist() == [[n] * 3] * 5
        assert reason in fused.explain()


def test_stale_operands_raise(gpu):
    fused = ndx.fuse(expression)
    x = full(5)
    fused(x, x, x)
    with ndx.workspace("step", backend="cuda:0"):
        stale = full(5)
    with pytest.raises(ndx.StaleArrayError):
        fused(x, stale, x)


@pytest.mark.parametrize("take", [lambda x: x[0], lambda x: ndx.max(x)])
def test_elements_are_arrays_which_steps_in_place_change(gpu, take):
    def in_place(x):
        element = taken = take(x)
        element *= 3
        return element, taken, x

    def divided(x):
        taken = take(x)
        taken /= 2
        return taken

    x = full(3)
    found, expected = ndx.fuse(in_place)(x), in_place(full(3))
    assert [each.tolist() for each in found] == [3.0, 3.0, [1.0] * 3]
    assert [each.tolist() for each in expected] == [3.0, 3.0, [1.0] * 3]
    whole = ndx.asarray([4, 4], device="cuda:0")
    for function in (divided, ndx.fuse(divided)):
        with pytest.raises(TypeError):
            function(whole)


def test_results_are_in_the_workspace(gpu):
    fused = ndx.fuse(expression)
    x = full(5)
    with ndx.workspace("step", backend="cuda:0"):
        found = fused(x, x, x)
        assert found.workspace == "step"
        kept = found.detach()
    with pytest.raises(ndx.StaleArrayError):
        found.tolist()
    assert kept.tolist() == expression(x, x, x).tolist()


def test_a_graph_captures_the_kernels(gpu):
    fused = ndx.fuse(expression)

    @ndx.cuda.graph
    def step(a, b):
        c = fused(a, b, a)
        return ndx.sum(c) + fused(c, b, a)

    a, b = full((3, 4), 0.5), full((3, 4), 2.0)
    for value in (0.5, 0.25, 1.5, 3.0):
        a[...] = value
        c = expression(a, b, a)
        expected = ndx.sum(c) + expression(c, b, a)
        np.testing.assert_allclose(step(a, b).tolist(), expected.tolist(), rtol=1e-14)
    assert step.stats()["replays"] == 3


@st.composite
def arguments(draw):
    """Return a function that makes equal arrays on a GPU, again and again."""
    base = draw(st.sampled_from(SHAPES))
    made = []
    for _ in range(draw(st.integers(1, 3))):
        shape = draw(st.sampled_from([base, base, base, base[1:]]))
        dtype = np.dtype(draw(st.sampled_from(DTYPES)))
        rng = np.random.default_rng(draw(st.integers(0, 3)))
        values = np.asarray(rng.integers(-3, 4, shape) / 2).astype(dtype)
        made.append((values, draw(st.sampled_from(["plain", "turned", "reversed"]))))
    repeated = draw(st.booleans())

    def make(factor):
        arrays = []
        for values, layout in made:
            if layout == "turned":
                x = on_gpu(np.ascontiguousarray(values.T)).T
            elif layout == "reversed" and values.ndim:
                x = on_gpu(np.ascontiguousarray(values[::-1]))[::-1]
            else:
                x = on_gpu(values)
            arrays.append(x)
        return [*arrays, *arrays[:repeated], factor]

    return make


steps = st.tuples(
    st.sampled_from(STEPS), st.integers(0, 30), st.integers(0, 30), st.integers(0, 30),
    *[st.sampled_from([slice(None), slice(1, None), slice(None, -1), slice(1, -1),
                       slice(None, None, 2), slice(None, None, -1), ..., None, 0])] * 2,
)  # fmt: skip


@examples(100, deadline=None)
@given(st.lists(steps, min_size=1, max_size=9), arguments())
def test_random_programs_compute_the_same(gpu, program, make):
    assert_same(program, make, (0.25, 0.25, 3.5))

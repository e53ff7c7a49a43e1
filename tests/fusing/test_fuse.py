"""`ndx.fuse`: what is replayed, what is not, and that results are the same."""

import functools
import pickle
import threading

import numpy as np
import pytest
from helpers.midway import Midway
from helpers.passes import LARGE, in_file, passing

import ndx
import ndx._fusing.recording
import ndx.numpy as xnp
from ndx._fusing.recording import record


@ndx.fuse
def score(a, b, scale=2.0):
    """Return a score."""
    return (a - b) ** 2 / (a + b) * scale


def array(*values, **options):
    return ndx.asarray(values, **options)


def is_replayed(function):
    return "called as it is" not in function.explain()


def check(function, *args):
    """Assert that a function is replayed, with the results that it has itself."""
    fused = ndx.fuse(function)
    for _ in range(2):
        expected, found = function(*args), fused(*args)
        assert np.array_equal(np.asarray(found), np.asarray(expected), equal_nan=True)
        assert found.dtype == expected.dtype
    assert is_replayed(fused), fused.explain()
    return fused


def test_a_fused_function_looks_like_the_function():
    assert score.__name__ == "score"
    assert score.__doc__ == "Return a score."
    assert pickle.loads(pickle.dumps(score)) is score
    assert repr(score).startswith("<fused function ")
    assert score(array(1.0, 2.0), b=array(3.0, 6.0)).tolist() == [2.0, 4.0]
    assert "stage over (2,)" in score.explain()


def test_only_functions_are_fused():
    with pytest.raises(TypeError, match="takes a function, not int"):
        ndx.fuse(3)


def test_callable_objects_are_fused():
    fused = ndx.fuse(functools.partial(np.add, 1.0))
    assert fused(array(1.0)).tolist() == [2.0]
    assert fused.explain().startswith("partial(float64[1])")
    assert "partial" in repr(fused)
    with pytest.raises(pickle.PicklingError):
        pickle.dumps(fused)


def test_methods_are_fused():
    class Model:
        rate = 3.0

        @ndx.fuse
        def apply(self, x):
            return x * self.rate + 1

    model = Model()
    assert model.apply(array(1.0, 2.0)).tolist() == [4.0, 7.0]
    assert Model.apply(model, array(1.0)).tolist() == [4.0]


def test_a_function_that_has_not_been_called_says_so():
    assert ndx.fuse(abs).explain() == "abs has not been called"


def test_stencils_gather_every_neighbour():
    rng = np.random.default_rng(1)
    flat = ndx.asarray(rng.random((40, 50)))
    check(lambda u: u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] - 4 * u[1:-1, 1:-1], flat)
    for shape in ((9, 10, 11), (40, 3, 5), (50, 40, 60)):
        deep = ndx.asarray(rng.random(shape))
        check(
            lambda u: u[2:, 1:-1, 1:-1] + u[:-2, 1:-1, 1:-1] - u[1:-1, 1:-1, 2:], deep
        )


@pytest.mark.parametrize("size", [10, 1000, 100_000])
def test_a_store_that_its_own_sources_overlap(size):
    def smooth(u):
        u[1:-1] = (u[:-2] + u[2:]) / 2
        u[:-1] += u[1:]

    fused = ndx.fuse(smooth)
    values = np.random.default_rng(2).random(size)
    for _ in range(2):
        expected, found = values.copy(), ndx.asarray(values, copy=True)
        smooth(expected)
        assert fused(found) is None
        assert found.tolist() == expected.tolist()
    assert is_replayed(fused)


def test_arguments_that_overlap():
    @ndx.fuse
    def shift(out, x):
        out[...] = x * 2

    base = ndx.arange(10.0)
    shift(base[1:], base[:-1])
    assert base.tolist() == [0.0, 0.0, 2.0, 4.0, 6.0, 8.0, 10.0, 12.0, 14.0, 16.0]
    base = ndx.arange(4.0)
    shift(base, base)
    assert base.tolist() == [0.0, 2.0, 4.0, 6.0]
    shift(base, base[:])
    assert base.tolist() == [0.0, 4.0, 8.0, 12.0]


def test_results_in_place_are_the_arguments():
    @ndx.fuse
    def add(x, y):
        x += y
        return x, x[1:], {"sum": x + y}, [None, 3]

    x, y = array(1.0, 2.0), array(3.0, 4.0)
    for _ in range(2):
        first, rest, named, others = add(x, y)
        assert first is x
        rest += 100.0
        assert x.tolist()[1] == rest.tolist()[0]
        assert named["sum"].shape == (2,)
        assert others == [None, 3]
        x -= 1.0
    assert is_replayed(add)


def test_stale_operands_raise():
    @ndx.fuse
    def double(x, unused=None):
        return x + x

    for size in (5, 50_000):
        with ndx.workspace("fused"):
            x = ndx.ones(size)
            double(x)
        with pytest.raises(ndx.StaleArrayError):
            double(x)
    x = ndx.ones(3)
    x.close()
    with pytest.raises(ndx.StaleArrayError):
        double(x)


def test_a_first_call_with_a_stale_array_spoils_nothing():
    double = ndx.fuse(lambda x: x + x)
    with ndx.workspace("fused"):
        x = ndx.ones(3)
    with pytest.raises(ndx.StaleArrayError):
        double(x)
    assert double(ndx.ones(3)).tolist() == [2.0] * 3
    assert is_replayed(double)


def test_results_without_arrays_are_not_constants():
    count = []

    @ndx.fuse
    def counted(step):
        count.append(step)
        return len(count)

    assert [counted(1.0), counted(1.0)] == [1, 2]


def test_results_are_in_the_workspace():
    @ndx.fuse
    def step(x):
        k = x * 2 + 1
        k[1:] -= x[:-1]
        return k / 2 + x

    x = ndx.ones(1000)
    for _ in range(3):
        with ndx.workspace("fused results", learn="liveness"):
            found = step(x)
            assert found.workspace == "fused results"
    before = ndx.memory.stats("host")["total_allocations"]
    for _ in range(10):
        with ndx.workspace("fused results"):
            step(x)
    assert ndx.memory.stats("host")["total_allocations"] == before


def test_errors_are_those_of_the_function():
    fused = ndx.fuse(lambda x, y: x + y)
    for _ in range(2):
        with pytest.raises(ValueError, match=r"add: shapes \(2,\) and \(3,\)"):
            fused(ndx.ones(2), ndx.ones(3))
        with pytest.raises(TypeError, match="unsupported operand"):
            fused(ndx.ones(2), None)
        assert fused(ndx.ones(2), [1]).tolist() == [2.0, 2.0]
        with pytest.raises(TypeError, match="missing 1 required positional"):
            fused(ndx.ones(2))
    frozen = ndx.asarray(np.broadcast_to(1.0, 3), copy=None)
    fill = ndx.fuse(lambda x: x.__setitem__(0, 1.0))
    with pytest.raises(ValueError, match="read-only"):
        fill(frozen)


def test_overflow_of_a_scalar_is_raised():
    fused = ndx.fuse(lambda x: x + 300)
    with pytest.raises(OverflowError):
        fused(ndx.ones(3, dtype=ndx.uint8))


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (lambda x: x if x[0] > 0 else -x, "__bool__"),
        (lambda x: x * float(x[0]), "__float__"),
        (lambda x: x[x > 0], "indexes by an array"),
        (ndx.sort, "ndx.sort"),
        (lambda x: x @ x, "matmul"),
        (lambda x: x + GLOBAL[[0, 2, 1]], "indexes by an array"),
        (lambda x: sum(item for item in x), "iterates"),
        (lambda x: ndx.linalg.outer(x, x), "ndx.linalg.outer"),
        (lambda x: np.cumsum(x), "np.cumsum"),
        (lambda x: x.flags, "x.flags"),
    ],
)
def test_what_is_not_fused_says_why(function, reason):
    fused = ndx.fuse(function)
    x = array(3.0, 1.0, 2.0)
    for _ in range(2):
        assert str(fused(x)) == str(function(x))
    assert "called as it is" in fused.explain()
    assert reason in fused.explain()


GLOBAL = array(1.0, 2.0, 3.0)


def test_refusals_that_are_caught_are_still_refusals():
    @ndx.fuse
    def sneaky(x):
        try:
            return x * float(x[0])
        except Exception:
            return x

    assert sneaky(array(2.0, 3.0)).tolist() == [4.0, 6.0]


def test_branches_on_scalars_are_taken_anew():
    @ndx.fuse
    def branch(x, t, n, name):
        if t > 0:
            x = x + t
        for _ in range(n):
            x = x * 2.0
        return -x if name == "minus" else x

    x = array(1.0)
    assert branch(x, 1.0, 1, "plus").tolist() == [4.0]
    assert branch(x, -1.0, 1, "plus").tolist() == [2.0]
    assert branch(x, 1.0, 2, "minus").tolist() == [-8.0]
    assert branch(x, 3.0, 1, "plus").tolist() == [8.0]


@pytest.fixture
def recordings(monkeypatch):
    """Return a list to which each recording adds an item."""
    found = []

    def counted(*args):
        found.append(len(args))
        return record(*args)

    monkeypatch.setattr(ndx._fusing.recording, "record", counted)
    return found


def test_floats_that_only_arrays_meet_need_one_recording(recordings):
    @ndx.fuse
    def scaled(x, t):
        return ndx.where(x > t, x * t, t)

    x = array(1.0, 5.0)
    for t in (2.0, 3.0, -0.0, float("nan")):
        expected = scaled.__wrapped__(x, t)
        assert str(scaled(x, t)) == str(expected)
    assert len(recordings) == 1
    ints = array(1, 5)
    assert scaled(ints, 2.5).dtype == ndx.float64


def test_many_signatures_are_recorded_when_they_come_again(recordings):
    @ndx.fuse
    def double(x):
        return x + x

    for size in range(200):
        assert double(ndx.ones(size)).shape == (size,)
    assert len(recordings) == 8
    for _ in range(3):
        double(ndx.ones(150))
    assert len(recordings) == 9
    double.clear()
    assert "has not been called" in double.explain()


def test_numpy_arrays_are_operands():
    x = np.arange(5.0)
    fused = ndx.fuse(lambda a, b: a * b[::-1] + ndx.exp(b))
    a = ndx.ones(5)
    for _ in range(2):
        assert fused(a, x).tolist() == fused.__wrapped__(a, x).tolist()
    assert is_replayed(fused)
    alone = ndx.fuse(lambda a, b: a + b)
    assert type(alone(x, x)) is np.ndarray
    masked = np.ma.masked_array(x, mask=x > 2)
    assert type(alone(masked, x)) is np.ma.MaskedArray


def test_both_faces_are_fused():
    x = ndx.asarray(np.random.default_rng(3).random((30, 40)), copy=True)
    check(lambda x: xnp.where(x > 0.5, xnp.exp(x), np.sqrt(x)) + np.mean(x), x)
    check(lambda x: ndx.clip(x, 0.2, 0.8) + xnp.sin(x).max(axis=1, keepdims=True), x)
    check(lambda x: x.__array_namespace__().tanh(x) * np.float32(2), x)
    check(lambda x: ndx.exp(x - ndx.max(x)) / 3, x)


def test_sums_are_close_and_the_same_each_time():
    x = ndx.asarray(np.random.default_rng(4).random((300, 400)), copy=True)
    fused = ndx.fuse(lambda x: (ndx.sum(x * x), ndx.mean(x * x, axis=0)))
    exact = fused.__wrapped__(x)
    found = [fused(x) for _ in range(3)]
    for total, means in found:
        assert float(total) == pytest.approx(float(exact[0]), rel=1e-13)
        assert np.allclose(np.asarray(means), np.asarray(exact[1]), rtol=1e-13)
        assert float(total) == float(found[0][0])
    assert is_replayed(fused)


def test_other_fused_functions_are_inlined():
    inner = ndx.fuse(lambda x: x * 2)
    outer = check(lambda x: inner(x) + inner(x + 1), array(1.0, 2.0))
    assert "multiply add multiply add" in outer.explain()


def test_what_a_function_keeps_is_an_array():
    kept = []

    @ndx.fuse
    def keep(x):
        kept.append(x * 2)
        return x + 1

    for _ in range(2):
        assert keep(array(1.0)).tolist() == [2.0]
    assert [x.tolist() for x in kept] == [[2.0], [2.0]]
    assert "called as it is: it calls kept.append" in keep.explain()


@pytest.mark.threads
def test_threads_share_a_function():
    fused = ndx.fuse(lambda x, y: (x * y + x).sum())
    wrong = []

    def work(seed):
        for size in (10, 1000, 60_000, 37):
            values = np.random.default_rng(seed).integers(0, 9, (2, size))
            x, y = (ndx.asarray(v.astype(float)) for v in values)
            for _ in range(20):
                total = float(fused(x, y))
                if total != float((values[0] * values[1] + values[0]).sum()):
                    wrong.append((seed, size, total))

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


@pytest.mark.parametrize("used_again", [True, False])
@pytest.mark.parametrize("size", [64, 50_000])
def test_a_scope_that_ends_while_the_result_is_made(size, used_again):
    @ndx.fuse
    def double(x):
        return x + x

    double(ndx.ones(size))
    midway = Midway(8 * size, used_again)
    midway.enter()
    x = ndx.ones(size)
    midway.backend.on_acquire = midway.end
    with pytest.raises(ndx.StaleArrayError):
        double(x)
    assert midway.ended
    midway.close()


def test_calls_that_are_not_replayed_are_explained(tmp_path):
    total = ndx.fuse(lambda x: ndx.sum(x[:, 1:] * 2 + x[:, :-1]))
    shape = (LARGE // 32, 64)
    with passing(tmp_path):
        large = in_file(np.ones(shape))
        for _ in range(2):
            assert float(total(large)) == 3.0 * 63 * shape[0]
        assert total.explain().splitlines()[1:] == [
            "  called as it is: arrays in large files"
        ]
    total(ndx.ones(shape))
    about = total.explain().splitlines()
    assert about[-2] == "  2 arrays made, 0 of them temporary"
    assert about[-1] == "  2 call(s) as they are: arrays in large files"


def test_calls_with_overlapping_arguments_are_explained():
    @ndx.fuse
    def shift(out, x):
        out[...] = x * 2

    base = ndx.arange(10.0)
    shift(base[1:], base[:-1])
    reason = "arguments overlap where one is written"
    assert f"called as it is: {reason}" in shift.explain()
    shift(base[1:], ndx.zeros(9))
    assert "stage over (9,)" in shift.explain()
    assert f"1 call(s) as they are: {reason}" in shift.explain()


def test_calls_that_report_errors_are_explained():
    inverse = ndx.fuse(lambda x: 1 / x + 1)
    inverse(ndx.zeros(3))
    assert is_replayed(inverse)
    with xnp.errstate(divide="raise"), pytest.raises(FloatingPointError):
        inverse(ndx.zeros(3))
    assert "as they are: floating-point errors are reported" in inverse.explain()


def test_iterations_keep_all_in_registers():
    @ndx.fuse
    def mandelbrot(c, n):
        z = ndx.zeros_like(c)
        count = ndx.zeros_like(c, dtype=ndx.int64)
        for _ in range(n):
            z = z * z + c
            count += ndx.abs(z) < 2.0
        return count

    c = ndx.asarray(np.linspace(-2, 1, 500) + 0.3j)
    expected = mandelbrot.__wrapped__(c, 10)
    assert mandelbrot(c, 10).tolist() == expected.tolist()
    assert "1 arrays made, 0 of them temporary" in mandelbrot.explain()


def numbers_of(x, s):
    first = x[0]
    same = first
    first += 1
    total = x.sum()
    kept = total
    total *= 2
    return first, same, total, kept, s * 2, ndx.sum(x), np.exp(x[1] - 1), x[0, ...] + 1


@pytest.mark.parametrize("kind", ["number", "array"])
def test_numbers_are_bound_anew_as_without_fusing(kind):
    x = ndx.asarray([1.0, 2.0, 3.0])
    s = x[1] if kind == "number" else ndx.asarray(2.0)
    fused = ndx.fuse(numbers_of)
    expected = numbers_of(x, s)
    for _ in range(2):
        found = fused(x, s)
        assert [float(each) for each in found] == [float(each) for each in expected]
        assert [type(each) for each in found] == [type(each) for each in expected]
    assert "stage over" in fused.explain()

"""Results that are written over temporaries: only over those, and as new ones."""

import functools
import gc
import operator
import weakref

import numpy as np
import pytest
from helpers.numpy_versions import needs_part
from helpers.together import TEMPORARIES_KNOWN
from hypothesis import given
from hypothesis import strategies as st

import ndx

pytestmark = needs_part("loops")


N = 1 << 16  # 512 KiB of float64
only_known = pytest.mark.skipif(
    not TEMPORARIES_KNOWN, reason="callers can't be told apart here"
)

ARITHMETIC = [operator.add, operator.sub, operator.mul, operator.truediv]
DTYPES = ["float64", "float32", "float16", "complex128", "int64", "int16", "bool"]


def array(seed=0, n=N, dtype="float64"):
    values = np.random.default_rng(seed).integers(1, 100, n).astype(dtype)
    return ndx.asarray(values, copy=True)


def allocations(function):
    """Return how many ranges the current backend hands out in a call."""
    function()
    before = ndx.current_backend().stats()["total_allocations"]
    result = function()
    assert result is not None
    return ndx.current_backend().stats()["total_allocations"] - before


# ------------------------------------------------------------ what is reused


@only_known
@pytest.mark.parametrize(
    ("count", "expression"),
    [
        (1, lambda a, b: a + b + a),
        (2, lambda a, b: a * b + b * b - a),
        (1, lambda a, b: 1.0 / (a + 1.0)),
        (1, lambda a, b: a - (a * b)),
        (1, lambda a, b: ((a + 1.0) * 2.0 - b) / 3.0 % 7.0),
        (1, lambda a, b: a + b + a[0]),
    ],
)
def test_arrays_that_an_expression_makes(count, expression):
    a, b = array(1), array(2)
    assert allocations(lambda: expression(a, b)) == count
    for _ in range(30):  # also when the interpreter has specialised its instructions
        last = expression(a, b)
    expected = expression(np.asarray(a), np.asarray(b))
    np.testing.assert_array_equal(np.asarray(last), expected)


@only_known
def test_rows_and_columns_are_spread_over_a_temporary():
    a, row = array(1, N, "float64"), array(2, 64)
    a, column = ndx.reshape(a, (N // 64, 64)), ndx.reshape(array(3, N // 64), (-1, 1))
    assert allocations(lambda: a * a + row) == 1
    assert allocations(lambda: column * (a + a)) == 1


@only_known
def test_in_a_workspace():
    a, b = array(1), array(2)
    for _ in range(3):
        with ndx.workspace("step", overallocation=0) as ws:
            result = (a + b) * a - b
            assert result.workspace == ws.name
            kept = result.detach()
    assert ws.size < 2 * N * 8
    np.testing.assert_array_equal(
        np.asarray(kept),
        (np.asarray(a) + np.asarray(b)) * np.asarray(a) - np.asarray(b),
    )


@only_known
def test_plans_of_lifetimes_are_kept():
    a, b = array(1), array(2)
    for _ in range(4):
        with ndx.workspace("plan", learn="liveness") as ws:
            result = (a + b) * a - b
            del result
    assert ws.stats()["departures"] == 0
    assert ws.stats()["spilled_count"] == 0


# ------------------------------------------------------------ what is not


def test_small_temporaries():
    a = array(1, 1000)
    assert allocations(lambda: a + a + a) == 2


def unchanged(make, use):
    """Assert that an operator leaves the array alone that `make` returns."""
    first = make()
    before = np.array(first)
    result = use(first)
    assert result is not first
    np.testing.assert_array_equal(np.asarray(first), before)


@pytest.mark.parametrize("op", ARITHMETIC)
def test_named_arrays(op):
    a = array(1)
    unchanged(lambda: a + 1.0, lambda x: op(x, a))
    unchanged(lambda: a + 1.0, lambda x: x + a)


def test_elements_of_containers():
    a, held = array(1), []
    held.append(a + 1.0)
    expected = np.array(held[0])
    for _ in range(30):
        assert held[0] + a is not held[0]
        assert a + held[0] is not held[0]
    np.testing.assert_array_equal(np.asarray(held[0]), expected)


def test_views_and_their_bases():
    a = array(1)
    whole = a + 1.0
    expected = np.array(whole)
    for _ in range(30):
        assert float((whole[:] + a)[0]) == expected[0] + float(a[0])
        assert float((whole[::-1] + a)[0]) == expected[-1] + float(a[0])
        assert float((ndx.reshape(whole, (2, -1)) * 2.0)[0, 0]) == 2 * expected[0]
    np.testing.assert_array_equal(np.asarray(whole), expected)


def test_what_foreign_code_sees():
    a, views = array(1), []

    def shown(x):
        views.append(np.asarray(x))
        return x

    result = shown(a + 1.0) + a
    np.testing.assert_array_equal(views[0], np.asarray(a) + 1)
    np.testing.assert_array_equal(np.asarray(result), np.asarray(a) * 2 + 1)


def test_memory_of_others():
    theirs = np.arange(float(N))
    for _ in range(30):
        result = ndx.asarray(theirs) + 1.0
        assert float(result[1]) == 2.0
    np.testing.assert_array_equal(theirs, np.arange(float(N)))


def test_weak_references():
    a, seen = array(1), []

    def watched(x):
        seen.append(weakref.ref(x))
        return x

    result = watched(a + 1.0) + a
    assert seen[0]() is not result
    gc.collect()


def test_arrays_that_are_elsewhere():
    a = array(1)
    host = ndx.current_backend()

    def independent():
        with ndx.no_workspace():
            return a + 1.0

    with ndx.workspace("outer", size="8MiB"):
        assert (independent() + a).workspace == "outer"

        def outer():
            with ndx.workspace("outer"):
                return a + 1.0

        with ndx.workspace("inner", size="8MiB"):
            assert (outer() + a).workspace == "inner"
        with ndx.no_workspace():
            assert (outer() + a).workspace is None

    def in_a_file():
        with ndx.use("mmap"):
            return a + 1.0

    assert in_a_file().backend is not host
    assert (in_a_file() + a).backend is host


def test_functions_and_methods():
    a = array(1)
    assert allocations(lambda: ndx.add(a * a, a)) == 2
    assert allocations(lambda: (a * a).__add__(a)) == 2
    assert allocations(lambda: operator.add(a * a, a)) == 2


def test_sums_of_sequences():
    arrays = [array(i) for i in range(4)]
    copies = [np.array(x) for x in arrays]
    for _ in range(20):
        total = sum(arrays)
        folded = functools.reduce(operator.add, arrays)
    np.testing.assert_array_equal(np.asarray(total), sum(copies))
    np.testing.assert_array_equal(np.asarray(folded), sum(copies))
    for x, before in zip(arrays, copies, strict=True):
        np.testing.assert_array_equal(np.asarray(x), before)


def test_results_of_another_dtype_or_shape():
    a, i = array(1), array(2, N, "int64")
    assert ((i + i) / 2).dtype == ndx.float64
    assert (a + a < 3.0).dtype == ndx.bool
    assert (a + a + ndx.ones((2, 1))).shape == (2, N)
    assert (ndx.astype(a, ndx.float32) + 1.0 + a).dtype == ndx.float64


def test_an_error_leaves_the_operands():
    a, b = array(1), array(2, 7)
    expected = np.array(a)
    with pytest.raises(ValueError, match="broadcast"):
        (a + 0.0) + b
    with pytest.raises(OverflowError):
        (ndx.astype(a, ndx.int8) + ndx.astype(a, ndx.int8)) * 1000
    np.testing.assert_array_equal(np.asarray(a), expected)


@pytest.mark.threads
@pytest.mark.parametrize("threads", [1, 3])
@given(data=st.data())
def test_as_numpy_computes(threads, data):
    """Random expressions of temporaries, on both sides, over each dtype."""
    dtype = data.draw(st.sampled_from(DTYPES))
    n = data.draw(st.sampled_from([N, N * 8, N + 3]))
    leaves = [array(seed, n, dtype) for seed in range(3)]
    operators = {"bool": ["|", "&", "^"], "int": ["+", "-", "*", "^"]}.get(
        dtype if dtype == "bool" else dtype[:3] if dtype[:3] == "int" else "",
        ["+", "-", "*", "/"],
    )

    def draw(depth):
        if depth == 0:
            return data.draw(
                st.sampled_from(["a", "b", "c", "2" if dtype != "bool" else "a"])
            )
        left, right = draw(depth - 1), draw(data.draw(st.integers(0, depth - 1)))
        if left == right == "2":
            # Python computes that, and may divide by zero.
            right = "a"
        return f"({left} {data.draw(st.sampled_from(operators))} {right})"

    text = draw(data.draw(st.integers(1, 4)))
    before = [np.array(x) for x in leaves]
    at_first = ndx.get_num_threads()
    ndx.set_num_threads(threads)
    try:
        found = eval(text, dict(zip("abc", leaves, strict=True)))
    finally:
        ndx.set_num_threads(at_first)
    with np.errstate(all="ignore"):
        expected = eval(text, dict(zip("abc", before, strict=True)))
    np.testing.assert_array_equal(np.asarray(found), expected)
    for x, unchanged in zip(leaves, before, strict=True):
        np.testing.assert_array_equal(np.asarray(x), unchanged)

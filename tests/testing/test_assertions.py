"""The assertions of `ndx.testing`: what passes, what fails, and what they say."""

import subprocess
import sys

import array_api_strict as strict
import numpy as np
import pytest

import ndx
from ndx.testing import assert_allclose, assert_equal

BOTH = pytest.mark.parametrize("check", [assert_equal, assert_allclose])
nan, inf = ndx.nan, ndx.inf


@BOTH
@pytest.mark.parametrize(
    "make", [ndx.asarray, np.asarray, strict.asarray], ids=["ndx", "numpy", "strict"]
)
@pytest.mark.parametrize(
    "values", [[[1.0, nan], [inf, -inf]], [], 3, [True, False], [1 + 2j, nan]], ids=str
)
def test_equal_arrays_of_any_library(check, make, values):
    check(ndx.asarray(values), make(values))
    check(make(values), ndx.asarray(values))
    check(make(values), values)


@BOTH
def test_scalars(check):
    check(ndx.asarray(2.5), 2.5)
    check(2.5, ndx.asarray(2.5))
    check(ndx.asarray(2.5), np.float64(2.5))
    check(ndx.asarray(0.0), -0.0)
    check(ndx.asarray(2), 2.0)


@BOTH
def test_a_list_of_arrays(check):
    check([ndx.asarray(1), ndx.asarray(2)], [1, 2])


@BOTH
@pytest.mark.parametrize(
    ("actual", "expected"),
    [
        (ndx.zeros(3), ndx.zeros((3, 1))),
        (ndx.zeros(3), 0.0),
        (ndx.zeros(()), [0.0]),
        (ndx.zeros(0), ndx.zeros((0, 2))),
    ],
    ids=str,
)
def test_nothing_is_broadcast(check, actual, expected):
    with pytest.raises(AssertionError, match=r"shapes differ: \(.*\), expected \("):
        check(actual, expected)


@BOTH
def test_dtypes(check):
    ones = ndx.ones(2, dtype=ndx.float32)
    with pytest.raises(AssertionError, match="differ: float32, expected float64"):
        check(ones, ndx.ones(2))
    with pytest.raises(AssertionError, match="differ: float32, expected int64"):
        check(ones, np.ones(2, dtype=np.int64))
    check(ones, ndx.ones(2), check_dtype=False)
    check(ones, [1.0, 1.0])


@BOTH
@pytest.mark.parametrize(
    ("actual", "expected"),
    [
        (nan, 1.0),
        (1.0, nan),
        (inf, -inf),
        (inf, 1.0),
        (1.0, inf),
        (1, 2),
        (True, False),
    ],
)
def test_different_elements(check, actual, expected):
    with pytest.raises(AssertionError, match="1 of 1 elements differs"):
        check(ndx.asarray([actual]), ndx.asarray([expected]))


def test_the_message_names_the_first_positions():
    x = ndx.reshape(ndx.arange(12), (3, 4))
    with pytest.raises(AssertionError) as caught:
        assert_equal(x, x + (x > 3), err_msg="after the step")
    assert str(caught.value) == (
        "after the step: arrays are not equal: 8 of 12 elements differ\n"
        "  [1, 0]: 4, expected 5\n"
        "  [1, 1]: 5, expected 6\n"
        "  [1, 2]: 6, expected 7\n"
        "  [1, 3]: 7, expected 8\n"
        "  [2, 0]: 8, expected 9\n"
        "  ... and 3 more"
    )


def test_the_message_without_axes():
    with pytest.raises(AssertionError, match=r"\[\]: 1, expected 2"):
        assert_equal(ndx.asarray(1), ndx.asarray(2))


def test_tolerances():
    x = ndx.asarray([1.0, 100.0])
    assert_allclose(x, x * (1 + 1e-9))
    assert_allclose(x, x + 0.5, rtol=0.5)
    assert_allclose(x, x + 0.5, atol=0.5)
    with pytest.raises(AssertionError, match=r"rtol=0.01, atol=0.0.*1 of 2") as error:
        assert_allclose(x, x + 0.5, rtol=0.01)
    assert "largest difference: 0.5 absolute, 0.333 relative" in str(error.value)


def test_the_default_tolerance_is_that_of_the_dtype():
    single = ndx.ones(2, dtype=ndx.float32)
    assert_allclose(single * (1 + 1e-4), single)
    assert_allclose(single * (1 + 1e-4), ndx.ones(2), check_dtype=False)
    with pytest.raises(AssertionError):
        assert_allclose(ndx.ones(2) * (1 + 1e-4), ndx.ones(2))
    with pytest.raises(AssertionError):
        assert_allclose(ndx.asarray([1000000]), ndx.asarray([1000001]))


def test_large_integers_are_compared_exactly():
    big = ndx.asarray([2**63], dtype=ndx.uint64)
    assert_allclose(big, big)
    with pytest.raises(AssertionError, match="9223372036854775809, expected"):
        assert_equal(big + 1, big)
    assert_allclose(
        ndx.asarray([0], dtype=ndx.uint8), ndx.asarray([1], dtype=ndx.uint8), atol=1
    )


@pytest.mark.parametrize("tolerance", [{"rtol": -1}, {"atol": -1e-9}, {"atol": nan}])
def test_bad_tolerances(tolerance):
    with pytest.raises(ValueError, match="must not be negative"):
        assert_allclose(ndx.ones(1), ndx.ones(1), **tolerance)


@BOTH
def test_stale_arrays_say_so_themselves(check):
    with ndx.workspace() as workspace:
        x = ndx.ones(3)
        check(x, [1.0, 1.0, 1.0])
    with pytest.raises(ndx.StaleArrayError, match=workspace.name):
        check(x, [1.0, 1.0, 1.0])
    with pytest.raises(ndx.StaleArrayError, match=workspace.name):
        check([1.0, 1.0, 1.0], x)


@BOTH
def test_a_failure_keeps_no_memory_in_place(check):
    workspace = ndx.workspace()
    with workspace:
        x = ndx.ones(1000)
        try:
            check(x, x + 1)
        except AssertionError as error:
            kept = error
    assert kept.__traceback__ is not None
    assert workspace.stats()["pinned_count"] == 0


def test_no_pytest_is_needed():
    code = "import ndx.testing, sys; sys.exit('pytest' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)

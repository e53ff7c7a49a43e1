"""pytest compares NDArrays, shows them when a test fails, and names parameters."""

import pytest

import ndx

pytest_plugins = ["pytester"]


def test_approx():
    x = ndx.asarray([1.0, 2.0])
    assert x == pytest.approx(ndx.asarray([1.0 + 1e-9, 2.0]))
    assert x != pytest.approx(ndx.asarray([1.1, 2.0]))
    assert float(ndx.sum(x)) == pytest.approx(3.0)
    assert ndx.sum(x) == pytest.approx(3.0)


FAILING = """
import ndx, pytest
from ndx.testing import assert_allclose

@pytest.mark.parametrize("x", [ndx.ones(2), ndx.zeros(2)])
def test_values(x):
    assert ndx.all(x == 1)

def test_stale():
    with ndx.workspace("step"):
        x = ndx.ones(3)
    assert x[0] == 1

def test_close():
    assert_allclose(ndx.ones(2), ndx.asarray([1.0, 2.0]))

def test_truth():
    x = ndx.ones(3)
    assert x == 1
"""


def test_reports_of_failures(pytester):
    pytester.makepyfile(FAILING)
    result = pytester.runpytest_subprocess("-p", "no:randomly", "-q", "--showlocals")
    result.assert_outcomes(passed=1, failed=4)
    # Each is looked for below the one before it.
    result.stdout.fnmatch_lines(
        [
            "*test_values?x1?*",
            "*NDArray([[]0., 0.[]])*",
            "*stale NDArray*",
            "E*StaleArrayError*",
            ">*assert_allclose(ndx.ones(2), *",
            "E*not close*1 of 2 elements*",
            "E*neither true nor false*",
        ]
    )
    # The code of the assertion is no part of the report.
    result.stdout.no_fnmatch_line("*_assertions.py*")

"""Arrays that C code holds by one reference are not taken for temporaries."""

import numpy as np
import pytest

import ndx

N = 1 << 17


@pytest.fixture
def holder(built):
    return built("holder")


def made():
    return ndx.arange(N, dtype=ndx.float64) + 1.0


def test_an_array_that_c_code_uses_again(holder):
    twice, more = holder.twice_and_more(made(), ndx.ones(N))
    assert twice is not more
    np.testing.assert_array_equal(np.asarray(twice), np.arange(1.0, N + 1) * 2)
    np.testing.assert_array_equal(np.asarray(more), np.arange(1.0, N + 1) * 2 + 1)


# Each of these functions ends with a jump, and so leaves no address of its own.
@pytest.mark.parametrize(
    "use",
    [
        lambda held: held + ndx.ones(N),
        lambda held: held + 1.0,
        lambda held: held.plus(ndx.ones(N)),
        lambda held: held.plus(1.0),
        lambda held: -held,
    ],
    ids=["add", "add_scalar", "method", "method_scalar", "negate"],
)
def test_an_array_that_an_object_holds(holder, use):
    held = holder.Holder(made())
    for _ in range(50):  # until the interpreter has specialised its instructions
        assert held.held()[1] == 1  # its own
        result = use(held)
        x, _ = held.held()
        assert x is not result
        del x
    np.testing.assert_array_equal(np.asarray(held.held()[0]), np.arange(1.0, N + 1))

"""Every function that passes over files, against NumPy: in all places and layouts."""

import math
import os
from dataclasses import replace

import pytest
from helpers.examples import examples
from helpers.patterns import LARGE_SHAPES, large_shapes
from hypothesis import given
from hypothesis import strategies as st

from differential import elementwise, linear, manipulation, searching, statistical
from differential.draws import arrays, with_axis
from differential.engine import Row, compare_call
from differential.places import Places
from differential.statistical import KEEP
from differential.test_differential import TABLE as ALL

pytestmark = [
    pytest.mark.threads,
    pytest.mark.skipif(os.name != "posix", reason="maps files"),
]

LONG = [1, 2, 3, 200, 300, 40000]


@st.composite
def products(draw):
    """Draw matrices, stacks of one or two and vectors, large but not too large."""
    m, k, n = (draw(st.sampled_from(LONG)) for _ in range(3))
    while m * k * n > 4_000_000:
        m, k, n = sorted((m, k, n), reverse=draw(st.booleans()))
        m, k, n = k, min(m, 300), min(n, 7)
    stack = draw(st.sampled_from([(), (), (1,), (1, 1), (2,)]))
    other = draw(st.sampled_from([(), (), (1,), stack]))
    first = (k,) if draw(st.integers(0, 3)) == 0 else (*stack, m, k)
    second = (k,) if draw(st.integers(0, 3)) == 0 else (*other, k, n)
    kind = draw(st.sampled_from(["iu", "f", "fc"]))
    return (draw(arrays(kind, first, "small")),
            draw(arrays(kind, second, "small"))), {}  # fmt: skip


SEARCHING = "argmax argmin count_nonzero searchsorted sort where"
MOVING = "concat diff flip permute_dims roll stack"
TABLE = elementwise.TABLE | statistical.TABLE
TABLE |= {name: searching.TABLE[name] for name in SEARCHING.split()}
TABLE |= {name: manipulation.TABLE[name] for name in MOVING.split()}
TABLE |= {"asarray": ALL["asarray"], "astype": ALL["astype"]}
TABLE["matmul"] = Row(products(), ulps=64, overall=True)
TABLE |= {name: linear.TABLE[name] for name in ("linalg.trace", "vecdot")}
TABLE["prod"] = replace(
    TABLE["prod"],
    draws=with_axis("biufc", which="not above one", options=KEEP, max_side=3),
)
for name in ("std", "var"):
    # Their summands are rounded, and all of one sign: in Fortran's order NumPy adds
    # them one after the other, and may be off by as many units as there are.
    TABLE[name] = replace(TABLE[name], ulps=2 * max(map(math.prod, LARGE_SHAPES)))


@pytest.fixture(scope="module")
def places(tmp_path_factory):
    return Places(tmp_path_factory.mktemp("files"))


@pytest.mark.parametrize("name", sorted(TABLE))
@examples(6)
@given(data=st.data())
def test_as_numpy(places, name, data):
    with large_shapes():
        args, kwargs = data.draw(TABLE[name].draws)
    change = places.change(data)
    with places.passing(data):
        compare_call(name, TABLE[name], args, kwargs, change, with_strict=False)


@pytest.mark.parametrize("name", sorted(TABLE))
@examples(5)
@given(data=st.data())
def test_as_numpy_of_small_arrays(places, name, data):
    """Some passes are of any number of elements, if the threshold is low."""
    args, kwargs = data.draw(TABLE[name].draws)
    change = places.change(data)
    with places.passing(data):
        compare_call(name, TABLE[name], args, kwargs, change, with_strict=False)

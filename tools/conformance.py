"""A pytest plugin for running the standard's own test suite on ndx.

`make conformance` loads it. With ``NDX_WORKSPACE=1`` each test runs in a scope of one
workspace, so that all of its arrays live in an arena that the next test reuses. With
``NDX_STAND_IN=1`` new arrays are on the simulated GPU of ndx's own tests.

References
----------
array-api-tests: https://github.com/data-apis/array-api-tests
"""

import os
import sys
from pathlib import Path

import pytest

import ndx

if os.environ.get("NDX_STAND_IN") == "1":
    sys.path.insert(0, str(Path(__file__).parents[1]))
    from tests.cuda.stand_in.modules import in_place

    in_place().__enter__()
    ndx.set_default("cuda:0")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    """Run the body of a test in a workspace's scope, if requested."""
    if os.environ.get("NDX_WORKSPACE") != "1":
        return (yield)
    with ndx.workspace("conformance"):
        return (yield)


def pytest_collection_finish(session):
    """Correct a mistake of the suite: that ``None`` equals a dtype.

    `test_can_cast` takes ``promotion_table.get(...) == to`` for a promotion to `to`.
    Without a promotion the left side is None, which equals ``np.dtype("float64")``
    (NumPy's ``np.dtype(None)``); complex numbers would then have to promote to it.
    """
    from array_api_tests.dtype_helpers import promotion_table

    found = type(promotion_table).get
    nothing = object()
    type(promotion_table).get = lambda self, key, default=nothing: found(
        self, key, default
    )

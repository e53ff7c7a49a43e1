"""All functions, one by one, against NumPy and array-api-strict."""

import pytest
from helpers.calls import public_functions
from hypothesis import given
from hypothesis import strategies as st

from differential import (
    creation,
    elementwise,
    linear,
    manipulation,
    searching,
    statistical,
    transforms,
)  # fmt: skip
from differential.engine import compare

CHAPTERS = (
    creation, elementwise, manipulation, searching, statistical, linear, transforms,
)  # fmt: skip
TABLE = {name: row for chapter in CHAPTERS for name, row in chapter.TABLE.items()}
# They are of ndx alone.
NOT_OF_THE_STANDARD = {
    "cost_model", "current_backend", "current_workspace", "fuse", "get_include",
    "get_num_threads", "load", "open", "save",
    "set_default", "set_num_threads", "synchronize", "waitall", "workspace",
}  # fmt: skip


def test_no_function_is_missing():
    assert set(TABLE) == public_functions() - NOT_OF_THE_STANDARD
    assert len(TABLE) == sum(len(chapter.TABLE) for chapter in CHAPTERS)


@pytest.mark.parametrize("name", sorted(TABLE))
@given(data=st.data())
def test_as_numpy_and_array_api_strict(name, data):
    compare(data, name, TABLE[name])

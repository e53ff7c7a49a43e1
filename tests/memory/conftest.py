"""Tests here share a thread, and so its workspaces: each starts without any."""

import pytest

import ndx


@pytest.fixture(autouse=True)
def _no_workspaces():
    ndx.memory.destroy_all()
    yield
    ndx.memory.destroy_all()

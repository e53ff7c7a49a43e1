"""Modules below `ndx.numpy`: ours, and for all others NumPy's own."""

import sys
from importlib import import_module

import numpy
import pytest

import ndx.numpy as np


@pytest.mark.parametrize(
    "name",
    [
        "_core.multiarray", "char", "ctypeslib", "dtypes", "exceptions", "lib.format",
        "lib.mixins", "lib.recfunctions", "lib.scimath", "ma", "ma.core",
        "rec", "strings", "typing",
    ],
)  # fmt: skip
def test_modules_of_numpy_are_imported_once(name):
    found = import_module(f"ndx.numpy.{name}")
    assert found is import_module(f"numpy.{name}")
    assert found.__spec__.name == f"numpy.{name}"
    assert sys.modules[f"ndx.numpy.{name}"] is found


@pytest.mark.parametrize(
    "name", ["fft", "lib", "lib.stride_tricks", "linalg", "polynomial", "testing"]
)
def test_ours_stay_ours(name):
    assert import_module(f"ndx.numpy.{name}").__name__ == f"ndx.numpy.{name}"


@pytest.mark.parametrize("name", ["nothing", "ma.nothing", "linalg.nothing"])
def test_what_neither_has_is_not_found(name):
    with pytest.raises(ModuleNotFoundError, match=rf"ndx\.numpy\.{name}"):
        import_module(f"ndx.numpy.{name}")


def test_names_are_imported_from_modules_of_numpy():
    from ndx.numpy.exceptions import AxisError
    from ndx.numpy.lib.mixins import NDArrayOperatorsMixin

    assert AxisError is numpy.exceptions.AxisError
    assert NDArrayOperatorsMixin is numpy.lib.mixins.NDArrayOperatorsMixin
    assert np.ma is numpy.ma

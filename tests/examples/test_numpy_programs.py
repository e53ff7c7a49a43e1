"""Programs for NumPy print the same with `ndx.numpy`, and compute on NDArrays alone."""

import json
import sys
from pathlib import Path

import pytest
from helpers.commands import run_example

FOLDER = Path(__file__).parents[2] / "examples" / "numpy_programs"
sys.path.append(str(FOLDER))
pytestmark = pytest.mark.nightly
NAMES = ("cell_images", "penguin_statistics", "plasma_waves")


def run_both(*arguments):
    return run_example(FOLDER / "run_both.py", *arguments)


def run_one(path, library):
    done = run_both("--run", library, path)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("name", NAMES)
def test_a_program_prints_the_same_with_ndx(name):
    path = FOLDER / f"{name}.py"
    with_numpy, with_ndx = run_one(path, "numpy"), run_one(path, "ndx")
    assert with_ndx["output"] == with_numpy["output"]
    assert len(with_numpy["output"].splitlines()) > 20
    # Without the replaced line, nothing is ndx's; with it, nothing is NumPy's.
    assert with_numpy["ndx_arrays"] == with_numpy["allocations"] == 0
    assert with_numpy["numpy_arrays"] > 50
    assert with_ndx["numpy_arrays"] == 0
    assert with_ndx["ndx_arrays"] > 100
    assert with_ndx["allocations"] > 1000
    assert with_ndx["peak_bytes"] > 100_000


def write(folder, *lines):
    path = folder / "program.py"
    path.write_text("\n".join(["import numpy as np", *lines, ""]), encoding="utf-8")
    return path


def test_a_difference_fails(tmp_path):
    done = run_both(write(tmp_path, "print(1)", "print(type(np.zeros(2)).__name__)"))
    assert done.returncode == 1
    assert "differs" in done.stdout
    assert "NumPy ndarray\n  ndx   NDArray" in done.stderr


def test_an_array_of_numpy_fails(tmp_path):
    done = run_both(
        write(tmp_path, "def f(x):", "    return [x.__array__()]", "f(np.ones(3))")
    )
    assert done.returncode == 1
    assert "program.py: 1 arrays are NumPy's" in done.stderr

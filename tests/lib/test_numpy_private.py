"""NumPy's private parts: the checks at import, and what is done without them."""

import functools
import os
import subprocess
import sys

import numpy as np
import pytest
from helpers.commands import call, run_python, says
from helpers.project import ROOT

from ndx._lib import numpy_private

BROKEN_LOOPS = """
import warnings
import numpy as np

# The check computes a result by the ufunc's pointer. When it warns, all is well again.
right, warn, texts = np.{name}, warnings.warn, []
np.{name} = {other}

def repair(text, category, **options):
    np.{name}, warnings.warn = right, warn
    texts.append((category, text))

warnings.warn = repair
import ndx
assert [each[0] for each in texts] == [RuntimeWarning], texts
assert "does not know the inner loops of NumPy" in texts[0][1]
"""
ANOTHER_LOOP = BROKEN_LOOPS.format(name="less", other="np.greater")
NO_LOOPS = BROKEN_LOOPS.format(name="exp", other="max")
NO_STATE = """
import numpy as np
import numpy._core.umath as umath

del umath._make_extobj
"""
ANOTHER_STATE = """
import numpy as np
import numpy._core.umath as umath

umath._make_extobj = lambda **options: np._core.umath._extobj_contextvar.get()
"""
NO_MODULES = """
import sys
import numpy.fft, numpy.testing

for name in ("fft._pocketfft_umath", "lib._arraysetops_impl"):
    sys.modules[f"numpy.{name}"] = None
"""
COMPUTE = """
import sys
import warnings

import numpy as np
import ndx
import ndx.numpy as face
from ndx._lib.numpy_private import NO_VALUE

warnings.simplefilter("error")
x = ndx.asarray([0.0, 1.0, -4.0])
y = ndx.asarray([[1, 2], [3, 4]])
print((x + 1).tolist(), ndx.exp(ndx.zeros(2)).tolist(), (x < 0).tolist())
print(ndx.divide(x, x).tolist(), ndx.sqrt(x).tolist())
print((y @ y).tolist(), ndx.sum(y, axis=0).tolist(), (y.T + y).tolist())
print(ndx.linalg.inv(y * 1.0).shape, ndx.max(x).item(), (-x[::2]).tolist())
print([face.round(each, 3).tolist() for each in ndx.linalg.eigh(y @ y.T * 1.0)])
print(ndx.fft.fft(x).tolist(), ndx.fft.irfft(x).tolist())
print([each.tolist() for each in ndx.unique_all(x)], ndx.unique_counts(y))
print(ndx.unique_inverse(x)._fields, type(ndx.unique_counts(x)).__name__)
print(np.sum(x), np.sum(x, keepdims=NO_VALUE), face.sum(y, initial=NO_VALUE))
print(face.add(x, x, out=NO_VALUE), face.add.reduce(y), np.add(x, 1, out=x + 2))
print(face.roll(y, 1), np.roll(y, 1), face.kron(y, y), face.trapezoid(x))
print(np.lib.stride_tricks.sliding_window_view(x, 2), face.trim_zeros(x))
print(ndx.fuse(lambda x: np.sum(x * x) + face.exp(x))(x))
with ndx.workspace("here"):
    print(np.lib.stride_tricks.as_strided(np.asarray(x + 1), (2, 2), (8, 8)) + 1)
"""


@functools.cache
def computed():
    return run_python(COMPUTE, environment={"NDX_WITHOUT_NUMPYS": ""})


@pytest.mark.parametrize(
    "broken",
    [ANOTHER_LOOP, NO_LOOPS, NO_STATE, ANOTHER_STATE, NO_MODULES, NO_STATE + NO_LOOPS],
    ids=[
        "another-loop",
        "no-loops",
        "no-state",
        "another-state",
        "no-modules",
        "neither",
    ],
)
def test_results_are_the_same_if_numpy_has_changed(broken):
    assert run_python(broken + COMPUTE) == computed()


NAMES = [name for name, *_ in numpy_private.parts()]
# The core of the core: `make test-without-numpys` runs all of it.
CORE = ("array/test_array.py", "api/test_public.py", "api/test_linalg.py")


@pytest.mark.parametrize("name", [*NAMES, "all"])
def test_results_are_the_same_without_a_part(name):
    environment = {"NDX_WITHOUT_NUMPYS": name}
    assert run_python(COMPUTE, environment=environment) == computed()


def test_the_core_without_all_parts():
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-n", "0"]
        + [f"tests/{name}" for name in CORE],
        capture_output=True,
        check=False,
        cwd=ROOT,
        env=os.environ | {"NDX_WITHOUT_NUMPYS": "all"},
        text=True,
    )
    assert done.returncode == 0, done.stdout[-4000:]


def test_all_parts_of_this_version_are_in_use():
    absent = os.environ.get("NDX_WITHOUT_NUMPYS", "")
    for name, _, instead in numpy_private.parts():
        assert (instead is not None) == (name in absent or absent == "all"), name
    assert numpy_private.NO_VALUE is np._NoValue


@pytest.mark.parametrize("text", ["loops,fft", " fft , loops ", "all"])
def test_the_report_says_what_is_not_in_use(text, tmp_path):
    report = says(call("info", cwd=tmp_path, NDX_WITHOUT_NUMPYS=text))
    [_, rest] = report.split("NumPy's private parts\n")
    lines = {line.split()[0]: line for line in rest.partition("\n\n")[0].split("\n")}
    assert list(lines) == NAMES
    for name, line in lines.items():
        assert (": not in use: " in line) == (name in text or text == "all")


def test_a_part_that_ndx_does_not_use():
    known = ", ".join(sorted(NAMES))
    with pytest.raises(AssertionError, match=f"'loop,fft' must be 'all' or .*{known}"):
        run_python("import ndx", environment={"NDX_WITHOUT_NUMPYS": "loop,fft"})

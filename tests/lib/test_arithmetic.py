"""Arithmetic of C that says where a result does not fit: with builtins and without."""

import ctypes
import itertools
import shlex
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import ndx

SOURCE = """
#include "ndx/internal/arithmetic.h"
int multiply(Py_ssize_t a, Py_ssize_t b, Py_ssize_t *out) {
    return ndx_multiply(a, b, out);
}
int add(Py_ssize_t a, Py_ssize_t b, Py_ssize_t *out) { return ndx_add(a, b, out); }
Py_ssize_t multiply_most(Py_ssize_t a, Py_ssize_t b) { return ndx_multiply_most(a, b); }
Py_ssize_t add_most(Py_ssize_t a, Py_ssize_t b) { return ndx_add_most(a, b); }
"""
LEAST, MOST = -(2**63), 2**63 - 1
EDGES = sorted(
    {
        edge + step
        for edge in (LEAST, -(2**62), -(2**32), 0, 2**31, 2**32, 2**62, MOST)
        for step in (-2, -1, 0, 1, 2)
        if LEAST <= edge + step <= MOST
    }
)
COMPILER = shlex.split(sysconfig.get_config_var("CC") or "cc")[0]

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or shutil.which(COMPILER) is None or sys.maxsize < 2**62,
    reason="needs a C compiler",
)


@pytest.fixture(scope="module", params=["builtins", "portable"])
def compiled(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("arithmetic")
    (folder / "source.c").write_text(SOURCE)
    path = folder / "arithmetic.so"
    portable = ["-DNDX_PORTABLE_ARITHMETIC"] * (request.param == "portable")
    subprocess.run(
        [
            *(COMPILER, "-shared", "-fPIC", "-O2", "-Wall", "-Werror", *portable),
            *("-I", ndx.get_include(), "-I", sysconfig.get_path("include")),
            *("-o", path, folder / "source.c"),
        ],
        check=True,
    )
    library = ctypes.CDLL(Path(path))
    for name in ("multiply", "add", "multiply_most", "add_most"):
        function = getattr(library, name)
        function.argtypes = [ctypes.c_ssize_t] * 2
        function.restype = ctypes.c_ssize_t
        if "most" not in name:
            function.argtypes += [ctypes.POINTER(ctypes.c_ssize_t)]
            function.restype = ctypes.c_int
    return library


def check(compiled, a, b):
    out = ctypes.c_ssize_t()
    for name, exact in (("multiply", a * b), ("add", a + b)):
        fits = LEAST <= exact <= MOST
        assert bool(getattr(compiled, name)(a, b, out)) is not fits, (name, a, b)
        assert not fits or out.value == exact
        if a >= 0 and b >= 0:
            most = getattr(compiled, f"{name}_most")(a, b)
            assert most == min(exact, MOST)


def test_at_the_edges(compiled):
    for a, b in itertools.product(EDGES, repeat=2):
        check(compiled, a, b)


@given(st.data())
def test_in_between(compiled, data):
    number = st.integers(LEAST, MOST) | st.integers(-(2**34), 2**34)
    check(compiled, data.draw(number), data.draw(number))

"""Compiled modules read and write the numbers of an array, or refuse it."""

import ctypes
import gc
import importlib.util
import os
import shutil
import subprocess
import sys
import sysconfig
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from helpers.foreign_calls import KINDS
from helpers.threads import wait_until

import ndx

SOURCE = Path(__file__).parent / "compiled"
REFUSALS = TypeError, ValueError, BufferError, ndx.StaleArrayError
NUMBERS = np.array([1.5, -2.0, 4.0, 0.5, 8.0])


# ---- the modules ---------------------------------------------------------------------


def build(library, folder):
    shutil.copytree(SOURCE, folder)
    result = subprocess.run(
        [sys.executable, "setup.py", library, "build_ext", "--inplace"],
        cwd=folder,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
    )
    return result.returncode, result.stdout + result.stderr


@pytest.fixture(scope="session")
def load(tmp_path_factory):
    """Return what builds and loads a module; the processes of one run share it."""
    root = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        root = root.parent

    @cache
    def load(library):
        for needed in {library, "setuptools"}:
            pytest.importorskip("Cython" if needed == "cython" else needed)
        compiler = os.environ.get("CC") or sysconfig.get_config_var("CC") or "cl"
        if shutil.which(compiler.split()[0]) is None:
            pytest.skip(f"{compiler} is not installed")
        folder, outcome = root / library, root / f"{library}-built.txt"
        try:
            (root / f"{library}-lock").mkdir()
        except FileExistsError:
            wait_until(outcome.exists, 240)
        else:
            status, output = 1, "the build was cut off"
            try:
                status, output = build(library, folder)
            finally:
                unfinished = root / f"{library}-unfinished.txt"
                unfinished.write_text(f"{status}\n{output}", encoding="utf-8")
                unfinished.rename(outcome)
        status, output = outcome.read_text(encoding="utf-8").split("\n", 1)
        if status != "0":
            pytest.fail(f"the module could not be built:\n{output}")
        name = f"with_{library}"
        (path,) = folder.glob(f"{name}.*{'.pyd' if os.name == 'nt' else '.so'}")
        spec = importlib.util.spec_from_file_location(name, path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    return load


def function_at(module, name, first):
    """Return a function of a module that `ctypes` calls."""
    prototype = ctypes.CFUNCTYPE(ctypes.c_double, first, ctypes.c_ssize_t)
    return prototype((name, ctypes.CDLL(module.__file__)))


POINTER = ctypes.POINTER(ctypes.c_double)
CONTIGUOUS = np.ctypeslib.ndpointer(np.float64, ndim=1, flags="C_CONTIGUOUS")


def at_pointer(name):
    """Call a function that is given an address: its callers ask for a layout."""

    def call(module, x):
        y = np.ascontiguousarray(x, dtype=np.float64)
        return function_at(module, name, POINTER)(y.ctypes.data_as(POINTER), y.size)

    return call


def at_ndpointer(name):
    return lambda module, x: function_at(module, name, CONTIGUOUS)(x, x.size)


def pointer_kept(module, x):
    pointer, count = x.ctypes.data_as(POINTER), x.size
    return lambda: function_at(module, "total_at", POINTER)(pointer, count)


def in_module(name):
    return lambda module, x: getattr(module, name)(x)


def now(name):
    return lambda module, x: getattr(module, name)(x).now()


# ---- arrays of several kinds ---------------------------------------------------------


def reversed_(xp, array):
    return xp.asarray(array[::-1].copy())[::-1]


def of_float32(xp, array):
    return xp.asarray(array.astype(np.float32))


MADE = KINDS | {"reversed": reversed_, "float32": of_float32}

# Name -> (library, function that is called with the module and an array).
READERS = {
    "pybind11: array_t": ("pybind11", in_module("total")),
    "pybind11: array_t, as it is": ("pybind11", in_module("total_as_it_is")),
    "pybind11: array_t to array_t": ("pybind11", in_module("doubled")),
    "pybind11: buffer": ("pybind11", in_module("total_of_buffer")),
    "pybind11: array_t that is kept": ("pybind11", now("Array")),
    "pybind11: buffer that is kept": ("pybind11", now("Buffer")),
    "nanobind: ndarray<const>": ("nanobind", in_module("total")),
    "nanobind: ndarray<const>, as it is": ("nanobind", in_module("total_as_it_is")),
    "nanobind: ndarray<const, c_contig>": (
        "nanobind",
        in_module("total_of_contiguous"),
    ),
    "nanobind: ndarray": ("nanobind", in_module("total_of_writable")),
    "nanobind: ndarray<const> that is kept": ("nanobind", now("Array")),
    "Cython: const double[:]": ("cython", in_module("total")),
    "Cython: const double[::1]": ("cython", in_module("total_of_contiguous")),
    "Cython: double[:]": ("cython", in_module("total_of_writable")),
    "Cython: const double[:] that is kept": ("cython", now("Array")),
    "ctypes: data_as": ("cython", at_pointer("total_at")),
    "ctypes: ndpointer": ("cython", at_ndpointer("total_at")),
}
WRITERS = {
    "pybind11: array_t": ("pybind11", in_module("add_one")),
    "pybind11: buffer": ("pybind11", in_module("add_one_to_buffer")),
    "nanobind: ndarray": ("nanobind", in_module("add_one")),
    "Cython: double[:]": ("cython", in_module("add_one")),
    "Cython: double[::1]": ("cython", in_module("add_one_to_contiguous")),
}
# What NumPy's arrays are taken for, and NDArrays are refused: by their class, or as
# nanobind knows no way to copy them.
REFUSED = {
    "pybind11: array_t, as it is": set(MADE),
    "ctypes: ndpointer": set(MADE),
    "nanobind: ndarray<const>": {"float32"},
    "nanobind: ndarray<const, c_contig>": {"float32", "strided", "reversed"},
    "nanobind: ndarray": {"float32"},
    "nanobind: ndarray<const> that is kept": {"float32"},
}
KEEPERS = {
    "pybind11: array_t": ("pybind11", lambda module, x: module.Array(x).now),
    "pybind11: buffer": ("pybind11", lambda module, x: module.Buffer(x).now),
    "nanobind: ndarray<const>": ("nanobind", lambda module, x: module.Array(x).now),
    "Cython: const double[:]": ("cython", lambda module, x: module.Array(x).now),
    "ctypes: data_as": ("cython", pointer_kept),
}


def attempt(call, module, x):
    """Return what a function gives, as a list or number, or the error."""
    try:
        return np.asarray(call(module, x)).tolist()
    except (*REFUSALS, ctypes.ArgumentError) as error:
        return error


def combinations(functions):
    return [
        pytest.param(name, kind, id=f"{name}, {kind}")
        for name in functions
        for kind in MADE
    ]


@pytest.mark.parametrize(("name", "kind"), combinations(READERS))
def test_functions_read_the_numbers_or_refuse(load, name, kind):
    library, call = READERS[name]
    module = load(library)
    expected = attempt(call, module, MADE[kind](np, NUMBERS))
    found = attempt(call, module, MADE[kind](ndx, NUMBERS))
    if isinstance(expected, Exception) or kind in REFUSED.get(name, ()):
        assert isinstance(found, Exception)
    else:
        assert found == expected


@pytest.mark.parametrize(("name", "kind"), combinations(WRITERS))
def test_functions_write_to_the_array_or_refuse(load, name, kind):
    """What is converted before is a copy, of NumPy's arrays and of ours."""
    library, call = WRITERS[name]
    module = load(library)
    a, x = MADE[kind](np, NUMBERS), MADE[kind](ndx, NUMBERS)
    expected, found = attempt(call, module, a), attempt(call, module, x)
    if isinstance(expected, Exception) or kind in REFUSED.get(name, ()):
        assert isinstance(found, Exception)
    else:
        assert found == expected
    assert x.tolist() == a.tolist()


def test_c_writes_through_a_pointer(load):
    add_one = function_at(load("cython"), "add_one_at", POINTER)
    x = ndx.asarray(NUMBERS, copy=True)
    assert add_one(x.ctypes.data_as(POINTER), x.size) == 66.5
    assert x.tolist() == (NUMBERS + 1.0).tolist()


@pytest.mark.parametrize("name", READERS)
def test_stale_arrays_are_refused(load, name):
    library, call = READERS[name]
    module = load(library)
    with ndx.workspace():
        x = ndx.asarray(NUMBERS, copy=True)
    assert isinstance(attempt(call, module, x), Exception)


@pytest.mark.parametrize("dropped", [True, False])
@pytest.mark.parametrize("name", KEEPERS)
def test_memory_of_a_workspace_stays_while_a_module_has_it(load, name, dropped):
    library, keep = KEEPERS[name]
    module = load(library)
    with ndx.workspace("modules", size="4KiB") as workspace:
        x = ndx.asarray(NUMBERS, copy=True)
        now = keep(module, x)
        if dropped:
            del x
    for _ in range(3):
        with ndx.workspace("modules"):
            ndx.full(1000, 0xAA, dtype="uint8")
    assert now() == 51.5
    del now
    gc.collect()
    workspace.destroy()


@pytest.mark.parametrize("name", KEEPERS)
def test_memory_is_not_released_while_a_module_has_it(load, name):
    library, keep = KEEPERS[name]
    x = ndx.asarray(NUMBERS, copy=True)
    now = keep(load(library), x)
    with pytest.raises(BufferError):
        x.close()
    assert now() == 51.5
    del now
    gc.collect()
    x.close()

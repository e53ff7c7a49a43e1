"""What a user meets: names that TAB shows, `repr`, `help`, ``import *``."""

import builtins
import inspect
import pickle
import pydoc
import types

import pytest
from helpers.commands import run_python

import ndx
import ndx.testing

# In the namespace once they, or the libraries that they are for, are imported.
LATER = {
    "array_api_compat",
    "dask",
    "distributed",
    "einops",
    "h5py",
    "numba",
    "numpy",
    "opt_einsum",
    "pandas",
    "polars",
    "scipy",
    "testing",
    "threadpoolctl",
    "torch",
    "xarray",
    "zarr",
}
MODULES = {
    name: getattr(ndx, name)
    for name in (
        *(
            "backends",
            "cuda",
            "engines",
            "fft",
            "linalg",
            "memory",
            "metrics",
            "parallel",
            "random",
        ),
        "testing",
    )
}
FUNCTIONS = {
    f"{module.__name__}.{name}": getattr(module, name)
    for module in (ndx, *MODULES.values())
    for name in dir(module)
    if not name.startswith("_") and callable(getattr(module, name))
    if not isinstance(getattr(module, name), type)
}


@pytest.mark.parametrize("name", MODULES)
def test_dir_shows_what_is_public_and_no_more(name):
    module = MODULES[name]
    assert dir(module) == sorted(module.__all__)
    assert all(hasattr(module, each) for each in dir(module))


def test_dir_of_the_namespace():
    names = set(dir(ndx))
    assert {"add", "sum", "NDArray", "e", "fft", "use", "float64", "open"} <= names
    assert {"__version__", "__array_api_version__", "__array_namespace_info__"} <= names
    modules = {name for name in names if inspect.ismodule(getattr(ndx, name))}
    assert modules <= {*MODULES, *LATER}
    assert not {name for name in names if name.startswith("_")} - {
        "__all__", "__array_api_version__", "__array_namespace_info__", "__doc__",
        "__file__", "__name__", "__path__", "__version__",
    }  # fmt: skip


def test_import_star_replaces_no_name_of_python():
    taken = {}
    exec("from ndx import *", taken)
    taken.pop("__builtins__")
    assert not set(taken) & set(vars(builtins))
    assert taken["add"] is ndx.add
    missing = {name for name in dir(ndx) if not name.startswith("_")} - set(taken)
    assert missing - LATER == {name for name in dir(ndx) if hasattr(builtins, name)} - {
        "__doc__", "__name__",
    }  # fmt: skip
    assert {"open", "sum", "abs"} <= missing


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_have_names(name):
    function = FUNCTIONS[name]
    if isinstance(function, types.FunctionType):
        # In Python: a name and an address.
        assert repr(function).startswith(f"<function {function.__name__} at ")
    elif function.__module__ == name.rpartition(".")[0]:
        assert repr(function) == f"<function {name}>"
    else:
        # Two names of one function; it prints the first.
        assert repr(function) == f"<function {function.__module__}.{function.__name__}>"
        assert FUNCTIONS[f"{function.__module__}.{function.__name__}"] is function
    assert function.__name__ == function.__qualname__
    assert pickle.loads(pickle.dumps(function)) is function
    assert inspect.signature(function)
    assert inspect.isroutine(function)
    text = pydoc.plain(pydoc.render_doc(function))
    assert f"{function.__name__}(" in text
    assert inspect.getdoc(function).splitlines()[0] in text


def test_functions_of_the_namespace_are_no_frames_of_python():
    for name in ("add", "exp", "equal", "reshape", "matmul", "sum", "empty"):
        assert not isinstance(getattr(ndx, name), types.FunctionType)
        assert "cython" in type(inspect.unwrap(getattr(ndx, name))).__name__


@pytest.mark.parametrize(
    ("scope", "text"),
    [
        (lambda: ndx.use("host"), "ndx.use('host')"),
        (lambda: ndx.use("host", limit="1GiB"), "ndx.use('host', limit='1GiB')"),
        (
            lambda: ndx.use("host", pool="round", idle_release=None, numpy=True),
            "ndx.use('host', numpy=True, pool='round', idle_release=None)",
        ),
    ],
)
def test_use_prints_its_options(scope, text):
    assert repr(scope()) == text
    assert repr(eval(text)) == text


def test_help_begins_with_what_users_need():
    lines = pydoc.plain(pydoc.render_doc(ndx)).splitlines()
    first = "\n".join(lines[:30])
    assert "Where to begin" in first
    for word in ("ndx.use", "ndx.workspace", "ndx.memory", "ndx.linalg", "help("):
        assert word in first
    listed = "\n".join(lines)
    assert "_set_namespace" not in listed
    assert "    empty(" in listed


def test_a_plain_import_leaves_the_rest_for_later():
    """Sets, files and expressions; each is there when it is asked for."""
    run_python(
        """
        import pickle, sys
        import numpy
        before = set(sys.modules)
        import ndx
        new = set(sys.modules) - before
        late = {"ndx._api.sets", "ndx._api.file_io", "ndx._fusing.function"}
        assert not late & new, late & new
        from ndx import unique_all
        assert unique_all is ndx.unique_all and "unique_all" in vars(ndx)
        assert repr(ndx.save) == "<function ndx.save>"
        assert pickle.loads(pickle.dumps(ndx.fuse)) is ndx.fuse
        assert ndx.current_backend().options.idle_release == 30.0
        assert ndx.memory.default_workspace_config() == ndx.WorkspaceConfig()
        """
    )


def test_threads_race_for_names_and_loops():
    """A name and a loop that several threads ask for first are the same in all."""
    run_python(
        """
        import sys, threading
        import ndx
        sys.setswitchinterval(1e-6)
        x = ndx.asarray([1.0, 4.0], dtype="float32")
        start, found = threading.Barrier(8), []
        def ask():
            start.wait()
            found.append((ndx.unique_all, ndx.fuse, ndx.sqrt(x).tolist(),
                          ndx.add(x, x).tolist()))
        threads = [threading.Thread(target=ask) for _ in range(8)]
        for each in threads: each.start()
        for each in threads: each.join()
        assert len(found) == 8
        assert all(each == found[0] for each in found)
        assert found[0][2:] == ([1.0, 2.0], [2.0, 8.0])
        """
    )

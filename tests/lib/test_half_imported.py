"""Modules that another thread is importing: they are there, and have no attributes."""

import sys
import types

import pytest
from helpers import project
from helpers.commands import run_python

import ndx

# What ndx looks up among the imported modules, without importing it.
LOOKED_UP = ["asyncio", "logging", "IPython"]


def a_frame_that_can_be_named():
    with ndx.workspace("half", size=1024):
        x = ndx.ones(3)
    with pytest.raises(ndx.StaleArrayError):
        x.tolist()


def a_scope_without_contexts():
    """Elsewhere, by the fallback of `_lib.interpreter`."""
    run_python(
        """
        import sys, types
        never = types.SimpleNamespace(is_context=lambda _: False,
                                      is_frame=lambda _: False, is_code=lambda _: False,
                                      is_default=lambda _: False)
        sys.modules["ndx._lib.interpreter_checks"] = never
        import ndx
        for name in ("asyncio", "logging", "IPython"):
            sys.modules[name] = types.ModuleType(name)
        with ndx.workspace(size=1024):
            ndx.ones(3)
        """
    )


def an_event_to_log():
    with ndx.use("host", limit="1KiB"), pytest.raises(ndx.OutOfMemoryError):
        ndx.ones(10_000)


USES = [a_frame_that_can_be_named, a_scope_without_contexts, an_event_to_log]


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("name", LOOKED_UP)
def test_a_module_without_attributes_is_none(use, name, monkeypatch):
    reported = []
    monkeypatch.setattr(sys, "unraisablehook", reported.append)
    monkeypatch.setitem(sys.modules, name, types.ModuleType(name))
    use()
    assert reported == []


def test_every_look_at_the_imported_modules_is_known():
    """A new one is to be named here, with the reason why half a module is no harm."""
    known = {
        "__init__.py",  # ndx itself
        "_borders.pyx",  # takes a name from the modules that have it
        "_cli/numpy_placement.py",  # ndx itself, by hand
        "_cli/program.py",  # __main__
        "_fusing/calls.py",  # ndx itself
        "_fusing/evaluation.py",  # as the import statement that it follows
        "_lib/call_site.py",  # above: IPython
        "_lib/import_hooks.py",  # looks whether the import has ended
        "_lib/interpreter.pyx",  # above: asyncio
        "_lib/unraisable.pyx",  # above: logging
        "_lib/namesake.py",  # ndx itself
        "_methods/numpy_function_table.pyx",  # NumPy's, which has the function
        "_numpy/composites.py",  # NumPy's functions run without it
        "_numpy/linalg_functions.pyx",  # then asks NumPy, which imports it to the end
        "_numpy/namespace.py",  # its own modules, and the parents of what is imported
        "_pipelines/workers.py",  # counts them
        "array_api_compat.py",  # runs after the import of each of its modules
        "dask.py",  # runs after the import of each of its modules
        "scipy.py",  # asks whether the class is there already
        "xarray.py",  # runs after the import of each of its modules
    }
    package = project.ROOT / "ndx"
    if not package.exists():
        pytest.skip("no sources beside the tests of an installed package")
    found = {
        path.relative_to(package).as_posix()
        for path in package.rglob("*.py*")
        if path.suffix in (".py", ".pyx") and "sys.modules" in path.read_text("utf-8")
    }
    assert found == known

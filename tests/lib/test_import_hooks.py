"""Registration with other libraries when they are imported."""

import importlib
import importlib.util
import os
import subprocess
import sys
import threading
import types

import pytest

from ndx._lib import import_hooks


@pytest.fixture
def modules(tmp_path, monkeypatch):
    """A library, and a module of ours that registers with it."""
    (tmp_path / "hooked_library.py").write_text("loaded = True\nfound = []\n")
    (tmp_path / "hooked_ours.py").write_text(
        "import hooked_library\n"
        "def register():\n"
        "    hooked_library.found.append(hooked_library.loaded)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    yield tmp_path
    for name in ("hooked_library", "hooked_ours"):
        sys.modules.pop(name, None)


TABLE = {"hooked_library": "hooked_ours"}


def test_registers_after_the_library_is_imported(modules):
    import_hooks.register_on_import(TABLE)
    assert "hooked_ours" not in sys.modules
    assert importlib.import_module("hooked_library").found == [True]


def test_registers_at_once_with_a_library_that_is_there(modules):
    library = importlib.import_module("hooked_library")
    import_hooks.register_on_import(TABLE)
    assert library.found == [True]


@pytest.mark.filterwarnings("error")
def test_ours_is_imported_before_the_library(modules):
    """The library's import ends while ours is at its first line."""
    import_hooks.register_on_import(TABLE)
    importlib.import_module("hooked_ours")
    assert importlib.import_module("hooked_library").found == [True]


@pytest.mark.filterwarnings("error")
def test_ours_fails_when_it_is_imported_before_the_library(modules):
    source = (modules / "hooked_ours.py").read_text()
    (modules / "hooked_ours.py").write_text(source + "import hooked_missing\n")
    import_hooks.register_on_import(TABLE)
    with pytest.raises(ModuleNotFoundError, match="hooked_missing"):
        importlib.import_module("hooked_ours")
    (modules / "hooked_ours.py").write_text(source)
    importlib.invalidate_caches()
    importlib.import_module("hooked_ours")
    assert importlib.import_module("hooked_library").found == [True]


def test_a_library_that_is_only_looked_for_still_registers(modules):
    import_hooks.register_on_import(TABLE)
    assert importlib.util.find_spec("hooked_library") is not None
    assert "hooked_library" not in sys.modules
    assert importlib.import_module("hooked_library").found == [True]


def test_the_module_keeps_its_own_loader(modules):
    import_hooks.register_on_import(TABLE)
    library = importlib.import_module("hooked_library")
    assert type(library.__loader__).__module__.startswith("_frozen_importlib")
    assert library.__spec__.loader is library.__loader__
    assert "loaded" in importlib.util.find_spec("hooked_library").loader.get_source(
        "hooked_library"
    )


def test_a_reload_registers_again(modules):
    import_hooks.register_on_import(TABLE)
    library = importlib.import_module("hooked_library")
    assert importlib.reload(library).found == [True]


def test_a_library_that_is_missing_is_missing(modules):
    import_hooks.register_on_import({"hooked_nothing": "hooked_ours"})
    with pytest.raises(ModuleNotFoundError, match="hooked_nothing"):
        importlib.import_module("hooked_nothing")


def test_a_library_that_fails_raises_its_own_error(modules):
    (modules / "hooked_library.py").write_text("1 / 0\n")
    import_hooks.register_on_import(TABLE)
    with pytest.raises(ZeroDivisionError):
        importlib.import_module("hooked_library")
    assert "hooked_ours" not in sys.modules


def test_a_failure_to_register_warns_and_leaves_the_library_alone(modules):
    (modules / "hooked_ours.py").write_text("from hooked_library import no_such_name")
    import_hooks.register_on_import(TABLE)
    with pytest.warns(RuntimeWarning, match="hooked_ours could not register NDArrays"):
        library = importlib.import_module("hooked_library")
    assert library.loaded


@pytest.mark.filterwarnings("error")
def test_a_library_that_imports_ours_first(modules):
    """Half imported, it is there; the next import after its own registers."""
    (modules / "hooked_library.py").write_text(
        "from ndx._lib import import_hooks\n"
        "import_hooks.register_on_import({'hooked_library': 'hooked_ours'})\n"
        "loaded = True\nfound = []\n"
    )
    (modules / "hooked_later.py").write_text("")
    library = importlib.import_module("hooked_library")
    importlib.import_module("hooked_later")
    assert library.found == [True]
    sys.modules.pop("hooked_later")


@pytest.mark.threads
@pytest.mark.filterwarnings("error")
def test_a_library_that_another_thread_imports(modules):
    """Its import is waited for."""
    (modules / "hooked_library.py").write_text(
        "import hooked_gate\nhooked_gate.begun.set()\nhooked_gate.may_end.wait()\n"
        "loaded = True\nfound = []\n"
    )
    gate = types.ModuleType("hooked_gate")
    gate.begun, gate.may_end = threading.Event(), threading.Event()
    sys.modules["hooked_gate"] = gate
    other = threading.Thread(target=importlib.import_module, args=["hooked_library"])
    other.start()
    gate.begun.wait()
    ours = threading.Thread(target=import_hooks.register_on_import, args=[TABLE])
    ours.start()
    ours.join(0.05)
    gate.may_end.set()
    ours.join()
    other.join()
    del sys.modules["hooked_gate"]
    assert sys.modules["hooked_library"].found == [True]


def test_a_library_whose_import_is_forbidden(modules, monkeypatch):
    monkeypatch.setitem(sys.modules, "hooked_library", None)
    import_hooks.register_on_import(TABLE)
    assert "hooked_ours" not in sys.modules


@pytest.mark.parametrize(
    ("names", "found"),
    [
        ("all", [True]),
        ("", [True]),
        ("hooked_library", [True]),
        (" hooked_other, hooked_library", [True]),
        ("hooked_other", []),
        ("none", []),
    ],
)
def test_libraries_are_chosen_by_name(modules, names, found):
    table = TABLE | {"hooked_other.part": "hooked_ours"}
    import_hooks.register_on_import(table, names)
    assert importlib.import_module("hooked_library").found == found


@pytest.mark.parametrize("names", ["hooked", "none,hooked_library", "hooked_library;"])
def test_names_of_no_library_are_refused(names):
    with pytest.raises(ValueError, match=r"NDX_ADAPTERS.*: hooked_library$"):
        import_hooks.register_on_import(TABLE, names)


def test_the_environment_chooses_libraries():
    code = "import ndx; from sys import meta_path; print(type(meta_path[0]).__module__)"
    found = [
        subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            check=True,
            env=os.environ | {"NDX_ADAPTERS": names},
        ).stdout.strip()
        for names in ("none", "pandas")
    ]
    assert found[1] == "ndx._lib.import_hooks"
    assert found[0] != found[1]


def test_ndx_imports_none_of_the_libraries():
    libraries = {"dask", "xarray", "einops", "h5py", "zarr", "numba", "torch", "pandas"}
    code = f"import sys, ndx; print(*({libraries} & set(sys.modules)))"
    command = [sys.executable, "-c", code]
    found = subprocess.run(command, capture_output=True, text=True, check=True)
    assert found.stdout.split() == []


def test_hooks_of_borders_are_those_of_their_table():
    import ndx
    from ndx._library_borders import BORDERS

    assert sorted(ndx._BORDERED) == sorted(BORDERS)


def test_a_module_for_several_libraries_is_told_which(monkeypatch):
    """Words after the name of a module of ours are arguments of its `register`."""
    told = []
    ours, theirs = types.ModuleType("ours_of_two"), types.ModuleType("theirs_of_two")
    ours.register = told.append
    monkeypatch.setitem(sys.modules, "ours_of_two", ours)
    monkeypatch.setitem(sys.modules, "theirs_of_two", theirs)
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    import_hooks.register_on_import({"theirs_of_two": "ours_of_two theirs_of_two"})
    assert told == ["theirs_of_two"]

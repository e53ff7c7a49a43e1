"""The reference in the documentation has every public name."""

import importlib
import importlib.util
import inspect
import pkgutil
import re
from pathlib import Path

import pytest

import ndx

ROOT = Path(__file__).parents[1]
# Modules that register NDArrays with other libraries, for these libraries alone.
REGISTRATION = {"dask", "einops", "h5py", "numba", "threadpoolctl", "torch", "xarray"}
REGISTRATION |= {"array_api_compat", "opt_einsum", "pandas", "polars", "scipy", "zarr"}


@pytest.fixture(scope="module")
def reference():
    path = ROOT / "docs" / "_ext" / "api_reference.py"
    if not path.exists():
        pytest.skip("no docs beside the installed package")
    pytest.importorskip("distributed")  # a page's module needs it
    spec = importlib.util.spec_from_file_location("api_reference", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_each_public_module_has_a_page(reference):
    modules = {m.name for m in pkgutil.iter_modules(ndx.__path__) if m.name[0] != "_"}
    pages = {name.split(".")[0] for name in [*reference.MODULES, "numpy"]}
    assert modules - REGISTRATION == pages


def test_each_public_name_is_on_its_page(reference):
    pages = reference.pages()
    for module in ["ndx", *(f"ndx.{name}" for name in reference.MODULES)]:
        loaded = importlib.import_module(module)
        listed = dir(loaded) if module == "ndx" else loaded.__all__
        names = {n for n in listed if n[0] != "_"}
        names -= {n for n in names if inspect.ismodule(getattr(loaded, n))}
        shown = re.findall(r"^   (\w+)$|py:data:: (\w+)$", pages[f"{module}.rst"], re.M)
        assert {a or b for a, b in shown} >= names, module
        assert names, module


def test_a_name_in_no_chapter_is_an_error(reference, monkeypatch):
    chapters = {k: v for k, v in reference.CHAPTERS.items() if k != "Constants"}
    monkeypatch.setattr(reference, "CHAPTERS", chapters)
    with pytest.raises(ValueError, match="newaxis"):
        reference.pages()


def test_the_index_shows_each_page(reference):
    index = (ROOT / "docs" / "reference" / "index.md").read_text(encoding="utf-8")
    listed = re.findall(r"^api/(ndx.*)$", index, re.M)
    assert sorted(f"{name}.rst" for name in listed) == sorted(reference.pages())

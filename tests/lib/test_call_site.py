"""How the lines of the user's program are named."""

import sys
from types import SimpleNamespace

import numpy as np
import pytest

import ndx
from ndx._lib.call_site import current_line, shown


@pytest.fixture
def cell(monkeypatch):
    """Return what makes the code of the third cell of a notebook."""
    compilers = pytest.importorskip("IPython.core.compilerop")
    compiler = compilers.CachingCompiler()
    shell = SimpleNamespace(compile=compiler)
    monkeypatch.setattr(sys.modules["IPython"], "get_ipython", lambda: shell)

    def made(text):
        return compile(text, compiler.cache(text, 3), "exec")

    return made


def test_files_have_their_names():
    assert shown(__file__) == __file__
    assert current_line().startswith(f"{__file__}:")


def test_cells_have_their_numbers(cell):
    code = cell("\nfound = line()\n")
    assert shown(code.co_filename) == "In[3]"
    values = {"line": current_line}
    exec(code, values)
    assert values["found"] == "In[3]:2 in <module>"
    assert shown("<stdin>") == "<stdin>"


@pytest.mark.parametrize("shell", [None, 3, SimpleNamespace(compile=None)])
def test_shells_without_cells(monkeypatch, shell):
    module = SimpleNamespace(get_ipython=lambda: shell)
    monkeypatch.setitem(sys.modules, "IPython", module)
    assert shown("name") == "name"


def test_recordings_name_cells(cell, tmp_path):
    with ndx.memory.record() as recording:
        exec(cell("x = ndx.ones(1000)"), {"ndx": ndx, "np": np})
    path = tmp_path / "memory.json"
    recording.save(path)
    assert "In[3]:1 in <module>" in path.read_text()

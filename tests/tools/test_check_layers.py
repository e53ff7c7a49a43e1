"""The layer checker finds each kind of violation in small made-up packages."""

import re

import check_layers
import pytest
from helpers import project


@pytest.fixture
def problems(tmp_path, monkeypatch):
    """Write a package ``pkg`` from {path: text} and return what is wrong with it."""
    layers = [("low", "other"), ("mid", "sub"), ("top",), ("__init__",)]
    monkeypatch.setattr(check_layers, "LAYERS", layers)
    monkeypatch.setattr(check_layers, "LAZY", {("sub", "sub.*")})
    monkeypatch.setattr(check_layers, "TOOLS", {"top"})
    monkeypatch.setattr(check_layers, "FOUNDATION", {"other"})

    def write(files):
        for name, text in files.items():
            path = tmp_path / "pkg" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        return check_layers.check(tmp_path / "pkg")

    return write


def test_downward_imports_pass(problems):
    files = {
        "__init__.py": "from . import mid\nfrom .top import f\n",
        "low.pyx": "cimport cython\nimport numpy as np\n",
        "low.pxd": "",
        "other.py": "from .low import x\n",
        "mid.pyx": "from pkg.low cimport x, y\nfrom . cimport low\nimport pkg.low\n",
        "top.py": "import os, pkg.mid\n\n\ndef f():\n    import json\n",
    }
    assert problems(files) == []


@pytest.mark.parametrize(
    "line",
    [
        "from .top import f",
        "from . import top",
        "from .top cimport (\n    f,\n    g,\n)",
        "from . cimport top as t",
        "import pkg.top",
        "import os, pkg.top as t",
        "cimport pkg.top",
        "from pkg cimport top",
        "from pkg.top import \\\n    f",
        "x = 1; from .top import f",
        "try:\n    from .top import f\nexcept ImportError:\n    f = None",
    ],
)
def test_upward(problems, line):
    (found,) = problems({"low.pyx": f'"""Doc."""\n{line}\n', "top.py": ""})
    number = 3 if line.startswith("try") else 2
    assert found == (
        f"pkg/low.pyx:{number}: 'low' (layer 0) imports upward: 'top' (layer 2)"
    )


@pytest.mark.parametrize(
    ("line", "private"),
    [
        ("import pkg", None),
        ("from pkg import low", None),
        ("from pkg.sub import public", None),
        ("from pkg.sub.public import _name", None),
        ("from pkg.other._inner import x", None),
        ("from pkg.top._helper import x", None),
        ("from pkg.sub._inner import x", "sub._inner"),
        ("from pkg.sub import _inner", "sub._inner"),
        ("import pkg.sub._inner", "sub._inner"),
        ("if TYPE_CHECKING:\n    from pkg.sub._inner import x", None),
    ],
)
def test_tools_import_nothing_private_of_other_rooms(problems, line, private):
    files = dict.fromkeys(
        (
            *("low.py", "other/__init__.py", "other/_inner.py", "sub/__init__.py"),
            *("sub/_inner.py", "sub/public.py", "top/__init__.py", "top/_helper.py"),
        ),
        "",
    )
    found = problems(files | {"top/tool.py": f"{line}\n"})
    if private is None:
        assert found == []
    else:
        (text,) = found
        assert text.startswith(f"pkg/top/tool.py:1: imports '{private}', which is priv")


def test_upward_in_pxd_and_between_packages(problems):
    files = {"low.pxd": "from .sub.a cimport A\n", "sub/a.pyx": "", "sub/b.py": ""}
    assert problems(files) == [
        "pkg/low.pxd:1: 'low' (layer 0) imports upward: 'sub.a' (layer 1)"
    ]
    files = {
        "low.pxd": "",
        "sub/__init__.py": "from .a import A\nfrom ..top import f\n",
    }
    assert problems(files | {"top.py": ""}) == [
        "pkg/sub/__init__.py:2: 'sub' (layer 1) imports upward: 'top' (layer 2)"
    ]
    files = {"sub/__init__.py": "", "sub/b.py": "from .. import top\nfrom . import a\n"}
    assert problems(files) == [
        "pkg/sub/b.py:1: 'sub.b' (layer 1) imports upward: 'top' (layer 2)"
    ]


def test_import_of_the_package_itself_is_upward(problems):
    files = {"__init__.py": "", "mid.py": "import pkg\nfrom pkg import asarray\n"}
    found = problems(files)
    assert len(found) == 2
    assert all("'mid' (layer 1) imports upward: '__init__'" in line for line in found)


def test_cycle_on_one_layer(problems):
    files = {
        "low.pyx": "from .other cimport f\n",
        "other.pyx": "",
        "other.pxd": "from .low cimport g\n",
    }
    assert problems(files) == ["pkg/: import cycle: low -> other -> low"]


@pytest.mark.parametrize(
    "text",
    [
        "def f():\n    from .low import x\n",
        "async def f():\n    if x:\n        import pkg.low\n",
        "class A:\n    @property\n    def f(self) -> int:\n        from . import low\n",
        "cdef int f(int a,\n  int b) except -1 nogil:\n    from .low import x\n",
        "cpdef f(a=(1, 2)):\n    from .low import x\n",
        "cdef class A:\n    def __cinit__(self):\n        from .low import x\n",
        "cdef inline object f(A[:] a):\n    import pkg.low\n",
    ],
)
def test_import_inside_a_function(problems, text):
    (found,) = problems({"mid.pyx": text, "low.py": ""})
    assert found.endswith("imports 'low' inside a function")


def test_lazy_imports_need_permission(problems):
    lazy = "def get(name):\n    from . import a\n"
    assert problems({"sub/__init__.py": lazy, "sub/a.py": ""}) == []
    (found,) = problems({"sub/b.py": lazy})
    assert found == "pkg/sub/b.py:2: imports 'sub.a' inside a function"


def test_a_module_of_a_package_is_not_had_without_the_package(problems):
    files = {
        "mid.py": "from .sub.a import f\n",
        "sub/__init__.py": "from .b import g\n",
        "sub/a.py": "",
        "sub/b.py": "from ..mid import h\n",
    }
    assert problems(files) == ["pkg/: import cycle: mid -> sub -> sub.b -> mid"]
    # Modules of the package itself find it there, however far it has come.
    files |= {"sub/b.py": "from .a import f\n"}
    assert problems(files) == []


def test_room_without_a_layer(problems):
    files = {"low.py": "", "stray/__init__.py": "", "stray/a.pyx": ""}
    assert problems(files) == ["pkg/: room 'stray' has no layer: it belongs in LAYERS"]


@pytest.mark.parametrize(
    "text",
    [
        '"""Doc.\n\nimport pkg.top\nfrom .top import f\n"""\n',
        "# from .top import f\nx = 'it''s # not'  # import pkg.top\n",
        "if TYPE_CHECKING:\n    from .top import f\n",
        "from numpy cimport top\nfrom pkg_top import top\n",
        "cdef extern from 'top.h':\n    int f(int x)\n",
    ],
)
def test_what_is_no_import(problems, text):
    assert problems({"low.pyx": text, "top.py": ""}) == []


@pytest.mark.parametrize(
    "line",
    [
        "thread = threading.Thread(target=f)",
        "threading.Timer(1.0, f).start()",
        "with ThreadPoolExecutor(2) as pool: pass",
        "pool = futures.ThreadPoolExecutor(2)",
        "_thread.start_new_thread(f, ())",
    ],
)
def test_threads_that_a_module_starts(problems, line):
    (found,) = problems({"low.pyx": f"{line}\n"})
    assert found == (
        "pkg/low.pyx:1: starts a thread, not by _lib.background.BackgroundThread"
    )


def test_threads_that_are_named_only(problems):
    """In annotations, docstrings, and where one is recognised."""
    named = '"""Uses threading.Thread()."""\n\ndef f(x: threading.Thread):\n'
    named += "    return isinstance(x, threading.Thread)\n"
    assert problems({"low.py": named}) == []


DRAWING = (
    (project.ROOT / "docs/architecture.md").read_text("utf-8").split("```text\n")[1]
)


def test_the_drawing_has_each_room_in_its_place():
    """In docs/architecture.md, the highest layer first; a row may have several."""
    rows = [
        re.findall(r"\b(\w+)(?=/|\.pyx?\b)|(__init__)", row)
        for row in DRAWING.split("```")[0].splitlines()
    ]
    rows = [[folder or name for folder, name in row] for row in rows]
    names = [name for row in rows for name in row]
    rooms = [name for layer in check_layers.LAYERS for name in layer]
    assert [name for name in rooms if names.count(name) != 1] == []
    place = {name: k for k, row in enumerate(rows) for name in row}
    order = [place[name] for layer in reversed(check_layers.LAYERS) for name in layer]
    assert order == sorted(order)

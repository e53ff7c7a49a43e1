"""Write the pages of the API reference from the public lists of names.

Each page is an ``autosummary`` for a module, in chapters; the page of each name comes
from its docstring. A name in no chapter is an error, and so is one that no page shows.
"""

import importlib
import inspect
import re
import textwrap
from pathlib import Path

import numpy as np

import ndx

__all__ = ["pages", "public_names", "setup"]

# What the chapters of `ndx` have: the names of modules of `ndx._api`, or names.
ARRAYS = ["NDArray", "Device"]
CHAPTERS = {
    "Arrays": ARRAYS,
    "Where arrays live": [
        "use", "set_default", "current_backend", "no_workspace", "workspace",
        "current_workspace", "Workspace", "WorkspaceConfig",
    ],
    "Creation": ["creation", "creation_from_data"],
    "Files": ["file_io", "passes"],
    "Dtypes": ["data_types"],
    "Elementwise functions": ["elementwise", "elementwise_parts"],
    "Indexing and searching": ["indexing", "searching"],
    "Linear algebra": ["linear_algebra"],
    "Manipulation": ["manipulation"],
    "Sets and sorting": ["sets", "sorting"],
    "Statistics and utilities": ["statistical", "utility"],
    "Tools for loops": [
        "fuse", "prefetch", "no_prefetch", "evaluate", "Role", "Roles",
        "WorkspacePlan", "use_workspaces",
    ],
    "Threads, devices, the C level": [
        "cost_model", "get_num_threads", "set_num_threads", "synchronize", "waitall",
        "get_include",
    ],
    "Errors": [
        "StaleArrayError", "WorkspaceError", "OutOfMemoryError", "ReadOnlyError",
        "DeviceError", "MappedFileError", "MemoryDamageError",
    ],
    "Constants": ["e", "inf", "nan", "newaxis", "pi"],
}  # fmt: skip
MODULES = {
    "memory": "Memory in use",
    "backends": "Kinds of memory",
    "engines": "What computes on devices",
    "linalg": "Linear algebra",
    "fft": "Fourier transforms",
    "random": "Random numbers",
    "parallel": "Workers",
    "metrics": "Metrics",
    "cuda": "GPUs",
    "distributed": "Workers of dask",
    "testing": "For tests",
    "testing.backends": "Tests of backends",
}


def public_names(module):
    """Return the public names of a module, without its modules."""
    loaded = importlib.import_module(module)
    # `ndx.__all__` lacks what `import *` would hide of Python.
    names = dir(loaded) if module == "ndx" else loaded.__all__
    return sorted(
        name
        for name in names
        if not name.startswith("_") and not inspect.ismodule(getattr(loaded, name))
    )


def pages():
    """Return the text of each page, by its file's name."""
    made = {"ndx.rst": _namespace_page(), "ndx.numpy.rst": _numpy_page()}
    for module, title in MODULES.items():
        names = public_names(f"ndx.{module}")
        made[f"ndx.{module}.rst"] = _page(f"ndx.{module}", title, [("", names)])
    return made


def _namespace_page():
    wanted = set(public_names("ndx"))
    chapters = []
    for title, entries in CHAPTERS.items():
        names = sorted({name for entry in entries for name in _names_of(entry)})
        chapters.append((title, names))
        wanted -= set(names)
    if wanted:
        raise ValueError(f"no chapter of {__file__} has {sorted(wanted)}")
    return _page("ndx", "The namespace", chapters)


def _names_of(entry):
    if hasattr(ndx, entry):
        return [entry]
    module = importlib.import_module(f"ndx._api.{entry}")
    return [name for name in module.__all__ if not name.startswith("_")]


def _page(module, title, chapters):
    lines = [*_heading(f"{module}: {title}", "="), f".. module:: {module}", ""]
    for heading, names in chapters:
        lines += _heading(heading, "-") if heading else []
        described = [name for name in names if _is_documented(module, name)]
        lines += [".. autosummary::", "   :toctree: generated/", ""]
        lines += [f"   {name}" for name in described]
        lines.append("")
        if not described:
            del lines[-3:]
        for name in sorted(set(names) - set(described)):
            lines += _data(module, name)
    return "\n".join(lines) + "\n"


def _heading(text, line):
    return [text, line * len(text), ""]


def _is_documented(module, name):
    """Whether a name has a docstring of its own, which constants and dtypes lack."""
    value = getattr(importlib.import_module(module), name)
    return callable(value) and not isinstance(value, np.dtype)


def _data(module, name):
    value = getattr(importlib.import_module(module), name)
    text = f"The dtype ``{value}``." if isinstance(value, np.dtype) else f"{value}"
    return [f".. py:data:: {name}", "", f"   {text}", ""]


def _numpy_page():
    """Return a page with the names of `ndx.numpy`, by who computes."""
    intro = """
    `import ndx.numpy as np` is NumPy's namespace over NDArrays. Its names, signatures
    and results are NumPy's, whose documentation describes them; :doc:`/from_numpy` has
    the differences that remain. ``linalg``, ``fft``, ``random``, ``testing`` and
    ``lib.stride_tricks`` are there, too.
    """
    module = importlib.import_module("ndx.numpy")
    ours, numpys = [], []
    for name in public_names("ndx.numpy"):
        same = getattr(module, name) is getattr(np, name, None)
        (numpys if same else ours).append(f"`{name}`")
    lines = [*_heading("ndx.numpy: NumPy's namespace", "="), ".. module:: ndx.numpy"]
    lines.append(textwrap.dedent(intro))
    lines += [*_heading("Functions that return NDArrays", "-"), ", ".join(ours), ""]
    lines += [*_heading("NumPy's own classes and functions", "-"), ", ".join(numpys)]
    return "\n".join(lines) + "\n"


def _write(app, config):
    folder = Path(app.srcdir, "reference", "api")
    folder.mkdir(parents=True, exist_ok=True)
    made = pages()
    for path in set(folder.glob("*.rst")) - {folder / name for name in made}:
        path.unlink()
    for name, text in made.items():
        path = folder / name
        if not path.exists() or path.read_text() != text:
            path.write_text(text)
    config.autosummary_generate = [f"reference/api/{name}" for name in made]


def _plain_text(app, what, name, obj, options, lines):
    """Make text of references and formulas in NumPy's docstrings.

    The references are to NumPy's own pages; formulas would need a script of a network.
    """
    text = "\n".join(lines)
    text = re.sub(r":ref:`([^<`]*)(<[^`]*>)?`", r"\1", text)
    text = re.sub(r":math:(`[^`]*`)", r"`\1`", text)
    block = r"\1.. code-block:: tex\n\n\1   \2"
    text = re.sub(r"^( *)\.\. math:: *(.*)$", block, text, flags=re.M)
    lines[:] = text.split("\n")


def _check(app, error):
    """Fail if a public name is on no page of the build."""
    if error or app.builder.name != "html":
        return
    shown = {entry[0] for entry in app.env.get_domain("py").get_objects()}
    for module in ["ndx", *(f"ndx.{name}" for name in MODULES)]:
        missing = {f"{module}.{name}" for name in public_names(module)} - shown
        if missing:
            raise ValueError(f"on no page of the reference: {sorted(missing)}")


def setup(app):
    """Write the pages before autosummary reads them; look at what became of them."""
    app.connect("config-inited", _write)
    app.connect("autodoc-process-docstring", _plain_text)
    app.connect("build-finished", _check)
    return {"parallel_read_safe": True}

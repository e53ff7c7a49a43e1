"""The installation and its machine: the text of ``python -m ndx info``."""

import importlib.metadata
import os
import platform

import numpy as np

import ndx
from ndx._lib.control_groups import memory_group
from ndx._lib.namesake import OTHER
from ndx._lib.numpy_private import parts
from ndx._lib.sizes import format_size
from ndx._lib.system import available_memory, physical_memory, usable_cores

__all__ = ["report"]

# Optional or required packages; none of them is imported for this.
_PACKAGES = ("numpy", "array-api-compat", "matplotlib", "scipy", "Cython")
_GPU_PACKAGES = ("cupy-cuda13x", "cupy-cuda12x", "cupy")


def report():
    """Return a description of this installation, for a reader or a bug report."""
    sections = [
        ("ndx", _versions()),
        ("packages", _packages()),
        ("NumPy's private parts", _private_parts()),
        ("machine", _machine()),
        ("backends", _backends()),
        ("cost of operations", _costs()),
        ("defaults", _defaults()),
    ]
    lines = []
    for title, rows in sections:
        lines += [title, *(f"  {name:<18}  {text}" for name, text in rows), ""]
    return "\n".join(lines).rstrip()


def _versions():
    rows = [
        ("version", ndx.__version__),
        ("array API", ndx.__array_api_version__),
        ("Python", f"{platform.python_version()} ({platform.python_implementation()})"),
        ("system", platform.platform()),
        ("installed in", os.path.dirname(ndx.__file__)),
        ("distribution", f"ndxarray {_version('ndxarray') or 'is not installed'}"),
    ]
    if _version("ndx") is not None:
        other = importlib.metadata.distribution("ndx")
        rows.append(
            ("beware", f"{OTHER}: `ndx` {other.version} in {other.locate_file('')}")
        )
    return rows


def _packages():
    gpu = [name for name in _GPU_PACKAGES if _version(name)] or _GPU_PACKAGES[:1]
    return [(name, _version(name) or "not installed") for name in (*_PACKAGES, *gpu)]


def _version(package):
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _private_parts():
    return [
        (name, f"{what}: {f'not in use: {instead}' if instead else 'in use'}")
        for name, what, instead in parts()
    ]


def _machine():
    rows = [
        ("processor", platform.processor() or platform.machine()),
        ("cores", f"{usable_cores()} usable of {os.cpu_count()}"),
        ("SIMD", " ".join(_cpu_features()) or "unknown to NumPy"),
    ]
    total, free = physical_memory(), available_memory()
    rows.append(("memory", f"{format_size(total)}, {format_size(free)} available"))
    limit, _ = memory_group()
    if limit is not None:
        rows.append(("control group", f"limit of {format_size(limit)}"))
    return rows


def _cpu_features():
    """Return the CPU features that NumPy found and its loops may use."""
    try:
        features = np.show_config(mode="dicts")["SIMD Extensions"]
    except (AttributeError, KeyError, TypeError):
        return []
    return [*features.get("baseline", ()), *features.get("found", ())]


def _backends():
    rows = []
    for name in ndx.backends.available():
        try:
            backend = ndx.backends.get(name)
        except Exception as error:
            # An unusable backend must not hide the others.
            rows.append((name, f"not usable: {error}"))
            continue
        stats = backend.stats()
        limit = "no limit" if backend.limit is None else format_size(backend.limit)
        reserved = format_size(stats["reserved_bytes"])
        rows.append((name, f"device {backend.device}, {limit}, {reserved} reserved"))
    return rows


def _costs():
    """Return what decides how an operation is computed (`_compute.costs`)."""
    rows = [("threads", str(ndx.get_num_threads()))]
    units = {"bandwidth": (1, "bytes a nanosecond"), "cycle": (1, "ns")}
    for name, value in ndx.cost_model().items():
        factor, unit = units.get(name, (1e6, "us"))
        rows.append((name.replace("_", " "), f"{value * factor:g} {unit}"))
    return rows


def _defaults():
    rows = [("backend", ndx.current_backend().name)]
    rows += [
        (name, text)
        for name, text in sorted(os.environ.items())
        if name.startswith("NDX_")
    ]
    modes = ndx.memory.debug_mode()
    rows.append(("debug mode", str(modes)))
    rows.append(("workspaces", str(ndx.memory.default_workspace_config())))
    rows.append(("collector window", f"{ndx.memory.gc_window()} s"))
    return rows

"""The distribution `ndx`, another project: its package has our import name.

Ours is the distribution `ndxarray`. pip does not see that the two share a folder: each
replaces files of the other, and to uninstall one removes files of both.
"""

import os
import sys

__all__ = ["OTHER", "check_package", "explanation", "version_beside"]

OTHER = "another project with the same import name"
_REPAIR = (
    "Remove both, and install ndx again: `pip uninstall ndx ndxarray`, then "
    "`pip install ndxarray`"
)


def check_package():
    """Raise `ImportError` if the ``__init__`` that was run for `ndx` is not ours."""
    package = sys.modules["ndx"]
    if hasattr(package, "__array_api_version__"):
        return
    path = getattr(package, "__file__", None)
    if path is None:  # Python took what is left of the folder for a namespace package
        says = f"has no __init__.py any more: the distribution `ndx`, {OTHER}, may have"
        says += " replaced it, and taken it along when it was uninstalled"
    else:
        says = f"has the __init__.py of {OTHER}, the distribution `ndx`: {path}"
    raise ImportError(
        f"the package ndx (of the distribution `ndxarray`) {says}. {_REPAIR}",
        name="ndx",
        path=path,
    )


def version_beside(package):
    """Return the version of a distribution `ndx` in the folder of a package, or None.

    It reads names of files only: at each import, `importlib.metadata` would be slow.
    """
    try:
        names = os.listdir(os.path.dirname(package))
    except OSError:  # a zip file, or a folder that may not be listed
        return None
    for name in names:
        if name.startswith("ndx-") and name.endswith(".dist-info"):
            return name.removeprefix("ndx-").removesuffix(".dist-info")
    return None


def explanation(version, package):
    """Return what is wrong if a distribution `ndx` is installed beside a package."""
    return (
        f"the distribution `ndx` {version}, {OTHER}, is installed in the folder of "
        f"ndx (the distribution `ndxarray`), {os.path.dirname(package)}. Each may have "
        f"replaced files of the other. {_REPAIR}"
    )

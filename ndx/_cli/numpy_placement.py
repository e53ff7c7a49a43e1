"""The memory of NumPy's arrays on a backend, in a process and in its children."""

import os
import sys
from multiprocessing import process, spawn
from typing import NamedTuple

import ndx
from ndx import backends
from ndx._lib.system import in_memory_file_system

__all__ = ["Placement"]

# Without a limit a fallback is never asked.
_LIMIT_BEFORE_FALLBACK = "50%"
# The attribute of a process, and the item of its data, that children get.
_KEY = "ndx"


class Placement(NamedTuple):
    """The options from which each process makes its backend.

    Attributes
    ----------
    limit : str or None
        The most memory of one process; None: as the environment says, or no limit.
    fallback : str or None
        Where what exceeds the limit is: "mmap", or None for nowhere.
    directory : str or None
        The folder for the files of ``"mmap"``.
    """

    limit: str | None = None
    fallback: str | None = None
    directory: str | None = None

    def make(self):
        """Return a backend; raise ValueError, TypeError or OSError if it can't be."""
        options = {}
        if self.directory is not None and self.fallback != "mmap":
            msg = "--directory is for --fallback mmap, where arrays are in files"
            raise ValueError(msg)
        if self.fallback == "host":
            msg = "--fallback host: there the limit is; arrays beyond it are for 'mmap'"
            raise ValueError(msg)
        if self.fallback not in (None, "mmap"):
            msg = f"--fallback {self.fallback}: the only one is 'mmap', which is files"
            raise ValueError(msg)
        if self.limit is not None:
            options["limit"] = self.limit
        if self.fallback is not None:
            options["fallback"] = self.make_fallback()
        backend = backends.get("host", **options)
        if backend.limit is None and self.fallback is not None:
            backend.limit = _LIMIT_BEFORE_FALLBACK
        return backend

    def make_fallback(self):
        """Return a new fallback; raise as `make` does."""
        # An instance of its own: a forked child can't use that of its parent.
        directory = self.directory or os.environ.get("NDX_MMAP_DIRECTORY")
        found = backends.get("mmap", directory=directory)
        kind = in_memory_file_system(found.directory)
        if kind is not None:
            msg = (
                f"{found.directory!r} is in memory itself ({kind}): give a folder on a "
                "disk by --directory"
            )
            raise ValueError(msg)
        return found

    def begin(self):
        """Place NumPy's arrays of this process, and of its children.

        Returns
        -------
        object
            With the `backend`, and what its fallbacks have `spilled`.

        Raises
        ------
        ValueError, TypeError, OSError
            If the backend can't be made.
        """
        backend = ndx.set_default(self.make(), numpy=True)
        current = _Current(self, backend)
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(before=current.freeze, after_in_child=current.renew)
        self._follow_children()
        return current

    def _follow_children(self):
        """Place NumPy's arrays in unforked children of `multiprocessing`, too."""
        prepare = spawn.get_preparation_data

        def get_preparation_data(name):
            # Read by the child before it imports the program's `__main__`.
            found = {_KEY: _EarlyBeginning(self), **prepare(name)}
            if name == "ignore":
                # For a fork server, which reads no more of it than the path of
                # `__main__`. It is to leave that to its children.
                found.pop("init_main_from_path", None)
            return found

        spawn.get_preparation_data = get_preparation_data
        # Processes inherit it; those of joblib are prepared in another way.
        config = getattr(process.current_process(), "_config", None)
        if isinstance(config, dict):
            config[_KEY] = _Beginning(self)


class _Current:
    """The backend of this process, which a forked child replaces by one of its own."""

    def __init__(self, placement, backend):
        self.placement = placement
        self.backend = backend
        self.retired = []  # fallbacks of the time before a fork
        self.before = 0, 0  # the counts of `spilled` for the retired fallbacks
        self.kept_nbytes = 0  # bytes in the fallbacks when the last one was retired

    def spilled(self):
        """Return the peak of bytes in the fallbacks, and the number of allocations."""
        stats = self.backend.fallback.stats()
        peak, count = self.before
        return (
            max(peak, self.kept_nbytes + stats["peak_bytes"]),
            count + stats["total_allocations"],
        )

    def freeze(self):
        """Let a child have the arrays in files as they are when it is forked."""
        spilled = self.backend.fallback
        if not hasattr(spilled, "freeze"):
            return
        self.retired = [x for x in self.retired if x.stats()["allocated_count"]]
        for each in self.retired:
            each.freeze()
        if not spilled.stats()["allocated_count"]:
            return
        spilled.freeze()
        self.retired.append(spilled)
        try:
            made = self.placement.make_fallback()
        except (OSError, MemoryError):
            # The old fallback goes on, and is frozen again at the next fork.
            self.retired.pop()
            return
        self.before = self.spilled()
        self.kept_nbytes = sum(x.stats()["allocated_bytes"] for x in self.retired)
        self.backend._replace_fallback(made)

    def renew(self):
        """Replace the backend by a new one, in a forked child."""
        try:
            made = self.placement.make()
        except (OSError, MemoryError):
            # The child goes on with the memory that its parent has left.
            return
        ndx.memory.replace_default(self.backend, made)
        self.__init__(self.placement, made)


class _Beginning:
    """Places NumPy's arrays of the process in which the object is unpickled."""

    def __init__(self, placement):
        self.placement = placement

    def __reduce__(self):
        return begin_child, tuple(self.placement)


class _EarlyBeginning(_Beginning):
    """As `_Beginning`, for a process whose path is not set yet, and may lack ndx."""

    def __reduce__(self):
        return exec, (_EARLY.format(ndx.__file__, tuple(self.placement)),)


_EARLY = """
import importlib.util, sys
if "ndx" not in sys.modules:
    spec = importlib.util.spec_from_file_location("ndx", {!r})
    sys.modules["ndx"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(sys.modules["ndx"])
from ndx._cli.numpy_placement import begin_child
begin_child(*{!r})
"""

_begun = False


def begin_child(*options):
    """Place NumPy's arrays in a child process, once, unless there is no memory."""
    global _begun
    placement = Placement(*options)
    if not _begun:
        _begun = True
        try:
            placement.begin()
        except (ValueError, OSError) as error:
            print(f"ndx run: a child process has no limit: {error}", file=sys.stderr)
    return _Beginning(placement)

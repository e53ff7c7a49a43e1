"""Recipes of backends: what another process needs in order to make one like ours."""

from __future__ import annotations

import dataclasses
from typing import Any

from ndx.backends import Backend, available, get
from ndx.backends._registry import BUILTIN, is_of_ndx, names_set_by_environment
from ndx.backends.adaptors import Adaptor, LimitingAdaptor

__all__ = ["BackendRecipe"]


@dataclasses.dataclass(frozen=True)
class BackendRecipe:
    """How another process makes a backend like one of this process; it can be pickled.

    Attributes
    ----------
    source : str or ndx.backends.Backend
        The name; or, for a forked process, a backend of the user's, which it uses.
    options : dict
        Those that differ from their defaults. Backends among them are recipes.
    bounds : tuple of int
        Those of the `LimitingAdaptor` around it, in bytes, the innermost first. Other
        adaptors refer to what this process has: files, functions, its arrays.

    Examples
    --------
    >>> import pickle, ndx
    >>> backend = ndx.backends.get("host", limit="1GiB")
    >>> sent = pickle.dumps(ndx.memory.BackendRecipe.of(backend))
    >>> pickle.loads(sent).make().limit
    1073741824
    """

    source: Any
    options: dict[str, Any]
    bounds: tuple[int, ...] = ()

    @classmethod
    def of(cls, backend: Backend, *, forked: bool = False) -> BackendRecipe:
        """Return the recipe of a backend, without the adaptors that can't travel.

        Parameters
        ----------
        backend : ndx.backends.Backend
        forked : bool
            Whether the other process is a fork of this one, made after the recipe. It
            has the backends of classes that are not registered, and uses them.

        Returns
        -------
        BackendRecipe

        Raises
        ------
        TypeError
            If a process that is no fork can't make the backend.
        """
        bounds: list[int] = []
        while isinstance(backend, Adaptor):
            if isinstance(backend, LimitingAdaptor):
                bounds.insert(0, backend.allowed)
            backend = backend.upstream
        if not is_of_ndx(backend):
            source = backend if forked else _registered_name(backend)
            return cls(source, {}, tuple(bounds))
        options = _options(backend)
        fallback = options.get("fallback")
        if isinstance(fallback, Backend):
            options["fallback"] = cls.of(fallback, forked=forked)
        return cls(backend.name, options, tuple(bounds))

    def make(self) -> Backend:
        """Return the backend; without options, the shared one of its name."""
        made = get(
            self.source,
            **{
                name: value.make() if isinstance(value, BackendRecipe) else value
                for name, value in self.options.items()
            },
        )
        for nbytes in self.bounds:
            made = LimitingAdaptor(made, nbytes)
        return made


def _registered_name(backend: Backend) -> str:
    name = backend.name
    kind = name.partition(":")[0]
    if name in available() and kind not in BUILTIN:
        return name
    msg = (
        f"{backend!r} can't be made by another process: its class is not registered. "
        "Call ndx.backends.register in a module that the function's module imports, or "
        "give start_method='fork'"
    )
    raise TypeError(msg)


def _options(backend: Any) -> dict[str, Any]:
    """Return the options of a backend of ndx that others would have another value for.

    That is, by default or by the environment.
    """
    options, by_environment = backend.options, names_set_by_environment(backend)
    defaults = {each.name: each.default for each in dataclasses.fields(options)}
    found = {name: getattr(options, name) for name in defaults}
    found = {
        name: value
        for name, value in found.items()
        if name in by_environment or value != defaults[name]
    }
    # A backend with files of its own: a forked child can't use the one of this name.
    if hasattr(backend, "directory"):
        found["directory"] = backend.directory
    return found

"""Protocols of wrappers: those that what they wrap has, and no others."""

from __future__ import annotations

from typing import Any

from ndx._lib.caches import cached
from ndx._pipelines.progress import length_of

__all__ = ["has_method", "offer_length", "offer_methods"]

_METHODS = {
    "__iter__": lambda self: iter(self.source),
    "__aiter__": lambda self: aiter(self.source),
    "__len__": lambda self: len(self.source),
}


def has_method(source: Any, name: str) -> bool:
    """Whether a class has a special method; instances are not asked, as by Python."""
    return getattr(type(source), name, None) is not None


def offer_length(wrapper: Any) -> None:
    """Give a wrapper a length if its attribute ``source`` has one."""
    if length_of(wrapper.source) is not None:
        offer_methods(wrapper, ("__len__",))


def offer_methods(wrapper: Any, names: tuple[str, ...]) -> None:
    """Give a wrapper special methods, which are those of its attribute ``source``.

    `hasattr`, `isinstance`, `bool` and `len` look at the class: an instance can't have
    less than it. So its class becomes a subclass that has them.
    """
    wrapper.__class__ = _subclass(type(wrapper), names)


@cached("classes of wrappers", 256)
def _subclass(cls: Any, names: tuple[str, ...]) -> Any:
    # A subclass of a user may have methods of its own.
    offered = {name: _METHODS[name] for name in names if not hasattr(cls, name)}
    if not offered:
        return cls

    def reduced(self: Any) -> tuple[Any, ...]:
        return _made_again, (cls, names), self.__dict__

    described = {
        "__module__": cls.__module__,
        "__qualname__": cls.__qualname__,
        "__doc__": cls.__doc__,
        # By its name, a pickle would find the class without them.
        "__reduce__": reduced,
    }
    return type(cls)(cls.__name__, (cls,), offered | described)


def _made_again(cls: type, names: tuple[str, ...]) -> Any:
    """Return an empty instance for the state of another one: copies and pickles."""
    return object.__new__(_subclass(cls, names))

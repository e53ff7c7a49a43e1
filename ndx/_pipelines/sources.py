"""Sources: their length and bar, their protocols, and the mark against prefetching."""

from __future__ import annotations

from collections.abc import Iterable
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from ndx._lib.caches import cached

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

__all__ = [
    "has_method",
    "is_iterable",
    "is_marked",
    "length_of",
    "no_prefetch",
    "offer_length",
    "progress_bar",
    "tqdm_class",
    "unmarked",
]

# ---- Lengths and bars ----------------------------------------------------------------


def _nothing(*args: Any, **values: Any) -> None:
    pass


# What is used without a bar.
_NO_BAR = SimpleNamespace(update=_nothing, set_postfix=_nothing, close=_nothing)


def tqdm_class() -> Any:
    """Return tqdm's bar for where this runs: a terminal or a notebook."""
    try:
        from tqdm.auto import tqdm
    except ImportError as error:
        raise ImportError(
            "a progress bar needs tqdm, which is not installed: pip install "
            "'ndxarray[progress]'"
        ) from error
    # Without tqdm's thread, which would stay after the bar.
    return type("tqdm", (tqdm,), {"monitor_interval": 0})


def progress_bar(wanted: bool | str, total: int | None, unit: str) -> Any:
    """Return a bar for so many units, or what takes its place if none is wanted.

    A str is the text before it. Raises TypeError for what is neither that nor a bool,
    and ImportError without tqdm.
    """
    if wanted is False:
        return _NO_BAR
    if wanted is not True and not isinstance(wanted, str):
        raise TypeError(
            f"progress must be a bool or a text (str), not {type(wanted).__name__}"
        )
    text = wanted if isinstance(wanted, str) else None
    return tqdm_class()(total=total, unit=unit, desc=text)


def length_of(source: Any) -> int | None:
    """Return the number of items of a source; None if that is not known."""
    try:
        return len(source)
    except (TypeError, NotImplementedError):
        # A class may have `__len__` for some of its instances only.
        return None


# ---- Protocols: those that a source has, and no others -------------------------------


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


# ---- The mark ------------------------------------------------------------------------


T = TypeVar("T")

# A class can set it, too.
MARK = "__ndx_no_prefetch__"
# Where wrappers usually keep what they wrap.
_WRAPPED = ("source", "dataset", "iterable", "loader", "__wrapped__")


class no_prefetch(Generic[T]):
    """Mark an iterable, so that `ndx.prefetch` starts no thread for it.

    Parameters
    ----------
    iterable : iterable or asynchronous iterable
        One that must run in its consumer's thread (or task): it uses a database's
        connection, a GUI, or a library that isn't safe in threads; or making it is
        cheap.

    Returns
    -------
    no_prefetch
        An iterable with the same items, asynchronous if that is, with a length if that
        has one. `ndx.prefetch` makes its batches one by one, when they are asked for;
        all else is as with a thread. The attribute ``source`` is the iterable.

    Notes
    -----
    `ndx.prefetch` also finds the mark through wrappers that keep what they wrap in an
    attribute ``source``, ``dataset``, ``iterable``, ``loader`` or ``__wrapped__``, at
    any depth. It can't look into generators, `map` or `zip`: mark their result. A class
    marks its instances by ``__ndx_no_prefetch__ = True``.

    DL4J's ``AsyncShieldDataSetIterator`` has the same purpose.

    Examples
    --------
    >>> import threading, ndx
    >>> here = threading.current_thread()
    >>> def source():
    ...     yield threading.current_thread() is here
    >>> list(ndx.prefetch(source())), list(ndx.prefetch(ndx.no_prefetch(source())))
    ([False], [True])
    """

    __ndx_no_prefetch__ = True

    def __init__(self, iterable: Iterable[T]) -> None:
        offered: tuple[str, ...] = ("__iter__",) if is_iterable(iterable) else ()
        if has_method(iterable, "__aiter__"):
            offered += ("__aiter__",)
        if not offered:
            raise TypeError(
                f"no_prefetch takes an iterable, not {type(iterable).__name__}"
            )
        self.source = iterable
        if length_of(iterable) is not None:
            offered += ("__len__",)
        offer_methods(self, offered)

    # An instance has those that its source has.
    if TYPE_CHECKING:

        def __iter__(self) -> Iterator[T]: ...

        def __aiter__(self) -> AsyncIterator[T]: ...

        def __len__(self) -> int: ...

    def __repr__(self) -> str:
        return f"ndx.no_prefetch({self.source!r})"


def is_iterable(source: Any) -> bool:
    """Whether `iter` takes an object."""
    return has_method(source, "__iter__") or has_method(source, "__getitem__")


def unmarked(source: Any) -> Any:
    """Return what `no_prefetch` wraps, however often."""
    while isinstance(source, no_prefetch):
        source = source.source
    return source


def is_marked(source: Any) -> bool:
    """Whether an iterable, or what it wraps, is not to be prefetched."""
    met: list[Any] = []
    waiting = [source]
    while waiting:
        item = waiting.pop()
        if any(item is each for each in met):
            continue
        met.append(item)
        if getattr(item, MARK, False) is True:
            return True
        # What is in an instance, and not what a class offers: no property runs.
        attributes = getattr(item, "__dict__", {})
        waiting += [attributes[name] for name in _WRAPPED if name in attributes]
    return False

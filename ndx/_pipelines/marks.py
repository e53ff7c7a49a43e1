"""The mark of iterables that are not to be prefetched."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from ndx._pipelines.progress import length_of
from ndx._pipelines.protocols import has_method, offer_methods

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

__all__ = ["is_marked", "no_prefetch"]

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

"""`ndx.prefetch`: batches that are made ahead, in a ring of workspaces."""

from __future__ import annotations

import contextvars
import math
import operator
import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from os import getpid
from threading import get_ident
from typing import TYPE_CHECKING, Any, Literal, TypeVar, overload

import ndx
from ndx._pipelines.arguments import check_choice
from ndx._pipelines.async_prefetching import AsyncMaker, AsyncPrefetch
from ndx._pipelines.leases import Filling, FillingOnDevice, Ring, Slot, slot_sizing
from ndx._pipelines.producing import (
    DirectMaker,
    Iteration,
    Outcome,
    Prefetching,
    ThreadMaker,
    waits_for_itself,
)
from ndx._pipelines.sources import (
    has_method,
    is_iterable,
    is_marked,
    tqdm_class,
    unmarked,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterable
    from typing import Self, Unpack

    from ndx import Device, NDArray
    from ndx._typing import AnyArray, NPArray, PrefetchKeywords

__all__ = ["prefetch"]

T = TypeVar("T")
K = TypeVar("K")


# Type checkers see NumPy's arrays become NDArrays in the plainest batches.
@overload
def prefetch(
    iterable: Iterable[AnyArray],
    depth: int = 8,
    workspace: Literal["ring"] | None = "ring",
    **options: Unpack[PrefetchKeywords],
) -> Prefetch[NDArray]: ...
@overload
def prefetch(
    iterable: Iterable[tuple[AnyArray, ...]],
    depth: int = 8,
    workspace: Literal["ring"] | None = "ring",
    **options: Unpack[PrefetchKeywords],
) -> Prefetch[tuple[NDArray, ...]]: ...
@overload
def prefetch(
    iterable: Iterable[dict[K, NPArray]],
    depth: int = 8,
    workspace: Literal["ring"] | None = "ring",
    **options: Unpack[PrefetchKeywords],
) -> Prefetch[dict[K, NDArray]]: ...
@overload
def prefetch(
    iterable: Iterable[T],
    depth: int = 8,
    workspace: Literal["ring"] | None = "ring",
    **options: Unpack[PrefetchKeywords],
) -> Prefetch[T]: ...
@overload
def prefetch(
    iterable: AsyncIterable[AnyArray],
    depth: int = 8,
    workspace: Literal["ring"] | None = "ring",
    **options: Unpack[PrefetchKeywords],
) -> AsyncPrefetch[NDArray]: ...
@overload
def prefetch(
    iterable: AsyncIterable[tuple[AnyArray, ...]],
    depth: int = 8,
    workspace: Literal["ring"] | None = "ring",
    **options: Unpack[PrefetchKeywords],
) -> AsyncPrefetch[tuple[NDArray, ...]]: ...
@overload
def prefetch(
    iterable: AsyncIterable[dict[K, NPArray]],
    depth: int = 8,
    workspace: Literal["ring"] | None = "ring",
    **options: Unpack[PrefetchKeywords],
) -> AsyncPrefetch[dict[K, NDArray]]: ...
@overload
def prefetch(
    iterable: AsyncIterable[T],
    depth: int = 8,
    workspace: Literal["ring"] | None = "ring",
    **options: Unpack[PrefetchKeywords],
) -> AsyncPrefetch[T]: ...
def prefetch(
    iterable: Any,
    depth: int = 8,
    workspace: Literal["ring"] | None = "ring",
    *,
    slots: int | None = None,
    warmup: int = 3,
    slot_size: int | str = 0,
    on_held: Literal["wait", "grow"] = "wait",
    patience: float = 10.0,
    device: Device | str | None = None,
    copy: bool = True,
    progress: bool | str = False,
) -> Any:
    """Make the batches of an iterable ahead, in a background thread.

    Parameters
    ----------
    iterable : iterable or asynchronous iterable
        The source. Its items are batches: arrays, or tuples, lists, dicts and
        dataclasses of them, nested. NumPy's arrays become NDArrays; other leaves pass
        unchanged. An iterable that is no iterator (a list, a data set) is iterated
        once for each epoch.
    depth : int
        How many batches are made ahead at most, from 1 on.
    workspace : {"ring", None}
        Where batches lie: in the slots of a ring, one for each batch, which are used
        again in every epoch; None: in memory of the backend.
    slots : int, optional
        The number of slots. They are made when they are needed. Default: ``depth + 3``.
    warmup : int
        A slot is as large as the largest of the first so many batches needed, plus
        30 %. A batch of more than twice the size of the next one is not counted, if
        there are three or more. Later, the size follows the last 32 batches. A batch
        that doesn't fit in its slot is spilled: the backend serves it.
    slot_size : int or str
        Bytes of each slot, such as ``"64MiB"``, instead of what is learned.
    on_held : {"wait", "grow"}
        What is done if all slots are leased: the producer waits until the consumer
        drops a batch, or adds a slot.
    patience : float
        For ``"wait"``: seconds after which the consumer that waits for the next batch
        gets an error if no slot is released by another thread. Without other threads,
        it gets it at once.
    device : str, optional
        A GPU, such as ``"cuda:0"``, that batches are copied to, from page-locked
        memory. The ring is in its memory then.
    copy : bool
        Whether NDArrays that the source did not make in this step are copied, too.
        False: they are passed as they are, so the source must not write to them.
    progress : bool or str
        Whether tqdm shows a bar for each epoch; a str is its description.

    Returns
    -------
    Prefetch or AsyncPrefetch
        An iterable; each ``iter()`` starts an epoch. `AsyncPrefetch` for an
        asynchronous iterable: ``async for batch in ndx.prefetch(source)``.

    Raises
    ------
    ValueError, TypeError
        If an argument is not valid; it says what is.
    DeviceError
        If there is no such GPU.
    ImportError
        If `progress` is wanted and tqdm is not installed.

    Notes
    -----
    *Lease.* A slot is used again only when nothing refers to its batch any more:
    arrays, views of them, NumPy's exports. So a batch can be kept for as long as it is
    wanted; it never goes stale, and is never overwritten. But a kept one takes a slot:
    copy what is to be kept for long (``ndx.asarray(x, copy=True)``).

    *Errors* of the source are raised in place of the item that it was to make, with
    their traceback; the epoch is over then.

    *Context.* The source runs in a copy of the context in which `prefetch` was called:
    it has the same backend, and none of the caller's workspaces.

    *End.* An epoch ends with its last item, an error, `close`, or when its iterator is
    dropped. The thread ends when the prefetch and its iterators are dropped, or by
    `close` (also ``with ndx.prefetch(...) as batches``).

    DL4J's ``AsyncDataSetIterator``, without its hazards: it overwrites batches that
    are kept, and makes a workspace and a thread for each epoch.

    Examples
    --------
    >>> import numpy as np, ndx
    >>> def load():
    ...     for i in range(3):
    ...         yield {"x": np.full(4, i), "name": f"file {i}"}
    >>> for batch in ndx.prefetch(load()):
    ...     print(batch["name"], batch["x"])
    file 0 [0 0 0 0]
    file 1 [1 1 1 1]
    file 2 [2 2 2 2]
    """
    settings = Settings(
        depth=depth,
        workspace=workspace,
        slots=slots,
        warmup=warmup,
        slot_size=slot_size,
        on_held=on_held,
        patience=patience,
        device=device,
        copy=copy,
        progress=progress,
    )
    if settings.progress is not False:
        tqdm_class()
    context = contextvars.copy_context()
    source, ahead = unmarked(iterable), not is_marked(iterable)
    if is_iterable(source):
        kind = ThreadMaker if ahead else DirectMaker
        return Prefetch(iterable, kind(source, settings, context))
    if has_method(source, "__aiter__"):
        return AsyncPrefetch(iterable, AsyncMaker(source, settings, context, ahead))
    raise TypeError(
        "prefetch takes an iterable or an asynchronous iterable, not "
        f"{type(iterable).__name__}"
    )


# Slots beside those of the batches ahead: the one that the consumer has, the one that
# it still names while it asks for the next, and the one that a generator still names
# while it makes the next.
_SPARE_SLOTS = 3
_MOST_AHEAD = 4096


@dataclass
class Settings:
    """The options of `ndx.prefetch`; see there."""

    depth: int = 8
    workspace: str | None = "ring"
    slots: int | None = None
    warmup: int = 3
    slot_size: int | str = 0
    on_held: str = "wait"
    patience: float = 10.0
    device: Any = None
    copy: bool = True
    progress: bool | str = False

    def __post_init__(self) -> None:
        self.depth = _count("depth", self.depth, 1, _MOST_AHEAD)
        self.warmup = _count("warmup", self.warmup, 1, _MOST_AHEAD)
        if self.slots is None:
            self.slots = self.depth + _SPARE_SLOTS
        else:
            self.slots = _count("slots", self.slots, 2, 2 * _MOST_AHEAD)
        check_choice("workspace", self.workspace, ("ring", None))
        check_choice("on_held", self.on_held, ("wait", "grow"))
        self.slot_size = _size("slot_size", self.slot_size)
        patience: Any = self.patience
        if not isinstance(patience, int | float) or not patience >= 0:
            raise ValueError(
                f"patience={self.patience!r} is not valid; it is a number of seconds, "
                "0 or more"
            )
        if math.isinf(self.patience):
            raise ValueError(
                "patience=inf is not valid: the consumer would wait for ever for a "
                "batch that can't be made. Give a number of seconds"
            )
        if not isinstance(self.copy, bool):
            raise TypeError(f"copy must be True or False, not {self.copy!r}")
        if not isinstance(self.progress, bool | str):
            raise TypeError(
                "progress must be True, False or the bar's description, not "
                f"{self.progress!r}"
            )
        if self.device is not None:
            self.device = _device(self.device)

    def ring(self) -> Ring:
        """Return a new ring, for the thread that is to use it."""
        assert self.slots is not None
        return Ring(
            self.slots,
            slot_sizing(self.warmup, int(self.slot_size)),
            self.device,
            self.workspace is not None,
            self.on_held == "grow",
            self.patience,
        )

    def filling(self, ring: Ring, slot: Slot) -> Filling:
        """Return the scope in which the source makes a batch in a slot."""
        if self.device is None:
            return Filling(ring, slot, self.copy)
        return FillingOnDevice(ring, slot, self.copy, self.device)


def _count(name: str, value: Any, least: int, most: int) -> int:
    try:
        number = operator.index(value)
    except TypeError:
        number = None
    if number is None or isinstance(value, bool):
        raise TypeError(f"{name} must be an int, not {type(value).__name__}")
    if not least <= number <= most:
        raise ValueError(f"{name}={number} is not valid; it is from {least} to {most}")
    return number


def _size(name: str, value: Any) -> int:
    try:
        return ndx.WorkspaceConfig(size=value).size
    except (TypeError, ValueError) as error:
        raise type(error)(f"{name}: {error}") from None


def _device(device: Any) -> str | None:
    """Return the name of a device; None for the CPU."""
    if str(device) == "cpu":
        return None
    found = str(ndx.backends.get(str(device)).device)
    if found == "cpu":
        raise ValueError(
            f"device={device!r} is not valid; it is a GPU, such as 'cuda:0', or 'cpu'. "
            "Backends of the CPU are chosen by ndx.use"
        )
    return found


class Prefetch(Prefetching[T]):
    """Batches of a source, made ahead; made by `ndx.prefetch`.

    An iterable. ``iter()`` starts an epoch, and ends the one before. If the source is
    an iterator itself (a generator, say), there is only one epoch, and each ``iter()``
    goes on with it. It has a length if its source has one.
    """

    def __iter__(self) -> PrefetchIterator[T]:
        return self._iteration(PrefetchIterator, Iterator)

    def close(self) -> None:
        """End the epoch, if there is one, and the thread; wait for both.

        To iterate raises an error then. Batches that were taken stay valid. If the
        source's current step takes longer than 10 s, there is a `ResourceWarning`, and
        the thread ends after it.
        """
        last = None if self._last is None else self._last()
        if last is not None:
            last._close()
        self._maker.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


class PrefetchIterator(Iteration[T]):
    """One epoch of a `Prefetch`; threads may share it."""

    def __init__(self, maker: ThreadMaker | DirectMaker) -> None:
        # Reentrant, so that a thread that would wait for itself gets an error.
        self._one_at_a_time = threading.RLock()
        self._is_asked = False
        self._process = getpid()
        super().__init__(maker)

    def __iter__(self) -> PrefetchIterator[T]:
        return self

    def __next__(self) -> T:
        # For a batch that is ready, this calls two functions of Python: to wake the
        # producer, and the bar's.
        epoch = self._epoch
        if getpid() != self._process or get_ident() == epoch.producer:
            self._check_caller()
        with self._one_at_a_time:
            if self._is_asked:
                raise waits_for_itself()
            if self._over:
                raise StopIteration
            try:
                outcome = epoch.ready.popleft()
            except IndexError:
                outcome = self._wait()
            else:
                epoch.wake.set()
            if outcome.error is not None or outcome.is_last:
                try:
                    self._raise_end(outcome, StopIteration)
                finally:
                    # As in `_raise_end`.
                    del outcome, self
            self._bar.update()
            return outcome.batch  # type: ignore[no-any-return]

    def _check_caller(self) -> None:
        """Raise where no batch can be taken; be usable in a forked child."""
        self._maker.check_caller()
        if self._process != getpid():
            # A thread that this child lacks may hold the lock.
            self._process = getpid()
            self._one_at_a_time = threading.RLock()
            self._is_asked = False

    def _wait(self) -> Outcome:
        """Return the next outcome; wait until there is one."""
        self._is_asked = True
        try:
            return self._maker.receive(self._epoch)  # type: ignore[no-any-return]
        except BaseException:
            # Ctrl-C, say: as of a generator, nothing comes after it.
            self._end()
            raise
        finally:
            self._is_asked = False

    def _close(self) -> None:
        """Want no more; who calls it takes an error of the source's end."""
        self._epoch.closing = True
        self._end()

    def close(self) -> None:
        """End the epoch; wait until the source is closed, 10 s at most."""
        self._close()
        self._maker.wait_for_end(self._epoch)

"""`ndx.parallel.map`: a function computed for many items, by workers."""

from __future__ import annotations

import builtins
import contextlib
import threading
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Literal, Self

import ndx
from ndx._lib.functions import check_function
from ndx._pipelines import worker_backends
from ndx._pipelines.arguments import check_count
from ndx._pipelines.processes import Processes
from ndx._pipelines.sources import length_of, progress_bar
from ndx._pipelines.workers import Crew, Opened, Outcome

__all__ = ["Results", "map"]


def map(
    fn: Callable[..., Any],
    /,
    *iterables: Iterable[Any],
    workers: int | Literal["threads", "processes"] | None = None,
    processes: int | None = None,
    buffersize: int | None = None,
    workspace: str | None = "ndx.parallel",
    config: ndx.WorkspaceConfig | None = None,
    backend: Any = None,
    devices: Sequence[Any] | None = None,
    threads: int | None = None,
    start_method: str | None = None,
    progress: bool | str = False,
) -> Results:
    """Compute a function for each item, on several workers; yield results in order.

    Parameters
    ----------
    fn : callable
        Called with one item, or with one of each iterable. Several threads call it at
        the same time. What it returns is detached from the worker's workspace: arrays
        in tuples, lists, dicts, sets, dataclasses, nested.
    *iterables : iterable
        The items. They are taken as results are asked for, in the thread that asks.
        The shortest of several iterables ends the map.
    workers : int or {"threads", "processes"}, optional
        How many threads, or which kind of workers. Default: a thread for each of
        `devices`, else as many as `ndx.get_num_threads` says.
    processes : int, optional
        How many processes; it implies ``workers="processes"``.
    buffersize : int, optional
        How many items are taken whose results were not yielded yet: it bounds memory.
        Default: twice the workers.
    workspace : str, optional
        The name of the workspace that each worker has for itself. None: no workspace.
    config : ndx.WorkspaceConfig, optional
        Its policies. Default: those of `ndx.memory.default_workspace_config`, with
        ``spill="grow"`` if these are the usual ones.
    backend : str or ndx.backends.Backend, optional
        Where the workers' arrays lie. Default: the current backend.
    devices : sequence of str or ndx.Device, optional
        Devices of the workers, in turn, such as ``["cuda:0", "cuda:1"]``. Arrays of the
        items, NumPy's too, are copied to the worker's device as arrays of ndx, if they
        are not there: arrays in tuples, lists, dicts, dataclasses, nested. So results
        of them are there, too. What the function has otherwise stays where it is.
    threads : int, optional
        How many threads may compute one operation of a worker, in ndx and in BLAS (if
        threadpoolctl is installed). Default: workers share the cores.
    start_method : {"fork", "spawn", "forkserver"}, optional
        How processes are started. Default: that of `multiprocessing`.
    progress : bool or str
        Whether a progress bar is shown, by tqdm; or the text before it.

    Returns
    -------
    Results
        An iterator, and a context manager that ends the workers. They also end when
        the iterator is exhausted, raises, or is dropped.

    Raises
    ------
    Exception
        What `fn` raises, when the turn of its item comes. A note and the attribute
        ``index_of_item`` have the item's number. No later item is begun. What an
        iterable raises comes after the results of the items before.
    concurrent.futures.process.BrokenProcessPool
        If a worker process dies.
    TypeError, ValueError
        If an argument is bad.

    See Also
    --------
    share : Put an array where processes see it without a copy.
    train, Predictor : Workers that train, and that answer requests.

    Notes
    -----
    Threads see the same arrays: nothing is copied, and what one writes, others read,
    without any order. Let them read shared arrays, and write to arrays of their own.

    Processes get large arrays in files in memory (``/dev/shm``), which are mapped, not
    pickled; each is copied once on the way, in C or Fortran order as it is. Each side
    may write to what it got: no other process sees that. An array of `share` is not
    copied at all, and can't be written there. What a forked function writes to one in
    its closure, no other process sees, unless there is a limit of data (``ulimit -d``).
    Ctrl-C, `close` and errors end processes at once, but threads only after the items
    that they have begun.

    Each process has a backend of its own, with the same options, fallback and bounds of
    `ndx.memory.LimitingAdaptor` (other adaptors stay here), and the limits of
    `ndx.memory.set_limit`. A limit is one of each process; to that of a forked one,
    what it has inherited counts, too. A backend of a class of your own is forked as it
    is; other processes make one by its registered name, without options.

    The buffer is that of `concurrent.futures.Executor.map` in Python 3.14. ND4J's
    ``ParallelWrapper`` has a workspace for each worker, too.

    Examples
    --------
    >>> import ndx
    >>> def energy(signal):
    ...     return ndx.sum(ndx.abs(ndx.fft.fft(signal)) ** 2) / signal.size
    >>> signals = [ndx.full(8, float(i)) for i in range(4)]
    >>> list(ndx.parallel.map(energy, signals, workers=2))
    [NDArray(0.), NDArray(8.), NDArray(32.), NDArray(72.)]
    """
    check_function(fn, "fn")
    if not iterables:
        raise TypeError("map needs at least one iterable of items")
    kind, count = _kind_of(workers, processes)
    places = worker_backends.places(
        count, workspace=workspace, config=config, backend=backend, devices=devices
    )
    total = _total(iterables)
    if total is not None:
        places = places[: max(1, total)]
    if start_method is not None and kind == "threads":
        raise ValueError(
            f"start_method={start_method!r} is for processes; "
            "add workers='processes' or processes=N"
        )
    if threads is not None:
        check_count(threads, "threads")
    size = (
        2 * len(places) if buffersize is None else check_count(buffersize, "buffersize")
    )
    # Unlike `zip`, it keeps nothing of the last items.
    source = builtins.map(_together, *iterables)
    with contextlib.ExitStack() as stack:
        bar = progress_bar(progress, total, "item")
        stack.callback(bar.close)
        if kind == "threads":
            opened = [_opened(fn, place) for place in places]
            crew = Crew(opened, name="ndx-map", threads=threads)
        else:
            crew = _processes_crew(fn, places, start_method, threads)
        made = Results(crew, source, size, bar, total)
        stack.pop_all()
    return made


def _together(*items: Any) -> tuple[Any, ...]:
    return items


def _processes_crew(
    fn: Callable[..., Any],
    places: list[worker_backends.Place],
    start_method: str | None,
    threads: int | None,
) -> Crew:
    """Return threads of which each waits for the answers of one process."""
    started = Processes(fn, places, start_method, threads)
    try:
        return Crew(started.openers, stop=started.stop, name="ndx-map", computing=False)
    except BaseException:
        # Those that have no thread yet.
        started.close()
        raise


def _opened(fn: Callable[..., Any], place: worker_backends.Place) -> Opened:
    @contextlib.contextmanager
    def opened() -> Iterator[Callable[..., Any]]:
        with place.entered() as scoped:
            # Any callable: the decorator takes functions only.
            yield scoped(lambda *args: fn(*place.moved(args)))

    return opened


def _kind_of(workers: Any, processes: Any) -> tuple[str, int | None]:
    """Return the kind of workers, and how many; None for the usual number."""
    if isinstance(workers, str):
        if workers not in ("threads", "processes"):
            raise ValueError(
                f"workers={workers!r} is not a kind of workers; valid are a number, "
                "'threads' and 'processes'"
            )
        if processes is not None and workers == "threads":
            raise ValueError("workers='threads' and processes= contradict each other")
        kind, count = workers, processes
    elif processes is not None:
        if workers is not None:
            raise ValueError(
                f"workers={workers!r} are threads, and processes={processes!r} asks "
                "for processes; give one of the two"
            )
        kind, count = "processes", processes
    else:
        kind, count = "threads", workers
    if count is not None:
        check_count(count, "workers" if kind == "threads" else "processes")
    return kind, count


def _total(iterables: tuple[Iterable[Any], ...]) -> int | None:
    """Return how many items there will be, if all iterables have a length."""
    lengths = [length_of(each) for each in iterables]
    return None if None in lengths else min(lengths)  # type: ignore[type-var]


def _waits_for_itself(what: str) -> RuntimeError:
    return RuntimeError(
        f"the {what} of a map asks for a result of that map: it would wait for itself"
    )


class Results:
    """The results of `map`, in the order of the items.

    Use it from one thread. ``with ndx.parallel.map(...) as results:`` ends the workers
    at the end of the block, whatever happens in it.
    """

    def __init__(
        self,
        crew: Crew,
        source: Iterator[tuple[Any, ...]],
        size: int,
        bar: Any,
        total: int | None,
    ):
        self._crew, self._bar = crew, bar
        self._source: Iterator[tuple[Any, ...]] | None = source
        self._size, self._total = size, total
        self._done: dict[int, Outcome] = {}
        self._next = self._fed = 0
        self._is_open = True
        # Reentrant, so that a thread that would wait for itself gets an error.
        self._turn = threading.RLock()
        self._is_asked = False
        try:
            self._feed()
        except BaseException:
            self.close()
            raise

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Any:
        """Return the next result, or raise the error of its item.

        Several threads may take from one iterator: one after the other.
        """
        if self._is_open and not self._crew.team.is_here:
            # Another thread of the parent may have had the lock.
            raise RuntimeError(
                "the results of ndx.parallel.map are those of another process: its "
                "workers did not follow into the forked child. Call map there"
            )
        if self._crew.team.is_member:
            raise _waits_for_itself("function")
        with self._turn:
            if self._is_asked:
                raise _waits_for_itself("iterable")
            self._is_asked = True
            try:
                return self._next_result()
            finally:
                self._is_asked = False

    def _next_result(self) -> Any:
        if not self._is_open:
            raise StopIteration
        try:
            self._feed()
            # An iterable may have closed it.
            outcome = self._take(self._next) if self._is_open else None
        except BaseException:
            self.close()
            raise
        if outcome is None:
            self.close()
            raise StopIteration
        if outcome.error is not None:
            self.close()
            try:
                return outcome.result()
            finally:
                # The traceback has this frame.
                del outcome
        self._next += 1
        self._bar.update()
        return outcome.value

    def __length_hint__(self) -> int:
        if not self._is_open or self._total is None:
            return 0
        return self._total - self._next

    def _feed(self) -> None:
        """Take items until the buffer is full, or there are no more."""
        while self._source is not None and self._fed - self._next < self._size:
            try:
                items = next(self._source)
            except StopIteration:
                self._source = None
                return
            except Exception as error:
                # Its traceback leads to this object, which it would keep: it is a note.
                with contextlib.suppress(Exception):
                    error.add_note("".join(traceback.format_exception(error)).rstrip())
                self._source = None
                # Its turn is after the results of the items before.
                failed = Outcome(self._fed, error=error.with_traceback(None))
                self._done[self._fed] = failed
                del failed
            else:
                self._crew.put(self._fed, *items)
                del items
            self._fed += 1

    def _take(self, key: int) -> Outcome | None:
        """Wait for the outcome of an item; return None if there is no such item."""
        if key == self._fed:
            return None
        while key not in self._done:
            outcome = self._crew.take()
            if outcome.key is None:
                return outcome
            if outcome.error is not None:
                self._source = None
            self._done[outcome.key] = outcome
        return self._done.pop(key)

    def close(self) -> None:
        """End the workers; items that were begun are finished first, by threads."""
        self._is_open = False
        self._source = None
        self._done.clear()
        self._crew.close()
        self._bar.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __repr__(self) -> str:
        state = f"{self._next} yielded" if self._is_open else "closed"
        return f"<ndx.parallel.Results: {state}>"

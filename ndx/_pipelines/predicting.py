"""`ndx.parallel.Predictor`: a function that many threads ask, computed in batches."""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Hashable, Iterator, Sequence
from concurrent.futures import Future
from typing import Any, Literal, Self

import numpy as np

import ndx
from ndx._lib.functions import check_function
from ndx._lib.trees import map_tree
from ndx._lib.weak import members
from ndx._pipelines import worker_backends
from ndx._pipelines.arguments import check_choice, check_count
from ndx._pipelines.worker_backends import Place
from ndx._pipelines.workers import Team

__all__ = ["Predictor"]

# ---- Requests, gathered to batches ---------------------------------------------------


@dataclasses.dataclass(eq=False)
class Request:
    """Arrays that wait for an answer.

    Requests with equal keys may be computed together.
    """

    args: tuple[Any, ...]
    # The length of the first axis of each.
    rows: int
    key: Hashable
    # Where the answer goes.
    future: Future[Any] = dataclasses.field(default_factory=Future)
    # When it came, in seconds.
    since: float = dataclasses.field(default_factory=time.monotonic)


def rows_of(args: tuple[Any, ...]) -> int:
    """Return the length of the first axis of the first argument; 1 without one."""
    shape = getattr(args[0], "shape", ()) if args else ()
    return int(shape[0]) if shape else 1


def closed() -> RuntimeError:
    """Return the error of a request that comes too late."""
    return RuntimeError(
        "the predictor is closed: it takes no more requests. Make another, or close it "
        "later"
    )


class Statistics(dict[str, int]):
    """Counts of requests and batches. Who counts has the lock of what it belongs to."""

    def __init__(self) -> None:
        super().__init__(
            requests=0, batches=0, rows=0, full_batches=0, largest_batch=0, errors=0
        )

    def add_batch(self, rows: int, full: bool) -> None:
        """Count a batch with so many rows."""
        self["batches"] += 1
        self["rows"] += rows
        self["full_batches"] += full
        self["largest_batch"] = max(self["largest_batch"], rows)


class _Group(deque[Request]):
    """Requests with one key, and the sum of their rows."""

    rows = 0

    def append(self, request: Request) -> None:
        super().append(request)
        self.rows += request.rows


class Requests:
    """The requests that wait, by key, in the order in which they came.

    A larger request than `max_batch` is a batch by itself; with 0 each is, also one
    without rows. After `deadline` seconds, a request waits for no others. When as many
    as `limit` wait, more wait in `put`.
    """

    def __init__(self, max_batch: int, deadline: float, limit: int | None):
        self._max_batch, self._deadline, self._limit = max_batch, deadline, limit
        # Reentrant, since a finalizer may close it in a thread that is in here.
        lock = threading.RLock()
        self._came, self._left = threading.Condition(lock), threading.Condition(lock)
        self._waiting: dict[Hashable, _Group] = {}
        # How many requests wait.
        self.waiting = 0
        self._closed = False
        self._failure: BaseException | None = None
        self.stats = Statistics()

    def put(self, request: Request) -> None:
        """Add a request; wait for room, if there is a limit."""
        with self._came:
            while self._limit is not None and self.waiting >= self._limit:
                self.check_open()
                self._left.wait()
            self.check_open()
            self._waiting.setdefault(request.key, _Group()).append(request)
            self.waiting += 1
            self.stats["requests"] += 1
            self._came.notify()

    def check_open(self) -> None:
        """Raise if no more requests are taken."""
        if self._failure is not None:
            raise RuntimeError(
                f"the predictor has no workers: {self._failure!r} was raised when one "
                "was to start"
            ) from self._failure
        if self._closed:
            raise closed()

    def take(self) -> list[Request] | None:
        """Wait for a batch, and return it; None after the last one."""
        with self._came:
            while True:
                key = self._due()
                if key is not None:
                    return self._popped(key)
                if self._closed:
                    return None
                self._came.wait(self._seconds_left())

    def _due(self) -> Hashable | None:
        """Return the key of the batch whose time has come; the oldest of several."""
        now = time.monotonic()
        due = [
            (found[0].since, i, key)
            for i, (key, found) in enumerate(self._waiting.items())
            if self._closed
            or now - found[0].since >= self._deadline
            or found.rows >= self._max_batch
        ]
        return min(due)[2] if due else None

    def _seconds_left(self) -> float | None:
        if not self._waiting:
            return None
        oldest = min(found[0].since for found in self._waiting.values())
        return max(0.0, oldest + self._deadline - time.monotonic())

    def _popped(self, key: Hashable) -> list[Request]:
        found = self._waiting[key]
        batch = [found.popleft()]
        rows = batch[0].rows
        while self._max_batch and found and rows + found[0].rows <= self._max_batch:
            rows += found[0].rows
            batch.append(found.popleft())
        full = rows >= self._max_batch or bool(found)
        found.rows -= rows
        if not found:
            del self._waiting[key]
        self.waiting -= len(batch)
        self._left.notify_all()
        self.stats.add_batch(rows, full)
        return batch

    def count_error(self) -> None:
        """Count a request that is answered by an error."""
        with self._came:
            self.stats["errors"] += 1

    def close(self) -> None:
        """Take no more requests; those that wait are due at once."""
        with self._came:
            self._closed = True
            self._came.notify_all()
            self._left.notify_all()

    def fail(self, error: BaseException) -> None:
        """Answer all requests, and those to come, by an error of the workers."""
        with self._came:
            self._failure = error
            waiting = [each for found in self._waiting.values() for each in found]
            self._waiting.clear()
            self.waiting = 0
            self.close()
        for each in waiting:
            if each.future.set_running_or_notify_cancel():
                each.future.set_exception(error)


# ---- Answers -------------------------------------------------------------------------


def serve(
    fn: Callable[..., Any], place: Place, requests: Requests, split: bool
) -> None:
    """Answer requests until there are no more; a worker's whole life.

    With `split`, a batch may have several requests, which get their rows of the result.
    """
    try:
        with place.entered() as scoped:
            answers = scoped(_answers_of(fn, place, split))
            while (batch := requests.take()) is not None:
                _answer(answers, batch, requests)
                # An idle worker keeps no arrays alive.
                del batch
    except BaseException as error:
        requests.fail(error)


def _answer(
    answers: Callable[..., Any], batch: list[Request], requests: Requests
) -> None:
    """Give each request of a batch its answer, or its error."""
    running = [each for each in batch if each.future.set_running_or_notify_cancel()]
    batch.clear()
    try:
        if running and not _answered(answers, running[:], requests):
            # One request of several fails: each alone, so that others get answers.
            for i in range(len(running)):
                _answered(answers, running[i : i + 1], requests)
    finally:
        # What a worker left when it failed, so that nobody waits for ever.
        while running:
            if not (left := running.pop().future).done():
                left.set_exception(
                    RuntimeError("the worker that had the request has failed")
                )
            del left


def _answered(
    answers: Callable[..., Any], running: list[Request], requests: Requests
) -> bool:
    """Answer some requests at once; return False if they are several, and fail."""
    found: list[Any] = []
    error: BaseException | None = None
    try:
        found = answers([each.args for each in running], [x.rows for x in running])
    except BaseException as caught:
        error = caught
    try:
        if error is None:
            for request, answer in zip(running, found, strict=True):
                request.future.set_result(answer)
                del request
        elif len(running) > 1:
            return False
        else:
            requests.count_error()
            running[0].future.set_exception(error)
        return True
    finally:
        # The traceback leads to this frame: a future in it would be a cycle.
        del found, error, running


def _answers_of(
    fn: Callable[..., Any], place: Place, split: bool
) -> Callable[[list[tuple[Any, ...]], list[int]], list[Any]]:
    """Return what computes the answers of a batch, in the scope of a worker."""

    def alone(args: list[tuple[Any, ...]], counts: list[int]) -> list[Any]:
        return [fn(*place.moved(args[0]))]

    def together(args: list[tuple[Any, ...]], counts: list[int]) -> list[Any]:
        columns = [
            same[0] if len(same) == 1 else ndx.concat(list(same), axis=0)
            for same in zip(*args, strict=True)
        ]
        return _rows_of(fn(*place.moved(tuple(columns))), counts)

    return together if split else alone


def _rows_of(result: Any, counts: list[int]) -> list[Any]:
    """Return the rows of a batch's result for each request, as copies of their own.

    A view would keep the memory of the whole batch.
    """
    found, start = [], 0
    total = sum(counts)
    with ndx.no_workspace():
        for count in counts:
            part = slice(start, start + count)
            found.append(map_tree(lambda x, at=part: _rows(x, at, total), result))
            start += count
    return found


def _rows(leaf: Any, part: slice, total: int) -> Any:
    if leaf is None:
        return None
    if not isinstance(leaf, ndx.NDArray | np.ndarray):
        raise TypeError(
            f"the function returned {type(leaf).__name__} {leaf!r:.40} for a batch of "
            f"{total} rows, of which each request gets its own: return arrays with one "
            "row for each. mode='sequential' takes any result"
        )
    if leaf.ndim == 0 or leaf.shape[0] != total:
        raise ValueError(
            f"the function returned an array of shape {leaf.shape} for a batch of "
            f"{total} rows: its first axis must have one row for each. "
            "mode='sequential' takes any result"
        )
    if isinstance(leaf, ndx.NDArray):
        return ndx.asarray(leaf[part], copy=True)
    return leaf[part].copy()


class _Inside(threading.local):
    place: Place | None = None


class InPlace:
    """Answers, computed by the threads that ask, a few at a time.

    As many threads keep the arena of their workspace as may compute at the same time;
    others give theirs back after each call. So memory does not grow with the number of
    threads.
    """

    def __init__(self, fn: Callable[..., Any], places: list[Place]):
        self._fn = fn
        self._count = len(places)
        self._changed = threading.Condition(threading.RLock())
        self._free = list(places)
        self._kept: weakref.WeakSet[ndx.Workspace] = weakref.WeakSet()
        self._closed = False
        # How many threads wait for others to be done.
        self.waiting = 0
        # The place of the calling thread, while it computes.
        self._inside = _Inside()
        self.stats = Statistics()

    def call(self, args: tuple[Any, ...]) -> Any:
        """Return the answer to one request."""
        with self._changed:
            self.stats["requests"] += 1
        try:
            # The function may ask again: it has a place, and waits for no other.
            if (outer := self._inside.place) is not None:
                return self._fn(*outer.moved(args))
            with self._place(rows_of(args)) as place:
                return self._computed(place, args)
        except BaseException:
            with self._changed:
                self.stats["errors"] += 1
            raise

    def _computed(self, place: Place, args: tuple[Any, ...]) -> Any:
        with place.used() as workspace:
            if workspace is None:
                return self._fn(*place.moved(args))
            try:
                # Any callable: the decorator takes functions only.
                return workspace(lambda: self._fn(*place.moved(args)))()
            finally:
                self._keep(workspace)

    @contextlib.contextmanager
    def _place(self, rows: int) -> Iterator[Place]:
        """Wait for a place, and have it for the scope: for a batch of so many rows."""
        with self._changed:
            if self._closed:
                raise closed()
            self.waiting += 1
            try:
                while not self._free:
                    self._changed.wait()
                place = self._free.pop()
                self.stats.add_batch(rows, True)
            finally:
                self.waiting -= 1
        self._inside.place = place
        try:
            yield place
        finally:
            self._inside.place = None
            with self._changed:
                self._free.append(place)
                self._changed.notify_all()
            self._end_if_last()

    def _keep(self, workspace: ndx.Workspace) -> None:
        """Keep the workspace of this thread for its next call, if few are kept."""
        with self._changed:
            if workspace in self._kept or len(self._kept) < self._count:
                self._kept.add(workspace)
                return
        workspace.destroy(trim=False)

    def close(self) -> None:
        """Wait for calls that have begun or wait, and give all arenas back.

        A call that closes waits for none: it would wait for itself.
        """
        is_inside = self._inside.place is not None
        with self._changed:
            self._closed = True
            while not (self._is_idle or is_inside):
                self._changed.wait()
        self._end_if_last()

    def check_open(self) -> None:
        """Raise RuntimeError if it is closed; not in a call that has begun before."""
        if self._closed and self._inside.place is None:
            raise closed()

    @property
    def _is_idle(self) -> bool:
        return not self.waiting and len(self._free) == self._count

    def _end_if_last(self) -> None:
        """Give all arenas back if no call will use one."""
        with self._changed:
            if not (self._closed and self._is_idle):
                return
            kept = members(self._kept)
            self._kept.clear()
        for each in kept:
            each.destroy(trim=False)


# ---- The predictor -------------------------------------------------------------------


MODES = ("batched", "sequential", "inplace")
_numbers = itertools.count()


class Predictor:
    """A function that many threads ask at the same time, computed in batches.

    Parameters
    ----------
    fn : callable
        Takes one array or several, whose first axes are the rows of a batch. In mode
        ``"batched"`` its result is arrays (in tuples, lists, dicts, dataclasses) with a
        row for each of these. Several workers call it at the same time. It must
        not write to its arguments.
    workers : int, optional
        How many threads compute; with ``"inplace"``, how many callers at the same time.
        Default: one for each of `devices`, else 1.
    mode : {"batched", "sequential", "inplace"}
        ``"batched"``: requests are gathered. ``"sequential"``: each is computed by
        itself, by a worker, in the order in which they come. ``"inplace"``: each is
        computed by the thread that asks, in a workspace there.
    max_batch : int, default 32
        Rows at which a batch is full. A larger request is a batch by itself.
    deadline : float, default 0.005
        Seconds that a request waits at most for others.
    queue_limit : int, optional
        How many requests may wait for a worker. Who asks then waits for room. Default:
        any number.
    workspace, config, backend, devices, threads
        As for `map`. Requests are copied to the device of the worker that answers them,
        where the answers are.

    Raises
    ------
    TypeError, ValueError
        If an argument is bad.

    See Also
    --------
    map : For items that one thread has.

    Notes
    -----
    Only requests with equal dtypes, and equal shapes but for the first axis, share a
    batch. If the function raises for several requests, it is called for each alone, so
    that only those that fail get an error. A cancelled future is left out.

    `close` answers what waits, ends the threads and destroys the workspaces, as do the
    end of a ``with`` block and the finalizer. ND4J's ``ParallelInference``:
    ``BATCHED``, ``SEQUENTIAL``, ``INPLACE``, ``batchLimit``, ``queueLimit``.

    Examples
    --------
    >>> import ndx
    >>> from concurrent.futures import ThreadPoolExecutor
    >>> weights = ndx.asarray([[1.0, 0.0], [1.0, 1.0]])
    >>> rows = [ndx.full((1, 2), float(i)) for i in range(4)]
    >>> with ndx.parallel.Predictor(lambda x: x @ weights, deadline=0.01) as predict:
    ...     with ThreadPoolExecutor(4) as pool:
    ...         found = list(pool.map(predict, rows))
    >>> found[3]
    NDArray([[6., 3.]])
    """

    def __init__(
        self,
        fn: Callable[..., Any],
        *,
        workers: int | None = None,
        mode: Literal["batched", "sequential", "inplace"] = "batched",
        max_batch: int = 32,
        deadline: float = 0.005,
        queue_limit: int | None = None,
        workspace: str | None = "ndx.parallel.Predictor",
        config: ndx.WorkspaceConfig | None = None,
        backend: Any = None,
        devices: Sequence[Any] | None = None,
        threads: int | None = None,
    ):
        check_function(fn, "fn")
        check_choice("mode", mode, MODES)
        check_count(max_batch, "max_batch")
        for name, count in (("queue_limit", queue_limit), ("threads", threads)):
            if count is not None:
                check_count(count, name)
        if not isinstance(deadline, int | float) or not 0 <= deadline < 1e6:
            raise ValueError(
                f"deadline={deadline!r} is not a time: give seconds, from 0"
            )
        if workspace is not None and mode == "inplace" and isinstance(workspace, str):
            # It is one of the caller's, where another predictor may have the name.
            workspace = f"{workspace} {next(_numbers)}"
        if workers is None and devices is None:
            workers = 1
        places = worker_backends.places(
            workers,
            workspace=workspace,
            config=config,
            backend=backend,
            devices=devices,
        )
        self.mode = mode
        self._is_closed = False
        together = mode == "batched"
        self._requests = requests = Requests(
            max_batch if together else 0,
            float(deadline) if together else 0.0,
            queue_limit,
        )
        self._in_place = InPlace(fn, places) if mode == "inplace" else None
        jobs = [
            lambda place=place: serve(fn, place, requests, together)
            for place in ([] if self._in_place else places)
        ]
        self._team = Team(
            jobs,
            requests.close,
            name="ndx-predictor",
            threads=threads,
            computing=bool(jobs),
        )

    def __call__(self, *args: Any) -> Any:
        """Return the answer for some rows; wait for it.

        Parameters
        ----------
        *args : array
            As many as the function takes, each with the same number of rows. In mode
            ``"batched"`` they must have a first axis.

        Returns
        -------
        any
            What the function returns, its rows for this request alone: arrays of its
            own, in no workspace.

        Raises
        ------
        Exception
            What the function raises for this request.
        TypeError, ValueError
            In mode ``"batched"``, if the function's result has no row for each request.
        RuntimeError
            If the predictor is closed, or was made in another process.
        """
        if self._in_place is not None:
            self._check_process()
            return self._in_place.call(args)
        future = self.submit(*args)
        try:
            return future.result()
        except KeyboardInterrupt:
            future.cancel()
            raise
        finally:
            # An error's traceback has this frame.
            del future, args

    def submit(self, *args: Any) -> Future[Any]:
        """Ask without waiting; return a future with the answer.

        The arrays must stay as they are until the answer is there. With ``"inplace"``
        the answer is there at once.

        Parameters
        ----------
        *args : array
            As for a call.

        Returns
        -------
        concurrent.futures.Future
            Its ``result()`` is what a call returns.

        Examples
        --------
        >>> import ndx
        >>> with ndx.parallel.Predictor(ndx.abs) as predict:
        ...     future = predict.submit(ndx.asarray([-1.0, 2.0]))
        ...     future.result(timeout=10)
        NDArray([1., 2.])
        """
        self._check_process()
        if self._in_place is not None:
            self._in_place.check_open()
            future: Future[Any] = Future()
            try:
                future.set_result(self._in_place.call(args))
            except Exception as error:
                future.set_exception(error)
            return future
        if self._team.is_member:
            raise RuntimeError(
                "the function of a predictor asks that predictor: no worker would be "
                "left to answer. Call the function itself"
            )
        if self.mode == "batched":
            request = _gathered(args)
        else:
            request = Request(args, rows_of(args), ())
        self._requests.put(request)
        return request.future

    def _check_process(self) -> None:
        if not self._team.is_here:
            raise RuntimeError(
                "the predictor was made in another process: its threads did not follow "
                "into the forked child. Make one there"
            )

    def stats(self) -> dict[str, float]:
        """Return counts since the start.

        Returns
        -------
        dict
            ``requests`` that came; ``pending``, of these, that wait; ``errors``, of
            these, that were answered by an error; ``batches``, and the ``rows`` in
            them; ``full_batches`` that did not wait for the deadline;
            ``largest_batch`` and ``mean_batch``, in rows.
        """
        source = self._requests if self._in_place is None else self._in_place
        found: dict[str, float] = dict(source.stats)
        found["pending"] = source.waiting
        found["mean_batch"] = found["rows"] / max(1, found["batches"])
        return found

    def close(self) -> None:
        """Answer what waits, end the threads, and destroy the workspaces.

        Later requests raise RuntimeError.
        """
        self._is_closed = True
        self._team.close()
        if self._in_place is not None and self._team.is_here:
            self._in_place.close()

    def __del__(self) -> None:
        # No call is under way: it would refer to this. Construction may have failed.
        if hasattr(self, "_team"):
            self.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __repr__(self) -> str:
        state = "closed" if self._is_closed else "open"
        return f"<ndx.parallel.Predictor: {self.mode}, {state}>"


def _gathered(args: tuple[Any, ...]) -> Request:
    """Return a request that shares a batch with others of its kind."""
    if not args:
        raise TypeError("a predictor needs at least one array")
    arrays = tuple(map(ndx.asarray, args))
    shapes = [each.shape for each in arrays]
    if not all(shapes):
        raise ValueError(
            f"the arrays have the shapes {shapes}: each needs a first axis, of rows. "
            "A single row is x[None, :]; mode='sequential' takes any arrays"
        )
    if len({shape[0] for shape in shapes}) > 1:
        raise ValueError(
            f"the arrays have the shapes {shapes}: their first axes, of rows, must be "
            "equal"
        )
    key = tuple((each.shape[1:], each.dtype, each.device) for each in arrays)
    return Request(arrays, rows_of(arrays), key)

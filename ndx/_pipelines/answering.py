"""How requests are answered: in batches by workers, or by the thread that asks."""

from __future__ import annotations

import contextlib
import os
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

import ndx
from ndx._lib.trees import map_tree
from ndx._lib.weak import members
from ndx._pipelines.places import Place
from ndx._pipelines.requests import Request, Requests, Statistics, closed, rows_of

__all__ = ["InPlace", "serve"]


def serve(
    fn: Callable[..., Any], place: Place, requests: Requests, split: bool
) -> None:
    """Answer requests until there are no more; a worker's whole life.

    Parameters
    ----------
    fn : callable
        Computes the answers.
    place : Place
        Where.
    requests : Requests
        Where batches come from.
    split : bool
        Whether a batch may have several requests, which get their rows of the result.
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
        _fail_unanswered(running)
        running.clear()


def _fail_unanswered(running: list[Request]) -> None:
    """Answer what a worker left when it failed, so that nobody waits for ever."""
    for each in running:
        if not each.future.done():
            each.future.set_exception(
                RuntimeError("the worker that had the request has failed")
            )


def _answered(
    answers: Callable[..., Any], running: list[Request], requests: Requests
) -> bool:
    """Answer some requests at once; return False if they are several, and fail."""
    found, error = _computed(
        answers, [each.args for each in running], [each.rows for each in running]
    )
    try:
        if error is None:
            for request, answer in zip(running, found, strict=True):
                request.future.set_result(answer)
                del request
        elif len(running) > 1:
            return False
        else:
            requests.stats.count_error()
            running[0].future.set_exception(error)
        return True
    finally:
        # The traceback leads to this frame: a future in it would be a cycle.
        del found, error, running


def _computed(
    answers: Callable[..., Any], args: list[tuple[Any, ...]], counts: list[int]
) -> tuple[list[Any], BaseException | None]:
    """Return the answers, or an error."""
    try:
        return answers(args, counts), None
    except BaseException as error:
        return [], error


def _answers_of(
    fn: Callable[..., Any], place: Place, split: bool
) -> Callable[[list[tuple[Any, ...]], list[int]], list[Any]]:
    """Return what computes the answers of a batch, in the scope of a worker."""

    def alone(args: list[tuple[Any, ...]], counts: list[int]) -> list[Any]:
        return [fn(*place.moved(args[0]))]

    def together(args: list[tuple[Any, ...]], counts: list[int]) -> list[Any]:
        columns = tuple(map(_joined, zip(*args, strict=True)))
        return _rows_of(fn(*place.moved(columns)), counts)

    return together if split else alone


def _joined(arrays: Sequence[Any]) -> Any:
    return arrays[0] if len(arrays) == 1 else ndx.concat(list(arrays), axis=0)


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


class InPlace:
    """Answers, computed by the threads that ask, a few at a time.

    As many threads keep the arena of their workspace as may compute at the same time;
    others give theirs back after each call. So memory does not grow with the number of
    threads.

    Attributes
    ----------
    waiting : int
        How many threads wait for others to be done.
    """

    def __init__(self, fn: Callable[..., Any], places: list[Place]):
        self._process = os.getpid()
        self._fn = fn
        self._count = len(places)
        self._changed = threading.Condition(threading.RLock())
        self._free = list(places)
        self._kept: weakref.WeakSet[ndx.Workspace] = weakref.WeakSet()
        self._closed = False
        self.waiting = 0
        self._inside = threading.local()
        self.stats = Statistics()

    def call(self, args: tuple[Any, ...]) -> Any:
        """Return the answer to one request."""
        self.stats.count_request()
        try:
            # The function may ask again: it has a place, and waits for no other.
            outer = getattr(self._inside, "place", None)
            if outer is not None:
                return self._fn(*outer.moved(args))
            with self._place() as place:
                self.stats.count_batch(rows_of(args), True)
                return self._computed(place, args)
        except BaseException:
            self.stats.count_error()
            raise

    def _computed(self, place: Place, args: tuple[Any, ...]) -> Any:
        with contextlib.ExitStack() as stack:
            if place.backend is not None:
                stack.enter_context(ndx.use(place.backend))
            if place.workspace is None:
                return self._fn(*place.moved(args))
            workspace = ndx.workspace(place.workspace, config=place.config)
            stack.callback(self._keep, workspace)
            # Any callable: the decorator takes functions only.
            return workspace(lambda: self._fn(*place.moved(args)))()

    @contextlib.contextmanager
    def _place(self) -> Iterator[Place]:
        """Wait for a place, and have it for the scope."""
        with self._changed:
            if self._closed:
                raise closed()
            self.waiting += 1
            try:
                while not self._free:
                    self._changed.wait()
                place = self._free.pop()
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
        is_inside = getattr(self._inside, "place", None) is not None
        with self._changed:
            self._closed = True
            while self._is_used() and not is_inside:
                self._changed.wait()
        self._end_if_last()

    def __del__(self) -> None:
        # No call is under way: it would refer to this. A forked child may have lost
        # the thread that has the lock, and construction may have been interrupted.
        if hasattr(self, "stats") and os.getpid() == self._process:
            self._closed = True
            self._end_if_last()

    def check_open(self) -> None:
        """Raise RuntimeError if it is closed; not in a call that has begun before."""
        if self._closed and getattr(self._inside, "place", None) is None:
            raise closed()

    def _is_used(self) -> bool:
        return self.waiting > 0 or len(self._free) < self._count

    def _end_if_last(self) -> None:
        """Give all arenas back if no call will use one."""
        with self._changed:
            if not self._closed or self._is_used():
                return
            kept = members(self._kept)
            self._kept.clear()
        for each in kept:
            each.destroy(trim=False)

"""Worker threads: their lives, their tasks, their share of the cores, and their errors.

While N workers run, ndx's pool and BLAS have fewer threads each. One operation at a
time has ndx's pool; the others are computed by their own thread. So N - 1 workers and
one operation with `budget - N + 1` threads fill the cores. BLAS libraries do not share
like this: each call may have `budget // N`.
"""

from __future__ import annotations

import atexit
import contextlib
import contextvars
import math
import os
import queue
import sys
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import ndx
from ndx._lib.background import BackgroundThread
from ndx._lib.locks import module_lock
from ndx._lib.weak import members

__all__ = [
    "Crew",
    "Opened",
    "Outcome",
    "Team",
    "close_at_exit",
    "share_cores",
    "with_index",
]

# ---- Errors, told at the place where they belong -------------------------------------


def with_index(error: BaseException, what: str, index: int) -> BaseException:
    """Return an error that says to which item or batch it belongs.

    Its type stays. The number is in a note, and in the attribute ``index_of_item``.
    """
    # Errors of C extensions may take no attributes.
    with contextlib.suppress(Exception):
        if getattr(error, "index_of_item", None) != index:
            error.add_note(f"raised for {what} {index} (counted from 0)")
        error.index_of_item = index  # type: ignore[attr-defined]
    return error


def without_stop_iteration(error: BaseException) -> BaseException:
    """Return a RuntimeError for a StopIteration, as generators do (PEP 479).

    An iterator that raised the latter would end as if there were no more items.
    """
    if not isinstance(error, StopIteration):
        return error
    made = RuntimeError("the function raised StopIteration")
    made.__cause__ = error
    return made


# ---- Shares of the cores -------------------------------------------------------------


_lock = module_lock()
_shares: dict[object, tuple[int, int | None]] = {}


class _Limited:
    """One number of threads that is lowered while there are shares."""

    def __init__(self, get: Callable[[], int], put: Callable[[int], object]):
        self._get, self._put = get, put
        self.before = self._set = get()

    def limit(self, count: int) -> None:
        wanted = max(1, min(count, self.before))
        # A number that the user has set meanwhile is left alone.
        if self._get() == self._set != wanted:
            self._put(wanted)
            self._set = wanted


_own: list[_Limited] = []
_blas: list[_Limited] = []
_found: tuple[int, list[Any]] = (0, [])


def share_cores(token: object, workers: int, threads: int | None) -> None:
    """Take a share of the cores for so many workers, until `release_cores(token)`.

    An operation of theirs may have so many `threads`; None: what is left for each.
    """
    with _lock:
        if not _shares:
            _own[:], _blas[:] = [_Limited(ndx.get_num_threads, ndx.set_num_threads)], []
        if not _blas and (_shares or workers > 1 or threads is not None):
            _blas[:] = [
                _Limited(each.get_num_threads, each.set_num_threads)
                for each in _blas_libraries()
            ]
        _shares[token] = (workers, threads)
        _apply()


def release_cores(token: object) -> None:
    """Give a share back; with the last one, the numbers are as they were."""
    with _lock:
        if _shares.pop(token, None) is not None:
            _apply()


def _forget() -> None:
    """Forget, in a forked child, the workers of the parent."""
    if _shares:
        _shares.clear()
        _apply()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)


def _apply() -> None:
    budget = _own[0].before
    workers = sum(count for count, _ in _shares.values())
    asked = min(
        (each for _, each in _shares.values() if each is not None), default=None
    )
    alone = workers <= 1 and asked is None
    for limited in _own:
        limited.limit(budget if alone else asked or budget - workers + 1)
    for limited in _blas:
        limited.limit(limited.before if alone else asked or budget // workers)


def _blas_libraries() -> list[Any]:
    """Return threadpoolctl's controllers of BLAS; none if it is not installed.

    The search for libraries takes milliseconds: it is done again when modules were
    imported since, which may have loaded others.
    """
    global _found
    try:
        import threadpoolctl
    except ImportError:
        return []
    if _found[0] != len(sys.modules):
        controller = threadpoolctl.ThreadpoolController().select(user_api="blas")
        _found = (len(sys.modules), controller.lib_controllers)
    return _found[1]


# ---- Threads -------------------------------------------------------------------------


# Those that run: ended when the interpreter exits.
_teams: weakref.WeakSet[Team] = weakref.WeakSet()
# What is closed after them.
_others: weakref.WeakSet[Any] = weakref.WeakSet()


class Team:
    """Threads that do one job each, until they are told to stop.

    Each runs in a copy of a context: in its backend, not in its workspaces. The
    threads are daemons, and are ended by `close`, by the finalizer or, at the latest,
    when the interpreter exits. So none keeps a process from its end, and none is killed
    while it computes. A team has no locks: a finalizer may close it anywhere.

    Parameters
    ----------
    jobs : sequence of callables
        A job for each thread. It raises nothing, and doesn't refer to the team.
    stop : callable
        Tells the jobs to return; it is called once or more, from any thread.
    name : str
        Of the threads, before a number.
    threads : int or None
        How many threads an operation of the jobs may have; None: cores are shared.
    computing : bool
        Whether the jobs compute; others take no share of the cores.
    context : contextvars.Context, optional
        Default: that in which the team is made.
    grace : float, optional
        Seconds that `close` waits for jobs that may not return in time; the finalizer
        does not wait for those.
    """

    def __init__(
        self,
        jobs: Sequence[Callable[[], None]],
        stop: Callable[[], None],
        *,
        name: str,
        threads: int | None = None,
        computing: bool = True,
        context: contextvars.Context | None = None,
        grace: float | None = None,
    ):
        self._process = os.getpid()
        self._stop, self._grace = stop, grace
        self._threads: list[threading.Thread] = []
        # Had before it is used: Ctrl-C may come at any time.
        self._share = object()
        _teams.add(self)
        try:
            if computing:
                share_cores(self._share, len(jobs), threads)
            context = contextvars.copy_context() if context is None else context
            for i, job in enumerate(jobs):
                thread = BackgroundThread(
                    target=context.copy().run, args=(job,), name=f"{name}-{i}"
                )
                self._threads.append(thread)
                thread.start()
        except BaseException:
            self.close()
            raise

    @property
    def is_here(self) -> bool:
        """Whether this process has the threads: a forked child has not."""
        # The interpreter empties this module at its end.
        return os is not None and os.getpid() == self._process

    @property
    def is_member(self) -> bool:
        """Whether the calling thread is one of the team."""
        return threading.current_thread() in self._threads

    @property
    def is_alive(self) -> bool:
        """Whether a thread runs."""
        return any(thread.is_alive() for thread in self._threads)

    def stop(self) -> None:
        """Tell the jobs to return, without waiting for them."""
        if self.is_here:
            self._stop()

    def close(self, since: float | None = None) -> bool:
        """Stop the jobs, and wait until the threads have ended; return if they have.

        A time of grace begins `since` then; default: now.
        """
        if not self.is_here:
            return True
        self._stop()
        # A finalizer may run in one of them, which may have a lock that others need.
        if not self.is_member:
            end = None
            if self._grace is not None:
                end = self._grace + (time.monotonic() if since is None else since)
            for thread in self._threads:
                # The last one may not have started.
                if thread.ident is not None:
                    thread.join(end and max(0.0, end - time.monotonic()))
            if self.is_alive:
                return False
        release_cores(self._share)
        return True

    def __del__(self) -> None:
        if hasattr(self, "_threads"):  # else construction has failed
            (self.stop if self._grace is not None else self.close)()


def close_at_exit(made: Any) -> None:
    """Have its method `close` called when the interpreter exits, after the teams."""
    _others.add(made)


@atexit.register
def _close_all() -> None:
    teams, since = members(_teams), time.monotonic()
    # All together: those that may not return in time share their time of grace.
    for team in teams:
        team.stop()
    for team in teams:
        team.close(since)
    for other in members(_others):
        other.close()


class Outcome(NamedTuple):
    """What came of a task: a value, or an error.

    Without a key it is an error of a worker that could not start or end.
    """

    key: int | None
    value: Any = None
    error: BaseException | None = None

    def result(self, what: str = "item") -> Any:
        """Return the value, or raise the error, which says for which item it is."""
        if self.error is None:
            return self.value
        error, key = self.error, self.key
        if key is not None:
            error = with_index(without_stop_iteration(error), what, key)
        try:
            raise error
        finally:
            # The traceback has this frame, and would be a cycle.
            del self, error


# Seconds that an outcome of a `seldom` crew waits for others, at most one task longer.
LATE = 0.05

Opened = Callable[[], "contextlib.AbstractContextManager[Callable[..., Any]]"]


class _Post:
    """Where tasks and outcomes lie; all that the threads share with their crew.

    The queues take no lock of Python's: a finalizer may put into them anywhere.
    """

    def __init__(self, queues: int):
        self.tasks: list[queue.SimpleQueue[Any]] = [
            queue.SimpleQueue() for _ in range(queues)
        ]
        self.done: queue.SimpleQueue[list[Outcome]] = queue.SimpleQueue()
        # Tasks with larger keys are left: one with this key has failed.
        self.bound = math.inf


class Crew:
    """Worker threads that call functions on the arguments that they are given.

    Tasks have numbers, from 0. After an error, tasks with larger numbers that have not
    begun are left.

    Parameters
    ----------
    opened : sequence of callables
        One for each worker. In its thread it returns a context manager, whose value
        is called for each task, and which ends with the worker.
    own_tasks : bool
        Whether each worker has a queue of its own; else they take from one.
    seldom : bool
        Whether outcomes may come several at once, a little later: each time wakes the
        thread that waits, which takes as long as some dozen small operations.
    stop : callable, optional
        Also called when the crew stops before all is done.
    **options
        As for `Team`.
    """

    def __init__(
        self,
        opened: Sequence[Opened],
        *,
        own_tasks: bool = False,
        seldom: bool = False,
        stop: Callable[[], None] | None = None,
        **options: Any,
    ):
        count = len(opened)
        post = self._post = _Post(count if own_tasks else 1)
        self._came: deque[Outcome] = deque()
        late = LATE if seldom else 0.0

        def stop_all() -> None:
            post.bound = -1
            for i in range(count):
                post.tasks[i % len(post.tasks)].put(None)
            if stop is not None:
                stop()

        def job_of(i: int) -> Callable[[], None]:
            tasks, opener = post.tasks[i % len(post.tasks)], opened[i]
            return lambda: _work(opener, tasks, post, late)

        self.team = Team([job_of(i) for i in range(count)], stop_all, **options)

    def put(self, key: int, *args: Any, worker: int = 0) -> None:
        """Give a task to a worker that has its own, or to whoever takes it first."""
        self._post.tasks[worker].put((key, args))

    def take(self) -> Outcome:
        """Wait for a task that is done, and return its outcome."""
        if not self._came:
            self._came.extend(self._post.done.get())
        return self._came.popleft()

    def close(self) -> list[Outcome]:
        """Wait for tasks that have begun, leave the others; end the threads.

        Returns the outcomes that nobody has taken.
        """
        self.team.close()
        found = list(self._came)
        self._came.clear()
        if self.team.is_here:
            with contextlib.suppress(queue.Empty):
                while True:
                    found += self._post.done.get_nowait()
        return found

    def __del__(self) -> None:
        # An error that nobody took would keep the queue that it is in.
        if hasattr(self, "team"):
            self.close()


def _work(
    opened: Opened, tasks: queue.SimpleQueue[Any], post: _Post, late: float
) -> None:
    """Do tasks until there is None, or the crew stops."""
    kept: list[Outcome] = []
    posted = 0.0
    try:
        with opened() as call:
            while (task := tasks.get()) is not None:
                if task[0] > post.bound:
                    continue
                key, args = task
                outcome = _outcome(call, key, args)
                kept.append(outcome)
                # An idle worker keeps no arrays alive.
                del task, args
                if outcome.error is not None:
                    post.bound = min(post.bound, key)
                elif late and not tasks.empty() and time.monotonic() - posted < late:
                    del outcome
                    continue
                del outcome
                post.done.put(kept)
                kept, posted = [], time.monotonic()
    except BaseException as error:
        kept.append(Outcome(None, error=error))
    if kept:
        post.done.put(kept)


def _outcome(call: Callable[..., Any], key: int, args: tuple[Any, ...]) -> Outcome:
    try:
        return Outcome(key, call(*args))
    except BaseException as error:
        return Outcome(key, error=error)

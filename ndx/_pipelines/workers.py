"""Worker threads: their lives, their tasks, and what they have done."""

from __future__ import annotations

import atexit
import contextlib
import contextvars
import math
import os
import queue
import threading
import weakref
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ndx._lib.background import BackgroundThread
from ndx._lib.weak import members
from ndx._pipelines import cores
from ndx._pipelines.errors import with_index, without_stop_iteration

__all__ = ["Crew", "Outcome", "Team", "close_at_exit"]

# Those that run: ended when the interpreter exits.
_teams: weakref.WeakSet[Team] = weakref.WeakSet()
# What is closed after them.
_others: weakref.WeakSet[Any] = weakref.WeakSet()


class Team:
    """Threads that do one job each, until they are told to stop.

    Each runs in a copy of the context in which the team is made: in its backend, not
    in its workspaces. The threads are daemons, and are ended by `close`, by the
    finalizer or, at the latest, when the interpreter exits. So none keeps a process
    from its end, and none is killed while it computes. A team has no locks: a
    finalizer may close it anywhere.

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
    """

    def __init__(
        self,
        jobs: Sequence[Callable[[], None]],
        stop: Callable[[], None],
        *,
        name: str,
        threads: int | None = None,
        computing: bool = True,
    ):
        self._process = os.getpid()
        self._stop = stop
        self._threads: list[threading.Thread] = []
        # Had before it is used: Ctrl-C may come at any time.
        self._share = object()
        _teams.add(self)
        try:
            if computing:
                cores.share(self._share, len(jobs), threads)
            for i, job in enumerate(jobs):
                context = contextvars.copy_context()
                thread = BackgroundThread(
                    target=context.run, args=(job,), name=f"{name}-{i}"
                )
                self._threads.append(thread)
                thread.start()
        except BaseException:
            self.close()
            raise

    @property
    def is_here(self) -> bool:
        """Whether this process has the threads: a forked child has not."""
        return os.getpid() == self._process

    @property
    def is_member(self) -> bool:
        """Whether the calling thread is one of the team."""
        return threading.current_thread() in self._threads

    def close(self) -> None:
        """Stop the jobs, and wait until the threads have ended."""
        if not self.is_here:
            return
        self._stop()
        # A finalizer may run in one of them, which may have a lock that others need.
        if not self.is_member:
            for thread in self._threads:
                # The last one may not have started.
                if thread.ident is not None:
                    thread.join()
        cores.release(self._share)

    def __del__(self) -> None:
        # Construction may have failed.
        if hasattr(self, "_threads"):
            self.close()


def close_at_exit(made: Any) -> None:
    """Have its method `close` called when the interpreter exits, after the teams."""
    _others.add(made)


@atexit.register
def _close_all() -> None:
    for team in members(_teams):
        team.close()
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


Opened = Callable[[], "contextlib.AbstractContextManager[Callable[..., Any]]"]


class _Post:
    """Where tasks and outcomes lie; all that the threads share with their crew.

    The queues take no lock of Python's: a finalizer may put into them anywhere.
    """

    def __init__(self, queues: int):
        self.tasks: list[queue.SimpleQueue[Any]] = [
            queue.SimpleQueue() for _ in range(queues)
        ]
        self.done: queue.SimpleQueue[Outcome] = queue.SimpleQueue()
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
    stop : callable, optional
        Also called when the crew stops before all is done.
    name, threads
        As for `Team`.
    """

    def __init__(
        self,
        opened: Sequence[Opened],
        *,
        own_tasks: bool = False,
        stop: Callable[[], None] | None = None,
        name: str,
        threads: int | None = None,
        computing: bool = True,
    ):
        count = len(opened)
        post = self._post = _Post(count if own_tasks else 1)

        def stop_all() -> None:
            post.bound = -1
            for i in range(count):
                post.tasks[i % len(post.tasks)].put(None)
            if stop is not None:
                stop()

        def job_of(i: int) -> Callable[[], None]:
            tasks, opener = post.tasks[i % len(post.tasks)], opened[i]
            return lambda: _work(opener, tasks, post)

        self._team = Team(
            [job_of(i) for i in range(count)],
            stop_all,
            name=name,
            threads=threads,
            computing=computing,
        )

    @property
    def is_here(self) -> bool:
        """Whether this process has the workers: a forked child has not."""
        return self._team.is_here

    @property
    def is_member(self) -> bool:
        """Whether the calling thread is one of the workers."""
        return self._team.is_member

    def put(self, key: int, *args: Any, worker: int = 0) -> None:
        """Give a task to a worker that has its own, or to whoever takes it first."""
        self._post.tasks[worker].put((key, args))

    def take(self) -> Outcome:
        """Wait for a task that is done, and return its outcome."""
        return self._post.done.get()

    def close(self) -> list[Outcome]:
        """Wait for tasks that have begun, leave the others; end the threads.

        Returns
        -------
        list of Outcome
            Those that nobody has taken.
        """
        self._team.close()
        found: list[Outcome] = []
        if self.is_here:
            with contextlib.suppress(queue.Empty):
                while True:
                    found.append(self._post.done.get_nowait())
        return found

    def __del__(self) -> None:
        # An error that nobody took would keep the queue that it is in.
        if hasattr(self, "_team"):
            self.close()


def _work(opened: Opened, tasks: queue.SimpleQueue[Any], post: _Post) -> None:
    """Do tasks until there is None, or the crew stops."""
    try:
        with opened() as call:
            while (task := tasks.get()) is not None:
                if task[0] > post.bound:
                    continue
                key, args = task
                outcome = _outcome(call, key, args)
                # An idle worker keeps no arrays alive.
                del task, args
                if outcome.error is not None:
                    post.bound = min(post.bound, key)
                post.done.put(outcome)
                del outcome
    except BaseException as error:
        post.done.put(Outcome(None, error=error))


def _outcome(call: Callable[..., Any], key: int, args: tuple[Any, ...]) -> Outcome:
    try:
        return Outcome(key, call(*args))
    except BaseException as error:
        return Outcome(key, error=error)

"""Worker processes: each is driven by a thread, which waits for its answers."""

from __future__ import annotations

import contextlib
import contextvars
import functools
import multiprocessing
import os
import pickle
import signal
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import connection, util
from typing import Any, NamedTuple

import ndx
from ndx._lib.background import signals_of_program
from ndx._pipelines.sharing import Exchange, close_own, forget_shared, remove_folders_of
from ndx._pipelines.worker_backends import Place
from ndx._pipelines.workers import close_at_exit, share_cores

__all__ = ["Processes"]

# Seconds that a process has to end by itself, or by a signal.
GRACE = 5.0
# Seconds between looks at a process. Children of its own may keep its pipes open.
_LOOK = 0.5


class Processes:
    """Processes that compute a function, each driven by one thread of this one.

    If they are not forked, the function is pickled, and backends are made by name. An
    operation there may have so many `threads`; None: cores are shared.
    """

    def __init__(
        self,
        fn: Callable[..., Any],
        places: list[Place],
        start_method: str | None,
        threads: int | None,
    ):
        context = multiprocessing.get_context(start_method)
        self._process = os.getpid()
        self._exchange = Exchange()
        # What it shares is opened by name, when a process has started.
        self._fn = fn
        self._named: list[ndx.NDArray] = []
        self._children: list[_Child] = []
        close_at_exit(self)
        try:
            # A forked child has the function and its arrays already.
            forked = context.get_start_method() == "fork"
            target: Any = fn if forked else self._pickled(fn)
            threads = threads or max(1, ndx.get_num_threads() // len(places))
            for place in places:
                there = place.elsewhere(forked=forked)
                child = _Child(context, self._exchange, target, there, threads)
                # Had before it starts: Ctrl-C may come at any time.
                self._children.append(child)
                child.start()
        except BaseException:
            self.close()
            raise

    def _pickled(self, fn: Callable[..., Any]) -> bytes:
        try:
            return self._exchange.dumps(fn, for_all=True, named=self._named)
        except (pickle.PicklingError, AttributeError, TypeError) as error:
            raise TypeError(
                f"{fn!r} can't be sent to other processes ({error}): give a function "
                "that is defined in a module, or start_method='fork'"
            ) from error

    @property
    def openers(self) -> list[Callable[[], Any]]:
        """What opens each process for its thread, as `workers.Crew` takes it."""
        return [functools.partial(self._opened, child) for child in self._children]

    @contextlib.contextmanager
    def _opened(self, child: _Child) -> Iterator[Callable[..., Any]]:
        try:
            yield child.call
        finally:
            child.end()
            # The last thread removes what nobody took.
            if all(each.is_ended for each in self._children):
                self._exchange.close()

    def stop(self) -> None:
        """End the processes that compute, at once; the others when they are told."""
        for child in self._children:
            child.stop()

    def close(self) -> None:
        """End the processes that have no thread (any more)."""
        # The interpreter empties this module at its end.
        if os is None or os.getpid() != self._process:
            return
        for child in self._children:
            child.end()
        self._exchange.close()

    def __del__(self) -> None:
        # Construction may have failed.
        if hasattr(self, "_children"):
            self.close()


class _Child:
    """One process, and this end of the pipe to it."""

    def __init__(
        self, context: Any, exchange: Exchange, target: Any, place: Place, threads: int
    ):
        self._exchange = exchange
        self._busy = False
        self._stopped, self._stopped_at = False, 0.0
        self.is_ended = False
        self._ending = threading.Lock()
        self._here, self._there = context.Pipe()
        util.register_after_fork(self, _Child._forget)
        task = _Task(target, place, threads, ndx.memory.limits(), exchange.folders)
        self._process = context.Process(
            target=_serve, args=(self._there, task), name="ndx-map"
        )

    def _forget(self) -> None:
        """In a forked child, close the parent's end of the pipe.

        If only children have it, one that sends a large result waits for ever.
        """
        self._here.close()

    def start(self) -> None:
        """Start the process."""
        try:
            # A worker of another map, say, may be the one that starts it.
            with signals_of_program():
                self._process.start()
        finally:
            # The pipe reaches EOF when the process exits.
            self._there.close()

    def call(self, *args: Any) -> Any:
        """Return what the function returns there, or raise what it raises."""
        named: list[ndx.NDArray] = []
        message = self._exchange.dumps(args, named=named)
        self._busy = True
        try:
            if self._stopped:
                # The process has no item: `end` tells it to end.
                msg = f"a worker process (pid {self._process.pid}) is told to end"
                raise BrokenProcessPool(msg)
            self._here.send_bytes(message)
            while not connection.wait([self._here, self._process.sentinel], _LOOK):
                self._check_alive()
            if not self._here.poll():
                raise EOFError
            answer = self._here.recv_bytes()
        except (EOFError, OSError):
            raise self._ended() from None
        finally:
            self._busy = False
        failed, value = pickle.loads(answer)
        if not failed:
            return value
        try:
            raise value
        finally:
            # The traceback has this frame.
            del value

    def _check_alive(self) -> None:
        """Kill the process if it handles the signal that was to end it.

        Raises EOFError if it has ended.
        """
        if self._stopped and time.monotonic() - self._stopped_at >= GRACE:
            self._process.kill()
            self._join(GRACE)
        if not self._process.is_alive():
            raise EOFError

    def _join(self, seconds: float) -> None:
        """Wait until the process has ended, but no longer than some seconds."""
        end = time.monotonic() + seconds
        while self._process.is_alive() and time.monotonic() < end:
            self._process.join(min(seconds, _LOOK))

    def _ended(self) -> BaseException:
        self._join(GRACE)
        code = self._process.exitcode
        if code is not None and code < 0:
            name = "unnamed"  # those for real time have no names
            with contextlib.suppress(ValueError):
                name = signal.Signals(-code).name
            how = f"was killed by signal {-code} ({name})"
        else:
            how = f"ended with exit code {code}"
        hint = ""
        if code == -signal.SIGKILL and not self._stopped:
            hint = (
                ". That often means that the system had no more memory: use fewer "
                "processes, or smaller items"
            )
        return BrokenProcessPool(
            f"a worker process (pid {self._process.pid}) {how}{hint}"
        )

    def stop(self) -> None:
        """End the process now if it computes; else its thread will."""
        if not self._stopped:
            self._stopped_at = time.monotonic()
            self._stopped = True
        # Its thread may have ended it meanwhile.
        with contextlib.suppress(ValueError):
            if self._busy:
                self._process.terminate()

    def end(self) -> None:
        """Tell the process to end, and wait for it; also if it has not started."""
        # If Ctrl-C comes while threads start, one of them may end its process, too.
        with self._ending:
            if self.is_ended:
                return
            # Children that were forked later have this end of the pipe, too: to close
            # it says nothing.
            with contextlib.suppress(OSError):
                self._here.send_bytes(b"")
            self._here.close()
            if self._process.pid is not None:
                for end in (self._process.terminate, self._process.kill):
                    self._join(GRACE)
                    if not self._process.is_alive():
                        break
                    end()
                self._process.join()
                if self._process.exitcode:
                    remove_folders_of(self._process.pid)
            self.is_ended = True
            self._process.close()


# ----------------------------------------------------------------------- the process


class _Task(NamedTuple):
    """What a process is to do, and how."""

    # The function, or its pickle.
    target: Any
    place: Place
    threads: int
    limits: dict[str, int]
    folders: list[str]


def _serve(pipe: Any, task: _Task) -> None:
    """Compute what comes from a pipe, until it ends."""
    # Ctrl-C is for the process that started this one, which ends it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    # A process that the function forks would keep the pipe open after this one's end.
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=pipe.close)
    exchange = Exchange(task.folders)
    share_cores(object(), 1, task.threads)
    try:
        # Scopes of the parent are no scopes of a forked child.
        contextvars.Context().run(_answer_all, pipe, task, exchange)
    finally:
        # Finalizers do not run at the end of a forked process.
        close_own()
        parent = multiprocessing.parent_process()
        if parent is not None and not parent.is_alive():
            exchange.remove()


def _answer_all(pipe: Any, task: _Task, exchange: Exchange) -> None:
    failure = None
    found = multiprocessing.parent_process()
    parent = [] if found is None else [found.sentinel]
    with contextlib.ExitStack() as stack:
        try:
            forget_shared()
            # A new interpreter has those of the environment.
            ndx.memory.set_limits(task.limits)
            fn = task.target
            if isinstance(fn, bytes):
                fn = exchange.loads(fn, keep=True)
            scoped = stack.enter_context(task.place.entered())
            # In the scope: arrays go from the arena to the files of the exchange.
            answer = scoped(
                lambda args: exchange.dumps((False, fn(*task.place.moved(args))))
            )
        except BaseException as error:
            failure = error
        while True:
            connection.wait([pipe, *parent])
            if not pipe.poll():
                return
            try:
                message = pipe.recv_bytes()
            except (EOFError, ConnectionResetError):
                return
            if not message:
                return
            try:
                if failure is not None:
                    raise failure
                said = answer(exchange.loads(message))
            except BaseException as error:
                said = _error(error)
            del message
            # Its parent may have ended.
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                pipe.send_bytes(said)
            del said


def _error(error: BaseException) -> bytes:
    """Return the pickle of an error, with its traceback as a note."""
    text = "".join(traceback.format_exception(error)).rstrip()
    note = f"in worker process {os.getpid()}:\n{text}"
    try:
        error.add_note(note)
        answer = pickle.dumps((True, error.with_traceback(None)))
        pickle.loads(answer)
    except Exception:
        said = type(error).__name__
        with contextlib.suppress(Exception):
            said = f"{said}: {error}"
        made = RuntimeError(said)
        made.add_note(note)
        answer = pickle.dumps((True, made))
    return answer

"""Who enters and leaves in tests of scopes: bodies, in threads and tasks, by steps.

A body is a generator. It enters and leaves in its own frame, or by a stack for each
scope, and goes on whenever it is told to, in any context and thread; so a test decides
how all of them interleave.
"""

import asyncio
import contextlib
import contextvars
import gc
import queue
import threading

import ndx
from ndx.testing.backends import ByteArrayBackend


class Injected(Exception):
    """What an armed backend raises."""


class Armed(ByteArrayBackend):
    """A backend that fails while it is armed."""

    armed = False

    def acquire(self, nbytes):
        if self.armed:
            raise Injected
        return super().acquire(nbytes)


class Worker:
    """A thread that does one thing after the other, when it is told."""

    def __repr__(self):
        return "by"

    def __init__(self):
        self.todo, self.done = queue.SimpleQueue(), queue.SimpleQueue()
        # Kept, as a new one at the same address would be taken for it.
        self.context = contextvars.Context()
        self.thread = threading.Thread(
            target=self.context.run, args=(self.work,), daemon=True
        )
        self.thread.start()

    def work(self):
        while True:
            job = self.todo.get()
            if job is None:
                return
            try:
                answer = True, job()
            except BaseException as error:
                answer = False, error.with_traceback(None)
            # Before the answer: the next thread may drop what the job refers to.
            del job
            self.done.put(answer)
            del answer

    def do(self, job):
        self.todo.put(job)
        del job
        good, answer = self.done.get()
        if good:
            return answer
        raise answer

    def end(self):
        self.todo.put(None)
        self.thread.join()


def attempt(function, *args):
    """Return what a function does: what it returned, or which error it raised."""
    try:
        return "done", function(*args)
    except ndx.WorkspaceError:
        return "refused", None
    except Injected:
        return "failed", None


def run_body(by_stack=False):
    """Enter and leave what it is told to; leave the rest as nested `with` would."""
    entered = []
    answer = None
    try:
        while True:
            what, scope = yield answer
            # No call of a function in between: the frame must be this one.
            try:
                if what == "enter" and by_stack:
                    stack = contextlib.ExitStack()
                    answer = "done", stack.enter_context(scope)
                    entered.append(stack)
                elif what == "enter":
                    answer = "done", scope.__enter__()
                    entered.append(scope)
                else:
                    if what == "leave":
                        scope = entered.pop()
                    scope.__exit__(None, None, None)
                    answer = "done", None
            except ndx.WorkspaceError:
                answer = "refused", None
            except Injected:
                answer = "failed", None
            scope = stack = None
    except BaseException as error:
        kind = type(error)
        while entered:
            try:
                entered.pop().__exit__(kind, kind(), None)
            except ndx.WorkspaceError:
                kind = ndx.WorkspaceError
        if kind is not GeneratorExit:
            raise kind("at the end") from None


class Body:
    """A generator, and what the model knows of it."""

    def __init__(self, number, home, worker, by_stack=False):
        self.number = number
        self.generator = run_body(by_stack)
        next(self.generator)
        self.address = None if by_stack else id(self.generator)
        self.entered = []  # pairs of a scope and the model's
        self.home, self.worker = home, worker

    def __repr__(self):
        return f"body {self.number}"

    @property
    def frame(self):
        """What the model tells frames apart by; a stack's are others each time."""
        return self.address or object()


class Task:
    """What asyncio takes for the task that runs, while it takes a step."""

    loop = object()
    ended = False

    def done(self):
        return self.ended

    def step(self, function, *args):
        asyncio._set_running_loop(self.loop)
        asyncio.tasks._enter_task(self.loop, self)
        try:
            return function(*args)
        finally:
            asyncio.tasks._leave_task(self.loop, self)
            asyncio._set_running_loop(None)


def take_address(address):
    """Return generators, one at an address, so that no later one has that."""
    made = []
    while len(made) < 1000 and not (made and id(made[-1]) == address):
        made.append(run_body())
    return made[-1:]


def end_generator(box, way):
    """End a generator, of which there is no other reference; return what it raises."""
    try:
        if way == "close":
            box.pop().close()
        elif way == "throw":
            box.pop().throw(ValueError("thrown"))
        elif way == "drop":
            del box[:]
        else:
            circle = [box.pop()]
            circle.append(circle)
            del circle
            gc.collect()
    except (ValueError, ndx.WorkspaceError) as error:
        return type(error)
    return None

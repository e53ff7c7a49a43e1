"""Any order of entering and leaving, against a model: generators, tasks, threads.

Each step is done by a body (a generator, whose frame or stacks enter and leave), in a
context (a thread's own or a copy, as a task's) and by a thread. So every way in which
bodies, tasks and threads can interleave is drawn, and each draw is the same every time.
"""

import contextlib
import contextvars
import sys
import types

import pytest
from helpers.examples import examples
from helpers.scope_bodies import (
    Armed,
    Body,
    Task,
    Worker,
    attempt,
    end_generator,
    take_address,
)
from helpers.scope_model import Borrowing, Failed, Model, Refused, Scope, Space, Thread
from helpers.together import FREE_THREADED
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

import ndx

pytestmark = pytest.mark.threads

ELEMENTS = 8
SIZE = 256
MOST_THREADS = 3
MOST_HOMES = 5
MOST_BODIES = 4

# Without a GIL it is not known which thread frees what another one has made.
WAYS = ["close", "throw"] + (not FREE_THREADED) * ["drop", "drop", "collect"]

# Of the workspaces by name: what ndx is asked for, and what the model knows of it.
KINDS = {
    "plain": ({}, {}),
    "ring": ({"reset": "ring"}, {"slots": 2}),
    "escaping": ({"escape": "detach"}, {"escape": True}),
    "bound": ({"backend": "bound"}, {"follows": False}),
}


class Machine(RuleBasedStateMachine):
    """What ndx does, step by step, beside what the model says."""

    # ------------------------------------------------------------ what there is

    @initialize()
    def begin(self):
        self.unraised = []
        self.hook = sys.unraisablehook
        sys.unraisablehook = self.note_unraised
        self.armed = Armed()
        self.default = ndx.current_backend()
        self.backends = [
            ndx.backends.get("host", limit="1MiB"),
            ndx.backends.get("host", limit="2MiB"),
            self.armed,
        ]
        self.model = Model(self.default)
        self.workers = []  # pairs of a worker and the model's thread
        self.contexts = {}  # of the model's homes; None: the thread's own
        self.own = {}  # the model's threads of those
        self.bodies = []
        self.arrays = []
        self.tombstones = []
        self.refused = []  # exits: of which body, from what
        self.spaces = {}  # of the model's
        self.count = 0
        self.scopes = [(ndx.use(backend), Scope(backend)) for backend in self.backends]
        self.scopes.append((ndx.no_workspace(), Scope()))
        # Enough for the first steps to enter and leave.
        home, _ = self.add_thread(), self.add_thread()
        for kind in ("plain", "ring"):
            self.ask(home, *self.own[home], kind, kind)
        made = self.model.home(home)
        self.contexts[made] = self.run(home, contextvars.copy_context)
        self.own[made] = self.own[home]
        for number, each in enumerate((home, home, made)):
            by_stack = number == 1
            self.bodies.append(Body(number, each, self.own[home][0], by_stack))
        self.count = len(self.bodies)

    def note_unraised(self, info):
        """Note what generators raise when they are dropped."""
        # From Python 3.14 on the text alone tells where it was.
        if isinstance(info.object, types.GeneratorType) or (
            "closing generator" in (info.err_msg or "")
        ):
            self.unraised.append(info.exc_type)
        else:
            self.hook(info)

    def add_thread(self):
        worker, thread = Worker(), Thread(len(self.workers))
        self.workers.append((worker, thread))
        home = self.model.home()
        self.contexts[home] = None
        self.own[home] = (worker, thread)
        return home

    def alive(self):
        return [(w, t) for w, t in self.workers if t.alive]

    def homes(self):
        """Return the contexts in which anything can still run."""
        return [
            home
            for home, context in self.contexts.items()
            if context is not None or self.own[home][1].alive
        ]

    def worker_of(self, home):
        """Return who runs a context, where nothing else is said."""
        owner = self.own[home]
        return owner if owner[1].alive else self.alive()[0]

    def run(self, home, function, *args, worker=None):
        worker = worker or self.worker_of(home)[0]
        context, task = self.contexts[home], home.task
        if context is None:
            return worker.do(lambda: function(*args))
        if task is None:
            return worker.do(lambda: context.run(function, *args))
        return worker.do(lambda: context.run(task.step, function, *args))

    def draw_actor(self, data, home=None):
        """Draw a context, and who runs it: rarely another thread than before."""
        # Most often where the body was before.
        homes = self.homes()
        if home in homes:
            homes = [home] * 2 * len(homes) + homes
        home = data.draw(st.sampled_from(homes), "context")
        workers = [self.worker_of(home)]
        if self.contexts[home] is not None:
            workers = 4 * workers + self.alive()
        return (home, *data.draw(st.sampled_from(workers), "thread"))

    def draw_body(self, data):
        return data.draw(st.sampled_from(self.bodies), "body")

    def draw_scope(self, data):
        spaces = [(real, space) for space, real in self.spaces.items()]
        return data.draw(st.sampled_from(self.scopes + 3 * spaces), "scope")

    def same(self, real, expected):
        assert real[0] == expected[0], (real, expected)
        if isinstance(expected[1], Space):
            # A sibling is new to us, or the one that we know.
            assert self.spaces.setdefault(expected[1], real[1]) is real[1]
            assert len(set(map(id, self.spaces.values()))) == len(self.spaces)

    def expected(self, function, *args, **kwargs):
        try:
            return "done", function(*args, **kwargs)
        except Refused:
            return "refused", None
        except Failed:
            return "failed", None

    # ------------------------------------------------------- contexts and bodies

    @precondition(lambda self: len(self.contexts) < MOST_HOMES)
    @rule(data=st.data(), is_task=st.booleans())
    def copy_a_context(self, data, is_task):
        home = data.draw(st.sampled_from(self.homes()), "context")
        made = self.model.home(home)
        made.task = Task() if is_task else None
        self.contexts[made] = self.run(home, contextvars.copy_context)
        self.own[made] = self.worker_of(home)

    @precondition(lambda self: any(home.task for home in self.contexts))
    @rule(data=st.data(), more=st.booleans())
    def end_a_task(self, data, more):
        """Another one may run in the same context then, or something that is none."""
        tasks = [home for home in self.contexts if home.task]
        home = data.draw(st.sampled_from(tasks), "task")
        home.task.ended = True
        home.task = Task() if more else None

    @precondition(lambda self: len(self.bodies) < MOST_BODIES)
    @rule(data=st.data(), by_stack=st.booleans())
    def begin_a_body(self, data, by_stack):
        home, worker, _ = self.draw_actor(data)
        self.count += 1
        self.bodies.append(Body(self.count, home, worker, by_stack))

    @precondition(lambda self: len(self.workers) < MOST_THREADS)
    @rule()
    def begin_a_thread(self):
        self.add_thread()

    @precondition(lambda self: len(self.alive()) > 1)
    @rule(data=st.data(), really=st.integers(0, 2))
    def end_a_thread(self, data, really):
        if really:
            return
        worker, thread = data.draw(st.sampled_from(self.alive()), "thread")
        worker.end()
        thread.alive = False

    # ------------------------------------------------------------------- scopes

    @precondition(lambda self: len(self.spaces) < 6)
    @rule(data=st.data(), kind=st.sampled_from([*KINDS]))
    def ask_for_a_workspace_by_name(self, data, kind):
        home, worker, thread = self.draw_actor(data)
        self.ask(home, worker, thread, kind, kind)

    @precondition(lambda self: len(self.spaces) < 6)
    @rule(data=st.data(), kind=st.sampled_from([*KINDS]))
    def ask_for_a_workspace_without_a_name(self, data, kind):
        self.ask(*self.draw_actor(data), kind, None)

    def ask(self, home, worker, thread, kind, name):
        policies, known = KINDS[kind]
        policies = {"size": SIZE, **policies}
        if "backend" in policies:
            policies["backend"] = self.backends[1]
        real = self.run(home, lambda: ndx.workspace(name, **policies), worker=worker)
        space = thread.names.get(name)
        if space is None:
            backend = policies.get("backend", self.model.backend_outside(home))
            space = Space(thread, backend, size=SIZE, name=name, **known)
            if name is not None:
                thread.names[name] = space
        else:
            space = self.model.entered(space, home) or space
        self.same(("done", real), ("done", space))

    @precondition(lambda self: self.spaces)
    @rule(data=st.data())
    def make_a_borrowing(self, data):
        space = data.draw(st.sampled_from([*self.spaces]), "workspace")
        if len(self.scopes) < 8:
            self.scopes.append((self.spaces[space].borrow(), Borrowing(space)))

    @precondition(lambda self: self.bodies)
    @rule(data=st.data(), armed=st.integers(0, 3), count=st.integers(1, 3))
    def enter(self, data, armed, count):
        body = self.draw_body(data)
        home, worker, thread = self.draw_actor(data, body.home)
        for _ in range(count):
            real, scope = self.draw_scope(data)
            self.step_in(body, home, worker, thread, real, scope, armed == 3)

    def step_in(self, body, home, worker, thread, real, scope, armed):
        self.armed.armed = armed
        # It fails only where this backend is asked, and has nothing idle.
        backend = self.model.backend_outside(home)
        if isinstance(scope, Space) and not scope.follows:
            backend = scope.row.backend
        fails = armed and backend is self.armed
        answer = self.run(home, body.generator.send, ("enter", real), worker=worker)
        self.armed.armed = False
        expected = self.expected(
            self.model.enter, scope, home, thread, body.frame,
            fails and answer[0] == "failed",
        )  # fmt: skip
        self.same(answer, expected)
        if answer[0] == "done":
            body.entered.append((real, scope))
        body.home, body.worker = home, worker

    @precondition(lambda self: any(body.entered for body in self.bodies))
    @rule(data=st.data())
    def leave(self, data):
        inside = [body for body in self.bodies if body.entered]
        body = data.draw(st.sampled_from(inside), "body")
        home, worker, _ = self.draw_actor(data, body.home)
        real, scope = body.entered.pop()
        answer = self.run(home, body.generator.send, ("leave", real), worker=worker)
        self.same(answer, self.expected(self.model.leave, scope, home, body.frame))
        if answer[0] == "refused":
            self.refused.append((body, real, scope))

    @precondition(lambda self: any(body in self.bodies for body, *_ in self.refused))
    @rule(data=st.data())
    def leave_once_more(self, data):
        """An exit that came too early comes again, as that of a `with` would."""
        alive = [each for each in self.refused if each[0] in self.bodies]
        body, real, scope = data.draw(st.sampled_from(alive), "refused")
        home, worker, _ = self.draw_actor(data, body.home)
        answer = self.run(home, body.generator.send, ("exit", real), worker=worker)
        self.same(answer, self.expected(self.model.leave, scope, home, body.frame))

    @precondition(lambda self: self.bodies)
    @rule(data=st.data())
    def leave_what_another_may_have_entered(self, data):
        body = self.draw_body(data)
        home, worker, _ = self.draw_actor(data, body.home)
        real, scope = self.draw_scope(data)
        answer = self.run(home, body.generator.send, ("exit", real), worker=worker)
        self.same(answer, self.expected(self.model.leave, scope, home, body.frame))

    @precondition(lambda self: self.bodies)
    @rule(
        data=st.data(),
        way=st.sampled_from(WAYS),
    )
    def end_a_body(self, data, way):
        body = self.draw_body(data)
        self.bodies.remove(body)
        # As often elsewhere as where it was.
        home, worker, _ = self.draw_actor(data)
        self.end_one(body, home, worker, way)

    def end_one(self, body, home, worker, way):
        del self.unraised[:]
        box = [body.generator]
        del body.generator
        raised = self.run(home, end_generator, box, way, worker=worker)
        if FREE_THREADED:
            # What was left in another thread ends when its own looks for its scopes.
            for each, _ in self.alive():
                each.do(serving)
        # Frames are told apart by their addresses.
        self.tombstones += take_address(body.address)
        kind = ValueError if way == "throw" else GeneratorExit
        for _, scope in reversed(body.entered):
            closes = kind is GeneratorExit
            if (
                self.expected(self.model.leave, scope, home, body.frame, closes)[0]
                != "done"
            ):
                kind = ndx.WorkspaceError
        if kind is GeneratorExit:
            kind = None
        if way in ("close", "throw"):
            assert raised is kind
            assert self.unraised == []
        else:
            expected = [] if kind is None else [kind]
            assert self.unraised == expected

    @precondition(lambda self: self.spaces)
    @rule(data=st.data(), way=st.sampled_from(["destroy", "close"]))
    def destroy_a_workspace(self, data, way):
        left = [each for each in self.spaces if self.spaces[each].is_left_open]
        spaces = [*self.spaces, *5 * left]
        space = data.draw(st.sampled_from(spaces), "workspace")
        home, worker, _ = self.draw_actor(data)
        answer = self.run(
            home, attempt, getattr(self.spaces[space], way), worker=worker
        )
        self.same(answer, self.expected(self.model.destroy, space))

    @rule(data=st.data(), really=st.integers(0, 2))
    def destroy_all_of_a_thread(self, data, really):
        if really:
            return
        worker, thread = data.draw(st.sampled_from(self.workers), "thread")
        home, runner, _ = self.draw_actor(data)
        theirs = [space for space in self.spaces if space.thread is thread]
        theirs.sort(key=lambda each: (self.spaces[each].name, self.number(each)))
        found = self.run(
            home, lambda: ndx.memory.destroy_all(thread=worker.thread), worker=runner
        )
        answers = [self.expected(self.model.destroy, each)[0] for each in theirs]
        assert found == answers.count("done")

    def number(self, space):
        return space.family.index(space)

    # ------------------------------------------------------------------- arrays

    @rule(data=st.data())
    def make_an_array(self, data):
        home, worker, _ = self.draw_actor(data)
        self.count += 1
        value = float(self.count)
        real = self.run(home, ndx.full, ELEMENTS, value, worker=worker)
        space = self.model.space_at(home)
        assert real.attached == (space is not None)
        assert real.backend is self.model.backend_at(home)
        self.arrays.append((real, self.model.make(home, value)))

    @precondition(lambda self: self.arrays)
    @rule(data=st.data())
    def drop_an_array(self, data):
        index = data.draw(st.integers(0, len(self.arrays) - 1), "array")
        self.model.drop(self.arrays.pop(index)[1])

    @precondition(lambda self: self.arrays)
    @rule(data=st.data())
    def detach_an_array(self, data):
        index = data.draw(st.integers(0, len(self.arrays) - 1), "array")
        home, worker, _ = self.draw_actor(data)
        real, array = self.arrays[index]
        try:
            made = self.run(home, real.detach, worker=worker)
        except ndx.StaleArrayError:
            assert array.is_stale
            return
        assert not array.is_stale
        assert not made.attached
        self.arrays.append((made, type(array)(array.value)))

    # --------------------------------------------------------------- invariants

    @invariant()
    def each_context_is_served_by_what_the_model_says(self):
        for home in self.homes():
            name, backend = self.run(home, serving)
            space = self.model.space_at(home)
            assert name == (None if space is None else self.spaces[space].name)
            assert backend is self.model.backend_at(home)

    @invariant()
    def each_array_is_stale_or_has_its_value(self):
        for real, array in self.arrays:
            assert real.in_scope == (not array.is_stale)
            assert real.attached == (array.cycle is not None)
            if not array.is_stale:
                assert real.tolist() == [array.value] * ELEMENTS
                continue
            try:
                real.tolist()
            except ndx.StaleArrayError:
                pass
            else:
                raise AssertionError(f"a stale array was read: {array}")

    @invariant()
    def each_workspace_counts_what_the_model_counts(self):
        for space, real in self.spaces.items():
            assert real.stats() == space.stats()
            assert real.size == space.promised()
            assert real.backend is space.row.backend
            assert real.is_open == space.is_open
            assert real.number == self.number(space)
            assert real.generation == space.row.arena.generation
            last = space.entries[-1] if space.is_open else None
            assert real.is_left_open == (last is not None and last.has_ended)
            if last is None:
                assert real.parent is None
                continue
            first = space.entries[0]
            stack = first.home.stack
            index = stack.index(first)
            if (stack[index - 1] if index else None) is first.below:
                parent = first.parent
                assert real.parent is (None if parent is None else self.spaces[parent])

    # ---------------------------------------------------------------------- end

    def teardown(self):
        """End all threads and bodies; all memory goes back."""
        if not hasattr(self, "model"):
            return
        try:
            for worker, _ in self.alive():
                worker.end()
            for _, thread in self.workers:
                thread.alive = False
            if sys.exc_info()[0] is None:
                self.end_all()
        finally:
            # What is left of them, where the test failed or was cut short: later, their
            # ends would disturb others.
            for body in self.bodies:
                with contextlib.suppress(ndx.WorkspaceError):
                    body.generator.close()
            for real in self.spaces.values():
                with contextlib.suppress(ndx.WorkspaceError):
                    real.destroy()
            del self.arrays[:]
            sys.unraisablehook = self.hook

    def end_all(self):
        home = self.model.home()
        self.contexts[home] = contextvars.Context()
        here = type("Here", (), {"do": staticmethod(lambda job: job())})
        while self.bodies:
            self.end_one(self.bodies.pop(), home, here, "close")
        for space, real in self.spaces.items():
            self.same(attempt(real.destroy), self.expected(self.model.destroy, space))
        self.each_array_is_stale_or_has_its_value()
        self.each_workspace_counts_what_the_model_counts()
        assert not any(real.is_open for real in self.spaces.values())
        del self.arrays[:]
        self.contexts.clear()
        self.spaces.clear()
        self.scopes.clear()
        assert [backend.stats()["allocated_bytes"] for backend in self.backends] == [
            0
        ] * len(self.backends)


def serving():
    return ndx.zeros(0).workspace, ndx.current_backend()


def test_scopes_of_threads_tasks_and_generators_are_as_the_model_says():
    run_state_machine_as_test(
        Machine, settings=settings(examples(25), stateful_step_count=40)
    )

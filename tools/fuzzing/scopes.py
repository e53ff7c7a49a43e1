"""Steps that open and close scopes: workspaces of all kinds, backends, passes."""

import gc
import os

import ndx
from fuzzing.machine import Failure, Generation, Skip

DEPTH = 5  # of scopes
ARENAS = 4  # the most backends of which a workspace keeps the arenas

# Configs of a program's workspaces; `path` is a file of the program.
CONFIGS = [
    {},
    {"size": "64KiB"},
    {"size": "2KiB", "spill": "grow"},
    {"size": "4KiB", "spill": "fail"},
    {"size": "1KiB", "spill": "mmap"},
    {"learn": "liveness"},
    {"learn": "over-time", "cycles": 2},
    {"reset": "ring"},
    {"reset": "ring", "slots": 3, "size": "16KiB", "spill": "grow"},
    {"escape": "detach", "size": "16KiB"},
    {"escape": "detach", "learn": "liveness"},
    {"escape": "detach", "reset": "ring"},
    {"debug": True, "size": "16KiB"},
    {"debug": True, "escape": "detach"},
    {"debug": True, "learn": "liveness"},
    {"path": True, "size": "16KiB"},
    {"path": True, "size": "16KiB", "escape": "detach"},
    {"learn": "none", "overallocation": 0},
]

BACKENDS = ["'host'", "'mmap', directory=folder", "'simulated'"]
PASSES = [
    "threshold=0, memory=0, block=4096, threads=1",
    "threshold=0, memory=0, block=65536, threads=2",
    "threshold=0, memory='1GiB', block=8192, threads=1",
    "threshold='64KiB', memory=0, threads=2",
]


class Scope:
    """A workspace of the program, and its cycles."""

    def __init__(self, name, config):
        self.name = name
        self.slots = config.get("slots", 2) if config.get("reset") == "ring" else 1
        self.ring = config.get("reset") == "ring"
        self.detaches = config.get("escape") == "detach"
        self.fails = config.get("spill") == "fail"
        self.depth = 0
        self.arenas = {}  # by backend: the generations of the slots, the oldest first
        self.now = None


class Scopes:
    """The part of the machine that has scopes."""

    def start_scopes(self, label):
        self.label = label
        self.stack = []  # (kind, name of the scope object, Scope or None)
        self.scopes = {}
        self.made = 0
        self.xs["folder"] = self.folder

    def current(self):
        for kind, _, scope in reversed(self.stack):
            if kind in ("workspace", "borrow"):
                return scope.now
            if kind in ("none", "use"):
                return None
        return None

    def is_tight(self):
        return any(scope is not None and scope.fails for _, _, scope in self.stack)

    def enter(self, kind, code, scope=None):
        if len(self.stack) >= DEPTH:
            raise Skip
        name = f"s{self.made}"
        self.made += 1
        self.say(f"{name} = {code}; {name}.__enter__()")
        if kind == "workspace":
            entered = self.workspace(scope)
        else:
            entered = eval(self.compiled(code, "eval"), self.xs)
        try:
            entered.__enter__()
        except ndx.WorkspaceError:
            # A workspace in a file can't be entered while its content is read.
            if scope is not None and kind == "workspace" and scope.path:
                raise Skip from None
            raise
        self.xs[name] = entered
        self.stack.append((kind, name, scope))

    # ------------------------------------------------------------------- steps

    def do_enter(self, _, first, second, draw):
        index = first % len(CONFIGS)
        scope = self.scopes.get(index)
        if scope is None:
            config = dict(CONFIGS[index])
            name = f"{self.label}-{index}"
            scope = self.scopes[index] = Scope(name, config)
            scope.path = config.get("path", False)
            if scope.path:
                config["path"] = os.path.join(self.folder, name)
            words = "".join(f", {key}={value!r}" for key, value in config.items())
            scope.code = f"ndx.workspace({name!r}{words})"
        if scope.depth and draw(4):
            raise Skip
        backend = id(ndx.current_backend())
        if backend not in scope.arenas and len(scope.arenas) == ARENAS:
            raise Skip
        self.enter("workspace", scope.code, scope)
        scope.depth += 1
        if scope.depth == 1:
            slots = scope.arenas.setdefault(backend, [])
            if len(slots) == scope.slots:
                self.expire(slots.pop(0))
            scope.now = Generation(scope.name, scope.detaches)
            slots.append(scope.now)

    def do_exit(self, *_):
        if not self.stack:
            raise Skip
        kind, name, scope = self.stack.pop()
        self.say(f"{name}.__exit__(None, None, None)")
        self.xs.pop(name).__exit__(None, None, None)
        if kind == "workspace":
            scope.depth -= 1
            if not scope.depth:
                if not scope.ring:
                    self.expire(scope.now)
                self.compare()

    def do_borrow(self, _, first, *rest):
        entered = [entry for entry in self.stack if entry[0] == "workspace"]
        if not entered:
            raise Skip
        _, name, scope = entered[first % len(entered)]
        self.enter("borrow", f"{name}.borrow()", scope)

    def do_outside(self, *_):
        self.enter("none", "ndx.no_workspace()")

    def do_use(self, _, first, *rest):
        self.enter("use", f"ndx.use({BACKENDS[first % len(BACKENDS)]})")

    def do_passes(self, _, first, *rest):
        self.enter("passes", f"ndx.passes({PASSES[first % len(PASSES)]})")

    def do_destroy(self, _, first, second, draw):
        """Give a closed workspace's memory back."""
        closed = [scope for scope in self.scopes.values() if not scope.depth]
        if not closed:
            raise Skip
        self.destroy(closed[first % len(closed)])

    def do_initialize(self, _, first, *rest):
        closed = [scope for scope in self.scopes.values() if not scope.depth]
        if not closed:
            raise Skip
        scope = closed[first % len(closed)]
        self.say(f"{scope.code}.initialize()")
        self.workspace(scope).initialize()

    def workspace(self, scope):
        """Return the workspace of a scope, made anew if it was destroyed."""
        try:
            return eval(self.compiled(scope.code, "eval"), self.xs)
        except ndx.WorkspaceError:
            # The old workspace has the file as long as an array there is exported.
            if scope.path:
                raise Skip from None
            raise

    def destroy(self, scope):
        self.say(f"{scope.code}.destroy()")
        self.workspace(scope).destroy()
        for slots in scope.arenas.values():
            for generation in slots:
                self.expire(generation)
        scope.arenas.clear()

    def expire(self, generation):
        """Make the arrays of a cycle stale, or let them escape."""
        if generation.detaches:
            for block in self.blocks.values():
                if block.generation is generation:
                    block.generation = None
        else:
            generation.dead = True

    def finish_scopes(self):
        """Leave all scopes, and destroy all workspaces."""
        while self.stack:
            self.do_exit()
        self.compare()
        for scope in self.scopes.values():
            if scope.path:
                continue
            self.destroy(scope)
        self.compare()

    def close_scopes(self):
        """Destroy the remaining workspaces, when no arrays are left."""
        gc.collect(0)
        for scope in self.scopes.values():
            ws = self.workspace(scope)
            if ws.is_open:
                raise Failure(f"{scope.name} is open at the end")
            ws.destroy()

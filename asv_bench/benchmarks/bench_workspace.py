"""Workspaces: the cost of a cycle, and what it saves.

Sizes, of float64: 10 elements, so that the scope itself and the bump of an
allocation show; 10,000 (80 kB), a usual temporary; 5,000,000 (40 MB), past the
32 MiB from where glibc asks the system anew for every block: here an arena
saves the page faults of each temporary.
"""

import contextlib
import contextvars

import numpy as np
from asv_runner.benchmarks.mark import SkipNotImplemented

import ndx

SCOPES = ("numpy", "none", "first", "liveness")


class Cycle:
    """A loop body with four temporaries, alone or in a workspace.

    ``numpy`` is NumPy; ``none`` is ndx without a workspace; the others are how
    the workspace learns its size.
    """

    params = [SCOPES, (10, 10_000, 5_000_000)]
    param_names = ["scope", "size"]

    def setup(self, scope, size):
        self.xp = np if scope == "numpy" else ndx
        self.scope = contextlib.nullcontext
        if scope in ("first", "liveness"):
            name = f"bench {scope} {size}"
            self.scope = lambda: ndx.workspace(name, learn=scope)
            try:
                self.scope()
            except ValueError as error:
                msg = f"this version of ndx: {error}"
                raise SkipNotImplemented(msg) from error
        self.x = self.xp.asarray(np.linspace(0.0, 1.0, size), copy=True)
        for _ in range(3):  # the size is learned before the timing
            self.run_cycle()

    def run_cycle(self):
        x = self.x
        with self.scope():
            for _ in range(2):
                x = x * 0.5 + 0.25


class CycleTime(Cycle):
    """The time of a cycle in the steady state."""

    def time_cycle(self, *_):
        self.run_cycle()


class CycleAllocations(Cycle):
    """What ndx asks of the system in the steady state: nothing, in a workspace."""

    params = [SCOPES[1:], Cycle.params[1]]

    def track_system_allocations(self, *_):
        before = ndx.memory.stats("host")["system_allocations"]
        for _ in range(10):
            self.run_cycle()
        return (ndx.memory.stats("host")["system_allocations"] - before) / 10

    track_system_allocations.unit = "allocations per cycle"


class Empty:
    """A hundred arrays of 1,000 float64, made and dropped."""

    params = ["numpy", "none", "workspace"]
    param_names = ["scope"]

    def setup(self, scope):
        self.empty = np.empty if scope == "numpy" else ndx.empty
        self.scope = contextlib.nullcontext()
        if scope == "workspace":
            self.scope = ndx.workspace(size="1MiB")

    def time_hundred(self, scope):
        empty = self.empty
        with self.scope:
            for _ in range(100):
                empty(1000)


class Scope:
    """Entering and leaving, with little or nothing inside.

    A workspace at hand beside what it is compared with: a variable of a context.
    """

    def setup(self):
        self.variable = contextvars.ContextVar("variable", default=0)
        self.workspace = ndx.workspace(size=1 << 16)
        for _ in range(2):
            self.time_one_empty()

    def time_context_variable(self):
        self.variable.reset(self.variable.set(1))

    def time_nothing_at_hand(self):
        with self.workspace:
            pass

    def time_nothing(self):
        with ndx.workspace("bench scope", size=1 << 16):
            pass

    def time_one_empty(self):
        with ndx.workspace("bench scope", size=1 << 16):
            ndx.empty(10)

    def time_hundred_empties(self):
        with ndx.workspace("bench scope", size=1 << 16):
            for _ in range(100):
                ndx.empty(10)

    def time_detach(self):
        with ndx.workspace("bench scope", size=1 << 16):
            ndx.empty(10).detach()

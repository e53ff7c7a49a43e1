"""Threads that share arrays, views, scopes, backends, recordings and exports.

They have no lock. What a step must give can't be known, but what it may give can: the
elements of an array are those of its family, whoever writes them. So an element of
another family is memory of others. After each round everything is dropped, and nothing
may be left.
"""

import contextlib
import gc
import pickle
import random
import threading

import numpy as np

import ndx
from fuzzing.programs import Report, live_ranges

FAMILIES = 6
BOXES = 6  # of each family, for arrays; as many for exports
APART = 1000  # between the values of two families
VALUES = 16  # of each
ROUND = 400  # steps of a thread between two checks that nothing is left
LIMIT = 2**20
ALLOWED = (ndx.StaleArrayError, ndx.OutOfMemoryError, ndx.WorkspaceError, BufferError)


@ndx.fuse
def same(x):
    """Return the values of an array, by a program of `ndx.fuse`."""
    return ndx.minimum(ndx.maximum(x, x), x)


# Without functions that are made at each step: CPython 3.13t keeps those, and what they
# hold, for ever.
VIEWS = [
    lambda x, low: x[low:],
    lambda x, low: x[::-1],
    lambda x, low: x.mT if x.ndim == 2 else x[...],
    lambda x, low: ndx.reshape(x, (-1,)),
]
DERIVED = [
    lambda x, value: ndx.maximum(x, x),
    lambda x, value: same(x),
    lambda x, value: x.copy(),
    lambda x, value: ndx.sort(x),
    lambda x, value: ndx.concat((x, x))[: x.shape[0]],
    lambda x, value: ndx.where(x > value, x, value),
    lambda x, value: ndx.take(x, ndx.zeros(3, dtype=ndx.int64), axis=0),
    lambda x, value: x[x >= 0.0],
    lambda x, value: x.detach(),
    lambda x, value: ndx.max(x, axis=0)[...],
    lambda x, value: pickle.loads(pickle.dumps(x)),
    lambda x, value: x + 0.0,
]


class Look:
    """Reads an array when it dies, in whichever thread that is."""

    def __init__(self, player, x, family):
        self.player = player
        self.x = x
        self.family = family
        self.itself = self  # a cycle

    def __del__(self):
        """Read the array."""
        try:
            self.player.look(self.x, self.family)
        except ALLOWED:
            pass
        except BaseException as error:
            self.player.shared.failed = error


class Shared:
    """What the threads of a run share.

    Parameters
    ----------
    threads : int
        How many there are.
    """

    def __init__(self, threads):
        self.boxes = [[None] * BOXES for _ in range(FAMILIES)]
        self.exports = [[None] * BOXES for _ in range(FAMILIES)]
        self.limited = ndx.backends.HostBackend(limit=LIMIT)
        self.workspaces = [ndx.workspace(f"shared {i}") for i in range(2)]
        self.barrier = threading.Barrier(threads)
        self.generators = [None] * BOXES
        self.ranges = None
        self.failed = None  # an error of a finalizer

    def clear(self):
        """Drop everything."""
        for box in (*self.boxes, *self.exports, self.generators):
            box[:] = [None] * len(box)


class Player:
    """One of the threads."""

    def __init__(self, shared, seed, index):
        self.shared = shared
        self.seed = seed
        self.index = index
        self.rng = None
        self.op = "start"

    # ------------------------------------------------------------------ rounds

    def play(self, rounds, progress, stopped):
        """Run rounds of steps, until another thread has failed."""
        for turn in range(rounds):
            self.rng = random.Random(f"{self.seed}:{self.index}:{turn}")
            try:
                for step in range(ROUND):
                    if stopped():
                        self.shared.barrier.abort()
                        return
                    progress(turn, step, turn * ROUND + step)
                    self.step()
                self.op = "end of a round"
                for end in (self.clear, self.destroy, self.check):
                    self.shared.barrier.wait()
                    end()
                self.shared.barrier.wait()
            except threading.BrokenBarrierError:
                return
            except BaseException as error:
                self.shared.barrier.abort()
                message = f"{type(error).__name__}: {error}"
                raise Report(-1, self.op, message) from error

    def clear(self):
        """Drop what all threads share."""
        if self.index == 0:
            self.shared.clear()
            gc.collect()

    def destroy(self):
        """Destroy the workspaces of this thread."""
        ndx.memory.destroy_all(trim=False)

    def check(self):
        """Fail if something is left."""
        shared = self.shared
        if self.index:
            return
        if shared.failed is not None:
            raise shared.failed
        for workspace in shared.workspaces:
            workspace.destroy()
        shared.workspaces = [ndx.workspace(f"shared {i}") for i in range(2)]
        gc.collect()
        shared.limited.trim()
        stats = shared.limited.stats()
        assert stats["allocated_count"] == stats["reserved_bytes"] == 0, stats
        assert stats["peak_reserved_bytes"] <= LIMIT, stats
        before, shared.ranges = shared.ranges, live_ranges()
        assert before is None or shared.ranges <= before, (before, shared.ranges)

    def step(self):
        """Do one step; errors of arrays that others changed are as good as results."""
        name = self.rng.choices(NAMES, HEIGHTS)[0]
        self.op = name
        with contextlib.suppress(*ALLOWED):
            getattr(self, name)(self.rng.randrange(FAMILIES))

    # ------------------------------------------------------------------ help

    def value(self, family):
        """Return a value of a family."""
        return float(family * APART + self.rng.randrange(VALUES))

    def make(self, family):
        """Return a new array of a family."""
        n = self.rng.choice([1, 2, 5, 6, 50, 300, 1000, 9000])
        shape = self.rng.choice([(n,), (n,), (2, n), (n, 3)])
        return ndx.full(shape, self.value(family))

    def put(self, family, x):
        """Let all threads have an array."""
        self.shared.boxes[family][self.rng.randrange(BOXES)] = x

    def get(self, family):
        """Return an array that some thread has made."""
        x = self.shared.boxes[family][self.rng.randrange(BOXES)]
        if x is None:
            x = self.make(family)
            self.put(family, x)
        return x

    def require(self, values, family):
        """Fail for a value that no array of the family ever had."""
        inside = np.asarray(values) - family * APART
        good = (inside >= 0) & (inside < VALUES)
        assert good.all(), f"family {family} has {np.asarray(values)[~good][:5]}"

    # ------------------------------------------------------------------ steps

    def new(self, family):
        """Make an array."""
        self.put(family, self.make(family))

    def view(self, family):
        """Make a view."""
        x = self.get(family)
        if not x.size or not x.ndim:
            return
        low = self.rng.randrange(x.shape[0])
        self.put(family, self.rng.choice(VIEWS)(x, low))

    def derive(self, family):
        """Compute a new array."""
        x = self.get(family)
        if not x.size or not x.ndim:
            return
        self.put(family, self.rng.choice(DERIVED)(x, self.value(family)))

    def store(self, family):
        """Write to an array."""
        x, value = self.get(family), self.value(family)
        if not x.size or not x.ndim:
            return
        i = self.rng.randrange(x.shape[0])
        choice = self.rng.randrange(6)
        if choice == 0:
            x[i] = value
        elif choice == 1:
            x[i:] = value
        elif choice == 2:
            x[x > value] = value
        elif choice == 3:
            x += 0.0
        elif choice == 4:
            np.maximum(x, value, out=x)
        else:
            x[...] = x[::-1]

    def look(self, x, family):
        """Read an array."""
        choice = self.rng.randrange(7)
        if choice == 0:
            self.require(np.array(x), family)
        elif choice == 1:
            self.require(x.tolist(), family)
        elif choice == 2 and x.size:
            self.require(float(ndx.mean(x)), family)
        elif choice == 3 and x.size:
            self.require(float(ndx.max(x)), family)
        elif choice == 4:
            repr(x)
        elif choice == 5 and x.shape and x.shape[0]:
            self.require(np.array(x[self.rng.randrange(x.shape[0])]), family)
        else:
            self.require(np.frombuffer(x.copy().tobytes()), family)

    def read(self, family):
        """Read a shared array."""
        self.look(self.get(family), family)

    def export(self, family):
        """Keep NumPy's view of an array."""
        exports = self.shared.exports[family]
        exports[self.rng.randrange(BOXES)] = np.asarray(self.get(family))

    def use_export(self, family):
        """Read and write NumPy's view of an array, which others may have dropped."""
        found = self.shared.exports[family][self.rng.randrange(BOXES)]
        if found is not None:
            self.require(found, family)
            found[...] = self.value(family)
            self.require(found, family)

    def drop(self, family):
        """Drop an array and an export."""
        self.shared.boxes[family][self.rng.randrange(BOXES)] = None
        self.shared.exports[family][self.rng.randrange(BOXES)] = None

    def close(self, family):
        """Close an array, whoever uses it."""
        self.get(family).close()

    def finalize(self, family):
        """Let a finalizer have an array, in a cycle."""
        Look(self, self.get(family), family)

    def scope(self, family):
        """Make arrays in a workspace of this thread, which others use when it ends."""
        options = self.rng.choice([{}, {"learn": "liveness"}, {"reset": "ring"}])
        name = f"own {len(options) and next(iter(options.values()))}"
        with ndx.workspace(name, size="64KiB", **options):
            self.some(family)

    def borrow(self, family):
        """Enter a workspace that other threads enter, too."""
        with self.rng.choice(self.shared.workspaces):
            self.some(family)

    def limit(self, family):
        """Make arrays where memory is short."""
        with ndx.use(self.shared.limited):
            self.some(family)
        assert self.shared.limited.stats()["peak_reserved_bytes"] <= LIMIT

    def some(self, family):
        """Do a few steps within a scope."""
        for _ in range(self.rng.randrange(6)):
            name = self.rng.choice(["new", "view", "derive", "store", "read", "drop"])
            getattr(self, name)(family)

    def record(self, family):
        """Record what happens, in all threads."""
        with ndx.memory.record() as found:
            self.some(family)
        if self.rng.randrange(2):
            found.summary()

    def begin(self, family):
        """Begin a generator with a scope, which another thread may end."""
        generator = within(self, family)
        next(generator)
        self.shared.generators[self.rng.randrange(BOXES)] = generator

    def collect(self, family):
        """Collect cycles, or give memory back."""
        self.rng.choice(
            [gc.collect, ndx.memory.empty_cache, self.shared.limited.trim]
        )()


def within(player, family):
    """Make an array in a scope that stays open until the generator ends."""
    with ndx.workspace("of a generator", size="8KiB"):
        player.put(family, player.make(family))
        yield


WEIGHTS = {
    "new": 8, "view": 10, "derive": 12, "store": 10, "read": 12, "export": 5,
    "use_export": 6, "drop": 5, "close": 2, "finalize": 1, "scope": 5, "borrow": 3,
    "limit": 5, "record": 0.3, "begin": 0.5, "collect": 0.1,
}  # fmt: skip
NAMES = list(WEIGHTS)
HEIGHTS = list(WEIGHTS.values())

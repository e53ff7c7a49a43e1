"""Scopes that end while an operation runs, and memory that shows who touches it."""

import contextlib

import numpy as np

import ndx
from helpers.calls import CALLS, UNDEFINED, resolve, results

CANARY = 0xC5
SCALE = 64


class CanaryBackend(ndx.backends.PythonBackend):
    """Fills memory that comes back with a canary, and keeps it to see if that stays.

    `on_acquire` is called when memory is asked for, before there is any.
    """

    def __init__(self):
        super().__init__()
        self.dead = []
        self.on_acquire = None

    def acquire(self, nbytes):
        if self.on_acquire is not None:
            self.on_acquire()
        return bytearray(nbytes)

    def discard(self, buffer):
        buffer[:] = bytes([CANARY]) * len(buffer)
        self.dead.append(buffer)

    def assert_untouched(self):
        for buffer in self.dead:
            assert buffer.count(CANARY) == len(buffer)


class Midway:
    """A workspace over canaries, whose scope `end` ends, with neighbours around."""

    def __init__(self, size, used_again):
        self.backend = CanaryBackend()
        self.used_again = used_again
        self.ended = False
        self.canaries = []
        self.neighbours = [self.outside(7.0)]
        self.workspace = ndx.workspace(size=size, learn="none", backend=self.backend)
        self.neighbours.append(self.outside(7.0))
        self.generator = self.scope()

    def outside(self, value):
        with ndx.use(self.backend):
            return ndx.full(100, value)

    def scope(self):
        with self.workspace:
            yield

    def enter(self):
        next(self.generator)

    def end(self):
        """End the scope once, and use its memory for something else."""
        if self.ended:
            return
        self.ended = True
        self.backend.on_acquire = None
        self.generator.close()
        self.generator = None
        self.use_memory()

    def use_memory(self):
        if self.used_again:
            # Whatever is free in the arena, in pieces of all sizes. What does not fit
            # asks the backend, which refuses that while it is asked already.
            for count in (20_000, 5_000, 500, 64, 8, 1):
                with contextlib.suppress(RuntimeError), self.workspace:
                    while self.workspace.stats()["spilled_count"] == 0:
                        self.canaries.append(np.asarray(ndx.full(count, -77.0)))
        else:
            self.workspace.destroy()

    def close(self):
        """Check what was not to be touched."""
        self.end()
        for canary in self.canaries:
            assert (canary == -77.0).all()
        for neighbour in self.neighbours:
            assert (np.asarray(neighbour) == 7.0).all()
        self.backend.assert_untouched()


def enlarged(operand):
    """Return an array like a small one that is large enough to release the GIL."""
    if operand.ndim == 2 and operand.shape[0] == operand.shape[1]:
        # Invertible, symmetric or definite as it is.
        return np.kron(np.eye(SCALE, dtype=operand.dtype), operand)
    return np.tile(operand, (1,) * (operand.ndim - 1) + (SCALE,))


def values_of(value):
    """Return what a function returned as copies, NumPy's, in a flat list."""
    found = []
    for each in results(value):
        if isinstance(each, (list, tuple)):
            found += values_of(tuple(each))
        else:
            # A copy: the memory may be used again when this has been looked at.
            found.append(np.array(each))
    return found


class Call:
    """A public function with its operands; large, where it takes such."""

    def __init__(self, name, large):
        operands, self.call = CALLS[name]
        self.name = name
        self.function = resolve(ndx, name)
        self.operands = operands
        if large:
            self.operands = tuple(map(enlarged, operands))
            try:
                self.expected = self.run([ndx.asarray(x) for x in self.operands])
            except (ValueError, IndexError, np.linalg.LinAlgError):
                # Its other arguments are for the small ones.
                self.operands = operands
        self.nbytes = sum(-(-x.nbytes // 64) * 64 for x in self.operands)
        self.expected = self.run([ndx.asarray(x) for x in self.operands])

    def arrays(self):
        return [ndx.asarray(x, copy=True) for x in self.operands]

    def run(self, arrays):
        return values_of(self.call(self.function, *arrays))

    def check(self, arrays):
        """Assert that the result is right, or an array stale."""
        with contextlib.suppress(ndx.StaleArrayError):
            found = self.run(arrays)
            assert len(found) == len(self.expected)
            for got, expected in zip(found, self.expected, strict=True):
                assert got.shape == expected.shape
                if self.name not in UNDEFINED:
                    np.testing.assert_allclose(got, expected, rtol=1e-9, atol=1e-9)

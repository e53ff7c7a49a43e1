"""The size of memory that is used in cycles: learned from what these needed."""

cimport cython
from cpython.mem cimport PyMem_RawCalloc, PyMem_RawFree
from libc.stdint cimport SIZE_MAX

LEARN = {"none": LEARN_NONE, "first": LEARN_FIRST, "over-time": LEARN_OVER_TIME,
         "liveness": LEARN_LIVENESS}


@cython.final
@cython.binding(False)
cdef class Sizing:
    """The bytes that an arena, or each slot of a prefetch, should have.

    Parameters
    ----------
    config : WorkspaceConfig
        The policies: ``size``, ``min_size``, ``max_size``, ``overallocation``,
        ``learn``, ``cycles`` and ``spill``.
    window : int
        0: all cycles count, and the size is of whole lines and never shrinks. Else how
        many of the last cycles count, without a single outlier; a size that may grow
        shrinks, too, if that halves it.
    """

    def __cinit__(self, config, size_t window=0):
        self.window = window
        self.unit = 1 if window else LINE
        self.needs = <size_t *>PyMem_RawCalloc(window, sizeof(size_t))
        if self.needs == NULL:
            raise MemoryError("no memory to learn a size")
        self.learn = LEARN[config.learn]
        self.learn_cycles = config.cycles
        self.minimum = config.min_size
        self.maximum = config.max_size or 0
        self.overallocation = config.margin
        self.initial = ndx_round_up(config.size, self.unit)
        self.wanted = self.initial
        # A plan of lifetimes is made again when it no longer fits, and the arena with
        # it, unless the user gave the arena a size or a bound.
        self.grows = config.spill == "grow" or (
            self.learn == LEARN_LIVENESS and not config.size and config.spill != "fail")

    def __dealloc__(self):
        PyMem_RawFree(self.needs)

    cpdef void observe(self, size_t nbytes) noexcept:
        """Take note of the bytes that a cycle needed, at its end."""
        self.cycles += 1
        self.observed = self.most(nbytes)
        if self.observed == 0 and not self.window:
            return
        if self.wanted == 0 or self.provisional:
            if self.learn == LEARN_FIRST or self.learn == LEARN_LIVENESS or (
                    self.learn == LEARN_OVER_TIME and self.learn_cycles > 0
                    and self.cycles >= self.learn_cycles):
                self.choose()
        # Down only by half, so that sizes that alternate don't change it each time.
        elif self.grows and (self.observed > self.wanted or (
                self.window and self.cycles >= self.window
                and self.enough() < self.wanted / 2.0)):
            self.choose()

    cdef size_t most(self, size_t nbytes) noexcept:
        """Return the most that a cycle needed that counts, the last one included."""
        cdef size_t i, first = 0, second = 0
        if not self.window:
            return max(self.observed, nbytes)
        self.needs[(self.cycles - 1) % self.window] = nbytes
        for i in range(min(self.cycles, self.window)):
            if self.needs[i] > first:
                first, second = self.needs[i], first
            elif self.needs[i] > second:
                second = self.needs[i]
        # More than twice the next one is an outlier.
        return second if self.cycles > 2 and first / 2.0 > second else first

    cdef void reserve(self, size_t nbytes) noexcept:
        """Let the size be at least `nbytes`; cycles are learned from all the same."""
        if self.wanted == 0:
            self.provisional = True
        self.wanted = max(self.wanted, ndx_round_up(nbytes, self.unit))

    cdef void settle(self) noexcept:
        """Set the size from the cycles observed so far, within the policies' bounds."""
        if self.observed and (self.wanted == 0 or self.provisional or self.grows):
            self.choose()

    cdef size_t enough(self) noexcept:
        """Return the size by the cycles that count, within the policies' bounds."""
        cdef double size = <double>self.observed * (1 + self.overallocation)
        cdef size_t wanted = SIZE_MAX // 2
        if size < <double>wanted:
            wanted = max(self.observed, <size_t>size)
        wanted = max(wanted, self.minimum)
        if self.maximum:
            wanted = min(wanted, self.maximum)
        return ndx_round_up(wanted, self.unit)

    cdef void choose(self) noexcept:
        self.provisional = False
        self.changes += self.wanted > 0
        self.wanted = self.enough() if self.window else max(self.wanted, self.enough())

    cdef void forget(self) noexcept:
        """Forget what was learned, as in a new workspace."""
        self.wanted = self.initial
        self.provisional = False
        self.observed = 0
        self.cycles = 0

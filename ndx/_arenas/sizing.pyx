"""The size of an arena: learned from its cycles, within the policies' bounds."""

from libc.stdint cimport SIZE_MAX

LEARN = {"none": LEARN_NONE, "first": LEARN_FIRST, "over-time": LEARN_OVER_TIME,
         "liveness": LEARN_LIVENESS}


cdef class Sizing:
    """The size that an arena should have, learned from its cycles.

    Parameters
    ----------
    config : WorkspaceConfig
        The policies: ``size``, ``min_size``, ``max_size``, ``overallocation``,
        ``learn``, ``cycles`` and ``spill``.
    """

    def __cinit__(self, config):
        self.learn = LEARN[config.learn]
        self.learn_cycles = config.cycles
        self.minimum = config.min_size
        self.maximum = config.max_size or 0
        self.overallocation = config.margin
        self.initial = ndx_round_up(config.size, LINE)
        self.wanted = self.initial
        # A plan of lifetimes is made again when it no longer fits, and the arena with
        # it, unless the user gave the arena a size or a bound.
        self.grows = config.spill == "grow" or (
            self.learn == LEARN_LIVENESS and not config.size and config.spill != "fail")

    cdef void observe(self, size_t nbytes) noexcept:
        """Take note of the bytes that a cycle needed, at its end."""
        self.cycles += 1
        if nbytes > self.observed:
            self.observed = nbytes
        if self.observed == 0:
            return
        if self.wanted == 0 or self.provisional:
            if self.learn == LEARN_FIRST or self.learn == LEARN_LIVENESS or (
                    self.learn == LEARN_OVER_TIME and self.learn_cycles > 0
                    and self.cycles >= self.learn_cycles):
                self.choose()
        elif self.grows and nbytes > self.wanted:
            self.choose()

    cdef void reserve(self, size_t nbytes) noexcept:
        """Let the size be at least `nbytes`; cycles are learned from all the same."""
        if self.wanted == 0:
            self.provisional = True
        self.wanted = max(self.wanted, ndx_round_up(nbytes, LINE))

    cdef void settle(self) noexcept:
        """Set the size from the cycles observed so far, within the policies' bounds."""
        if self.observed and (self.wanted == 0 or self.provisional or self.grows):
            self.choose()

    cdef void choose(self) noexcept:
        cdef double size = <double>self.observed * (1 + self.overallocation)
        cdef size_t wanted = SIZE_MAX // 2
        self.provisional = False
        if size < <double>wanted:
            wanted = max(self.observed, <size_t>size)
        wanted = max(wanted, self.minimum)
        if self.maximum:
            wanted = min(wanted, self.maximum)
        self.wanted = max(self.wanted, ndx_round_up(wanted, LINE))

    cdef void forget(self) noexcept:
        """Forget what was learned, as in a new workspace."""
        self.wanted = self.initial
        self.provisional = False
        self.observed = 0
        self.cycles = 0

"""Creating arrays: what an allocation costs.

Sizes, of float64: 10 and 1,000 are served from the cache of small blocks;
100,000 (0.8 MB) is beyond NumPy's and glibc's; 10,000,000 (80 MB) is past 32
MiB, from where glibc asks the system anew for each block, so that every use
pays page faults, unless the pool keeps the block. Here ``mmap`` takes part: it
differs from ``host`` in what an allocation costs, not in what is computed.
"""

from .common import VARIANTS, VariantBenchmark

CREATORS = (*VARIANTS, "mmap")
SIZES = (10, 1_000, 100_000, 10_000_000)


class Create(VariantBenchmark):
    """An array, made and freed at once."""

    params = [CREATORS, SIZES]
    param_names = ["variant", "size"]

    def time_empty(self, variant, size):
        self.xp.empty(size)

    def time_zeros(self, variant, size):
        self.xp.zeros(size)
        self.synchronize()

    def time_full(self, variant, size):
        self.xp.full(size, 1.5)
        self.synchronize()

    def time_empty_filled(self, variant, size):
        x = self.xp.empty(size)
        x[...] = 1.5
        self.synchronize()

    def time_arange(self, variant, size):
        self.xp.arange(size)
        self.synchronize()


class Convert(VariantBenchmark):
    """From Python's lists, and copies."""

    params = [CREATORS, (10, 1_000)]
    param_names = ["variant", "size"]

    def setup(self, variant, size):
        super().setup(variant)
        self.list = [float(i) for i in range(size)]
        self.a = self.normal(size)

    def time_from_list(self, *_):
        self.xp.asarray(self.list)

    def time_copy(self, *_):
        self.xp.asarray(self.a, copy=True)
        self.synchronize()

    def time_astype(self, *_):
        self.xp.astype(self.a, self.xp.float32)
        self.synchronize()


class Mixed(VariantBenchmark):
    """Many sizes alive together, freed out of order, as a program does it."""

    params = [CREATORS]

    def setup(self, variant):
        super().setup(variant)
        self.sizes = [(7919 * i) % 20_000 + 1 for i in range(200)]

    def time_mixed(self, *_):
        kept = []
        for size in self.sizes:
            kept.append(self.xp.empty(size))
            if size % 3 == 0:
                del kept[size % len(kept)]

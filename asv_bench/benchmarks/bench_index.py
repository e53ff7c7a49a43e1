"""Indexing: views, elements, gathered copies, assignment.

Sizes: views and elements cost the same at any size, so they use 1,000 elements.
Copies use 1,000 (the cost of a call shows) and 1,000,000 (that of memory does).
"""

import numpy as np

from .common import VARIANTS, VariantBenchmark


class View(VariantBenchmark):
    """Keys that copy nothing."""

    def setup(self, variant):
        super().setup(variant)
        self.a = self.normal(1_000)
        self.m = self.normal((40, 25))

    def time_slice(self, *_):
        self.a[3:7]

    def time_step(self, *_):
        self.a[::-2]

    def time_column(self, *_):
        self.m[:, 0]

    def time_ellipsis_newaxis(self, *_):
        self.m[..., None]

    def time_transpose(self, *_):
        return self.m.T

    def time_reshape(self, *_):
        self.xp.reshape(self.m, (25, 40))


class Element(VariantBenchmark):
    """One element out of, and into, an array."""

    def setup(self, variant):
        super().setup(variant)
        self.a = self.normal(1_000)

    def time_get(self, *_):
        self.a[3]

    def time_float(self, *_):
        float(self.a[3])

    def time_set(self, *_):
        self.a[3] = 1.0


class Gather(VariantBenchmark):
    """Keys that copy: integers, a mask; and assignment to a slice."""

    params = [VARIANTS, (1_000, 1_000_000)]
    param_names = ["variant", "size"]

    def setup(self, variant, size):
        super().setup(variant)
        self.a = self.normal(size)
        order = np.random.default_rng(0).permutation(size)
        self.order = self.xp.asarray(order)
        self.mask = self.a > 0

    def time_take(self, *_):
        self.xp.take(self.a, self.order)
        self.synchronize()

    def time_mask(self, *_):
        self.a[self.mask]
        self.synchronize()

    def time_set_slice(self, *_):
        self.a[1:-1] = 0.0
        self.synchronize()

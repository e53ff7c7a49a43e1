"""Reductions, over everything and over one axis.

Sizes: 10 elements is the cost of a call; 1,000 fits the first-level cache;
1,000,000 (8 MB) is bound by memory. The matrix of 1,000 x 1,000 is the same
million with an axis to choose: 0 strides across rows, 1 runs along them.
"""

from .common import VARIANTS, VariantBenchmark

FUNCTIONS = ("sum", "max", "mean", "argmax")


class Whole(VariantBenchmark):
    """Every element into one."""

    params = [VARIANTS, FUNCTIONS, (10, 1_000, 1_000_000)]
    param_names = ["variant", "function", "size"]

    def setup(self, variant, name, size):
        super().setup(variant)
        self.a = self.normal(size)
        self.function = getattr(self.xp, name)

    def time_whole(self, *_):
        self.function(self.a)
        self.synchronize()


class Axis(VariantBenchmark):
    """One axis of a square matrix."""

    params = [VARIANTS, FUNCTIONS, (0, 1), (10, 1_000)]
    param_names = ["variant", "function", "axis", "side"]

    def setup(self, variant, name, axis, side):
        super().setup(variant)
        self.a = self.normal((side, side))
        self.function = getattr(self.xp, name)

    def time_axis(self, variant, name, axis, side):
        self.function(self.a, axis=axis)
        self.synchronize()


class SmallInteger(VariantBenchmark):
    """Types that are widened before they are summed; a million elements."""

    params = [VARIANTS, ("bool", "int8", "float32")]
    param_names = ["variant", "dtype"]

    def setup(self, variant, name):
        super().setup(variant)
        self.a = self.xp.astype(self.normal(1_000_000) > 0, getattr(self.xp, name))

    def time_sum(self, *_):
        self.xp.sum(self.a)
        self.synchronize()

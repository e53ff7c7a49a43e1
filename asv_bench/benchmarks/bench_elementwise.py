"""Elementwise operators and functions, and ``matmul``.

Sizes: 10 elements is the cost of a call and nothing else. 1,000 (8 kB each)
stays in the first-level cache, so that a loop's own speed shows. 100,000 (0.8
MB) fills the second-level cache, and is about where a second thread pays.
1,000,000 (8 MB) is bound by memory, and by page faults where results are fresh.
"""

import operator

from .common import VARIANTS, VariantBenchmark

SIZES = (10, 1_000, 100_000, 1_000_000)


class Binary(VariantBenchmark):
    """Two operands of one shape."""

    params = [VARIANTS, ("add", "multiply", "truediv", "lt"), SIZES]
    param_names = ["variant", "operator", "size"]

    def setup(self, variant, name, size):
        super().setup(variant)
        self.a, self.b = self.normal(size, 0), self.normal(size, 1)
        self.operator = getattr(operator, {"multiply": "mul"}.get(name, name))

    def time_binary(self, *_):
        self.operator(self.a, self.b)
        self.synchronize()


class Scalar(VariantBenchmark):
    """An array and a Python number; and in place."""

    params = [VARIANTS, SIZES]
    param_names = ["variant", "size"]

    def setup(self, variant, size):
        super().setup(variant)
        self.a, self.b = self.normal(size, 0), self.normal(size, 1)

    def time_multiply_by_float(self, *_):
        self.a * 2.0
        self.synchronize()

    def time_add_in_place(self, *_):
        self.a += self.b
        self.synchronize()


class Unary(VariantBenchmark):
    """Functions of one array: one that memory bounds, two that arithmetic does."""

    params = [VARIANTS, ("negative", "exp", "sin"), SIZES]
    param_names = ["variant", "function", "size"]

    def setup(self, variant, name, size):
        super().setup(variant)
        self.a = self.normal(size)
        self.function = getattr(self.xp, name)

    def time_unary(self, *_):
        self.function(self.a)
        self.synchronize()


class Layout(VariantBenchmark):
    """Square operands, one of which is not contiguous or is repeated."""

    params = [VARIANTS, (10, 1_000)]
    param_names = ["variant", "side"]

    def setup(self, variant, side):
        super().setup(variant)
        self.a, self.b = self.normal((side, side), 0), self.normal((side, side), 1)
        self.row = self.b[0, :]

    def time_transposed(self, *_):
        self.a.T + self.b
        self.synchronize()

    def time_broadcast(self, *_):
        self.a + self.row
        self.synchronize()


class Matmul(VariantBenchmark):
    """10 is all overhead; 300 (0.7 MB a matrix) is all BLAS."""

    params = [VARIANTS, (10, 300)]
    param_names = ["variant", "side"]

    def setup(self, variant, side):
        super().setup(variant)
        self.a, self.b = self.normal((side, side), 0), self.normal((side, side), 1)

    def time_matmul(self, *_):
        self.a @ self.b
        self.synchronize()

    def time_matmul_after_add(self, *_):
        """Loop threads and BLAS threads in turn: they must not fight over cores."""
        (self.a + self.b) @ self.b
        self.synchronize()

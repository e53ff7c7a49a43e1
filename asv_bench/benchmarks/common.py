"""The base class of the benchmarks, and the names of what they compare."""

import contextlib
import importlib
import tempfile

import numpy as np
from asv_runner.benchmarks.mark import SkipNotImplemented

import ndx

# The first is the baseline; the others are ndx on that backend.
VARIANTS = ("numpy", "host", "cuda:0")


class VariantBenchmark:
    """A benchmark whose first parameter is NumPy or a backend of ndx.

    `setup` sets ``self.xp`` to the namespace, with the backend chosen until
    `teardown`; where the backend is absent, the benchmark is skipped. Timings
    end in ``self.synchronize()``, which waits for a device to be done.
    """

    params = [VARIANTS]
    param_names = ["variant"]

    def setup(self, variant, *_):
        """Choose the backend, or skip."""
        self.synchronize = no_wait
        self._context = contextlib.ExitStack()
        if variant == "numpy":
            self.xp = np
            return
        self.xp = ndx
        try:
            self._enter(variant)
            ndx.zeros((1,))
        except (ValueError, RuntimeError, ImportError, OSError, MemoryError) as error:
            self._context.close()
            msg = f"backend {variant!r}: {error}"
            raise SkipNotImplemented(msg) from error

    def teardown(self, *_):
        """Leave the backend."""
        self._context.close()

    def normal(self, shape, seed=0):
        """Return standard normal numbers, float64, the same for each variant."""
        numbers = np.random.default_rng(seed).standard_normal(shape)
        return self.xp.asarray(numbers, copy=True)

    def _enter(self, backend):
        options = {}
        if backend == "mmap":
            folder = tempfile.TemporaryDirectory(prefix="ndx-bench-")
            options["directory"] = self._context.enter_context(folder)
        elif backend.startswith("cuda"):
            cupy = importlib.import_module("cupy")  # slow, and rarely there
            self.synchronize = cupy.cuda.runtime.deviceSynchronize
        self._context.enter_context(ndx.use(backend, **options))


def no_wait():
    """Return at once: host work is done when its call returns."""

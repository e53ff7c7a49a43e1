"""Calls of `ndx.numpy` on small and large arrays, beside NumPy.

The calls are those of ``benchmarks/face_calls.py``.
"""

import sys
from pathlib import Path

import numpy as np

import ndx
import ndx.numpy

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

from face_calls import CALLS, operands

SIZES = (10, 300, 100_000)


class Face:
    """One call of a function of NumPy's."""

    params = [("numpy", "ndx"), tuple(CALLS), SIZES]
    param_names = ["variant", "call", "size"]

    def setup(self, variant, call, size):
        """Make the operands, and compile the call."""
        plain, values = operands(size)
        if variant == "ndx":
            values = {
                name: ndx.asarray(value, copy=True) for name, value in values.items()
            }
        values |= plain | {"np": np if variant == "numpy" else ndx.numpy}
        exec(f"def run():\n    np.{call}\n", values)
        self.run = values["run"]
        self.run()

    def time_call(self, *_):
        """Time one call."""
        self.run()

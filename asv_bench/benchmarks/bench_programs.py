"""Small programs of NumPy's, beside NumPy: ``benchmarks/program_cases.py``."""

import sys
from pathlib import Path

import numpy as np

import ndx.numpy

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

from program_cases import PROGRAMS


class Programs:
    """One program, which loops over rows, elements and short slices."""

    params = [("numpy", "ndx"), tuple(each.__name__ for each in PROGRAMS)]
    param_names = ["variant", "program"]

    def setup(self, variant, name):
        """Find the program."""
        self.namespace = np if variant == "numpy" else ndx.numpy
        self.run = {each.__name__: each for each in PROGRAMS}[name]
        self.run(self.namespace, 1)

    def time_program(self, *_):
        """Time one run."""
        self.run(self.namespace, 1)

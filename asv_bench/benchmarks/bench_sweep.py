"""Every function, operator and method of the sweep, and the peak of memory.

The cases are those of ``benchmarks/sweep_cases.py``, float64 and contiguous, of 100
elements (the cost of a call) and 1,000,000 (bound by memory).
"""

import sys
from pathlib import Path

import numpy as np

import ndx
import ndx.numpy

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

from sweep_cases import Operands, cases
from timing import names_in

SIZES = (100, 1_000_000)
CODES = {}
for case in cases():
    CODES.setdefault(case.group, {}).setdefault(case.code, case)


class _Sweep:
    """The benchmarks of one group; NumPy and ndx side by side."""

    group = None
    param_names = ["variant", "code", "size"]

    def setup(self, variant, code, size):
        """Make the operands, and compile the code to a function without arguments."""
        case = CODES[self.group][code]
        if size not in case.sizes:
            raise NotImplementedError
        operands = Operands(size, case.dtypes[0], "contiguous")
        makers, plain = operands.arrays(), operands.plain()
        values = {"xp": np, "np": np}
        if variant == "ndx":
            values = {"xp": ndx, "np": ndx.numpy}
        for name in sorted(names_in(code)):
            if name in makers:
                array = makers[name]()
                values[name] = (
                    ndx.asarray(array, copy=True) if variant == "ndx" else array
                )
            elif name in plain:
                values[name] = plain[name]()
        used = sorted(names_in(code) & values.keys())
        arguments = ", ".join(f"{name}={name}" for name in used)
        exec(f"def run({arguments}):\n    {code}\n", values)
        self.run = values["run"]
        self.before = np.seterr(all="ignore")
        self.run()

    def teardown(self, *_):
        """Let NumPy warn again."""
        if hasattr(self, "before"):
            np.seterr(**self.before)

    def time_code(self, *_):
        """Time one run."""
        self.run()

    def peakmem_code(self, *_):
        """Measure the peak of the process."""
        self.run()


# asv finds classes by name: one for each group.
for _group, _codes in CODES.items():
    globals()[_group.title()] = type(
        _group.title(),
        (_Sweep,),
        {
            "__doc__": f"The group {_group!r} of the sweep.",
            "__module__": __name__,
            "group": _group,
            "params": [("numpy", "ndx"), tuple(_codes), SIZES],
        },
    )
del _group, _codes

"""The time and memory of ``import ndx``, in a fresh process.

There is no size to choose; ``import numpy`` is the baseline, since ndx imports
it. What else ndx imports (and CuPy must never be among it) is the difference.
"""

import ndx


def timeraw_import_numpy():
    """Return code that asv runs, and times, in a process of its own."""
    return "import numpy"


def timeraw_import_ndx():
    """Return code that asv runs, and times, in a process of its own."""
    return "import ndx"


def timeraw_first_array():
    """Return code for the import, with the first array and its first sum."""
    return "import ndx; float(ndx.sum(ndx.ones(10)))"


def peakmem_import():
    """Measure the process of this benchmark, which has imported ndx."""
    ndx.ones(1)

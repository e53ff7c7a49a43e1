"""Where arrays lie: in memory, in files of a backend, or in ones that were opened."""

import contextlib
import itertools
import os

import numpy as np
from hypothesis import strategies as st

import ndx
from differential.engine import spread_out

# How passes are made: all operands stay in memory, some do, or none; of one block, of
# many, and with more threads than there are blocks.
OPTIONS = st.fixed_dictionaries({
    "memory": st.sampled_from(["1GiB", "200KiB", 0]),
    "threads": st.sampled_from([1, 2, 5]),
    "block": st.sampled_from(["4KiB", "64KiB", "64MiB"]),
})  # fmt: skip


class Places:
    """Makes arrays of NumPy's in files of a folder, and next to them.

    Parameters
    ----------
    folder : str or os.PathLike
        Where the files are.
    """

    def __init__(self, folder):
        self.folder = folder
        self.backend = ndx.backends.MmapBackend(directory=folder)
        self.numbers = itertools.count()
        self.backends = st.sampled_from([self.backend, "host"])
        self.ways = st.sampled_from([
            self.host,
            ndx.asarray,
            self.file,
            self.file,
            self.spread,
            lambda array: self.opened(array, "r"),
            lambda array: self.opened(array, "c"),
        ])  # fmt: skip

    def host(self, array):
        with ndx.use("host"):
            return ndx.asarray(array, copy=True)

    def file(self, array):
        with ndx.use(self.backend):
            return ndx.asarray(array, copy=True)

    def spread(self, array):
        with ndx.use(self.backend):
            return spread_out(array)

    def opened(self, array, mode):
        path = os.path.join(self.folder, f"{next(self.numbers) % 8}.npy")
        ndx.save(path, array)
        if array.size == 0:
            return ndx.load(path)
        return ndx.open(path, mode)

    def change(self, data):
        """Return the change of arguments to arrays at places that are drawn."""

        def change(value):
            return value if isinstance(value, np.dtype) else data.draw(self.ways)(value)

        return change

    @contextlib.contextmanager
    def passing(self, data):
        """Make passes of all that may be one; results lie in files, or do not."""
        backend = data.draw(self.backends)
        options = data.draw(OPTIONS)
        with ndx.use(backend), ndx.passes(threshold=0, **options):
            yield

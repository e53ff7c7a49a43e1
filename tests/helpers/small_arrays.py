"""Small arrays of NumPy's, drawn by Hypothesis."""

import numpy as np
from hypothesis import strategies as st

__all__ = ["arrays"]

TYPES = ["bool", "int8", "uint16", "int64", "float16", "float32", "float64"]
TYPES += ["complex128"]


def arrays(shapes):
    """Draw a shape, a dtype, steps and special values, and return NumPy's array."""

    def make(shape, dtype, step, seed, special):
        rng = np.random.default_rng(seed)
        found = rng.normal(size=[2 * n for n in shape]) * 3
        # NumPy's quantiles of the largest integers overflow, ours do not.
        if found.size and (np.isfinite(special) or np.dtype(dtype).kind in "fc"):
            found.flat[rng.integers(found.size)] = special
        with np.errstate(all="ignore"):
            found = np.asarray(found).astype(dtype)
        cut = {1: slice(None), 2: slice(None, None, 2), -1: slice(None, None, -1)}[step]
        return found[(cut,) * len(shape)]

    return st.builds(
        make,
        st.sampled_from(shapes),
        st.sampled_from(TYPES),
        st.sampled_from([1, 2, -1]),
        st.integers(0, 99),
        st.sampled_from([0.0, -0.0, 1.0, np.nan, np.inf, -np.inf]),
    )

"""`ndx.numpy.vectorize`."""

import numpy as np

from ndx._numpy.wrappers import call_function

__all__ = ["vectorize"]


class vectorize(np.vectorize):
    """`numpy.vectorize`, whose results are NDArrays.

    Examples
    --------
    >>> import ndx.numpy as np
    >>> np.vectorize(lambda a, b: max(a, b))([1, 5], [3, 2])
    NDArray([3, 5])
    """

    def __call__(self, *args, **kwargs):
        """Call the function for each element."""
        return call_function(super().__call__, *args, **kwargs)

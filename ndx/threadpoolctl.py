"""ndx's threads under the limits of threadpoolctl.

Nobody has to import this module: ndx does when threadpoolctl is imported, by a program
or by a library such as scikit-learn. ``threadpool_limits(n)`` then also sets how many
threads compute ndx's large operations, and restores the number.

Examples
--------
>>> import ndx, threadpoolctl
>>> with threadpoolctl.threadpool_limits(1):
...     ndx.get_num_threads()
1
"""

import threadpoolctl

from ndx._compute.threads import get_num_threads, set_num_threads

__all__ = ["Controller", "register"]

# The most threads that `set_num_threads` takes.
MOST_THREADS = 256


class Controller(threadpoolctl.LibController):
    """threadpoolctl's controller of ndx's threads, which are none of OpenMP's."""

    user_api = "ndx"
    internal_api = "ndx"
    # The library with the pool; others of this name lack its function.
    filename_prefixes = ("_compiled.",)
    check_symbols = ("ndx_parallel_for",)

    def get_num_threads(self):
        """Return how many threads compute a large operation."""
        return get_num_threads()

    def set_num_threads(self, num_threads):
        """Set how many threads compute a large operation, as far as ndx can."""
        set_num_threads(max(1, min(num_threads, MOST_THREADS)))

    def get_version(self):
        """Return None: the pool has no version of its own."""
        return


def register():
    """Register `Controller`."""
    threadpoolctl.register(Controller)

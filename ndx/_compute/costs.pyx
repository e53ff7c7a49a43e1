"""The model of cost: how long a job takes, and what pays from which time on.

A job's time is that of moving its bytes and of computing its elements. The constants
were measured on a desktop processor of 2023. They need not be exact: near a bound both
ways take about the same time. Results depend on none of them.
"""

__all__ = ["cost_model"]

# Cycles that an element takes, of operations that compute for longer than they read
# and write: between those of float32 and of float64, by NumPy's loops with AVX-512.
CYCLES = {
    "acos": 4, "acosh": 6, "asin": 4, "asinh": 6, "atan": 3, "atan2": 5, "atanh": 4,
    "cos": 8, "cosh": 2, "exp": 2, "expm1": 2, "floor_divide": 9, "hypot": 20, "log": 3,
    "log10": 2, "log1p": 4, "log2": 2, "logaddexp": 60, "nextafter": 12, "pow": 6,
    "remainder": 39, "sin": 8, "sinh": 4, "tan": 5, "tanh": 3,
}


cdef void set_defaults() noexcept:
    costs.bandwidth = 80
    costs.cycle = 0.3
    costs.direct = 1_000
    costs.cut = 4_000
    costs.threads = 15_000
    costs.part = 3_000


set_defaults()


cdef int cycles_of(str name) except -1:
    """Return the cycles of an element of an operation, besides the memory's time."""
    return CYCLES.get(name, 0)


def stage_time(Py_ssize_t elements, double cycles):
    """Return how long one thread takes for elements that stay in the cache, in ns."""
    return int(elements * cycles * costs.cycle)


def cost_model() -> dict[str, float]:
    """Return what decides how an operation on many elements is computed.

    The time of an operation is estimated: that of moving its bytes, and of computing
    its elements. Short ones are computed at once, longer ones without the GIL, and the
    longest by several threads, part by part; arrays in large files in passes. While
    operations follow one another, threads stay awake, and share shorter ones, too.

    Returns
    -------
    dict
        ``bandwidth`` in bytes a nanosecond, of one core; ``cycle``, of an element's
        computation, in nanoseconds; ``without_gil``, ``on_threads`` and
        ``on_awake_threads``, the estimates from which an operation is computed so, and
        ``part``, that of a thread's part, in seconds.

    See Also
    --------
    get_num_threads : How many threads there are.
    passes : Operations on arrays in large files.

    Notes
    -----
    Results don't depend on any of it. ``python -m ndx info`` shows the numbers, too.

    Examples
    --------
    >>> import ndx
    >>> model = ndx.cost_model()
    >>> model["part"] < model["on_threads"]
    True
    """
    return {
        "bandwidth": costs.bandwidth,
        "cycle": costs.cycle,
        "without_gil": costs.direct * 1e-9,
        "on_awake_threads": costs.cut * 1e-9,
        "on_threads": costs.threads * 1e-9,
        "part": costs.part * 1e-9,
    }

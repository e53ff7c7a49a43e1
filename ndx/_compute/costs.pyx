"""The model of cost: how long a job takes, and what pays from which time on.

A job's time is that of moving its bytes and of computing its elements. The constants
were measured on a desktop processor of 2023. They need not be exact: near a bound both
ways take about the same time. Results depend on none of them.
"""

__all__ = ["model"]

# Cycles that an element takes, of operations that compute for longer than they read
# and write.
CYCLES = {
    "acos": 12, "acosh": 12, "asin": 12, "asinh": 12, "atan": 12, "atan2": 12,
    "atanh": 12, "cos": 12, "cosh": 12, "exp": 8, "expm1": 12, "floor_divide": 12,
    "hypot": 12, "log": 8, "log10": 12, "log1p": 12, "log2": 8, "logaddexp": 12,
    "nextafter": 8, "pow": 16, "remainder": 12, "sin": 12, "sinh": 12, "tan": 12,
    "tanh": 12,
}


cdef void set_defaults() noexcept:
    costs.bandwidth = 20
    costs.cycle = 0.3
    costs.direct = 4_000
    costs.threads = 100_000
    costs.part = 12_500


set_defaults()


cdef int cycles_of(str name) except -1:
    """Return the cycles of an element of an operation, besides the memory's time."""
    return CYCLES.get(name, 0)


def model() -> dict[str, float]:
    """Return the constants of the model by name, for reports."""
    return {
        "bytes of one core in a nanosecond": costs.bandwidth,
        "nanoseconds of a cycle": costs.cycle,
        "microseconds from which the GIL is released": costs.direct / 1000,
        "microseconds from which threads help": costs.threads / 1000,
        "microseconds of a thread's part": costs.part / 1000,
    }

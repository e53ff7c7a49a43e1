# What decides how a job is computed; times in nanoseconds.
cdef struct Costs:
    double bandwidth                 # bytes that one core moves in a nanosecond
    double cycle
    double direct                    # jobs of less are computed with the GIL
    double cut                       # jobs of more are cut, for threads that are awake
    double threads                   # jobs of more are computed on all threads
    double part                      # time of a part that a thread takes

cdef Costs costs

cdef enum:
    # Elements from which the GIL is released. Releasing and acquiring it costs about
    # as much as computing a few hundred elements.
    LARGE = 32768

cdef int cycles_of(str name) except -1

cdef inline double time_of(Py_ssize_t elements, Py_ssize_t nbytes,
                           int cycles) noexcept nogil:
    """Return how long one thread takes for elements of so many bytes and cycles."""
    return elements * (nbytes / costs.bandwidth + cycles * costs.cycle)

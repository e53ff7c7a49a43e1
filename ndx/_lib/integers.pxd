cdef extern from "ndx/internal/integers.h":
    long long int_value "ndx_int_value"(object x, int *overflow) noexcept

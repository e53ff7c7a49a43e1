from ndx._array.pinning cimport Compute, Operands
from ndx._compute.tiles cimport Job
from ndx._lib.layout cimport Walk

cdef int run(Job *job, str name) except -1
cdef void cut_into_parts(Job *job, double time) noexcept
cdef double job_time(const Job *job) noexcept
cdef bint pays_alone(double time) noexcept nogil

from ndx._compute.tiles cimport Job

cdef int run(Job *job, str name) except -1
cdef double job_time(const Job *job) noexcept
cdef bint pays_alone(double time) noexcept nogil

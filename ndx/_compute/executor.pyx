"""The executor: how jobs are computed.

A job is a kernel and a walk over operands (`_compute.tiles.Job`). `run` alone decides
how it is computed: directly; without the GIL and with its operands pinned; in parts
that threads take in turn; or, if operands are in large files, in a pass
(`_compute.passes.run`). How a walk is cut depends on its layout, never on the number of
threads, so that results do not, either. Between parts, the calling thread looks for
Ctrl-C.
"""

from ndx._array.pinning cimport (
    compute_held, compute_on, hold, let_go, locate, recheck_all,
)
from ndx._compute.costs cimport LARGE, costs, time_of
from ndx._compute.passes.run cimport run_pass
from ndx._compute.threads cimport parallel_for
from ndx._compute.tiles cimport (
    Job, compute_tile, count_tiles, cut, element_bytes, set_order, walk_size,
)
from ndx._lib.layout cimport Walk

cdef extern from "ndx/internal/thread_pool.h" nogil:
    bint ndx_threads_are_near()

cdef enum:
    LINE = 64                    # elements: whole cache lines of any dtype


cdef double job_time(const Job *job) noexcept:
    """Return how long one thread takes for a job, in nanoseconds."""
    return time_of(walk_size(job.walk), element_bytes(job.walk, job.itemsizes),
                   job.cycles)


cdef int run(Job *job, str name) except -1:
    """Compute a job; Ctrl-C may end it between two parts.

    `name` is the operation's, for the user's callback.
    """
    cdef double time = job_time(job)
    job.time = time
    if walk_size(job.walk) == 0:
        # Kernels expect elements.
        locate(job.operands)
        return recheck_all(job.operands)
    if time < costs.direct and walk_size(job.walk) < LARGE:
        return compute_on(job.operands, job.walk, job.kernel, job.arg, False)
    hold(job.operands)
    try:
        if run_pass(job, name):
            return 0
        job.data = job.operands.data
        if job.grid.total == 0:
            cut_into_parts(job, time)
        compute_held(job.operands, job.walk, run_tiles, job)
    finally:
        let_go(job.operands)
    return 0


cdef void run_tiles(void *arg, char **data, const Walk *walk) noexcept nogil:
    cdef Job *job = <Job *>arg
    parallel_for(job.grid.total, job.in_order or pays_alone(job.time), compute_tile,
                 job)


cdef bint pays_alone(double time) noexcept nogil:
    """Whether to wake threads would take longer than their help is worth."""
    return time < costs.threads and not ndx_threads_are_near()


cdef void cut_into_parts(Job *job, double time) noexcept:
    """Cut a job into parts, or into one if threads don't pay."""
    cdef const Walk *walk = job.walk
    cdef Py_ssize_t nbytes = walk_size(walk) * element_bytes(walk, job.itemsizes)
    cdef int last = walk.ndim - 1
    set_order(job)
    if time >= costs.cut:
        # Parts of one time.
        nbytes = <Py_ssize_t>(nbytes * (costs.part / time))
    cut(&job.grid, walk, job.itemsizes, nbytes, -1, 0)
    if last >= 0 and job.grid.tile[last] < walk.shape[last]:
        # No two threads write to one cache line.
        job.grid.tile[last] += -job.grid.tile[last] & (LINE - 1)
        count_tiles(&job.grid)

"""Sorting the lines of an array on threads, each by NumPy's own sort.

One long line is left to one thread: to merge two sorted halves takes longer than NumPy
takes to sort one of them (measured, 10^6 elements).
"""

from libc.stdlib cimport free, malloc

from ndx._array.pinning cimport Operands, recheck_all, unlocked
from ndx._array.storage cimport BaseArray
from ndx._compute.aliasing cimport has_distinct_elements
from ndx._compute.array_functions cimport SortFunction, array_functions
from ndx._compute.threads cimport parallel_for, thread_count
from ndx._compute.transfers cimport Transfer, transfer_block
from ndx._lib.dtypes cimport COMPLEX64, itemsize_of

cdef extern from "ndx/internal/thread_pool.h" nogil:
    void ndx_raise_flag(int *flag)

cdef enum:
    WORTHWHILE = 1 << 16         # elements from which threads pay
    PART = 1 << 14               # elements of lines that a thread takes at a time
    TOGETHER = 8                 # lines with gaps that are sorted in a buffer

# A sort of an array; its lines have one step between their elements.
cdef struct Sort:
    SortFunction sort
    void *sample
    char *data
    Py_ssize_t itemsize
    Py_ssize_t length                # of a line
    Py_ssize_t step                  # bytes from element to element
    Py_ssize_t lines
    Py_ssize_t line_step             # bytes from line to line
    Py_ssize_t lines_at_once
    int failed                       # there was no memory


# ---------------------------------------------------------------- lines

cdef void sort_lines(void *arg, Py_ssize_t index) noexcept nogil:
    cdef Sort *job = <Sort *>arg
    cdef Py_ssize_t first = index * job.lines_at_once
    cdef Py_ssize_t last = min(first + job.lines_at_once, job.lines), count, i
    cdef Py_ssize_t nbytes = job.length * job.itemsize
    cdef Transfer how
    cdef char *room
    if job.step == job.itemsize:
        for i in range(first, last):
            if job.sort(job.data + i * job.line_step, job.length, job.sample) < 0:
                ndx_raise_flag(&job.failed)
        return
    room = <char *>malloc(TOGETHER * nbytes)
    if room == NULL:
        ndx_raise_flag(&job.failed)
        return
    how.cast = NULL
    how.itemsize = job.itemsize
    while first < last:
        count = min(TOGETHER, last - first)
        transfer_block(&how, room, nbytes, job.itemsize,
                       job.data + first * job.line_step, job.line_step, job.step,
                       count, job.length)
        for i in range(count):
            if job.sort(room + i * nbytes, job.length, job.sample) < 0:
                ndx_raise_flag(&job.failed)
        transfer_block(&how, job.data + first * job.line_step, job.line_step,
                       job.step, room, nbytes, job.itemsize, count, job.length)
        first += count
    free(room)


# ---------------------------------------------------------------- arrays

cdef void run_sort(void *arg) noexcept nogil:
    cdef Sort *job = <Sort *>arg
    parallel_for((job.lines + job.lines_at_once - 1) // job.lines_at_once, sort_lines,
                 job)


cdef bint find_sort(Sort *job, int dtype, bint stable) noexcept:
    """Set NumPy's sort of a dtype; return whether there is one."""
    job.sort = array_functions[dtype].stable_sort if stable \
        else array_functions[dtype].sort
    job.sample = array_functions[dtype].sample
    return job.sort != NULL


cdef bint sort_few(Operands *located, int axis, bint stable) except -1:
    """Sort operand 0, of few elements, in place; return whether that was done."""
    cdef BaseArray x = <BaseArray>located.arrays[0]
    cdef Sort job
    if not x.c_contiguous or axis != x.ndim - 1 or x.dtype >= COMPLEX64 \
            or not find_sort(&job, x.dtype, stable):
        return False
    job.data = located.data[0]
    job.step = job.itemsize = itemsize_of[x.dtype]
    job.length = x.shape[axis]
    job.line_step = job.length * job.itemsize
    job.lines = job.lines_at_once = x.size // job.length
    job.failed = False
    sort_lines(&job, 0)
    recheck_all(located)
    # Lines that are sorted can be sorted again.
    return not job.failed


cdef bint sort_on_threads(Operands *held, int axis, bint stable) except -1:
    """Sort operand 0, which is held, in place; return whether that was done."""
    cdef BaseArray x = <BaseArray>held.arrays[0]
    cdef Sort job
    if x.size < WORTHWHILE or thread_count() < 2 or x.dtype >= COMPLEX64:
        return False
    job.itemsize = itemsize_of[x.dtype]
    job.data = held.data[0]
    job.length = x.shape[axis]
    job.step = x.strides[axis]
    job.lines = x.size // job.length
    job.line_step = job.length * job.itemsize
    if x.ndim == 2:
        job.line_step = x.strides[1 - axis]
        if not has_distinct_elements(x):
            # Lines that share elements are for one thread.
            return False
    elif not x.c_contiguous or axis != x.ndim - 1:
        return False
    if job.lines == 1:
        return False
    job.lines_at_once = max(1, PART // job.length)
    if job.step != job.itemsize:
        # Whole cache lines.
        job.lines_at_once += -job.lines_at_once & (TOGETHER - 1)
    job.failed = False
    if not find_sort(&job, x.dtype, stable):
        return False
    unlocked(held, run_sort, &job)
    # Lines that are sorted can be sorted again.
    return not job.failed

"""Passes made of other operations, on one part of the arrays after the other.

They are for functions without a loop that could be cut into tiles. Between two parts,
as in any pass, the kernel is advised, Ctrl-C is checked, and the user's callback is
called. The operations on parts are no passes themselves.
"""

from ndx._array.pinning cimport Operands, hold, let_go, put, unlocked
from ndx._array.storage cimport BaseArray, data_of, new_view, set_layout
from ndx._compute.passes.run cimport (
    DROP, READ_AHEAD, WRITE_AND_DROP, Advice, Operand, advise_part, find_file, report,
)
from ndx._compute.passes.settings cimport (
    Settings, memory_for_pages, resume, settings, suspend,
)
from ndx._compute.passes.tiles cimport Grid, cut, find_place
from ndx._files.mapping cimport enter_files, leave_files
from ndx._lib.dtypes cimport itemsize_of
from ndx._lib.layout cimport MAXDIMS, Walk

from ndx._context.use import use


cdef extern from "ndx/internal/arithmetic.h":
    Py_ssize_t ndx_add_most(Py_ssize_t a, Py_ssize_t b) nogil


cdef Steps steps_over(str name, object arrays):
    """Begin a pass if the arrays (or None) are large and in files, else return None."""
    cdef Settings now = settings()
    cdef Steps steps
    cdef BaseArray x
    cdef Operand operand
    cdef Py_ssize_t total = 0
    cdef bint found = False
    for each in arrays:
        if each is None:
            continue
        x = <BaseArray>each
        total = ndx_add_most(total, x.size * itemsize_of[x.dtype])
        operand.data = data_of(x)
        find_file(&operand)
        found = found or operand.mapped
    if not found or total == 0 or total < now.threshold:
        return None
    steps = Steps()
    steps.now = now
    steps.name = name
    steps.total = total
    steps.memory = memory_for_pages(now)
    steps.streaming = total > steps.memory
    steps.enter()
    return steps


cdef class Steps:
    """One pass, from `steps_over` to `end`.

    Its temporaries are in plain memory: neither in a workspace, which would keep them,
    nor in files.
    """

    cdef int enter(self) except -1:
        self.scope = use("host")
        self.scope.__enter__()
        self.token = suspend()
        return 0

    cdef int advise(self, BaseArray part, Advice advice, bint written) except -1:
        """Advise the kernel about the pages of a part."""
        cdef Operands operands
        cdef Advised advised
        operands.count = 0
        put(&operands, part)
        hold(&operands)
        try:
            advised.operand.data = operands.data[0]
            advised.operand.itemsize = itemsize_of[part.dtype]
            advised.operand.written = written
            advised.advice = advice
            find_file(&advised.operand)
            if advised.operand.mapped and part.size:
                as_walk(part, &advised.walk)
                unlocked(&operands, give_advice, &advised)
        finally:
            let_go(&operands)
        return 0

    cdef int ahead(self, BaseArray part) except -1:
        """Start reading a part that comes next from the disk."""
        return self.advise(part, READ_AHEAD, False)

    cdef int behind(self, BaseArray part) except -1:
        """Drop a part that was read, if not everything fits in memory."""
        return self.advise(part, DROP, False) if self.streaming else 0

    cdef int written(self, BaseArray part) except -1:
        """Write a part to the disk and drop it, if not everything fits in memory."""
        return self.advise(part, WRITE_AND_DROP, True) if self.streaming else 0

    cdef int step(self, Py_ssize_t nbytes) except -1:
        """Check for Ctrl-C and call the user's callback, after `nbytes` more bytes."""
        self.done = min(self.done + nbytes, self.total)
        # The callback runs with the user's settings and backend.
        self.end()
        try:
            report(self.now, self.done, self.total, self.name)
        finally:
            self.enter()
        return 0

    cdef int end(self) except -1:
        """Restore the caller's settings and backend."""
        resume(self.token)
        self.scope.__exit__(None, None, None)
        return 0


# Arguments of `give_advice`.
cdef struct Advised:
    Operand operand
    Walk walk
    Advice advice


cdef void give_advice(void *arg) noexcept nogil:
    cdef const Advised *advised = <const Advised *>arg
    enter_files()
    advise_part(&advised.operand, advised.operand.data, &advised.walk, 0,
                advised.advice)
    leave_files()


cdef void as_walk(BaseArray x, Walk *walk) noexcept:
    cdef int axis
    walk.ndim = x.ndim
    walk.nops = 1
    for axis in range(x.ndim):
        walk.shape[axis] = x.shape[axis]
        walk.strides[0][axis] = x.strides[axis]


cdef list boxes_of(BaseArray x, Py_ssize_t nbytes):
    """Return boxes of about `nbytes`, in C order, that cover an array.

    A box has a pair (start, stop) for each axis, and is as compact in memory as
    possible.
    """
    cdef Walk walk
    cdef Grid grid
    cdef Py_ssize_t itemsize = itemsize_of[x.dtype], i
    cdef Py_ssize_t place[MAXDIMS]
    if x.size == 0:
        return []
    as_walk(x, &walk)
    cut(&grid, &walk, &itemsize, nbytes, -1, 0)
    found = []
    for i in range(grid.total):
        find_place(&grid, i, place)
        found.append(tuple([
            (place[axis] * grid.tile[axis],
             min((place[axis] + 1) * grid.tile[axis], grid.shape[axis]))
            for axis in range(x.ndim)]))
    return found


cdef BaseArray part_of(BaseArray x, tuple box):
    """Return a view of an array's elements in a box; axes of length 1 stay whole."""
    cdef BaseArray view = new_view(x, x.ndim)
    cdef Py_ssize_t start, stop
    cdef int axis
    for axis in range(x.ndim):
        start, stop = box[axis]
        view.shape[axis] = x.shape[axis]
        view.strides[axis] = x.strides[axis]
        if x.shape[axis] != 1:
            view.shape[axis] = stop - start
            view.offset += start * x.strides[axis]
    set_layout(view)
    return view

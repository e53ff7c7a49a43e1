"""Passes made of other operations, on one part of the arrays after the other.

They are for functions without a loop that could be cut into tiles. Between two parts,
as in any pass, the kernel is advised, Ctrl-C is checked, and the user's callback is
called. The operations on parts are no passes themselves.
"""

cimport numpy as cnp
from libc.math cimport sqrt

import numpy as np

from ndx._array.pinning cimport Operands, hold, let_go, put, unlocked, view_of
from ndx._array.storage cimport BaseArray, data_of, new_empty, new_view, set_layout
from ndx._compute.copies cimport cast, copy_into
from ndx._compute.elementwise cimport inplace
from ndx._compute.loops cimport Ufunc, find_ufunc
from ndx._compute.passes.run cimport (
    DROP, READ_AHEAD, WRITE_AND_DROP, Advice, Operand, advise_part, find_file, report,
)
from ndx._compute.passes.settings cimport (
    Settings, memory_for_pages, resume, settings, suspend,
)
from ndx._compute.tiles cimport Grid, cut, find_place
from ndx._files.mapping cimport enter_files, leave_files
from ndx._lib.dtypes cimport FLOAT16, FLOAT32, itemsize_of
from ndx._lib.layout cimport MAXDIMS, Walk, magnitude

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


# ---- Products of matrices, panel by panel --------------------------------------------

cdef Ufunc ADD = find_ufunc("add")

# The lengths of panels along the axes of (m, k) @ (k, n).
cdef struct Panels:
    Py_ssize_t m
    Py_ssize_t k
    Py_ssize_t n


cdef Panels choose(BaseArray a, BaseArray b, Py_ssize_t budget,
                   Py_ssize_t memory) noexcept:
    """Return panels of about `budget` elements that are rarely read twice."""
    cdef Py_ssize_t m = a.shape[0], k = a.shape[1], n = b.shape[1], side
    cdef Panels panels
    cdef bint of_a = a.size >= b.size
    cdef BaseArray large = a if of_a else b
    cdef bint by_rows = magnitude(large.strides[0]) >= magnitude(large.strides[1])
    panels.m = m
    panels.k = k
    panels.n = n
    if min(a.size, b.size) <= memory // 2:
        # The smaller operand stays in memory. The larger one is read once, in order.
        if of_a and by_rows and k <= budget:
            panels.m = max(1, budget // k)
            return panels
        if not of_a and not by_rows and k <= budget:
            panels.n = max(1, budget // k)
            return panels
        if of_a != by_rows and m * n <= budget:
            panels.k = max(1, budget // max(1, m if of_a else n))
            return panels
    # Compute the result in squares, each from a row of panels of both operands.
    side = max(1, <Py_ssize_t>sqrt(<double>max(budget, memory // 4)))
    panels.m = min(m, side)
    panels.n = min(n, side)
    panels.k = min(k, side)
    return panels


cdef bint multiply_steps(BaseArray a, BaseArray b, BaseArray out,
                         Product product) except -1:
    """Multiply two matrices if they are large and in files; return whether they are."""
    cdef Steps steps = steps_over("matmul", (a, b, out))
    cdef Py_ssize_t m = a.shape[0], k = a.shape[1], n = b.shape[1]
    cdef Py_ssize_t itemsize = itemsize_of[out.dtype], parts, i
    cdef BaseArray left, right, target, total, sum_of_panels = None, term = None
    cdef Panels panels
    cdef bint wide
    if steps is None:
        return False
    try:
        panels = choose(a, b, max(1, steps.now.block // itemsize),
                        steps.memory // itemsize)
        # One panel's loop adds float16 in float32: so do several panels.
        wide = out.dtype == FLOAT16 and panels.k < k
        boxes = []
        for rows in spans(m, panels.m):
            for columns in spans(n, panels.n):
                for inner in spans(k, panels.k):
                    boxes.append((rows, inner, columns))
        parts = len(boxes)
        for i in range(parts):
            rows, inner, columns = boxes[i]
            left = part_of(a, (rows, inner))
            right = part_of(b, (inner, columns))
            target = part_of(out, (rows, columns))
            if i + 1 < parts:
                steps.ahead(part_of(a, (boxes[i + 1][0], boxes[i + 1][1])))
                steps.ahead(part_of(b, (boxes[i + 1][1], boxes[i + 1][2])))
            total = target
            if wide:
                sum_of_panels = total = shaped_as(target, FLOAT32, sum_of_panels)
                factors = cast(left, FLOAT32), cast(right, FLOAT32)
            else:
                factors = left, right
            if inner[0] == 0:
                product(factors[0], factors[1], total)
            else:
                term = shaped_as(target, total.dtype, term)
                product(factors[0], factors[1], term)
                inplace(ADD, total, term)
            if wide and inner[1] == k:
                copy_into(target, total)
            # Panels that are read again stay in memory.
            if panels.n == n:
                steps.behind(left)
            if panels.m == m:
                steps.behind(right)
            if inner[1] == k:
                steps.written(target)
            steps.step(steps.total // parts)
        steps.step(steps.total - steps.done)
    finally:
        steps.end()
    return True


cdef BaseArray shaped_as(BaseArray target, int dtype, BaseArray last):
    """Return an array of a matrix' shape: the last one, or a new one."""
    if last is None or last.shape[0] != target.shape[0] \
            or last.shape[1] != target.shape[1]:
        return new_empty(dtype, 2, target.shape)
    return last


cdef list spans(Py_ssize_t length, Py_ssize_t step):
    """Return the (start, stop) of the panels along an axis."""
    return [(start, min(start + step, length)) for start in range(0, length, step)]


# ---- Sorting -------------------------------------------------------------------------
# A long line is cut into runs, which are sorted in a second array of its length.
# Samples of all runs give the values that cut the runs into intervals of about the same
# size. The elements between two cuts are gathered from all runs, sorted, and written
# back. Elements equal to a cut are copied in order. So each element is read and written
# twice, sequentially, and the sort is stable.

cnp.import_array()

cdef extern from "numpy/arrayobject.h":
    ctypedef enum NPY_SORTKIND:
        NPY_STABLESORT
    int PyArray_Sort(cnp.ndarray array, int axis, NPY_SORTKIND kind) except -1

cdef enum:
    # The longest line, in blocks, that is sorted without runs.
    WHOLE = 4


cdef bint sort_steps(const Operands *held, int axis) except -1:
    """Sort operand 0, which is held, in place and stably, if it is large and in a file.

    Return whether it is.
    """
    cdef BaseArray x = <BaseArray>held.arrays[0]
    cdef Steps steps = steps_over("sort", (x,))
    cdef BaseArray part, line, runs = None
    cdef Operands operands
    cdef Py_ssize_t itemsize = itemsize_of[x.dtype], length
    cdef int i
    if steps is None:
        return False
    whole = view_of(held, 0)
    length = x.shape[axis]
    if length * itemsize > WHOLE * steps.now.block:
        # Allocated by the user's backend, not in plain memory.
        steps.end()
        runs = new_empty(x.dtype, 1, &length)
        steps.enter()
    try:
        for box in boxes_of(lines_of(x, axis), max(1, steps.now.block // length)):
            if length * itemsize <= WHOLE * steps.now.block:
                box = (*box[:axis], (0, length), *box[axis + 1:])
                part = part_of(x, box)
                PyArray_Sort(
                    <cnp.ndarray>whole[tuple([slice(*bounds) for bounds in box])],
                    axis, NPY_STABLESORT)
                steps.written(part)
                steps.step(part.size * itemsize)
                continue
            for place in np.ndindex(*[stop - start for start, stop in box]):
                line = new_view(x, 1)
                for i in range(x.ndim):
                    line.offset += (<Py_ssize_t>box[i][0]
                                    + <Py_ssize_t>place[i]) * x.strides[i]
                line.shape[0] = length
                line.strides[0] = x.strides[axis]
                set_layout(line)
                operands.count = 0
                put(&operands, line)
                put(&operands, runs)
                hold(&operands)
                try:
                    sort_line(steps, &operands)
                finally:
                    let_go(&operands)
    finally:
        steps.end()
    return True


cdef BaseArray lines_of(BaseArray x, int axis):
    """Return the first element of each line along an axis."""
    box = [(0, x.shape[i]) for i in range(x.ndim)]
    box[axis] = (0, 1)
    return part_of(x, tuple(box))


cdef int sort_line(Steps steps, const Operands *held) except -1:
    """Sort a line that does not fit in memory, with a second array of its size.

    Operand 0 is the line, operand 1 the second array.
    """
    cdef BaseArray line = <BaseArray>held.arrays[0]
    cdef BaseArray space = <BaseArray>held.arrays[1]
    cdef Py_ssize_t n = line.shape[0], itemsize = itemsize_of[line.dtype]
    cdef Py_ssize_t size = max(2, steps.now.block // itemsize), start, every, at = 0
    cdef Py_ssize_t whole = steps.done + n * itemsize
    cdef BaseArray part
    out = view_of(held, 0)
    sorted_runs = view_of(held, 1)
    runs = []
    for start in range(0, n, size):
        box = ((start, min(start + size, n)),)
        if start + size < n:
            steps.ahead(part_of(line, ((start + size, min(start + 2 * size, n)),)))
        part = part_of(space, box)
        copy_into(part, part_of(line, box))
        run = sorted_runs[slice(*box[0])]
        PyArray_Sort(<cnp.ndarray>run, 0, NPY_STABLESORT)
        runs.append(run)
        steps.behind(part_of(line, box))
        steps.written(part)
        steps.step(part.size * itemsize // 2)
    every = max(1, size // (2 * len(runs)))
    samples = np.sort(np.concatenate([run[::every] for run in runs]))
    cuts = np.unique(samples[len(runs)::len(runs)])
    below = [np.searchsorted(run, cuts, "left") for run in runs]
    above = [np.searchsorted(run, cuts, "right") for run in runs]
    for i in range(len(cuts) + 1):
        pieces = []
        for run, first, last in zip(runs, above, below, strict=True):
            begin = first[i - 1] if i else 0
            end = last[i] if i < len(cuts) else len(run)
            pieces.append(run[begin:end])
        between = np.concatenate(pieces)
        between.sort(kind="stable")
        start = at
        at = write_at(out, at, between)
        if i < len(cuts):
            for run, first, last in zip(runs, below, above, strict=True):
                at = write_at(out, at, run[first[i]:last[i]])
        steps.written(part_of(line, ((start, at),)))
        steps.step((at - start) * itemsize // 2)
    # The progress of each half was rounded down.
    return steps.step(whole - steps.done)


cdef Py_ssize_t write_at(object out, Py_ssize_t at, object values) except -1:
    """Write values to `out` from an index on; return the next index."""
    cdef Py_ssize_t end = at + len(values)
    out[at:end] = values
    return end

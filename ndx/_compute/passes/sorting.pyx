"""Sorting arrays in files: lines that fit in memory at once, longer ones by merging.

A long line is cut into runs, which are sorted in a second array of its length. Samples
of all runs give the values that cut the runs into intervals of about the same size.
The elements between two cuts are gathered from all runs, sorted, and written back.
Elements equal to a cut are copied in order. So each element is read and written twice,
sequentially, and the sort is stable.
"""

cimport numpy as cnp

import numpy as np

from ndx._array.pinning cimport Operands, hold, let_go, put, view_of
from ndx._array.storage cimport BaseArray, new_empty, new_view, set_layout
from ndx._compute.copies cimport copy_into
from ndx._compute.passes.parts cimport Steps, boxes_of, part_of, steps_over
from ndx._lib.dtypes cimport itemsize_of

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

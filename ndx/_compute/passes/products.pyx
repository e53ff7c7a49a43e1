"""Products of matrices in files, panel by panel."""

from libc.math cimport sqrt

from ndx._array.storage cimport BaseArray, new_empty
from ndx._compute.elementwise cimport inplace
from ndx._compute.loops cimport Ufunc, find_ufunc
from ndx._compute.passes.parts cimport Steps, part_of, steps_over
from ndx._lib.dtypes cimport itemsize_of
from ndx._lib.layout cimport magnitude

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
    cdef Py_ssize_t shape[2]
    cdef BaseArray left, right, target, term = None
    cdef Panels panels
    if steps is None:
        return False
    try:
        panels = choose(a, b, max(1, steps.now.block // itemsize),
                        steps.memory // itemsize)
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
            if inner[0] == 0:
                product(left, right, target)
            else:
                shape[0] = target.shape[0]
                shape[1] = target.shape[1]
                if term is None or term.shape[0] != shape[0] \
                        or term.shape[1] != shape[1]:
                    term = new_empty(out.dtype, 2, shape)
                product(left, right, term)
                inplace(ADD, target, term)
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


cdef list spans(Py_ssize_t length, Py_ssize_t step):
    """Return the (start, stop) of the panels along an axis."""
    return [(start, min(start + step, length)) for start in range(0, length, step)]

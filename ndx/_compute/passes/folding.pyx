"""Reductions of converted values, and cumulative ones, part by part."""

cimport numpy as cnp

from ndx._array.pinning cimport Operands, hold, let_go, put, view_of
from ndx._array.storage cimport BaseArray, new_empty, new_view, set_layout
from ndx._compute.copies cimport cast, copy_into, fill
from ndx._compute.elementwise cimport binary, inplace
from ndx._compute.folds cimport is_in_order
from ndx._compute.loops cimport Ufunc, find_ufunc, loop_of
from ndx._compute.numpy_private cimport reporting, reports, restore, silence
from ndx._compute.passes.parts cimport Steps, boxes_of, part_of, steps_over
from ndx._compute.reductions cimport identity, reduce, reduce_into
from ndx._lib.dtypes cimport BOOL, itemsize_of
from ndx._lib.layout cimport MAXDIMS, parse_axes

cnp.import_array()

cdef Ufunc MULTIPLY = find_ufunc("multiply")
cdef Ufunc NOT_EQUAL = find_ufunc("not_equal")
cdef Ufunc SUBTRACT = find_ufunc("subtract")


cdef class Converter:
    """Computes the values of each part that are reduced."""

    cdef BaseArray convert(self, BaseArray part, tuple box):
        """Return the values to reduce for the part in a box."""


cdef class InDtype(Converter):
    """The values in another dtype."""

    cdef BaseArray convert(self, BaseArray part, tuple box):
        return part if part.dtype == self.dtype else cast(part, self.dtype)


cdef class NotZero(Converter):
    """Whether the values are not zero, in a dtype."""

    cdef BaseArray convert(self, BaseArray part, tuple box):
        cdef BaseArray found = part
        if part.dtype != BOOL:
            found = binary(NOT_EQUAL, part, 0, None)
        return found if self.dtype == BOOL else cast(found, self.dtype)


cdef class Squares(Converter):
    """The squares of the values' distances from a mean along the reduced axes."""

    cdef BaseArray convert(self, BaseArray part, tuple box):
        cdef BaseArray values = part
        if part.dtype != self.dtype:
            values = cast(part, self.dtype)
        values = binary(SUBTRACT, values, part_of(self.mean, box), None)
        inplace(MULTIPLY, values, values)
        return values


cdef InDtype in_dtype(int dtype):
    cdef InDtype converter = InDtype()
    converter.dtype = dtype
    return converter


cdef NotZero not_zero(int dtype):
    cdef NotZero converter = NotZero()
    converter.dtype = dtype
    return converter


cdef Squares squares(int dtype, BaseArray mean):
    cdef Squares converter = Squares()
    converter.dtype = dtype
    converter.mean = mean
    return converter


cdef BaseArray fold(str name, Ufunc ufunc, BaseArray x, object axis, bint keepdims,
                    int dtype, Converter converter):
    """Reduce the converted values of `x`; None if it is not large and in a file."""
    cdef bint chosen[MAXDIMS]
    cdef Py_ssize_t shape[MAXDIMS]
    cdef BaseArray result, part, values, view
    cdef Steps steps
    cdef int i, kept = 0
    parse_axes(axis, x.ndim, chosen)
    for i in range(x.ndim):
        shape[i] = 1 if chosen[i] else x.shape[i]
    steps = steps_over(name, (x,))
    if steps is None:
        return None
    steps.end()
    result = new_empty(dtype, x.ndim, shape)
    fill(result, identity(ufunc, dtype))
    steps.enter()
    try:
        boxes = boxes_of(x, steps.now.block)
        for number, box in enumerate(boxes):
            part = part_of(x, box)
            if number + 1 < len(boxes):
                steps.ahead(part_of(x, boxes[number + 1]))
            values = converter.convert(part, box)
            # While errors are reported, NumPy's function reduces, from the identity on.
            if is_in_order(ufunc, dtype) and not (reporting != 0 and reports()):
                reduce_into(part_of(result, box), ufunc, loop_of(ufunc, dtype), values,
                            chosen, True)
            else:
                inplace(ufunc, part_of(result, box), reduce(ufunc, values, axis, True))
            values = None
            steps.behind(part)
            steps.step(part.size * itemsize_of[part.dtype])
    finally:
        steps.end()
    if keepdims:
        return result
    view = new_view(result, x.ndim - sum([chosen[i] for i in range(x.ndim)]))
    for i in range(x.ndim):
        if not chosen[i]:
            view.shape[kept] = result.shape[i]
            view.strides[kept] = result.strides[i]
            kept += 1
    set_layout(view)
    return view


cdef bint accumulate_steps(str name, Ufunc ufunc, BaseArray x, BaseArray out,
                           int axis) except -1:
    """Write cumulative results along an axis, if the arrays are large and in files.

    Return whether they are. `out` has the shape of `x` and the dtype of the results.
    """
    cdef Steps steps = steps_over(name, (x, out))
    cdef BaseArray part, rest
    cdef Py_ssize_t start
    if steps is None:
        return False
    try:
        boxes = boxes_of(x, steps.now.block)
        for number, box in enumerate(boxes):
            part = part_of(x, box)
            rest = part_of(out, box)
            if number + 1 < len(boxes):
                steps.ahead(part_of(x, boxes[number + 1]))
            copy_into(rest, part)
            start = box[axis][0]
            if start:
                # The first element carries the result of the parts before.
                inplace(ufunc, part_of(out, at(box, axis, start)),
                        part_of(out, at(box, axis, start - 1)))
            accumulate_in_place(ufunc, rest, axis)
            steps.behind(part)
            steps.written(rest)
            steps.step(part.size * (itemsize_of[part.dtype] + itemsize_of[rest.dtype]))
    finally:
        steps.end()
    return True


cdef int accumulate_in_place(Ufunc ufunc, BaseArray x, int axis) except -1:
    cdef Operands operands
    operands.count = 0
    put(&operands, x)
    token = silence()
    try:
        hold(&operands)
        try:
            view = view_of(&operands, 0)
            ufunc.public.accumulate(view, axis=axis, out=view)
        finally:
            let_go(&operands)
    finally:
        restore(token)
    return 0


cdef tuple at(tuple box, int axis, Py_ssize_t index):
    """Return a box reduced to one index along an axis."""
    return (*box[:axis], (index, index + 1), *box[axis + 1:])

"""The replay of a recorded function: block by block, in cache, over inner loops.

A `Program` is made by `_fusing.lowering`. It never changes, so that threads share it.
A call allocates the results and temporaries, checks and pins all arrays, and runs the
stages, one after the other (`_fusing.execution`). No Python runs meanwhile.
"""

from cpython.object cimport PyObject
from libc.stdint cimport uintptr_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy

from ndx._array.pinning cimport (
    Operands, hold, let_go, locate, put, recheck_all, unlocked,
)
from ndx._array.storage cimport (
    BaseArray, as_number, new_array, new_view, require_live, set_layout, strided,
)
from ndx._blocks.block cimport block_is_live
from ndx._compute.copies cimport LARGE
from ndx._compute.loops cimport Loop, find_ufunc, loop_of
from ndx._compute.numpy_private cimport LoopFunction, reporting, reports
from ndx._compute.passes.settings cimport settings
from ndx._compute.transfers cimport cast_between
from ndx._files.mapping cimport Mapped, find_mapping
from ndx._fusing.execution cimport (
    LEAF, MAX_LEAVES, MOST_ROWS, PARTIAL, SCRATCH, SHORT_ROW, Leaf, Partial, Replay,
    Step, run_stages,
)
from ndx._fusing.kernels cimport run_cast, run_copy, run_select, run_sum
from ndx._lib.dtypes cimport KIND_FLOAT, itemsize_of, kind_of, store_scalar
from ndx._lib.layout cimport MAXOPS, Strided, byte_bounds

__all__ = ["Program", "limits"]

cdef extern from "Python.h":
    PyObject *PyList_GET_ITEM(object items, Py_ssize_t i) noexcept

cdef enum:
    CHUNKS = (MAX_SLOTS + 5) // 6


def limits():
    """Return the limits of a program, by name, for `_fusing.lowering`."""
    return {
        "slots": MAX_SLOTS, "axes": MAX_AXES, "constants": MAX_CONSTANTS,
        "parameters": MAX_PARAMETERS, "scratch": SCRATCH, "rows": MOST_ROWS,
        "leaves": MAX_LEAVES, "short_row": SHORT_ROW,
    }


assert CHUNKS * MAXOPS >= MAX_SLOTS


cdef class Program:
    """A recorded function as C data; see `_fusing.lowering.plan`, which describes it.

    Parameters
    ----------
    nargs : int
        Arrays among the arguments.
    used, stored : list of int
        Those whose elements are read or written, and those that are written.
    made : list of (dtype, shape, order)
        Arrays to allocate; their slots follow the arguments'.
    constants : list of bytes
    parameters : list of (constant, position, dtype)
        Constants that are scalars among the arguments.
    stages : list of dict
    result : object
        What is returned; see `_fusing.lowering`.
    about : object
        For `explain`.
    """

    def __cinit__(self, int nargs, list used, list stored, list made, list constants,
                  list parameters, list stages, result, about):
        cdef int i, axis
        within("slots", nargs + len(made), MAX_SLOTS)
        within("constants", len(constants), MAX_CONSTANTS)
        within("parameters", len(parameters), MAX_PARAMETERS)
        self.nargs = nargs
        self.nslots = nargs + len(made)
        self.nconstants = len(constants)
        self.nparameters = len(parameters)
        self.about = about
        self.result = result
        self.result_slot = result[1] if result[0] == "slot" else -1
        for i in used:
            self.used |= <unsigned int>1 << i
        for i in stored:
            self.stored |= <unsigned int>1 << i
        for i, (dtype, shape, order) in enumerate(made):
            within("axes", len(shape), MAX_AXES)
            self.made[i].dtype = dtype
            self.made[i].ndim = len(shape)
            for axis in range(self.made[i].ndim):
                self.made[i].shape[axis] = shape[axis]
                self.made[i].order[axis] = order[axis]
        for i, value in enumerate(constants):
            within("bytes of a constant", len(value), sizeof(self.constants[i]))
            memcpy(self.constants[i], <char *><bytes>value, len(value))
        for i, (constant, position, dtype) in enumerate(parameters):
            self.parameters[i].constant = constant
            self.parameters[i].position = position
            self.parameters[i].dtype = dtype
        self.stages = <Stage *>calloc(max(len(stages), 1), sizeof(Stage))
        if self.stages == NULL:
            raise MemoryError()
        for i, stage in enumerate(stages):
            # Counted before the stage is filled: `__dealloc__` frees what a failure
            # leaves.
            self.nstages = i + 1
            self.fill(&self.stages[i], stage)

    def __dealloc__(self):
        cdef int i
        if self.stages != NULL:
            for i in range(self.nstages):
                free(self.stages[i].leaves)
                free(self.stages[i].steps)
                free(self.stages[i].partials)
            free(self.stages)

    cdef int fill(self, Stage *stage, dict given) except -1:
        cdef int i, axis, k
        cdef Leaf *leaf
        cdef Step *step
        cdef Partial *partial
        cdef list shape = given["shape"]
        within("axes", len(shape), MAX_AXES)
        within("rows of a block", given["block_rows"], MOST_ROWS)
        within("bytes of registers", given["registers"] * given["register_bytes"],
               SCRATCH)
        within("leaves", len(given["leaves"]), MAX_LEAVES)
        stage.ndim = len(shape)
        stage.rows = 1
        for axis in range(stage.ndim):
            stage.shape[axis] = shape[axis]
            stage.rows *= stage.shape[axis]
        stage.cols = given["cols"]
        stage.block_rows = given["block_rows"]
        stage.block_cols = given["block_cols"]
        stage.plane = given["plane"]
        stage.plane_blocks = (stage.plane - 1) // stage.block_rows + 1
        stage.row_blocks = stage.rows // stage.plane * stage.plane_blocks
        stage.col_blocks = (stage.cols - 1) // stage.block_cols + 1
        stage.register_bytes = given["register_bytes"]
        stage.share = given["share"]
        stage.serial = given["serial"]
        self.large |= stage.rows * stage.cols >= LARGE
        leaves, steps, partials = given["leaves"], given["steps"], given["partials"]
        stage.leaves = <Leaf *>calloc(max(len(leaves), 1), sizeof(Leaf))
        stage.steps = <Step *>calloc(max(len(steps), 1), sizeof(Step))
        stage.partials = <Partial *>calloc(max(len(partials), 1), sizeof(Partial))
        if stage.leaves == NULL or stage.steps == NULL or stage.partials == NULL:
            raise MemoryError()
        stage.pitch = given["pitch"]
        for i, (slot, offset, strides, pitched) in enumerate(leaves):
            leaf = &stage.leaves[i]
            leaf.slot = slot
            leaf.offset = offset
            for axis in range(stage.ndim):
                leaf.outer[axis] = strides[axis]
            leaf.inner = strides[stage.ndim]
            leaf.together = pitched if stage.pitch else is_flat(stage, leaf)
        stage.nleaves = len(leaves)
        for i, (slot, target, constant, name, dtype) in enumerate(partials):
            partial = &stage.partials[i]
            partial.slot = slot
            partial.target = target
            partial.constant = constant
            partial.itemsize = itemsize_of[dtype]
            find_loop(name, dtype, 0, True, &partial.function, &partial.data)
        stage.npartials = len(partials)
        for i, (name, dtype, into, operands, reduces) in enumerate(steps):
            step = &stage.steps[i]
            step.reduces = reduces
            step.sums = reduces and name == "add" and kind_of[dtype] >= KIND_FLOAT
            find_loop(name, dtype, into, reduces, &step.function, &step.data)
            step.count = len(operands)
            within("operands", step.count, 4)
            for k, (place, index, itemsize) in enumerate(operands):
                step.operands[k].place = place
                step.operands[k].index = index
                step.operands[k].itemsize = itemsize
                step.rows |= place == LEAF and not stage.leaves[index].together
                # The elements between the rows don't count.
                step.rows |= place == PARTIAL and stage.pitch > 0
        stage.nsteps = len(steps)
        return 0

    cdef int hindrance(self, PyObject **arrays) except -1:
        """Return why the arrays of this call can't be replayed; 0: they can."""
        cdef Strided layout
        cdef BaseArray x
        cdef Mapped mapped
        cdef int i
        # NumPy reports floating-point errors then; only its functions do that.
        if reporting != 0 and reports():
            return ERRORS
        if self.large:
            for i in range(self.nargs):
                x = <BaseArray>arrays[i]
                if not self.used >> i & 1 or not block_is_live(x.block):
                    continue
                strided(x, &layout)
                if x.size * itemsize_of[x.dtype] >= settings().threshold \
                        and find_mapping(layout.data, &mapped):
                    # Computed in passes, which read a file from start to end.
                    return FILES
        return 0 if are_apart(arrays, self.nargs, self.used, self.stored) else OVERLAP

    cdef object run(self, PyObject **arrays, PyObject **scalars):
        """Replay; the caller has asked `hindrance`, and owns the arguments."""
        cdef Operands[CHUNKS] chunks
        cdef int[MAX_SLOTS] slots
        cdef Replay replay
        cdef BaseArray only = None
        cdef list made = None
        cdef PyObject *array
        cdef int i, nchunks = 0, count = 0
        cdef bint live
        for i in range(self.nargs):
            if self.used >> i & 1:
                require_live(<BaseArray>arrays[i])
        replay.stages = self.stages
        replay.nstages = self.nstages
        replay.threaded = False
        memcpy(replay.constants, self.constants, 16 * self.nconstants)
        for i in range(self.nparameters):
            store_scalar(<object>scalars[self.parameters[i].position],
                         self.parameters[i].dtype,
                         replay.constants[self.parameters[i].constant])
        if self.nslots == self.nargs + 1:
            only = self.make(0)
        else:
            made = [self.make(i) for i in range(self.nslots - self.nargs)]
        chunks[0].count = 0
        for i in range(self.nslots):
            if i >= self.nargs:
                array = <PyObject *>only if only is not None \
                    else PyList_GET_ITEM(made, i - self.nargs)
            elif self.used >> i & 1:
                array = arrays[i]
            else:
                continue
            if chunks[nchunks].count == MAXOPS:
                nchunks += 1
                chunks[nchunks].count = 0
            put(&chunks[nchunks], <BaseArray>array)
            slots[count] = i
            count += 1
        nchunks += 1
        if self.large:
            run_held(chunks, nchunks, 0, slots, &replay)
        elif self.nstages:
            live = True
            for i in range(count):
                live = live and block_is_live(
                    (<BaseArray>chunks[i // MAXOPS].arrays[i % MAXOPS]).block)
            if live:
                # Nothing waits here, so that no Python runs until the end.
                for i in range(nchunks):
                    locate(&chunks[i])
                set_data(chunks, nchunks, slots, &replay)
                run_stages(&replay)
                for i in range(nchunks):
                    recheck_all(&chunks[i])
            else:
                run_held(chunks, nchunks, 0, slots, &replay)
        if only is not None:
            if self.result_slot == self.nargs:
                return only
            made = [only]
        return self.build(self.result, arrays, made)

    cdef BaseArray make(self, int i):
        cdef Made *made = &self.made[i]
        return new_array(0, made.dtype, made.ndim, made.shape, made.order, False)

    cdef object build(self, tuple spec, PyObject **arrays, list made):
        """Return the value that the function returned, with this call's arrays."""
        cdef BaseArray base, view
        cdef int slot, axis
        what = spec[0]
        if what == "value":
            return spec[1]
        if what == "tuple":
            return tuple([self.build(item, arrays, made) for item in spec[1]])
        if what == "list":
            return [self.build(item, arrays, made) for item in spec[1]]
        if what == "dict":
            return {key: self.build(item, arrays, made) for key, item in spec[1]}
        if what == "number":
            return as_number(self.build(spec[1], arrays, made))
        slot = spec[1]
        base = <BaseArray>arrays[slot] if slot < self.nargs else made[slot - self.nargs]
        if what == "slot":
            return base
        _, _, offset, shape, strides = spec
        view = new_view(base, len(shape))
        view.offset += <Py_ssize_t>offset
        for axis in range(len(shape)):
            view.shape[axis] = shape[axis]
            view.strides[axis] = strides[axis]
        set_layout(view)
        return view


cdef bint are_apart(PyObject **arrays, int count, unsigned int used,
                    unsigned int stored) except -1:
    """Whether no array that is written shares memory with another one in use."""
    cdef Strided layout
    cdef Py_ssize_t low[MAX_SLOTS]
    cdef Py_ssize_t high[MAX_SLOTS]
    cdef unsigned int seen = 0
    cdef BaseArray x
    cdef int i, k
    if not stored:
        return True
    for i in range(count):
        x = <BaseArray>arrays[i]
        if not used >> i & 1 or not block_is_live(x.block):
            continue
        strided(x, &layout)
        byte_bounds(&layout, itemsize_of[x.dtype], &low[i], &high[i])
        low[i] += <Py_ssize_t><uintptr_t>layout.data
        high[i] += <Py_ssize_t><uintptr_t>layout.data
        for k in range(i):
            if seen >> k & 1 and (stored >> i | stored >> k) & 1 \
                    and low[i] < high[k] and low[k] < high[i]:
                return False
        seen |= <unsigned int>1 << i
    return True


cdef int within(str what, size_t count, size_t most) except -1:
    """Refuse a program that does not fit: its numbers become indices in C."""
    if count > most:
        raise ValueError(f"{count} {what}; a program has at most {most}")
    return 0


cdef bint is_flat(const Stage *stage, const Leaf *leaf) noexcept:
    """Whether the rows of a leaf follow one another like the elements of one."""
    cdef Py_ssize_t step = leaf.inner * stage.cols
    cdef int axis
    for axis in range(stage.ndim - 1, -1, -1):
        if leaf.outer[axis] != step:
            return False
        step *= stage.shape[axis]
    return True


cdef int find_loop(str name, int dtype, int into, bint reduces,
                   LoopFunction *function, void **data) except -1:
    cdef const Loop *loop
    if name == "cast":
        function[0] = run_cast
        data[0] = <void *>cast_between(dtype, into)
    elif name == "copy" or name == "select":
        function[0] = run_copy if name == "copy" else run_select
        data[0] = <void *>itemsize_of[dtype]
    else:
        loop = loop_of(find_ufunc(name), dtype)
        function[0] = loop.function
        data[0] = loop.data
        if reduces and loop.sum != NULL:
            function[0] = run_sum
            data[0] = <void *>loop
    return 0


cdef void set_data(const Operands *chunks, int nchunks, const int *slots,
                   Replay *replay) noexcept:
    cdef int i, k, count = 0
    for i in range(nchunks):
        for k in range(chunks[i].count):
            replay.data[slots[count]] = chunks[i].data[k]
            count += 1


cdef int run_held(Operands *chunks, int nchunks, int done, const int *slots,
                  Replay *replay) except -1:
    """Hold all arrays, a few at a time, and run without the GIL."""
    if done == nchunks:
        set_data(chunks, nchunks, slots, replay)
        replay.threaded = True
        return unlocked(&chunks[0], run_stages, replay)
    hold(&chunks[done])
    try:
        return run_held(chunks, nchunks, done + 1, slots, replay)
    finally:
        let_go(&chunks[done])

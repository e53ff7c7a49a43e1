"""NumPy's loops over stacks of matrices and vectors, of its private gufuncs.

Those of `numpy.linalg` call LAPACK, and those of `numpy.fft` pocketfft. They are called
as `_compute.loops` calls the elementwise ones. An algorithm that fails sets the
processor's flag of invalid operations. Callers leave such operands, and all that is
rare, to NumPy's public functions, which also have the errors.
"""

from cpython.object cimport PyObject
from libc.string cimport memcpy, memset

from ndx._array.pinning cimport Operands, compute_on, put, put_constant
from ndx._array.storage cimport BaseArray, new_empty, strided
from ndx._compute.copies cimport in_c_order
from ndx._compute.elementwise cimport raise_current
from ndx._compute.numpy_private cimport loop_at
from ndx._compute.walking cimport start_walk, step_walk
from ndx._lib.dtypes cimport code_or_none, itemsize_of
from ndx._lib.layout cimport (
    MAXDIMS, Strided, Walk, broadcast_into, broadcast_strides, walk_merge,
)

import numpy as np

cdef extern from "Python.h":
    PyObject *PyErr_Occurred() noexcept

cdef extern from "<fenv.h>" nogil:
    int FE_INVALID
    int feclearexcept(int flags)
    int fetestexcept(int flags)


# The arguments of a loop. Counts and steps are laid out as the loop reads them.
cdef struct Cores:
    LoopFunction function
    void *data
    int nargs
    Py_ssize_t counts[1 + MOST_CORES]
    Py_ssize_t steps[3 * MOST_OPERANDS]
    bint invalid


cdef void run_cores(void *arg, char **data, const Walk *batch) noexcept nogil:
    cdef Cores *cores = <Cores *>arg
    cdef char *args[MOST_OPERANDS]
    cdef char *start[MOST_OPERANDS]
    cdef Py_ssize_t index[MAXDIMS]
    cdef int op, last = batch.ndim - 1
    cores.counts[0] = batch.shape[last] if last >= 0 else 1
    for op in range(cores.nargs):
        start[op] = data[op]
        cores.steps[op] = batch.strides[op][last] if last >= 0 else 0
    feclearexcept(FE_INVALID)
    start_walk(last, index)
    while True:
        memcpy(args, start, sizeof(args))
        cores.function(args, cores.counts, cores.steps, cores.data)
        if not step_walk(batch, last, index, cores.nargs, start):
            break
    cores.invalid = fetestexcept(FE_INVALID) != 0
    feclearexcept(FE_INVALID)


cdef BaseArray with_whole_steps(BaseArray x, int axes):
    """Return an array, or a copy if last axes have steps between two elements.

    Fields of records have, and NumPy's loops of LAPACK divide steps by the item size.
    """
    cdef int axis
    for axis in range(x.ndim - axes, x.ndim):
        if x.strides[axis] % itemsize_of[x.dtype]:
            return in_c_order(x, x.dtype)
    return x


cdef class Gufunc:
    """A gufunc of NumPy; without loops if NumPy does not have it, or in another form.

    Parameters
    ----------
    public : numpy.ufunc or None
    """

    def __cinit__(self, public):
        memset(self.functions, 0, sizeof(self.functions))
        if type(public) is not np.ufunc or public.nargs > MOST_OPERANDS \
                or public.signature is None:
            return
        self.nin = public.nin
        self.nargs = public.nargs
        if self.read_signature(public.signature.replace(" ", "")):
            self.find_loops(public)

    cdef int read_signature(self, str signature) except -1:
        """Read which lengths the operands have; return whether they are few enough."""
        cdef int op
        names = []
        operands = signature.replace("->", ",").replace("),(", ")|(").split("|")
        for op, operand in enumerate(operands):
            found = [name for name in operand.strip("()").split(",") if name]
            if len(found) > 2:
                return False
            self.axes[op] = len(found)
            for axis, name in enumerate(found):
                if name not in names:
                    names.append(name)
                self.lengths[op][axis] = names.index(name)
        self.ncores = len(names)
        return len(operands) == self.nargs and self.ncores <= MOST_CORES

    cdef int find_loops(self, object public) except -1:
        cdef int i, op, code
        for i, signature in enumerate(public.types):
            chars = signature.replace("->", "")
            codes = [code_or_none(np.dtype(char)) for char in chars]
            code = codes[0]
            if min(codes) < 0 or np.dtype(chars[0]).char != chars[0]:
                continue
            self.functions[code] = loop_at(public, i, &self.data[code])
            for op in range(self.nargs):
                self.dtypes[code][op] = codes[op]
        return 0

    cdef list call(self, list inputs, Py_ssize_t other):
        """Return new arrays with the results; None: the loop failed, or does not fit.

        Parameters
        ----------
        inputs : list of BaseArray
            With elements, and of the dtypes of one of the loops.
        other : int
            The length that only results have, if there is one.
        """
        cdef BaseArray x, first = inputs[0]
        cdef Py_ssize_t shape[MAXDIMS]
        cdef Py_ssize_t sizes[MOST_CORES]
        cdef Py_ssize_t work
        cdef int op, axis, ndim = 0, total
        for axis in range(self.ncores):
            sizes[axis] = -1
        for op in range(self.nin):
            x = inputs[op]
            ndim = broadcast_into(ndim, shape, x.ndim - self.axes[op], x.shape)
            if ndim < 0:
                return None
            for axis in range(self.axes[op]):
                work = x.shape[x.ndim - self.axes[op] + axis]
                if sizes[self.lengths[op][axis]] not in (-1, work):
                    return None
                sizes[self.lengths[op][axis]] = work
        operands = [with_whole_steps(inputs[op], self.axes[op])
                    for op in range(self.nin)]
        work = 1
        for axis in range(self.ncores):
            if sizes[axis] < 0:
                sizes[axis] = other
            work = max(work, sizes[axis])
        for op in range(self.nin, self.nargs):
            total = ndim + self.axes[op]
            if total > MAXDIMS:
                return None
            for axis in range(self.axes[op]):
                shape[ndim + axis] = sizes[self.lengths[op][axis]]
            operands.append(new_empty(self.dtypes[first.dtype][op], total, shape))
        if self.run(operands, NULL, first.size >= LONG // work):
            return None
        return operands[self.nin:]

    cdef bint run(self, list operands, char *constant, bint large) except? True:
        """Compute into the results, the last operands; return whether the loop failed.

        The operand None is the constant. No operand is empty. If `large`, the GIL is
        released.
        """
        cdef Operands held
        cdef Strided stack
        cdef Cores cores
        cdef Walk batch
        cdef BaseArray x, first = operands[0], last = operands[self.nargs - 1]
        cdef int op, axis, step = self.nargs
        cores.function = self.functions[first.dtype]
        cores.data = self.data[first.dtype]
        cores.nargs = self.nargs
        batch.nops = self.nargs
        batch.ndim = last.ndim - self.axes[self.nargs - 1]
        memcpy(batch.shape, last.shape, batch.ndim * sizeof(Py_ssize_t))
        held.count = 0
        for op in range(self.nargs):
            x = operands[op]
            if x is None:
                put_constant(&held, constant)
                memset(batch.strides[op], 0, batch.ndim * sizeof(Py_ssize_t))
                continue
            put(&held, x)
            strided(x, &stack)
            stack.ndim -= self.axes[op]
            broadcast_strides(&stack, batch.ndim, batch.shape, batch.strides[op])
            for axis in range(self.axes[op]):
                cores.counts[1 + self.lengths[op][axis]] = x.shape[stack.ndim + axis]
                cores.steps[step] = x.strides[stack.ndim + axis]
                step += 1
        walk_merge(&batch)
        compute_on(&held, &batch, run_cores, &cores, large)
        if PyErr_Occurred() != NULL:
            raise_current()
        return cores.invalid

"""Attributes of `numpy.ndarray` on NDArrays: `flags`, `base`, `flat`, `real`, ...

And one that PyTorch asks for.
"""

import numpy as np

cimport cython
from cpython.object cimport PyObject, PyObject_RichCompare

from ndx._array.storage cimport (
    BaseArray, as_number, block_nbytes, holds_number, is_in_object, new_array, new_view,
    numpy_view, require_live, require_usable, require_writeable, set_layout,
)
from ndx._compute.elementwise cimport part
from ndx._lib.dtypes cimport (
    KIND_COMPLEX, dtype_code, dtype_object, itemsize_of, kind_of,
)
from ndx._methods.exports cimport torch_function
from ndx._methods.indexing cimport flat_element, set_flat
from ndx._methods.numpy_dispatch cimport call_function

__all__ = ["Flags", "FlatIterator", "NumPyAttributes"]

cdef dict GETTERS = {
    "real": lambda x: x.real, "imag": lambda x: x.imag,
    "flat": lambda x, key: x.flat[key],
}
cdef int BYTES = dtype_code(np.dtype(np.uint8))


cdef object attribute(BaseArray x, str name):
    """Return an attribute of NumPy's array, an array or a number itself."""
    cdef BaseArray found
    if not x.block.device:
        require_live(x)
        if kind_of[x.dtype] == KIND_COMPLEX:
            found = part(x, name == "imag")
            return as_number(found) if holds_number(x) else found
        if name == "real":
            return x
        if holds_number(x):
            return as_number(new_array(0, x.dtype, 0, x.shape, NULL, True))
    result = call_function(GETTERS[name], (x,), {})
    if not x.block.device:
        # Zeros, which belong to no array.
        (<BaseArray>result).readonly = True
    return result


cdef int set_attribute(BaseArray x, str name, object value) except -1:
    """Set all elements of an attribute, an array."""
    require_usable(x)
    require_writeable(x)
    if name == "imag" and kind_of[x.dtype] != KIND_COMPLEX:
        raise TypeError(
            f"an array of dtype {dtype_object(x.dtype)} has no imaginary parts that "
            "could be set")
    attribute(x, name)[...] = value
    return 0


cdef bint owns_data(BaseArray x) noexcept:
    """Whether the array is all of its memory, which ndx manages."""
    return <PyObject *>x.base == NULL and (x.offset == 0 or is_in_object(x)) \
        and <size_t>(x.size * itemsize_of[x.dtype]) == block_nbytes(x) \
        and (x.c_contiguous or x.f_contiguous)


cdef object base_of(BaseArray x):
    """Return what an array is a view of; None if it is all of its memory."""
    cdef BaseArray view
    if <PyObject *>x.base != NULL:
        return x.base
    if owns_data(x):
        return None
    view = new_view(x, 1)
    view.dtype = <unsigned char>BYTES
    view.offset = 0
    view.shape[0] = x.block.nbytes
    view.strides[0] = 1
    set_layout(view)
    return view


cdef int set_writeable(BaseArray x, bint writeable) except -1:
    """Allow or forbid changes through this array object."""
    cdef int axis
    if writeable and x.readonly:
        if x.block.readonly:
            raise ValueError(
                "the memory of the array is read-only, so that WRITEABLE can't be set; "
                "write into a copy: x.copy()")
        for axis in range(x.ndim):
            if x.strides[axis] == 0 and x.shape[axis] > 1:
                raise ValueError(
                    "elements of a broadcast view share memory, so that WRITEABLE "
                    "can't be set; write into a copy: x.copy()")
    x.readonly = not writeable
    return 0


cdef frozenset FLAGS = frozenset((
    "c_contiguous", "f_contiguous", "owndata", "writeable", "aligned",
    "writebackifcopy", "contiguous", "fnc", "forc", "behaved", "carray", "farray",
))
cdef dict NAMES = {
    "C": "c_contiguous", "CONTIGUOUS": "c_contiguous", "F": "f_contiguous",
    "FORTRAN": "f_contiguous", "O": "owndata", "W": "writeable", "A": "aligned",
    "X": "writebackifcopy", "B": "behaved", "CA": "carray", "FA": "farray",
}


# The collector clears neither arrays nor what holds them: Python could use an object
# that was cleared.
@cython.no_gc_clear
@cython.binding(False)
@cython.embedsignature(True)
cdef class Flags:
    """NumPy's flags of an array: attributes, or keys such as ``"C_CONTIGUOUS"``.

    Examples
    --------
    >>> import ndx
    >>> x = ndx.zeros((2, 3))
    >>> x.flags.c_contiguous, x.T.flags["F_CONTIGUOUS"], x[0].flags.owndata
    (True, True, False)
    >>> x.flags.writeable = False
    """

    cdef BaseArray array

    def __cinit__(self, BaseArray array not None):
        require_usable(array)
        self.array = array

    @property
    def c_contiguous(self) -> bool:
        """Whether the elements lie in C order, without gaps."""
        return self.array.c_contiguous

    @property
    def f_contiguous(self) -> bool:
        """Whether the elements lie in Fortran's order, without gaps."""
        return self.array.f_contiguous

    @property
    def owndata(self) -> bool:
        """Whether the array is all of its memory, which ndx manages."""
        return owns_data(self.array)

    @property
    def writeable(self) -> bool:
        """Whether elements can be changed; can be set to False, and back."""
        return not self.array.readonly

    @writeable.setter
    def writeable(self, value: bool) -> None:
        set_writeable(self.array, value)

    @property
    def aligned(self) -> bool:
        """True: elements of an NDArray are."""
        return True

    @property
    def writebackifcopy(self) -> bool:
        """False: an NDArray is no temporary copy."""
        return False

    @property
    def contiguous(self) -> bool:
        """The same as `c_contiguous`."""
        return self.c_contiguous

    @property
    def fnc(self) -> bool:
        """Whether in Fortran's order, and not in C order."""
        return self.f_contiguous and not self.c_contiguous

    @property
    def fortran(self) -> bool:
        """The same as `f_contiguous`."""
        return self.f_contiguous

    @property
    def forc(self) -> bool:
        """Whether in Fortran's or in C order."""
        return self.f_contiguous or self.c_contiguous

    @property
    def behaved(self) -> bool:
        """Whether writeable and aligned."""
        return self.writeable

    @property
    def carray(self) -> bool:
        """Whether writeable, and in C order."""
        return self.writeable and self.c_contiguous

    @property
    def farray(self) -> bool:
        """Whether writeable, and in Fortran's order only."""
        return self.writeable and self.fnc

    def __getitem__(self, key: Any) -> Any:
        name = NAMES.get(key, key.lower()) if isinstance(key, str) else None
        if name not in FLAGS:
            raise KeyError(f"unknown flag {key!r}")
        return getattr(self, name)

    def __setitem__(self, key: Any, value: Any) -> None:
        if key not in ("W", "WRITEABLE"):
            raise KeyError(f"only WRITEABLE can be set, not {key!r}")
        self.writeable = value

    def __eq__(self, other):
        return isinstance(other, Flags) and str(self) == str(other)

    __hash__ = None

    def __repr__(self):
        names = ("C_CONTIGUOUS", "F_CONTIGUOUS", "OWNDATA", "WRITEABLE", "ALIGNED",
                 "WRITEBACKIFCOPY")
        return "\n".join([f"  {name} : {self[name]}" for name in names])


cdef object elements_of(object x):
    """Return the elements of a `FlatIterator` along one axis; other objects as is."""
    return (<FlatIterator>x).base.reshape(-1) if isinstance(x, FlatIterator) else x


@cython.no_gc_clear
@cython.binding(False)
@cython.embedsignature(True)
cdef class FlatIterator:
    """The elements of an array in C order: `NDArray.flat`.

    Iteration yields arrays without axes, as that of an NDArray does. Keys are those of
    NumPy's `flatiter`: ints, slices, and arrays of ints or bools; a selection is a
    copy. Comparisons are those of an array of all elements.

    Examples
    --------
    >>> import ndx
    >>> x = ndx.asarray([[1, 2], [3, 4]])
    >>> x.flat[2]
    NDArray(3)
    >>> x.flat[:2] = 0
    >>> x
    NDArray([[0, 0],
             [3, 4]])
    """

    cdef readonly BaseArray base     # type: NDArray
    cdef Py_ssize_t next_index

    def __cinit__(self, BaseArray array not None):
        require_usable(array)
        self.base = array

    @property
    def index(self) -> int:
        """The index of the next element, counted in C order."""
        return self.next_index

    @property
    def coords(self) -> tuple[int, ...]:
        """The indices of the next element, one for each axis."""
        cdef Py_ssize_t rest = self.next_index
        cdef list found = []
        for length in reversed((<object>self.base).shape[1:]):
            found.append(rest % length if length else 0)
            rest = rest // length if length else 0
        return tuple([rest, *reversed(found)][:self.base.ndim])

    def __len__(self) -> int:
        return self.base.size

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> NDArray:
        cdef Py_ssize_t index = self.next_index
        if index >= self.base.size:
            raise StopIteration
        require_usable(self.base)
        self.next_index = index + 1
        return flat_element(self.base, index)

    def __getitem__(self, key: Any) -> Any:
        cdef BaseArray x = self.base
        require_usable(x)
        found = flat_element(x, key)
        if found is not None:
            return found
        if x.block.device:
            return self.copy()[key]
        return call_function(GETTERS["flat"], (x, key), {})

    def __setitem__(self, key: Any, value: Any) -> None:
        cdef BaseArray x = self.base
        require_usable(x)
        require_writeable(x)
        if x.block.device:
            flat = elements_of(self)
            flat[key] = value
            whole = <object>x
            whole[...] = flat.reshape(whole.shape)
            return
        set_flat(x, key, value)

    def __richcmp__(self, other: Any, int op) -> NDArray:
        return PyObject_RichCompare(elements_of(self), elements_of(other), op)

    __hash__ = None

    def __array__(self, dtype: DTypeLike = None, copy: bool | None = None) -> NPArray:
        return np.asarray(elements_of(self), dtype=dtype, copy=copy)

    def copy(self) -> NDArray:
        """Return a copy of the elements, along one axis."""
        return self.base.flatten()


@cython.binding(False)
@cython.embedsignature(True)
cdef class NumPyAttributes(BaseArray):
    """Base class of `ndx.NDArray`: the attributes that NumPy's arrays have, too."""

    @property
    def __array_priority__(self) -> float:
        """Above NumPy's arrays, for libraries that choose by it; below dask's."""
        return 1.0

    @property
    def real(self) -> NDArray:
        """The real parts, as a view. Values can be assigned."""
        return attribute(self, "real")

    @real.setter
    def real(self, value: Any) -> None:
        set_attribute(self, "real", value)

    @property
    def imag(self) -> NDArray:
        """The imaginary parts, as a view; zeros for real dtypes."""
        return attribute(self, "imag")

    @imag.setter
    def imag(self, value: Any) -> None:
        set_attribute(self, "imag", value)

    @property
    def flat(self) -> FlatIterator:
        """The elements in C order: for iteration, and to read and write by index."""
        return FlatIterator(self)

    @flat.setter
    def flat(self, value: Any) -> None:
        FlatIterator(self)[:] = value

    @property
    def flags(self) -> Flags:
        """How the elements lie in memory, and whether they can be changed."""
        return Flags(self)

    @property
    def base(self) -> Any:
        """What the array is a view of: None if it is all of its memory.

        Otherwise the object that owns memory from elsewhere, or an array of uint8 over
        all the bytes that the array shares with others.
        """
        return base_of(self)

    @property
    def data(self) -> memoryview:
        """The memory, as a `memoryview`, which exports it."""
        return memoryview(self)

    @property
    def ctypes(self) -> Any:
        """NumPy's object for calls through `ctypes`, which exports the memory."""
        return numpy_view(self).ctypes

    @property
    def __torch_function__(self) -> Callable[..., Any]:
        """How PyTorch calls a function with numbers, masks and indices of NumPy."""
        return torch_function(self)

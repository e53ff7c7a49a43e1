"""`NDArray`: the array that users hold, with its operators and protocols."""

cimport cython
from cpython.object cimport Py_EQ, Py_GE, Py_GT, Py_LE, Py_LT, PyObject
from cpython.ref cimport Py_INCREF

from math import trunc
from numbers import Complex, Integral, Real
from operator import floordiv, lshift, mod, rshift

import numpy as np
from numpy.lib.stride_tricks import as_strided

from ndx._array.interchange cimport dlpack_device, fill_buffer, release_buffer
from ndx._array.storage cimport (
    BaseArray, as_number, check_room, holds_number, is_array, make_number_types,
    new_number, numpy_view, own_block, require_intact_file, require_usable,
    set_array_type,
)
from ndx._blocks.block cimport (
    Clock, block_close, block_is_closed, block_is_lost, block_is_usable,
)
from ndx._compute.copies cimport copy as copy_of
from ndx._compute.costs cimport LARGE
from ndx._compute.elementwise cimport (
    as_operand, binary, inplace, power, unary,
)
from ndx._compute.loops cimport Ufunc, find_ufunc
from ndx._compute.matmul cimport matmul
from ndx._compute.numpy_results cimport backend_of_block
from ndx._compute.temporaries cimport learn_operators, reusable
from ndx._lib.dtypes cimport (
    BOOL, FLOAT64, KIND_COMPLEX, KIND_FLOAT, KIND_INT, KIND_UINT, dtype_object,
    itemsize_of, kind_of,
)
from ndx._lib.layout cimport shape_tuple
from ndx._lib.numpy_private cimport reporting
from ndx._methods.display cimport (
    html_of, item_of, list_of, read_scalar, readable, scalar_of, text_of, text_of_dead,
)
from ndx._methods.exports cimport (
    array_interface, as_numpy, device_interface, export_dlpack,
)
from ndx._methods.files cimport commit, flush
from ndx._methods.indexing cimport get_item, items_of, set_item
from ndx._methods.moving cimport (
    detached, leveraged, leveraged_to, migrated, moved_to_device,
)
from ndx._methods.numpy_dispatch cimport (
    call_function, call_method, dispatch_function, like_operand,
)
from ndx._methods.numpy_layout cimport (
    replace_layout, reverse_axes, set_shape, swap_last,
)
from ndx._methods.numpy_methods cimport NumPyMethods
from ndx._methods.operators cimport (
    are_scalars, compute_scalars, divide_with, operate_in_place_with, operate_with,
)
from ndx._methods.pickling cimport pickled
from ndx._methods.ufuncs cimport compute_ufunc
from ndx._methods.values cimport numpy_scalar

from ndx._lib.device import device_of
from ndx._methods.method_rows import set_rows
from ndx._methods.pickling import rebuild
from ndx._methods.rounding import rounded

__all__ = ["NDArray"]

cdef Ufunc ABS = find_ufunc("abs")
cdef Ufunc ADD = find_ufunc("add")
cdef Ufunc AND = find_ufunc("bitwise_and")
cdef Ufunc DIVIDE = find_ufunc("divide")
cdef Ufunc EQUAL = find_ufunc("equal")
cdef Ufunc FLOOR_DIVIDE = find_ufunc("floor_divide")
cdef Ufunc GREATER = find_ufunc("greater")
cdef Ufunc GREATER_EQUAL = find_ufunc("greater_equal")
cdef Ufunc INVERT = find_ufunc("bitwise_invert")
cdef Ufunc LEFT_SHIFT = find_ufunc("bitwise_left_shift")
cdef Ufunc LESS = find_ufunc("less")
cdef Ufunc LESS_EQUAL = find_ufunc("less_equal")
cdef Ufunc MATMUL = find_ufunc("matmul")
cdef Ufunc MULTIPLY = find_ufunc("multiply")
cdef Ufunc NEGATIVE = find_ufunc("negative")
cdef Ufunc NOT_EQUAL = find_ufunc("not_equal")
cdef Ufunc OR = find_ufunc("bitwise_or")
cdef Ufunc POSITIVE = find_ufunc("positive")
cdef Ufunc POW = find_ufunc("pow")
cdef Ufunc REMAINDER = find_ufunc("remainder")
cdef Ufunc RIGHT_SHIFT = find_ufunc("bitwise_right_shift")
cdef Ufunc SUBTRACT = find_ufunc("subtract")
cdef Ufunc XOR = find_ufunc("bitwise_xor")

cdef object namespace = None
cdef tuple versions = ()


@cython.final
@cython.no_gc_clear
@cython.binding(False)
@cython.embedsignature(True)
cdef class NDArray(NumPyMethods):
    """An n-dimensional array of one dtype, in memory that ndx controls.

    `ndx.asarray`, `ndx.zeros` and the other functions of the namespace make arrays in
    the current workspace or on the current backend. The memory is freed when the last
    array that shares it is deleted. A workspace reclaims it when its scope ends: then
    the data can't be used, any attempt raises `ndx.StaleArrayError`, and only `shape`,
    `dtype` and the ``repr`` remain.

    Notes
    -----
    Array API 2025.12, array object. Any thread may read an array. Threads that write
    need a lock, as with NumPy.
    """

    # ------------------------------------------------------------ attributes

    @property
    def dtype(self) -> DType:
        """Data type of the elements: an ``np.dtype`` instance."""
        return dtype_object(self.dtype)

    @dtype.setter
    def dtype(self, value: DTypeLike) -> None:
        view = call_method("view", (self, value), {})
        replace_layout(self, view, "x.view(dtype)")

    @property
    def shape(self) -> tuple[int, ...]:
        """Length of each axis."""
        return shape_tuple(self.ndim, self.shape)

    @shape.setter
    def shape(self, value: Any) -> None:
        set_shape(self, value)

    @property
    def strides(self) -> tuple[int, ...]:
        """Bytes from one element to the next, along each axis."""
        return shape_tuple(self.ndim, self.strides)

    @strides.setter
    def strides(self, value: Any) -> None:
        shape = shape_tuple(self.ndim, self.shape)
        view = call_function(as_strided, (self, shape, value), {})
        replace_layout(self, view, "as_strided(x, shape, strides)")

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return self.ndim

    @property
    def size(self) -> int:
        """Number of elements."""
        return self.size

    @property
    def itemsize(self) -> int:
        """Bytes of one element."""
        return itemsize_of[self.dtype]

    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
        return self.size * itemsize_of[self.dtype]

    @property
    def device(self) -> Device:
        """Device that the array lies on: an `ndx.Device`."""
        return device_of(self.block.device)

    @property
    def T(self) -> NDArray:
        """The array with its axes in reverse order, as a view.

        The standard has it for matrices only, NumPy for all arrays.
        """
        return reverse_axes(self)

    @property
    def mT(self) -> NDArray:
        """The transpose of each matrix in a stack, as a view."""
        if self.ndim < 2:
            raise ValueError(
                f"mT is for arrays of 2 axes or more, this one has {self.ndim}")
        return swap_last(self)

    # ------------------------------------------------------------ memory

    @property
    def attached(self) -> bool:
        """Whether the array is in a workspace, which reclaims it."""
        return self.block.clock != NULL

    @property
    def in_scope(self) -> bool:
        """Whether the array may be used: it is neither stale nor closed."""
        return block_is_usable(self.block)

    @property
    def workspace(self) -> str | None:
        """Name of the array's workspace; None without one."""
        return None if self.block.clock == NULL else (<Clock>self.block.clock).name

    @property
    def backend(self) -> Backend | None:
        """Backend of the memory; None if foreign, freed, or that of an element."""
        return backend_of_block(self.block)

    def detach(self) -> NDArray:
        """Return an array that outlives the workspace's scope.

        Returns
        -------
        NDArray
            A copy that Python's reference counting owns, from the backend that is
            current outside of the workspaces. The array itself if it is in no
            workspace.

        Raises
        ------
        StaleArrayError
            If the scope has ended already.

        Notes
        -----
        ND4J's ``INDArray.detach()``.

        Examples
        --------
        >>> import ndx
        >>> with ndx.workspace("step"):
        ...     kept = ndx.ones(3).detach()
        >>> kept
        NDArray([1., 1., 1.])
        """
        return detached(self)

    def leverage(self) -> NDArray:
        """Return the array in the workspace around the current one.

        Returns
        -------
        NDArray
            A copy in the workspace that encloses the current one, valid until that
            workspace's scope ends. A detached copy if no workspace encloses it. The
            array itself if it is in no workspace, or in the enclosing one already.

        Raises
        ------
        StaleArrayError
            If the array's scope has ended already.

        Notes
        -----
        ND4J's ``INDArray.leverage()``.

        Examples
        --------
        >>> import ndx
        >>> with ndx.workspace("outer"):
        ...     with ndx.workspace("inner"):
        ...         x = ndx.ones(3).leverage()
        ...     x.workspace
        'outer'
        """
        return leveraged(self)

    def leverage_to(self, workspace: str | Workspace, /, *,
                    missing: Missing = "keep") -> NDArray:
        """Return the array in a workspace that is open here.

        Parameters
        ----------
        workspace : str or Workspace
            The workspace, or its name.
        missing : {"keep", "raise", "detach"}
            If no scope of the workspace is open here: return the array itself, raise,
            or return a detached copy.

        Returns
        -------
        NDArray
            A copy in that workspace. The array itself if it is in no workspace, or in
            that one already.

        Raises
        ------
        StaleArrayError
            If the array's scope has ended already.
        TypeError
            If `workspace` is neither a workspace nor a name.
        WorkspaceError
            If the workspace is not open here and `missing` is ``"raise"``.

        Notes
        -----
        ND4J's ``leverageTo`` and ``leverageOrDetach``.

        Examples
        --------
        >>> import ndx
        >>> with ndx.workspace("outer"):
        ...     with ndx.workspace("inner"):
        ...         x = ndx.ones(3).leverage_to("outer")
        ...     x.in_scope
        True
        """
        return leveraged_to(self, workspace, missing)

    def migrate(self, /, *, missing: Missing = "keep") -> NDArray:
        """Return a copy in the current workspace.

        Parameters
        ----------
        missing : {"keep", "raise", "detach"}
            If no scope of a workspace is open here: return the array itself, raise, or
            return a detached copy.

        Returns
        -------
        NDArray
            A copy if a workspace is current, even of arrays in no workspace.

        Raises
        ------
        StaleArrayError
            If the array's scope has ended already.
        WorkspaceError
            If there is no current workspace and `missing` is ``"raise"``.

        Notes
        -----
        ND4J's ``INDArray.migrate()``.

        Examples
        --------
        >>> import ndx
        >>> x = ndx.ones(3)
        >>> with ndx.workspace("step"):
        ...     x.migrate().workspace
        'step'
        """
        return migrated(self, missing)

    def close(self) -> None:
        """Free the memory now; all arrays that share it become unusable.

        Memory that another library owns (`asarray`, `from_dlpack`) is its owner's to
        free, when the last array over it is gone.

        Raises
        ------
        BufferError
            If an operation is using the memory, or a NumPy view, a buffer or a DLPack
            capsule of it is alive. Nothing is changed then.
        StaleArrayError
            If its workspace's scope has ended.
        """
        if holds_number(self):
            return                   # its element lies in the object
        if not (block_is_closed(self.block) or block_is_lost(self.block)):
            require_usable(self)
        block_close(own_block(self))

    def flush(self) -> None:
        """Wait until all data written to the array's file is on disk.

        For arrays of `ndx.open` with mode ``"r+"`` or ``"w+"``, and arrays in a
        workspace with a ``path``. A view flushes the whole file, too.

        Raises
        ------
        ValueError
            If the array is in no file, or the file has another mode.
        OSError
            If the disk fails.
        """
        flush(self)

    def commit(self) -> None:
        """Replace the array's file by its content in memory, atomically.

        For arrays of `ndx.open` with mode ``"c"``. A view commits the whole file, too.
        After a crash the file has either its old or its new content. If other threads
        write to the array meanwhile, the file may have any part of their data.

        Raises
        ------
        ValueError, OSError
            As for `flush`. The file and the array are unchanged then.
        """
        commit(self)

    def to_device(self, device: DeviceLike, /, *, stream: Any = None) -> NDArray:
        """Return the array on a device: itself if it is there, else a copy.

        Parameters
        ----------
        device : Device or str
            ``"cpu"``, ``"cuda:0"``, ...
        stream : object, optional
            A CuPy stream, or its handle, for copies between the CPU and a GPU.
            Default: the current stream.

        Returns
        -------
        NDArray
            From the workspace or backend that is current for the device.

        Raises
        ------
        ValueError
            If there is no such device, or a stream is given for an array that stays on
            the CPU.
        """
        return moved_to_device(self, device, stream)

    # ------------------------------------------------------------ Python scalars

    def __bool__(self) -> bool:
        return bool(scalar_of(self, "bool"))

    def __int__(self) -> int:
        return int(scalar_of(self, "int"))

    def __float__(self) -> float:
        return float(scalar_of(self, "float"))

    def __trunc__(self) -> int:
        return trunc(scalar_of(self, "trunc"))

    def __round__(self, ndigits: int | None = None) -> Any:
        """Round to decimal digits; without axes and without `ndigits` to an int."""
        if ndigits is None and self.ndim == 0 and self.dtype != BOOL:
            return round(scalar_of(self, "round"))
        return like_operand(self, rounded(namespace, self, ndigits))

    def __complex__(self) -> complex:
        return complex(scalar_of(self, "complex"))

    def __index__(self) -> int:
        if kind_of[self.dtype] >= KIND_FLOAT or self.dtype == BOOL:
            raise TypeError(
                f"only an integer array can be an index, not one of "
                f"{dtype_object(self.dtype)}")
        return scalar_of(self, "index")

    def item(self, *args: Any) -> Scalar:
        """Return an element as a Python scalar.

        Parameters
        ----------
        *args : int, or one tuple of int
            The index of the element: in the flattened array, or along each axis.
            Default: of the only one.
        """
        return item_of(self, args)

    def tolist(self) -> Any:
        """Return the elements as Python scalars, in nested lists."""
        # The list has one reference per element. Objects are not counted: Python may
        # share them.
        check_room(self.size, sizeof(void *), "tolist")
        if self.ndim == 1 and self.size < LARGE and self.block.device == 0:
            return list_of(self)
        values = numpy_view(readable(self)).tolist()
        require_intact_file(self)
        return values

    def __format__(self, spec: str) -> str:
        if not isinstance(spec, str):
            raise TypeError(
                f"a format specification is a str, not {type(spec).__name__}")
        if self.ndim == 0 and (spec or holds_number(self) and self.dtype == FLOAT64):
            return format(scalar_of(self, "format"), spec)
        return format(str(self), spec)

    def __sizeof__(self) -> int:
        cdef Py_ssize_t nbytes = sizeof(BaseArray)
        if self.block.parent == NULL and (
                self.block.backend != NULL or self.block.memory_owner != NULL):
            nbytes += self.block.nbytes
        return nbytes

    # ------------------------------------------------------------ container

    def __len__(self) -> int:
        if self.ndim == 0:
            raise TypeError("an array without axes has no len()")
        return self.shape[0]

    def __iter__(self) -> Iterator[NDArray]:
        if self.ndim == 0:
            raise TypeError("an array without axes can't be iterated over")
        require_usable(self)
        return items_of(self)

    def __contains__(self, value: Any) -> bool:
        equal = operate(EQUAL, self, value)
        if is_array(equal):
            return bool(numpy_view(readable(equal)).any())
        return equal is not NotImplemented and bool(np.any(equal))

    def __getitem__(self, key: Key) -> NDArray:
        """Return a view, or a copy for advanced keys and for integers on all axes."""
        require_usable(self)
        return get_item(self, key)

    def __setitem__(self, key: Key, value: Any) -> None:
        set_item(self, key, value)

    def __delitem__(self, key):
        raise TypeError("elements of an array can't be deleted")

    # ------------------------------------------------------------ operators

    def __richcmp__(self, other: Operand, int op) -> NDArray:
        cdef Ufunc ufunc
        if op == Py_EQ:
            ufunc = EQUAL
        elif op == Py_LT:
            ufunc = LESS
        elif op == Py_GT:
            ufunc = GREATER
        elif op == Py_LE:
            ufunc = LESS_EQUAL
        elif op == Py_GE:
            ufunc = GREATER_EQUAL
        else:
            ufunc = NOT_EQUAL
        return operate(ufunc, self, other)

    __hash__ = None

    def __neg__(self) -> NDArray:
        return unary(NEGATIVE, self, None)

    def __pos__(self) -> NDArray:
        return unary(POSITIVE, self, None)

    def __abs__(self) -> NDArray:
        # As in NumPy; the standard's function takes numbers only.
        if self.dtype == BOOL:
            return copied(self)
        return unary(ABS, self, None)

    def __invert__(self) -> NDArray:
        return unary(INVERT, self, None)

    def __add__(self, other: Operand) -> NDArray:
        return operate(ADD, self, other)

    def __radd__(self, other: Operand) -> NDArray:
        return operate(ADD, other, self)

    def __iadd__(self, other: Operand) -> Self:
        return operate_inplace(ADD, self, other)

    def __sub__(self, other: Operand) -> NDArray:
        return operate(SUBTRACT, self, other)

    def __rsub__(self, other: Operand) -> NDArray:
        return operate(SUBTRACT, other, self)

    def __isub__(self, other: Operand) -> Self:
        return operate_inplace(SUBTRACT, self, other)

    def __mul__(self, other: Operand) -> NDArray:
        return operate(MULTIPLY, self, other)

    def __rmul__(self, other: Operand) -> NDArray:
        return operate(MULTIPLY, other, self)

    def __imul__(self, other: Operand) -> Self:
        return operate_inplace(MULTIPLY, self, other)

    def __truediv__(self, other: Operand) -> NDArray:
        return operate(DIVIDE, self, other)

    def __rtruediv__(self, other: Operand) -> NDArray:
        return operate(DIVIDE, other, self)

    def __itruediv__(self, other: Operand) -> Self:
        return operate_inplace(DIVIDE, self, other)

    def __floordiv__(self, other: Operand) -> NDArray:
        return operate_as_scalars(FLOOR_DIVIDE, floordiv, self, other)

    def __rfloordiv__(self, other: Operand) -> NDArray:
        return operate_as_scalars(FLOOR_DIVIDE, floordiv, other, self)

    def __ifloordiv__(self, other: Operand) -> Self:
        return operate_inplace(FLOOR_DIVIDE, self, other)

    def __mod__(self, other: Operand) -> NDArray:
        return operate_as_scalars(REMAINDER, mod, self, other)

    def __rmod__(self, other: Operand) -> NDArray:
        return operate_as_scalars(REMAINDER, mod, other, self)

    def __imod__(self, other: Operand) -> Self:
        return operate_inplace(REMAINDER, self, other)

    def __divmod__(self, other: Operand) -> tuple[NDArray, NDArray]:
        return divide_with_remainder(self, other)

    def __rdivmod__(self, other: Operand) -> tuple[NDArray, NDArray]:
        return divide_with_remainder(other, self)

    def __and__(self, other: Operand) -> NDArray:
        return operate(AND, self, other)

    def __rand__(self, other: Operand) -> NDArray:
        return operate(AND, other, self)

    def __iand__(self, other: Operand) -> Self:
        return operate_inplace(AND, self, other)

    def __or__(self, other: Operand) -> NDArray:
        return operate(OR, self, other)

    def __ror__(self, other: Operand) -> NDArray:
        return operate(OR, other, self)

    def __ior__(self, other: Operand) -> Self:
        return operate_inplace(OR, self, other)

    def __xor__(self, other: Operand) -> NDArray:
        return operate(XOR, self, other)

    def __rxor__(self, other: Operand) -> NDArray:
        return operate(XOR, other, self)

    def __ixor__(self, other: Operand) -> Self:
        return operate_inplace(XOR, self, other)

    def __lshift__(self, other: Operand) -> NDArray:
        return operate_as_scalars(LEFT_SHIFT, lshift, self, other)

    def __rlshift__(self, other: Operand) -> NDArray:
        return operate_as_scalars(LEFT_SHIFT, lshift, other, self)

    def __ilshift__(self, other: Operand) -> Self:
        return operate_inplace(LEFT_SHIFT, self, other)

    def __rshift__(self, other: Operand) -> NDArray:
        return operate_as_scalars(RIGHT_SHIFT, rshift, self, other)

    def __rrshift__(self, other: Operand) -> NDArray:
        return operate_as_scalars(RIGHT_SHIFT, rshift, other, self)

    def __irshift__(self, other: Operand) -> Self:
        return operate_inplace(RIGHT_SHIFT, self, other)

    def __pow__(self, other: Operand, modulo: None) -> NDArray:
        return NotImplemented if modulo is not None else raise_to_power(self, other)

    def __rpow__(self, other: Operand, modulo: None) -> NDArray:
        if modulo is not None:
            return NotImplemented
        return operate_as_scalars(POW, pow, other, self)

    def __ipow__(self, other: Operand, modulo: None) -> Self:
        if modulo is not None:
            return NotImplemented
        return raise_in_place(self, other)

    def __matmul__(self, other: Array) -> NDArray:
        return multiply_matrices(self, other)

    def __rmatmul__(self, other: Array) -> NDArray:
        return multiply_matrices(other, self)

    def __imatmul__(self, other: Array) -> Self:
        return multiply_matrices_in_place(self, other)

    # ------------------------------------------------------------ protocols

    def __array_namespace__(self, /, *, api_version: str | None = None) -> ModuleType:
        """Return `ndx`, the namespace of the functions for this array.

        Parameters
        ----------
        api_version : str, optional
            The version of the array API standard that is wanted: "2021.12", "2022.12",
            "2023.12", "2024.12" or "2025.12". Each version contains the one before, so
            one namespace serves all of them.

        Raises
        ------
        ValueError
            For any other version.
        """
        if api_version is not None and api_version not in versions:
            raise ValueError(
                f"version {api_version!r} of the array API is not supported; valid "
                f"are {', '.join(versions)}")
        return namespace

    def __getbuffer__(self, Py_buffer *buffer, int flags):
        fill_buffer(self, self, buffer, flags)

    def __releasebuffer__(self, Py_buffer *buffer):
        release_buffer(buffer)

    def __array__(self, dtype: DTypeLike = None, copy: bool | None = None) -> NPArray:
        """Return a NumPy array, over the same memory unless a copy is needed."""
        return as_numpy(self, dtype, copy)

    def to_numpy(self, dtype: DTypeLike = None, copy: bool | None = None) -> NPArray:
        """Return a NumPy array over the same memory, as `numpy.asarray` does.

        Libraries call a method of this name to get NumPy's arrays; pandas, polars and
        PyArrow have it, too. The memory is pinned while the NumPy array lives.

        Parameters
        ----------
        dtype : dtype, optional
            The dtype of the result, if it is not that of the array.
        copy : bool, optional
            True copies always. False never does, and raises ValueError where it must.
            By default only what needs a copy is copied: another dtype.

        Returns
        -------
        numpy.ndarray

        Examples
        --------
        >>> import ndx
        >>> ndx.arange(3).to_numpy()
        array([0, 1, 2])
        """
        return self.__array__(dtype, copy)

    def __arrow_array__(self, type: Any = None) -> Any:
        """Return a PyArrow array, over the same memory unless a copy is needed."""
        from pyarrow import array
        return array(numpy_view(self), type=type)

    def __jax_array__(self) -> Any:
        """Return a copy as an array of JAX, which takes its arrays for constants."""
        from jax.numpy import array
        return array(numpy_view(self))

    @property
    def __array_interface__(self) -> dict[str, Any]:
        """NumPy's array interface; exports the memory until the array dies."""
        return array_interface(self)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """CUDA's array interface; exports the memory until the array dies."""
        return device_interface(self)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any,
                        **kwargs: Any) -> Any:
        """Compute a NumPy ufunc, or one of its methods."""
        return compute_ufunc(ufunc, method, inputs, kwargs)

    def __array_function__(self, func: Callable[..., Any], types: Any,
                           args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Compute a function of NumPy; its new arrays are NDArrays."""
        return dispatch_function(func, types, args, kwargs)

    def __dlpack_device__(self) -> tuple[int, int]:
        """Return DLPack's device type and id: (1, 0) is the CPU, (2, n) a GPU."""
        return dlpack_device(self)

    def __dlpack__(self, /, *, stream: int | None = None, max_version: OptPair = None,
                   dl_device: OptPair = ..., copy: bool | None = ...) -> Any:
        """Return a DLPack capsule, which exports the memory.

        Parameters
        ----------
        stream : int, optional
            For arrays on a GPU, the handle of the consumer's stream, which then waits
            for the work that computes the array. -1: no synchronization. None: the
            default stream. The CPU has no streams.
        max_version : tuple of int, optional
            The highest DLPack version that the consumer supports. From (1, 0) on the
            capsule is versioned, and read-only arrays can be exported.
        dl_device : tuple of int, optional
            The device for the consumer: the array's own, or (1, 0), the CPU.
        copy : bool, optional
            True: export a copy. None and False: the memory itself.

        Raises
        ------
        BufferError
            If the array can't be exported as asked: it is read-only and the capsule
            can't say so, or it is reversed along an axis and the consumer may not take
            negative strides. NumPy takes them, which passes None for `dl_device` or
            `copy`.
        """
        return export_dlpack(self, stream, max_version, dl_device, copy)

    def __copy__(self) -> NDArray:
        return copied(self)

    def __deepcopy__(self, memo: Any) -> NDArray:
        return copied(self)

    def __reduce_ex__(self, protocol):
        if holds_number(self):
            return rebuild_number, (dtype_object(self.dtype).name, read_scalar(self))
        return rebuild, pickled(self, protocol)

    def __repr__(self):
        return text_of(self)

    def _repr_html_(self) -> str:
        """Return the display in a notebook: the repr, and where the array lies."""
        return html_of(self)

    def __str__(self):
        if holds_number(self):
            return str(numpy_scalar(self))
        dead = text_of_dead(self)
        if dead is None:
            text = str(numpy_view(readable(self)))
            require_intact_file(self)
            return text
        return dead


cdef extern from *:
    """
    /* `__hash__` is None, which says that there are no hashes. This says what to do. */
    static Py_hash_t ndx_no_hash(PyObject *x) {
        PyErr_SetString(
            PyExc_TypeError,
            "unhashable type: 'ndx.NDArray', whose elements may change; as a key or in "
            "a set take x.item() of an element, or tuple(x.tolist())");
        return -1;
    }
    static void ndx_set_no_hash(PyObject *cls) {
        ((PyTypeObject *)cls)->tp_hash = ndx_no_hash;
    }
    """
    void ndx_set_no_hash(object cls) noexcept

set_array_type(NDArray, b"ndx.NDArray")
ndx_set_no_hash(NDArray)


# ---------------------------------------------------------------- numbers

cdef BaseArray copied(BaseArray x):
    """Return a copy of an array; a number itself, which nobody can change."""
    return x if holds_number(x) else copy_of(x)


cdef Py_hash_t number_hash(PyObject *number) except? -1:
    """Return the hash of a number: that of its Python scalar."""
    return hash(read_scalar(<BaseArray>number))


cdef PyObject *number_made(int dtype, PyObject *args, PyObject *kwargs) except NULL:
    """Call the class of a number as NumPy's class of scalars of that dtype."""
    made = as_operand(dtype_object(dtype).type(
        *<tuple>args, **({} if kwargs == NULL else <dict>kwargs)))
    Py_INCREF(made)
    return <PyObject *>made


cdef PyObject *number_attribute(PyObject *number, PyObject *name) except NULL:
    """Return an attribute that NumPy's scalars have, and arrays have not."""
    cdef BaseArray x = <BaseArray>number
    scalar = None if (<str>name).startswith("_") else numpy_scalar(x)
    if not hasattr(scalar, <str>name):
        raise AttributeError(
            f"a number of dtype {dtype_object(x.dtype)} has no attribute "
            f"{<str>name!r}: neither have arrays, nor NumPy's scalars of that dtype",
            name=<str>name, obj=x)
    found = getattr(scalar, <str>name)
    Py_INCREF(found)
    return <PyObject *>found


number_types = make_number_types(number_hash, number_made, number_attribute, &reporting)
for code, number_type in enumerate(number_types):
    globals()[number_type.__name__] = number_type
    if kind_of[code] in (KIND_INT, KIND_UINT):
        Integral.register(number_type)
    elif kind_of[code] == KIND_FLOAT:
        Real.register(number_type)
    elif kind_of[code] == KIND_COMPLEX:
        Complex.register(number_type)


# A number takes nothing of a backend, which would count an array.
learn_operators(new_number(BOOL))


def rebuild_number(dtype, value):
    """Return a number that was pickled."""
    return as_operand(np.dtype(dtype).type(value))


cdef inline object operate(Ufunc ufunc, object x1, object x2):
    """Compute an operator of two operands, one of which may be no array."""
    cdef BaseArray out = None
    if is_array(x1):
        out = reusable(ufunc, <BaseArray>x1, x2)
    if out is None and is_array(x2):
        out = reusable(ufunc, <BaseArray>x2, x1)
    result = binary(ufunc, x1, x2, out)
    return operate_with(ufunc, x1, x2) if result is NotImplemented else result


cdef object operate_as_scalars(Ufunc ufunc, object function, object x1, object x2):
    """Compute an operator whose result for numbers may differ from that for arrays."""
    if is_array(x1) and not holds_number(<BaseArray>x1) or not are_scalars(x1, x2):
        return operate(ufunc, x1, x2)
    return compute_scalars(function, x1, x2)


cdef object raise_to_power(BaseArray x, object exponent):
    if are_scalars(x, exponent):
        return compute_scalars(pow, x, exponent)
    result = power(x, exponent, None)
    return operate(POW, x, exponent) if result is NotImplemented else result


cdef object divide_with_remainder(object x1, object x2):
    """Compute both results of `divmod`; neither over an operand, which both read."""
    if are_scalars(x1, x2):
        return compute_scalars(divmod, x1, x2)
    quotient = binary(FLOOR_DIVIDE, x1, x2, None)
    if quotient is NotImplemented:
        return divide_with(FLOOR_DIVIDE, x1, x2)
    return quotient, binary(REMAINDER, x1, x2, None)


cdef object operate_inplace(Ufunc ufunc, BaseArray x, object other):
    result = inplace(ufunc, x, other)
    return operate_in_place_with(ufunc, x, other) if result is NotImplemented \
        else result


cdef object raise_in_place(BaseArray x, object exponent):
    require_usable(x)
    result = power(x, exponent, x)
    return operate_inplace(POW, x, exponent) if result is NotImplemented else result


cdef object multiply_matrices(object x1, object x2):
    result = matmul(x1, x2, None)
    if result is NotImplemented:
        return operate_with(MATMUL, x1, x2)
    return as_number(<BaseArray>result)


cdef object multiply_matrices_in_place(BaseArray x, object other):
    result = matmul(x, other, x)
    return operate_in_place_with(MATMUL, x, other) if result is NotImplemented \
        else result


def set_namespace(module, supported_versions):
    """Set the namespace of all arrays; the namespace does so once, at import."""
    global namespace, versions
    namespace = module
    versions = tuple(supported_versions)
    set_rows(module)

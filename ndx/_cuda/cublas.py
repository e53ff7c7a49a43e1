"""Matrix products by cuBLAS itself, for graphs: CuPy refuses to capture its own.

The functions and their parameters are those of NVIDIA's cuBLAS documentation
(``cublasCreate``, ``cublasSetStream``, ``cublasSetWorkspace``,
``cublasGemmStridedBatchedEx``). The library exports the first three with the suffix
``_v2``. Its matrices are in column-major order, those of ndx in row-major, which is the
same memory transposed: so ``C = A B`` is computed as ``C^T = B^T A^T``.
"""

from ctypes import POINTER, byref, c_double, c_float, c_int, c_longlong, c_size_t
from ctypes import c_void_p as pointer
from itertools import product as combinations
from math import prod

import numpy as np

from ndx._lib.errors import DeviceError
from ndx.backends import _cupy

__all__ = ["ALIGN", "Handle", "product"]

_matrix = (pointer, c_int, c_int, c_longlong)  # address, dtype, leading dimension, step
PROTOTYPES = {
    "cublasCreate_v2": (POINTER(pointer),),
    "cublasSetStream_v2": (pointer, pointer),
    "cublasSetWorkspace_v2": (pointer, pointer, c_size_t),
    "cublasGemmStridedBatchedEx": (
        pointer, c_int, c_int,              # handle, operations on A and B
        c_int, c_int, c_int,                # m, n, k
        pointer, *_matrix, *_matrix,        # alpha, A, B
        pointer, *_matrix,                  # beta, C
        c_int, c_int, c_int,                # count, type of computation, algorithm
    ),
}  # fmt: skip

_AS_IT_IS, _TRANSPOSED = 0, 1  # CUBLAS_OP_N, CUBLAS_OP_T
_DEFAULT = -1  # CUBLAS_GEMM_DEFAULT
# For each dtype: its cudaDataType, its cublasComputeType_t, and the numbers 1 and 0.
_TYPES = {
    "float32": (0, 68, (c_float * 1)(1), (c_float * 1)()),
    "float64": (1, 70, (c_double * 1)(1), (c_double * 1)()),
    "complex64": (4, 68, (c_float * 2)(1), (c_float * 2)()),
    "complex128": (5, 70, (c_double * 2)(1), (c_double * 2)()),
}
_STATUS = {
    1: "CUBLAS_STATUS_NOT_INITIALIZED", 3: "CUBLAS_STATUS_ALLOC_FAILED",
    7: "CUBLAS_STATUS_INVALID_VALUE", 8: "CUBLAS_STATUS_ARCH_MISMATCH",
    11: "CUBLAS_STATUS_MAPPING_ERROR", 13: "CUBLAS_STATUS_EXECUTION_FAILED",
    14: "CUBLAS_STATUS_INTERNAL_ERROR", 15: "CUBLAS_STATUS_NOT_SUPPORTED",
    16: "CUBLAS_STATUS_LICENSE_ERROR",
}  # fmt: skip
_MOST = 2**31 - 1

ALIGN = 256  # bytes: of cuBLAS's workspace
# NVIDIA's recommendation, by major compute capability (Hopper, Blackwell).
_WORKSPACE_MIB = {9: 32, 10: 32, 12: 32}
_WORKSPACE_MIB_OF_OTHERS = 4


class Handle:
    """A handle of cuBLAS for the current GPU, used by one thread at a time.

    It is reused, and never destroyed, because that would wait for the GPU.

    Parameters
    ----------
    major : int
        The major number of the GPU's compute capability.

    Attributes
    ----------
    nbytes : int
        Bytes of the work area that it needs.
    """

    def __init__(self, major):
        self.nbytes = _WORKSPACE_MIB.get(major, _WORKSPACE_MIB_OF_OTHERS) << 20
        self.functions = _cupy.cublas()
        for name, types in PROTOTYPES.items():
            function = getattr(self.functions, name)
            function.argtypes, function.restype = types, c_int
        self.handle = pointer()
        self._call("cublasCreate_v2", byref(self.handle))

    def work_on(self, stream, address):
        """Set the stream, and the work area: `nbytes` of the caller's memory."""
        self._call("cublasSetStream_v2", self.handle, stream)
        # The stream first: setting it resets the workspace.
        self._call("cublasSetWorkspace_v2", self.handle, address, self.nbytes)

    def multiply(self, dtype, sizes, first, second, out, count):
        """Multiply matrices in column-major order: cuBLAS's parameters, in its order.

        Parameters
        ----------
        dtype : dtype
        sizes : tuple of int
            Rows and columns of the result, and the length of the sums.
        first, second : tuple of int
            The operation, the address, the leading dimension, and the elements from
            one matrix of a stack to the next.
        out : tuple of int
            The same without the operation.
        count : int
            Matrices in a stack.
        """
        if max(*sizes, first[2], second[2], out[1], count) > _MOST:
            msg = (
                f"a matrix product of {sizes[1]} x {sizes[2]} and {sizes[2]} x "
                f"{sizes[0]} elements, {count} times, is too large for cuBLAS, whose "
                f"lengths go up to {_MOST}: compute it in parts"
            )
            raise DeviceError(msg)
        kind, computed_as, one, zero = _TYPES[dtype.name]
        self._call(
            "cublasGemmStridedBatchedEx",
            self.handle, first[0], second[0], *sizes,
            one, first[1], kind, *first[2:],
            second[1], kind, *second[2:],
            zero, out[0], kind, *out[1:],
            count, computed_as, _DEFAULT,
        )  # fmt: skip

    def _call(self, name, *args):
        status = getattr(self.functions, name)(*args)
        if status:
            msg = (
                f"cuBLAS failed: {name} returned "
                f"{_STATUS.get(status, 'an unknown status')} ({status})"
            )
            raise DeviceError(msg)


def product(handle, a, b):
    """Return the matrix product of CuPy's arrays of one dtype, stacked and broadcast.

    Parameters
    ----------
    handle : callable
        Returns the `Handle`, set to the current stream.
    a, b : cupy.ndarray
        Of floating-point or complex numbers.
    """
    left = a[None, :] if a.ndim == 1 else a
    right = b[:, None] if b.ndim == 1 else b
    rows, inner, columns = left.shape[-2], left.shape[-1], right.shape[-1]
    if right.shape[-2] != inner:
        msg = f"matmul: shapes {a.shape} and {b.shape} don't match"
        raise ValueError(msg)
    batch = np.broadcast_shapes(left.shape[:-2], right.shape[:-2])
    out = _cupy.load().empty((*batch, rows, columns), dtype=a.dtype)
    if out.size and inner:
        _fill_in(handle(), left, right, out)
    elif out.size:
        out.fill(0)
    shape = batch + (rows,) * (a.ndim > 1) + (columns,) * (b.ndim > 1)
    return out.reshape(shape)


def _fill_in(handle, left, right, out):
    """Compute a product with elements, whose sums are not empty, into an array."""
    rows, columns = out.shape[-2:]
    itemsize = out.dtype.itemsize
    left, *left_as = _as_cublas_can(left)
    right, *right_as = _as_cublas_can(right)
    steps = _steps(left, out), _steps(right, out)
    axes = _merged(out.shape[:-2], *steps, rows * columns)
    # One call for the longest stack; a loop over the others.
    stack = max(axes, default=(1, 0, 0, 0))
    others = [axis for axis in axes if axis is not stack]
    count, *steps = stack
    for place in combinations(*[range(axis[0]) for axis in others]):
        starts = [x.data.ptr for x in (left, right, out)]
        for i, (_, *apart) in zip(place, others, strict=True):
            starts = [
                start + itemsize * i * step
                for start, step in zip(starts, apart, strict=True)
            ]
        handle.multiply(
            out.dtype,
            (columns, rows, left.shape[-1]),
            (right_as[0], starts[1], right_as[1], steps[1]),
            (left_as[0], starts[0], left_as[1], steps[0]),
            (starts[2], columns, steps[2]),
            count,
        )


def _as_cublas_can(x):
    """Return an array, compacted if necessary, with operation and leading dimension.

    For cuBLAS, the memory of a matrix in row-major order, or of a view of one, is the
    transposed matrix. That is the operand that it needs, without an operation. A
    transposed view has to be transposed by cuBLAS.
    """
    found = _described(x)
    if found is None:
        x = x.copy(order="C")
        found = _described(x)
    return x, *found


def _described(x):
    """Return the operation and leading dimension of a stack of matrices, or None."""
    steps = [divmod(step, x.dtype.itemsize) for step in x.strides]
    if any(rest for _, rest in steps) or any(step < 0 for step, _ in steps[:-2]):
        return None
    (rows, columns), (down, right) = x.shape[-2:], [step for step, _ in steps[-2:]]
    if columns == 1 or right == 1:
        leading = down if rows > 1 else columns
        if leading >= columns:
            return _AS_IT_IS, leading
    if rows == 1 or down == 1:
        leading = right if columns > 1 else rows
        if leading >= rows:
            return _TRANSPOSED, leading
    return None


def _steps(x, out):
    """Return the elements from one matrix to the next, for each axis of stacks."""
    missing = out.ndim - x.ndim
    return [0] * missing + [
        0 if length == 1 else step // x.dtype.itemsize
        for length, step in zip(x.shape[:-2], x.strides[:-2], strict=True)
    ]


def _merged(shape, left, right, size):
    """Return the least axes of stacks: (length, steps of left, right, result).

    Parameters
    ----------
    shape : tuple of int
        The shape of the stacks.
    left, right : list of int
        Elements from one matrix to the next.
    size : int
        Elements of a matrix of the result, which is contiguous.
    """
    axes = []
    for length, a, b in zip(
        reversed(shape), reversed(left), reversed(right), strict=True
    ):
        if length == 1:
            continue
        inner = axes[-1] if axes else None
        if inner and (a, b) == (inner[0] * inner[1], inner[0] * inner[2]):
            axes[-1] = (length * inner[0], *inner[1:])
        else:
            axes.append((length, a, b, size * prod([axis[0] for axis in axes])))
    return axes

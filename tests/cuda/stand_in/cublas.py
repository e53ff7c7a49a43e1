"""cuBLAS, as far as ndx calls it, computed by NumPy at the addresses that it is given.

Each function is one of C's, with the prototype of NVIDIA's documentation: who calls it
with other types, or too few parameters, fails. Matrices are in column-major order.
While it computes, all of its workspace is overwritten.
"""

import ctypes
import types
from ctypes import POINTER, c_int, c_longlong, c_size_t, c_void_p

import numpy as np

from .standin import machine, real

SUCCESS, NOT_INITIALIZED, INVALID_VALUE, EXECUTION_FAILED = 0, 1, 7, 13
DTYPES = {0: "float32", 1: "float64", 4: "complex64", 5: "complex128"}
COMPUTED_AS = {0: 68, 1: 70, 4: 68, 5: 70}
WORKING = 0xEE

handles = {}  # handle -> what it is set to
failing = {}  # name of a function -> the status that it returns instead
calls = []  # names of functions, with some of the parameters


def cublasCreate_v2(handle):
    if machine.captures:
        return EXECUTION_FAILED
    handle[0] = machine.handle()
    handles[handle[0]] = types.SimpleNamespace(stream=0, workspace=None)
    return SUCCESS


def cublasSetStream_v2(handle, stream):
    found = handles[handle]
    found.stream, found.workspace = stream or 0, None
    return SUCCESS


def cublasSetWorkspace_v2(handle, workspace, nbytes):
    real(workspace, nbytes)
    if workspace % 256 or nbytes < 4 << 20:
        return INVALID_VALUE
    handles[handle].workspace = workspace, nbytes
    return SUCCESS


def cublasGemmStridedBatchedEx(
    handle, transa, transb, m, n, k,
    alpha, a, a_type, lda, stride_a,
    b, b_type, ldb, stride_b,
    beta, c, c_type, ldc, stride_c,
    count, compute_type, algo,
):  # fmt: skip
    found = handles[handle]
    dtype = np.dtype(DTYPES[c_type])
    # Rows of what lies in memory.
    rows_a, rows_b = (m, k)[transa], (k, n)[transb]
    if (
        {a_type, b_type} != {c_type}
        or compute_type != COMPUTED_AS[c_type]
        or algo != -1
        or min(m, n, k, count) < 1
        or lda < rows_a
        or ldb < rows_b
        or ldc < m
        or (count > 1 and stride_c < ldc * n)
    ):
        return INVALID_VALUE
    if found.workspace is None:
        # It would have one of its own, which no graph keeps.
        return NOT_INITIALIZED
    # By value, in the call: the CPU's memory may be another's when it is computed.
    one, zero = (
        np.frombuffer(ctypes.string_at(x, dtype.itemsize), dtype)[0]
        for x in (alpha, beta)
    )
    assert (one, zero) == (1, 0)
    calls.append(("gemm", transa, transb, m, n, k, count))
    columns_a, columns_b = (k, m)[transa], (n, k)[transb]

    def matrix(address, i, step, leading, rows, columns):
        start = address + i * step * dtype.itemsize
        nbytes = ((columns - 1) * leading + rows) * dtype.itemsize
        memory = (ctypes.c_char * nbytes).from_address(real(start, nbytes))
        strides = dtype.itemsize, leading * dtype.itemsize
        return np.ndarray((rows, columns), dtype, memory, strides=strides)

    def work():
        ctypes.memset(real(*found_workspace), WORKING, found_workspace[1])
        for i in range(count):
            left = matrix(a, i, stride_a, lda, rows_a, columns_a)
            right = matrix(b, i, stride_b, ldb, rows_b, columns_b)
            left, right = (left, left.T)[transa], (right, right.T)[transb]
            with np.errstate(all="ignore"):
                # Beta is 0: what was there is not read.
                matrix(c, i, stride_c, ldc, m, n)[...] = left @ right

    found_workspace = found.workspace
    machine.perform(work, found.stream)
    return SUCCESS


_POINTED = (c_void_p, c_int, c_int, c_longlong)
PROTOTYPES = {
    cublasCreate_v2: [POINTER(c_void_p)],
    cublasSetStream_v2: [c_void_p, c_void_p],
    cublasSetWorkspace_v2: [c_void_p, c_void_p, c_size_t],
    cublasGemmStridedBatchedEx: [
        c_void_p, c_int, c_int, c_int, c_int, c_int,
        c_void_p, *_POINTED, *_POINTED, c_void_p, *_POINTED, c_int, c_int, c_int,
    ],
}  # fmt: skip


def _of_c(function, types_):
    """Return a function as one of C's, of which no exception gets out."""

    def call(*args):
        if function.__name__ in failing:
            return failing[function.__name__]
        try:
            return function(*args)
        except Exception:
            return EXECUTION_FAILED

    return ctypes.CFUNCTYPE(c_int, *types_)(call)


LIBRARY = types.SimpleNamespace(
    **{
        function.__name__: _of_c(function, types_)
        for function, types_ in PROTOTYPES.items()
    }
)

"""What CuPy refuses while its current stream is captured, in its own words."""

import numpy as np

from .standin import get_current_stream, machine

# Their results have shapes that the CPU has to know.
WAITING = {"nonzero", "unique", "flatnonzero", "argwhere", "compress", "extract"}
PRODUCTS = {"matmul", "__matmul__", "dot", "tensordot"}
SOLVERS = {
    "cholesky", "det", "eig", "eigh", "eigvals", "eigvalsh", "inv", "lstsq",
    "matrix_rank", "pinv", "qr", "slogdet", "solve", "svd",
}  # fmt: skip
# Fewer small arrays, or larger ones, are copied one by one.
MOST_JOINED, LARGE_JOINED = 8, 2 << 20


def refuse_copy(direction):
    """Refuse a copy between the CPU and the GPU, ``"H2D"`` or ``"D2H"``."""
    stream = get_current_stream().ptr
    if stream in machine.captures:
        check_valid(stream)
        raise RuntimeError(
            f"the current stream is capturing, so {direction} transfers are disallowed"
        )


def refuse(name, args, kwargs):
    """Refuse a function that uses what CuPy does not let be captured."""
    stream = get_current_stream().ptr
    arrays = [x for x in args if hasattr(x, "dtype")]
    if name == "__getitem__":
        key = args[1] if isinstance(args[1], tuple) else (args[1],)
        if any(getattr(item, "dtype", np.dtype(int)).kind == "b" for item in key):
            refuse_copy("D2H")
    elif name in WAITING:
        refuse_copy("D2H")
    elif name in ("concatenate", "stack"):
        joined = list(args[0])
        dtypes = {x.dtype for x in joined}
        total = sum(x.nbytes for x in joined)
        small = total < LARGE_JOINED * len(joined)
        if len(joined) > MOST_JOINED and len(dtypes) == 1 and small:
            refuse_copy("H2D")
    elif not all(x.size for x in arrays):
        return
    elif name in PRODUCTS:
        kind = np.result_type(*[x.dtype for x in arrays]).kind
        if kind in "fc" and not is_of_vectors(name, args, kwargs):
            refuse_library("cuBLAS", stream)
    elif name == "matrix_power":
        power = args[1]
        if power < 0:
            refuse_library("cuSOLVER", stream)
        if power > 1 and args[0].dtype.kind in "fc":
            refuse_library("cuBLAS", stream)
    elif name == "norm":
        if kwargs.get("ord") in (2, -2, "nuc") and np.size(kwargs.get("axis")) == 2:
            refuse_library("cuSOLVER", stream)
    elif name in SOLVERS:
        refuse_library("cuSOLVER", stream)


def refuse_library(name, stream):
    check_valid(stream)
    raise NotImplementedError(
        f"calling {name} API during stream capture is currently unsupported"
    )


def check_valid(stream):
    if machine.captures[stream] is None:
        raise RuntimeError(
            "the stream was capturing, but an error has invalidated the capture "
            "sequence"
        )


def is_of_vectors(name, args, kwargs):
    """Whether a product is one number of two vectors: CuPy multiplies and sums."""
    a, b = args[:2]
    if name == "tensordot":
        axes = kwargs.get("axes", 2)
        return axes == a.ndim == b.ndim
    return max(a.ndim, b.ndim) <= 2 and (
        (a.ndim == 1 or a.shape[0] == 1) and (b.ndim == 1 or b.shape[1] == 1)
    )

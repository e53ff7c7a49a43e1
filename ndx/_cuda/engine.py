"""What the namespace computes on GPUs: each function by its name.

Most are those of ``array_api_compat.cupy`` as they are. Operations follow the CPU's
own tables of dtypes, so that promotion and errors are the same on every device.
"""

from ndx import fft, linalg
from ndx._api import statistical
from ndx._api.data_types import result_type
from ndx._compute.numpy_calls import argument
from ndx._cuda import creation, transfer
from ndx._cuda.bridge import device_index
from ndx._cuda.calls import factored, standard
from ndx._cuda.overrides_elementwise import (
    ELEMENTWISE,
    elementwise,
    inplace,
    matmul,
    outer,
    round_,
    vecdot,
    where,
)
from ndx._cuda.overrides_indexing import (
    getitem,
    isin,
    repeat,
    roll,
    searchsorted,
    setitem,
    sorting,
    take,
)
from ndx._cuda.overrides_other import (
    DIVERGED,
    SINGULAR,
    eigen,
    matrix_rank,
    nothing_on_cpu,
    shifted,
    solve,
    spread,
    total,
    triangle,
)

__all__ = ["compute"]


def compute(name, args, kwargs):
    """Compute a public function, or what an operator or a method does, on a GPU.

    Parameters
    ----------
    name : str
        In the namespace, ``"linalg.inv"``; or one of `_SPECIAL`.
    args, kwargs : tuple, dict
        As the user gave them.
    """
    if (
        args
        and name not in _OF_SEQUENCES
        and creation.index_inside(args[0]) is not None
    ):
        # A sequence: says that it is no array.
        argument(args[0], name.rpartition(".")[2])
    special = _SPECIAL.get(name)
    if special is not None:
        return special(*args, **kwargs)
    if name in ELEMENTWISE:
        return elementwise(name, args, **kwargs)
    return standard(name, *args, **kwargs)


# ---------------------------------------------------------------- dtypes


def astype(x, dtype, /, *, copy=True, device=None):
    """Return the elements in another dtype, on the same device or another."""
    dtype = result_type(dtype)
    if device_index(x) is None:
        # On the CPU, and wanted on a GPU.
        host = x if x.dtype == dtype else creation.host("astype", x, dtype)
        return host.to_device(device)
    result = transfer.cast_checked(x, dtype) if copy or x.dtype != dtype else x
    return result if device is None else result.to_device(device)


_OF_SEQUENCES = frozenset(["concat", "stack", *creation.FUNCTIONS])
_SPECIAL = {
    "astype": astype,
    "getitem": getitem,
    "inplace": inplace,
    "isin": isin,
    "linalg.cholesky": factored("linalg.cholesky", "a matrix is not positive definite"),
    "linalg.eig": eigen("linalg.eig"),
    "linalg.eigvals": eigen("linalg.eigvals"),
    "linalg.matmul": matmul,
    "linalg.matrix_rank": matrix_rank,
    "linalg.outer": outer,
    "linalg.solve": solve,
    "matmul": matmul,
    "repeat": repeat,
    "roll": roll,
    "round": round_,
    "searchsorted": searchsorted,
    "setitem": setitem,
    "take": take,
    "vecdot": vecdot,
    "where": where,
    **{
        f"linalg.{name}": factored(f"linalg.{name}", reason)
        for reason, names in (
            (SINGULAR, ("inv", "matrix_power")),
            (DIVERGED, ("eigh", "eigvalsh", "pinv", "svd", "svdvals")),
        )
        for name in names
    },
    **{
        name: nothing_on_cpu(name, getattr(module, name.rpartition(".")[2]))
        for module, names in (
            (statistical, ("max", "min")),
            (linalg, ("linalg.matrix_norm", "linalg.vector_norm")),
            (fft, [f"fft.{name}" for name in fft.TRANSFORMS]),
        )
        for name in names
    },
    **{
        name: total(name)
        for name in ("cumulative_prod", "cumulative_sum", "prod", "sum")
    },
    **{name: shifted(name) for name in ("fft.fftshift", "fft.ifftshift")},
    **{name: sorting(name) for name in ("argsort", "sort")},
    **{name: spread(name) for name in ("std", "var")},
    **{name: triangle(name) for name in ("tril", "triu")},
    **creation.FUNCTIONS,
    **transfer.FUNCTIONS,
}

"""NDArrays in SciPy's sparse arrays, and from functions that SciPy minimises.

Nobody has to import this module: ndx does when `scipy.sparse` is imported. Operators of
sparse arrays and matrices decline arrays that are not of NumPy's class, and Python says
then that such an array is not equal. They are given NumPy's arrays instead. So is the
compiled code of `scipy.optimize`, where a user's gradient returns an NDArray.

Examples
--------
>>> import ndx, scipy.sparse
>>> (scipy.sparse.csr_array([[1.0, 0.0]]) == ndx.asarray([[1.0, 2.0]])).tolist()
[[True, False]]
"""

import sys

import numpy as np
import scipy.sparse

from ndx._api.creation_from_data import asarray
from ndx._borders import RESULTS, VALUE, Border, install

__all__ = ["BORDERS", "OPTIMIZE", "register"]

_OPERATORS = (
    "__eq__ __ne__ __lt__ __le__ __gt__ __ge__ __add__ __radd__ __sub__ __rsub__ "
    "__mul__ __rmul__ __truediv__ __matmul__ __rmatmul__ "
    "multiply maximum minimum dot"
)

BORDERS = tuple(
    Border(f"scipy.sparse:{layout}_{kind}", _OPERATORS, {"other": VALUE})
    for layout in ("bsr", "coo", "csc", "csr", "dia", "dok", "lil")
    for kind in ("array", "matrix")
)

_DERIVATIVES = "scipy.optimize._differentiable_functions"
OPTIMIZE = (
    Border(
        f"{_DERIVATIVES}:ScalarFunction",
        "__init__",
        {"fun": RESULTS, "grad": RESULTS, "hess": RESULTS},
    ),
    Border(
        f"{_DERIVATIVES}:VectorFunction",
        "__init__",
        {"fun": RESULTS, "jac": RESULTS, "hess": RESULTS},
    ),
)


def _answers():
    """Whether SciPy compares a sparse array with an NDArray element by element."""
    # Over NumPy's memory: an import takes none of a backend or workspace.
    found = scipy.sparse.csr_array([[1.0, 0.0]]) == asarray(np.array([[1.0, 2.0]]))
    return getattr(found, "shape", None) == (1, 2)


def register():
    """Replace functions of SciPy by ones that convert NDArrays to NumPy's arrays."""
    install("scipy", BORDERS, _answers)
    # That module may be what imports `scipy.sparse`: then it has no classes yet, and
    # registers at its own end.
    if hasattr(sys.modules.get(_DERIVATIVES), "VectorFunction"):
        install("scipy", OPTIMIZE)

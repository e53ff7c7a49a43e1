"""Other functions on a GPU, where CuPy's are not the standard's."""

import numpy as np

from ndx import fft, linalg
from ndx._api import statistical
from ndx._api.manipulation import broadcast_to
from ndx._cuda.calls import factored, standard
from ndx._cuda.overrides_indexing import isin, repeat, searchsorted
from ndx._cuda.transfer import upload

__all__ = ["OVERRIDES"]

_SINGULAR = "a matrix is singular"
_DIVERGED = "the computation did not converge"
_EigResult = type(np.linalg.eig(np.eye(1)))


def _eig(session, x, /):
    """Return eigenvalues and eigenvectors, named as by NumPy."""
    return _EigResult(*factored("linalg.eig", _DIVERGED)(session, x))


def _solve(session, x1, x2, /):
    """Solve linear equations; CuPy broadcasts no stacks of them."""
    if x1.ndim >= 2 and x2.ndim >= 2:
        stack = np.broadcast_shapes(x1.shape[:-2], x2.shape[:-2])
        x1 = broadcast_to(x1, stack + x1.shape[-2:])
        x2 = broadcast_to(x2, stack + x2.shape[-2:])
    return factored("linalg.solve", _SINGULAR)(session, x1, x2)


def _nothing_on_cpu(name, function, compute=standard):
    """Return a function that computes on the CPU for an array without elements.

    CuPy, and NumPy in part, refuse transforms, extremes, norms and ranks of such an
    array.
    """

    def computed(session, x, /, **kwargs):
        if x.size:
            return compute(session, name, x, **kwargs)
        return upload(session, function(x.to_device("cpu"), **kwargs))

    return computed


# Name -> a function of a session and of the arguments of `Engine.compute`.
OVERRIDES = {
    "isin": isin,
    "linalg.cholesky": factored("linalg.cholesky", "a matrix is not positive definite"),
    "linalg.eig": _eig,
    "linalg.matrix_rank": _nothing_on_cpu(
        "linalg.matrix_rank",
        linalg.matrix_rank,
        lambda session, name, x, **kwargs: factored(name, _DIVERGED, square=False)(
            session, x, **kwargs
        ),
    ),
    "linalg.solve": _solve,
    "repeat": repeat,
    "searchsorted": searchsorted,
    **{
        f"linalg.{name}": factored(f"linalg.{name}", reason, square=square)
        for reason, square, names in (
            (_SINGULAR, True, ("inv", "matrix_power")),
            (_DIVERGED, True, ("eigh", "eigvals", "eigvalsh")),
            (_DIVERGED, False, ("pinv", "svd", "svdvals")),
        )
        for name in names
    },
    **{
        name: _nothing_on_cpu(name, getattr(module, name.rpartition(".")[2]))
        for module, names in (
            (statistical, ("max", "min")),
            (linalg, ("linalg.matrix_norm", "linalg.vector_norm")),
            (fft, [f"fft.{name}" for name in fft.TRANSFORMS]),
        )
        for name in names
    },
}

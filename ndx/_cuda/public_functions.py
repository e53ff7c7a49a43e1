"""Which functions of the namespace compute on devices, too, and by what engine.

Those that are not here do so by what they call: operations (`_compute.elementwise`),
products (`_compute.matmul`), views, which read no element, and Fourier transforms
(`_compute.numpy_calls.call`).
"""

from ndx import _cuda, linalg
from ndx._array.dispatch import dispatched, set_engine

__all__ = ["install"]

_COMPUTE = """
    all any argmax argmin argsort concat count_nonzero cumulative_prod cumulative_sum
    diff isin max mean min nonzero prod repeat roll round searchsorted sort stack std
    sum take take_along_axis tile tril triu unique_all unique_counts
    unique_inverse unique_values var vecdot where

    linalg.cholesky linalg.cross linalg.det linalg.eig linalg.eigh linalg.eigvals
    linalg.eigvalsh linalg.inv linalg.matrix_norm linalg.matrix_power
    linalg.matrix_rank linalg.outer linalg.pinv linalg.qr linalg.slogdet linalg.solve
    linalg.svd linalg.svdvals linalg.trace linalg.vector_norm

    fft.fftshift fft.ifftshift
"""
_TAKE_DEVICE = "astype empty_like full_like ones_like zeros_like"
_CREATE = """
    arange asarray empty eye full linspace ones zeros fft.fftfreq fft.rfftfreq
"""


def install(namespace):
    """Let the functions of the namespace hand over what is for a device."""
    for names, kind in (
        (_COMPUTE, "computes"),
        (_TAKE_DEVICE, "takes device"),
        (_CREATE, "creates"),
    ):
        for name in names.split():
            parent, _, last = name.rpartition(".")
            home = getattr(namespace, parent) if parent else namespace
            made = dispatched(getattr(home, last), name, home.__name__, kind)
            setattr(home, last, made)
    linalg.vecdot = namespace.vecdot
    set_engine(_cuda.load)

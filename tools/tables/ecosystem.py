"""The libraries that are tested with NDArrays, for the table of docs/interop.md."""

from typing import NamedTuple

__all__ = ["LIBRARIES", "Library"]


class Library(NamedTuple):
    """A line of the table.

    Attributes
    ----------
    name : str
    distribution : str or None
        What it is called on the package index; None for a part of Python.
    tests : tuple of str
        Patterns of the names of its tests.
    works : str
        What works.
    done : str
        What ndx does for it.
    """

    name: str
    distribution: str | None
    tests: tuple[str, ...]
    works: str
    done: str = "nothing"


INTEROP = "tests/interop/test_"

LIBRARIES = (
    Library(
        "NumPy", "numpy", ("tests/numpy/*",),
        "ufuncs, functions and operators, mixed with NumPy's arrays, give NDArrays",
        "its protocols, methods and namespace (`ndx.numpy`)",
    ),
    Library(
        "SciPy", "scipy", (f"{INTEROP}scipy.py", f"{INTEROP}scipy_sparse.py"),
        "functions that take any array give NDArrays (`SCIPY_ARRAY_API=1`)",
        "gives NumPy's arrays to operators of sparse arrays (`ndx.scipy`)",
    ),
    Library(
        "scikit-learn", "scikit-learn", (f"{INTEROP}scikit_learn.py",),
        "estimators and metrics with array API support "
        "(`set_config(array_api_dispatch=True)`)",
    ),
    Library(
        "array-api-compat", "array-api-compat",
        (f"{INTEROP}array_api_compat.py::test_[!ae]*",
         f"{INTEROP}array_api_compat.py::test_an_array*"),
        "finds the namespace, the device and the size",
        "lets it find the namespace of numbers (`ndx.array_api_compat`)",
    ),
    Library(
        "array-api-extra", "array-api-extra",
        (f"{INTEROP}array_api_compat.py::test_extra*",
         f"{INTEROP}array_api_compat.py::test_at*"),
        "all functions",
    ),
    Library(
        "dask", "dask", (f"{INTEROP}dask.py",),
        "chunks are NDArrays, in threads and processes; `array.backend: ndx`",
        "fills dask's tables (`ndx.dask`), and is an entry point",
    ),
    Library(
        "distributed", "distributed",
        (f"{INTEROP}distributed.py", f"{INTEROP}worker_memory.py"),
        "NDArrays are sent without a copy, and counted; "
        "[workers with limits](clusters.md)",
        "registers how they are sent; a plugin for workers (`ndx.distributed`)",
    ),
    Library(
        "cubed", "cubed", (f"{INTEROP}cubed.py",),
        "chunks are NDArrays, with `ndx.numpy` as the namespace",
    ),
    Library(
        "xarray", "xarray", (f"{INTEROP}xarray.py",),
        "`DataArray` over NDArrays, also over dask",
        "gives xarray `ndx.numpy` for a namespace (`ndx.xarray`)",
    ),
    Library(
        "zarr", "zarr", (f"{INTEROP}zarr.py",),
        "stores NDArrays; reads them, if told to",
        "registers a class of buffers (`ndx.zarr`)",
    ),
    Library(
        "h5py", "h5py", (f"{INTEROP}h5py.py",),
        "stores NDArrays; `read_direct(x)`, `write_direct(x)`",
        "lets these two methods take NDArrays (`ndx.h5py`)",
    ),
    Library(
        "pandas", "pandas",
        (f"{INTEROP}pandas.py", f"{INTEROP}calls.py::*[[]pandas:*"),
        "NDArrays as values, keys and operands; results are pandas' own",
        "gives it NumPy's arrays (`ndx.pandas`)",
    ),
    Library(
        "matplotlib", "matplotlib",
        (f"{INTEROP}matplotlib.py", f"{INTEROP}calls.py::*[[]matplotlib:*"),
        "draws NDArrays", "a method `to_numpy`",
    ),
    Library(
        "einops", "einops", (f"{INTEROP}einops.py",),
        "all functions", "is one of its backends (`ndx.einops`)",
    ),
    Library(
        "opt_einsum", "opt-einsum", (f"{INTEROP}opt_einsum.py",),
        "`contract`", "names `ndx.numpy` for a namespace (`ndx.opt_einsum`)",
    ),
    Library(
        "PyTorch", "torch", (f"{INTEROP}torch.py", f"{INTEROP}calls.py::*[[]torch:*"),
        "tensors over NDArrays' memory; numbers, masks and indices; `default_collate`",
        "its protocol; gives NumPy's arrays to its constructors (`ndx.torch`)",
    ),
    Library(
        "JAX", "jax", (f"{INTEROP}jax.py",),
        "exchange of arrays by DLPack, without a copy, on the CPU",
    ),
    Library(
        "numba", "numba", (f"{INTEROP}numba.py",),
        "NDArrays as arguments of compiled functions",
        "a type of arguments (`ndx.numba`)",
    ),
    *[
        Library(
            name, distribution,
            (f"{INTEROP}compiled_modules.py::*[[]{name}:*",), works,
        )
        for name, distribution, works in (
            ("pybind11", "pybind11", "`py::array_t`, unless `noconvert`; `py::buffer`"),
            ("nanobind", "nanobind", "`nb::ndarray` of the array's dtype and layout"),
            ("Cython", "cython", "typed memoryviews (`double[:]`)"),
            ("ctypes", None, "`x.ctypes.data_as`; not as `ndpointer`"),
        )
    ],
    Library(
        "joblib", "joblib", (f"{INTEROP}joblib.py",),
        "`Parallel`, `dump`, `hash`, `Memory`",
    ),
    Library(
        "multiprocessing", None,
        (f"{INTEROP}multiprocessing.py", f"{INTEROP}pickling.py::test_process_pools"),
        "NDArrays through pipes, queues and pools; over shared memory",
    ),
    Library(
        "cloudpickle", "cloudpickle", (f"{INTEROP}pickling.py::test_cloudpickle*",),
        "closures over arrays and functions of ndx",
    ),
    Library(
        "mpi4py", "mpi4py", (f"{INTEROP}mpi4py.py",),
        "NDArrays as buffers, and as objects",
    ),
    Library(
        "threadpoolctl", "threadpoolctl", (f"{INTEROP}threadpoolctl.py",),
        "`threadpool_limits(n)` limits ndx's threads, too",
        "registers its pool (`ndx.threadpoolctl`)",
    ),
    Library(
        "pytest", "pytest", (f"{INTEROP}pytest.py",),
        "`approx`; values in the reports of failures",
        "assertions (`ndx.testing`)",
    ),
)  # fmt: skip

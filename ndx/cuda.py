"""For NVIDIA's GPUs only: graphs, managed and shared memory, other libraries' memory.

Importing it needs no GPU.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, overload

from ndx._api.public import name_functions
from ndx.backends import _lending

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from ndx import NDArray
    from ndx._cuda.sharing import SharedArray
    from ndx._typing import BackendLike, DeviceLike, Graph, P, R

__all__ = [
    "advise",
    "cupy_allocator",
    "graph",
    "prefetch",
    "share",
    "torch_allocator",
]


@overload
def graph(function: Callable[P, R], /, *, max_graphs: int = ...) -> Graph[P, R]: ...
@overload
def graph(
    function: None = ..., /, *, max_graphs: int = ...
) -> Callable[[Callable[P, R]], Graph[P, R]]: ...
def graph(function=None, /, *, max_graphs=8):
    """Return a function that runs as a captured graph: one launch for all kernels.

    The CPU, which prepares each kernel, is the bottleneck of a step of many small
    operations. A graph is captured once, and replayed as a whole.

    Parameters
    ----------
    function : callable
        A function that computes on one GPU. Its arguments and results are arrays on
        that GPU, also in tuples, lists and dicts, and other hashable values.
    max_graphs : int, default 8
        The number of graphs that each thread keeps. Calls beyond it run eagerly.

    Returns
    -------
    Graph
        Called like `function`. The first call with arguments of one *address*, shape,
        strides and dtype (or, for other arguments, one value) runs eagerly, in a
        workspace of its own; the second one is captured; the others are replayed.
        Calls with other arguments run eagerly, or get a graph of their own. Results
        are new arrays in the caller's workspace or backend. It has ``stats()``,
        ``reset()``, and the function as ``__wrapped__``.

    Raises
    ------
    ValueError
        If `max_graphs` is less than 1.
    TypeError
        If `function` can't be called. In a call: if an argument is an array on the
        CPU, or a value that can't be hashed.
    DeviceError
        In a call: if there is no GPU; or, while it is captured, if the function waits
        for the GPU (`float`, ``to_device("cpu")``, `ndx.nonzero`, ...), copies from
        the CPU, makes memory that outlives it (``detach``) or that is in another
        workspace, or uses functions that CuPy can't capture (`linalg.solve`, ...).
        The next call behaves as if the failed one had not happened.

    Notes
    -----
    A replay launches the kernels with their captured addresses, and runs no Python:

    - a branch, a loop or a number that Python computes stays as it was when captured;
      results that depend on the values of arrays must be computed by arrays;
    - ``w = w - g`` binds a name once only: update in place, ``w -= g``, or return it;
    - other arrays that the function reads are kept alive and in place; if one has
      gone stale, the call runs eagerly, which raises;
    - new data goes to the same place: ``batch[...] = new``, or a workspace, whose
      cycles have the same addresses.

    Within another captured function, it becomes a part of that graph.

    Examples
    --------
    >>> import ndx
    >>> @ndx.cuda.graph
    ... def step(weights, batch):
    ...     gradient = batch.T @ (batch @ weights)
    ...     weights -= 0.01 * gradient
    ...     return ndx.sum(gradient * gradient)
    >>> step.stats()["replays"]
    0
    """
    if function is None:
        return functools.partial(graph, max_graphs=max_graphs)
    # Imported here: its dependencies are loaded for GPUs only.
    from ndx._cuda.graphs import Graph

    return Graph(function, max_graphs)


def advise(
    x: NDArray, advice: str, /, device: DeviceLike | None = None, *, unset: bool = False
) -> None:
    """Tell the driver how an array in managed memory is used.

    Parameters
    ----------
    x : NDArray
        An array made in ``ndx.use("cuda:0", source="managed")``, or another library's
        in managed memory.
    advice : {"read_mostly", "preferred_location", "accessed_by"}
        ``"read_mostly"``: each device that reads a page gets a copy of its own, until
        one writes. ``"preferred_location"``: pages stay on `device` where possible.
        ``"accessed_by"``: `device` has the pages mapped, wherever they are, and need
        not move them.
    device : str or Device, optional
        ``"cpu"``, or a GPU. Default: the array's own. ``"read_mostly"`` needs none.
    unset : bool, default False
        Take the advice back.

    Raises
    ------
    ValueError
        If `advice` is not one of these.
    TypeError
        If `x` is no array on a GPU.
    StaleArrayError
        If `x` is stale.
    DeviceError
        If `x` is not in managed memory; or if pages do not move one by one there
        (``cudaDevAttrConcurrentManagedAccess`` is 0).

    Notes
    -----
    Advice is for pages of 4 KiB or more, from the first to the last element of `x`. It
    changes no values, and stays with the pages until it is taken back, also when their
    memory is used again for other arrays.
    Reference: NVIDIA, CUDA Runtime API, ``cudaMemAdvise``.

    Examples
    --------
    ::

        with ndx.use("cuda:0", source="managed"):
            table = ndx.ones((100_000, 1000))
        ndx.cuda.advise(table, "preferred_location", "cpu")
        ndx.cuda.advise(table, "accessed_by", "cuda:0")
    """
    from ndx._cuda import managed

    managed.advise(x, advice, device, unset=unset)


def prefetch(x: NDArray, /, device: DeviceLike | None = None) -> None:
    """Move the pages of an array in managed memory to a device, before they are used.

    The CPU does not wait: pages move in the order of CuPy's current stream. The array
    stays one of its GPU, wherever its pages are.

    Parameters
    ----------
    x : NDArray
        As for `advise`.
    device : str or Device, optional
        ``"cpu"``, or a GPU. Default: the array's own.

    Raises
    ------
    TypeError, StaleArrayError, DeviceError
        As for `advise`; and DeviceError in a function of `graph`.

    Notes
    -----
    ``ndx.use("cuda:0", source="managed", prefetch=True)`` does so with each new array,
    as RMM's ``PrefetchResourceAdaptor``.
    Reference: NVIDIA, CUDA Runtime API, ``cudaMemPrefetchAsync``.

    Examples
    --------
    ::

        for batch in batches:             # all of them are larger than the GPU
            ndx.cuda.prefetch(batch)
            step(batch)
            ndx.cuda.prefetch(batch, "cpu")
    """
    from ndx._cuda import managed

    managed.prefetch(x, device)


def share(x: NDArray, /) -> SharedArray:
    """Return a handle by which other processes use an array, without a copy.

    Parameters
    ----------
    x : NDArray
        On a GPU, in memory of ``ndx.use("cuda:0")``, also in a workspace, or a view.

    Returns
    -------
    SharedArray
        Small, and to be pickled: sent through a queue or a pipe. Its ``open()`` returns
        the array in another process, on the current stream after the work that was
        submitted here before. As long as it lives in this process it keeps the memory
        in place, until ``close()``; it is a context manager that closes.

    Raises
    ------
    TypeError
        If `x` is no array on a GPU. (On the host: `ndx.parallel.share`.)
    StaleArrayError
        If `x` is stale.
    DeviceError
        If no other process can open the memory of `x`: that of ``source="async"``,
        ``"managed"`` or ``"virtual"``, of the host, of files, and of other libraries.

    Notes
    -----
    Both processes write to the same memory, and nothing orders their work but that
    `open` waits for what was submitted before `share`. When a process is done with its
    arrays, it drops them after `ndx.synchronize`, and tells the owner, which closes the
    handle then. A process maps the whole range that `x` lies in (2 MiB or more): share
    only with processes that may see other arrays there, too. Where the owner ends,
    CUDA's memory ends with it. Linux only.
    Reference: NVIDIA, CUDA C++ Programming Guide, "Interprocess Communication".

    Examples
    --------
    ::

        with ndx.cuda.share(weights) as handle:   # the owner
            tasks.put(handle)
            done.get()

        weights = tasks.get().open()              # another process
        total = float(ndx.sum(weights))
        del weights
        done.put(total)
    """
    from ndx._cuda.sharing import share

    return share(x)


def cupy_allocator(nbytes: int, /) -> Any:
    """Be CuPy's allocator: its arrays are in the memory of ndx.

    Limits, statistics and the remedies when memory is short then hold for CuPy's
    arrays, too; recordings see them, as arrays of bytes.

    Parameters
    ----------
    nbytes : int
        Bytes that CuPy asks for.

    Returns
    -------
    cupy.cuda.MemoryPointer
        Memory of the current GPU, from the backend of ndx that is current there, or
        the arena of its workspace. It goes back in the order of CuPy's stream.

    Raises
    ------
    ndx.OutOfMemoryError
        If there is no more.
    DeviceError
        If CuPy, its libraries or a GPU are missing.

    Notes
    -----
    Reference: CuPy, "Memory Management",
    https://docs.cupy.dev/en/stable/user_guide/memory.html.

    Examples
    --------
    ``cupy.cuda.set_allocator(ndx.cuda.cupy_allocator)`` for the process, or for a
    scope::

        with ndx.use("cuda:0", limit="2GiB"):
            with cupy.cuda.using_allocator(ndx.cuda.cupy_allocator):
                x = cupy.ones(1000)
    """
    from ndx._cuda.session import current_session

    return current_session().bridge.allocate(nbytes)


def torch_allocator(backends: Mapping[int, BackendLike] | None = None, /) -> Any:
    """Return an allocator by which PyTorch's tensors are in the memory of ndx.

    Parameters
    ----------
    backends : dict of int to (str or ndx.backends.Backend), optional
        Which backend serves a GPU, by its number. Default: ``"cuda:0"`` and so on.

    Returns
    -------
    torch.cuda.memory.CUDAPluggableAllocator
        For ``torch.cuda.memory.change_current_allocator``, before PyTorch makes its
        first tensor on a GPU.

    Raises
    ------
    ImportError
        If PyTorch is missing, or is older than 2.0.
    TypeError
        If a backend has no pool.

    Notes
    -----
    A refusal of ndx is ``std::bad_alloc`` in PyTorch, which raises RuntimeError; stderr
    has ndx's error with its reasons. PyTorch's own cache and statistics are out of use.
    There is one such allocator in a process; another call changes its backends.
    Reference: PyTorch, "Using custom memory allocators for CUDA",
    https://pytorch.org/docs/stable/notes/cuda.html.

    Examples
    --------
    ::

        gpu = ndx.backends.get("cuda:0", limit="8GiB")
        torch.cuda.memory.change_current_allocator(ndx.cuda.torch_allocator({0: gpu}))
    """
    from torch.cuda.memory import CUDAPluggableAllocator

    for device, backend in (backends or {0: "cuda:0"}).items():
        _lending.lend(device, backend, throws=True)
    library = _lending.__spec__.origin
    made = CUDAPluggableAllocator(library, "ndx_torch_alloc", "ndx_torch_free")
    made.allocator().set_record_stream_fn(_lending.addresses()[2])
    return made


def __dir__():
    return __all__


name_functions(globals())

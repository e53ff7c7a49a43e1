"""Captured graphs, for NVIDIA's GPUs only. Importing it needs no GPU."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, overload

from ndx._api.public import name_functions

if TYPE_CHECKING:
    from collections.abc import Callable

    from ndx._typing import Graph, P, R

__all__ = ["graph"]


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


def __dir__():
    return __all__


name_functions(globals())

"""What is only on NVIDIA's GPUs: captured graphs. Importing it needs no GPU."""

import functools

__all__ = ["graph"]


def graph(function=None, /, *, max_graphs=8):
    """Return a function that runs as a captured graph: one launch, for all it does.

    A step of many small operations is bound by the CPU, which prepares each kernel. A
    graph is captured once, and replayed as a whole.

    Parameters
    ----------
    function : callable
        What computes on one GPU. Its arguments and results are arrays on that, in
        tuples, lists and dicts if need be, and other values that can be hashed.
    max_graphs : int, default 8
        How many graphs each thread keeps. Calls that would need more run eagerly.

    Returns
    -------
    Graph
        To be called as `function` is. The first call with arguments of an *address*,
        shape, strides and dtype (and, of what is no array, a value) runs eagerly, in
        a workspace of its own; the second one captures; the others replay. What
        differs in any of that runs eagerly, or is captured as well. Results are the
        caller's: new arrays, in its workspace or backend. It has ``stats()``,
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
        the CPU, makes memory that outlives it (``detach``) or that is of another
        workspace, or uses what CuPy does not let be captured (`linalg.solve`, ...).
        The next call is as if that had not been.

    Notes
    -----
    What is replayed are the kernels, with the addresses that they had; Python is not
    run. So:

    - a branch, a loop or a number that Python computes stays as it was when captured;
      what depends on the values of arrays has to be computed by arrays;
    - ``w = w - g`` binds a name once only: update in place, ``w -= g``, or return it;
    - what the function reads besides its arguments is kept alive, and in its place;
      if that has gone stale, the call runs eagerly, which raises;
    - new data goes where the old was: ``batch[...] = new``, or a workspace, whose
      cycles have the same addresses.

    Within another function that is being captured, it becomes a part of that.

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
    # Loaded here: what it needs is loaded for GPUs only.
    from ndx._cuda.graphs import Graph

    return Graph(function, max_graphs)


def __dir__():
    return __all__

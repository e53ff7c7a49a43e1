"""`ndx.parallel.Predictor`: one function, asked by many threads."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any, Literal, Self

import ndx
from ndx._pipelines import places as placing
from ndx._pipelines.answering import InPlace, serve
from ndx._pipelines.errors import check_function
from ndx._pipelines.requests import Request, Requests, rows_of
from ndx._pipelines.workers import Team

__all__ = ["Predictor"]

MODES = ("batched", "sequential", "inplace")
_numbers = itertools.count()


class Predictor:
    """A function that many threads ask at the same time, computed in batches.

    Parameters
    ----------
    fn : callable
        Takes one array or several, whose first axes are the rows of a batch. In mode
        ``"batched"`` its result is arrays (in tuples, lists, dicts, dataclasses) with a
        row for each of these. Several workers call it at the same time. It must
        not write to its arguments.
    workers : int, optional
        How many threads compute; with ``"inplace"``, how many callers at the same time.
        Default: one for each of `devices`, else 1.
    mode : {"batched", "sequential", "inplace"}
        ``"batched"``: requests are gathered. ``"sequential"``: each is computed by
        itself, by a worker, in the order in which they come. ``"inplace"``: each is
        computed by the thread that asks, in a workspace there.
    max_batch : int, default 32
        Rows at which a batch is full. A larger request is a batch by itself.
    deadline : float, default 0.005
        Seconds that a request waits at most for others.
    queue_limit : int, optional
        How many requests may wait for a worker. Who asks then waits for room. Default:
        any number.
    workspace, config, backend, devices, threads
        As for `map`. Requests are copied to the device of the worker that answers them,
        where the answers are.

    Raises
    ------
    TypeError, ValueError
        If an argument is bad.

    See Also
    --------
    map : For items that one thread has.

    Notes
    -----
    Only requests with equal dtypes, and equal shapes but for the first axis, share a
    batch. If the function raises for several requests, it is called for each alone, so
    that only those that fail get an error. A cancelled future is left out.

    `close` answers what waits, ends the threads and destroys the workspaces, as do the
    end of a ``with`` block and the finalizer. ND4J's ``ParallelInference``:
    ``BATCHED``, ``SEQUENTIAL``, ``INPLACE``, ``batchLimit``, ``queueLimit``.

    Examples
    --------
    >>> import ndx
    >>> from concurrent.futures import ThreadPoolExecutor
    >>> weights = ndx.asarray([[1.0, 0.0], [1.0, 1.0]])
    >>> rows = [ndx.full((1, 2), float(i)) for i in range(4)]
    >>> with ndx.parallel.Predictor(lambda x: x @ weights, deadline=0.01) as predict:
    ...     with ThreadPoolExecutor(4) as pool:
    ...         found = list(pool.map(predict, rows))
    >>> found[3]
    NDArray([[6., 3.]])
    """

    def __init__(
        self,
        fn: Callable[..., Any],
        *,
        workers: int | None = None,
        mode: Literal["batched", "sequential", "inplace"] = "batched",
        max_batch: int = 32,
        deadline: float = 0.005,
        queue_limit: int | None = None,
        workspace: str | None = "ndx.parallel.Predictor",
        config: ndx.WorkspaceConfig | None = None,
        backend: Any = None,
        devices: Sequence[Any] | None = None,
        threads: int | None = None,
    ):
        check_function(fn, "fn")
        if mode not in MODES:
            raise ValueError(
                f"mode={mode!r} is not valid; valid are {', '.join(map(repr, MODES))}"
            )
        placing.check_count(max_batch, "max_batch")
        for name, count in (("queue_limit", queue_limit), ("threads", threads)):
            if count is not None:
                placing.check_count(count, name)
        _check_deadline(deadline)
        if workspace is not None and mode == "inplace" and isinstance(workspace, str):
            # It is one of the caller's, where another predictor may have the name.
            workspace = f"{workspace} {next(_numbers)}"
        if workers is None and devices is None:
            workers = 1
        places = placing.places(
            workers,
            workspace=workspace,
            config=config,
            backend=backend,
            devices=devices,
        )
        self.mode = mode
        self._is_closed = False
        together = mode == "batched"
        self._requests = requests = Requests(
            max_batch if together else 0,
            float(deadline) if together else 0.0,
            queue_limit,
        )
        self._in_place = InPlace(fn, places) if mode == "inplace" else None
        jobs = [
            lambda place=place: serve(fn, place, requests, together)
            for place in ([] if self._in_place else places)
        ]
        self._team = Team(
            jobs,
            requests.close,
            name="ndx-predictor",
            threads=threads,
            computing=bool(jobs),
        )

    def __call__(self, *args: Any) -> Any:
        """Return the answer for some rows; wait for it.

        Parameters
        ----------
        *args : array
            As many as the function takes, each with the same number of rows. In mode
            ``"batched"`` they must have a first axis.

        Returns
        -------
        any
            What the function returns, its rows for this request alone: arrays of its
            own, in no workspace.

        Raises
        ------
        Exception
            What the function raises for this request.
        TypeError, ValueError
            In mode ``"batched"``, if the function's result has no row for each request.
        RuntimeError
            If the predictor is closed, or was made in another process.
        """
        if self._in_place is not None:
            self._check_process()
            return self._in_place.call(args)
        future = self.submit(*args)
        try:
            return future.result()
        except KeyboardInterrupt:
            future.cancel()
            raise
        finally:
            # An error's traceback has this frame.
            del future, args

    def submit(self, *args: Any) -> Future[Any]:
        """Ask without waiting; return a future with the answer.

        The arrays must stay as they are until the answer is there. With ``"inplace"``
        the answer is there at once.

        Parameters
        ----------
        *args : array
            As for a call.

        Returns
        -------
        concurrent.futures.Future
            Its ``result()`` is what a call returns.

        Examples
        --------
        >>> import ndx
        >>> with ndx.parallel.Predictor(ndx.abs) as predict:
        ...     future = predict.submit(ndx.asarray([-1.0, 2.0]))
        ...     future.result(timeout=10)
        NDArray([1., 2.])
        """
        self._check_process()
        if self._in_place is not None:
            self._in_place.check_open()
            return _future_of(self._in_place.call, args)
        if self._team.is_member:
            raise RuntimeError(
                "the function of a predictor asks that predictor: no worker would be "
                "left to answer. Call the function itself"
            )
        request = _gathered(args) if self.mode == "batched" else _single(args)
        self._requests.put(request)
        return request.future

    def _check_process(self) -> None:
        if not self._team.is_here:
            raise RuntimeError(
                "the predictor was made in another process: its threads did not follow "
                "into the forked child. Make one there"
            )

    def stats(self) -> dict[str, float]:
        """Return counts since the start.

        Returns
        -------
        dict
            ``requests`` that came; ``pending``, of these, that wait; ``errors``, of
            these, that were answered by an error; ``batches``, and the ``rows`` in
            them; ``full_batches`` that did not wait for the deadline;
            ``largest_batch`` and ``mean_batch``, in rows.
        """
        source = self._requests if self._in_place is None else self._in_place
        found: dict[str, float] = dict(source.stats)
        found["pending"] = source.waiting
        found["mean_batch"] = found["rows"] / max(1, found["batches"])
        return found

    def close(self) -> None:
        """Answer what waits, end the threads, and destroy the workspaces.

        Later requests raise RuntimeError.
        """
        self._is_closed = True
        self._team.close()
        if self._in_place is not None and self._team.is_here:
            self._in_place.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __repr__(self) -> str:
        state = "closed" if self._is_closed else "open"
        return f"<ndx.parallel.Predictor: {self.mode}, {state}>"


def _check_deadline(deadline: Any) -> None:
    if not isinstance(deadline, int | float) or not 0 <= deadline < 1e6:
        raise ValueError(f"deadline={deadline!r} is not a time: give seconds, from 0")


def _future_of(function: Callable[..., Any], args: tuple[Any, ...]) -> Future[Any]:
    """Return a future that is done."""
    future: Future[Any] = Future()
    try:
        future.set_result(function(args))
    except Exception as error:
        future.set_exception(error)
    return future


def _single(args: tuple[Any, ...]) -> Request:
    """Return a request that is computed by itself."""
    return Request(args, rows_of(args), ())


def _gathered(args: tuple[Any, ...]) -> Request:
    """Return a request that shares a batch with others of its kind."""
    if not args:
        raise TypeError("a predictor needs at least one array")
    arrays = tuple(map(ndx.asarray, args))
    shapes = [each.shape for each in arrays]
    if not all(shapes):
        raise ValueError(
            f"the arrays have the shapes {shapes}: each needs a first axis, of rows. "
            "A single row is x[None, :]; mode='sequential' takes any arrays"
        )
    if len({shape[0] for shape in shapes}) > 1:
        raise ValueError(
            f"the arrays have the shapes {shapes}: their first axes, of rows, must be "
            "equal"
        )
    key = tuple((each.shape[1:], each.dtype, each.device) for each in arrays)
    return Request(arrays, rows_of(arrays), key)

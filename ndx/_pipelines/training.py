"""`ndx.parallel.train`: workers train copies of the parameters, which are averaged."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import ndx
from ndx._pipelines import places as placing
from ndx._pipelines.averaging import copied
from ndx._pipelines.errors import check_function
from ndx._pipelines.feeding import ahead
from ndx._pipelines.places import Scoped, unchanged
from ndx._pipelines.plans import Mode, has_workspaces
from ndx._pipelines.progress import length_of, progress_bar
from ndx._pipelines.rounds import Average, Report, Rounds, replica
from ndx._pipelines.workers import Crew

__all__ = ["Trained", "train"]


@dataclasses.dataclass(frozen=True)
class Trained:
    """What `train` returns.

    Attributes
    ----------
    params : tree of arrays
        The parameters after the last average, in no workspace; on the first of the
        devices, if some were given.
    scores : list of float
        The scores that were reported.
    batches : int
        How many batches were used.
    averages : int
        How many times the workers' results were averaged.
    """

    params: Any
    scores: list[float]
    batches: int
    averages: int


def train(
    step: Callable[[Any, Any], tuple[Any, Any]],
    params: Any,
    batches: Iterable[Any],
    *,
    update: Callable[[Any, Any], Any] | None = None,
    workers: int | None = None,
    epochs: int = 1,
    average_every: int = 1,
    prefetch: int = 8,
    on_score: Callable[[int, float], Any] | None = None,
    report_after_averaging: bool = True,
    mode: Mode = "enabled",
    workspace: str | None = "ndx.parallel",
    config: ndx.WorkspaceConfig | None = None,
    backend: Any = None,
    devices: Sequence[Any] | None = None,
    threads: int | None = None,
    progress: bool | str = False,
) -> Trained:
    """Train parameters on batches, by several workers at the same time.

    Batch i goes to worker i modulo `workers`. After `average_every` batches for each
    worker, and at the end of each epoch, the workers' results are averaged, with the
    numbers of their batches as weights.

    Parameters
    ----------
    step : callable
        ``step(params, batch)`` returns the new parameters and a score, a number. It
        may change `params` in place: each worker has a copy. With `update`, it returns
        gradients instead of parameters, and must not change `params`, which the
        workers share. What it returns is detached from the worker's workspace.
    params : tree of arrays
        Tuples, lists, dicts, dataclasses, nested. It is not changed.
    batches : iterable
        Anything that `step` takes. For several epochs it must be one that can be
        iterated over again, such as a list.
    update : callable, optional
        ``update(params, gradients)`` returns the new parameters from the mean of the
        gradients of a round; called in the calling thread. It may change `params`.
    workers : int, optional
        How many threads. Default: one for each of `devices`, else as many as
        `ndx.get_num_threads` says.
    epochs : int
        How many times all batches are used.
    average_every : int
        After how many batches of each worker there is an average. Larger numbers take
        less time, and let the copies differ more.
    prefetch : int
        How many batches a thread takes ahead. 0, or if `batches` is a list or a tuple:
        none, they are taken in the calling thread.
    on_score : callable, optional
        ``on_score(batches, score)``, called in the calling thread with the number of
        batches used so far. If it returns True, training ends with the next average.
    report_after_averaging : bool
        True: the mean score of the round, after each average. False: the score of each
        batch, in their order, before the average.
    mode : {"enabled", "none", "single", "separate"}
        Whether the workers have workspaces: one each, but for ``"none"``. ``"single"``
        and ``"separate"`` are ND4J's words for ``"enabled"``.
    workspace, config, backend, devices, threads, progress
        As for `map`. Each worker gets its batches and parameters on its device. Means
        and updates are computed on the first of the devices.

    Returns
    -------
    Trained
        The averaged parameters and the scores.

    Raises
    ------
    Exception
        What `step` raises, with the number of its batch in a note and in
        ``index_of_item``. The workers have ended then.
    ValueError, TypeError
        If an argument is bad, or a step returns something else than two values, or
        trees of another structure than before.

    Notes
    -----
    The result is the same for each run, to the last bit, if `step` is deterministic
    and the number of workers is the same. With one worker it is that of a loop. With
    ``average_every=1`` and a step of gradient descent it is, to rounding, that of a
    loop over batches ``workers`` times as large.

    Floating-point arrays and numbers are averaged, other leaves are the first worker's.
    ND4J's ``ParallelWrapper``: ``workers``, ``prefetchBuffer``, ``averagingFrequency``,
    ``reportScoreAfterAveraging``, ``workspaceMode``; its updater state is part of
    `params` here.

    Examples
    --------
    >>> import ndx
    >>> def step(params, batch):
    ...     x, y = batch
    ...     error = x * params["w"] - y
    ...     gradient = 2 * ndx.mean(error * x)
    ...     return {"w": params["w"] - 0.1 * gradient}, ndx.mean(error**2)
    >>> x = ndx.asarray([1.0, 2.0])
    >>> batches = [(x, 3 * x)] * 40
    >>> trained = ndx.parallel.train(step, {"w": ndx.zeros(())}, batches, workers=2)
    >>> round(float(trained.params["w"]), 3), trained.averages
    (3.0, 20)
    """
    check_function(step, "step")
    for function, what in (update, "update"), (on_score, "on_score"):
        if function is not None:
            check_function(function, what)
    placing.check_count(epochs, "epochs")
    placing.check_count(average_every, "average_every")
    if prefetch != 0:
        placing.check_count(prefetch, "prefetch")
    if threads is not None:
        placing.check_count(threads, "threads")
    _check_epochs(batches, epochs)
    if not has_workspaces("mode", mode, "ndx.parallel.train"):
        if config is not None:
            raise ValueError(
                "mode='none' has no workspaces, so that config= has no use"
            )
        workspace = None
    where = placing.places(
        workers,
        workspace=workspace,
        config=config,
        backend=backend,
        devices=devices,
    )
    # A wrapper may claim a length that its source has not.
    length = length_of(batches)
    total = None if length is None else length * epochs
    with contextlib.ExitStack() as stack:
        bar = progress_bar(progress, total, "batch")
        stack.callback(bar.close)
        scoped = _scope_of_averages(workspace is not None, stack)
        crew = Crew(
            [replica(step, place, update is not None) for place in where],
            own_tasks=True,
            name="ndx-train",
            threads=threads,
        )
        stack.callback(crew.close)
        rounds = Rounds(
            crew,
            len(where),
            average_every,
            Average(copied(params, where[0].device), update, scoped),
            Report(on_score, report_after_averaging, bar),
        )
        for _ in range(epochs):
            with ahead(batches, prefetch) as source:
                rounds.run(source)
            if rounds.report.is_last:
                break
        return Trained(
            rounds.average.params,
            rounds.report.scores,
            rounds.batches,
            rounds.average.count,
        )


def _scope_of_averages(has_scope: bool, stack: contextlib.ExitStack) -> Scoped:
    """Return what decorates the averages, which are computed in the calling thread."""
    if not has_scope:
        return unchanged
    # Nobody else finds it: calls of `train` may be nested.
    made = ndx.workspace(None)
    stack.callback(made.destroy, trim=False)
    return made


def _check_epochs(batches: Any, epochs: int) -> None:
    if epochs > 1 and iter(batches) is batches:
        raise ValueError(
            f"epochs={epochs}, but batches is an iterator, which can be used once: "
            "give a list, or an object whose __iter__ starts anew"
        )

"""`ndx.parallel.train`: workers train copies of the parameters, which are averaged."""

from __future__ import annotations

import contextlib
import dataclasses
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

import ndx
from ndx._lib.functions import check_function
from ndx._lib.trees import check_structure, map_tree
from ndx._pipelines import worker_backends
from ndx._pipelines.arguments import check_count
from ndx._pipelines.sources import length_of, progress_bar
from ndx._pipelines.worker_backends import Place, Scoped, unchanged
from ndx._pipelines.workers import Crew, Opened, with_index
from ndx._pipelines.workspace_plan import Mode, has_workspaces

__all__ = ["Trained", "train"]

# ---- Means of trees, in a fixed order of operations ----------------------------------


def _ours(leaf: Any) -> Any:
    """Return an array of NumPy as one of ndx, over the same memory; others as is."""
    if isinstance(leaf, np.ndarray) or (
        isinstance(leaf, np.generic) and not isinstance(leaf, float | complex)
    ):
        try:
            return ndx.asarray(leaf)
        except TypeError:
            # Text, for example, which has no mean.
            return leaf
    return leaf


def _is_averaged(leaf: Any) -> bool:
    """Return whether a leaf has a mean: counters, names and switches have none."""
    leaf = _ours(leaf)
    if isinstance(leaf, ndx.NDArray):
        return bool(ndx.isdtype(leaf.dtype, ("real floating", "complex floating")))
    return isinstance(leaf, float | complex)


def mean(trees: Sequence[Any], weights: Sequence[int]) -> Any:
    """Return the weighted mean of trees, leaf by leaf.

    Leaves that are no floating-point numbers are those of the first tree. The order of
    the additions is that of the trees, so that equal trees give equal results, to the
    last bit.
    """
    if len(trees) == 1:
        return trees[0]
    if len(set(weights)) == 1:
        return mean_of_sums(trees, len(trees))
    weighted = [
        map_tree(lambda x, by=weight: x * by if _is_averaged(x) else x, tree)
        for tree, weight in zip(trees, weights, strict=True)
    ]
    return mean_of_sums(weighted, sum(weights))


def mean_of_sums(trees: Sequence[Any], count: int) -> Any:
    """Return the sum of trees of sums, divided by the count of what was added."""

    def of(*leaves: Any) -> Any:
        found = [_ours(leaf) for leaf in leaves]
        if not any(map(_is_averaged, found)):
            return found[0]
        added = found[0]
        for leaf in found[1:]:
            added = added + _beside(leaf, added)
        return added / count if count > 1 else added

    return map_tree(of, *trees)


def copied(tree: Any, device: Any = None) -> Any:
    """Return a tree with arrays of its own, in no workspace; on a device, if given.

    Arrays of NumPy become arrays of ndx.
    """

    def of(leaf: Any) -> Any:
        leaf = _ours(leaf)
        if not isinstance(leaf, ndx.NDArray):
            return leaf
        if device is not None and leaf.device != device:
            return leaf.to_device(device)
        return ndx.asarray(leaf, copy=True)

    with ndx.no_workspace():
        return map_tree(of, tree)


def _beside(leaf: Any, other: Any) -> Any:
    """Return a leaf on the device of another one, which must be of the same kind."""
    if _kind(leaf) != _kind(other):
        raise ValueError(
            f"two results can't be added: {_kind(other)} and {_kind(leaf)}; a step "
            "must return arrays of the same shapes and dtypes for each batch"
        )
    if not isinstance(leaf, ndx.NDArray) or leaf.device == other.device:
        return leaf
    return leaf.to_device(other.device)


def _kind(leaf: Any) -> str:
    """Return what must agree between leaves that are added."""
    if isinstance(leaf, ndx.NDArray):
        return f"an array of shape {leaf.shape} and dtype {leaf.dtype}"
    # A Python float may meet an int: a score that happens to be whole.
    return "a number" if isinstance(leaf, int | float | complex) else f"{leaf!r}"


# ---- Rounds: steps of all workers, then an average -----------------------------------


# Batches for each worker that wait for it or are in its hands, if they are made
# meanwhile: it always finds the next one.
WAITING = 2


def replica(step: Callable[..., Any], place: Place, gradients: bool) -> Opened:
    """Return what opens a worker's own copy of the parameters, in its thread."""

    @contextlib.contextmanager
    def opened() -> Iterator[Callable[..., Any]]:
        with place.entered() as scoped:
            yield _Replica(step, scoped, place, gradients).step

    return opened


class _Replica:
    """The parameters of one worker; used in its thread only.

    With `gradients`, they stay as they are for a round, whose gradients are summed.
    """

    def __init__(
        self, step: Callable[..., Any], scoped: Scoped, place: Place, gradients: bool
    ):
        self._device, self._gradients = place.device, gradients
        self._params = self._sum = None

        # In the scope: neither the score nor a temporary outlives the step.
        def stepped(params: Any, batch: Any, before: Any) -> tuple[Any, float]:
            made, score = _checked(step(params, place.moved(batch)))
            if before is not None:
                made = mean_of_sums([before, made], 1)
            return made, float(score)

        self._stepped = scoped(stepped)

    def step(self, batch: Any, fresh: Any) -> tuple[Any, float]:
        """Return the parameters after a step, or the gradients so far; and the score.

        The parameters from which a round begins are `fresh`; None: those that this
        worker had.
        """
        if fresh is not None:
            self._params, self._sum = fresh[0], None
            # Gradients change no parameters: workers share them.
            if not self._gradients or self._device is not None:
                self._params = copied(self._params, self._device)
        made, score = self._stepped(self._params, batch, self._sum)
        if self._gradients:
            self._sum = made
        else:
            self._params = made
        return made, score


def _checked(made: Any) -> tuple[Any, Any]:
    if not isinstance(made, tuple) or len(made) != 2:
        raise TypeError(
            "step must return a tuple of two: the new parameters (with update=: the "
            f"gradients) and the score, not {type(made).__name__}"
            + (f" of {len(made)}" if isinstance(made, tuple) else "")
        )
    return made


@dataclasses.dataclass
class Rounds:
    """What the calling thread does: it hands out batches, averages, and reports."""

    # The workers, with tasks of their own.
    crew: Crew
    # How many there are, and how many batches each has in a round.
    workers: int
    every: int
    # What they begin a round with: nobody else's.
    params: Any
    # Makes new parameters of gradients; None: workers return parameters.
    update: Callable[[Any, Any], Any] | None
    # Decorates what computes.
    scoped: Scoped
    # Who gets which scores.
    on_score: Callable[[int, float], Any] | None
    after_averaging: bool
    bar: Any
    # How many batches may wait for a worker or be in its hands.
    waiting: float
    scores: list[float] = dataclasses.field(default_factory=list)
    batches: int = 0
    averages: int = 0
    is_last: bool = False

    def __post_init__(self) -> None:
        update = self.update

        def combined(params: Any, trees: list[Any], counts: list[int]) -> Any:
            if update is None:
                return mean(trees, counts)
            return update(params, mean_of_sums(trees, sum(counts)))

        self._combined = self.scoped(combined)

    def run(self, source: Iterator[Any]) -> None:
        """Do rounds until there are no more batches, or the user has enough."""
        full = self.workers * self.every
        while self._round(source, full) == full and not self.is_last:
            pass

    def _round(self, source: Iterator[Any], full: int) -> int:
        """Do a round of up to `full` batches; return how many there were."""
        found: dict[int, tuple[Any, float]] = {}
        first = self.batches
        for given in range(full):
            while given - len(found) >= self.waiting:
                self._take_one(found)
            try:
                batch = next(source)
            except StopIteration:
                break
            except Exception as error:
                with_index(error, "the batches, at batch", self.batches)
                raise
            self.crew.put(
                self.batches, batch, self._fresh(given), worker=given % self.workers
            )
            self.batches += 1
            del batch
        count = self.batches - first
        while len(found) < count:
            self._take_one(found)
        if count:
            self._finish(first, count, found)
        return count

    def _fresh(self, given: int) -> tuple[Any] | None:
        """Return the parameters for a worker's first batch of a round, in a tuple."""
        alone = self.workers == 1 and self.update is None and self.averages
        return None if given >= self.workers or alone else (self.params,)

    def _take_one(self, found: dict[int, tuple[Any, float]]) -> None:
        outcome = self.crew.take()
        if outcome.error is None and outcome.key is not None:
            found[outcome.key] = outcome.value
            self.bar.update()
            return
        failed = [x for x in (outcome, *self.crew.close()) if x.error is not None]
        # A worker that could not start comes before all batches.
        outcome = min(failed, key=lambda x: -1 if x.key is None else x.key)
        try:
            outcome.result("batch")
        finally:
            # The traceback has this frame.
            del outcome, failed

    def _finish(self, first: int, count: int, found: dict[int, Any]) -> None:
        """Average the round, in the order of the workers, and report its scores."""
        scores = [found[first + i][1] for i in range(count)]
        if not self.after_averaging:
            for i, score in enumerate(scores):
                self._report(first + i + 1, score)
        taking = min(self.workers, count)
        counts = [len(range(i, count, self.workers)) for i in range(taking)]
        # The last task of each worker has what it has made.
        lasts = [i + (counts[i] - 1) * self.workers for i in range(taking)]
        trees = [found[first + i][0] for i in lasts]
        found.clear()
        new = self._combined(self.params, trees, counts)
        if self.update is not None and new is None and self.params is not None:
            raise TypeError(
                "update returned None; it must return the new parameters, also if it "
                "has changed the old ones"
            )
        # Else the next step would fail, at a place that says nothing.
        check_structure(self.params, new)
        self.params = new
        self.averages += 1
        if self.after_averaging:
            self._report(self.batches, sum(scores) / count)

    def _report(self, batches: int, score: float) -> None:
        """Report one score; note whether that was enough."""
        self.scores.append(score)
        self.bar.set_postfix(score=f"{score:.4g}")
        answer = None if self.on_score is None else self.on_score(batches, score)
        # It may return other things for nobody.
        if isinstance(answer, ndx.NDArray | np.ndarray) and answer.ndim == 0:
            answer = answer.item()
        if isinstance(answer, bool | np.bool_) and answer:
            self.is_last = True


# ---- Training ------------------------------------------------------------------------


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
    check_count(epochs, "epochs")
    check_count(average_every, "average_every")
    if prefetch != 0:
        check_count(prefetch, "prefetch")
    if threads is not None:
        check_count(threads, "threads")
    if epochs > 1 and iter(batches) is batches:
        raise ValueError(
            f"epochs={epochs}, but batches is an iterator, which can be used once: "
            "give a list, or an object whose __iter__ starts anew"
        )
    if not has_workspaces("mode", mode, "ndx.parallel.train"):
        if config is not None:
            raise ValueError(
                "mode='none' has no workspaces, so that config= has no use"
            )
        workspace = None
    where = worker_backends.places(
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
        scoped = unchanged
        if workspace is not None:
            # Nobody else finds it: calls of `train` may be nested.
            scoped = ndx.workspace(None)
            stack.callback(scoped.destroy, trim=False)
        crew = Crew(
            [replica(step, place, update is not None) for place in where],
            own_tasks=True,
            seldom=_is_made(batches),
            name="ndx-train",
            threads=threads,
        )
        stack.callback(crew.close)
        rounds = Rounds(
            crew,
            len(where),
            average_every,
            copied(params, where[0].device),
            update,
            scoped,
            on_score,
            report_after_averaging,
            bar,
            math.inf if _is_made(batches) else WAITING * len(where),
        )
        for _ in range(epochs):
            with _ahead(batches, prefetch) as source:
                rounds.run(source)
            if rounds.is_last:
                break
        return Trained(rounds.params, rounds.scores, rounds.batches, rounds.averages)


def _is_made(items: Iterable[Any]) -> bool:
    """Whether all items are there: those that are handed out take no more memory."""
    return isinstance(items, list | tuple)


@contextlib.contextmanager
def _ahead(items: Iterable[Any], depth: int) -> Iterator[Iterator[Any]]:
    """Take up to `depth` items ahead, by `ndx.prefetch`, until the scope ends.

    Items of a list or a tuple are taken as they are.

    Yields
    ------
    iterator
        The items. An error of `items` is raised after the items before it.
    """
    # A thread would only copy what is made already.
    if not depth or _is_made(items):
        yield iter(items)
        return
    # Each worker holds the batch that it computes.
    with ndx.prefetch(items, depth=depth, on_held="grow") as batches:
        yield iter(batches)

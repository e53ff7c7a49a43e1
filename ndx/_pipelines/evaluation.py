"""Evaluation: metrics of a function over batches, in one workspace."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Mapping, Set
from typing import Any

import ndx
from ndx._pipelines.metric import Metric
from ndx._pipelines.reports import Report
from ndx._pipelines.sources import length_of, progress_bar
from ndx._pipelines.workspace_plan import workspaces_used

__all__ = ["evaluate"]

_NAME = "ndx:evaluate"
# Batches differ, the last one above all: the largest one sizes the arena.
_CONFIG = ndx.WorkspaceConfig(learn="liveness", spill="grow")
_KEYS = ("inputs", "expected", "weights")


def evaluate(
    fn: Callable[[Any], Any],
    batches: Iterable[Any],
    /,
    *metrics: Metric[Any],
    workspace: str | ndx.Workspace | None = None,
    keys: tuple[str, ...] = _KEYS,
    progress: bool | str = False,
    reset: bool = True,
) -> Report:
    """Compute metrics of a function over batches, in one pass, in one workspace.

    For each batch, a scope of a workspace is entered; in it the function is called and
    all metrics count its outputs. So nothing is left of a batch but the metrics' own
    numbers, of fixed size (but for an exact `ndx.metrics.ROC`), and batches after the
    first ones take no memory from the system.

    Parameters
    ----------
    fn : callable
        Called with the inputs of a batch; returns the outputs. Arrays that it makes go
        stale with the batch: what it is to keep for the next one, it detaches.
    batches : iterable
        Each is a pair (inputs, expected), a triple (inputs, expected, weights), or a
        mapping with these keys. Weights, or a mask of bools, are of shape (n,), for n
        samples. Inputs may be anything that `fn` takes, expected values and outputs
        what the metrics take, as arrays of ndx, NumPy or others.
    *metrics : ndx.metrics.Metric
        At least one: of `ndx.metrics`, or of one's own.
    workspace : str or ndx.Workspace, optional
        The workspace of the batches; a name is that of the calling thread. Default:
        ``"ndx:evaluate"``, which plans by lifetimes and is kept for the next
        evaluation (``ndx.memory.destroy_all`` gives its memory back). If it is open
        already, batches join its cycle, and it grows by each.
    keys : tuple of str
        For batches that are mappings: the keys of inputs, expected values and, if they
        have it, weights.
    progress : bool or str
        Whether to show a progress bar (tqdm); a str stands beside it.
    reset : bool
        Whether the metrics forget what they counted before.

    Returns
    -------
    ndx.metrics.Report
        Results by the names of the metrics (attribute `name`, or that of the class in
        lower case; a second one of a name is ``"name (2)"``). Nothing in it is in a
        workspace.

    Raises
    ------
    TypeError
        If there is no metric, an object is none, or a batch has another form. Errors
        of `fn`, the batches and metrics come as they are, with a note that tells the
        batch; no scope is left open.

    Notes
    -----
    It works in workspaces of the caller, too. Batches are taken outside of the scope:
    what the iterable makes is where it makes it. ``ndx.use_workspaces(False)`` turns
    the workspace off.

    ND4J's ``MultiLayerNetwork.doEvaluation``.

    Examples
    --------
    >>> import ndx
    >>> def model(x):
    ...     return ndx.stack([-x, x], axis=1)        # scores of two classes
    >>> batches = [
    ...     (ndx.asarray([-1.0, 2.0]), ndx.asarray([0, 1])),
    ...     (ndx.asarray([3.0, -4.0]), ndx.asarray([0, 0])),
    ... ]
    >>> report = ndx.evaluate(model, batches, ndx.metrics.Classification(["no", "yes"]))
    >>> report["classification"].accuracy
    0.75
    >>> print(report)
    Evaluation of 2 batches
    <BLANKLINE>
    classification: classes
                     precision  recall      F1  support
      no                1.0000  0.6667  0.8000        3
      yes               0.5000  1.0000  0.6667        1
      macro mean        0.7500  0.8333  0.7333        4
      weighted mean     0.8750  0.7500  0.7667        4
      accuracy                          0.7500        4
    <BLANKLINE>
    classification: expected (rows), predicted (columns)
           no  yes
      no    2    1
      yes   0    1
    """
    named = _named(fn, metrics)
    keys = _checked_keys(keys)
    scope = _scope(workspace)
    if reset:
        for metric in metrics:
            metric.reset()
    count, bar = 0, progress_bar(progress, length_of(batches), "batch")
    try:
        for batch in batches:
            _count(fn, _parts(batch, keys), metrics, scope)
            # A source may use a batch's memory again when nobody holds it.
            del batch
            count += 1
            bar.update()
    except BaseException as error:
        error.add_note(f"in batch {count} of ndx.evaluate")
        raise
    finally:
        bar.close()
    with ndx.no_workspace():
        return Report({name: each.result() for name, each in named.items()}, count)


def _count(
    fn: Callable[[Any], Any],
    parts: tuple[Any, ...],
    metrics: tuple[Metric[Any], ...],
    scope: contextlib.AbstractContextManager[Any],
) -> None:
    """Count a batch; on return, nothing refers to it or to the outputs."""
    inputs, expected, *weights = parts
    with scope:
        outputs = fn(inputs)
        for metric in metrics:
            metric.update(expected, outputs, *weights)
        # Arrays that leave a scope alive would be looked at when it ends.
        del outputs


def _scope(
    workspace: str | ndx.Workspace | None,
) -> contextlib.AbstractContextManager[Any]:
    """Return the context manager of a batch, which can be entered again."""
    if not workspaces_used():
        return contextlib.nullcontext()
    if isinstance(workspace, ndx.Workspace):
        return workspace
    if isinstance(workspace, str):
        return ndx.workspace(workspace)
    if workspace is not None:
        msg = f"workspace must be a name or a Workspace, not {workspace!r}"
        raise TypeError(msg)
    found = ndx.workspace(_NAME, config=_CONFIG)
    # Within an evaluation, in which it is open, batches would not end its cycle.
    return ndx.workspace(config=_CONFIG) if found.is_open_here else found


def _named(fn: object, metrics: tuple[Metric[Any], ...]) -> dict[str, Metric[Any]]:
    """Return the metrics by name, if they are some."""
    if not callable(fn):
        msg = f"evaluate takes a function of a batch's inputs first, not {fn!r}"
        raise TypeError(msg)
    if not metrics:
        msg = "evaluate takes at least one metric, such as ndx.metrics.Classification()"
        raise TypeError(msg)
    named: dict[str, Metric[Any]] = {}
    for metric in metrics:
        if isinstance(metric, type) or not isinstance(metric, Metric):
            raise TypeError(
                f"{metric!r} is no metric: that is an object with the methods update, "
                "result and reset (ndx.metrics.Metric)"
            )
        if any(metric is other for other in named.values()):
            msg = f"the metric {metric!r} is given twice, and would count twice"
            raise TypeError(msg)
        name = original = str(getattr(metric, "name", type(metric).__name__.lower()))
        number = 1
        while name in named:
            number += 1
            name = f"{original} ({number})"
        named[name] = metric
    return named


def _checked_keys(keys: Any) -> tuple[str, ...]:
    # The order of a set is not the one that was written.
    if isinstance(keys, Iterable) and not isinstance(keys, str | bytes | Set):
        keys = tuple(keys)
        if len(keys) in (2, 3):
            return keys
    raise TypeError(
        f"keys={keys!r} is not valid: it is a tuple of the keys of the inputs and the "
        "expected values, and, if there are any, of the weights"
    )


def _parts(batch: Any, keys: tuple[str, ...]) -> tuple[Any, ...]:
    """Return inputs, expected values and, if there are any, weights of a batch."""
    if isinstance(batch, Mapping):
        inputs, expected, *weights = keys
        if inputs in batch and expected in batch:
            extra = [batch[key] for key in weights if batch.get(key) is not None]
            return (batch[inputs], batch[expected], *extra)
        found = f"a mapping with the keys {', '.join(map(repr, batch)) or 'none'}"
    elif isinstance(batch, tuple | list):
        if len(batch) == 3 and batch[2] is None:
            return (batch[0], batch[1])
        if len(batch) in (2, 3):
            return tuple(batch)
        found = f"a {type(batch).__name__} of {len(batch)}"
    else:
        found = f"of type {type(batch).__name__}"
    raise TypeError(
        "a batch is a pair (inputs, expected), a triple with weights, or a mapping "
        f"with the keys {', '.join(map(repr, keys))}, of which the third may be "
        f"missing; not {found}"
    )

"""How batches get to the training of ``digits_network.py``, and who computes them.

A thread takes the batches ahead (`ndx.prefetch`), or workers share each of them
(`ndx.parallel.train`). The steps are those of the other variants, so that the losses
are theirs, too.
"""

import functools

from digits_network import descend, loss_and_grads

import ndx

DEPTH = 8


class Batches:
    """The batches of an epoch, each shuffled when its turn comes.

    Parameters
    ----------
    training : digits_network.Training
    order : NDArray
        The places of the samples.
    """

    def __init__(self, training, order):
        self.data = training.images, training.targets
        self.batch_size = training.batch_size
        self.order = order

    def __len__(self):
        return -(-self.order.shape[0] // self.batch_size)

    def __iter__(self):
        for start in range(0, self.order.shape[0], self.batch_size):
            places = self.order[start : start + self.batch_size]
            yield tuple(ndx.take(x, places, axis=0) for x in self.data)


class Prefetched:
    """A feed whose thread takes the batches ahead, in the same slots in each epoch."""

    def __init__(self):
        self.batches = None

    def __call__(self, training, order):
        """Return the batches of an epoch, in this order."""
        order = ndx.asarray(order, copy=True)
        if self.batches is None:
            self.batches = ndx.prefetch(Batches(training, order), depth=DEPTH)
        self.batches.source.order = order
        return self.batches


def shares(batches, count, sizes):
    """Yield each batch in so many parts of almost equal size, one for each worker.

    A part is a triple: images, targets, and its weight in the mean of the parts. The
    numbers of the batches' samples are appended to `sizes`.
    """
    for images, targets in batches:
        size = images.shape[0]
        sizes.append(size)
        for part in range(count):
            start, stop = part * size // count, (part + 1) * size // count
            # No part is empty, but one that has nothing to do weighs nothing.
            rows = slice(start, max(stop, start + 1))
            yield images[rows, :], targets[rows, :], count * (stop - start) / size


def weighted_grads(params, part):
    """Return the gradients and the loss of a part, by its weight."""
    images, targets, weight = part
    loss, grads = loss_and_grads(ndx, params, (images, targets))
    return [tuple(weight * grad for grad in layer) for layer in grads], weight * loss


def run_workers(training, batches, on_step, *, workers, mode, prefetch):
    """Take the steps of an epoch by workers, a part of each batch for each.

    The mean of their gradients is that of the batch. `mode` is that of
    `ndx.parallel.train`. Returns the mean loss.
    """

    def update(params, grads):
        descend(params, training.velocities, grads)
        return params

    sizes = []
    trained = ndx.parallel.train(
        weighted_grads,
        training.params,
        shares(batches, workers, sizes),
        update=update,
        workers=workers,
        mode=mode,
        prefetch=DEPTH if prefetch else 0,
        on_score=lambda used, score: on_step(),
    )
    training.params = trained.params
    losses = zip(trained.scores, sizes, strict=True)
    return sum(loss * size for loss, size in losses) / sum(sizes)


def options(mode, prefetch, workers, make_step):
    """Return the arguments of a `digits_network.Training` for the chosen pipeline.

    Parameters
    ----------
    mode : str or None
    prefetch : bool
    workers : int or None
    make_step : callable
        Returns a step in this mode.
    """
    if workers:
        run = functools.partial(
            run_workers, workers=workers, mode=mode or "enabled", prefetch=prefetch
        )
        return {"run": run}
    found = {"make_feed": Prefetched} if prefetch else {}
    return found | ({"make_step": make_step} if mode else {})

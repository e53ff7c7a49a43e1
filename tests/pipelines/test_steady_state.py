"""A whole program: prefetch, training step and evaluation, epoch after epoch."""

import numpy as np
import pytest
from helpers.prefetching import no_thread_left  # noqa: F401

import ndx

CLASSES, FEATURES, ROWS, BATCHES = 4, 64, 256, 8


class Images:
    """Batches that are made anew for each epoch: arrays of ndx, and NumPy's labels."""

    def __iter__(self):
        rng = np.random.default_rng(0)
        for _ in range(BATCHES):
            labels = rng.integers(CLASSES, size=ROWS)
            x = ndx.asarray(rng.normal(size=(ROWS, FEATURES)) + labels[:, None])
            yield (x - ndx.mean(x)) / ndx.std(x), labels

    def __len__(self):
        return BATCHES


def softmax(x):
    exponents = ndx.exp(x - ndx.max(x, axis=1, keepdims=True))
    return exponents / ndx.sum(exponents, axis=1, keepdims=True)


def gradient(weights, x, labels):
    wanted = ndx.astype(labels[:, None] == ndx.arange(CLASSES), x.dtype)
    return x.T @ (softmax(x @ weights) - wanted) / ROWS


def evaluated(weights, batches):
    metrics = [ndx.metrics.Classification(CLASSES), ndx.metrics.ROC()]
    return ndx.evaluate(lambda x: softmax(x @ weights), batches, *metrics)


@pytest.mark.parametrize("workers", [None, 1, 2])
def test_an_epoch_takes_nothing_from_the_system_after_the_first(workers):
    """The count is the pool's, of all memory that it has asked the system for."""
    weights = ndx.zeros((FEATURES, CLASSES))
    taken, scores = [], []

    def step(weights, batch):
        return weights - 0.1 * gradient(weights, *batch), 0.0

    with ndx.prefetch(Images(), depth=3) as batches:
        for _ in range(6):
            if workers is None:
                for batch in batches:
                    with ndx.workspace("step"):
                        weights -= 0.1 * gradient(weights, *batch)
                del batch
            else:
                trained = ndx.parallel.train(step, weights, batches, workers=workers)
                weights = trained.params
                del trained
            scores.append(evaluated(weights, batches)["classification"].accuracy)
            taken.append(ndx.memory.stats("host")["system_allocations"])
    assert scores[-1] > 0.5 >= 1 / CLASSES
    assert len(set(taken[1:])) == 1, taken

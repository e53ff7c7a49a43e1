"""A small neural network, its gradients and its training, for any array library.

Everything here is written once, against an array namespace ``xp`` (names of the
Array API 2025.12 only), and doesn't know which library that is. NumPy itself
makes the random numbers, so that every library starts from the same ones.
"""

import contextlib
import itertools
from typing import NamedTuple

import numpy as np

LEARNING_RATE = 0.1
MOMENTUM = 0.9


class Digits(NamedTuple):
    """The data set in NumPy arrays: images are rows of 64 numbers in [0, 1]."""

    train_images: np.ndarray
    train_targets: np.ndarray  # one-hot, so that a step needs no indexing
    test_images: np.ndarray
    test_labels: np.ndarray


class Trained(NamedTuple):
    """What a run leaves: the parameters, and the mean loss of each epoch."""

    params: list
    losses: list
    accuracy: float


def init_params(xp, sizes, seed):
    """Return one ``(weight, bias)`` pair per layer, for the layer `sizes`."""
    rng = np.random.default_rng(seed)
    params = []
    for fan_in, fan_out in itertools.pairwise(sizes):
        weight = rng.normal(0, (2 / fan_in) ** 0.5, (fan_in, fan_out))
        weight = xp.asarray(weight.astype(np.float32), copy=True)
        params.append((weight, xp.zeros((fan_out,), dtype=weight.dtype)))
    return params


def forward(xp, params, images):
    """Return the activations of every layer; the last ones are the logits."""
    activations = [images]
    for weight, bias in params[:-1]:
        z = activations[-1] @ weight
        z = z + bias
        activations.append(xp.maximum(z, 0.0))
    weight, bias = params[-1]
    z = activations[-1] @ weight
    activations.append(z + bias)
    return activations


def loss_and_grads(xp, params, batch):
    """Return the mean cross-entropy of `batch` and its gradients.

    `batch` is a pair (images, one-hot targets); the gradients are pairs, like
    `params`.
    """
    images, targets = batch
    activations = forward(xp, params, images)

    logits = activations[-1]
    logits = logits - xp.max(logits, axis=1, keepdims=True)
    exps = xp.exp(logits)
    totals = xp.sum(exps, axis=1, keepdims=True)
    log_probs = logits - xp.log(totals)
    loss = -xp.sum(targets * log_probs) / images.shape[0]

    delta = exps / totals
    delta = delta - targets
    delta = delta / images.shape[0]
    grads = []
    for layer in range(len(params) - 1, -1, -1):
        inputs = activations[layer]
        grad_weight = inputs.T @ delta
        grad_bias = xp.sum(delta, axis=0)
        grads.append((grad_weight, grad_bias))
        if layer > 0:
            delta = delta @ params[layer][0].T
            active = xp.astype(inputs > 0, delta.dtype)
            delta = delta * active
    return loss, grads[::-1]


def sgd_step(xp, params, velocities, batch):
    """Update `params` and `velocities` in place; return the loss of `batch`."""
    loss, grads = loss_and_grads(xp, params, batch)
    for layer, layer_velocities, layer_grads in zip(
        params, velocities, grads, strict=True
    ):
        for param, velocity, grad in zip(
            layer, layer_velocities, layer_grads, strict=True
        ):
            velocity *= MOMENTUM
            velocity -= LEARNING_RATE * grad
            param += velocity
    return loss


def accuracy(xp, params, images, labels):
    """Return the share of `images` whose largest logit is at its label."""
    predicted = xp.argmax(forward(xp, params, images)[-1], axis=1)
    return int(xp.sum(xp.astype(predicted == labels, xp.int64))) / labels.shape[0]


def run_steps(xp, params, velocities, images, targets, batch_size, scope, on_step):
    """Take one step per mini-batch, each inside ``scope()``; return the mean loss.

    Nothing that is made in the scope outlives it but a Python float, so that
    the scope may be a workspace. The last batch may be shorter.
    """
    total = 0.0
    count = images.shape[0]
    for start in range(0, count, batch_size):
        stop = min(start + batch_size, count)
        with scope():
            batch = images[start:stop, :], targets[start:stop, :]
            loss = sgd_step(xp, params, velocities, batch)
            total += float(loss) * (stop - start)
        on_step()
    return total / count


def train(
    xp,
    digits,
    *,
    epochs,
    batch_size=128,
    hidden=(256,),
    seed=0,
    scope=contextlib.nullcontext,
    meter=None,
    on_step=lambda: None,
    on_epoch=lambda loss: None,
):
    """Train on `digits` with the arrays of the namespace `xp`.

    Parameters
    ----------
    xp : namespace
        Any namespace of the Array API.
    digits : Digits
        The data, copied into arrays of `xp` first.
    epochs, batch_size, seed : int
    hidden : sequence of int
        Widths of the hidden layers.
    scope : callable
        Called at each step; returns the context manager around that step.
    meter : context manager, optional
        Entered around the steps of each epoch.
    on_step, on_epoch : callable
        Called after each step, and with the mean loss after each epoch.

    Returns
    -------
    Trained
    """
    train_images = xp.asarray(digits.train_images, copy=True)
    train_targets = xp.asarray(digits.train_targets, copy=True)
    sizes = (train_images.shape[1], *hidden, train_targets.shape[1])
    params = init_params(xp, sizes, seed)
    velocities = [tuple(xp.zeros_like(p) for p in layer) for layer in params]
    meter = meter or contextlib.nullcontext()
    rng = np.random.default_rng(seed)
    losses = []
    for _ in range(epochs):
        # Shuffled once per epoch, outside of the steps: each batch is then a
        # contiguous view of these two, which costs no memory.
        order = xp.asarray(rng.permutation(train_images.shape[0]))
        images = xp.take(train_images, order, axis=0)
        targets = xp.take(train_targets, order, axis=0)
        with meter:
            loss = run_steps(
                xp, params, velocities, images, targets, batch_size, scope, on_step
            )
        losses.append(loss)
        on_epoch(loss)
    test_images = xp.asarray(digits.test_images, copy=True)
    test_labels = xp.asarray(digits.test_labels, copy=True)
    return Trained(params, losses, accuracy(xp, params, test_images, test_labels))

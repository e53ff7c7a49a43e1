"""A small neural network, its gradients and its training, for any array library.

Everything here is written once, against an array namespace ``xp`` (names of the
Array API 2025.12 only), for any library. NumPy itself makes the random numbers, so
that every library starts from the same ones.
"""

import contextlib
import itertools
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

LEARNING_RATE = 0.1
MOMENTUM = 0.9


def init_params(xp, sizes, seed):
    """Return one ``(weight, bias)`` pair per layer, for the layer `sizes`."""
    rng = np.random.default_rng(seed)
    params = []
    for fan_in, fan_out in itertools.pairwise(sizes):
        weight = rng.normal(0, (2 / fan_in) ** 0.5, (fan_in, fan_out))
        weight = xp.asarray(weight.astype(np.float32), copy=True)
        params.append((weight, xp.zeros((fan_out,), dtype=weight.dtype)))
    return params


# ---- Elementwise parts -----------------------------------------------------------


def activate(xp, z, bias):
    """Return the outputs of a hidden layer before its activation is applied to `z`."""
    z = z + bias
    return xp.maximum(z, 0.0)


def cross_entropy(xp, logits, targets):
    """Return the mean cross-entropy of a batch, and its gradient by the logits."""
    logits = logits - xp.max(logits, axis=1, keepdims=True)
    exps = xp.exp(logits)
    totals = xp.sum(exps, axis=1, keepdims=True)
    log_probs = logits - xp.log(totals)
    loss = -xp.sum(targets * log_probs) / targets.shape[0]
    delta = exps / totals
    delta = delta - targets
    return loss, delta / targets.shape[0]


def deactivate(xp, delta, outputs):
    """Return the gradient by a hidden layer's inputs from that by its `outputs`."""
    return delta * xp.astype(outputs > 0, delta.dtype)


def update(param, velocity, grad):
    """Move a parameter, and change its velocity, in place."""
    velocity *= MOMENTUM
    velocity -= LEARNING_RATE * grad
    param += velocity


class Parts(NamedTuple):
    """The elementwise parts of a step, as they are or fused."""

    activate: Callable = activate
    cross_entropy: Callable = cross_entropy
    deactivate: Callable = deactivate
    update: Callable = update


PLAIN = Parts()

# ---- Training --------------------------------------------------------------------


def forward(xp, params, images, parts=PLAIN):
    """Return the activations of every layer; the last ones are the logits."""
    activations = [images]
    for weight, bias in params[:-1]:
        activations.append(parts.activate(xp, activations[-1] @ weight, bias))
    weight, bias = params[-1]
    z = activations[-1] @ weight
    activations.append(z + bias)
    return activations


def loss_and_grads(xp, params, batch, parts=PLAIN):
    """Return the mean cross-entropy of `batch` and its gradients.

    `batch` is a pair (images, one-hot targets); the gradients are pairs, like
    `params`.
    """
    images, targets = batch
    activations = forward(xp, params, images, parts)
    loss, delta = parts.cross_entropy(xp, activations[-1], targets)
    grads = []
    for layer in range(len(params) - 1, -1, -1):
        inputs = activations[layer]
        grad_weight = inputs.T @ delta
        grad_bias = xp.sum(delta, axis=0)
        grads.append((grad_weight, grad_bias))
        if layer > 0:
            delta = parts.deactivate(xp, delta @ params[layer][0].T, inputs)
    return loss, grads[::-1]


def descend(params, velocities, grads, parts=PLAIN):
    """Update `params` and `velocities` in place, by the gradients of a batch."""
    for layer, layer_velocities, layer_grads in zip(
        params, velocities, grads, strict=True
    ):
        for param, velocity, grad in zip(
            layer, layer_velocities, layer_grads, strict=True
        ):
            parts.update(param, velocity, grad)


def sgd_step(xp, params, velocities, batch, parts=PLAIN):
    """Update `params` and `velocities` in place; return the loss of `batch`."""
    loss, grads = loss_and_grads(xp, params, batch, parts)
    descend(params, velocities, grads, parts)
    return loss


def accuracy(xp, params, images, labels):
    """Return the share of `images` whose largest logit is at its label."""
    predicted = xp.argmax(forward(xp, params, images)[-1], axis=1)
    return int(xp.sum(xp.astype(predicted == labels, xp.int64))) / labels.shape[0]


def shuffled(training, order):
    """Return the batches of an epoch: pairs of images and targets, in this order.

    All are shuffled at once, outside of the steps: each batch is then a contiguous
    view, which costs no memory. The last one may be shorter.
    """
    xp, size = training.xp, training.batch_size
    order = xp.asarray(order)
    images = xp.take(training.images, order, axis=0)
    targets = xp.take(training.targets, order, axis=0)
    starts = range(0, images.shape[0], size)
    return ((images[i : i + size, :], targets[i : i + size, :]) for i in starts)


def run_steps(training, batches, on_step):
    """Take one step per batch, each inside ``training.scope()``; return the mean loss.

    Nothing that is made in the scope outlives it but a Python float, so that
    the scope may be a workspace.
    """
    total, count = 0.0, 0
    for batch in batches:
        with training.scope():
            loss = training.step(
                training.xp, training.params, training.velocities, batch
            )
            total += float(loss) * batch[0].shape[0]
        count += batch[0].shape[0]
        on_step()
    return total / count


class Training:
    """A network in training, with the arrays of one namespace.

    Parameters
    ----------
    xp : namespace
        Any namespace of the Array API.
    scope : callable
        Called at each step; returns the context manager around that step.
    digits : digits_data.Digits
        The data, copied into arrays of `xp` first.
    batch_size, seed : int
    hidden : sequence of int
        Widths of the hidden layers.
    step : callable
        Takes a step: `sgd_step`, or a function around it.
    make_step : callable, optional
        Returns the step, instead: one for each training, if it keeps anything.
    make_feed : callable, optional
        Returns what makes the batches of an epoch: `shuffled`, or one like it.
    run : callable
        Takes the steps of an epoch: `run_steps`, or one like it.

    Attributes
    ----------
    params : list
        The weight and the bias of each layer.
    history : list of float
        The mean loss of each epoch.
    """

    def __init__(
        self,
        xp,
        scope=contextlib.nullcontext,
        *,
        digits,
        batch_size=128,
        hidden=(256,),
        seed=0,
        step=sgd_step,
        make_step=None,
        make_feed=lambda: shuffled,
        run=run_steps,
    ):
        self.xp, self.scope, self.batch_size = xp, scope, batch_size
        self.step = step if make_step is None else make_step()
        self.feed, self.run = make_feed(), run
        self.images = xp.asarray(digits.train_images, copy=True)
        self.targets = xp.asarray(digits.train_targets, copy=True)
        self.tests = digits.test_images, digits.test_labels
        sizes = (self.images.shape[1], *hidden, self.targets.shape[1])
        self.params = init_params(xp, sizes, seed)
        self.velocities = [
            tuple(xp.zeros_like(p) for p in layer) for layer in self.params
        ]
        self.rng = np.random.default_rng(seed)
        self.history = []

    def repeat(self, meter=None, on_step=lambda: None):
        """Train for one epoch; `meter` is entered around its steps."""
        batches = self.feed(self, self.rng.permutation(self.images.shape[0]))
        with meter or contextlib.nullcontext():
            loss = self.run(self, batches, on_step)
        self.history.append(loss)

    def accuracy(self):
        """Return the share of the test images that are recognized."""
        images, labels = (self.xp.asarray(x, copy=True) for x in self.tests)
        return accuracy(self.xp, self.params, images, labels)

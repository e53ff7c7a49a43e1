"""A training step that names the roles of its arrays, and its evaluation.

The step is that of ``digits_network.py``. A plan (`ndx.WorkspacePlan`) says by a mode
which workspaces serve which role; the code is the same for all modes.
"""

import itertools

import numpy as np
from digits_network import PLAIN, forward

import ndx

_numbers = itertools.count(1)


class StepInRoles:
    """A training step in the workspaces of a plan of its own.

    Parameters
    ----------
    mode : {"enabled", "none"}
    """

    def __init__(self, mode):
        self.plan = ndx.WorkspacePlan(mode, name=f"digits {next(_numbers)}")

    def __call__(self, xp, params, velocities, batch):
        """Update `params` and `velocities` in place; return the loss of `batch`."""
        roles = self.plan.training()
        with roles.scope("activations", "gradients"):
            activations = self.forward(xp, roles, params, batch[0])
            loss, delta = PLAIN.cross_entropy(xp, activations[-1], batch[1])
            for layer in range(len(params) - 1, -1, -1):
                inputs = activations[layer]
                with roles.scope("backward"):
                    grads = inputs.T @ delta, xp.sum(delta, axis=0)
                    # Before the update: the gradient passes through the old weights.
                    if layer > 0:
                        delta = PLAIN.deactivate(xp, delta @ params[layer][0].T, inputs)
                        delta = roles.leverage_to("gradients", delta)
                    with roles.scope("updater"):
                        for triple in zip(
                            params[layer], velocities[layer], grads, strict=True
                        ):
                            PLAIN.update(*triple)
            return float(loss)

    def forward(self, xp, roles, params, images):
        """Return the activations of every layer; the last ones are the logits."""
        found = [images]
        with roles.scope("activations"):
            for weight, bias in params[:-1]:
                with roles.scope("forward"):
                    outputs = PLAIN.activate(xp, found[-1] @ weight, bias)
                    found.append(roles.leverage_to("activations", outputs))
            weight, bias = params[-1]
            found.append(found[-1] @ weight + bias)
        return found

    def arena(self):
        """Return the bytes of all arenas of the plan; None without workspaces."""
        places = [ws for ws in self.plan.training().values() if ws is not None]
        if not places:
            return None
        return sum({ws.name: ws.size for ws in places}.values())


def evaluate(params, digits, batch_size, progress):
    """Return the report of a trained network on the test images."""

    def batches():
        for start in range(0, len(digits.test_labels), batch_size):
            part = slice(start, start + batch_size)
            yield digits.test_images[part], digits.test_labels[part]

    def probabilities(images):
        logits = forward(ndx, params, ndx.asarray(images))[-1]
        exps = ndx.exp(logits - ndx.max(logits, axis=1, keepdims=True))
        return exps / ndx.sum(exps, axis=1, keepdims=True)

    def cross_entropy(labels, outputs):
        rows = np.arange(len(labels))
        return -ndx.log(outputs[rows, labels])

    return ndx.evaluate(
        probabilities,
        batches(),
        ndx.metrics.Classification(10),
        ndx.metrics.ROC(classes=10),
        ndx.metrics.Mean(cross_entropy, "cross-entropy"),
        progress=progress and "evaluation",
    )

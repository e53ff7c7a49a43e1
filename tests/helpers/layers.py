"""A model of some layers that names the roles of its arrays, and no workspace."""

import itertools

import numpy as np

import ndx

SIZES = (6, 8, 8, 8, 8, 3)


class Model:
    """Layers that are trained by gradient descent on the squared error.

    Parameters
    ----------
    on_forward : callable
        Called with the number of each layer, in the scope of its working memory.
    """

    def __init__(self, on_forward=lambda layer: None):
        rng = np.random.default_rng(0)
        self.weights = [
            ndx.asarray(rng.standard_normal(shape) / 2, copy=True)
            for shape in itertools.pairwise(SIZES)
        ]
        self.on_forward = on_forward

    def forward(self, roles, x):
        """Return the activations of all layers, in the workspace of that role."""
        found = [roles.validate("activations", x, migrate=True)]
        for layer, weight in enumerate(self.weights):
            with roles.scope("forward"):
                z = found[-1] @ weight
                self.on_forward(layer)
                found.append(roles.leverage_to("activations", ndx.tanh(z)))
        return found

    def infer(self, roles, x):
        """Return the outputs, an independent array."""
        with roles.scope("activations"):
            return self.forward(roles, x)[-1].detach()

    def train(self, roles, x, expected):
        """Take a step; return the loss, and the places of what was made on the way."""
        with roles.scope("activations", "gradients"):
            with roles.scope("activations"):
                found = self.forward(roles, roles.copy("activations", x))
            error = found[-1] - expected
            delta, steps = error * 2 / x.shape[0], []
            for layer in reversed(range(len(self.weights))):
                with roles.scope("backward"):
                    delta = delta * (1 - found[layer + 1] ** 2)
                    step = found[layer].T @ delta
                    steps.append(roles.leverage_to("gradients", step))
                    delta = delta @ self.weights[layer].T
                    delta = roles.leverage_to("gradients", delta)
            with roles.scope("updater"):
                for weight, step in zip(reversed(self.weights), steps, strict=True):
                    weight -= roles.create("updater", (), fill=0.1) * step
            places = {x.workspace for x in found[1:]}, {x.workspace for x in steps}
            return float(ndx.mean(error**2)), places


def batches(count=5, rows=16):
    """Return pairs of inputs and expected outputs."""
    rng = np.random.default_rng(1)
    return [
        (
            ndx.asarray(rng.standard_normal((rows, SIZES[0])), copy=True),
            ndx.asarray(rng.standard_normal((rows, SIZES[-1])), copy=True),
        )
        for _ in range(count)
    ]

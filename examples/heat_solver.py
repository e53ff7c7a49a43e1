"""The heat equation on the unit square, for any array library.

``du/dt = d2u/dx2 + d2u/dy2``, with u = 0 on the border. In space, the 5-point stencil;
in time, the classical method of Runge and Kutta, whose error is far below that of the
stencil. The square starts with a few sine waves, for which the exact solution is known:
they keep their shapes and fade, each at its own rate.

Everything is written against an array namespace ``xp`` (names of the Array API
2025.12 only), for any library.
"""

import contextlib

import numpy as np

# The time step, in squares of the mesh width. The method is stable up to 0.348.
RATE = 0.3
# For each wave: its height, and its half-waves in x and in y.
WAVES = ((1.0, 1, 1), (0.5, 2, 3))


def exact(points, time):
    """Return the exact solution on a mesh of `points` squared, as a NumPy array."""
    x = np.linspace(0.0, 1.0, points)
    u = np.zeros((points, points))
    for height, m, n in WAVES:
        fading = height * np.exp(-(m**2 + n**2) * np.pi**2 * time)
        u += fading * np.outer(np.sin(m * np.pi * x), np.sin(n * np.pi * x))
    return u


def laplacian(u):
    """Return the stencil's sums at the inner points, in units of 1 / width**2."""
    total = u[:-2, 1:-1] + u[2:, 1:-1]
    total = total + u[1:-1, :-2]
    total = total + u[1:-1, 2:]
    return total - 4.0 * u[1:-1, 1:-1]


def moved(xp, u, change):
    """Return a copy of `u` whose inner points have been changed."""
    u = xp.asarray(u, copy=True)
    inner = u[1:-1, 1:-1]
    inner += change
    return u


def advance(xp, u):
    """Take one step in time, in place; return the mean temperature."""
    k1 = laplacian(u)
    k2 = laplacian(moved(xp, u, RATE / 2 * k1))
    k3 = laplacian(moved(xp, u, RATE / 2 * k2))
    k4 = laplacian(moved(xp, u, RATE * k3))
    slope = k1 + 2.0 * k2
    slope = slope + 2.0 * k3
    slope = slope + k4
    inner = u[1:-1, 1:-1]
    inner += RATE / 6 * slope
    return xp.mean(u)


class Simulation:
    """A square that cools down, in arrays of one namespace.

    Parameters
    ----------
    xp : namespace
        Any namespace of the Array API.
    scope : callable
        Called at each step; returns the context manager around that step.
    points : int
        Points of the mesh in each direction, the border included.
    steps : int
        Steps in time of a repeat.
    step : callable
        Takes a step: `advance`, or a function made of it.

    Attributes
    ----------
    u : array
        The temperatures.
    time : float
        The time of these temperatures.
    history : list of float
        The mean temperature after each repeat.
    """

    def __init__(
        self, xp, scope=contextlib.nullcontext, *, points, steps, step=advance
    ):
        self.xp, self.scope, self.steps, self.step = xp, scope, steps, step
        self.u = xp.asarray(exact(points, 0.0), copy=True)
        self.time = 0.0
        self.history = []

    def repeat(self, meter=None, on_step=lambda: None):
        """Take `steps` steps; `meter` is entered around them."""
        # Only a Python float outlives the scope, so that the scope may be a
        # workspace.
        with meter or contextlib.nullcontext():
            for _ in range(self.steps):
                with self.scope():
                    mean = float(self.step(self.xp, self.u))
                on_step()
        self.time += self.steps * RATE / (self.u.shape[0] - 1) ** 2
        self.history.append(mean)

    def error(self):
        """Return the largest difference from the exact solution, anywhere."""
        solution = self.xp.asarray(exact(self.u.shape[0], self.time))
        return float(self.xp.max(self.xp.abs(self.u - solution)))

"""A filter that removes noise from images, and keeps their edges.

The image is blurred by a Gaussian, along one axis and then along the other. Where the
blurred image has edges, the image itself is mixed in again.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import ndx

RADIUS = 3
DEVIATION = 1.0  # of the Gaussian, in pixels
CONTRAST = 0.1  # the difference over two pixels at which half of the image is kept
RED, GREEN, BLUE = 0.299, 0.587, 0.114  # the lightness of colours: ITU-R BT.601


def gaussian():
    """Return the weights of the centre and of the neighbours at distances 1, 2, ..."""
    values = [math.exp(-((i / DEVIATION) ** 2) / 2) for i in range(RADIUS + 1)]
    total = 2 * sum(values) - values[0]
    return [value / total for value in values]


WEIGHTS = gaussian()


def rows(x, start, stop, axis):
    """Return a view of some rows (axis 0) or columns (axis 1) of an image."""
    return x[start:stop] if axis == 0 else x[:, start:stop]


def padded(x, width, axis):
    """Return `x` with copies of its first and last row (axis 0) or column (axis 1)."""
    count = x.shape[axis]
    first, last = rows(x, 0, 1, axis), rows(x, count - 1, count, axis)
    return ndx.concat([first] * width + [x] + [last] * width, axis=axis)


# ---- Elementwise parts -----------------------------------------------------------


def smooth(x, axis):
    """Return the mean of neighbours along an axis, weighted by the Gaussian.

    `x` has `RADIUS` more rows or columns on both sides than the result.
    """
    count = x.shape[axis] - 2 * RADIUS
    total = WEIGHTS[0] * rows(x, RADIUS, RADIUS + count, axis)
    for i, weight in enumerate(WEIGHTS[1:], 1):
        below = rows(x, RADIUS - i, RADIUS - i + count, axis)
        above = rows(x, RADIUS + i, RADIUS + i + count, axis)
        total = total + weight * (below + above)
    return total


def lightness(x):
    """Return the lightness of an image's colours."""
    return RED * x[:, :, 0] + GREEN * x[:, :, 1] + BLUE * x[:, :, 2]


def mix(pixels, blurred, light):
    """Return the blurred image with its edges, and the edges: both in uint8.

    `light` has one more row and column on both sides.
    """
    across = light[1:-1, 2:] - light[1:-1, :-2]
    down = light[2:, 1:-1] - light[:-2, 1:-1]
    steepness = across * across + down * down
    edges = steepness / (steepness + CONTRAST**2)
    image = ndx.astype(pixels, blurred.dtype) * (1 / 255)
    mixed = blurred + edges[:, :, None] * (image - blurred)
    return to_bytes(mixed), to_bytes(edges)


def to_bytes(x):
    """Return numbers from 0 to 1 as integers from 0 to 255."""
    return ndx.astype(ndx.round(ndx.clip(x, 0.0, 1.0) * 255.0), ndx.uint8)


class Parts(NamedTuple):
    """The elementwise parts of the filter, as they are or fused."""

    smooth: Callable = smooth
    lightness: Callable = lightness
    mix: Callable = mix


PLAIN = Parts()
FUSED = Parts(*map(ndx.fuse, PLAIN))

# ---- The filter ------------------------------------------------------------------


def filtered(pixels, parts=PLAIN):
    """Filter an image.

    Parameters
    ----------
    pixels : NDArray
        Of shape (height, width, 3) and dtype uint8.

    Returns
    -------
    dict of str to NDArray
        ``"image"``, like `pixels`, and ``"edges"``, of shape (height, width).
    """
    blurred = ndx.astype(pixels, ndx.float32) * (1 / 255)
    for axis in (0, 1):
        blurred = parts.smooth(padded(blurred, RADIUS, axis), axis)
    light = padded(padded(parts.lightness(blurred), 1, 0), 1, 1)
    image, edges = parts.mix(pixels, blurred, light)
    return {"image": image, "edges": edges}

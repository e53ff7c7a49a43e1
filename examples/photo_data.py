"""Photos for ``filter_images.py``: a folder of noisy ones, their noise, a picture."""

import math
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from PIL import Image
from sklearn.datasets import load_sample_images

import ndx

SMALLEST, LARGEST = 16, 427  # the photos are so high
NOISE = 20.0  # its standard deviation, of 255


def crops(count, size, rng):
    """Yield square parts of scikit-learn's two photos, in turn, from random places."""
    photos = load_sample_images().images
    for number in range(count):
        photo = photos[number % len(photos)]
        y, x = (int(rng.integers(n - size + 1)) for n in photo.shape[:2])
        yield photo[y : y + size, x : x + size]


def make_folder(folder, count, size, seed):
    """Write noisy images as PNG files; return the images without noise.

    Returns
    -------
    list of numpy.ndarray
        Of shape (size, size, 3) and dtype uint8, in the order of the files' names.
    """
    rng = np.random.default_rng(seed)
    clean = list(crops(count, size, rng))
    for number, image in enumerate(clean):
        noisy = image + rng.normal(0, NOISE, image.shape)
        pixels = np.clip(np.rint(noisy), 0, 255).astype(np.uint8)
        Image.fromarray(pixels).save(Path(folder) / f"{number:04}.png")
    return clean


def read(path):
    """Return the pixels of an image file, of shape (height, width, 3) and uint8."""
    with Image.open(path) as image:
        return np.array(image.convert("RGB"))


def load(path):
    """Return the pixels of an image file as an NDArray."""
    return ndx.asarray(read(path))


class Folder:
    """The images in a folder, read when their turn comes."""

    def __init__(self, path):
        self.paths = sorted(Path(path).glob("*.png"))

    def __len__(self):
        return len(self.paths)

    def __iter__(self):
        return map(load, self.paths)


def signal_to_noise(image, clean):
    """Return the ratio of the largest signal to the noise in an image, in dB."""
    error = np.subtract(image, clean, dtype=np.float64)
    return 10 * math.log10(255**2 / max(float(np.mean(error**2)), 1e-9))


def save_grid(rows, titles, path):
    """Draw rows of images, with titles above, into the file `path`."""
    rows = list(rows)
    figure = Figure(figsize=(9.6, 3.3 * len(rows)), layout="constrained")
    grid = figure.subplots(len(rows), len(titles), squeeze=False)
    for axes, image in zip(grid.flat, (x for row in rows for x in row), strict=True):
        axes.imshow(image, cmap="gray", vmin=0, vmax=255)
        axes.set_axis_off()
    for axes, title in zip(grid[0], titles, strict=True):
        axes.set_title(title)
    figure.savefig(path, dpi=150, format="png")

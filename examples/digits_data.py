"""The handwritten digits that ``train_digits.py`` learns."""

from typing import NamedTuple

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split


class Digits(NamedTuple):
    """The data set in NumPy arrays: images are rows of 64 numbers in [0, 1]."""

    train_images: np.ndarray
    train_targets: np.ndarray  # one-hot, so that a step needs no indexing
    test_images: np.ndarray
    test_labels: np.ndarray


def load_data(seed):
    """Return scikit-learn's 1,797 digits, split into 80 % and 20 % by `seed`."""
    images, labels = load_digits(return_X_y=True)
    images = (images / 16).astype(np.float32)
    train_images, test_images, train_labels, test_labels = train_test_split(
        images, labels, test_size=0.2, random_state=seed, stratify=labels
    )
    train_targets = np.eye(10, dtype=np.float32)[train_labels]
    return Digits(train_images, train_targets, test_images, test_labels)

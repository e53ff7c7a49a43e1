"""Rows of a data set that is made block by block, and its analysis by NumPy.

The rows are made from a few hidden factors. Each block has a seed of its own, so that
any process can make it, and any number of times: on a cluster, blocks that are lost
with a worker are made again.
"""

from typing import Any, NamedTuple

import numpy as np

FACTORS = 3


class Model(NamedTuple):
    """What the rows are made by, and how many there are.

    Attributes
    ----------
    loadings : numpy.ndarray
        The weights of the factors in each column.
    offsets : numpy.ndarray
        The means of the columns.
    rows, block_rows : int
        Of the data set, and of each of its blocks; the last one may have fewer.
    seed : int
    """

    loadings: Any
    offsets: Any
    rows: int
    block_rows: int
    seed: int

    @property
    def blocks(self):
        """How many blocks there are."""
        return -(-self.rows // self.block_rows)

    def rows_of(self, number):
        """Return how many rows a block has."""
        return min(self.block_rows, self.rows - number * self.block_rows)


def make_model(rows, columns, block_rows, seed):
    """Return a model with random parameters."""
    rng = np.random.default_rng(seed)
    strengths = np.linspace(3.0, 1.5, FACTORS)[:, None]
    loadings = rng.normal(size=(FACTORS, columns)) * strengths
    return Model(loadings, 10 * rng.normal(size=columns), rows, block_rows, seed)


def make_block(xp, model, number):
    """Return a block of rows, as an array of the namespace `xp`: NumPy's or ndx."""
    rng = xp.random.default_rng([model.seed, number])
    count = model.rows_of(number)
    loadings = xp.asarray(model.loadings)
    block = rng.standard_normal((count, loadings.shape[1]))
    block += rng.standard_normal((count, FACTORS)) @ loadings
    block += xp.asarray(model.offsets)
    return block


def reference(model, on_block):
    """Return the mean and the covariance of the columns, by NumPy in float64.

    One block is in memory at a time. Their means and scatters are added by the formulas
    of Chan, Golub and LeVeque (1983), which lose no digits to large means.
    """
    columns = model.loadings.shape[1]
    mean, scatter, count = np.zeros(columns), np.zeros((columns, columns)), 0
    for number in range(model.blocks):
        block = make_block(np, model, number)
        more = block.shape[0]
        block_mean = block.mean(axis=0)
        block -= block_mean
        step = block_mean - mean
        scatter += block.T @ block
        scatter += np.outer(step, step) * (count * more / (count + more))
        mean += step * (more / (count + more))
        count += more
        on_block()
    return mean, scatter / (count - 1)

"""Random walks, all of them in memory: a program of plain NumPy.

Each walk is a row. The mean square of the distance after n steps is n, and the part of
the walks that have never been below zero is about 1 / sqrt(pi n). Both are computed
from the walks themselves, which take 3 GiB by default. The last line is a digest of all
their values.

Run ``python examples/random_walks.py --help`` for the options. With less memory:
``python -m ndx run --limit 500MiB --fallback mmap examples/random_walks.py``.
"""

import argparse
import hashlib

import numpy as np

STEPS = 1024
ROWS = 16384


def make_walks(count, seed):
    """Return walks as a list of arrays, each of so many rows at most."""
    rng = np.random.default_rng(seed)
    walks = []
    for start in range(0, count, ROWS):
        steps = rng.standard_normal((min(ROWS, count - start), STEPS))
        walks.append(np.cumsum(steps, axis=1, out=steps))
    return walks


def mean_square(walks):
    """Return the mean square of the distance after each step."""
    total = np.zeros(STEPS)
    for block in walks:
        total += np.einsum("ij,ij->j", block, block)
    return total / sum(map(len, walks))


def part_above(walks, step):
    """Return the part of the walks that are not below zero in the first steps."""
    above = sum(int((block[:, :step] >= 0).all(axis=1).sum()) for block in walks)
    return above / sum(map(len, walks))


def digest(walks):
    """Return a digest of all values."""
    found = hashlib.sha256()
    for block in walks:
        found.update(block)
    return found.hexdigest()


def main(argv=None):
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--walks", type=int, default=3 * 2**17, metavar="N")
    parser.add_argument("--seed", type=int, default=0, metavar="N")
    options = parser.parse_args(argv)
    if options.walks < 1:
        parser.error(f"--walks is {options.walks}; valid are 1 and more")
    walks = make_walks(options.walks, options.seed)
    squares = mean_square(walks)
    print(f"{sum(block.nbytes for block in walks) / 2**30:.3g} GiB of walks")
    print(f"{'steps':>6}{'mean square':>14}{'above zero':>12}{'expected':>10}")
    for step in (4, 32, 256, STEPS):
        print(
            f"{step:>6}{squares[step - 1]:>14.3f}{part_above(walks, step):>12.4f}"
            f"{(np.pi * step) ** -0.5:>10.4f}"
        )
    print(digest(walks))


if __name__ == "__main__":
    main()

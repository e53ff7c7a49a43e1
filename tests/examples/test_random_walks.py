"""The program of plain NumPy: its walks are random, and its digest is of them all."""

import numpy as np
import pytest
import random_walks


def test_the_walks_are_as_expected():
    walks = random_walks.make_walks(random_walks.ROWS + 3, 1)
    assert [len(block) for block in walks] == [random_walks.ROWS, 3]
    squares = random_walks.mean_square(walks)
    steps = np.arange(1, random_walks.STEPS + 1)
    assert squares == pytest.approx(steps, rel=0.1)
    assert random_walks.part_above(walks, 1) == pytest.approx(0.5, rel=0.1)
    assert random_walks.part_above(walks, 256) == pytest.approx(0.0352, rel=0.2)
    before = random_walks.digest(walks)
    walks[1][0, -1] += 1
    assert random_walks.digest(walks) != before


def test_the_table(capsys):
    random_walks.main(["--walks", "8", "--seed", "2"])
    first = capsys.readouterr().out
    random_walks.main(["--walks", "8", "--seed", "2"])
    assert capsys.readouterr().out == first
    assert len(first.splitlines()) == 7

"""What matplotlib draws of our arrays (`calls/matplotlib.txt` has the methods)."""

import io

import numpy as np
import pytest

import ndx

figure = pytest.importorskip("matplotlib.figure")


def test_what_is_drawn_outlives_the_scope():
    """The line keeps a NumPy array over the memory, which is pinned."""
    v = np.linspace(0, 1, 7)
    drawing = figure.Figure(figsize=(2, 2), dpi=50)
    with ndx.workspace() as workspace:
        (line,) = drawing.subplots().plot(ndx.asarray(v) * 2)
    with workspace:
        ndx.ones(1000)
    drawing.savefig(io.BytesIO(), format="rgba")
    assert line.get_ydata().tolist() == (v * 2).tolist()

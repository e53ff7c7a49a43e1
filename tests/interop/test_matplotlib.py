"""matplotlib draws NDArrays as it draws NumPy's arrays."""

import io

import pytest
from helpers.consumers import MATRIX, OTHER, VECTOR

import ndx

pytest.importorskip("matplotlib")

from matplotlib.figure import Figure

CALLS = {
    "bar": lambda axes, v, o, m: axes.bar(v, o),
    "boxplot": lambda axes, v, o, m: axes.boxplot([m[:, 0], m[:, 1]]),
    "contourf": lambda axes, v, o, m: axes.contourf(m),
    "errorbar": lambda axes, v, o, m: axes.errorbar(v, o, yerr=o / 9),
    "fill_between": lambda axes, v, o, m: axes.fill_between(v, o, where=o > 0.5),
    "hexbin": lambda axes, v, o, m: axes.hexbin(v, o, gridsize=4),
    "hist": lambda axes, v, o, m: axes.hist(v, bins=5, weights=o),
    "hist2d": lambda axes, v, o, m: axes.hist2d(v, o, bins=4),
    "imshow": lambda axes, v, o, m: axes.imshow(m),
    "pcolormesh": lambda axes, v, o, m: axes.pcolormesh(m),
    "plot": lambda axes, v, o, m: axes.plot(v, o, "o-"),
    "plot columns": lambda axes, v, o, m: axes.plot(m),
    "quiver": lambda axes, v, o, m: axes.quiver(v, o, v, o),
    "scatter": lambda axes, v, o, m: axes.scatter(v, o, c=o, s=99 * v),
    "set_xticks": lambda axes, v, o, m: axes.set_xticks(v[:3]),
    "stem": lambda axes, v, o, m: axes.stem(v, o),
    "step": lambda axes, v, o, m: axes.step(v, o),
    "violinplot": lambda axes, v, o, m: axes.violinplot(v),
}


def drawn(call, *arrays):
    figure = Figure(figsize=(2, 2), dpi=50)
    call(figure.subplots(), *arrays)
    buffer = io.BytesIO()
    figure.savefig(buffer, format="rgba")
    return buffer.getvalue()


@pytest.mark.parametrize("name", CALLS)
def test_pictures_are_those_of_numpys_arrays(name):
    arrays = VECTOR, OTHER, MATRIX
    expected = drawn(CALLS[name], *arrays)
    assert drawn(CALLS[name], *map(ndx.asarray, arrays)) == expected
    assert expected != drawn(lambda axes, *arrays: None)


@pytest.mark.parametrize("name", ["boxplot", "violinplot", "hist"])
def test_the_data_sets_of_a_matrix_are_its_columns(name):
    """Those of a list are its items: matplotlib takes other classes for lists."""
    found = drawn(lambda axes, m: getattr(axes, name)(m), ndx.asarray(MATRIX))
    assert found == drawn(lambda axes, m: getattr(axes, name)(m), MATRIX)
    assert found != drawn(lambda axes, m: getattr(axes, name)(m), MATRIX.T)


def test_pictures_are_drawn_after_the_scope():
    """The line keeps a NumPy array over the memory, which is pinned."""
    figure = Figure(figsize=(2, 2), dpi=50)
    axes = figure.subplots()
    with ndx.workspace():
        (line,) = axes.plot(ndx.asarray(VECTOR) * 2)
    buffer = io.BytesIO()
    figure.savefig(buffer, format="rgba")
    assert buffer.getvalue() == drawn(lambda axes, v: axes.plot(v * 2), VECTOR)
    assert line.get_ydata().tolist() == (VECTOR * 2).tolist()

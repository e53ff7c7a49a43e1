"""matplotlib draws our arrays as NumPy's, or refuses them; it never draws otherwise.

The methods of Axes in `matplotlib_calls.txt` are given vectors `v`, `o`, `rgb`, `i` (of
ints) and `m` (of bools), a matrix `M`, an array `R` of three dimensions, and numbers
`s` and `t`, which are results of reductions. "raises" says that ours may be refused.
"""

import importlib
import io
from pathlib import Path

import numpy as np
import pytest

import ndx

mpl = pytest.importorskip("matplotlib")
for part in ("cbook", "collections", "figure", "patches", "path", "transforms"):
    importlib.import_module(f"matplotlib.{part}")

LINES = (Path(__file__).parent / "matplotlib_calls.txt").read_text().splitlines()
CALLS = dict(line.partition("  # ")[::2] for line in LINES)

V = np.linspace(0, 1, 7)
ARRAYS = {
    "v": V,
    "o": V**2,
    "M": np.arange(12.0).reshape(4, 3) % 5 + np.arange(12.0).reshape(4, 3) / 7,
    "R": np.linspace(0, 1, 36).reshape(3, 4, 3),
    "i": np.array([0, 2, 1, 2, 2, 0, 1]),
    "m": np.array([True, False, True, True, False, True, True]),
    "rgb": np.array([0.1, 0.2, 0.3]),
}
PROPERTIES = """
    xydata offsets paths path array facecolor edgecolor sizes segments extent linewidth
    alpha position clim xlim ylim xticks yticks visible positions
"""


def data_of(value):
    """Return what an artist holds, in lists."""
    if isinstance(value, mpl.path.Path):
        return data_of([value.vertices, value.codes])
    if isinstance(value, mpl.transforms.BboxBase):
        return value.extents.tolist()
    if isinstance(value, np.ma.MaskedArray):
        return [value.mask.tolist(), str(value.tolist())]
    if isinstance(value, np.ndarray | np.generic | ndx.NDArray):
        return np.asarray(value).tolist()
    if isinstance(value, list | tuple):
        return [data_of(item) for item in value]
    return str(value)


def artists(artist):
    """Return the data of an artist and those in it."""
    found = [type(artist).__name__]
    for name in PROPERTIES.split():
        if (get := getattr(artist, f"get_{name}", None)) is not None:
            found.append((name, data_of(get())))
    return found + [artists(each) for each in artist.get_children()]


def drawn(call, xp):
    """Return the artists of a call with the arrays of a namespace."""
    names = {name: xp.asarray(array.copy()) for name, array in ARRAYS.items()}
    names |= {"s": xp.sum(xp.asarray([1.0, 2.0])), "t": xp.sum(xp.asarray([2, 3]))}
    names["axes"] = axes = mpl.figure.Figure(figsize=(2, 2), dpi=40).subplots()
    eval(f"axes.{call}", names | {"np": np, "mpl": mpl})
    return artists(axes)


@pytest.mark.filterwarnings("ignore")
# By day, one call of five.
@pytest.mark.parametrize(
    "call",
    [
        pytest.param(call, marks=[pytest.mark.nightly] if number % 5 else [])
        for number, call in enumerate(CALLS)
    ],
)
def test_artists_are_those_of_numpys_arrays(call):
    expected = drawn(call, np)
    try:
        found = drawn(call, ndx)
    except (TypeError, ValueError):
        assert CALLS[call] == "raises"
    else:
        assert str(found) == str(expected)  # some numbers are NaN


def test_what_is_drawn_outlives_the_scope():
    """The line keeps a NumPy array over the memory, which is pinned."""
    figure = mpl.figure.Figure(figsize=(2, 2), dpi=50)
    with ndx.workspace() as workspace:
        (line,) = figure.subplots().plot(ndx.asarray(V) * 2)
    with workspace:
        ndx.ones(1000)
    figure.savefig(io.BytesIO(), format="rgba")
    assert line.get_ydata().tolist() == (V * 2).tolist()

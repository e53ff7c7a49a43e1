"""What matplotlib has drawn, in a form in which two drawings can be compared."""

import numpy as np
from matplotlib.path import Path
from matplotlib.transforms import BboxBase

import ndx

PROPERTIES = """
    xydata offsets paths path array facecolor edgecolor sizes segments extent linewidth
    alpha position clim xlim ylim xticks yticks visible positions
"""


def data_of(value):
    """Return what an artist holds, in lists."""
    if isinstance(value, Path):
        return data_of([value.vertices, value.codes])
    if isinstance(value, BboxBase):
        return value.extents.tolist()
    if isinstance(value, np.ma.MaskedArray):
        return [value.mask.tolist(), str(value.tolist())]
    if isinstance(value, np.ndarray | np.generic | ndx.NDArray):
        return np.asarray(value).tolist()
    if isinstance(value, list | tuple):
        return [data_of(item) for item in value]
    return str(value)


def artists(artist):
    """Return the data of an artist and those in it, as text: some numbers are NaN."""
    found = [type(artist).__name__]
    for name in PROPERTIES.split():
        if (get := getattr(artist, f"get_{name}", None)) is not None:
            found.append((name, data_of(get())))
    return str(found + [artists(each) for each in artist.get_children()])

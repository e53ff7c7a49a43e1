"""Objects whose `__array__` returns an array of ours, which NumPy itself refuses."""

import operator

import numpy
import pytest

import ndx.numpy as np

VALUES = [2.0, 3.0, 5.0]


class Holder:
    """An array by NumPy's protocol; `calls` counts how often it was asked."""

    def __init__(self, array):
        self.array, self.calls = array, 0

    def __array__(self, dtype=None, copy=None):
        self.calls += 1
        return self.array if dtype is None else self.array.astype(dtype)


USES = {
    "array": lambda f, h: f.array(h),
    "asarray with a dtype": lambda f, h: f.asarray(h, dtype="float32"),
    "ufunc": lambda f, h: f.add(h, 1),
    "ufunc of one": lambda f, h: f.sqrt(h),
    "reduction": lambda f, h: f.sum(h),
    "product": lambda f, h: f.dot(h, h),
    "in a list": lambda f, h: f.concatenate([h, f.ones(2), h]),
    "in lists of lists": lambda f, h: f.block([[h, h], [h, h]]),
    "keyword": lambda f, h: f.interp(2.5, xp=h, fp=h),
    "weights": lambda f, h: f.average(f.ones(3), weights=h),
    "linalg": lambda f, h: f.linalg.norm(h),
    "assigned": lambda f, h: assigned(f.zeros(3), slice(None), h),
    "key": lambda f, h: f.arange(9)[h],
    "assigned at": lambda f, h: assigned(f.zeros(9), h, 1.0),
    "equal": lambda f, h: h == f.ones(3),
    **{
        f"{each.__name__}, {side}": lambda f, h, each=each, side=side: (
            each(f.ones(3), h) if side == "right" else each(h, f.ones(3))
        )
        for each in (operator.add, operator.mul, operator.lt, operator.matmul)
        for side in ("left", "right")
    },
}


def assigned(x, key, value):
    x[key] = value
    return x


@pytest.mark.parametrize("use", USES)
def test_each_use_is_numpys(use):
    dtype = int if "key" in use or use == "assigned at" else float
    expected = USES[use](numpy, Holder(numpy.array(VALUES, dtype)))
    found = USES[use](np, Holder(np.array(VALUES, dtype)))
    assert found.dtype == expected.dtype
    assert found.tolist() == expected.tolist()


def test_an_element_is_a_scalar():
    assert np.add(Holder(np.array(2.0)), 1) == 3.0
    x = np.zeros(2)
    x[0] = Holder(np.array(2.0))
    assert x.tolist() == [2.0, 0.0]


def test_others_are_asked_by_numpy_alone():
    """An error of the object's own is raised, and it is not asked again."""

    class Broken(Holder):
        def __array__(self, dtype=None, copy=None):
            self.calls += 1
            raise ValueError("no array here")

    broken = Broken(None)
    with pytest.raises(ValueError, match="no array here"):
        np.sum(broken)
    assert broken.calls == 1
    with pytest.raises(ValueError, match="not producing an array"):
        np.sum(Holder("text"))
    plain = Holder(numpy.ones(2))
    assert np.sum(plain) == 2.0
    assert plain.calls == 1

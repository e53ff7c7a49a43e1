"""Functions of NumPy that change an argument: by the protocol and by `ndx.numpy`."""

from operator import attrgetter

import numpy as np
import pytest

import ndx
import ndx.numpy as face

TARGETS = {
    "matrix": lambda: np.arange(12.0).reshape(3, 4),
    "view": lambda: np.arange(24.0).reshape(3, 8)[:, ::2],
    "reversed": lambda: np.arange(12.0).reshape(3, 4)[::-1, ::-1],
    "Fortran": lambda: np.arange(12.0).reshape(4, 3).T,
    "integers": lambda: np.arange(12).reshape(3, 4),
}
CALLS = {
    "copyto": lambda np, x: np.copyto(x, 7.0, where=x > 3, casting="unsafe"),
    "copyto an array": lambda np, x: np.copyto(x, x[:, ::-1] + 1),
    "copyto a column": lambda np, x: np.copyto(x, x[:, :1] + 1),
    "fill_diagonal": lambda np, x: np.fill_diagonal(x, 9),
    "place": lambda np, x: np.place(x, x > 4, [1, 2]),
    "put": lambda np, x: np.put(x, [0, 5, 2], [9, 8, 7]),
    "put with clip": lambda np, x: np.put(x, [0, 99], 5, mode="clip"),
    "put_along_axis": lambda np, x: np.put_along_axis(x, x.argmax(1)[:, None], 0, 1),
    "putmask": lambda np, x: np.putmask(x, x > 3, x * 2),
    "add.at": lambda np, x: np.add.at(x, [0, 0, 1], 1),
    "multiply.at with arrays": lambda np, x: np.multiply.at(x, (0, x[1] > 5), 2),
    "negative.at": lambda np, x: np.negative.at(x, [0, 0]),
    "out of a ufunc": lambda np, x: np.add(x, x, out=x),
    "out with where": lambda np, x: np.multiply(x, 2, out=x, where=x > 3),
    "out of a sum": lambda np, x: np.cumsum(x, axis=1, out=x),
    "out of clip": lambda np, x: np.clip(x, 2, 5, out=x),
    "out of a product": lambda np, x: np.dot(x[:, :3] * 1, x[:3, :3] * 1, out=None),
    "nan_to_num": lambda np, x: np.nan_to_num(x, copy=False, nan=1.0),
    "random shuffle": lambda np, x: np.random.default_rng(3).shuffle(x),
    "shuffle along an axis": lambda np, x: np.random.default_rng(3).permuted(
        x, axis=1, out=x),
    "sort": lambda np, x: x.sort(axis=0),
    "partition": lambda np, x: x.partition(1),
    "fill": lambda np, x: x.fill(3),
    "put method": lambda np, x: x.put([1, 2], 4),
    "byteswap": lambda np, x: x.byteswap(inplace=True),
    "flat": lambda np, x: x.flat.__setitem__(slice(None, None, 3), 1),
    "real": lambda np, x: setattr(x, "real", 2),
    "resize in place by setting a shape": lambda np, x: x[0].sort(),
}  # fmt: skip


@pytest.mark.parametrize("namespace", [np, face], ids=["numpy", "ndx.numpy"])
@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("target", TARGETS)
def test_arrays_are_changed_as_by_numpy(name, target, namespace):
    if namespace is np and "shuffle" in name:
        namespace = face  # NumPy's generators do not dispatch
    wanted = TARGETS[target]()
    source = TARGETS[target]()
    x = ndx.asarray(source, copy=False)
    expected = CALLS[name](np, wanted)
    found = CALLS[name](namespace, x)
    np.testing.assert_array_equal(np.asarray(x), wanted)
    np.testing.assert_array_equal(source, wanted)  # the memory that was lent
    if expected is None:
        assert found is None
    elif expected is wanted:
        assert found is x


@pytest.mark.parametrize("name", [
    "copyto", "fill_diagonal", "place", "put", "put_along_axis", "putmask", "add.at",
    "out of a ufunc", "out of a sum", "sort", "partition", "fill", "put method",
    "byteswap", "flat", "out of clip", "negative.at", "random shuffle",
])  # fmt: skip
@pytest.mark.parametrize("namespace", [np, face], ids=["numpy", "ndx.numpy"])
def test_read_only_arrays_are_not_changed(name, namespace):
    if namespace is np and "shuffle" in name:
        namespace = face
    a = TARGETS["matrix"]()
    a.flags.writeable = False
    x = ndx.asarray(a, copy=False)
    with pytest.raises(ValueError, match="read-only"):
        CALLS[name](namespace, x)
    np.testing.assert_array_equal(a, TARGETS["matrix"]())


@pytest.mark.parametrize("name", CALLS)
def test_stale_arrays_are_refused(name):
    with ndx.workspace("in place"):
        x = ndx.arange(12.0).reshape(3, 4)
    with pytest.raises(ndx.StaleArrayError):
        CALLS[name](face, x)


def test_out_may_be_numpys():
    out = np.zeros(3)
    assert face.sum(ndx.ones((2, 3)), axis=0, out=out) is out
    assert out.tolist() == [2.0] * 3
    assert np.add(ndx.ones(3), 1, out) is out
    assert attrgetter("add.reduce")(face)(ndx.ones((2, 3)), out=out) is out


@pytest.mark.parametrize("place", [np.asarray, ndx.asarray])
def test_outputs_by_position(place):
    x = ndx.ones((2, 2))
    out, other = place(np.zeros((2, 2))), place(np.zeros((2, 2)))
    for call in (
        lambda: face.add(x, 1, out), lambda: face.add(1.0, 2.0, out),
        lambda: face.exp(x, out), lambda: face.matmul(x, x, out),
        lambda: face.dot(x, x, out), lambda: face.concatenate([x[:1], x[1:]], 0, out),
        lambda: face.clip(x, 0, 1, out), lambda: face.cumsum(x, 0, None, out),
        lambda: face.add(x, 1, out, where=x > 2), lambda: face.outer(x[0], x[0], out),
    ):  # fmt: skip
        assert call() is out
    assert out.tolist() == [[1.0, 1.0]] * 2
    first, second = face.divmod(x * 7, 4, out, other)
    assert first is out
    assert second is other
    first, second = face.divmod(x * 7, 4, other)
    assert first is other
    assert second.tolist() == [[3.0, 3.0]] * 2
    assert isinstance(second, ndx.NDArray)
    assert face.add(x, 1, None).tolist() == [[2.0, 2.0]] * 2
    with pytest.raises(TypeError):
        face.add(x, 1, out, out=out)
    with pytest.raises(TypeError):
        face.add(x, 1, out, out)
    assert type(face.asarray(np.ones(2))) is ndx.NDArray
    with pytest.raises(ValueError, match="read-only"):
        face.add(x[0], 1, ndx.broadcast_to(ndx.ones(1), (2,)))

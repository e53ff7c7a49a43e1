"""Every method and attribute of NumPy's arrays on NDArrays, against NumPy's."""

import inspect
import io
import operator
import pickle

import numpy as np
import pytest
from helpers.numpy_calls import ARRAYS, CALLS
from helpers.numpy_results import SUPPORTED, compare, evaluate, ours

import ndx

# Methods whose calls are not those of a function with the same name.
OWN_CALLS = {
    "argpartition": ["v, 2"],
    "argsort": ["v", "x, axis=0", "v, stable=True", "x, 0, 'stable'", "x, axis=None"],
    "astype": ["x, np.float32", "i, float", "x, int", "c, complex", "x, 'f2'", "x, str",
               "x, np.int32, order='F'", "x, float, copy=False", "b, int", "i, None"],
    "byteswap": ["i", "x"],
    "choose": ["j, [v[:3], w[:3], w[1:4]]"],
    "compress": ["v, [True, False, True]", "x, [False, True], axis=0"],
    "conj": ["c", "x"],
    "conjugate": ["c", "i"],
    "copy": ["x", "x.T", "x.T, order='F'", "x.T, 'K'"],
    "flatten": ["x", "x, 'F'", "x.T, order='K'", "z"],
    "getfield": ["c, np.float64, 8", "x, np.float64"],
    "item": ["x, 3", "x, 1, 2", "x, (1, 2)", "v[:1]", "x"],
    "nonzero": ["b", "v", "i", "z"],
    "put": [],
    "resize": [],
    "reshape": ["x, 3, 2", "x, (3, 2)", "x, -1", "x, 6, order='F'", "x, (2, 2)",
                "x, [3, 2]", "x, 3, 2, copy=True", "z, 3, 0", "x, 2.0"],
    "round": ["x / 3", "x / 3, 1", "i, -1", "c / 3, 2"],
    "squeeze": ["t[:1]", "t[:1], axis=0", "x, 0", "t"],
    "swapaxes": ["t, 0, 2", "t, -1, 0", "t, 0, 5"],
    "tobytes": ["x", "x.T", "x, order='F'", "u"],
    "tolist": ["x", "i", "z"],
    "transpose": ["x", "t, 1, 0, 2", "t, (1, 0, 2)", "t, None", "t, 0, 1"],
    "view": ["x", "x, np.int64", "x, dtype=np.uint8", "c, float", "u, np.int8",
             "x[:, 0], np.int32"],
}  # fmt: skip
# Names of NumPy's arrays that NDArray does not have, with the reason.
ABSENT = {
    "dump": "in test_pickles",
    "dumps": "in test_pickles",
    "fill": "in test_in_place",
    "partition": "in test_in_place",
    "put": "in test_in_place",
    "sort": "in test_in_place",
    "tofile": "in test_files",
    "resize": "memory of an NDArray does not grow",
    "setfield": "in test_in_place",
    "setflags": "in test_flags",
    "to_device": "the standard's",
    # Of NumPy 2.2 and 2.3; most only raise AttributeError.
    **dict.fromkeys(
        ("itemset", "newbyteorder", "ptp", "tostring"), "gone from NumPy's arrays"
    ),
}
ATTRIBUTES = ["T", "mT", "dtype", "imag", "itemsize", "nbytes", "ndim", "real", "shape",
              "size", "strides"]  # fmt: skip
OWN_ATTRIBUTES = {"base", "ctypes", "data", "device", "flags", "flat"}


def public(kind):
    return {name for name in dir(kind) if not name.startswith("_")}


def methods():
    return sorted(
        name for name in public(np.ndarray) if callable(getattr(np.ndarray, name))
    )


def calls_of(name):
    if name in OWN_CALLS:
        return OWN_CALLS[name]
    return [call for call in CALLS.get(name, ()) if call.split(",")[0] in ARRAYS]


EACH = [(name, call) for name in methods() for call in calls_of(name)]


def test_each_name_is_tested():
    for name in public(np.ndarray):
        known = calls_of(name) or name in ABSENT or name in OWN_ATTRIBUTES
        assert known or name in ATTRIBUTES, name
        assert hasattr(ndx.NDArray, name) or name in ABSENT, name


class Methods:
    """A namespace of functions that call methods, for `evaluate`."""

    def __getattr__(self, name):
        return lambda x, /, *args, **kwargs: getattr(x, name)(*args, **kwargs)


def check(name, call):
    expected, refusal = evaluate(Methods(), name, call, ARRAYS, np)
    found, error = evaluate(Methods(), name, call, ours(ARRAYS), np)
    if refusal is not None:
        assert isinstance(error, (ValueError, TypeError, IndexError)), error
        return
    if error is not None:
        raise error
    compare(found, expected, scalars=True)


@pytest.mark.parametrize(("name", "call"), EACH)
def test_methods(name, call):
    check(name, call)


@pytest.mark.parametrize(("name", "call"), EACH)
def test_in_a_workspace(name, call):
    with ndx.workspace("methods"):
        check(name, call)


@pytest.mark.parametrize("name", sorted({name for name, _ in EACH}))
def test_a_stale_array_has_none(name):
    with ndx.workspace("methods"):
        stale = ours(ARRAYS)
    call = calls_of(name)[0]
    _, error = evaluate(Methods(), name, call, stale, np)
    assert isinstance(error, ndx.StaleArrayError)


@pytest.mark.parametrize("name", methods())
def test_signatures_are_those_of_numpy(name):
    if name in ABSENT and not hasattr(ndx.NDArray, name):
        return
    try:
        wanted = inspect.signature(getattr(np.ndarray, name))
    except ValueError:
        return
    found = inspect.signature(getattr(ndx.NDArray, name))
    wanted = [
        parameter
        for parameter, value in wanted.parameters.items()
        if parameter not in {"self", "args", "kwargs"}
        and value.kind != value.POSITIONAL_ONLY
    ]
    if wanted:
        assert set(wanted) <= {*found.parameters, "args"}, name


@pytest.mark.parametrize("name", ATTRIBUTES)
@pytest.mark.parametrize("which", ["x", "c", "i", "z", "t"])
def test_attributes(name, which):
    if name == "mT" and ARRAYS[which].ndim < 2:
        return
    if name == "strides" and not ARRAYS[which].size:
        return
    expected = getattr(ARRAYS[which], name)
    compare(getattr(ours(ARRAYS)[which], name), expected, scalars=True)


def test_real_and_imag_are_views():
    c = ndx.asarray(ARRAYS["c"], copy=True)
    c.real[0] = 7
    with pytest.raises(ValueError, match="read-only"):
        ndx.ones(3).imag[0] = 1
    c.imag = [1, 2, 3]
    assert np.array_equal(np.asarray(c), [7 + 1j, 3 + 2j, -2 + 3j])
    x = ndx.ones(2)
    x.real = 4
    assert x.tolist() == [4, 4]
    with pytest.raises(TypeError):
        x.imag = 1


IN_PLACE = [
    ("fill", (7,), {}), ("sort", (), {}), ("sort", (0,), {}), ("partition", (1,), {}),
    ("put", ([0, 4], [7, 8]), {}), ("byteswap", (True,), {}),
    ("setfield", (1, np.float64), {}),
]  # fmt: skip


@pytest.mark.parametrize(("name", "args", "kwargs"), IN_PLACE)
@pytest.mark.parametrize("layout", ["C", "F", "strided"])
def test_in_place(name, args, kwargs, layout):
    if not hasattr(ndx.NDArray, name):
        return
    source = np.repeat(ARRAYS["x"], 2, axis=1) if layout == "strided" else ARRAYS["x"]
    expected = source.copy()
    x = ndx.asarray(source, copy=True, order="F" if layout == "F" else "C")
    y, wanted = (x[:, ::2], expected[:, ::2]) if layout == "strided" else (x, expected)
    assert getattr(y, name)(*args, **kwargs) is None or name == "byteswap"
    getattr(wanted, name)(*args, **kwargs)
    assert np.array_equal(np.asarray(x), expected)


@pytest.mark.parametrize("name", ["fill", "sort", "partition", "put"])
def test_read_only_arrays_are_not_changed(name):
    x = ndx.broadcast_to(ndx.asarray([1.0]), (3,))
    args = {"fill": (2,), "partition": (1,), "put": (0, 1)}.get(name, ())
    with pytest.raises(ValueError, match="read-only"):
        getattr(x, name)(*args)


def test_flags():
    x = ndx.zeros((2, 3))
    n = np.zeros((2, 3))
    for y, m in ((x, n), (x.T, n.T), (x[:, 0], n[:, 0]), (x[0], n[0]), (x[:0], n[:0])):
        for name in (
            "C_CONTIGUOUS",
            "F_CONTIGUOUS",
            "WRITEABLE",
            "ALIGNED",
            "FORC",
            "C",
        ):
            assert y.flags[name] == m.flags[name]
    assert x.flags.owndata
    assert not x[0].flags.owndata
    x.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        x[0] = 1
    x.flags["WRITEABLE"] = True
    x[0] = 1
    with pytest.raises(ValueError, match="broadcast"):
        ndx.broadcast_to(x, (4, 2, 3)).flags.writeable = True
    with pytest.raises(KeyError):
        x.flags["NOT"]
    foreign = np.zeros(3)
    foreign.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        ndx.asarray(foreign).flags.writeable = True


def test_base():
    x = ndx.zeros((2, 3))
    assert x.base is None
    row = x[1]
    assert row.base.nbytes == x.nbytes
    assert np.shares_memory(row.base, x)
    foreign = np.zeros(3)
    assert ndx.asarray(foreign).base is foreign


def test_flat():
    x, n = ndx.asarray(ARRAYS["x"], copy=True), ARRAYS["x"].copy()
    assert [float(value) for value in x.flat] == list(n.flat)
    assert len(x.flat) == 6
    for key in (2, slice(1, 4), [0, 3], -1):
        compare(x.flat[key], n.flat[key], scalars=True)
    x.T.flat[1:3] = [8, 9]
    n.T.flat[1:3] = [8, 9]
    x.flat[[0]] = 5
    n.flat[[0]] = 5
    assert np.array_equal(np.asarray(x), n)
    x.flat = 1
    assert x.sum() == 6


@pytest.mark.parametrize("order", ["C", "F"])
def test_flat_is_of_the_array_itself(order):
    n = np.asarray([[1.0, 2, 3], [4, 5, 6]], order=order)
    x = ndx.asarray(n, copy=True)
    assert x.flat.base is x
    elements = iter(x.flat)
    assert next(elements) == 1
    x[0, 1] = 7
    assert next(elements) == 7
    for key in (-7, 6):
        with pytest.raises(IndexError):
            x.flat[key]
    selected = x.flat[1:3]
    selected[...] = 0
    assert x.tolist() == [[1, 7, 3], [4, 5, 6]]
    assert [x.flat[i].item() for i in range(-6, 6)] == 2 * [1, 7, 3, 4, 5, 6]
    assert ndx.asarray(5).flat[0] == 5


def test_flat_is_compared_as_an_array():
    n = np.asarray([[1, 2], [2, 1]])
    x = ndx.asarray(n)
    for other in (1, n.ravel(), [1, 2, 2, 1]):
        for compared in (operator.eq, operator.ne, operator.lt, operator.ge):
            expected = compared(n.flat, np.asarray(other))
            compare(compared(x.flat, ndx.asarray(other)), expected, scalars=True)
    compare(x.flat == x.T.flat, n.flat == n.T.flat, scalars=True)
    with pytest.raises(TypeError, match="unhashable"):
        hash(x.flat)


@pytest.mark.parametrize("name", ["flat", "flags"])
@pytest.mark.parametrize("other", [None, 5, "x"])
def test_flat_and_flags_are_of_arrays_only(name, other):
    found = getattr(ndx.zeros((2, 3)), name)
    with pytest.raises(TypeError):
        type(found)(other)
    with pytest.raises(TypeError):
        type(found).__new__(type(found))
    for attribute in ("base", "array", "_array"):
        with pytest.raises(AttributeError):
            setattr(found, attribute, other)


@pytest.mark.parametrize("key", ["mro", "__class__", "array", 5, None, []])
def test_what_is_no_flag(key):
    with pytest.raises(KeyError):
        ndx.zeros(3).flags[key]


def test_pickles():
    x = ndx.asarray(ARRAYS["x"], copy=True)
    file = io.BytesIO()
    x.dump(file)
    for data in (file.getvalue(), x.dumps()):
        assert np.array_equal(np.asarray(pickle.loads(data)), ARRAYS["x"])


def test_tofile(tmp_path):
    x = ndx.asarray(ARRAYS["x"], copy=True)
    x.tofile(tmp_path / "x")
    assert np.array_equal(np.fromfile(tmp_path / "x"), ARRAYS["x"].ravel())
    x.tofile(tmp_path / "t", sep=",", format="%.1f")
    assert (tmp_path / "t").read_text() == "3.0,1.0,2.0,6.0,5.0,4.0"


def test_divmod():
    x, n = ndx.asarray(ARRAYS["x"], copy=True), ARRAYS["x"]
    for found, expected in ((divmod(x, 2), divmod(n, 2)), (divmod(7, x), divmod(7, n))):
        compare(found, expected, scalars=False)


@pytest.mark.parametrize("dtype", SUPPORTED)
def test_views_of_other_dtypes(dtype):
    n = np.arange(16, dtype=np.uint8)
    x = ndx.asarray(n, copy=True)
    compare(x.view(dtype), n.view(dtype), scalars=False)
    x.view(dtype)[0] = dtype.type(0)
    assert not x[: dtype.itemsize].any()


def test_axes_that_are_numpys_integers():
    x = ndx.arange(6).reshape(2, 3)
    assert x.transpose(np.int64(1), ndx.arange(2)[0]).shape == (3, 2)
    assert ndx.arange(3).transpose(np.int64(0)).shape == (3,)
    assert ndx.arange(3).transpose(ndx.arange(1)[0]).shape == (3,)
    assert x.transpose(ndx.asarray([1, 0])).shape == (3, 2)


def test_conjugates_are_written_to_an_output():
    x = ndx.asarray([1j, 2.0])
    out = ndx.zeros(2, dtype=complex)
    assert x.conj(out) is x.conjugate(out) is out
    assert out.tolist() == [-1j, 2.0]

"""The array object: attributes, views, protocols of Python, how it is shown."""

import gc
import html
import operator
import re
import sys
import weakref
from collections.abc import Hashable

import numpy as np
import pytest
from helpers import dtypes, patterns
from helpers.compare import assert_same
from hypothesis import given
from hypothesis import strategies as st

import ndx
from ndx.testing.backends import ByteArrayBackend

# ---- attributes --------------------------------------------------------------


@given(st.data(), st.sampled_from(dtypes.ALL))
def test_attributes(data, dtype):
    a = data.draw(patterns.arrays(dtype, data.draw(patterns.shapes(max_dims=6))))
    x = ndx.asarray(a)
    assert x.dtype is np.dtype(dtype)
    assert x.shape == a.shape
    assert type(x.shape) is tuple
    assert (x.ndim, x.size, x.itemsize, x.nbytes) == (
        a.ndim, a.size, a.itemsize, a.nbytes,
    )  # fmt: skip
    if a.size:
        assert x.strides == a.strides
    assert x.device == "cpu"
    if a.ndim:
        assert len(x) == len(a)
    if a.ndim >= 2:
        assert_same(x.mT, a.mT)
    if a.ndim == 2:
        assert_same(x.T, a.T)


@pytest.mark.parametrize(
    "name",
    ["ndim", "size", "itemsize", "nbytes", "device", "T",
     "mT", "attached", "in_scope", "workspace", "backend", "anything"],
)  # fmt: skip
def test_nothing_can_be_set(name):
    with pytest.raises(AttributeError):
        setattr(ndx.ones((2, 2)), name, 1)


def test_transposes_need_axes():
    for shape in ((), (3,), (2, 3, 4)):
        assert ndx.ones(shape).T.shape == shape[::-1]
    for shape in ((), (3,)):
        with pytest.raises(ValueError, match=f"this one has {len(shape)}"):
            ndx.ones(shape).mT  # noqa: B018


def test_many_axes():
    x = ndx.ones((1, 2) * 15)
    assert x.ndim == 30
    y = x[..., None, :]
    assert y.shape == (1, 2) * 14 + (1, 1, 2)
    assert_same(y + 1, np.full(y.shape, 2.0))
    assert ndx.ones((1,) * 64).ndim == 64
    del x
    assert float(ndx.sum(y)) == 2**15


def test_namespace():
    x = ndx.ones(3)
    assert x.__array_namespace__() is ndx
    assert ndx.__array_api_version__ == "2025.12"
    for year in range(2021, 2026):
        assert x.__array_namespace__(api_version=f"{year}.12") is ndx
    with pytest.raises(ValueError, match="'1999.1'.*valid"):
        x.__array_namespace__(api_version="1999.1")


# ---- memory ------------------------------------------------------------------


def test_views_share_a_block():
    backend = ndx.backends.get("host", limit="1MiB")
    with ndx.use(backend):
        x = ndx.zeros((4, 6))
    views = [
        x[1:],
        x[0],
        x[0, 0, ...],
        x.T,
        x.mT,
        x[::-1, ::2],
        x[None],
        x[...],
        x[0:0],
    ]
    assert backend.stats()["allocated_count"] == 1
    for view in views:
        assert view.backend is backend
        view[...] = 1.0
        assert view.size == 0 or float(ndx.max(x)) == 1.0
        x[...] = 0.0
    del x
    for _ in range(len(views)):
        assert backend.stats()["allocated_count"] == 1
        views.pop()
        view = None
    assert backend.stats()["allocated_count"] == 0


def test_memory_goes_with_the_last_reference():
    backend = ndx.backends.get("host", limit="1MiB")
    with ndx.use(backend):
        x = ndx.zeros(1000)
        y = x + 1
        assert backend.stats()["allocated_bytes"] == 16000
        del x
        assert backend.stats()["allocated_bytes"] == 8000
        y = y + 1
        assert backend.stats()["allocated_bytes"] == 8000
        del y
        assert backend.stats()["allocated_bytes"] == 0


def test_temporaries_go_at_once():
    backend = ndx.backends.get("host", limit="40KiB")
    with ndx.use(backend):
        x = ndx.ones(1000)
        for _ in range(50):
            x = (x * 2 + 1) / 2 - 0.5
        assert backend.stats()["peak_bytes"] <= 24000
    assert x.tolist()[0] == 1.0


def test_getsizeof():
    small, large = ndx.zeros(10), ndx.zeros(1010)
    assert sys.getsizeof(large) - sys.getsizeof(small) == 8000
    adopted = np.cbrt(large)
    assert sys.getsizeof(adopted) > 8000
    foreign = ndx.asarray(np.zeros(1000))
    assert sys.getsizeof(foreign) < 1000


# ---- the object --------------------------------------------------------------


def test_weak_references():
    x = ndx.ones(3)
    gone = []
    reference = weakref.ref(x, gone.append)
    assert reference() is x
    del x
    assert reference() is None
    assert len(gone) == 1
    cache = weakref.WeakValueDictionary()
    cache["x"] = y = ndx.ones(3)
    assert cache["x"] is y
    del y
    assert "x" not in cache


def test_unhashable():
    x = ndx.ones(3)
    for use in (hash, lambda x: {x}, lambda x: {x: 1}, lambda x: x in {1: 2}):
        with pytest.raises(TypeError, match=r"unhashable type: 'ndx.*x\.item\(\)"):
            use(x)
    assert type(x).__hash__ is None
    assert not isinstance(x, Hashable)


def test_final():
    with pytest.raises(TypeError, match="not an acceptable base type"):
        type("Sub", (ndx.NDArray,), {})
    with pytest.raises(TypeError, match="ndx.asarray"):
        ndx.NDArray([1, 2])
    with pytest.raises(TypeError, match="ndx.asarray"):
        ndx.NDArray.__new__(ndx.NDArray)
    with pytest.raises(TypeError, match="is not safe"):
        object.__new__(ndx.NDArray)
    with pytest.raises(TypeError, match="ndx.workspace"):
        ndx.Workspace.__new__(ndx.Workspace)


def test_only_arrays_over_foreign_memory_are_tracked():
    x = ndx.ones(3)
    for ours in (x, x[1:], x + 1, np.cbrt(x), ndx.arange(3), ndx.asarray([1, 2])):
        assert not gc.is_tracked(ours)
    foreign = ndx.asarray(np.ones(3))
    for tracked in (foreign, foreign[1:], foreign[None].T, ndx.from_dlpack(np.ones(3))):
        assert gc.is_tracked(tracked)
    assert not gc.is_tracked(foreign + 1)


def test_cycles_through_foreign_memory_are_collected():
    class Owner(np.ndarray):
        pass

    owner = np.ones(3).view(Owner)
    owner.array = ndx.asarray(owner)
    alive = weakref.ref(owner)
    view = owner.array[1:]
    del owner
    gc.collect()
    # An array whose cycle is reached from outside is left alone.
    assert alive() is not None
    assert view.tolist() == [1.0, 1.0]
    del view
    gc.collect()
    assert alive() is None


@pytest.mark.thread_unsafe(reason="it lists the objects of the process")
def test_a_callback_does_not_meet_the_array_that_dies():
    """The collector's list is asked for what has no reference any more."""
    met = []
    others = [x for x in gc.get_objects() if isinstance(x, ndx.NDArray)]
    known = {id(x) for x in others}

    def meet(_):
        met.extend(
            x
            for x in gc.get_objects()
            if isinstance(x, ndx.NDArray) and id(x) not in known
        )

    class Owner(np.ndarray):
        def __del__(self):
            meet(None)

    for ndim in (1, 6):
        owner = np.ones((3,) * ndim).view(Owner)
        for make in (ndx.asarray, lambda owner: ndx.asarray(owner)[..., ::2]):
            x = make(owner)
            references = [weakref.ref(x, meet) for _ in range(3)]
            del x
            assert all(reference() is None for reference in references)
    del owner
    assert met == []
    for _ in range(300):
        assert ndx.asarray(np.ones(3)).tolist() == [1.0] * 3


def test_collecting_during_use_is_harmless():
    class Owner(np.ndarray):
        def __array_finalize__(self, obj):
            gc.collect()

    x = ndx.asarray(np.arange(3.0).view(Owner))
    for _ in range(20):
        y = x[...]
        gc.collect()
        assert (x + y).tolist() == [0.0, 2.0, 4.0]


def test_many_short_lives():
    """Objects are reused; nothing of the last one is left in them."""
    reference = weakref.ref(ndx.ones(3))
    assert reference() is None
    foreign = ndx.asarray(np.ones((2, 2, 2, 2, 2)))
    del foreign
    for _ in range(600):
        x = ndx.ones(2)
        assert not gc.is_tracked(x)
        assert weakref.getweakrefcount(x) == 0
        assert x.ndim == 1
    kept = [ndx.full(1, float(n)) for n in range(600)]
    assert [x.item() for x in kept] == list(range(600))


# ---- Python scalars ----------------------------------------------------------


@pytest.mark.parametrize("dtype", dtypes.ALL)
def test_to_python_scalars(dtype):
    for value in patterns.pool(dtype, special=False)[:12]:
        x = ndx.asarray(value)
        assert x.item() == value.item()
        assert type(x.item()) is type(value.item())
        assert x.tolist() == value.item()
        assert bool(x) == bool(value)
        assert complex(x) == complex(value)
        if "complex" in dtype:
            for convert in (float, int):
                with pytest.raises(TypeError, match="complex"):
                    convert(x)
        else:
            assert float(x) == float(value)
            assert int(x) == int(value)
        if dtype in dtypes.INTEGERS:
            assert operator.index(x) == int(value)
        else:
            with pytest.raises(TypeError, match="only an integer array"):
                operator.index(x)


@pytest.mark.parametrize("convert", [int, float, complex, operator.index])
@pytest.mark.parametrize("shape", [(1,), (0,), (2, 2), (1, 1)])
def test_only_arrays_without_axes_become_numbers(convert, shape):
    with pytest.raises(TypeError, match="without axes"):
        convert(ndx.ones(shape, dtype="int64"))


def test_arrays_of_one_element_are_true_or_false():
    for shape in ((), (1,), (1, 1)):
        assert bool(ndx.ones(shape)) is True
        assert bool(ndx.zeros(shape)) is False
    for shape in ((0,), (2, 2)):
        with pytest.raises(TypeError, match="neither true nor false"):
            bool(ndx.ones(shape))


def test_item():
    assert ndx.ones((1, 1)).item() == 1.0
    for shape in ((0,), (2,), (2, 2)):
        with pytest.raises(ValueError, match="one element"):
            ndx.ones(shape).item()


def test_conversions_that_overflow():
    with pytest.raises(OverflowError):
        int(ndx.asarray(float("inf")))
    with pytest.raises(ValueError, match="NaN"):
        int(ndx.asarray(float("nan")))


@given(st.data(), st.sampled_from(dtypes.ALL))
def test_tolist(data, dtype):
    a = data.draw(patterns.arrays(dtype, data.draw(patterns.shapes()), special=False))
    assert ndx.asarray(a).tolist() == a.tolist()


def test_truth_in_control_flow():
    assert ndx.asarray(3) if ndx.asarray(1.0) else False
    assert not ndx.asarray(0)
    with pytest.raises(TypeError):
        bool(ndx.ones(2) == ndx.ones(2))


# ---- how it is shown ---------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda: ndx.asarray([1.0, 2.5]), "NDArray([1. , 2.5])"),
        (lambda: ndx.asarray([1, 2]), "NDArray([1, 2])"),
        (lambda: ndx.asarray([True]), "NDArray([ True])"),
        (lambda: ndx.asarray(1.5), "NDArray(1.5)"),
        (lambda: ndx.asarray([1j]), "NDArray([0.+1.j])"),
        (lambda: ndx.zeros(2, dtype="int8"), "NDArray([0, 0], dtype=int8)"),
        (lambda: ndx.zeros(2, dtype="float32"), "NDArray([0., 0.], dtype=float32)"),
        (lambda: ndx.zeros(0), "NDArray([], dtype=float64)"),
        (lambda: ndx.zeros((0, 2)), "NDArray([], shape=(0, 2), dtype=float64)"),
        (
            lambda: ndx.asarray([[1, 2], [3, 4]]),
            "NDArray([[1, 2],\n         [3, 4]])",
        ),
    ],
)
def test_repr(make, expected):
    assert repr(make()) == expected


def test_repr_is_short_for_large_arrays():
    text = repr(ndx.zeros((1000, 1000)))
    assert "..." in text
    assert len(text) < 1000


def test_repr_follows_numpys_options():
    x = ndx.asarray([1 / 3])
    with np.printoptions(precision=3):
        assert repr(x) == "NDArray([0.333])"
        assert str(x) == "[0.333]"


def test_repr_names_the_workspace_or_backend():
    with ndx.workspace(size="1KiB") as workspace:
        name = workspace.name
        assert repr(ndx.ones(2)) == f"NDArray([1., 1.], workspace={name!r})"
        assert repr(ndx.ones(2, dtype="int8")) == (
            f"NDArray([1, 1], dtype=int8, workspace={name!r})"
        )
    backend = ByteArrayBackend()
    backend.name = "bytes"
    with ndx.use(backend):
        for x in (ndx.ones(2), np.cbrt(ndx.ones(2)), ndx.ones(3)[1:]):
            assert repr(x) == "NDArray([1., 1.], backend='bytes')"
        assert repr(ndx.ones(0)) == "NDArray([], dtype=float64, backend='bytes')"
    assert repr(ndx.asarray(np.ones(2))) == "NDArray([1., 1.])"


def shown(x):
    """Return the lines of an array's display in a notebook."""
    return html.unescape(re.fullmatch("<pre[^>]*>(.*)</pre>", x._repr_html_(), re.S)[1])


@pytest.mark.thread_unsafe(reason="kinds of devices are the process's")
def test_notebooks_show_where_an_array_lies():
    x = ndx.ones((3, 4))
    assert shown(x).splitlines() == [
        *repr(x).splitlines(), "shape (3, 4) · float64 · 96 B · backend 'host'",
    ]  # fmt: skip
    assert shown(x[0]).endswith("32 B · backend 'host' · part of 96 B")
    assert shown(ndx.broadcast_to(x[0], (2, 4))).endswith(
        "64 B · backend 'host' · part of 96 B"
    )
    row = ndx.ones(4)
    assert shown(ndx.broadcast_to(row, (2, 4))).endswith(
        "64 B · backend 'host' · repeats 32 B"
    )
    assert shown(ndx.empty((0, 3))).endswith("(0, 3) · float64 · 0 B · backend 'host'")
    numpys = ndx.asarray(np.ones(3), copy=False)
    assert shown(numpys).endswith("24 B · memory of another library")
    with ndx.workspace("<a>") as workspace:
        y = ndx.ones(5)
        assert "&lt;a&gt;" in y._repr_html_()
        assert shown(y).endswith("40 B · workspace '<a>' · backend 'host'")
    assert shown(y) == repr(y)
    assert "stale" in shown(y)
    header, line = [each.split() for each in shown(workspace).splitlines()]
    assert header == ndx.memory.workspace_summary().splitlines()[0].split()
    assert (line[0], line[2]) == ("<a>", "closed")


def test_showing_is_not_pinning():
    x = ndx.ones(2)
    assert str(x) == "[1. 1.]"
    assert f"{x}" == "[1. 1.]"
    assert f"{x!r}" == "NDArray([1., 1.])"
    x.close()
    assert repr(x) == str(x) == "<closed NDArray shape=(2,) dtype=float64>"


def test_format():
    assert f"{ndx.asarray(3.14159):.2f}" == "3.14"
    assert f"{ndx.asarray(3):05d}" == "00003"
    assert f"{ndx.asarray(3.5)}" == "3.5"
    assert f"{ndx.ones(2):>10}" == "   [1. 1.]"
    with pytest.raises(ValueError, match="format"):
        f"{ndx.ones(2):.2f}"

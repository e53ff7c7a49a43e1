"""`no_prefetch`, progress bars, and the containers that batches are."""

import sys
import threading

import numpy as np
import pytest
from helpers.prefetching import Numbers, check, no_thread_left, threads  # noqa: F401
from helpers.threads import run_in_thread, wait_until

import ndx
from ndx._pipelines import sources

pytestmark = pytest.mark.threads


class Wrapper:
    def __init__(self, name, wrapped):
        setattr(self, name, wrapped)
        self.wrapped = wrapped

    def __iter__(self):
        return iter(self.wrapped)


def here():
    yield threading.current_thread() is threading.main_thread()


@pytest.mark.parametrize(
    "wrap",
    [
        lambda it: it,
        lambda it: Wrapper("source", it),
        lambda it: Wrapper("dataset", Wrapper("iterable", it)),
        lambda it: Wrapper("loader", Wrapper("__wrapped__", it)),
        lambda it: ndx.no_prefetch(Wrapper("other", it)),
        lambda it: ndx.prefetch(it),
        lambda it: Wrapper("dataset", ndx.prefetch(it)),
    ],
)
def test_a_mark_is_honoured_through_wrappers(wrap):
    """A marked source runs in its consumer's thread, however it is wrapped."""
    assert list(ndx.prefetch(wrap(ndx.no_prefetch(here())))) == [True]
    assert not threads()


def test_without_a_mark_it_is_not():
    assert list(ndx.prefetch(Wrapper("source", here()))) == [False]
    assert list(ndx.prefetch(Wrapper("other", ndx.no_prefetch(here())))) == [False]


def test_a_class_can_have_the_mark():
    class Connection:
        __ndx_no_prefetch__ = True

        def __iter__(self):
            return here()

    assert list(ndx.prefetch(Connection())) == [True]


def test_wrappers_that_wrap_each_other():
    first = Wrapper("source", [1, 2])
    first.source = Wrapper("source", first)
    assert list(ndx.prefetch(first)) == [1, 2]


def test_a_marked_source_is_made_batch_by_batch():
    source = Numbers(5)
    marked = ndx.no_prefetch(source)
    assert len(marked) == 5
    assert repr(marked).startswith("ndx.no_prefetch(<helpers.prefetching.Numbers")
    assert sum(1 for _ in marked) == 5
    with ndx.prefetch(marked) as batches:
        for _ in range(2):
            before = source.made
            for i, batch in enumerate(batches):
                check(batch, i)
                assert source.made == before + i + 1
        assert "not ahead" in repr(batches)
        stats = batches.stats()
        assert (stats["batches"], stats["epochs"], stats["ready"]) == (10, 2, 0)
        assert stats["slots"] <= 3
        next(iter(batches))
    assert source.closed == 4
    with pytest.raises(RuntimeError, match="closed"):
        iter(batches)


def test_a_marked_source_in_one_thread_after_another():
    """Idents of threads are used again, workspaces are not."""
    kept = []
    batches = ndx.prefetch(ndx.no_prefetch(Numbers(4)))
    for _ in range(3):
        run_in_thread(lambda: kept.extend(batches))
    kept.extend(batches)
    assert len(kept) == 16
    for number, batch in enumerate(kept):
        check(batch, number % 4)


class Bar:
    made: list = []  # noqa: RUF012 - emptied by the test

    def __init__(self, total=None, desc=None, unit=None):
        self.total, self.desc, self.unit = total, desc, unit
        self.count, self.closed = 0, False
        Bar.made.append(self)

    def update(self):
        self.count += 1

    def close(self):
        self.closed = True  # any number of times, as tqdm's


def test_progress(monkeypatch):
    """A bar for each epoch, which is closed at its end, early or not."""
    monkeypatch.setattr(sources, "tqdm_class", lambda: Bar)
    Bar.made.clear()
    with ndx.prefetch(Numbers(7), progress="epoch") as batches:
        for _ in batches:
            pass
        for batch in batches:
            if batch["i"] == 2:
                break
        del batch
    counts = [(bar.total, bar.desc, bar.count, bar.closed) for bar in Bar.made]
    assert counts == [(7, "epoch", 7, True), (7, "epoch", 3, True)]
    Bar.made.clear()
    for _ in ndx.prefetch((i for i in range(3)), progress=True):
        pass
    assert [(bar.total, bar.count, bar.closed) for bar in Bar.made] == [(None, 3, True)]
    Bar.made.clear()

    def broken():
        yield 1
        raise ValueError

    with pytest.raises(ValueError):  # noqa: PT011
        list(ndx.prefetch(broken(), progress=True))
    assert [bar.closed for bar in Bar.made] == [True]


TOOLS = {
    "prefetch": lambda **options: list(ndx.prefetch(range(7), **options)),
    "map": lambda **options: list(ndx.parallel.map(abs, range(7), **options)),
    "train": lambda **options: ndx.parallel.train(
        lambda params, batch: (params, 0.0), 0.0, range(7), workers=2, **options
    ),
    "evaluate": lambda **options: ndx.evaluate(
        lambda x: x,
        [(ndx.ones(2), ndx.ones(2))] * 7,
        ndx.metrics.Mean(lambda expected, outputs: 0.0),
        **options,
    ),
}
every_tool = pytest.mark.parametrize("tool", TOOLS)


@every_tool
def test_progress_by_tqdm(tool, capsys):
    pytest.importorskip("tqdm")
    before = set(threading.enumerate())
    TOOLS[tool](progress="loading")
    shown = capsys.readouterr().err
    assert "loading" in shown
    assert "7/7" in shown
    assert ("score" in shown) == (tool == "train")
    TOOLS[tool]()
    assert capsys.readouterr().err == ""
    with pytest.raises(TypeError, match="progress must be"):
        TOOLS[tool](progress=3)
    wait_until(lambda: set(threading.enumerate()) <= before)


@every_tool
def test_progress_without_tqdm(tool, monkeypatch):
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    with pytest.raises(ImportError, match=r"pip install 'ndxarray\[progress\]'"):
        TOOLS[tool](progress=True)


def test_leaves_that_pass_unchanged():
    other = [
        "name", b"bytes", 3, 2.5, None, range(3), {1, 2}, object(), np.float64(3.0),
        np.array(["text"]), np.array([None]), np.array(["2020"], "M8[Y]"),
        np.zeros(2, "g"), np.ma.masked_array([1.0, 2.0], [True, False]),
        np.zeros(2, [("a", "i4")]), Wrapper, sys.version_info, lambda: 3,
    ]  # fmt: skip
    (found,) = ndx.prefetch([tuple(other)])
    assert all(a is b for a, b in zip(found, other, strict=True))


@pytest.mark.parametrize(
    "dtype", ["?", "i1", "u2", "i4", "u8", ">f4", "<f8", "c8", ">c16", ">i2", "f2"]
)
def test_numpys_arrays_are_taken_over(dtype, tmp_path):
    data = np.arange(24).astype(dtype).reshape(2, 3, 4)
    file = tmp_path / "data.npy"
    np.save(file, data)
    layouts = [
        data, data.T, data[:, ::2], data[::-1], data[:0], data[1, 1, 1:2].reshape(()),
        np.broadcast_to(data[0, 0, :1], (5,)), np.load(file, mmap_mode="r"),
    ]  # fmt: skip
    for x, expected in zip(next(iter(ndx.prefetch([layouts]))), layouts, strict=True):
        assert isinstance(x, ndx.NDArray)
        assert x.dtype == data.dtype.newbyteorder("=")
        np.testing.assert_array_equal(np.asarray(x), expected)
        x[...] = 1  # a copy, which may be written to


def test_one_array_that_occurs_twice():
    x, y = np.ones(3), ndx.zeros(3)
    itself: list = [x]
    itself.append(itself)
    ((a, b, c, d, e),) = ndx.prefetch([(x, x, y, [y], itself)])
    assert a is b
    assert c is d[0]
    assert e[0] is a
    assert e[1] is e


def test_an_array_alone():
    assert [x.tolist() for x in ndx.prefetch([np.ones(2), ndx.zeros(1)])] == [
        [1.0, 1.0],
        [0.0],
    ]

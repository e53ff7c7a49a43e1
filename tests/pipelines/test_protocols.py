"""What the wrappers of the loop tools claim: what a class has, its instances can do."""

import asyncio
import copy
import pickle
from collections.abc import AsyncIterable, Iterable, Reversible, Sized

import pytest

import ndx


def generator():
    yield from range(3)


async def asynchronous():
    for i in range(3):
        yield i


class Plain:
    def __iter__(self):
        return iter(range(3))


class Measured(Plain):
    def __len__(self):
        return 3


class Unmeasured(Plain):
    """As torch's loaders of data sets without a length."""

    def __len__(self):
        raise TypeError("object of type 'Dataset' has no len()")


class Abstract(Plain):
    def __len__(self):
        raise NotImplementedError


class Indexed:
    """The old protocol of sequences."""

    def __getitem__(self, i):
        return range(3)[i]


class AsyncPlain:
    def __aiter__(self):
        return asynchronous()


class AsyncMeasured(AsyncPlain):
    def __len__(self):
        return 3


class Both(Plain):
    def __aiter__(self):
        return asynchronous()


SOURCES = {
    "list": lambda: [0, 1, 2],
    "empty list": list,
    "range": lambda: range(3),
    "dict": lambda: dict.fromkeys(range(3)),
    "generator": generator,
    "iterator": lambda: iter([0, 1, 2]),
    "class": Plain,
    "class with a length": Measured,
    "class whose length raises": Unmeasured,
    "class without an implementation of its length": Abstract,
    "class with items only": Indexed,
    "asynchronous generator": asynchronous,
    "asynchronous class": AsyncPlain,
    "asynchronous class with a length": AsyncMeasured,
    "class of both kinds": Both,
}
WRAPPERS = {
    "prefetch": ndx.prefetch,
    "no_prefetch": ndx.no_prefetch,
    "prefetch of no_prefetch": lambda x: ndx.prefetch(ndx.no_prefetch(x)),
    "no_prefetch of prefetch": lambda x: ndx.no_prefetch(ndx.prefetch(x)),
    "no_prefetch of no_prefetch": lambda x: ndx.no_prefetch(ndx.no_prefetch(x)),
}


async def collected(source):
    return [x async for x in source]


USES = {
    "__len__": len,
    # Unlike `list`, which asks for a length first.
    "__iter__": lambda x: [i for i in x],  # noqa: C416
    "__aiter__": lambda x: asyncio.run(collected(x)),
    "__getitem__": lambda x: x[0],
    "__reversed__": lambda x: list(reversed(x)),
    "__contains__": lambda x: 1 in x,
    "__array__": lambda x: x.__array__(),
    "__bool__": bool,
    "__length_hint__": lambda x: x.__length_hint__(),
}
CLASSES = {
    "__len__": Sized,
    "__iter__": Iterable,
    "__aiter__": AsyncIterable,
    "__reversed__": Reversible,
}
each = pytest.mark.parametrize


@each("protocol", USES)
@each("source", SOURCES)
@each("wrapper", WRAPPERS)
def test_what_a_wrapper_claims_works(wrapper, source, protocol):
    made = WRAPPERS[wrapper](SOURCES[source]())
    claimed = hasattr(made, protocol)
    if protocol in CLASSES:
        assert isinstance(made, CLASSES[protocol]) == claimed
    if not claimed:
        return
    assert USES[protocol](made) == USES[protocol](SOURCES[source]())


@each("source", SOURCES)
@each("wrapper", WRAPPERS)
def test_a_wrapper_has_what_its_source_has(wrapper, source):
    made, inner = WRAPPERS[wrapper](SOURCES[source]()), SOURCES[source]()
    assert hasattr(made, "__iter__") or hasattr(made, "__aiter__")
    try:
        length = len(inner)
    except (TypeError, NotImplementedError):
        assert not isinstance(made, Sized)
        assert made
        with pytest.raises(TypeError, match=r"has no len\(\)"):
            len(made)
    else:
        assert len(made) == length
        assert bool(made) == bool(length)


@each("copied", [copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
@each("source", [[0, 1], Plain(), Unmeasured(), AsyncMeasured()])
def test_copies_and_pickles_of_marks_have_the_same_protocols(copied, source):
    mark = ndx.no_prefetch(source)
    made = copied(mark)
    assert type(made) is type(mark)
    assert isinstance(made, ndx.no_prefetch)
    assert type(made.source) is type(source)


def test_methods_of_a_subclass_are_its_own():
    class Counted(ndx.no_prefetch):
        def __len__(self):
            return 7

    made = Counted([1, 2])
    assert len(made) == 7
    assert list(made) == [1, 2]
    assert isinstance(type(made)([3]), Counted)


@each("source", [list, int, 3, None, object()])
@each("wrapper", [ndx.prefetch, ndx.no_prefetch])
def test_what_is_no_iterable_is_refused(wrapper, source):
    """A class has the methods of its instances, which it can't be asked for."""
    with pytest.raises(TypeError, match="iterable"):
        wrapper(source)

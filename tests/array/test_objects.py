"""Array objects made by hand, and by the slots of their type."""

import gc
import sys
import weakref

import numpy as np
import pytest

import ndx
from ndx._array import storage


class Heap:
    """A class whose objects count as references to it."""


class Slotted:
    __slots__ = ("value",)


@pytest.fixture(params=[True, False], ids=["by-hand", "by-slots"])
def made(request):
    storage.make_objects_by_hand(request.param)
    yield
    storage.make_objects_by_hand(True)


def test_arrays_are_made_by_hand_here():
    assert storage.is_plain_type(ndx.NDArray)


@pytest.mark.parametrize("cls", [Heap, Slotted, int, bytes, type, float])
def test_other_types_are_not(cls):
    assert not storage.is_plain_type(cls)


@pytest.mark.usefixtures("made")
def test_arrays_live_and_die():
    for _ in range(3):
        many = [ndx.full((2, 2), i) for i in range(600)]
        assert [x[1, 1].item() for x in many] == list(range(600))
        many.clear()
    x = ndx.ones((2, 3, 4, 5, 6))
    assert x.shape == (2, 3, 4, 5, 6)
    other = object()
    assert sys.getrefcount(x) == sys.getrefcount(other)


@pytest.mark.usefixtures("made")
def test_their_weak_references_end():
    ended = []
    x = ndx.ones(3)
    reference = weakref.ref(x, ended.append)
    assert reference() is x
    del x
    assert reference() is None
    assert ended == [reference]


@pytest.mark.usefixtures("made")
def test_only_those_with_a_foreign_owner_are_tracked():
    source = np.ones(3)
    x = ndx.asarray(source)
    assert gc.is_tracked(x)
    assert not gc.is_tracked(ndx.ones(3))
    count = sys.getrefcount(source)
    del x
    assert sys.getrefcount(source) == count - 1


def test_those_made_the_other_way_die_as_well():
    first = ndx.ones(3)
    storage.make_objects_by_hand(False)
    second = ndx.ones(3)
    del first
    storage.make_objects_by_hand(True)
    third = ndx.ones(3)
    del second
    assert third.tolist() == [1.0, 1.0, 1.0]
    assert (third + 1).tolist() == [2.0, 2.0, 2.0]


def test_users_find_the_type_under_its_public_name():
    assert ndx.NDArray.__module__ == "ndx"
    assert repr(ndx.NDArray) == "<class 'ndx.NDArray'>"

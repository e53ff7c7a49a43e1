"""Trees: which containers there are, and how they are made anew."""

import array
import collections
import dataclasses
import sys
import types
from collections.abc import Mapping, MutableMapping, Sequence
from typing import NamedTuple

import numpy as np
import pytest

import ndx
from ndx._lib.trees import check_structure, leaves, map_tree, parts_of

attrs = pytest.importorskip("attrs")


class Pair(NamedTuple):
    x: object
    y: object


@dataclasses.dataclass
class Plain:
    x: object
    y: object


@dataclasses.dataclass(frozen=True, slots=True)
class Frozen:
    x: object
    y: object


@dataclasses.dataclass
class Checked:
    """Computes when it is made: it is not to be made by its parts."""

    x: object
    y: object = dataclasses.field(init=False)

    def __post_init__(self):
        self.y = self.x


@attrs.define
class Slotted:
    x: object
    y: object


@attrs.frozen
class Immutable:
    x: object
    y: object


class Own(Mapping):
    """A mapping that is made from one."""

    def __init__(self, items):
        self._items = items

    def __getitem__(self, key):
        return self._items[key]

    def __iter__(self):
        return iter(self._items)

    def __len__(self):
        return len(self._items)


class Changed(Own, MutableMapping):
    """A copy of it has the same dict inside."""

    def __setitem__(self, key, value):
        self._items[key] = value

    def __delitem__(self, key):
        del self._items[key]


class ByKeywords(Own):
    """A mapping that can't be made from its items alone."""

    def __init__(self, **items):
        super().__init__(items)


class Row(Sequence):
    def __init__(self, items):
        self._items = tuple(items)

    def __getitem__(self, index):
        return self._items[index]

    def __len__(self):
        return len(self._items)


class Reversed(Row):
    """A sequence that is not made of the parts that it has."""

    def __init__(self, items):
        super().__init__(list(items)[::-1])


class Words(collections.UserDict):
    pass


CONTAINERS = {
    "tuple": lambda x, y: (x, y),
    "named tuple": Pair,
    "list": lambda x, y: [x, y],
    "UserList": lambda x, y: collections.UserList([x, y]),
    "deque": lambda x, y: collections.deque([x, y], maxlen=2),
    "other sequence": lambda x, y: Row([x, y]),
    "dict": lambda x, y: {"x": x, 3: y},
    "OrderedDict": lambda x, y: collections.OrderedDict(x=x, y=y),
    "defaultdict": lambda x, y: collections.defaultdict(list, x=x, y=y),
    "UserDict": lambda x, y: collections.UserDict(x=x, y=y),
    "subclass of UserDict": lambda x, y: Words(x=x, y=y),
    "mappingproxy": lambda x, y: types.MappingProxyType({"x": x, "y": y}),
    "ChainMap": lambda x, y: collections.ChainMap({"x": x, "y": y}),
    "other mapping": lambda x, y: Own({"x": x, "y": y}),
    "other mutable mapping": lambda x, y: Changed({"x": x, "y": y}),
    "dataclass": Plain,
    "frozen dataclass": Frozen,
    "class of attrs": Slotted,
    "frozen class of attrs": Immutable,
}
every_container = pytest.mark.parametrize("make", CONTAINERS.values(), ids=CONTAINERS)


@every_container
def test_containers_are_made_anew_in_their_type(make):
    x, y = np.ones(2), np.zeros(3)
    tree = make(x, y)
    kept = dict(parts_of(tree))
    found = map_tree(lambda leaf: leaf + 1, tree)
    assert type(found) is type(tree)
    assert found is not tree
    first, second = parts_of(found).values()
    np.testing.assert_array_equal(first, x + 1)
    np.testing.assert_array_equal(second, y + 1)
    # The one that was given has its parts.
    assert all(parts_of(tree)[key] is part for key, part in kept.items())
    assert getattr(found, "maxlen", None) == getattr(tree, "maxlen", None)


@every_container
def test_several_trees_go_side_by_side(make):
    x, y = np.ones(2), np.zeros(3)
    found = map_tree(lambda a, b: a - b, [make(x, y)] * 2, [make(x, y + 1)] * 2)
    assert found[0] is found[1]
    np.testing.assert_array_equal(list(parts_of(found[0]).values())[1], y - 1)
    check_structure(make(x, (y,)), make(y, (x,)))
    for other in (make(x, y), make((x,), (y,)), [x], x, None):
        with pytest.raises(ValueError, match="differ in structure"):
            check_structure(make(x, (y,)), other)
        with pytest.raises(ValueError, match="differ in structure"):
            map_tree(lambda a, b: a, make(x, (y,)), other)


@every_container
def test_a_batch_may_be_any_container(make):
    x = np.ones(3)
    (batch,) = ndx.prefetch([make(x, [x])])
    assert type(batch) is type(make(x, [x]))
    first, second = parts_of(batch).values()
    assert isinstance(first, ndx.NDArray)
    assert second[0] is first


@every_container
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_result_of_a_workspace_may_be_any_container(make):
    @ndx.workspace("trees")
    def computed():
        return make(ndx.ones(3) * 2, [ndx.ones(3) * 3])

    first, second = parts_of(computed()).values()
    assert [float(first[0]), float(second[0][0])] == [2.0, 3.0]
    assert not first.attached
    ndx.memory.destroy_all()


@every_container
def test_parameters_may_be_any_container(make):
    def step(params, batch):
        return map_tree(lambda x: x - batch, params), 0.0

    trained = ndx.parallel.train(
        step, make(ndx.ones(3), [ndx.ones(2)]), [1.0] * 4, workers=2
    )
    first, second = parts_of(trained.params).values()
    assert (first.tolist(), second[0].tolist()) == ([-1.0] * 3, [-1.0] * 2)


def test_the_classes_methods_do_not_run_again():
    tree = Checked(np.ones(2))
    tree.y = np.zeros(2)
    found = map_tree(lambda leaf: leaf + 1, tree)
    assert (found.x.tolist(), found.y.tolist()) == ([2.0, 2.0], [1.0, 1.0])


def test_what_can_not_be_made_of_its_parts_becomes_a_dict_or_a_list():
    found = map_tree(lambda leaf: leaf + 1, [ByKeywords(x=1, y=2), Reversed([2, 1])])
    assert found == [{"x": 2, "y": 3}, [2, 3]]


def test_what_can_not_be_changed_stays_with_its_parts():
    trees = [(1, 2), Pair(1, 2), sys.version_info, Own({"x": 1}), Row([1])]
    assert all(map_tree(lambda leaf: leaf, tree) is tree for tree in trees)
    changed = Changed({"x": 1})
    assert map_tree(lambda leaf: leaf, changed) is not changed


def test_leaves():
    leaves = [
        "text", b"bytes", bytearray(3), memoryview(b"abc"), range(9), 3, None, {1, 2},
        array.array("d", [1.0]), np.ones(2), np.float64(3), ndx.ones(2), ndx.ones(2)[0],
        np.array([[1], None], object), Plain, object(),
    ]  # fmt: skip
    assert all(parts_of(leaf) is None for leaf in leaves)


def test_files_of_arrays_are_not_read(tmp_path):
    np.savez(tmp_path / "x.npz", x=np.ones(3))
    with np.load(tmp_path / "x.npz") as file:
        assert parts_of(file) is None


def test_a_leaf_is_visited_once():
    x, seen = np.ones(2), []
    map_tree(seen.append, [x, {"x": x}, (x, [x])])
    assert len(seen) == 1


@pytest.mark.parametrize(
    "kind", [list, collections.deque, collections.UserList, dict, collections.UserDict]
)
def test_lists_and_dicts_may_contain_themselves(kind):
    tree = kind()
    key = 0
    if isinstance(tree, Mapping):
        tree[key] = tree
    else:
        tree.append(tree)
    assert map_tree(lambda leaf: leaf, tree)[key][key] is not tree
    found = map_tree(lambda leaf: leaf, tree)
    assert found[key] is found
    check_structure(tree, found)
    assert map_tree(lambda a, b: a, tree, found)[key] is not tree


def test_a_dataclass_may_contain_itself():
    tree = Plain(1, None)
    tree.y = tree
    found = map_tree(lambda leaf: leaf + 1, tree)
    assert found.y is found
    assert found.x == 2


@pytest.mark.parametrize("make", [tuple, Row, lambda x: Own({"x": x[0]})])
def test_other_containers_may_not(make):
    inner: list = []
    tree = make([inner])
    inner.append(tree)
    with pytest.raises(ValueError, match=f"a {type(tree).__name__} contains itself"):
        map_tree(lambda leaf: leaf, tree)
    with pytest.raises(ValueError, match="contains itself"):
        list(ndx.prefetch([tree]))


def test_parameters_that_contain_themselves():
    params = {"w": ndx.ones(2)}
    params["self"] = params
    found = ndx.parallel.train(lambda p, batch: (p, 0.0), params, [1, 2], workers=2)
    assert found.params["self"] is found.params
    assert found.params["w"].tolist() == [1.0, 1.0]


def test_tied_parameters_stay_tied():
    """With one worker, training is a loop: a change in place is seen at both names."""

    def step(params, batch):
        params["a"] -= batch
        return params, 0.0

    w = ndx.ones(2)
    found = ndx.parallel.train(step, {"a": w, "b": w}, [1.0, 1.0], workers=1).params
    assert found["a"] is found["b"]
    assert found["b"].tolist() == [-1.0, -1.0]


def test_a_mapping_that_fails_is_no_container_of_results():
    class Closed(Own):
        def __iter__(self):
            raise OSError("the file is closed")

    @ndx.workspace("trees")
    def computed():
        return Closed({})

    assert isinstance(computed(), Closed)
    ndx.memory.destroy_all()


def test_leaves_come_once_from_all_containers_and_sets():
    @dataclasses.dataclass(eq=False)
    class Pair:
        first: object
        second: object

    shared = object()
    inner = [shared, "text"]
    inner.append(inner)
    tree = {"a": (shared, Pair(inner, b"bytes")), "b": {Pair(1.5, frozenset({2}))}}
    found = list(leaves(tree))
    assert len(found) == 5
    assert {id(each) for each in found if each is shared} == {id(shared)}
    assert {each for each in found if each is not shared} == {"text", b"bytes", 1.5, 2}


def test_leaves_of_a_leaf_and_of_what_cannot_be_read():
    class Closed(Own):
        def __iter__(self):
            raise OSError("the file is closed")

    closed = Closed({})
    assert list(leaves(3)) == [3]
    assert list(leaves([closed])) == [closed]
    assert list(leaves([])) == []


def test_leaves_of_containers_of_some_types():
    inner, pair = {"a": [1]}, Plain([2], (3,))
    tree = [inner, (4, {5}), pair]
    tree.append(tree)
    found = list(leaves(tree, (list, tuple)))
    assert sorted(map(str, found)) == sorted(map(str, [inner, 4, {5}, pair]))

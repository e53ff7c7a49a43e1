"""Every function that is not elementwise gives the same on all of its paths.

A path is where operands lie (in any order, with steps, reversed, in files, in NumPy's
memory), where it is computed (in a workspace, in a pass, in a forked child, into an
output), and which other calls have to give the same (`RELATIONS`).
"""

import contextlib
import os
import traceback

import numpy as np
import pytest
from helpers.calls import resolve
from helpers.examples import examples
from helpers.patterns import large_shapes
from hypothesis import given
from hypothesis import strategies as st

import ndx
from differential import manipulation, searching, statistical
from differential.engine import alike, assert_alike, mapped, outcome, plain
from differential.layouts import LAYOUTS, in_c_order, reversed_out
from differential.test_differential import TABLE as ALL
from differential.test_passes import places  # noqa: F401

pytestmark = pytest.mark.skipif(os.name != "posix", reason="maps files, and forks")
TABLE = statistical.TABLE | searching.TABLE | manipulation.TABLE
TABLE |= {
    name: ALL[name]
    for name in (
        "astype", "asarray", "broadcast_arrays", "broadcast_to", "full_like",
        "linalg.cross", "linalg.diagonal", "linalg.matrix_transpose", "linalg.outer",
        "linalg.trace", "linalg.vector_norm", "matmul", "meshgrid", "ones_like",
        "tensordot", "tril", "triu", "vecdot", "zeros_like",
    )
}  # fmt: skip
# NumPy keeps two small arrays of its first such call, which would seem to leak.
np.isin(np.zeros(0, "uint8"), np.array([-(2**63), 2**63 - 1]))
REDUCTIONS = {
    "all", "any", "count_nonzero", "max", "mean", "min", "prod", "std", "sum", "var",
}  # fmt: skip


def laid(value, change):
    """Return arguments with their arrays changed, and their dtypes as they are."""
    return mapped(value, lambda x: x if isinstance(x, np.dtype) else change(x))


def plain_answer(name, args, kwargs):
    """Return what a function gives for arrays in C order in memory, and its error."""
    with ndx.passes(threshold="1TiB"), ndx.use("host"):
        given = laid(args, in_c_order), laid(kwargs, in_c_order)
        found, error = outcome(resolve(ndx, name), *given)
    return mapped_results(found, np.array), error


def mapped_results(found, change):
    if isinstance(found, (tuple, list)):
        return tuple(mapped_results(item, change) for item in found)
    return change(found) if isinstance(found, ndx.NDArray) else found


class Call:
    """The answers to one drawn call, on path after path."""

    def __init__(self, name, args, kwargs):
        self.name = name
        self.row = TABLE[name]
        self.function = resolve(ndx, name)
        self.args = mapped(args, plain)
        self.kwargs = mapped(kwargs, plain)
        self.foreign = args, kwargs
        self.expected, self.error = plain_answer(name, args, kwargs)

    def check(self, path, function, *args, **kwargs):
        found, error = outcome(function, args, kwargs)
        if self.error is not None:
            assert error is not None, (path, self.error)
            assert alike(error, self.error), (path, error, self.error)
            return
        if error is not None:
            raise AssertionError(path) from error
        self.same(path, found, self.expected)

    def same(self, path, found, expected):
        try:
            assert_alike(found, expected, self.row)
        except AssertionError as difference:
            raise AssertionError(path) from difference

    def given(self, change):
        return laid(self.args, change), laid(self.kwargs, change)

    def layouts(self):
        for layout in LAYOUTS:
            args, kwargs = self.given(layout)
            self.check(layout.__name__, self.function, *args, **kwargs)
        turns = iter(LAYOUTS * 20)
        args, kwargs = self.given(lambda array: next(turns)(array))
        self.check("mixed layouts", self.function, *args, **kwargs)
        args, kwargs = self.foreign
        self.check("NumPy's arrays", self.function, *args, **kwargs)

    def relations(self):
        if self.error is None:
            for relation in RELATIONS.get(self.name, ()):
                relation(self)


# ------------------------------------------------------------ what gives the same


def axes_named_otherwise(call):
    """Axes from behind, in another order, one by one, and with `keepdims`."""
    args, kwargs = call.given(in_c_order)
    (x,), axis = args, kwargs.get("axis")
    whole = range(x.ndim) if axis is None else np.atleast_1d(np.array(axis, dtype=int))
    axes = tuple(int(a) % x.ndim for a in whole)
    for path, other in [
        ("all axes", axes),
        ("backwards", axes[::-1]),
        ("from behind", tuple(a - x.ndim for a in axes)),
        ("NumPy's integers", tuple(np.int8(a) for a in axes)),
    ]:
        call.check(path, call.function, x, **kwargs | {"axis": other})
    if not kwargs.get("keepdims"):
        found = call.function(x, **kwargs | {"keepdims": True})
        assert found.shape == tuple(
            1 if a in axes else n for a, n in enumerate(x.shape)
        )
        call.check("keepdims", ndx.reshape, found, call.expected.shape)


def slice_by_slice(call):
    """Along one axis, each slice of another one by itself."""
    args, kwargs = call.given(in_c_order)
    (x,), axis = args, kwargs.get("axis")
    axis = -1 if axis is None and x.ndim == 1 else axis
    if not isinstance(axis, int) or x.ndim < 2 or kwargs.get("keepdims"):
        return
    moved = ndx.moveaxis(x, axis, -1)
    if not moved.shape[0]:
        return
    parts = [call.function(part, **kwargs | {"axis": -1}) for part in moved]
    found = ndx.stack(parts)
    if found.ndim == x.ndim:
        found = ndx.moveaxis(found, -1, axis)
    call.same("slice by slice", found, call.expected)


def joined_by_slices(call):
    (parts,), kwargs = call.given(reversed_out)
    axis = kwargs.get("axis", 0)
    if axis is None:
        parts, axis = [ndx.reshape(part, -1) for part in parts], 0
    out = ndx.empty(call.expected.shape, dtype=call.expected.dtype)
    target = ndx.moveaxis(out, axis, 0)
    start = 0
    for part in parts:
        if call.name == "stack":
            target[start, ...] = part
            start += 1
        else:
            moved = ndx.moveaxis(part, axis, 0)
            target[start : start + moved.shape[0]] = moved
            start += moved.shape[0]
    call.same("into slices", out, call.expected)


def picked_by_index(call):
    (x, indices), kwargs = call.given(in_c_order)
    if not call.expected.size:
        # Where nothing is taken `take` looks at no index, as NumPy's; `[]` does.
        return
    axis = kwargs.get("axis")
    moved = x if axis is None else ndx.moveaxis(x, axis, 0)
    found = moved[indices]
    call.same("an index", found if axis is None else ndx.moveaxis(found, 0, axis),
              call.expected)  # fmt: skip


def copied_into_slices(call):
    """A cast, and a copy into an array of any layout."""
    x = in_c_order(call.args[0])
    dtype = call.expected.dtype
    if x.dtype.kind != dtype.kind:
        return
    for layout in LAYOUTS:
        out = layout(np.zeros_like(call.expected))
        out[...] = x
        call.same(f"into {layout.__name__}", out, call.expected)
    call.same("asarray", ndx.asarray(x, dtype=dtype), call.expected)


def written_by_mask(call):
    (mask, x, y), _ = call.given(in_c_order)
    shape, dtype = call.expected.shape, call.expected.dtype
    out = ndx.empty(shape, dtype=dtype)
    for operand, chosen in ((y, ndx.logical_not(mask)), (x, mask)):
        if not isinstance(operand, ndx.NDArray):
            operand = ndx.full((), operand, dtype=dtype)
        whole = ndx.broadcast_to(ndx.astype(operand, dtype), shape)
        chosen = ndx.broadcast_to(chosen, shape)
        out[chosen] = whole[chosen]
    call.same("by masks", out, call.expected)


def other_products(call):
    (x, y), _ = call.given(in_c_order)
    call.check("operator", lambda: x @ y)
    for layout in LAYOUTS:
        out = layout(np.zeros_like(call.expected))
        found = ndx.matmul(*mapped(call.args, layout), out=out)
        assert found is out
        call.same(f"out {layout.__name__}", out, call.expected)
    if x.ndim == y.ndim == 1:
        call.same("vecdot", ndx.vecdot(ndx.conj(x) if x.dtype.kind == "c" else x, y),
                  call.expected)  # fmt: skip
    if x.ndim <= 2 and y.ndim <= 2 and x.dtype.kind != "b":
        call.same("tensordot", ndx.tensordot(x, y, axes=((-1,), (0,))), call.expected)


def sorted_by_order(call):
    (x,), kwargs = call.given(in_c_order)
    order = ndx.argsort(x, **kwargs)
    found = ndx.take_along_axis(x, order, axis=kwargs.get("axis", -1))
    call.same("by argsort", found, call.expected)


RELATIONS = dict.fromkeys(REDUCTIONS, (axes_named_otherwise, slice_by_slice))
RELATIONS |= dict.fromkeys(
    ("argmax", "argmin", "argsort", "cumulative_prod", "cumulative_sum"),
    (slice_by_slice,),
)
RELATIONS |= {
    "astype": (copied_into_slices,),
    "concat": (joined_by_slices,),
    "matmul": (other_products,),
    "sort": (slice_by_slice, sorted_by_order),
    "stack": (joined_by_slices,),
    "take": (picked_by_index,),
    "where": (written_by_mask,),
}


# ------------------------------------------------------------------------- tests


@pytest.mark.parametrize("name", sorted(TABLE))
@examples(8)
@given(data=st.data())
def test_small_arrays(name, data):
    call = Call(name, *data.draw(TABLE[name].draws))
    scope = contextlib.nullcontext()
    if data.draw(st.booleans()):
        scope = ndx.workspace("other paths")
    with scope:
        call.layouts()
        call.relations()


@pytest.mark.parametrize("name", sorted(TABLE))
@examples(4)
@given(data=st.data())
def test_in_passes(places, name, data):  # noqa: F811
    call = Call(name, *data.draw(TABLE[name].draws))
    with places.passing(data):
        call.layouts()
        args, kwargs = call.given(places.change(data))
        call.check("in places", call.function, *args, **kwargs)
        call.relations()


# Where a large array is a pass over a file, or several threads compute.
LARGE = "argmax argmin astype concat count_nonzero max mean min sort stack sum where"


@pytest.mark.parametrize("name", LARGE.split())
@examples(4)
@given(data=st.data())
def test_large_arrays(places, name, data):  # noqa: F811
    with large_shapes():
        call = Call(name, *data.draw(TABLE[name].draws))
    with places.passing(data):
        args, kwargs = call.given(places.change(data))
        call.check("in places", call.function, *args, **kwargs)
        call.relations()


# Of a large process, a fork takes some 50 ms: as long as so many calls.
CALLS = 20


def in_child(function):
    """Call a function in a forked child; fail with what it raises there."""
    read, write = os.pipe()
    child = os.fork()
    if not child:
        status = 1
        try:
            function()
            status = 0
        except BaseException:
            os.write(write, traceback.format_exc().encode()[-60000:])
        finally:
            os._exit(status)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        said = pipe.read().decode()
    _, status = os.waitpid(child, 0)
    assert status == 0, f"status {status}: {said}"


@pytest.mark.threads
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
@pytest.mark.parametrize("name", sorted(TABLE))
@examples(1, each=CALLS)
@given(data=st.data())
def test_in_a_forked_child(places, name, data):  # noqa: F811
    calls = []
    for _ in range(CALLS):
        call = Call(name, *data.draw(TABLE[name].draws))
        calls.append((call, *call.given(places.change(data))))

    def check(where):
        for call, args, kwargs in calls:
            call.check(where, call.function, *args, **kwargs)

    # A child can't have new memory in its parent's files.
    with ndx.use("host"), ndx.passes(threshold=0, threads=data.draw(st.integers(1, 3))):
        in_child(lambda: check("in a child"))
        check("in the parent")

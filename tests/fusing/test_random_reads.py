"""Random functions that read from outside, and random changes of what they read."""

import numpy as np
from fusing.compare import outcome
from helpers.examples import examples
from hypothesis import given
from hypothesis import strategies as st

import ndx

# What a function may read.
READS = [
    "K", "thing.a", "thing.inner.a", "thing.u", "ARRAY", "table['a']", "items[0]",
    "items[-1]", "len(items)", "cell", "thing.doubled", "Thing.shared", "thing.pair[1]",
    "table.get('b', 2)", "sum(items)", "default", "(2 if thing.a else 3)",
    "(thing.a if K == 2 else cell)", "sum(i for i in items if i != K)",
    "(1 if 'b' in table else 0)", "(thing.extra if hasattr(thing, 'extra') else 1)",
    "abs(cell)", "np.float32(K)", "(1 if cell is None else 2)", "(1, cell)[1]",
]  # fmt: skip
CALLS = ["{t}", "helper({t})", "thing.scaled({t})", "ndx.negative(x * {t})",
         "inner({t})", "thing.layers[0]({t})", "fused({t})"]  # fmt: skip
TARGETS = [
    "K", "thing.a", "thing.inner.a", "thing.u", "ARRAY", "table['a']", "items[0]",
    "cell", "Thing.shared", "table['b']", "thing.extra", "thing.pair", "thing.inner",
    "default",
]  # fmt: skip
VALUES = [
    "2", "3.0", "-0.0", "0.0", "True", "None", "ndx.ones(3)", "ndx.arange(3)",
    "np.arange(3.0)", "np.float32(2)", "2j", "(1, 2.5)", "(ARRAY, 4)", "[1, 2]",
    "Inner(7)", "'text'", "x",
]  # fmt: skip
OTHERS = [
    "items.append(4)", "items.reverse()", "table.pop('b', None)",
    "thing.u[0] = 9", "thing.layers.reverse()", "ARRAY[...] = 5",
    "thing.__class__ = Other", "thing.__class__ = Thing", "helper.__defaults__ = (7,)",
    "thing.__dict__.pop('extra', None)", "Thing.doubled = 8",
    "Thing.scaled = lambda self, v: v - self.a", "pass",
]  # fmt: skip
SOURCE = """
import numpy as np
import ndx

class Inner:
    def __init__(self, a):
        self.a = a

class Thing:
    shared = 2
    def __init__(self):
        self.a, self.inner, self.u, self.pair = 2, Inner(3.0), ndx.ones(3), (1, 2.0)
        self.layers = [lambda v: v * 2, lambda v: v + self.a]
    @property
    def doubled(self):
        return self.a * 2
    def scaled(self, v):
        return v * self.inner.a

class Other(Thing):
    @property
    def doubled(self):
        return self.inner.a
    def scaled(self, v):
        return v + self.shared

K, ARRAY, thing, table, items = 2, ndx.ones(3), Thing(), dict(a=1.5), [1, 2]

def helper(v, k=1):
    return v * K + k

fused = ndx.fuse(lambda v: v * thing.a)

def make():
    cell = 2.0
    def inner(v):
        return v + cell
    def function(x, default=3):
        return {body}
    def change_cell(value):
        nonlocal cell
        cell = value
    return function, change_cell

function, change_cell = make()
"""

terms = st.tuples(st.sampled_from(CALLS), st.sampled_from(READS))
assignments = st.tuples(st.sampled_from(TARGETS), st.sampled_from(VALUES))
changes = st.lists(assignments | st.sampled_from(OTHERS), min_size=1, max_size=6)


def made(body):
    """Return the namespace of a function, as new."""
    namespace = {"__name__": "drawn"}
    exec(SOURCE.format(body=body), namespace)
    return namespace


def changed(namespace, change):
    """Perform one change; whether it was possible."""
    if isinstance(change, tuple):
        target, value = change
        x = "ndx.asarray([1.0, 2.0, 3.0])"
        value = x if value == "x" else value
        if target == "cell":
            change = f"change_cell({value})"
        elif target == "default":
            change = f"function.__defaults__ = ({value},)"
        else:
            change = f"{target} = {value}"
    try:
        exec(change, namespace)
    except Exception:
        # Both namespaces are alike.
        return


@examples(200, deadline=None)
@given(st.lists(terms, min_size=1, max_size=4), changes)
def test_reads_are_those_of_the_function(drawn, changes):
    body = " + ".join(["x", *(call.format(t=read) for call, read in drawn)])
    plain, other = made(body), made(body)
    fused = ndx.fuse(other["function"])
    for change in ["pass", *changes]:
        changed(plain, change)
        changed(other, change)
        for _ in range(2):
            with np.errstate(all="ignore"):
                expected = outcome(plain["function"], (ndx.asarray([1.0, 2.0, 3.0]),))
                found = outcome(fused, (ndx.asarray([1.0, 2.0, 3.0]),))
            assert found == expected, (body, fused.explain())
    plain.clear()
    other.clear()

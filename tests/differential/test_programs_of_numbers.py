"""Random programs of scalars, rows and accumulators, with NumPy and with `ndx.numpy`.

Names are bound, rebound, changed in place, and kept in lists, dicts and sets: what is
shared, and what is not, must be as with NumPy.
"""

import warnings

import hypothesis.strategies as st
import numpy as np
from hypothesis import given

import ndx.numpy

SCALARS = [f"v{i}" for i in range(4)]
ROWS = [f"r{i}" for i in range(3)]
OPERATORS = ["+", "-", "*", "/", "//", "%", "**"]

START = """
a = np.array({values}, dtype={dtype!r})
m = a.reshape(2, 3)
v0, v1, v2, v3 = {start}, a[0], a[1], a.sum()
r0, r1, r2 = m[0], m[1], m[:, 1]
kept, table, seen = [], {{}}, set()
"""

scalar, row = st.sampled_from(SCALARS), st.sampled_from(ROWS)
index, number = st.integers(0, 5), st.sampled_from(["2", "0.5", "-3", "True", "0"])


def line(template, **parts):
    """Return a strategy of statements; in braces are names of strategies."""
    return st.builds(template.format, **parts)


STATEMENTS = st.one_of(
    line("{a} = a[{k}]", a=scalar, k=index),
    line("{a} = {b}", a=scalar, b=scalar),
    line("{a} {o}= {b}", a=scalar, b=scalar, o=st.sampled_from(OPERATORS)),
    line("{a} {o}= {n}", a=scalar, n=number, o=st.sampled_from(OPERATORS)),
    line("{a} = {b} {o} {c}", a=scalar, b=scalar, c=scalar, o=st.sampled_from("+-*/")),
    line("{a} = {n} - {b}", a=scalar, b=scalar, n=number),
    line("{a} = -{b}", a=scalar, b=scalar),
    line("{a} = abs({b})", a=scalar, b=scalar),
    line("{a} = max({b}, {c})", a=scalar, b=scalar, c=scalar),
    line("{a} = np.sqrt(abs({b}))", a=scalar, b=scalar),
    # A sum of -0.0 alone is -0.0, and NumPy's 0.0.
    line(
        "{a} = {r}.{f}() + 0",
        a=scalar,
        r=row,
        f=st.sampled_from(["sum", "max", "mean"]),
    ),
    line(
        "{a} = np.{f}({r}) + 0",
        a=scalar,
        r=row,
        f=st.sampled_from(["sum", "min", "prod"]),
    ),
    line("for e in a: {a} = {a} + e; kept.append({a})", a=scalar),
    line("for e in {r}: {a} += e; kept.append({a})", a=scalar, r=row),
    line("{r} = m[{k} % 2]", r=row, k=index),
    line("{r} = {s}", r=row, s=row),
    line("{r} = {s} {o} {a}", r=row, s=row, a=scalar, o=st.sampled_from("+-*")),
    line("{r} += {a}", r=row, a=scalar),
    line("{r}[:] = {s}", r=row, s=row),
    line("{r} = {s}.copy()", r=row, s=row),
    line("a[{k}] = {a}", k=index, a=scalar),
    line("m[{k} % 2] += {a}", k=index, a=scalar),
    line("kept.append({a})", a=scalar),
    line("kept.append({r})", r=row),
    line("table[{a}] = {b}", a=scalar, b=scalar),
    line("seen.add({a})", a=scalar),
    line("{a} = table.get({b}, {c})", a=scalar, b=scalar, c=scalar),
    line("{a} = kept[-1]", a=scalar),
    line("{a} = sum({r})", a=scalar, r=row),
    line("{r} = np.array([{a}, {b}, {c}])", r=row, a=scalar, b=scalar, c=scalar),
    line("{r} = {s} + [{a}, 1, {b}]", r=row, s=row, a=scalar, b=scalar),
    line("if {a} > {b}: {a}, {b} = {b}, {a}", a=scalar, b=scalar),
    line("{a} = float({b})", a=scalar, b=scalar),
)


def run(namespace, statements):
    """Run a program; return its names, and which statements raised."""
    names, raised = {"np": namespace}, []
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for statement in statements:
            try:
                exec(statement, names)
            except (TypeError, ValueError, OverflowError, IndexError,
                    ZeroDivisionError, AttributeError):  # fmt: skip
                raised.append(statement)
    return names, raised


def plain(value):
    """Return what kind of thing a value is, its dtype, and Python's numbers."""
    if isinstance(value, ndx.NDArray):
        is_array = type(value) is ndx.NDArray
        kind = "array" if is_array else "number"
        return kind, str(value.dtype), np.asarray(value).tolist()
    if isinstance(value, np.ndarray):
        return "array", str(value.dtype), value.tolist()
    if isinstance(value, np.generic):
        return "number", str(value.dtype), value.item()
    return type(value).__name__, "", value


@st.composite
def programs(draw):
    dtype = draw(st.sampled_from(["float64", "int64"]))
    values = draw(st.lists(st.integers(-3, 9), min_size=6, max_size=6))
    start = draw(st.sampled_from(["0.0", "0", "a[2]", "1"]))
    first = START.format(values=values, dtype=dtype, start=start)
    return [first, *draw(st.lists(STATEMENTS, min_size=1, max_size=12))]


@given(programs())
def test_a_program_gives_what_it_gives_with_numpy(program):
    theirs, their_errors = run(np, program)
    ours, our_errors = run(ndx.numpy, program)
    assert our_errors == their_errors
    for name in [*SCALARS, *ROWS, "a", "m"]:
        assert repr(plain(ours[name])) == repr(plain(theirs[name])), name
    assert repr([*map(plain, ours["kept"])]) == repr([*map(plain, theirs["kept"])])
    assert len(ours["table"]) == len(theirs["table"])
    found = [(plain(key), plain(value)) for key, value in ours["table"].items()]
    wanted = [(plain(key), plain(value)) for key, value in theirs["table"].items()]
    assert repr(found) == repr(wanted)
    assert len(ours["seen"]) == len(theirs["seen"])
    # What names share is the same, too.
    for first in SCALARS + ROWS:
        for second in SCALARS + ROWS:
            if type(theirs[first]) is np.ndarray:
                assert (ours[first] is ours[second]) == (
                    theirs[first] is theirs[second]
                )

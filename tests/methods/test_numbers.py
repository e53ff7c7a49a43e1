"""Numbers: elements, reductions, what is computed of them; NumPy's scalars judge."""

import collections
import copy
import datetime as dt
import decimal
import fractions
import gc
import json
import math
import numbers
import operator
import pickle
import statistics
import struct
import time
import warnings

import array_api_compat
import hypothesis.strategies as st
import numpy as np
import pytest
from helpers.dtypes import ALL
from helpers.patterns import pool
from hypothesis import given

import ndx
import ndx.numpy
import ndx.numpy as face

CLASSES = [
    bool, int, float, complex, numbers.Integral, numbers.Real, numbers.Complex,
    numbers.Number, np.generic, np.number, np.integer, np.floating, np.inexact,
    np.complexfloating, np.signedinteger, np.unsignedinteger, np.bool_, np.int8,
    np.int64, np.uint8, np.float32, np.float64, np.complex128, np.ndarray,
]  # fmt: skip


def number(dtype, value=1):
    return ndx.full(3, value, dtype=dtype)[1]


def is_number(x):
    """Whether a result is a number, which NumPy would return as a scalar."""
    return isinstance(x, ndx.NDArray) and type(x) is not ndx.NDArray


# ---------------------------------------------------------------- what is a number


@pytest.mark.parametrize("dtype", ALL)
def test_a_number_is_of_the_classes_of_numpys_scalar(dtype):
    ours, theirs = number(dtype), np.ones(1, dtype)[0]
    assert isinstance(ours, ndx.NDArray)
    for kind in CLASSES:
        assert isinstance(ours, kind) == isinstance(theirs, kind), kind
    assert np.isscalar(ours)
    assert ndx.numpy.isscalar(ours)


@pytest.mark.parametrize("dtype", ALL)
def test_where_numbers_come_from(dtype):
    a = np.array([[1, 0], [1, 1]], dtype)
    x = ndx.asarray(a)
    found = {
        "x[0, 1]": x[0, 1],
        "iteration": list(x[0])[1],
        "x[1][0]": x[1][0],
        "flat": x.flat[2],
        "x[0, 1][()]": x[0, 1][()],
        "method": x.sum(),
        "all": x.all(),
        "argmax": x.argmax(),
        "face": ndx.numpy.sum(x),
        "count": ndx.numpy.count_nonzero(x),
        "x == 1": x[0, 0] == 1,
    }
    if a.dtype.kind != "b":
        found |= {
            "x + x": x[0, 0] + x[1, 1],
            "x * 2": x[0, 0] * 2,
            "1 - x": 1 - x[0, 0],
            "-x": -x[0, 0],
            "mean": x.mean(),
            "np.exp": np.exp(x[0, 0] * 1.0),
            "ndx.exp": ndx.exp(x[0, 0] + 0.0),
            "dot": x[0].dot(x[1]),
            "norm": ndx.numpy.linalg.norm(x + 0.0),
        }
    assert [name for name, each in found.items() if not is_number(each)] == []
    arrays = [
        ndx.zeros((), dtype=dtype), ndx.asarray(True), x[0, 0, ...], x[:1],
        ndx.reshape(x[0, 0], ()), ndx.asarray(x[0, 0]), np.reshape(x[:1, :1], ()),
        ndx.asarray(1, dtype=dtype)[()],
        np.sum(x), np.any(x),  # NumPy's own functions, as dask calls them
    ]  # fmt: skip
    assert not any(map(is_number, arrays))


def test_the_standard_s_reductions_are_arrays_of_the_workspace():
    with ndx.workspace("reductions"):
        total = ndx.sum(ndx.arange(3.0))
        assert not is_number(total)
        assert total.attached
        assert not ndx.arange(3.0).sum().attached


def test_an_array_stays_one_for_the_standard():
    x = ndx.asarray([1.5, 2.5])
    for dtype in ("float64", "complex128", "int64", "bool"):
        s = number(dtype)
        assert array_api_compat.array_namespace(s) is ndx
        assert array_api_compat.array_namespace(s, x) is ndx
        assert array_api_compat.is_array_api_obj(s)
        assert s.__array_namespace__() is ndx
        assert (s.shape, s.size, s.dtype, s.device) == ((), 1, dtype, "cpu")
        assert s.detach() is s
        assert (s.backend, s.workspace) == (None, None)
    assert x.tolist() == (ndx.asarray([x[0], x[1]])).tolist()


# ---------------------------------------------------------------- immutable, hashable


def test_a_running_total_keeps_its_past():
    total, history = 0.0, []
    for value in ndx.ones(3):
        total += value
        history.append(total)
    assert history == [1.0, 2.0, 3.0]
    x = ndx.ones(3)
    best = current = x[0]
    current -= 5
    assert (float(best), float(current), x.tolist()) == (1.0, -4.0, [1.0] * 3)


IN_PLACE = [
    operator.iadd, operator.isub, operator.imul, operator.itruediv, operator.ifloordiv,
    operator.imod, operator.ipow, operator.iand, operator.ior, operator.ixor,
    operator.ilshift, operator.irshift,
]  # fmt: skip


@pytest.mark.parametrize("dtype", ["int64", "uint8", "float64", "complex64", "bool"])
@pytest.mark.parametrize("change", IN_PLACE)
def test_an_in_place_operator_makes_a_new_number(dtype, change):
    ours, theirs = number(dtype), np.ones(1, dtype)[0]
    kept = ours
    try:
        expected = change(theirs, theirs)
    except TypeError:
        with pytest.raises(TypeError):
            change(ours, ours)
    else:
        found = change(ours, ours)
        assert is_number(found)
        assert found.item() == expected.item()
    assert kept is ours
    assert ours.item() == theirs.item()


@pytest.mark.parametrize("dtype", ALL)
def test_a_number_can_not_be_written_to(dtype):
    s = number(dtype)
    view = np.asarray(memoryview(s))
    for write in (
        lambda: s.__setitem__((), 0),
        lambda: s.__setitem__(..., 0),
        lambda: s.fill(0),
        lambda: ndx.add(s, s, out=s),
        lambda: setattr(s.flags, "writeable", True),
        lambda: s.setflags(write=True),
        lambda: np.add.at(s, (), 1),
        lambda: np.copyto(s, 0),
        lambda: view.__setitem__((), 0),
    ):
        with pytest.raises((TypeError, ValueError)):
            write()
    with pytest.raises(TypeError, match="ndx.asarray"):
        s[()] = 0
    s.close()
    assert s == 1
    copied = ndx.reshape(s, (1,))  # as of NumPy's scalars
    copied[0] = 0
    assert (s, copied[0]) == (1, 0)
    changed = ndx.asarray(s)
    changed[()] = 0
    assert (s, changed) == (1, 0)


@pytest.mark.parametrize("dtype", ALL)
def test_a_number_is_a_key(dtype):
    values = pool(dtype)
    for s, theirs in zip(ndx.asarray(values), values, strict=True):
        if theirs != theirs:
            assert s != s
            continue
        assert hash(s) == hash(s.item()) == hash(theirs)
        assert {s: "found"}[theirs] == {theirs: "found"}[s] == "found"
    kept = list(ndx.asarray(values))
    assert len(set(kept)) == len(set(values.tolist())) or np.isnan(values).any()
    assert collections.Counter(list(ndx.asarray([1, 2, 1]).astype(dtype)))[1] >= 2
    with pytest.raises(TypeError, match="unhashable"):
        hash(ndx.asarray(1, dtype=dtype))


# ---------------------------------------------------------------- their memory


def test_a_number_takes_nothing_of_workspace_or_backend():
    backend = ndx.backends.HostBackend(limit="64KiB")
    with ndx.use(backend):
        x = ndx.arange(100)
        before = backend.stats()
        kept = [*x, x[3] + x[4]]
        assert backend.stats() == before
        kept.append(x.sum())
    with ndx.workspace("numbers", size="4KiB") as ws:
        inside = ndx.arange(100)
        before = ws.stats()
        kept += [*inside, inside[1] * 2]
        assert ws.stats() == before
        kept.append(inside.sum())
    with ndx.workspace("numbers", size="4KiB"):
        ndx.full(300, 9)
    assert list(map(int, kept)) == [*range(100), 7, 4950, *range(100), 2, 4950]


@pytest.mark.parametrize("dtype", ALL)
def test_foreign_code_keeps_a_number_alive(dtype):
    values = pool(dtype)

    def views():
        for s in ndx.asarray(values):
            yield np.asarray(Interface(s))
            yield np.from_dlpack(s)
            yield np.asarray(memoryview(s))
            yield np.asarray(ndx.reshape(s, (1, 1)))
            yield np.frombuffer(s, dtype)
            yield np.asarray(ndx.broadcast_to(s, (2, 2))[1:, 1:])

    kept = list(views())
    gc.collect()
    others = [list(ndx.zeros(300, dtype=dtype)) for _ in range(3)]
    for i, value in enumerate(values):
        for view in kept[6 * i : 6 * i + 6]:
            assert view.tobytes() == value.tobytes()
    del others


@pytest.mark.parametrize("dtype", ALL)
def test_a_number_is_copied_and_pickled_as_one(dtype):
    for s in ndx.asarray(pool(dtype)):
        assert copy.copy(s) is s
        assert copy.deepcopy([s])[0] is s
        for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
            again = pickle.loads(pickle.dumps(s, protocol))
            assert type(again) is type(s)
            assert np.asarray(again).tobytes() == np.asarray(s).tobytes()
        made = type(s)(s.item())
        assert type(made) is type(s)


# ---------------------------------------------------------------- glue code


class Interface:
    """Shows NumPy an array's interface, and nothing else."""

    def __init__(self, array):
        self.array = array

    @property
    def __array_interface__(self):
        return self.array.__array_interface__


def outcome(function, *args):
    """Return the result of a call, or the class of its error."""
    try:
        return function(*args)
    except Exception as error:
        return type(error)


CONSUMERS = {
    "range": lambda s: list(range(s)),
    "list repetition": lambda s: [0] * s,
    "slice": lambda s: [1, 2, 3][:s],
    "index": lambda s: [1, 2, 3][s],
    "hex": hex,
    "chr": chr,
    "%d": lambda s: "%d".__mod__(s),
    "%x": lambda s: "%x".__mod__(s),
    "%5.2f": lambda s: "%5.2f".__mod__(s),
    "format": lambda s: format(s, "5.1f"),
    "f-string": lambda s: f"{s} {s:>8}",
    "str": str,
    "int": int,
    "float": float,
    "complex": complex,
    "bool": bool,
    "round": round,
    "round 1": lambda s: round(s, 1).item(),
    "divmod": lambda s: [v.item() for v in divmod(s, 2)],
    "abs": lambda s: abs(s).item(),
    "floor": math.floor,
    "ceil": math.ceil,
    "trunc": math.trunc,
    "math.sqrt": math.sqrt,
    "math.gcd": lambda s: math.gcd(s, 4),
    "fsum": lambda s: math.fsum([s, s]),
    "isclose": lambda s: math.isclose(s, s),
    "Fraction": lambda s: fractions.Fraction(s),
    "Decimal": lambda s: decimal.Decimal(s),
    "mean": lambda s: float(statistics.mean([s, s])),
    "json": lambda s: json.dumps({"a": s}),
    "pack d": lambda s: struct.pack("d", s),
    "pack q": lambda s: struct.pack("q", s),
    "timedelta": lambda s: dt.timedelta(seconds=s),
    "sleep": lambda s: time.sleep(s * 0),
    "set": lambda s: {s, s.item()} == {s},
    "Counter": lambda s: collections.Counter([s, s])[s.item()],
    "is_integer": lambda s: s.is_integer(),
    "ratio": lambda s: s.as_integer_ratio(),
    "bit_count": lambda s: s.bit_count(),
    "hex()": lambda s: s.hex(),
    "conjugate": lambda s: s.conjugate().item(),
    "real": lambda s: s.real.item(),
    "numerator": lambda s: s.numerator.item(),
    "match": lambda s: _matched(s),
    "zeros": lambda s: np.zeros(s).tolist(),
    "reshape": lambda s: np.zeros(4)[: 2 * s].reshape(s, 2).tolist(),
    "np.float64": lambda s: np.float64(s).item(),
    "np.array": lambda s: np.array([s, 1]).tolist(),
    "isnan": lambda s: bool(np.isnan(s)),
    "operator.index": operator.index,
    "nosuch": lambda s: s.nosuch,
}


def _matched(s):
    match s:
        case int():
            return "int"
        case float():
            return "float"
        case complex():
            return "complex"
    return None


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("dtype", ALL)
@pytest.mark.parametrize("name", CONSUMERS)
def test_what_takes_numpys_scalars_takes_numbers(name, dtype):
    consume = CONSUMERS[name]
    for value in (0, 1, 2) if dtype != "bool" else (0, 1):
        theirs = np.array([value], dtype)[0]
        ours = ndx.asarray([value], dtype=dtype)[0]
        expected, found = outcome(consume, theirs), outcome(consume, ours)
        if (
            np.dtype(dtype).kind == "c"
            and isinstance(found, type)
            and issubclass(found, (TypeError, ValueError, struct.error))
        ):
            continue  # NumPy drops an imaginary part with a warning, ndx refuses
        if name == "nosuch" or isinstance(expected, type):
            # Where NumPy refuses, numbers may be taken, as all arrays of ndx are.
            assert found is expected or not isinstance(found, type), (found, expected)
            continue
        assert type(found) is type(expected) or isinstance(found, ndx.NDArray)
        assert found == expected


# ---------------------------------------------------------------- arithmetic

OPERATORS = [
    operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv,
    operator.mod, operator.pow, divmod, operator.and_, operator.or_, operator.xor,
    operator.lt, operator.le, operator.eq, operator.ne, operator.gt, operator.ge,
]  # fmt: skip
SPECIAL = {
    "float64": [0.0, -0.0, 1.5, -2.5, math.inf, -math.inf, math.nan, 5e-324, 1e308],
    "int64": [0, 1, -1, 7, -7, 2**63 - 1, -(2**63), 2**53 + 1],
    "int8": [0, 7, -1, 127, -128],
    "int16": [1, -7, 2**15 - 1, -(2**15)],
    "int32": [0, 2, -1, 2**31 - 1, -(2**31)],
    "uint8": [0, 1, 255],
    "uint16": [3, 2**16 - 1],
    "uint32": [0, 7, 2**32 - 1],
    "uint64": [0, 7, 2**64 - 1],
    "float32": [0.0, 1.5, -2.5, math.inf],
    "bool": [False, True],
    "complex128": [0j, 1 + 2j],
}


def same(found, expected):
    """Whether two results have the same dtype and bits; NaN's sign doesn't count."""
    a, b = np.asarray(found), np.asarray(expected)
    return a.dtype == b.dtype and (
        a.tobytes() == b.tobytes() or bool(np.isnan(a).all() and np.isnan(b).all())
    )


@given(st.data())
def test_operators_of_numbers_are_those_of_scalars(data):
    """Values, dtypes and errors are those of NumPy's scalars; of arrays, with one."""
    kinds = st.sampled_from(sorted(SPECIAL))
    operate = data.draw(st.sampled_from(OPERATORS))
    first, second = data.draw(kinds), data.draw(kinds)
    a = np.array(data.draw(st.sampled_from(SPECIAL[first])), first)
    b = np.array(data.draw(st.sampled_from(SPECIAL[second])), second)
    s, t = ndx.asarray([a])[0], ndx.asarray([b])[0]
    x, y = ndx.asarray(a), ndx.asarray(b)
    a, b = a[()], b[()]
    pairs = [((s, t), (a, b)), ((s, b), (a, b)), ((s, y), (x, y)), ((x, t), (x, y))]
    if operate is not operator.pow:
        # NumPy's scalar leaves it to the ufunc, whose powers differ by an ulp.
        pairs.append(((a, t), (a, b)))
    if second in ("float64", "int64", "bool", "complex128"):
        pairs += [((s, b.item()), (a, b.item())), ((b.item(), s), (b.item(), a))]
    for operands, others in pairs:
        with np.errstate(all="ignore"):
            expected = outcome(operate, *others)
        found = outcome(operate, *operands)
        if isinstance(expected, type):
            assert found is expected
        else:
            assert same(found, expected), (operate, operands)


@pytest.mark.parametrize("value", [2**63, -(2**63) - 1, 2**100])
def test_ints_beyond_the_dtype(value):
    s, a = number("int64"), np.int64(1)
    for operate in (operator.lt, operator.eq, operator.ge):
        assert bool(operate(s, value)) == bool(operate(a, value))
        assert bool(operate(value, s)) == bool(operate(value, a))
    with pytest.raises(OverflowError):
        s + value


def test_errstate_is_respected():
    s = number("float64", 0.0)
    with ndx.numpy.errstate(all="raise"), pytest.raises(FloatingPointError):
        s / 0.0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert math.isnan(s / 0.0)
        assert math.isinf(1.0 / s)


def test_numpys_scalars_beside_numbers():
    for dtype in ("float64", "int64", "float32", "bool"):
        for scalar in (np.float64(2), np.int64(2), np.float32(2), np.uint8(2)):
            s, t = number(dtype), np.ones(1, dtype)[0]
            assert same(s // np.array(scalar), t // np.array(scalar))
            for operate in (operator.add, operator.mul, operator.truediv, operator.lt):
                assert same(operate(s, scalar), operate(t, scalar))
                assert same(operate(scalar, s), operate(scalar, t))


GENERATORS = {
    "default_rng": lambda random, s: random.default_rng(s).integers(100),
    "sequence": lambda random, s: random.default_rng([s, s]).integers(100),
    "SeedSequence": lambda random, s: random.SeedSequence(s).generate_state(1),
    "spawn": lambda random, s: random.SeedSequence(1).spawn(s)[-1].spawn_key,
    "PCG64": lambda random, s: random.PCG64(s).random_raw(),
    "MT19937": lambda random, s: random.MT19937(s).random_raw(),
    "Philox": lambda random, s: random.Philox(s).random_raw(),
    "SFC64": lambda random, s: random.SFC64(s).random_raw(),
    "RandomState": lambda random, s: random.RandomState(s).randint(100),
    "seed": lambda random, s: (random.seed(s), random.randint(100))[1],
    "permutation": lambda random, s: random.default_rng(1).permutation(s),
    "choice": lambda random, s: random.default_rng(1).choice(s, s, replace=False),
    "integers": lambda random, s: random.default_rng(1).integers(s, size=s),
    "normal": lambda random, s: random.default_rng(1).normal(s, s, s),
    "old choice": lambda random, s: random.RandomState(1).choice(s, 2, replace=False),
}


@pytest.mark.thread_unsafe(reason="one generator is the process's")
@pytest.mark.parametrize("dtype", ["int64", "uint8", "int32"])
@pytest.mark.parametrize("name", GENERATORS)
def test_generators_take_numbers(name, dtype):
    call = GENERATORS[name]
    theirs = call(np.random, np.array([3], dtype)[0])
    ours = call(ndx.numpy.random, ndx.asarray([3], dtype=dtype)[0])
    assert np.asarray(ours).tolist() == np.asarray(theirs).tolist()


@pytest.mark.parametrize("dtype", ALL)
def test_a_number_is_no_container(dtype):
    s = number(dtype)
    for kind in (
        collections.abc.Sized, collections.abc.Iterable, collections.abc.Container,
        collections.abc.Sequence,
    ):  # fmt: skip
        assert not isinstance(s, kind)
    for use in (len, iter, list, lambda s: 1 in s):
        with pytest.raises(TypeError):
            use(s)
    assert s == pytest.approx(s)
    assert pickle.loads(pickle.dumps(type(s))) is type(s)


COMPUTED = {
    "round()": lambda f, x: round(x[1], 1),
    "round": lambda f, x: f.round(x[1], 1),
    "method round": lambda f, x: x[1].round(1),
    "method round, many": lambda f, x: x[1].round(12),
    "clip": lambda f, x: f.clip(x[1], 0, 1),
    "method clip": lambda f, x: x[1].clip(0, 1),
    "astype": lambda f, x: x[1].astype(int),
    "astype, unsafe": lambda f, x: x[1].astype("float32", casting="same_kind"),
    "copy": lambda f, x: x[1].copy(),
    "copy, kept": lambda f, x: x[1].copy(order="K"),
    "conj": lambda f, x: x[1].conj(),
    "conjugate": lambda f, x: x[1].conjugate(),
    "@": lambda f, x: x @ x,
    "det": lambda f, x: f.linalg.det(f.eye(2) * x[1]),
    "slogdet": lambda f, x: f.linalg.slogdet(f.eye(2) * x[1])[1],
}


@pytest.mark.parametrize("name", COMPUTED)
def test_what_is_computed_of_numbers_is_one(name):
    expected = COMPUTED[name](np, np.array([1.25, 2.36]))
    found = COMPUTED[name](face, face.array([1.25, 2.36]))
    assert isinstance(expected, np.generic)
    assert type(found) == type(expected)  # noqa: E721
    assert found == expected
    assert hash(found) == hash(expected)


def test_an_output_stays_an_array():
    number, out = face.array([1.26])[0], face.zeros(())
    assert number.round(1, out) is out
    assert number.clip(0, 1, out=out) is out
    assert number.conj(out) is out
    assert type(out) is ndx.NDArray


@given(st.data())
def test_operators_are_the_same_while_errors_are_reported(data):
    """The general way of operators writes its results to where numbers are read."""
    operate = data.draw(st.sampled_from(OPERATORS))
    first = data.draw(st.sampled_from([1.0, 1.5, 4.0]))
    second = data.draw(st.sampled_from([1.5, 2.5, 3.0]))
    s, t = number("float64", first), number("float64", second)
    for operands in ((s, t), (s, second), (first, t)):
        silent = outcome(operate, *operands)
        with ndx.numpy.errstate():
            ndx.numpy.seterr(all="warn")
            found = outcome(operate, *operands)
            assert repr(found) == repr(silent)
            if not isinstance(silent, (type, tuple)):
                assert bool(found == silent)
                assert float(found) == float(silent)

"""Operators with operands of other classes: NumPy's table, for every operator.

Each operation is done with an array of NumPy's and with an NDArray. The operand writes
down which of its methods are called with what. Calls and results must be alike.
"""

import decimal
import fractions
import operator

import numpy as np
import pytest

import ndx

BINARY = [
    operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv,
    operator.mod, operator.pow, operator.and_, operator.or_, operator.xor,
    operator.lshift, operator.rshift, operator.matmul, divmod,
]  # fmt: skip
COMPARISONS = [
    operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge,
]  # fmt: skip
IN_PLACE = [
    operator.iadd, operator.isub, operator.imul, operator.itruediv,
    operator.ifloordiv, operator.imod, operator.ipow, operator.iand, operator.ior,
    operator.ixor, operator.ilshift, operator.irshift, operator.imatmul,
]  # fmt: skip


def forward(compute, x, other):
    return compute(x, other)


def reflected(compute, x, other):
    return compute(other, x)


TABLE = [
    *((f, forward) for f in BINARY + COMPARISONS + IN_PLACE),
    *((f, reflected) for f in BINARY + COMPARISONS),
]
NAMES = [f"{f.__name__}-{side.__name__}" for f, side in TABLE]

# ---- operands ----------------------------------------------------------------


def is_one_of_ours(value):
    return type(value) in (ndx.NDArray, np.ndarray)


def normal(value):
    """Return a value in a form in which both kinds of arrays are alike."""
    if (
        is_one_of_ours(value)
        or isinstance(value, ndx.NDArray)
        or type(value) in np.sctypeDict.values()
    ):
        return "array", str(value.dtype), value.tolist()
    if isinstance(value, tuple):
        return tuple(map(normal, value))
    if isinstance(value, np.ma.MaskedArray):
        return type(value), value.filled(-1).tolist(), np.asarray(value.mask).tolist()
    if isinstance(value, np.ndarray):
        return type(value), str(value.dtype), value.tolist()
    return type(value), str(value)


class Noted:
    """Writes down the calls of its methods."""

    __hash__ = None

    def note(self, name, *args):
        self.calls.append((name, *map(normal, args)))
        return f"result of {name}"


def noting(name):
    return lambda self, *args: self.note(name, *args)


def with_methods(prefixes, base=Noted, **members):
    names = [f"__{p}{f.__name__.strip('_')}__" for p in prefixes for f in BINARY]
    names += [f"__{f.__name__}__" for f in COMPARISONS if prefixes]
    bases = (base,) if base is Noted else (Noted, base)
    methods = {name: noting(name) for name in names}
    return type("Operand", bases, methods | members)


def ufunc_of(self, ufunc, method, *inputs, **kwargs):
    inputs = ["self" if x is self else x for x in inputs]
    out = kwargs.pop("out", None)
    return self.note(ufunc.__name__, method, *inputs, out, sorted(kwargs))


def array_of(self, dtype=None, copy=None):
    self.calls.append("__array__")
    return np.array([3, 4])


UFUNC = {"__array_ufunc__": ufunc_of}
NO_UFUNC = {"__array_ufunc__": None}


def priority(value):
    return {"__array_priority__": value}


PROTOCOLS = {
    "ufunc": UFUNC,
    "no ufunc": NO_UFUNC,
    "high priority": priority(15.0),
    "priority between 0 and 1": priority(0.5),
    "low priority": priority(-1.0),
    "no priority": priority("high"),
    "priority that raises": {"__array_priority__": property(lambda self: 1 / 0)},
    "none": {},
    "array": {"__array__": array_of},
    "array with priority": {"__array__": array_of, **priority(15.0)},
}
OPERANDS = {}
for _name, _members in PROTOCOLS.items():
    OPERANDS[f"object, {_name}"] = with_methods(["", "r"], **_members), ()
    OPERANDS[f"object without methods, {_name}"] = with_methods([], **_members), ()
    OPERANDS[f"object in place, {_name}"] = with_methods(["r", "i"], **_members), ()
    if "__array__" not in _members:
        for _base in (int, float, complex, np.float64, np.float32, np.int16):
            OPERANDS[f"{_base.__name__}, {_name}"] = (
                with_methods(["", "r"], _base, **_members),
                (3,),
            )


def outcome(compute, side, x, make):
    other = make()
    if isinstance(other, Noted):
        other.calls = calls = []
    else:
        calls = []
    try:
        result = normal(side(compute, x, other))
    except (TypeError, ValueError, ZeroDivisionError) as error:
        result = next(
            kind
            for kind in (TypeError, ValueError, ZeroDivisionError)
            if isinstance(error, kind)
        )
    return calls, result, x.tolist()


def check(compute, side, make, values):
    with np.errstate(all="ignore"):
        expected = outcome(compute, side, np.array(values), make)
        found = outcome(compute, side, ndx.asarray(values), make)
    assert found == expected


@pytest.mark.parametrize("values", [[5, 7], 5], ids=["1d", "0d"])
@pytest.mark.parametrize(("compute", "side"), TABLE, ids=NAMES)
def test_each_operator_asks_an_operand_as_numpys_arrays_do(compute, side, values):
    for cls, args in OPERANDS.values():
        check(compute, side, lambda cls=cls, args=args: cls(*args), values)


# ---- subclasses of NumPy's array, and operands that NumPy converts -------------


class Plain(np.ndarray):
    """Has no methods of its own."""


class Labelled(np.ndarray):
    """Labels what is computed of it."""

    def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
        plain = [np.asarray(x) for x in inputs]
        if kwargs.get("out"):
            kwargs["out"] = tuple(np.asarray(x) for x in kwargs["out"])
        result = getattr(ufunc, method)(*plain, **kwargs)
        return "labelled", ufunc.__name__, np.asarray(result).tolist()


class Refusing(np.ndarray):
    __array_ufunc__ = None

    def __radd__(self, other):
        return "added", type(other).__name__ in ("ndarray", "NDArray")


CONVERTED = {
    "matrix": lambda: np.array([[1, 2], [3, 4]]).view(np.matrix),
    "masked": lambda: np.ma.array([1, 2], mask=[0, 1]),
    "masked constant": lambda: np.ma.masked,
    "memmap": lambda: np.ones(2, int).view(np.memmap),
    "record array": lambda: np.array([1, 2]).view(np.recarray),
    "plain subclass": lambda: np.array([1, 2]).view(Plain),
    "subclass with a ufunc": lambda: np.array([1, 2]).view(Labelled),
    "subclass without ufuncs": lambda: np.array([1, 2]).view(Refusing),
    "objects": lambda: np.array([decimal.Decimal(3), 4], object),
    "float16": lambda: np.array([1, 2], "f2"),
    "longdouble": lambda: np.array([1, 2], "g"),
    "element of longdouble": lambda: np.longdouble(2),
    "swapped": lambda: np.array([1, 2], ">i4"),
    "durations": lambda: np.array([1, 2], "m8[s]"),
    "duration": lambda: np.timedelta64(3, "s"),
    "strings": lambda: np.array(["a", "b"]),
    "fraction": lambda: fractions.Fraction(1, 2),
    "decimal": lambda: decimal.Decimal(2),
    "object": lambda: vars,
    "dict": dict,
    "polynomial": lambda: np.polynomial.Polynomial([1, 2]),
    "poly1d": lambda: np.poly1d([1, 2]),
}


@pytest.mark.filterwarnings("ignore:the matrix subclass:PendingDeprecationWarning")
@pytest.mark.parametrize(("compute", "side"), TABLE, ids=NAMES)
@pytest.mark.parametrize("name", CONVERTED)
def test_each_operator_with_what_numpy_converts(name, compute, side):
    check(compute, side, CONVERTED[name], [[5, 7], [1, 2]])
    if name != "matrix":
        check(compute, side, CONVERTED[name], [5, 7])


def test_errors_of_a_conversion_are_raised():
    class Broken:
        def __array__(self, dtype=None, copy=None):
            raise LookupError

    x = ndx.asarray([0, 1])
    for compute in BINARY + COMPARISONS + IN_PLACE:
        with pytest.raises(LookupError):
            compute(x, Broken())
    with pytest.raises(LookupError):
        Broken() in x  # noqa: B015


# ---- fused functions -----------------------------------------------------------

FUSED = [f for f in BINARY if f not in (operator.matmul, divmod)] + COMPARISONS


@pytest.mark.parametrize("name", [n for n in OPERANDS if OPERANDS[n][1]])
def test_fused_functions_ask_numbers_that_compute_themselves(name):
    cls, args = OPERANDS[name]

    def done(decorate, compute, side):
        other = cls(*args)
        other.calls = []
        function = decorate(lambda x: side(compute, x, other))
        try:
            return normal(function(ndx.asarray([5, 7]))), other.calls
        except TypeError:
            return TypeError

    for compute in FUSED:
        for side in (forward, reflected):
            expected = done(lambda f: f, compute, side)
            assert done(ndx.fuse, compute, side) == expected


@pytest.mark.parametrize("name", ["eq", "ne"])
def test_arrays_that_compare_with_none_of_ours_are_not_compared_by_identity(name):
    class Tensor:
        __array_priority__ = 1000
        __hash__ = None

        def __eq__(self, other):
            return "equal" if type(other) is Tensor else NotImplemented

        __ne__ = __eq__

        def __dlpack__(self):
            raise AssertionError

    class Comparing(Tensor):
        def __eq__(self, other):
            return name

        __ne__ = __eq__

    compare = getattr(operator, name)
    x = ndx.ones(3)
    for pair in ((x, Tensor()), (Tensor(), x), (x[0], Tensor()), (Tensor(), x[0])):
        with pytest.raises(TypeError, match="with a .*Tensor; convert"):
            compare(*pair)
    assert compare(x, Comparing()) == name
    assert compare(Comparing(), x) == name

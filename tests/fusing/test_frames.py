"""The walk along bytecode computes what Python does, in each version of Python."""

import functools
import math

import pytest
from fusing.compare import outcome

import ndx

SCALE = 3
TABLE = {"a": 1, "b": [1, 2, (3, 4)]}
ITEMS = [1, 2, 3]


class Thing:
    k = 2

    def __init__(self):
        self.x = 5
        self.items = [1, 2]

    def method(self, a, *, b=1):
        return a * self.x + b + self.k

    @property
    def doubled(self):
        return self.x + SCALE

    @classmethod
    def of_class(cls, a):
        return a + cls.k

    @staticmethod
    def of_none(a):
        return a - 1

    def __call__(self, a):
        return a * 100


THING = Thing()


def parameters(first, second=2, *c, d=4, **e):
    return first, second, c, d, len(e), e.get("z")


def only(a, /, b=1, *args, c, **options):
    return a, b, args, c, options


def loops(a):
    found = []
    for i, x in enumerate([1, 2, 3]):
        if x > 1 and a:
            found.append(x * i)
        elif x == 1 or not a:
            continue
        else:
            break
    else:
        found.append("else")
    for i in range(3):
        for j in range(3):
            if j == a:
                break
        else:
            continue
        if i == 1:
            return found, i, j
    n = 0
    while True:
        n += 1
        if n > a + 3:
            break
        if n == 2:
            continue
    return found, n


def calls(a):
    return (
        parameters(a), parameters(a, 1, 2, 3, d=5, z=6), parameters(second=1, first=a),
        parameters(*[a, 2], **{"d": a}), parameters(*(a,), *ITEMS, **TABLE, w=1),  # noqa: PIE804
        only(a, c=1), only(a, 2, 3, c=4, d=5),
    )  # fmt: skip


def comprehensions(a):
    return (
        [i * a for i in range(4) if i % 2], {i: i + a for i in range(3)},
        sum({i for i in (a, 1)}), sum(i * a for i in range(5)),  # noqa: C416
        [[i * j for j in range(2)] for i in range(a)],
        [(lambda: i)() for i in range(2)], [f(a) for f in
        [lambda v: v + i for i in range(3)]],  # noqa: B023
        {k: v for k, v in TABLE.items() if k == "a"}, any(i > 1 for i in ITEMS),
        all(i for i in ITEMS), tuple(i for i in ITEMS if i != a),
    )  # fmt: skip


def unpacking(a):
    b, *c = [a, 2, 3]
    (d, e), f = (1, 2), 3
    c[0] = 9
    c[1:] = [7, 8]
    return b, c, d, e, f, c[::-1], ITEMS[1:], TABLE["b"][2][0], [*ITEMS, a], (*ITEMS, a)


def conditions(a):
    nothing = None
    first = nothing or a, nothing and a, a or nothing, (a and nothing) or 5
    return (
        first, -a, +a, ~a, not a, a if a > 1 else 0, 1 < a < 5, a is None,
        a is not None, a in ITEMS, a not in (1, 2), "a" in TABLE, a != 2, a <= 1,
        1 if nothing is None and a is not None else 2,
    )  # fmt: skip


def operators(a):
    x = y = a
    x += 1
    y *= 2
    x //= 1
    x **= 2
    x <<= 1
    x |= 1
    x &= 255
    x ^= 3
    x %= 50
    x -= 1
    x >>= 1
    if (n := a + 1) > 2:
        a = n
    del n
    return x, y, a, a / 2, {**TABLE, "b": 1}, f"{a:>4}{a!r}{ITEMS[0]}", "x%s" % a  # noqa: UP031


def exceptions(a):
    found = 0
    try:
        found = [1][a]
    except IndexError:
        found = "caught"
    except (ValueError, KeyError) as error:
        found = type(error) is ValueError
    else:
        found = "else"
    finally:
        after = 1
    try:
        int("z")
    except ValueError:
        try:
            TABLE["k"]
        except KeyError:
            return found, after, "nested"
    return None


def exceptions_in_loops(a):
    found = 0
    for x in ITEMS:
        try:
            if x == 2:
                [][a]
            found += x
        except IndexError:
            found += 100
            continue
        finally:
            found += 1000
    return found


def functions(a):
    k = 1

    def inner(x, y=2, *, z=3):
        nonlocal k
        k += x
        return k * y + z + a

    def recursive(n):
        return 1 if n < 2 else n * recursive(n - 1)

    return inner(1), inner(2, 3, z=1), inner(*(1,), y=4), k, recursive(a + 2)


def generators(a):
    def numbers(n):
        for i in range(n):
            yield i * a

    scaled = (x * k for x in [1, 2] for k in (a,))
    three = numbers(3)
    first = next(three)
    return (
        first, list(three), sum(scaled), any(x > 1 for x in numbers(4)),
        tuple(numbers(2)), max(numbers(3)), next(numbers(0), "none"),
    )  # fmt: skip


def methods(a):
    return (
        THING.method(a), THING.method(a, b=2), THING.doubled, THING.of_class(a),
        THING.of_none(a), Thing.of_none(a), Thing.of_class(a), THING(a), THING.x,
        THING.items[0], len(THING.items), list(THING.items), getattr(THING, "z", 7),
        hasattr(THING, "x"), isinstance(THING, Thing), isinstance(a, int),
        type(THING) is Thing, type(a) is int, THING.__class__ is Thing,
    )  # fmt: skip


def builtins(a):
    return (
        functools.reduce(lambda p, q: p * q, [1, 2, a]), sorted([3, 1, a]),
        list(zip(ITEMS, ITEMS, strict=True)), list(reversed(ITEMS)),
        dict(zip("a", [a], strict=True)),
        TABLE.get("q", a), list(TABLE), min(a, 2), abs(-a), divmod(7, a + 1),
        round(2.5), str(a), float(a), "".join(["a", "b"]), "a-b".partition("-"),
        (1, 2).index(2), list(map(lambda v: v + a, ITEMS)),  # noqa: C417
        list(filter(None, [0, a])), bool(a), int("3"), max(ITEMS), sum(ITEMS, a),
    )  # fmt: skip


def imports(a):
    import math as m
    from math import floor, pi

    return floor(pi * a), m.sqrt(4), math.fabs(-a)


FUNCTIONS = [
    loops, calls, comprehensions, unpacking, conditions, operators, exceptions,
    exceptions_in_loops, functions, generators, methods, builtins, imports,
]  # fmt: skip


@pytest.mark.parametrize("function", FUNCTIONS)
def test_python_is_computed_as_python_does(function):
    def call(x, a):
        return x * 2, function(a)

    fused = ndx.fuse(call)
    for a in (0, 1, 2, 3):
        for _ in range(2):
            args = ndx.ones(3), a
            assert outcome(fused, args) == outcome(call, args), fused.explain()
    assert "called as it is" not in fused.explain(), fused.explain()


@pytest.mark.parametrize("function", [
    lambda a: print(end="") or a,
    lambda a: Thing().x,
    lambda a: open("/dev/null").close() or a,
    lambda a: id(a) > 0,
    lambda a: eval("a"),
    lambda a: len(locals()),
    lambda a: super,
    lambda a: sorted(ITEMS, key=lambda v: -v),
    lambda a: ITEMS.sort(),
    lambda a: len(ITEMS, a),
    lambda a: parameters(),
    lambda a: a / 0,
    lambda a: undefined,  # noqa: F821
    lambda a: THING.undefined,
    lambda a: ITEMS[99],
    lambda a: loops(a, a),
    lambda a: ITEMS + a,
    lambda a: {}[a],
])  # fmt: skip
def test_what_is_not_followed_is_called(function):
    def call(x, a):
        return x * 2, function(a)

    fused = ndx.fuse(call)
    for _ in range(2):
        args = ndx.ones(3), 2
        assert outcome(fused, args) == outcome(call, args)
    assert "called as it is" in fused.explain()

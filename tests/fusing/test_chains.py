"""Chains: steps of arithmetic that are computed in registers, as the plain ones are."""

import numpy as np
import pytest
from fusing.compare import assert_as_plain, outcome

import ndx
from ndx._fusing import chains

SPECIAL = [0.0, -0.0, 1.0, -1.5, np.inf, -np.inf, np.nan, 5e-324, 1e300, -3.25]

FUNCTIONS = {
    "polynomial": lambda a, b, c: ((0.3 * a - 1.2) * a + 0.7) * a - 0.5,
    "merged": lambda a, b, c: ((a + b) * c + a) * ((b - a) * c - b) - (c - (a + c) * b),
    "quotients": lambda a, b, c: (a + b) / c + 1.0 / (a - c) + (3.0 - (a + b)) + a / b,
    "unary": lambda a, b, c: abs(-(a * b)) + ndx.sqrt(c + 2.0) - ndx.sqrt(ndx.abs(b)),
    "squares": lambda a, b, c: (a - b) ** 2 + (c * c) * (c * c) + ndx.square(a) / b,
    "kept": lambda a, b, c: (a + b) * (a - b) + (b + c) * (b - c) / ((a + b) * (a - c)),
    "signs": lambda a, b, c: -(a - a) + -0.0 * b + c * 0.0,
    "mask first": lambda a, b, c: ndx.where(a * b > 0.7, a * 1.5, b - 0.1 * c),
    "mask last": lambda a, b, c: ndx.where(a >= 0.5, 1.0, a * b + c),
    "mask between": lambda a, b, c: ndx.where(a != b, a - b, -0.0) + ndx.where(
        a >= c, a, b + c),
    "chosen twice": lambda a, b, c: ndx.where(a < b, ndx.where(b == c, a, 2.0), a + c),
    "turned": lambda a, b, c: ndx.where(a < b + c, a + b, c)
    + ndx.where(a <= b - c, b, c) + ndx.where(a > b * c, c, a)
    + ndx.where(a >= b / c, 0.5, a),
    "mask used twice": lambda a, b, c: twice(a > b, a, c),
    "mask returned": lambda a, b, c: (a + b > c, ndx.where(a + b > c, a * b, c)),
    "mask of both": lambda a, b, c: ndx.where((a > 0) & (b + c < 1), a + b, c * 2.0),
    "two results": lambda a, b, c: (a * b + c, (a * b + c) * a - b),
    "sum": lambda a, b, c: (a - b) * (a - b) + c,
    "with others": lambda a, b, c: ndx.maximum(a * b + c, b - c) * 2.0 + ndx.floor(a),
}  # fmt: skip


def twice(mask, a, c):
    """Return a function of a mask that two selections use."""
    return ndx.where(mask, a + c, c) * ndx.where(mask, c, a - c)


def values(dtype, shape, seed):
    """Return numbers, one of ten of them special."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal(shape)
    special = rng.random(shape) < 0.1
    x[special] = rng.choice(SPECIAL, special.sum())
    with np.errstate(over="ignore"):
        return x.astype(dtype)


def operands(dtype, shape, cut=lambda x: x):
    """Return a maker of three parts of arrays."""
    return lambda: [
        cut(ndx.asarray(values(dtype, shape, seed), copy=True)) for seed in range(3)
    ]


@pytest.fixture(autouse=True)
def _quiet():
    with np.errstate(all="ignore"):
        yield


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_results_are_equal_to_the_last_bit(name, dtype):
    makers = [
        *(operands(dtype, n) for n in (1, 7, 8, 15, 64, 65, 127, 1000, 4099, 9000)),
        operands(dtype, 700, lambda x: x[::2]),
        operands(dtype, 700, lambda x: x[::-1]),
        operands(dtype, (40, 90), lambda x: x[:, 3:70]),
        operands(dtype, (6, 300), lambda x: x[1:, ::3]),
        operands(dtype, (7, 5), lambda x: x.T),
        operands(dtype, (80, 8), lambda x: x[:, :3]),
    ]
    for make in makers:
        b = make()[1]
        assert_as_plain(
            FUNCTIONS[name], make, lambda b=b, make=make: [make()[0], b[:1], make()[2]]
        )


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_operands_of_other_strides_and_results_in_them(dtype):
    def step(a, b, c):
        a += 2.0 * b - c
        c[...] = ndx.where(a > b, a * b, c + 1.0)
        return a

    for n in (1, 9, 64, 200, 3000):
        assert_as_plain(
            step,
            operands(dtype, n),
            operands(dtype, 3 * n, lambda x: x[::3]),
            operands(dtype, n, lambda x: x[::-1]),
            operands(dtype, (5, n), lambda x: x[1:4]),
            operands(dtype, (n, 5), lambda x: x[:, 1:4]),
        )


def test_memory_that_is_not_aligned():
    def make():
        raw = [np.zeros(8 * 301 + 1, "uint8")[1:] for _ in range(3)]
        found = []
        for seed, memory in enumerate(raw):
            x = memory.view("float64")
            x[...] = values("float64", 301, seed)
            found.append(x)
        return found

    fused = ndx.fuse(FUNCTIONS["kept"])
    expected = outcome(FUNCTIONS["kept"], make())
    assert outcome(fused, make()) == expected


def test_all_orders_are_used(monkeypatch):
    used = set()

    class Recorded(chains._Chain):
        def lowered(self):
            step = super().lowered()
            used.update(code for code, _, _ in step.chain[1])
            return step

    monkeypatch.setattr(chains, "_Chain", Recorded)
    for function in FUNCTIONS.values():
        ndx.fuse(function)(*operands("float64", 300)())
    names = {code: name for name, code in chains.CODES.items()}
    assert {names[code] for code in used} == set(chains.CODES)


@pytest.mark.skipif(not chains.CODES, reason="the compiler has no vectors")
def test_what_is_one_chain_needs_no_registers():
    for name in ("polynomial", "merged", "mask first", "kept"):
        fused = ndx.fuse(FUNCTIONS[name])
        fused(*operands("float64", 3000)())
        assert ", 0 registers" in fused.explain()


def test_long_chains_are_cut():
    def long(a, b, c):
        x = a
        for i in range(40):
            x = (x + b) * c - a / (i + 1.5)
        return x

    def wide(*arrays):
        x = arrays[0]
        for y in arrays:
            x = x * y + y
        return x

    def many_kept(a, b, c):
        parts = [(a + i) * (b - i) for i in range(30)]
        x = c
        for part in parts:
            x = x * 0.5 + part
        return x

    for function in (long, many_kept):
        assert_as_plain(function, operands("float64", 500))
    make = operands("float64", 99)
    assert_as_plain(wide, lambda: [x for _ in range(5) for x in make()])


@pytest.mark.skipif(not chains.CODES, reason="the compiler has no vectors")
def test_what_was_computed_before_is_not_computed_again():
    fused = ndx.fuse(FUNCTIONS["sum"])
    fused(*operands("float64", 3000)())
    assert ": subtract multiply add\n" in fused.explain()

"""What the sweep times: functions, operators and methods, by group.

Each case is a line of Python that both sides run. `xp` in it is NumPy, `ndx`, or
`ndx.numpy` (`np`, on both sides); the other names are operands of `n` elements, made by
`operands`.
"""

import math
from typing import NamedTuple

import numpy as np

import ndx
import ndx.numpy

ALL_SIZES = (1, 100, 10_000, 1_000_000, 10_000_000)
# Quadratic or cubic in the side, or with a list: the largest sizes say nothing new.
SMALLER = ALL_SIZES[:4]
SMALL = ALL_SIZES[:3]

FLOATS = ("float64", "float32")
NUMBERS = ("float64", "float32", "int64")
REALS = ("float64", "float32", "int64", "int32", "uint8")
COMPLEX = ("complex128",)

# The layouts of operands. In all but the first, operands are views of larger arrays.
LAYOUTS = ("strided", "reversed", "short", "transposed", "row", "column", "narrow")


class Case(NamedTuple):
    """A line to time, for each of its sizes, dtypes and layouts.

    `torch` and `numexpr` are the same line for these libraries, where they have it: an
    expression of `torch` and tensors, and the text that ``numexpr.evaluate`` takes.
    """

    group: str
    code: str
    dtypes: tuple = ("float64",)
    layouts: tuple = ()
    sizes: tuple = ALL_SIZES
    torch: str | None = None
    numexpr: str | None = None


def _unary(names, dtypes=FLOATS, layouts=()):
    return [
        Case(
            "elementwise",
            f"xp.{name}({'u' if name in UNIT else 'p' if name in POSITIVE else 'a'})",
            dtypes,
            layouts,
        )
        for name in names.split()
    ]


UNIT = {"acos", "asin", "atanh"}
POSITIVE = {"acosh", "log", "log10", "log1p", "log2", "sqrt", "reciprocal"}


def cases():
    """Return all cases."""
    return [
        *_creation(),
        *_elementwise(),
        *_operators(),
        *_reductions(),
        *_indexing(),
        *_searching(),
        *_manipulation(),
        *_linear_algebra(),
        *_methods(),
        *_loops(),
    ]


def _creation():
    group = "creation"
    return [
        Case(group, "xp.empty(n)"),
        Case(group, "xp.zeros(n)"),
        Case(group, "xp.zeros(n).__iadd__(1.0)"),
        Case(group, "xp.ones(n)"),
        Case(group, "xp.full(n, 2.5)"),
        Case(group, "xp.empty_like(a)"),
        Case(group, "xp.zeros_like(a)"),
        Case(group, "xp.full_like(a, 3)"),
        Case(group, "xp.arange(n)"),
        Case(group, "xp.arange(0.0, n)"),
        Case(group, "xp.linspace(0.0, 1.0, n)"),
        Case(group, "xp.eye(side)"),
        Case(group, "xp.tril(m)"),
        Case(group, "xp.asarray(numbers)", sizes=SMALL),
        Case(group, "xp.asarray(whole_numbers)", sizes=SMALL),
        Case(group, "xp.asarray(rows)", sizes=SMALL),
        Case(group, "xp.asarray(2.5)", sizes=(1,)),
        Case(group, "xp.asarray(plain)"),
        Case(group, "xp.asarray(a, copy=True)", REALS, ("strided", "transposed")),
        Case(group, "xp.meshgrid(row, row)", sizes=SMALLER),
    ]


def _elementwise():
    group = "elementwise"
    return [
        *_unary("exp sin cos tanh log sqrt", layouts=("strided", "short")),
        *_unary("abs negative square sign floor", NUMBERS, ("strided", "short")),
        *_unary("isnan isfinite", FLOATS, ("strided",)),
        *_unary(
            "acos acosh asin asinh atan atanh ceil cosh expm1 log10 log1p log2 "
            "reciprocal sinh tan trunc signbit logical_not",
            ("float64",),
        ),
        *_unary("abs conj real imag exp", COMPLEX),
        Case(group, "xp.add(a, b)", (*REALS, *COMPLEX), LAYOUTS, torch="a + b"),
        Case(group, "xp.multiply(a, b)", REALS),
        Case(group, "xp.divide(a, b)", NUMBERS, ("strided", "row")),
        Case(
            group,
            "xp.maximum(a, b)",
            REALS,
            ("strided", "short"),
            torch="t.maximum(a, b)",
        ),
        Case(group, "xp.minimum(a, b)", FLOATS),
        Case(group, "xp.hypot(a, b)", FLOATS),
        Case(group, "xp.atan2(a, b)"),
        Case(group, "xp.copysign(a, b)", FLOATS),
        Case(group, "xp.logaddexp(a, b)"),
        Case(group, "xp.nextafter(a, b)"),
        Case(group, "xp.floor_divide(a, b)", NUMBERS),
        Case(group, "xp.remainder(a, b)", NUMBERS),
        Case(group, "xp.pow(p, 2.5)", FLOATS),
        Case(group, "xp.pow(a, 3)", NUMBERS),
        Case(group, "xp.logical_and(mask, other)"),
        Case(group, "xp.bitwise_xor(i, i)"),
        Case(
            group,
            "xp.clip(a, -0.5, 0.5)",
            FLOATS,
            ("strided", "short"),
            torch="t.clip(a, -0.5, 0.5)",
        ),
        Case(group, "xp.clip(a, 1, 3)", ("int64", "int32")),
        Case(
            group,
            "xp.where(mask, a, b)",
            REALS,
            ("strided", "short", "row"),
            torch="t.where(mask, a, b)",
            numexpr="where(mask, a, b)",
        ),
        Case(group, "xp.where(mask, a, 0)", FLOATS),
        Case(
            group,
            "xp.astype(a, xp.float32)",
            ("float64", "int64", "int32"),
            ("strided", "short"),
        ),
        Case(group, "xp.astype(a, xp.float64)", ("float32", "int64", "int32", "uint8")),
        Case(group, "xp.astype(a, xp.int64)", ("float64", "int32")),
        Case(group, "xp.astype(a, xp.bool)", ("float64", "int64")),
        Case(
            group,
            "xp.exp(a)",
            ("float64", "float32"),
            torch="t.exp(a)",
            numexpr="exp(a)",
        ),
    ]


def _operators():
    group = "operators"
    return [
        Case(
            group,
            "a + b",
            (*NUMBERS, *COMPLEX),
            LAYOUTS,
            torch="a + b",
            numexpr="a + b",
        ),
        Case(group, "a - b", NUMBERS, ("row", "narrow")),
        Case(group, "a * 2", NUMBERS, ("strided", "short"), torch="a * 2"),
        Case(group, "a * 2.0", FLOATS),
        Case(group, "2.0 / a", FLOATS),
        Case(group, "a ** 2", NUMBERS, torch="a ** 2", numexpr="a ** 2"),
        Case(group, "a ** 0.5", FLOATS),
        Case(group, "-a", NUMBERS),
        Case(group, "a < b", NUMBERS, ("short", "row"), torch="a < b"),
        Case(group, "a == 0", NUMBERS),
        Case(group, "mask & other"),
        Case(group, "~mask"),
        Case(group, "a + f32", ("float64", "int64")),
        Case(group, "a * mask"),
        Case(group, "a += b", FLOATS, ("strided", "short", "row")),
        Case(group, "a *= 1.0", FLOATS),
        Case(
            group,
            "a*b + b*b - a",
            FLOATS,
            torch="a*b + b*b - a",
            numexpr="a*b + b*b - a",
        ),
        Case(group, "(a - a.mean()) / a.std()"),
    ]


def _reductions():
    group = "reductions"
    whole = [
        Case(
            group,
            f"xp.{name}(a)",
            NUMBERS,
            ("strided", "short", "transposed"),
            torch=f"t.{name}(a)" if name in ("sum", "max", "prod") else None,
        )
        for name in ("sum", "prod", "max", "min")
    ]
    some = [
        Case(group, f"xp.{name}(m, axis={axis})", FLOATS)
        for name in ("sum", "max", "mean", "std")
        for axis in (0, 1)
    ]
    return [
        *whole,
        *some,
        Case(group, "xp.mean(a)", FLOATS, ("strided",), torch="t.mean(a)"),
        Case(group, "xp.std(a)", FLOATS, torch="t.std(a, correction=0)"),
        Case(group, "xp.var(a)", FLOATS, torch="t.var(a, correction=0)"),
        Case(group, "np.any(mask)"),
        Case(group, "np.all(mask)"),
        Case(group, "xp.argmax(a)", NUMBERS),
        Case(group, "xp.argmin(m, axis=1)"),
        Case(group, "xp.count_nonzero(mask)"),
        Case(group, "xp.count_nonzero(a)", NUMBERS),
        Case(group, "xp.cumulative_sum(a)", NUMBERS),
        Case(group, "xp.cumulative_sum(m, axis=0)"),
        Case(group, "xp.cumulative_prod(u)"),
        Case(group, "xp.diff(a)", NUMBERS),
        Case(group, "xp.sum(narrow, axis=1)"),
        Case(group, "xp.sum(narrow, axis=0)"),
        Case(group, "xp.max(narrow, axis=1)"),
    ]


def _indexing():
    group = "indexing"
    return [
        Case(group, "a[0]", sizes=(1, 10_000)),
        Case(group, "m[0, 0]", sizes=(1, 10_000)),
        Case(group, "m[0]"),
        Case(group, "m[:, 0]"),
        Case(group, "a[::2]"),
        Case(group, "m[:, None]"),
        Case(group, "a[mask]", NUMBERS, ("strided",)),
        Case(group, "a[rare]"),
        Case(group, "m[wide]"),
        Case(group, "a[i]", NUMBERS),
        Case(group, "m[j]"),
        Case(group, "m[j, j]"),
        Case(group, "m[:, j]"),
        Case(group, "a[0] = 1", sizes=(1, 10_000)),
        Case(group, "m[0, 0] = 1", sizes=(1, 10_000)),
        Case(group, "m[0] = 1"),
        Case(group, "a[:] = b", (*NUMBERS, "uint8"), ("strided", "short")),
        Case(group, "a[:] = 0", NUMBERS, ("strided", "short")),
        Case(group, "a[mask] = 0", NUMBERS),
        Case(group, "a[i] = 0"),
        Case(group, "a[i] = b"),
        Case(group, "m[j, j] = 0"),
        Case(group, "xp.take(a, i)", NUMBERS),
        Case(group, "xp.take(m, j, axis=0)"),
        Case(group, "xp.take(m, j, axis=1)"),
        Case(group, "xp.take_along_axis(a, i)"),
    ]


def _searching():
    group = "searching"
    return [
        Case(group, "xp.nonzero(mask)"),
        Case(group, "xp.nonzero(a)", NUMBERS),
        Case(group, "xp.nonzero(wide)"),
        Case(group, "xp.searchsorted(s, b)", NUMBERS),
        Case(group, "xp.sort(a)", NUMBERS, ("strided",), torch="t.sort(a)"),
        Case(group, "xp.sort(m, axis=0)"),
        Case(group, "xp.argsort(a)", NUMBERS),
        Case(group, "xp.unique_values(k)"),
        Case(group, "xp.unique_counts(k)"),
        Case(group, "xp.unique_inverse(k)"),
        Case(group, "xp.unique_all(k)", sizes=SMALLER),
        Case(group, "xp.isin(k, few)"),
    ]


def _manipulation():
    group = "manipulation"
    return [
        Case(group, "xp.concat([a, b])", (*NUMBERS, "uint8")),
        Case(group, "xp.concat([m, m], axis=1)"),
        Case(group, "xp.stack([a, b])", NUMBERS),
        Case(group, "xp.stack([a, b], axis=1)"),
        Case(group, "xp.unstack(three)"),
        Case(group, "xp.repeat(a, 2)", NUMBERS),
        Case(group, "xp.repeat(m, 2, axis=0)"),
        Case(group, "xp.tile(a, (2,))"),
        Case(group, "xp.roll(a, 1)", NUMBERS),
        Case(group, "xp.roll(m, 1, axis=1)"),
        Case(group, "xp.flip(a)"),
        Case(group, "xp.reshape(a, (-1,))"),
        Case(group, "xp.reshape(m.T, (-1,))"),
        Case(group, "xp.permute_dims(m, (1, 0))"),
        Case(group, "xp.matrix_transpose(m)"),
        Case(group, "xp.expand_dims(a, axis=0)"),
        Case(group, "xp.squeeze(line, axis=0)"),
        Case(group, "xp.moveaxis(m, 0, 1)"),
        Case(group, "xp.broadcast_to(row, (side, side))"),
        Case(group, "xp.broadcast_arrays(m, row)"),
        Case(group, "m.T + m"),
    ]


def _linear_algebra():
    group = "linalg"
    small = (1, 100, 10_000)
    return [
        Case(group, "m @ m", FLOATS, sizes=SMALLER, torch="m @ m"),
        Case(group, "m @ row", sizes=ALL_SIZES),
        Case(group, "xp.matmul(stack, stack)", sizes=SMALLER),
        Case(group, "xp.vecdot(a, b)", FLOATS),
        Case(group, "xp.tensordot(m, m)"),
        Case(group, "xp.linalg.outer(row, row)"),
        Case(group, "xp.linalg.trace(m)"),
        Case(group, "xp.linalg.diagonal(m)"),
        Case(group, "xp.linalg.vector_norm(a)", FLOATS),
        Case(group, "xp.linalg.matrix_norm(m)", sizes=SMALLER),
        Case(group, "xp.linalg.cross(triples, triples)", sizes=SMALLER),
        *[
            Case(group, f"xp.linalg.{call}", sizes=small)
            for call in (
                "solve(good, row)",
                "inv(good)",
                "det(good)",
                "slogdet(good)",
                "cholesky(definite)",
                "eigh(definite)",
                "eigvalsh(definite)",
                "qr(m)",
                "svd(m)",
                "svdvals(m)",
                "pinv(m)",
                "matrix_power(good, 3)",
                "matrix_rank(m)",
            )
        ],
        *[
            Case("fft", f"xp.fft.{call}", sizes=SMALLER)
            for call in (
                "fft(c)",
                "ifft(c)",
                "rfft(a)",
                "irfft(c, n=n)",
                "fftn(m)",
                "fftshift(a)",
                "fftfreq(n)",
            )
        ],
    ]


def _methods():
    group = "methods"
    calls = (
        "a.sum()",
        "a.mean()",
        "a.std()",
        "a.max()",
        "a.argmax()",
        "a.cumsum()",
        "m.sum(axis=0)",
        "a.copy()",
        "a.astype(np.float32)",
        "a.ravel()",
        "a.clip(0, 1)",
        "m.T.copy()",
        "a.tobytes()",
        "a.round(2)",
        "m.dot(row)",
        "a.repeat(2)",
        "a.nonzero()",
        "a.take(i)",
        "a.fill(0)",
        "m.reshape(-1)",
        "m.flatten()",
        "m.diagonal()",
        "m.trace()",
        "a.prod()",
    )
    return [
        *[Case(group, call) for call in calls],
        Case(group, "a.tolist()", sizes=SMALL),
        Case(group, "a.sort()", sizes=SMALLER),
        Case(group, "np.concatenate([a, b])"),
        Case(group, "np.where(mask, a, b)"),
        Case(group, "np.add(a, b)"),
        Case(group, "np.dot(a, b)"),
        Case(group, "np.outer(row, row)"),
        Case(group, "np.hstack([a, b])"),
        Case(group, "np.vstack([a, b])"),
        Case(group, "np.stack([a, b])"),
        Case(group, "np.linalg.solve(good, row)", sizes=SMALL),
        Case(group, "np.linalg.inv(good)", sizes=SMALL),
        Case(group, "np.linalg.det(good)", sizes=SMALL),
        Case(group, "np.linalg.svd(m)", sizes=SMALL),
        Case(group, "np.linalg.eigh(definite)", sizes=SMALL),
        Case(group, "np.fft.fft(c)", sizes=SMALLER),
        Case(group, "np.fft.rfft(a)", sizes=SMALLER),
        Case(group, "np.zeros(n)"),
        Case(group, "np.array(numbers)", sizes=SMALL),
        Case(group, "np.maximum(a, 0)"),
        Case(group, "np.linalg.norm(a)"),
        Case(group, "np.mean(m, axis=0)"),
        Case(group, "np.add.outer(row, row)"),
        Case(group, "np.sqrt(p)"),
        Case(group, "np.sqrt(2.0)", sizes=(1,)),
    ]


def _loops():
    group = "loops"
    return [
        Case(group, "for x in a: x", sizes=(100, 10_000)),
        Case(group, "for x in m: x", sizes=(100, 10_000)),
        Case(group, "for x in a: x + 1.0", sizes=(100, 10_000)),
        Case(group, "for x in range(n): a[x]", sizes=(100, 10_000)),
        Case(group, "for x in range(n): a[x] = 1.0", sizes=(100, 10_000)),
        Case(group, "for x in range(n): float(a[x])", sizes=(100, 10_000)),
        Case(group, "for x in range(side): m[x].sum()", sizes=(100, 10_000)),
        Case(group, "for x in range(side): m[x] += row", sizes=(100, 10_000)),
        Case(
            group,
            "for x in range(side): m[x, :x] += m[x, 0] * row[:x]",
            sizes=(100, 10_000),
        ),
        Case(
            group,
            "grid[1:-1, 1:-1] = (grid[:-2, 1:-1] + grid[2:, 1:-1] "
            "+ grid[1:-1, :-2] + grid[1:-1, 2:]) * 0.25",
            sizes=ALL_SIZES,
        ),
        Case(group, "row[:, None] * row[None, :]"),
        Case(
            group,
            "((points[:, None] - points[None, :]) ** 2).sum(-1)",
            sizes=(100, 10_000),
        ),
    ]


class Operands:
    """The operands of one point, made as they are asked for.

    Parameters
    ----------
    n : int
        The elements of the operands; matrices have about as many.
    dtype : str
        Of `a`, `b`, `p`, `u`, `s` and the matrices.
    layout : str
        How `a`, `b`, `p`, `u` and `mask` lie in memory: ``"contiguous"`` or one of
        `LAYOUTS`.
    """

    def __init__(self, n, dtype, layout):
        self.n = n
        self.side = max(1, math.isqrt(n))
        self.dtype = np.dtype(dtype)
        self.layout = layout
        self.rng = np.random.default_rng(0)

    def plain(self):
        """Return what is no array: the functions that make the values, by name."""
        n, rng = self.n, self.rng
        return {
            "n": lambda: n,
            "side": lambda: self.side,
            "numbers": lambda: rng.standard_normal(n).tolist(),
            "whole_numbers": lambda: list(range(n)),
            "rows": lambda: rng.standard_normal((max(1, n // 4), 4)).tolist(),
            "plain": lambda: rng.standard_normal(n),
        }

    def arrays(self):
        """Return the functions that make NumPy's arrays, by name."""
        n, side, rng = self.n, self.side, self.rng
        thin = (max(1, n // 3), 3)
        return {
            "a": lambda: self._laid_out(self._values),
            "b": lambda: self._laid_out(self._values, second=True),
            "p": lambda: self._laid_out(lambda s: np.abs(self._values(s)) + 1),
            "u": lambda: self._laid_out(
                lambda s: np.abs(np.sin(self._values(s))) * 0.9
            ),
            "mask": lambda: self._laid_out(lambda s: rng.random(s) < 0.5),
            "other": lambda: rng.random(n) < 0.5,
            "rare": lambda: rng.random(n) < 0.01,
            "wide": lambda: rng.random((side, side)) < 0.5,
            "i": lambda: rng.integers(0, n, n),
            "j": lambda: rng.integers(0, side, side),
            "k": lambda: rng.integers(0, max(2, n // 10), n),
            "s": lambda: np.sort(self._values(n)),
            "c": lambda: rng.standard_normal(n) + 1j * rng.standard_normal(n),
            "f32": lambda: rng.standard_normal(n).astype("float32"),
            "few": lambda: np.arange(10),
            "m": lambda: self._values((side, side)),
            "grid": lambda: self._values((max(3, side), max(3, side))),
            "row": lambda: self._values(side),
            "line": lambda: self._values((1, n)),
            "three": lambda: self._values((3, n)),
            "narrow": lambda: self._values(thin),
            "triples": lambda: self._values(thin),
            "points": lambda: self._values((side, 3)),
            "stack": lambda: self._values((max(1, n // 16), 4, 4)),
            "good": self._well_conditioned,
            "definite": self._definite,
        }

    def _values(self, shape):
        """Return numbers of the dtype: normal, or small and not 0 for integers."""
        if self.dtype.kind in "iu":
            return self.rng.integers(1, 9, shape).astype(self.dtype)
        if self.dtype.kind == "c":
            real, imaginary = self.rng.standard_normal((2, *np.atleast_1d(shape)))
            return (real + 1j * imaginary).astype(self.dtype)
        return self.rng.standard_normal(shape).astype(self.dtype)

    def _laid_out(self, make, second=False):
        """Return an operand in the layout; the second one is what broadcasts."""
        n, side = self.n, self.side
        match self.layout:
            case "strided":
                return make(2 * n)[::2]
            case "reversed":
                return make(n)[::-1]
            case "short":
                return make((max(1, n // 3), 4))[:, :3]
            case "transposed":
                return make((side, side)).T
            case "row":
                return make(side) if second else make((side, side))
            case "column":
                return make((side, 1)) if second else make((side, side))
            case "narrow":
                return make(3) if second else make((max(1, n // 3), 3))
        return make(n)

    def _well_conditioned(self):
        side = self.side
        return self.rng.standard_normal((side, side)) + side * np.eye(side)

    def _definite(self):
        matrix = self._well_conditioned()
        return matrix @ matrix.T


def laid_out_like(array):
    """Return an NDArray like an array, with its strides, in our memory."""
    base = array
    while base.base is not None:
        base = base.base
    whole = ndx.asarray(np.ascontiguousarray(base), copy=True)
    if base is array:
        return whole
    start = array.__array_interface__["data"][0] - base.__array_interface__["data"][0]
    # NumPy's own `as_strided` would return NumPy's array.
    view = ndx.numpy.lib.stride_tricks.as_strided(
        whole.reshape(-1)[start // array.itemsize :], array.shape, array.strides
    )
    return view

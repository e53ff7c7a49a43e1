"""Steps that compute: on small numbers, so that nearly all results are exact."""

from math import prod

import numpy as np

from fuzzing.machine import Skip

SHAPES = [
    (), (0,), (1,), (3,), (4,), (17,), (64,), (2, 3), (3, 4), (4, 3), (4, 4), (1, 3),
    (3, 1), (3, 0), (0, 3), (1, 1), (2, 3, 4), (2, 4, 4), (1, 1, 4), (2, 1, 4),
    (2, 0, 3), (5, 1), (1, 5), (600,), (2, 2, 2, 2),
]  # fmt: skip
LARGE = [
    (40_000,), (1, 40_000), (40_000, 1), (200, 200), (3, 20_000), (20_000, 3),
    (2, 150, 150), (33_000,),
]  # fmt: skip
MOST = 200_000  # elements of an array
DTYPES = [
    "float64", "float64", "float64", "float32", "int64", "int64", "int32", "int8",
    "uint8", "bool", "complex128",
]  # fmt: skip
NUMERIC = ["add", "subtract", "multiply"]
ORDERED = ["maximum", "minimum", "less", "greater", "equal", "not_equal"]
BITS = ["bitwise_and", "bitwise_or", "bitwise_xor"]
LOGIC = ["logical_and", "logical_or", "equal", "not_equal"]
SIGNS = {
    "add": "+", "subtract": "-", "multiply": "*", "less": "<", "greater": ">",
    "equal": "==", "not_equal": "!=", "bitwise_and": "&", "bitwise_or": "|",
    "bitwise_xor": "^",
}  # fmt: skip
FOLDS = ["sum", "prod", "max", "min", "mean", "var", "any", "all", "count_nonzero",
         "argmax", "argmin"]  # fmt: skip


def is_numeric(m):
    return m.dtype.kind != "b"


def is_real(m):
    return m.dtype.kind in "iuf"


def broadcast(a, b):
    return all(
        i == j or i == 1 or j == 1 for i, j in zip(a[::-1], b[::-1], strict=False)
    )


def products_of(a, b):
    """Return the number of multiplications of a product of matrices."""
    rows, columns = (a[-2] if len(a) > 1 else 1), (b[-1] if len(b) > 1 else 1)
    return prod(np.broadcast_shapes(a[:-2], b[:-2])) * rows * columns * max(1, a[-1])


def fits(m):
    """Whether another array broadcasts with this one, and has its dtype."""
    shape, dtype = m.shape, m.dtype

    def test(other):
        if other.dtype != dtype or not broadcast(shape, other.shape):
            return False
        return prod(np.broadcast_shapes(shape, other.shape)) <= MOST

    return test


def key_of(m, draw):
    """Return a valid index of an array, as text."""
    parts = []
    for n in m.shape:
        kind = draw(10)
        if kind < 2:
            parts.append(":")
        elif kind < 4:
            parts.append("::-1")
        elif kind == 4:
            parts.append("::2")
        elif kind == 5:
            parts.append("1::-2")
        elif kind == 6:
            low = draw(n + 1)
            parts.append(f"{low}:{low + draw(n + 1)}")
        elif kind == 7:
            parts.append(f"{draw(n + 1)}:")
        elif n:
            parts.append(str(draw(2 * n) - n))
        else:
            parts.append(":")
    extra = draw(8)
    if extra == 0:
        parts = parts[: draw(len(parts) + 1)]
        parts.append("...")
    elif extra == 1:
        parts = ["...", *parts[draw(len(parts) + 1) :]]
    elif extra == 2:
        parts.insert(draw(len(parts) + 1), "None")
    if not parts:
        return "..."
    return ", ".join(parts) + ("," if len(parts) == 1 and draw(2) else "")


def as_view(key):
    """Return the index for NumPy that makes an array where it would make a scalar."""
    return key if "..." in key else key.rstrip(",") + ", ..."


def scalar_for(m, draw):
    if m.dtype.kind == "b":
        return draw.among(["True", "False"])
    if m.dtype.kind == "u":
        return str(draw(5))
    if m.dtype.kind == "i":
        return str(draw(9) - 4)
    if m.dtype.kind == "c" and draw(2):
        return f"{draw(5)}j"
    return f"{draw(9) - 4}.0" if draw(2) else str(draw(9) - 4)


class Operations:
    """The part of the machine that computes."""

    large = False

    def shape(self, draw):
        if self.large and draw(3) == 0:
            return draw.among(LARGE)
        return draw.among(SHAPES)

    # --------------------------------------------------------------- creations

    def do_zeros(self, dest, first, second, draw):
        name, dtype = draw.among(["zeros", "ones"]), draw.among(DTYPES)
        self.fresh(dest, f"ndx.{name}({self.shape(draw)}, dtype={dtype!r})", [], draw)

    def do_full(self, dest, first, second, draw):
        code = (
            f"ndx.full({self.shape(draw)}, {draw(7)}, dtype='{draw.among(DTYPES[:8])}')"
        )
        self.fresh(dest, code, [], draw)

    def do_make(self, dest, first, second, draw):
        """An array of different numbers."""
        shape, dtype = self.shape(draw), draw.among(DTYPES)
        code = f"ndx.asarray(pattern(np.empty({shape}, dtype={dtype!r})), copy=True)"
        self.fresh(dest, code, [], draw)

    def do_list(self, dest, first, second, draw):
        shape = draw.among(SHAPES[:8])
        values = (np.arange(prod(shape)) % 5).reshape(shape).tolist()
        dtype = draw.among(DTYPES)
        if dtype in ("bool", "complex128"):
            dtype = "int64"
        self.fresh(dest, f"ndx.asarray({values}, dtype={dtype!r})", [], draw)

    def do_like(self, dest, first, second, draw):
        name = self.find(first)
        code = draw.among(
            [f"ndx.zeros_like({name})", f"ndx.ones_like({name})",
             f"ndx.asarray({name}, copy=True)", f"ndx.astype({name}, {name}.dtype)"]
        )  # fmt: skip
        self.fresh(dest, code, [name], draw)

    def do_empty(self, dest, first, second, draw):
        """An array without values, written before it is compared."""
        shape, dtype = self.shape(draw), draw.among(DTYPES)
        name, generation = f"v{dest}", self.current()
        code = f"ndx.empty({shape}, dtype={dtype!r})"
        self.say(f"{name} = {code}")
        x, m = self.run(code, [], model=f"pattern(np.empty({shape}, {dtype!r}))")
        np.asarray(x)[...] = m
        self.say(f"np.asarray({name})[...] = pattern({name})")
        self.keep(name, code, x, m, generation)

    # ------------------------------------------------------------------- views

    def do_slice(self, dest, first, second, draw):
        name = self.find(first, stale=draw(12) == 0)
        key = key_of(self.ms[name], draw)
        self.view(dest, f"{name}[{key}]", name, model=f"{name}[{as_view(key)}]")

    def do_transpose(self, dest, first, second, draw):
        name = self.find(first, stale=draw(12) == 0)
        ndim = self.ms[name].ndim
        kind = draw(5)
        if kind == 0 and ndim == 2:
            code = f"{name}.T"
        elif kind == 1 and ndim >= 2:
            code = f"{name}.mT"
        elif kind == 2 and ndim:
            code = f"ndx.moveaxis({name}, {draw(ndim)}, {draw(ndim)})"
        elif kind == 3 and ndim:
            code = f"ndx.flip({name}, axis={draw(ndim)})"
        else:
            axes = list(range(ndim))
            for i in range(ndim):
                j = draw(ndim)
                axes[i], axes[j] = axes[j], axes[i]
            code = f"ndx.permute_dims({name}, {tuple(axes)})"
        self.view(dest, code, name)

    def do_reshape(self, dest, first, second, draw):
        name = self.find(first)
        m = self.ms[name]
        kind = draw(5)
        if kind == 0:
            axis = draw(m.ndim + 1)
            code = f"ndx.expand_dims({name}, axis={axis})"
        elif kind == 1 and 1 in m.shape:
            code = f"ndx.squeeze({name}, axis={m.shape.index(1)})"
        elif kind == 2:
            shape = draw.among([(2,), (1,), (3,), (0,), (2, 1)])[: 1 + draw(2)]
            code = f"ndx.broadcast_to({name}, {shape + m.shape})"
            if m.size > 1000:
                raise Skip
        else:
            shapes = [s for s in SHAPES + LARGE if prod(s) == m.size]
            shape = draw.among([(m.size,), (-1,) if m.size else (0,), *shapes])
            code = f"ndx.reshape({name}, {shape})"
        self.view(dest, code, name)

    def do_row(self, dest, first, second, draw):
        name = self.find(first, lambda m: m.ndim > 1 and m.shape[0])
        row = draw(len(self.ms[name]))
        code = draw.among([f"list({name})[{row}]", f"ndx.unstack({name})[{row}]"])
        self.view(dest, code, name)

    def do_same(self, dest, first, second, draw):
        name = self.find(first)
        code = draw.among([f"ndx.asarray({name})", f"{name}[...]", name])
        self.view(dest, code, name)

    # -------------------------------------------------------------- elementwise

    def do_unary(self, dest, first, second, draw):
        stale = draw(12) == 0
        name = self.find(first, stale=stale)
        kind = self.ms[name].dtype.kind
        if kind == "b":
            code = draw.among([f"~{name}", f"ndx.logical_not({name})"])
            self.fresh(dest, code, [name], draw)
        else:
            codes = [f"-{name}", f"ndx.square({name})", f"+{name}", f"abs({name})"]
            if kind in "fc":
                codes += [f"ndx.exp(-ndx.abs({name}))", f"ndx.isfinite({name})",
                          f"ndx.sqrt(ndx.abs({name}))"]  # fmt: skip
            if kind == "f":
                codes += [f"ndx.floor({name})", f"ndx.sign({name})",
                          f"ndx.signbit({name})"]  # fmt: skip
            code = draw.among(codes)
            inexact = "exp" in code or "sqrt" in code or kind == "c"
            self.fresh(dest, code, [name], draw, settle="always" if inexact else True)

    def operation(self, m, draw):
        kind = m.dtype.kind
        if kind == "b":
            return draw.among(LOGIC + BITS)
        if kind == "c":
            return draw.among([*NUMERIC, "equal"])
        return draw.among(NUMERIC + ORDERED + (BITS if kind in "iu" else []))

    def pair(self, first, second, draw):
        """Return an operation, as text, and its operands' names."""
        stale = draw(12) == 0
        a = self.find(first, stale=stale)
        m = self.ms[a]
        name = self.operation(m, draw)
        if draw(4) == 0:
            b, names = scalar_for(m, draw), [a]
        else:
            b = self.find(second, fits(m), stale=stale)
            names = [a, b]
        x, y = (a, b) if draw(2) else (b, a)
        if name in SIGNS and draw(2):
            return f"{x} {SIGNS[name]} {y}", names
        return f"ndx.{name}({x}, {y})", names

    def do_binary(self, dest, first, second, draw):
        code, names = self.pair(first, second, draw)
        self.fresh(dest, code, names, draw, settle=True)

    def do_divide(self, dest, first, second, draw):
        a = self.find(first, lambda m: m.dtype.kind == "f")
        b = draw.among([a, "2.0", "-3.0"])
        self.fresh(dest, f"{a} / {b}", [a], draw, settle="always")

    def do_out(self, dest, first, second, draw):
        """A result in an existing array, which may be an operand."""
        target = self.find(dest, lambda m: m.ndim and m.flags.writeable, shared=False)
        m = self.ms[target]
        name = self.operation(m, draw)
        if name in ORDERED[2:] + LOGIC and m.dtype.kind != "b":
            name = "add"
        names = [target]
        operands = []
        for number in (first, second):
            other = self.find(number, lambda o: o.dtype == m.dtype and into(o, m))
            operands.append(other)
            names.append(other)
        if self.clashes(target, operands):
            raise Skip
        if draw(4) == 0:
            operands[draw(2)] = scalar_for(m, draw)
        shapes = [self.ms[o].shape for o in operands if o in names]
        if not shapes or np.broadcast_shapes(*shapes) != m.shape:
            raise Skip
        code = f"ndx.{name}({operands[0]}, {operands[1]}, out={target})"
        self.change(code, names)
        self.settle(target)

    def do_in_place(self, dest, first, second, draw):
        stale = draw(12) == 0
        target = self.find(dest, lambda m: m.flags.writeable, stale, shared=False)
        m = self.ms[target]
        kind = m.dtype.kind
        signs = ["&", "|", "^"] if kind == "b" else ["+", "-", "*"]
        if kind in "iu":
            signs += ["&", "|", "^"]
        sign = draw.among(signs)
        names = [target]
        if draw(3) == 0:
            other = scalar_for(m, draw)
        else:
            other = self.find(first, lambda o: o.dtype == m.dtype and into(o, m), stale)
            names.append(other)
            if self.clashes(target, [other]):
                raise Skip
        self.change(f"{target} {sign}= {other}", names)
        self.settle(target)

    def clashes(self, target, others):
        """Whether one file is used through two mappings, which are not ordered."""
        m, block = self.ms[target], self.blocks[target]
        return any(
            self.blocks[other].file is not None
            and self.blocks[other] is not block
            and np.may_share_memory(m, self.ms[other])
            for other in others
        )

    def do_where(self, dest, first, second, draw):
        a = self.find(first, is_real)
        b = self.find(second, fits(self.ms[a]))
        code = draw.among(
            [f"ndx.where({a} > {b}, {a}, {b})", f"ndx.clip({a}, 0, 3)",
             f"ndx.where({a} != 1, {a}, {b})"]
        )  # fmt: skip
        self.fresh(dest, code, [a, b], draw)

    # ------------------------------------------------------------------ writing

    def do_set(self, dest, first, second, draw):
        stale = draw(12) == 0
        target = self.find(dest, lambda m: m.flags.writeable, stale, shared=False)
        m = self.ms[target]
        key = key_of(m, draw)
        part = m[eval_key(key)]
        names = [target]
        if draw(3) == 0:
            value = scalar_for(m, draw)
        else:
            value = self.find(first, lambda o: o.dtype == m.dtype and into(o, part))
            names.append(value)
            if self.clashes(target, [value]):
                raise Skip
        # For vectors that overlap with other strides, NumPy reads written elements.
        copied = f"{value}.copy()" if value in names else value
        model = f"{target}[{key}] = {copied}"
        self.change(f"{target}[{key}] = {value}", names, model=model)

    def do_set_mask(self, dest, first, second, draw):
        target = self.find(dest, lambda m: m.flags.writeable, shared=False)
        m = self.ms[target]
        mask = self.find(first, lambda o: o.dtype.kind == "b" and o.shape == m.shape)
        value = scalar_for(m, draw)
        # NumPy reads a mask while it writes, also if they share memory.
        self.change(f"{target}[{mask}] = {value}", [target, mask],
                    model=f"{target}[{mask}.copy()] = {value}")  # fmt: skip

    # ----------------------------------------------------------------- indexing

    def do_mask(self, dest, first, second, draw):
        name = self.find(first, is_real)
        m = self.ms[name]
        if m.ndim == 0:
            raise Skip
        code = draw.among(
            [f"{name}[{name} > 0]", f"ndx.nonzero({name})[0]",
             f"ndx.unique_values({name})", f"{name}[{name} == {name}]"]
        )  # fmt: skip
        self.fresh(dest, code, [name], draw)

    def do_take(self, dest, first, second, draw):
        name = self.find(first, lambda m: m.ndim)
        m = self.ms[name]
        axis = draw(m.ndim)
        n = m.shape[axis]
        if not n:
            raise Skip
        where = [draw(n) for _ in range(draw(5))]
        indices = f"ndx.asarray({where}, dtype='int64')"
        if draw(3) == 0 and axis == 0:
            code = f"{name}[{indices}]"
        elif draw(3) == 0 and 2 * m.size <= MOST:
            code = f"ndx.repeat({name}, 2, axis={axis})"
        else:
            code = f"ndx.take({name}, {indices}, axis={axis})"
        self.fresh(dest, code, [name], draw)

    def do_sort(self, dest, first, second, draw):
        name = self.find(first, lambda m: is_real(m) and m.ndim)
        axis = f"axis={draw(self.ms[name].ndim)}"
        down = draw.among(["False", "True"])
        code = draw.among(
            [f"ndx.sort({name}, {axis}, descending={down})",
             f"ndx.argsort({name}, {axis}, descending={down})",
             f"ndx.take_along_axis({name}, ndx.argsort({name}, {axis}), {axis})"]
        )  # fmt: skip
        self.fresh(dest, code, [name], draw)

    # --------------------------------------------------------------- reductions

    def do_reduce(self, dest, first, second, draw):
        name = self.find(first, stale=draw(12) == 0)
        m = self.ms[name]
        fold = draw.among(FOLDS)
        if m.dtype.kind in "bc" and fold not in ("any", "all", "count_nonzero"):
            fold = "any"
        if m.dtype.kind != "f" and fold in ("mean", "var"):
            fold = "sum"
        if m.dtype.kind == "f" and m.dtype.itemsize == 4 and m.size > 5000:
            fold = "max"
        options = []
        if m.ndim and draw(3):
            axes = draw(m.ndim)
            if draw(4) == 0 and fold[:3] != "arg":
                axes = tuple({axes, draw(m.ndim)} if draw(3) else ())
            options.append(f", axis={axes}")
        if draw(2):
            options.append(", keepdims=True")
        if fold == "count_nonzero" and len(options) == 2:
            options = options[:1]
        if fold in ("mean", "var", "max", "min", "argmax", "argmin") and not m.size:
            # It has no extremes, and its mean is NaN.
            raise Skip
        code = f"ndx.{fold}({name}{''.join(options)})"
        inexact = fold in ("mean", "var", "prod")
        self.fresh(dest, code, [name], draw, settle="always" if inexact else True)

    def do_cumulate(self, dest, first, second, draw):
        name = self.find(first, lambda m: is_real(m) and m.ndim)
        m = self.ms[name]
        if m.dtype.itemsize == 4 and m.dtype.kind == "f" and m.size > 5000:
            raise Skip
        axis = draw(m.ndim)
        code = draw.among(
            [f"ndx.cumulative_sum({name}, axis={axis})",
             f"ndx.cumulative_sum({name}, axis={axis}, include_initial=True)",
             f"ndx.diff({name}, axis={axis})"]
        )  # fmt: skip
        self.fresh(dest, code, [name], draw, settle=True)

    # ----------------------------------------------------------------- products

    def do_product(self, dest, first, second, draw):
        stale = draw(12) == 0
        a = self.find(first, lambda m: is_numeric(m) and m.ndim, stale)
        m = self.ms[a]
        if m.size > 300_000 or (m.dtype.itemsize == 4 and m.size > 5000):
            raise Skip
        inner = m.shape[-1]

        def joins(o):
            if o.dtype != m.dtype or not o.ndim or o.size > 300_000:
                return False
            return o.shape[-2 if o.ndim > 1 else -1] == inner and (
                o.ndim < 3 or m.ndim < 3 or broadcast(o.shape[:-2], m.shape[:-2])
            )

        kind = draw(4)
        if kind < 2:
            b = self.find(second, joins, stale)
            if products_of(m.shape, self.ms[b].shape) > MOST * max(1, inner) // 4:
                raise Skip
            code = f"{a} @ {b}" if kind else f"ndx.matmul({a}, {b})"
        elif kind == 2:
            b = self.find(second, lambda o: fits(m)(o) and o.ndim, stale)
            if self.ms[b].shape[-1] != inner:
                raise Skip
            code = f"ndx.vecdot({a}, {b})"
        else:
            b = self.find(
                second, lambda o: o.dtype == m.dtype and o.ndim and o.shape[0] == inner
            )
            if m.size * self.ms[b].size > MOST * max(1, inner) ** 2:
                raise Skip
            code = f"ndx.tensordot({a}, {b}, axes=1)"
        self.fresh(dest, code, [a, b], draw, settle=True)

    def do_matmul_out(self, dest, first, second, draw):
        target = self.find(
            dest,
            lambda m: m.ndim == 2 and is_numeric(m) and m.flags.writeable,
            shared=False,
        )
        m = self.ms[target]
        rows, columns = m.shape
        if m.size > 10_000:
            raise Skip
        a = self.find(
            first, lambda o: o.ndim == 2 and o.shape[0] == rows and o.dtype == m.dtype
        )
        inner = self.ms[a].shape[1]
        b = self.find(
            second, lambda o: o.shape == (inner, columns) and o.dtype == m.dtype
        )
        if self.clashes(target, [a, b]) or inner > 5000:
            raise Skip
        self.change(f"ndx.matmul({a}, {b}, out={target})", [target, a, b])
        self.settle(target)

    # ------------------------------------------------------------ manipulation

    def do_join(self, dest, first, second, draw):
        a = self.find(first, lambda m: m.ndim and m.size <= MOST // 3)
        m = self.ms[a]
        b = self.find(second, lambda o: o.dtype == m.dtype and o.shape == m.shape)
        axis = draw(m.ndim)
        code = draw.among(
            [f"ndx.concat([{a}, {b}], axis={axis})",
             f"ndx.stack([{a}, {b}], axis={axis})",
             f"ndx.concat([{a}, {b}, {a}], axis=None)"]
        )  # fmt: skip
        self.fresh(dest, code, [a, b], draw)

    def do_shuffle(self, dest, first, second, draw):
        name = self.find(first, lambda m: m.ndim and m.size <= MOST // 3)
        m = self.ms[name]
        codes = [f"ndx.roll({name}, {draw(7) - 3}, axis={draw(m.ndim)})",
                 f"ndx.tile({name}, (2,))"]  # fmt: skip
        if m.ndim > 1:
            codes += [f"ndx.tril({name}, k={draw(3) - 1})", f"ndx.triu({name})"]
        self.fresh(dest, draw.among(codes), [name], draw)

    def do_cast(self, dest, first, second, draw):
        name = self.find(first)
        kind = self.ms[name].dtype.kind
        if kind == "c":
            to = "complex128"
        elif kind == "f":
            to = draw.among(["float64", "float32", "complex128"])
        else:
            to = draw.among(["float64", "float32", "int64", "int8", "uint8", "bool"])
        self.fresh(dest, f"ndx.astype({name}, {to!r})", [name], draw, settle=True,
                   model=f"ndx.astype({name}, np.dtype({to!r}))")  # fmt: skip


def eval_key(key):
    return eval(f"np.s_[{as_view(key)}]", {"np": np})


def into(o, m):
    """Whether an array broadcasts into another's shape."""
    if o.ndim > m.ndim:
        return False
    return all(
        a == b or a == 1 for a, b in zip(o.shape[::-1], m.shape[::-1], strict=False)
    )

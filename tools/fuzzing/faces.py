"""Steps of NumPy's functions and methods on arrays, and of fused functions."""

from types import SimpleNamespace

import numpy as np

import ndx
from fuzzing.machine import Skip
from fuzzing.model import MODEL
from fuzzing.operations import MOST, fits, into, is_numeric, is_real, scalar_for

# The functions are part of a program's script, too. None asks for memory after its
# first write: what is refused must have changed nothing.
FUSED = """\
@fuse
def mixed(a, b):
    return a * b - a + 2

@fuse
def twice(a):
    t = a + 1
    return t * 3 - a + t

@fuse
def chosen(a, b):
    return ndx.where(a > b, a - 1, b + 1)

@fuse
def rows(a, b):
    return ndx.sum(a * 2 + b, axis=-1)

@fuse
def columns(a, b):
    return ndx.max(a - b, axis=0, keepdims=True)

@fuse
def all_of(a, b):
    return ndx.sum(a - b)

@fuse
def from_the_least(a):
    return a - ndx.min(a, axis=-1, keepdims=True)

@fuse
def neighbours(a):
    return a[1:] - a[:-1]

@fuse
def mirrored(a):
    return a[..., ::-1] + a * 2

@fuse
def nested(a, b):
    return mixed(a, b) - twice(b)

@fuse
def turned(a):
    return ndx.permute_dims(a, tuple(range(a.ndim))[::-1]) + 1

@fuse
def add_to(a, b):
    a += b * 2

@fuse
def overwrite(a, b):
    t = a - b
    a[...] = t + t

@fuse
def smooth(a):
    a[1:-1] = a[2:] + a[:-2] - a[1:-1]

@fuse
def two_steps(a, b):
    a -= b
    a[..., ::2] += 1
    a += 1
"""
OF_TWO = ["mixed", "rows", "columns", "all_of", "nested", "chosen"]
OF_ONE = ["twice", "from_the_least", "neighbours", "mirrored", "turned"]
ALONG_AXES = ["rows", "columns", "from_the_least"]
IN_PLACE = ["add_to", "overwrite", "two_steps", "smooth"]
# These change small numbers by small numbers; products of numbers are left to `fresh`.
FOLDS = ["add", "subtract", "maximum", "minimum"]


def defined(namespace, fuse):
    """Return the functions of `FUSED`, over a namespace."""
    found = {"ndx": namespace, "fuse": fuse}
    exec(FUSED, found)
    return SimpleNamespace(**found)


FUNCTIONS = defined(ndx, ndx.fuse)
PLAIN = defined(MODEL, lambda function: function)


def is_exact(m):
    """Whether sums of an array's small numbers are exact."""
    return is_numeric(m) and (m.dtype.itemsize > 4 or m.size <= 5000)


class Faces:
    """The part of the machine that calls ndx through NumPy, and fused functions."""

    def start_faces(self):
        self.xs["fused"] = FUNCTIONS
        self.ms["fused"] = PLAIN

    def target(self, dest, first, where, stale=False):
        """Return an array to write to, and one of its dtype that fits into it."""
        target = self.find(
            dest, lambda m: where(m) and m.flags.writeable, stale, shared=False
        )
        m = self.ms[target]
        other = self.find(first, lambda o: o.dtype == m.dtype and into(o, m), stale)
        if self.clashes(target, [other]):
            raise Skip
        return target, other

    # ------------------------------------------------------------ fused functions

    def do_fused(self, dest, first, second, draw):
        stale = draw(12) == 0
        name = draw.among(OF_TWO + OF_ONE)
        a = self.find(first, lambda m: is_real(m) and is_exact(m), stale)
        names = [a]
        operands = [a]
        if name in OF_TWO and draw(6) == 0:
            operands.append(scalar_for(self.ms[a], draw))
        elif name in OF_TWO:
            names.append(self.find(second, fits(self.ms[a]), stale))
            operands.append(names[1])
        shapes = [self.ms[one].shape for one in names]
        if name in ("columns", "from_the_least") and any(0 in s for s in shapes):
            # Nothing has no extremes.
            raise Skip
        if name in ALONG_AXES and not any(shapes):
            # NumPy takes the axes 0 and -1 of arrays without axes.
            raise Skip
        code = f"fused.{name}({', '.join(operands)})"
        self.fresh(dest, code, names, draw, settle=True)

    def do_fused_in_place(self, dest, first, second, draw):
        stale = draw(12) == 0
        target, other = self.target(dest, first, lambda m: is_real(m) and m.ndim, stale)
        name = draw.among(IN_PLACE)
        operands = [target] if name == "smooth" else [target, other]
        self.change(f"fused.{name}({', '.join(operands)})", operands)
        self.settle(target)

    # ----------------------------------------------------------- NumPy's functions

    def do_ufunc(self, dest, first, second, draw):
        """Methods of NumPy's ufuncs, and their keywords."""
        a = self.find(first, lambda m: is_real(m) and is_exact(m) and m.ndim)
        m = self.ms[a]
        axis = draw(m.ndim)
        name = draw.among(FOLDS)
        kind = draw(5)
        if kind in (0, 1, 3) and self.is_tight():
            # NumPy (2.5 and before) keeps the operands for ever if these methods raise.
            raise Skip
        names = [a]
        if kind == 0:
            start = ", initial=1" if not m.size or draw(3) == 0 else ""
            axes = draw.among([axis, (axis,), tuple(range(m.ndim)), None])
            if name == "subtract":
                name, axes = "add", axis
            keep = draw.among([True, False])
            code = f"np.{name}.reduce({a}, axis={axes}, keepdims={keep}{start})"
        elif kind == 1:
            code = f"np.{name}.accumulate({a}, axis={axis})"
        elif kind == 2:
            b = self.find(second, lambda o: o.dtype == m.dtype)
            if m.size * self.ms[b].size > MOST // 10:
                raise Skip
            names.append(b)
            code = f"np.{name}.outer({a}, {b})"
        elif kind == 3:
            n = m.shape[axis]
            if not n:
                raise Skip
            where = [draw(n) for _ in range(1 + draw(3))]
            code = f"np.{name}.reduceat({a}, {where}, axis={axis})"
        else:
            b = self.find(second, fits(m))
            names.append(b)
            code = f"np.{name}({a}, {b}, dtype='float64')"
        self.fresh(dest, code, names, draw, settle=True)

    def do_ufunc_where(self, dest, first, second, draw):
        """Some elements of an array are computed, the others stay."""
        target, other = self.target(dest, first, is_real)
        shape = self.ms[target].shape
        mask = self.find(second, lambda o: o.dtype.kind == "b" and o.shape == shape)
        if self.clashes(target, [mask]) or np.may_share_memory(
            self.ms[target], self.ms[mask]
        ):
            # NumPy reads a mask while it writes, also if they share memory.
            raise Skip
        name = draw.among(FOLDS)
        code = draw.among(
            [f"np.{name}({target}, {other}, out={target}, where={mask})",
             f"np.copyto({target}, {other}, where={mask})",
             f"np.putmask({target}, {mask}, {scalar_for(self.ms[target], draw)})"]
        )  # fmt: skip
        names = [target, other, mask]
        if "copyto" in code and np.may_share_memory(self.ms[target], self.ms[other]):
            raise Skip
        self.change(code, names)
        self.settle(target)

    def do_ufunc_at(self, dest, first, second, draw):
        target = self.find(
            dest, lambda m: is_real(m) and m.flags.writeable and m.ndim, shared=False
        )
        m = self.ms[target]
        n = m.shape[0]
        if not n:
            raise Skip
        where = [draw(2 * n) - n for _ in range(1 + draw(4))]
        value = scalar_for(m, draw)
        code = draw.among(
            [f"np.{draw.among(FOLDS)}.at({target}, {where}, {value})",
             f"np.negative.at({target}, {where})",
             f"np.put({target}, {where}, {value})",
             f"{target}[{where}] = {value}"]
        )  # fmt: skip
        if m.dtype.kind == "u" and "negative" in code:
            raise Skip
        self.change(code, [target])
        self.settle(target)

    # ------------------------------------------------------------ NumPy's methods

    def do_method(self, dest, first, second, draw):
        name = self.find(first, lambda m: is_real(m) and is_exact(m) and m.ndim)
        m = self.ms[name]
        axis = draw(m.ndim)
        calls = [
            f"sum(axis={axis})", f"cumsum(axis={axis})", "cumsum()", "flatten()",
            "flatten('F')", "copy('F')", f"repeat(2, axis={axis})", "clip(-1, 2)",
            "clip(0, None)", f"argsort(axis={axis}, kind='stable')",
            "astype('float64')", f"compress([True, False], axis={axis})", "round()",
            "nonzero()[0]",
        ]  # fmt: skip
        if 2 * m.size > MOST:
            raise Skip
        if m.size:
            calls += [f"max(axis={axis})", f"take([0, -1, 0], axis={axis})",
                      f"argmin(axis={axis})", "max()"]  # fmt: skip
        call = draw.among(calls)
        if "compress" in call and m.shape[axis] < 2:
            raise Skip
        self.fresh(dest, f"{name}.{call}", [name], draw, settle=True)

    def do_method_view(self, dest, first, second, draw):
        name = self.find(first, lambda m: m.ndim)
        m = self.ms[name]
        axis = draw(m.ndim)
        calls = ["view()", "T", f"swapaxes({axis}, 0)", "squeeze()", "transpose()",
                 "reshape(-1)", "ravel()"]  # fmt: skip
        if m.dtype.kind == "c":
            calls += ["real", "imag"]
        self.view(dest, f"{name}.{draw.among(calls)}", name)

    def do_method_in_place(self, dest, first, second, draw):
        target, other = self.target(dest, first, lambda m: is_real(m) and m.ndim)
        m = self.ms[target]
        axis = draw(m.ndim)
        value = scalar_for(m, draw)
        code = draw.among(
            [f"{target}.sort(axis={axis})", f"{target}.fill({value})",
             f"{target}.clip(-2, 2, out={target})", f"{target}.flat[...] = {value}",
             f"{target}.put([0, -1], {value})", f"np.fill_diagonal({target}, {value})",
             f"np.cumsum({target}, axis={axis}, out={target})",
             f"np.maximum({target}, {other}, {target})"]
        )  # fmt: skip
        if "put(" in code and not m.size:
            raise Skip
        if "fill_diagonal" in code and (m.ndim != 2 or 0 in m.shape):
            raise Skip
        names = [target, other] if other in code else [target]
        self.change(code, names)
        self.settle(target)

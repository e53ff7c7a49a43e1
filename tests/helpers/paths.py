"""Every way to access an array: a table of what makes one and what uses it."""

import copy
import operator
import os
import pickle
import tempfile

import cloudpickle
import numpy as np

import ndx
from helpers.stale import function_paths

BINARY = (
    "add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul",
    "lt", "le", "gt", "ge", "eq", "ne",
)  # fmt: skip
BITWISE = ("and_", "or_", "xor", "lshift", "rshift")


def ones(*shape):
    return lambda: ndx.ones(shape)


def ints(*shape):
    return lambda: ndx.ones(shape, dtype="int64")


def assign(x, key, value):
    x[key] = value


def save(x):
    with tempfile.TemporaryDirectory() as folder:
        ndx.save(os.path.join(folder, "x.npy"), x)


# name -> (what makes the array, what uses it). `use` gets the stale array `s` and a
# live one of the same shape and dtype, `x`.
PATHS = {}
for name in BINARY:
    f = getattr(operator, name)
    PATHS[f"s {name} x"] = ones(3, 3), lambda s, x, f=f: f(s, x)
    PATHS[f"x {name} s"] = ones(3, 3), lambda s, x, f=f: f(x, s)
    PATHS[f"s {name} s"] = ones(3, 3), lambda s, x, f=f: f(s, s)
    PATHS[f"s {name} numpy"] = ones(3, 3), lambda s, x, f=f: f(s, np.ones((3, 3)))
    PATHS[f"numpy {name} s"] = ones(3, 3), lambda s, x, f=f: f(np.ones((3, 3)), s)
    if name != "matmul":
        PATHS[f"s {name} 2"] = ones(3, 3), lambda s, x, f=f: f(s, 2)
        PATHS[f"2 {name} s"] = ones(3, 3), lambda s, x, f=f: f(2, s)
        PATHS[f"2.0 {name} s"] = ones(3, 3), lambda s, x, f=f: f(2.0, s)
        PATHS[f"s {name} np.float32"] = (
            ones(3, 3),
            lambda s, x, f=f: f(s, np.float32(2)),
        )
        PATHS[f"s {name} broadcast"] = ones(3, 3), lambda s, x, f=f: f(s, x[0])
        PATHS[f"strided s {name} x"] = (
            lambda: ndx.ones((3, 6))[:, ::2],
            lambda s, x, f=f: f(s, x),
        )
for name in BITWISE:
    f = getattr(operator, name)
    PATHS[f"s {name} x"] = ints(3), lambda s, x, f=f: f(s, x)
    PATHS[f"x {name} s"] = ints(3), lambda s, x, f=f: f(x, s)
    PATHS[f"s {name} 1"] = ints(3), lambda s, x, f=f: f(s, 1)
    PATHS[f"1 {name} s"] = ints(3), lambda s, x, f=f: f(1, s)
for name in ("iadd", "isub", "imul", "itruediv", "ifloordiv", "imod", "ipow",
             "imatmul"):  # fmt: skip
    f = getattr(operator, name)
    PATHS[f"s {name} x"] = ones(3, 3), lambda s, x, f=f: f(s, x)
    PATHS[f"x {name} s"] = ones(3, 3), lambda s, x, f=f: f(x, s)
    if name != "imatmul":
        PATHS[f"s {name} 2"] = ones(3, 3), lambda s, x, f=f: f(s, 2)
    PATHS[f"numpy {name} s"] = ones(3, 3), lambda s, x, f=f: f(np.ones((3, 3)), s)
for name in ("iand", "ior", "ixor", "ilshift", "irshift"):
    f = getattr(operator, name)
    PATHS[f"s {name} x"] = ints(3), lambda s, x, f=f: f(s, x)
    PATHS[f"x {name} s"] = ints(3), lambda s, x, f=f: f(x, s)
for f in (operator.neg, operator.pos, operator.abs):
    PATHS[f.__name__] = ones(3), lambda s, x, f=f: f(s)
PATHS["invert"] = ints(3), lambda s, x: ~s

PATHS |= {
    # ---- indexing
    "s[0]": (ones(3), lambda s, x: s[0]),
    "s[:]": (ones(3), lambda s, x: s[:]),
    "s[...]": (ones(3), lambda s, x: s[...]),
    "s[None]": (ones(3), lambda s, x: s[None]),
    "s[()] 0-d": (ones(), lambda s, x: s[()]),
    "s[list]": (ones(3), lambda s, x: s[[0, 1]]),
    "s[mask]": (ones(3), lambda s, x: s[ndx.ones(3, dtype="bool")]),
    "x[s]": (ints(3), lambda s, x: x[s]),
    "x[s,]": (ints(3), lambda s, x: x[s,]),
    "x[s 0-d]": (ints(), lambda s, x: ndx.ones(3)[s]),
    "x[s:]": (ints(), lambda s, x: ndx.ones(3)[s:]),
    "x[bool s]": (lambda: ndx.ones(3, dtype="bool"), lambda s, x: ndx.ones(3)[s]),
    "s[0] = 1.0": (ones(3), lambda s, x: assign(s, 0, 1.0)),
    "s[:] = x": (ones(3), lambda s, x: assign(s, slice(None), x)),
    "s[...] = numpy": (ones(3), lambda s, x: assign(s, ..., np.ones(3))),
    "s[list] = 1.0": (ones(3), lambda s, x: assign(s, [0], 1.0)),
    "s[mask] = 1.0": (ones(3), lambda s, x: assign(s, np.ones(3, bool), 1.0)),
    "x[:] = s": (ones(3), lambda s, x: assign(x, slice(None), s)),
    "x[list] = s": (ones(3), lambda s, x: assign(x, [0, 1, 2], s)),
    "x[0:0] = s": (ones(0), lambda s, x: assign(ndx.ones(3), slice(0, 0), s)),
    "x[s] = 1.0": (ints(3), lambda s, x: assign(ndx.ones(3), s, 1.0)),
    "x[:] = [s]": (ones(3), lambda s, x: assign(x[None], slice(None), [s])),
    "numpy[s]": (ints(3), lambda s, x: np.ones(3)[s]),
    "numpy[:] = s": (ones(3), lambda s, x: assign(np.ones(3), slice(None), s)),
    "list[s]": (ints(), lambda s, x: [1, 2, 3][s]),
    # ---- iteration and membership
    "iter": (ones(3), lambda s, x: list(s)),
    "unpack": (ones(2), lambda s, x: (lambda a, b: None)(*s)),
    "in": (ones(3), lambda s, x: 1.0 in s),
    "reversed": (ones(3), lambda s, x: list(reversed(s))),
    "zip": (ones(3), lambda s, x: list(zip(x, s, strict=True))),
    # ---- Python scalars
    "float": (ones(), lambda s, x: float(s)),
    "int": (ints(), lambda s, x: int(s)),
    "int of float": (ones(), lambda s, x: int(s)),
    "bool": (ones(), lambda s, x: bool(s)),
    "complex": (ones(), lambda s, x: complex(s)),
    "index": (ints(), lambda s, x: operator.index(s)),
    "range": (ints(), lambda s, x: range(s)),
    "item": (ones(), lambda s, x: s.item()),
    "item of 1-d": (ones(1), lambda s, x: s.item()),
    "tolist": (ones(3), lambda s, x: s.tolist()),
    "format": (ones(), lambda s, x: format(s, ".2f")),
    "f-string": (ones(), lambda s, x: f"{s:.3e}"),
    # ---- copies
    "copy": (ones(3), lambda s, x: copy.copy(s)),
    "deepcopy": (ones(3), lambda s, x: copy.deepcopy(s)),
    "deepcopy of a list": (ones(3), lambda s, x: copy.deepcopy([s])),
    "cloudpickle": (ones(3), lambda s, x: cloudpickle.dumps(s)),
    "out-of-band": (
        ones(3),
        lambda s, x: pickle.dumps(s, 5, buffer_callback=[].append),
    ),
    "pickle of a strided one": (
        lambda: ndx.ones((3, 4))[:, ::2],
        lambda s, x: pickle.dumps(s),
    ),
    # ---- exports
    "np.asarray": (ones(3), lambda s, x: np.asarray(s)),
    "np.array": (ones(3), lambda s, x: np.array(s)),
    "np.array of a list": (ones(3), lambda s, x: np.array([s, s])),
    "__array__": (ones(3), lambda s, x: s.__array__()),
    "__array__ copy": (ones(3), lambda s, x: s.__array__(copy=True)),
    "__array_interface__": (ones(3), lambda s, x: s.__array_interface__),
    "memoryview": (ones(3), lambda s, x: memoryview(s)),
    "bytes": (ones(3), lambda s, x: bytes(s)),
    "bytearray": (ones(3), lambda s, x: bytearray(s)),
    "__dlpack__": (ones(3), lambda s, x: s.__dlpack__()),
    "__dlpack__ versioned": (ones(3), lambda s, x: s.__dlpack__(max_version=(1, 0))),
    "__dlpack__ copy": (ones(3), lambda s, x: s.__dlpack__(copy=True)),
    "np.from_dlpack": (ones(3), lambda s, x: np.from_dlpack(s)),
    "ndx.from_dlpack": (ones(3), lambda s, x: ndx.from_dlpack(s)),
    "np.frombuffer": (ones(3), lambda s, x: np.frombuffer(s)),
    # ---- NumPy's functions
    "np.exp": (ones(3), lambda s, x: np.exp(s)),
    "np.add(x, s)": (ones(3), lambda s, x: np.add(x, s)),
    "np.add where": (
        ones(3),
        lambda s, x: np.add(x, s, where=[True, True, False], out=x),
    ),
    "np.add where=s": (
        lambda: ndx.ones(3, dtype="bool"),
        lambda s, x: np.add(ndx.ones(3), 1.0, where=s, out=ndx.ones(3)),
    ),
    "np.add out=s": (ones(3), lambda s, x: np.add(x, x, out=s)),
    "np.add dtype": (ones(3), lambda s, x: np.add(x, s, dtype="float32")),
    "np.matmul": (ones(3, 3), lambda s, x: np.matmul(x, s)),
    "np.divmod": (ones(3), lambda s, x: np.divmod(x, s)),
    "np.modf": (ones(3), lambda s, x: np.modf(s)),
    "np.cbrt": (ones(3), lambda s, x: np.cbrt(s)),
    "np.linalg.norm": (ones(3), lambda s, x: np.linalg.norm(s)),
    "np.concatenate": (ones(3), lambda s, x: np.concatenate([s, x])),
    "np.copyto": (ones(3), lambda s, x: np.copyto(np.ones(3), s)),
    # ---- views
    "T": (ones(2, 3), lambda s, x: s.T),
    "mT": (ones(2, 3), lambda s, x: s.mT),
    # ---- memory
    "detach": (ones(3), lambda s, x: s.detach()),
    "leverage": (ones(3), lambda s, x: s.leverage()),
    "leverage_to": (ones(3), lambda s, x: s.leverage_to("elsewhere")),
    "leverage_to, detach": (
        ones(3),
        lambda s, x: s.leverage_to("elsewhere", missing="detach"),
    ),
    "migrate": (ones(3), lambda s, x: s.migrate()),
    "migrate, detach": (ones(3), lambda s, x: s.migrate(missing="detach")),
    "close": (ones(3), lambda s, x: s.close()),
    "to_device": (ones(3), lambda s, x: s.to_device("cpu")),
    # ---- files
    "save": (ones(3), lambda s, x: save(s)),
    # ---- creation
    "asarray": (ones(3), lambda s, x: ndx.asarray(s)),
    "asarray copy": (ones(3), lambda s, x: ndx.asarray(s, copy=True)),
    "asarray copy=False": (ones(3), lambda s, x: ndx.asarray(s, copy=False)),
    "asarray dtype": (ones(3), lambda s, x: ndx.asarray(s, dtype="int8")),
    "asarray of a list": (ones(3), lambda s, x: ndx.asarray([s, s])),
    "asarray of a list of 0-d": (ones(), lambda s, x: ndx.asarray([s, 1.0])),
    "full": (ones(), lambda s, x: ndx.full(3, s)),
    # ---- out=
    "add out=s": (ones(3), lambda s, x: ndx.add(x, x, out=s)),
    "exp out=s": (ones(3), lambda s, x: ndx.exp(x, out=s)),
    "exp(s) out=x": (ones(3), lambda s, x: ndx.exp(s, out=x)),
    "exp(s) out=s": (ones(3), lambda s, x: ndx.exp(s, out=s)),
    # ---- arrays without elements
    "no elements: add": (ones(0), lambda s, x: s + x),
    "no elements: exp": (ones(0, 3), lambda s, x: ndx.exp(s)),
    "no elements: sum": (ones(0), lambda s, x: ndx.sum(s)),
    "no elements: asarray": (ones(0), lambda s, x: np.asarray(s)),
    "no elements: tolist": (ones(0), lambda s, x: s.tolist()),
}
for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
    PATHS[f"pickle {protocol}"] = ones(3), lambda s, x, p=protocol: pickle.dumps(s, p)
PATHS |= function_paths()

"""Creation functions and functions of data types."""

import numpy as np
from helpers import patterns
from hypothesis import strategies as st

from differential.draws import (
    ALL,
    alone,
    arrays,
    chosen,
    names,
    pair_shapes,
    scalars,
    scarcely,
)  # fmt: skip
from differential.engine import Row, rows

DTYPES = names(ALL).map(np.dtype)
FLOAT_DTYPES = names("f").map(np.dtype)
SHAPES = patterns.shapes() | st.integers(0, 5)
# Values that every dtype has, so that no cast is undefined.
COUNTS = np.array([0.0, 1.0, 2.0, 3.0])


@st.composite
def counts(draw):
    name = draw(names(ALL))
    shape = draw(patterns.shapes())
    return draw(patterns.foreign(name, shape, values=COUNTS.astype(name)))


def cast(x, dtype=None, /, *, copy=None, **kwargs):
    """Cast as NumPy, but never drop imaginary parts."""
    dtype = kwargs.get("dtype", dtype)
    if dtype is not None and np.asarray(x).dtype.kind == "c" and dtype.kind in "iuf":
        raise TypeError("imaginary parts would be lost")
    return np.array(x, dtype=dtype)


@st.composite
def asarrays(draw):
    x = draw(counts())
    kwargs = draw(chosen(dtype=DTYPES, copy=st.sampled_from([None, True])))
    return (x.tolist() if draw(st.booleans()) else x,), kwargs


def keeps_kind(x, dtype=None, /, **kwargs):
    """Array-api-strict drops imaginary parts."""
    dtype = kwargs.get("dtype", dtype)
    return np.asarray(x).dtype.kind != "c" or dtype is None or dtype.kind in "bc"


def not_vectors(*args, indexing="xy"):
    return any(x.ndim != 1 for x in args)


@st.composite
def casts(draw):
    return (draw(counts()), draw(DTYPES)), draw(chosen(copy=st.booleans()))


@st.composite
def fulls(draw):
    name = draw(names(ALL))
    value = draw(scalars(np.dtype(name).kind))
    kwargs = {} if draw(st.booleans()) else {"dtype": np.dtype(name)}
    return (draw(SHAPES), value), kwargs


def full(shape, value, dtype=None):
    default = {bool: "bool", int: "int64", float: "float64", complex: "complex128"}
    return np.full(shape, value, dtype=dtype or default[type(value)])


@st.composite
def full_likes(draw):
    x = draw(arrays())
    return (x, draw(scalars(x.dtype.kind))), {}


@st.composite
def ranges(draw):
    ints = draw(st.booleans())
    number = st.integers(-9, 9) if ints else st.integers(-9, 9).map(lambda n: n / 4)
    step = number.filter(bool)
    dtype = names("if").map(np.dtype) if ints else FLOAT_DTYPES
    args = (draw(number),)
    if draw(st.booleans()):
        args += (draw(number),)
        args += (draw(step),) * draw(st.booleans())
    return args, draw(chosen(dtype=dtype))


def arange(*args, dtype=None):
    whole = all(isinstance(arg, int) for arg in args)
    return np.arange(*args, dtype=dtype or ("int64" if whole else "float64"))


@st.composite
def linspaces(draw):
    number = st.integers(-9, 9) | st.integers(-9, 9).map(lambda n: n / 4)
    args = (draw(number), draw(number), draw(st.integers(-draw(scarcely), 6)))
    return args, draw(chosen(dtype=FLOAT_DTYPES, endpoint=st.booleans()))


@st.composite
def eyes(draw):
    side = st.integers(0, 5)
    args = (
        (draw(side), draw(side | st.none())) if draw(st.booleans()) else (draw(side),)
    )
    return args, draw(chosen(k=st.integers(-6, 6), dtype=DTYPES))


@st.composite
def triangles(draw):
    return draw(alone()) if draw(scarcely) else (
        (draw(arrays(min_dims=2)),), draw(chosen(k=st.integers(-5, 5)))
    )  # fmt: skip


def no_matrix(x, k=0):
    return x.ndim < 2


@st.composite
def grids(draw):
    args = [
        draw(arrays(min_dims=1, max_dims=1 + draw(scarcely)))
        for _ in range(draw(st.integers(0, 3)))
    ]
    return tuple(args), draw(chosen(indexing=st.sampled_from(["xy", "ij"])))


@st.composite
def several(draw, kinds=ALL):
    count = draw(st.integers(1, 3))
    return tuple(draw(arrays(kinds, s)) for s in draw(pair_shapes(count))), {}


@st.composite
def targets(draw):
    x, shape = draw(pair_shapes())
    return (draw(arrays(ALL, x)), np.broadcast_shapes(x, shape)
            if not draw(scarcely) and compatible(x, shape) else shape), {}  # fmt: skip


def compatible(*shapes):
    try:
        np.broadcast_shapes(*shapes)
    except ValueError:
        return False
    return True


@st.composite
def operands_of_types(draw):
    found = [draw(DTYPES | arrays(max_dims=1))]
    found += draw(st.lists(DTYPES | arrays(max_dims=1) | scalars("biufc"), max_size=2))
    return tuple(found), {}


def limits(info):
    """Return a function that describes a dtype as one of the namespaces' does."""
    keys = ("bits", "eps", "max", "min", "smallest_normal", "dtype")

    def described(dtype):
        found = info(dtype)
        kept = {key: getattr(found, key) for key in keys if hasattr(found, key)}
        return type("Limits", (), {"__eq__": lambda self, other: all(
            getattr(other, key) == value for key, value in kept.items()
        ), "__hash__": None})()  # fmt: skip

    return described


def one_dtype(kinds):
    return st.tuples(st.tuples(names(kinds).map(np.dtype)), st.just({}))


@st.composite
def kinds_of(draw):
    kind = st.sampled_from(
        ["bool", "signed integer", "unsigned integer", "integral", "real floating",
         "complex floating", "numeric"]
    )  # fmt: skip
    one = kind | DTYPES
    return (draw(DTYPES), draw(one | st.tuples(one, one))), {}


def within_a_kind(from_, to):
    """Array-api-strict knows no promotion between kinds; NumPy and ndx do."""
    from_ = from_ if isinstance(from_, np.dtype) else from_.dtype
    return from_.kind == to.kind or {from_.kind, to.kind} == set("iu")


@st.composite
def can_casts(draw):
    return (draw(DTYPES), draw(DTYPES)), {}


TABLE = (
    rows("zeros ones", st.tuples(st.tuples(SHAPES), chosen(dtype=DTYPES)))
    | rows("empty", st.tuples(st.tuples(SHAPES), chosen(dtype=DTYPES)), values=False)
    | rows("zeros_like ones_like", st.tuples(st.tuples(arrays()), chosen(dtype=DTYPES)))
    | rows("empty_like", alone(), values=False)
    | rows("tril triu", triangles(), refuses=no_matrix,
           note="NumPy makes a matrix of a vector")
    | {
        "asarray": Row(asarrays(), cast, strict=keeps_kind,
                       note="no imaginary part is dropped"),
        "astype": Row(casts(), cast, strict=keeps_kind,
                      note="no imaginary part is dropped"),
        "full": Row(fulls(), full),
        "full_like": Row(full_likes()),
        "arange": Row(ranges(), arange),
        "linspace": Row(linspaces(), ulps=8, overall=True),
        "eye": Row(eyes()),
        "meshgrid": Row(grids(), refuses=not_vectors,
                        note="NumPy flattens what has not just one axis"),
        "broadcast_arrays": Row(several()),
        "broadcast_to": Row(targets()),
        "broadcast_shapes": Row(st.tuples(pair_shapes(3).map(tuple), st.just({}))),
        "result_type": Row(operands_of_types()),
        "can_cast": Row(can_casts(), strict=within_a_kind,
                        note="array-api-strict has no promotion between kinds"),
        "isdtype": Row(kinds_of()),
        "finfo": Row(one_dtype("fc"), limits(np.finfo), strict=False,
                     note="compared by attributes"),
        "iinfo": Row(one_dtype("iu"), limits(np.iinfo), strict=False,
                     note="compared by attributes"),
    }
)  # fmt: skip


@st.composite
def exported(draw):
    """Draw an array that is native and aligned: what else there is no exporter has."""
    x = draw(patterns.arrays(draw(names(ALL)), draw(patterns.shapes())))
    return (x,), draw(chosen(copy=st.sampled_from([None, True])))


TABLE["from_dlpack"] = Row(exported(), lambda x, copy=None: x)

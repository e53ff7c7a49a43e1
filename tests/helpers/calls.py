"""One valid call of every function of the namespace that takes arrays.

A row: the operands as NumPy arrays, and how the function is called with them, as
arrays of some namespace. A new function needs a row: the tests over all of the
namespace (stale operands, whose memory the results are in, comparison with
array-api-strict) run through this table.
"""

import numpy as np

import ndx

F = np.array([[1.5, -2.25, 3.0], [4.0, 0.5, -6.0], [0.25, 7.0, 8.5]])
POSITIVE = np.array([[4.0, 1.0, 0.5], [1.0, 3.0, 0.25], [0.5, 0.25, 2.0]])
UNIT = F / 10
I = np.array([[1, 2, 3], [4, 5, 6], [7, 0, 9]])  # noqa: E741
SMALL = np.array([[0, 1, 2], [2, 1, 0], [1, 1, 3]])
B = np.array([[True, False, True], [False, True, True], [False, False, True]])
C = F + 1j * POSITIVE
V = np.array([3.0, 1.0, 2.0])
INDEX = np.array([2, 0, -1])


def plain(function, *arrays):
    return function(*arrays)


def _given(*args, **kwargs):
    return lambda function, x: function(x, *args, **kwargs)


def _rows(operands, names):
    return dict.fromkeys(names.split(), (operands, plain))


_ROWS = _rows(
    (F,),
    """abs all any argmax argmin argsort asarray atan asinh ceil
    conj cos cosh count_nonzero diff empty_like exp expm1 flip floor isfinite isinf
    isnan max mean min negative nonzero ones_like positive real reciprocal
    round sign signbit sin sinh sort square std sum prod tan tanh tril triu trunc
    unique_all unique_counts unique_inverse unique_values var zeros_like
    matrix_transpose unstack linalg.diagonal linalg.matrix_norm
    linalg.matrix_rank linalg.matrix_transpose linalg.pinv linalg.qr linalg.svd
    linalg.svdvals linalg.trace linalg.vector_norm fft.fftshift fft.ifftshift
    fft.rfft fft.rfftn fft.ihfft""",
)
_ROWS |= _rows(
    (POSITIVE,),
    """log log10 log1p log2 sqrt linalg.cholesky linalg.det linalg.eig
    linalg.eigh linalg.eigvals linalg.eigvalsh linalg.inv linalg.slogdet""",
)
_ROWS |= _rows(
    (C,),
    """imag fft.fft fft.ifft fft.fftn fft.ifftn fft.irfft fft.irfftn
    fft.hfft""",
)
_ROWS |= _rows(
    (F, POSITIVE),
    """add atan2 broadcast_arrays copysign divide equal floor_divide
    greater greater_equal hypot less less_equal logaddexp matmul maximum minimum
    multiply nextafter not_equal remainder subtract tensordot vecdot linalg.cross
    linalg.matmul linalg.solve linalg.tensordot linalg.vecdot""",
)
_ROWS |= _rows(
    (I, SMALL),
    """bitwise_and bitwise_left_shift bitwise_or bitwise_right_shift
    bitwise_xor isin""",
)
_ROWS |= {
    "acos": ((UNIT,), plain),
    "acosh": ((POSITIVE + 1,), plain),
    "asin": ((UNIT,), plain),
    "atanh": ((UNIT,), plain),
    "astype": ((I,), _given(np.float32)),
    "bitwise_invert": ((I,), plain),
    "broadcast_to": ((V,), _given((3, 3))),
    "clip": ((F, -POSITIVE, POSITIVE), plain),
    "concat": ((F, POSITIVE), lambda f, *x: f(x, axis=1)),
    "cumulative_prod": ((F,), _given(axis=1)),
    "cumulative_sum": ((F,), _given(axis=0, include_initial=True)),
    "expand_dims": ((F,), _given(axis=1)),
    "from_dlpack": ((F,), plain),
    "full_like": ((F,), _given(2.0)),
    "linalg.matrix_power": ((POSITIVE,), _given(-3)),
    "linalg.outer": ((V, V), plain),
    "logical_not": ((B,), plain),
    "logical_and": ((B, B.T), plain),
    "logical_or": ((B, B.T), plain),
    "logical_xor": ((B, B.T), plain),
    "meshgrid": ((V, V), plain),
    "moveaxis": ((F,), _given(0, 1)),
    "permute_dims": ((F,), _given((1, 0))),
    "pow": ((POSITIVE, UNIT), plain),
    "repeat": ((F, SMALL[0]), lambda f, x, counts: f(x, counts, axis=0)),
    "reshape": ((F,), _given((9,))),
    "roll": ((F,), _given(2, axis=1)),
    "searchsorted": ((np.sort(V), F), plain),
    "squeeze": ((F[None],), _given(0)),
    "stack": ((F, POSITIVE), lambda f, *x: f(x, axis=1)),
    "take": ((F, INDEX), lambda f, x, i: f(x, i, axis=1)),
    "take_along_axis": ((F, SMALL % 3), plain),
    "tile": ((F,), _given((2, 1))),
    "where": ((B, F, POSITIVE), plain),
}
CALLS = dict(sorted(_ROWS.items()))

# Functions that take no arrays; dtypes, names and numbers only.
NO_ARRAYS = {
    "arange",
    "broadcast_shapes",
    "cost_model",
    "current_backend",
    "current_workspace",
    "empty",
    "eye",
    "full",
    "fuse",
    "get_include",
    "get_num_threads",
    "linspace",
    "load",
    "ones",
    "open",
    "set_default",
    "set_num_threads",
    "synchronize",
    "waitall",
    "workspace",
    "zeros",
    "fft.fftfreq",
    "fft.rfftfreq",
}
# They take a path, too: their rows are in `helpers.paths`.
FILES = {"save"}
# Of arrays they take the dtype only, which a stale one has too.
DTYPES_ONLY = {"can_cast", "finfo", "iinfo", "isdtype", "result_type"}
# Their results depend on NumPy's or the library's own choices: not compared.
UNDEFINED = {"empty_like", "from_dlpack", "unique_all", "unique_inverse"}


def resolve(namespace, name):
    """Return the function of a name with dots."""
    for part in name.split("."):
        namespace = getattr(namespace, part)
    return namespace


def public_functions():
    """Return the names of all functions in the namespace and its extensions.

    The tools that are built on it have tests of their own, in tests/pipelines.
    """
    found = set()
    for prefix, module in (("", ndx), ("linalg.", ndx.linalg), ("fft.", ndx.fft)):
        tools = {n for n, m in ndx._LATER.items() if m.startswith("ndx._pipelines.")}
        names = set(dir(ndx)) - tools if module is ndx else module.__all__
        for name in names:
            value = getattr(module, name)
            public = not name.startswith("_") and callable(value)
            if public and not isinstance(value, type):
                found.add(prefix + name)
    return found


def results(value):
    """Return the arrays in what a function returned, flat."""
    return list(value) if isinstance(value, tuple) else [value]

"""Results that no NDArray can be stay NumPy's: its bytes, its memory, its views.

Each function of NumPy's namespace is called with arrays in the other byte order,
without alignment, of strings, objects and records, in many ways. Where NumPy's result
is such an array, so is ours.
"""

import numpy as np
import pytest

import ndx
import ndx.numpy as face


def unaligned():
    memory = np.zeros(49, "u1")
    x = memory[1:].view("f8").reshape(2, 3)
    x[...] = np.arange(6).reshape(2, 3)
    return x


OPERANDS = {
    "swapped": lambda: np.arange(6, dtype=np.dtype("i4").newbyteorder()).reshape(2, 3),
    "swapped floats": lambda: np.arange(6.0).astype(np.dtype("f8").newbyteorder()),
    "swapped complex": lambda: np.arange(3).astype(np.dtype("c16").newbyteorder()),
    "unaligned": unaligned,
    "strings": lambda: np.array(["b", "", "ab"]),
    "objects": lambda: np.array([3, 1, 2], dtype=object),
    "records": lambda: np.zeros(3, [("a", "i4"), ("b", ">f8")]),
    "float16": lambda: np.arange(3, dtype="f2"),
    "dates": lambda: np.arange(3).astype("M8[D]"),
}

# What follows the operand.
ARGUMENTS = [(), (0,), (1,), (2,), (0, 0), (0, 1), ((0,),), ((-1,),), (None,), ("x",)]

# They ask for files, or write, or show.
LEFT_OUT = {
    *("save", "savez", "savez_compressed", "savetxt", "load", "loadtxt", "fromfile"),
    *("genfromtxt", "memmap", "fromregex", "test", "info", "set_printoptions"),
    *(
        "setbufsize",
        "show_config",
        "show_runtime",
        "seterr",
        "seterrcall",
        "printoptions",
    ),
    *("fromstring", "frombuffer", "from_dlpack", "errstate", "empty", "empty_like"),
    "printoptions",
}

FUNCTIONS = [
    name
    for name in sorted(np.__all__)
    if name not in LEFT_OUT
    and callable(getattr(np, name))
    and not isinstance(getattr(np, name), type)
]


def call(function, operand, rest):
    """Return the array results of a function; None if it raises or has none."""
    arguments = [operand if item == "x" else item for item in rest]
    try:
        with np.errstate(all="ignore"):
            found = function(operand, *arguments)
    except Exception:
        return None
    return list(found) if isinstance(found, (list, tuple)) else [found]


def is_foreign(x):
    """Whether a result is NumPy's array, which no NDArray can be."""
    if not isinstance(x, np.ndarray):
        return False
    try:
        ndx.asarray(x, copy=False)
    except (TypeError, ValueError):
        return True
    return False


def compare(found, wanted, operand, operand_too):
    assert type(found) is type(wanted)
    assert found.dtype == wanted.dtype
    assert found.dtype.byteorder == wanted.dtype.byteorder
    assert found.shape == wanted.shape
    if not wanted.dtype.hasobject:
        assert found.tobytes() == wanted.tobytes()
    shares = np.shares_memory(found, operand)
    assert shares == np.shares_memory(wanted, operand_too)
    assert found.flags.writeable == wanted.flags.writeable


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", OPERANDS)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_results_are_numpys(name, kind):
    for rest in ARGUMENTS:
        operand, operand_too = OPERANDS[kind](), OPERANDS[kind]()
        wanted = call(getattr(np, name), operand_too, rest)
        if wanted is None or not any(is_foreign(x) for x in wanted):
            continue
        found = call(getattr(face, name), operand, rest)
        assert found is not None, rest
        assert len(found) == len(wanted)
        for ours, numpys in zip(found, wanted, strict=True):
            if is_foreign(numpys):
                compare(ours, numpys, operand, operand_too)


def test_writes_through_views_reach_the_operand():
    x = np.zeros((2, 3), np.dtype("i4").newbyteorder())
    face.flip(x)[0, 0] = 1
    face.ravel(x)[0] = 2
    face.split(x, 3, axis=1)[1][:] = 3
    face.asarray(x)[1, 0] = 4
    assert x.tolist() == [[2, 3, 0], [4, 3, 1]]


def test_native_results_of_swapped_operands_are_ours():
    x = np.arange(3, dtype=np.dtype("i4").newbyteorder())
    for found in (face.add(x, 1), face.sum(x, keepdims=True), face.array(x, float)):
        assert isinstance(found, ndx.NDArray)

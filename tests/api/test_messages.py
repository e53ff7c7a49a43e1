"""What is said to users who try what other libraries have, or mistype something."""

import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import ndx
from ndx._api import missing_names, public


@pytest.mark.parametrize(
    ("module", "name"),
    [
        (module, name)
        for module, names in missing_names._ELSEWHERE.items()
        for name in names
    ],
)
def test_names_of_numpy_lead_to_those_of_the_standard(module, name):
    home = getattr(ndx, module) if module else ndx
    with pytest.raises(AttributeError, match=f"'{name}'; here it is") as at:
        getattr(home, name)
    assert not hasattr(home, name)
    # What is named instead is there.
    text = str(at.value).partition("here it is ")[2]
    for word in text.replace(";", " ").replace(",", " ").replace("(", " ").split():
        if word.startswith("ndx."):
            found = ndx
            for part in word.split(".")[1:]:
                if part == "default_rng":
                    break
                found = getattr(found, part)


def test_other_names_are_unknown_as_ever():
    for home in (ndx, ndx.linalg, ndx.random):
        with pytest.raises(AttributeError, match="has no attribute 'nothing'$"):
            home.nothing  # noqa: B018
    with pytest.raises(ImportError, match="cannot import name 'nothing'"):
        exec("from ndx import nothing")
    code = "import ndx; ndx.sume"
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert "Did you mean: 'sum'?" in result.stderr
    code = "import ndx; ndx.cumsum"
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert "here it is ndx.cumulative_sum" in result.stderr
    assert "Did you mean" not in result.stderr


X = ndx.ones((2, 3))
POSITIONAL = [
    (lambda: ndx.sum(X, 1), "sum", "axis=1"),
    (lambda: ndx.zeros(3, int), "zeros", "dtype=int"),
    (lambda: ndx.concat([X, X], 0), "concat", "axis=0"),
    (lambda: ndx.exp(X, X), "exp", r"out=\.\.\."),
    (lambda: ndx.linalg.svd(X, False), "svd", "full_matrices=False"),
    (lambda: ndx.argsort(X, 0, axis=1), "argsort", "axis=0"),
    (lambda: ndx.full((2,), 3, "int8"), "full", "dtype='int8'"),
]


@pytest.mark.parametrize(("call", "name", "given"), POSITIONAL)
def test_too_many_positional_arguments(call, name, given):
    match = rf"{name}\(\) takes \d positional arguments?, but \d were given; .* {given}"
    with pytest.raises(TypeError, match=match):
        call()


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: ndx.ones(3, 4), "as in ndx.ones((3, 4))"),
        (lambda: ndx.zeros(3, 4, 5), "as in ndx.zeros((3, 4, 5))"),
        (lambda: ndx.empty(3, 4), "as in ndx.empty((3, 4))"),
        (lambda: ndx.reshape(X, 3, 2), "as in ndx.reshape(x, (3, 2))"),
        (lambda: ndx.permute_dims(X, 1, 0), "as in ndx.permute_dims(x, (1, 0))"),
        (lambda: ndx.concat(X, X), "as in ndx.concat([x1, x2])"),
        (lambda: ndx.stack(X, X, X), "as in ndx.stack([x1, x2, x3])"),
        (lambda: ndx.clip([1, 2], 0, 1), "clip does not take a list; convert it"),
        (lambda: ndx.clip(X, [1, 2], 1), "clip does not take a list; valid are"),
        (lambda: ndx.clip(X, 0, "1"), "clip does not take a str; valid are"),
        (lambda: ndx.exp(2.0), "exp does not take a float; convert it with ndx.asarr"),
        (lambda: ndx.workspace(len), '; write @ndx.workspace("name")'),
    ],
)
def test_what_is_meant_is_written(call, words):
    with pytest.raises(TypeError) as caught:
        call()
    assert words in str(caught.value)


def test_what_has_no_dlpack_is_converted_by_asarray():
    # The standard wants an AttributeError.
    with pytest.raises(AttributeError, match="list does not support DLPack .*asarray"):
        ndx.from_dlpack([1])


def test_a_workspace_that_is_larger_than_a_limit_is_named():
    for ask in (
        lambda: ndx.workspace("too large", size="4MiB").__enter__(),
        lambda: ndx.workspace("too large").reserve("4MiB"),
    ):
        with ndx.use("host", limit="1MiB"):
            with pytest.raises(
                ndx.OutOfMemoryError, match="workspace 'too large' can't have its 4 MiB"
            ) as caught:
                ask()
            assert "its limit is 1 MiB" in str(caught.value)
            ndx.workspace("too large").destroy()


def test_as_many_positional_arguments_as_there_are():
    assert ndx.clip(X, 2, 3)[0, 0] == 2
    assert ndx.reshape(X, (6,)).shape == (6,)
    assert len(ndx.meshgrid(*[ndx.ones(1)] * 5)) == 5
    assert ndx.result_type(*[ndx.float32] * 9) == ndx.float32
    with pytest.raises(TypeError, match=r"takes 2 positional arguments, but 3 were"):
        ndx.can_cast(1, 2, 3)


FEWER = [
    (lambda: ndx.sin(), "sin", 1, 0),
    (lambda: ndx.add(), "add", 2, 0),
    (lambda: ndx.add(X, out=X), "add", 2, 1),
]


@pytest.mark.parametrize(("call", "name", "expected", "given"), FEWER)
def test_too_few_positional_arguments(call, name, expected, given):
    match = rf"^{name}\(\) takes {expected} positional arguments?, but {given} were"
    with pytest.raises(TypeError, match=match):
        call()


@pytest.mark.parametrize(
    "name", [name for name in ndx.__all__ if type(getattr(ndx, name)) is type(ndx.add)]
)
def test_a_keyword_that_there_is_not(name):
    """The error names the function, not what it was compiled by."""
    for change in (lambda call: call, ndx.fuse):
        with pytest.raises(TypeError, match=rf"\b{name}\b"):
            change(lambda: getattr(ndx, name)(nope=1))()


def test_a_keyword_that_there_is_not_next_to_operands():
    match = r"^add\(\) got an unexpected keyword argument 'nope'; valid is out=$"
    for names in ({"nope": 1}, {"out": None, "nope": 1}):
        with pytest.raises(TypeError, match=match):
            ndx.add(X, X, **names)
    assert ndx.add(X, X, out=None)[1, 1] == 2
    with pytest.raises(TypeError, match=r"^fft\(\) .*; valid are n=, axis=, norm=$"):
        ndx.fft.fft(X, nope=1)


def test_the_truth_of_several_elements():
    for x in (X, ndx.ones(2), ndx.ones(0)):
        with pytest.raises(TypeError, match=r"ndx\.any\(x\) or ndx\.all\(x\)"):
            bool(x)
    assert bool(ndx.asarray(2.0))


@pytest.mark.parametrize("name", sorted(ndx.backends._registry.BUILTIN))
def test_options_of_backends_are_listed(name):
    _, kind = ndx.backends._registry.BUILTIN[name]
    known = ndx._lib.options.options_of(getattr(ndx.backends, kind))
    assert {"limit", "pool", "initial", "fallback"} <= set(known)


def test_a_misspelt_option_is_named_with_those_that_there_are():
    with pytest.raises(TypeError, match=r"'host' has no option 'limits' \(did you mean "
                       "limit=") as caught:  # fmt: skip
        ndx.use("host", limits=1)
    for option in ("limit", "pool", "initial", "idle_release", "reserve_fraction"):
        assert option in str(caught.value)
    with pytest.raises(
        TypeError, match="'simulated' has no option 'volume'; .*capacity"
    ):
        ndx.use("simulated", volume=1)
    with pytest.raises(
        TypeError, match="no option 'progression' .did you mean progress="
    ) as error:
        ndx.passes(progression=print)
    assert "self" not in str(error.value)
    assert "unknown" not in str(__import__("inspect").signature(ndx.passes))


def test_a_misspelt_option_of_a_backend_in_python():
    class Mine(ndx.backends.PythonBackend):
        def __init__(self, *, size=3, limit=None):
            pass

    ndx.backends.register("mine", Mine)
    try:
        with pytest.raises(
            TypeError, match="'mine' has no option 'sizes' .*size=.*limit"
        ):
            ndx.use("mine", sizes=3)
        with pytest.raises(TypeError, match="'mine' has no option 'x'; its opt"):
            ndx.use("mine", x=3)
    finally:
        ndx.backends.unregister("mine")


def test_two_configs_of_one_name():
    ndx.workspace("twice", size="1KiB")
    with pytest.raises(
        ndx.WorkspaceError, match=r"ndx\.workspace\('twice'\)\.destroy\(\)"
    ) as caught:
        ndx.workspace("twice", size="2KiB")
    ndx.workspace("twice").destroy()
    assert "take another name" in str(caught.value)


def test_in_place_with_a_wider_dtype():
    x = ndx.asarray([1, 2])
    for operand in (1.5, ndx.ones(2)):
        with pytest.raises(TypeError, match="can't be cast to the dtype of the array"):
            x += operand
    assert x[0] == 1


def test_import_of_what_was_never_built(tmp_path):
    source = Path(ndx.__file__).parent
    package = tmp_path / "ndx"
    package.mkdir()
    for file in source.rglob("*.py"):
        copy = package / file.relative_to(source)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes(file.read_bytes())

    def message():
        result = subprocess.run(
            [sys.executable, "-c", "import ndx"],
            cwd=tmp_path, env={"PATH": "", "PYTHONPATH": str(tmp_path)},
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert result.returncode == 1
        return result.stderr.splitlines()[-1]

    assert "has no compiled modules for Python 3." in message()
    assert "Install it again" in message()
    (package / "_core.pyx").touch()
    assert f"That is its source. Build it in {tmp_path} (`make build`" in message()


def test_the_modules_of_names_know_no_name_that_there_is():
    names = missing_names._ELSEWHERE[""]
    assert not set(names) & set(public.public_names(vars(ndx)))


# ---------------------------------------------------------------- rounding

ROUNDED = [
    (2.567, 2, 2.57), (2.5, None, 2.0), (-2.5, 0, -2.0), (1234.5, -2, 1200.0),
    (1e300, 10, 1e300), (float("inf"), 3, float("inf")), (5.0, 400, 5.0),
    (5.0, -400, 0.0), (0.1, 320, 0.1), (0.0, -3, 0.0), (1e-300, 308, 1e-300),
    (1.5, 10**9, 1.5), (1.5, -(10**9), 0.0), (7, -(10**9), 0), (7, -(10**400), 0),
    (1.5, 10**400, 1.5), (7, 10**400, 7),
    (12345, -1, 12340), (12355, -1, 12360), (-55, -1, -60), (7, 3, 7), (7, -30, 0),
]  # fmt: skip


@pytest.mark.parametrize(("value", "digits", "want"), ROUNDED)
@pytest.mark.parametrize("shape", [(), (3,), (0,)])
def test_round(value, digits, want, shape):
    x = ndx.full(shape, value)
    found = round(x) if digits is None else round(x, digits)
    if digits is None and shape == ():
        assert (type(found), found) == (int, want)
        return
    assert (found.shape, found.dtype) == (x.shape, x.dtype)
    assert ndx.all(found == want)
    assert found is not x


def test_round_of_other_dtypes():
    assert round(ndx.asarray(200, dtype="uint8"), -2) == 200
    assert round(ndx.asarray(1.2345, dtype="float32"), 2).dtype == ndx.float32
    assert round(ndx.asarray(1.5, dtype="float32"), 50) == 1.5
    assert round(ndx.asarray(1.5, dtype="float32"), -50) == 0
    for x in (ndx.asarray(True), ndx.asarray(1.5j)):
        with pytest.raises(TypeError):
            round(x, 1)
    with pytest.raises(OverflowError, match="beyond int64"):
        round(ndx.asarray(6 * 10**18), -19)
    with pytest.raises(TypeError, match="integer"):
        round(X, 1.5)


@pytest.mark.parametrize("dtype", [None, ndx.int64])
def test_numbers_as_objects(dtype):
    for values in ([1, 2.5], [1, 2]):
        with pytest.raises(TypeError, match="dtype object"):
            ndx.asarray(np.array(values, object), dtype=dtype)
    x = ndx.asarray(np.array([1, 2.5], object), dtype=ndx.float64)
    assert x.tolist() == [1, 2.5]
    for values in ([2**64, 1], np.array([2**64], object)):
        with pytest.raises(OverflowError, match="a Python integer"):
            ndx.asarray(values, dtype=dtype)


@pytest.mark.parametrize("axis", [2, -3, 10**30])
@pytest.mark.parametrize("shape", [(2, 2), ()])
def test_an_axis_that_there_is_not(axis, shape):
    x = ndx.ones(shape)
    for call in (ndx.sum, ndx.flip, ndx.concat, ndx.argmax):
        with pytest.raises(np.exceptions.AxisError, match=f"^axis {axis} is out of r"):
            call([x] if call is ndx.concat else x, axis=axis)


def test_errors_pickle():
    with pytest.raises(TypeError) as caught:
        ndx.sum(X, 1)
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


@pytest.mark.parametrize(
    ("module", "name", "here"),
    [
        ("", "concatenate", "ndx.concat"),
        ("", "cumsum", "ndx.cumulative_sum"),
        ("", "arctan2", "ndx.atan2"),
        ("", "unique", "ndx.unique_values"),
        ("linalg", "norm", "ndx.linalg.vector_norm"),
    ],
)
def test_what_users_of_numpy_try_first_is_known(module, name, here):
    home = getattr(ndx, module) if module else ndx
    with pytest.raises(AttributeError, match=rf"'{name}'; here it is {here}\b"):
        getattr(home, name)


@pytest.mark.parametrize("name", ["distributed", "numpy"])
def test_modules_that_are_to_be_imported(name):
    with pytest.raises(AttributeError, match=f"import ndx.{name}$"):
        ndx.__getattr__(name)

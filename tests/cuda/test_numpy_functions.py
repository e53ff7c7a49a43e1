"""NumPy's functions, methods and ufuncs on a GPU: by CuPy, or a clear refusal."""

import numpy as np
import pytest
from helpers.compare import assert_same

import ndx
import ndx.numpy as face

A = np.asarray([[3.0, 1.0, np.nan], [2.0, 5.0, 4.0]])
CALLS = {
    "nanmean": lambda np, x: np.nanmean(x, axis=0),
    "einsum": lambda np, x: np.einsum("ij->j", x),
    "pad": lambda np, x: np.pad(x, 1),
    "concatenate": lambda np, x: np.concatenate([x, x], axis=1),
    "percentile": lambda np, x: np.percentile(x[1], 50.0),
    "histogram": lambda np, x: np.histogram(x[1], bins=2),
    "sum": lambda np, x: np.sum(x, axis=1),
    "add": lambda np, x: np.add(x, x),
    "exp": lambda np, x: np.exp(x),
    "add.reduce": lambda np, x: np.add.reduce(x, axis=0),
    "linalg.inv": lambda np, x: np.linalg.inv(x[:, :2]),
    "linalg.lstsq": lambda np, x: np.linalg.lstsq(x[:, :2], x[:, 0], rcond=None)[0],
    "fft.fft": lambda np, x: np.fft.fft(x[1]),
    "sorted method": lambda np, x: x.argsort(axis=1),
    "repeat method": lambda np, x: x.repeat(2),
    "reshape method": lambda np, x: x.reshape(3, -1),
    "mean method": lambda np, x: x.mean(axis=1),
    "method with a keyword of NumPy's": lambda np, x: x.sum(axis=0, dtype="float32"),
    "flatten method": lambda np, x: x.T.flatten(),
}


def compare(found, expected):
    if isinstance(expected, (tuple, list)):
        assert type(found) is type(expected)
        for item, other in zip(found, expected, strict=True):
            compare(item, other)
        return
    assert isinstance(found, ndx.NDArray)
    assert found.device == ndx.Device("cuda:0")
    assert_same(found.to_device("cpu"), np.asarray(expected), rtol=1e-12)


@pytest.mark.parametrize("namespace", [np, face], ids=["numpy", "ndx.numpy"])
@pytest.mark.parametrize("name", CALLS)
def test_results_are_on_the_gpu_and_equal_numpys(gpu, name, namespace):
    x = ndx.asarray(A, device="cuda:0")
    compare(CALLS[name](namespace, x), CALLS[name](np, A))


def test_a_list_stays_a_list(gpu):
    x = ndx.arange(5, device="cuda:0")
    compare(np.array_split(x, 2), np.array_split(np.arange(5), 2))


def test_out_receives_the_result_and_is_returned(gpu):
    x, out = ndx.arange(6, device="cuda:0"), ndx.zeros(3, device="cuda:0", dtype=int)
    assert np.take(x, ndx.asarray([5, 0, 2], device="cuda:0"), out=out) is out
    assert out.to_device("cpu").tolist() == [5, 0, 2]
    with pytest.raises(ValueError, match="read-only"):
        np.nanmean(x, axis=0, out=ndx.broadcast_to(ndx.ones(1, device="cuda:0"), (2,)))


def test_methods_change_the_array_in_place(gpu):
    x = ndx.asarray([3, 1, 2], device="cuda:0")
    assert x.sort() is None
    assert x.to_device("cpu").tolist() == [1, 2, 3]
    x.fill(7)
    assert x.to_device("cpu").tolist() == [7, 7, 7]


@pytest.mark.parametrize(
    "call",
    [
        lambda x: np.apply_over_axes(np.sum, x, [0]),
        lambda x: np.frexp(x),
        # NumPy 2.4 leaks the operand where `np.add.accumulate` raises.
        lambda x: face.add.accumulate(x),
    ],
)
def test_functions_that_cupy_lacks_are_refused(gpu, call):
    if gpu is None:
        pytest.skip("a real CuPy has some of these")
    with pytest.raises(TypeError, match="CuPy"):
        call(ndx.asarray(A, device="cuda:0"))


def test_arrays_of_the_cpu_are_not_moved(gpu):
    x = ndx.asarray(A, device="cuda:0")
    for other in (A, ndx.asarray(A)):
        with pytest.raises(ValueError, match="different devices"):
            np.concatenate([x, other])


def test_stale_arrays_are_refused(gpu):
    with ndx.workspace("numpy functions", backend="cuda"):
        x = ndx.ones(3, device="cuda:0")
    with pytest.raises(ndx.StaleArrayError):
        np.nanmean(x)
    with pytest.raises(ndx.StaleArrayError):
        x.repeat(2)


CREATE = {
    "zeros": lambda np: np.zeros((2, 3), int),
    "arange": lambda np: np.arange(3),
    "array": lambda np: np.array([[1, 2], [3, 4]]),
    "mgrid": lambda np: np.mgrid[0:2, 0:3],
    "linspace": lambda np: np.linspace(0, 1, 3),
    "random numbers": lambda np: np.random.default_rng(1).normal(size=3),
}


@pytest.mark.parametrize("name", CREATE)
def test_new_arrays_are_on_the_current_gpu(gpu, name):
    with ndx.use("cuda:0"):
        compare(CREATE[name](face), CREATE[name](np))
    assert CREATE[name](face).device == ndx.Device("cpu")


def test_results_from_arrays_of_the_cpu_stay_there(gpu):
    x = ndx.ones(3)
    with ndx.use("cuda:0"):
        assert np.pad(x, 1).device == ndx.Device("cpu")
        assert type(face.array(["a"])) is np.ndarray

"""PyTorch shares the memory of NDArrays, and stacks them to batches."""

import numpy as np
import pytest
from helpers.commands import run_python
from helpers.consumers import FEATURES

import ndx
from ndx.testing import assert_allclose, assert_equal

torch = pytest.importorskip("torch")


def test_tensors_share_the_memory():
    x = ndx.zeros(3)
    for tensor in (torch.as_tensor(x), torch.from_dlpack(x)):
        tensor += 1
    assert_equal(x, np.full(3, 2.0))
    assert_equal(ndx.from_dlpack(torch.ones(2, dtype=torch.float64)), np.ones(2))


def test_a_loader_makes_batches():
    rows = [{"x": ndx.asarray(row), "y": ndx.asarray(1)} for row in FEATURES[:4]]
    (batch,) = torch.utils.data.DataLoader(rows, batch_size=4)
    assert torch.equal(batch["x"], torch.as_tensor(FEATURES[:4]))
    assert batch["y"].tolist() == [1, 1, 1, 1]


DTYPES = ["bool", "uint8", "int16", "int64", "float32", "float64", "complex64"]


@pytest.mark.parametrize("dtype", DTYPES)
def test_dtypes_and_strides_are_kept(dtype):
    x = ndx.asarray((FEATURES * 9).astype(dtype))
    for view in (x, x.T, x[::2, 1:]):
        tensor = torch.from_dlpack(view)
        assert tensor.dtype == getattr(torch, dtype)
        assert np.array_equal(tensor.numpy(), np.asarray(view))
        again = ndx.from_dlpack(tensor)
        assert isinstance(again, ndx.NDArray)
        assert_equal(again, view)
        assert np.shares_memory(np.asarray(again), np.asarray(x))


def test_a_model_computes_on_ndarrays():
    torch.manual_seed(1)
    model = torch.nn.Linear(4, 1, dtype=torch.float64)
    with torch.no_grad():
        found = ndx.from_dlpack(model(torch.from_dlpack(ndx.asarray(FEATURES))))
    weight, bias = (np.asarray(each.detach()) for each in model.parameters())
    assert_allclose(found, FEATURES @ weight.T + bias, rtol=1e-12)


def test_gradients_need_a_detached_tensor():
    tensor = torch.ones(3, requires_grad=True)
    with pytest.raises((BufferError, RuntimeError), match="grad"):
        ndx.from_dlpack(tensor)
    assert_equal(ndx.from_dlpack(tensor.detach()), np.ones(3, dtype=np.float32))


def test_memory_of_a_workspace_is_not_recycled_while_torch_has_it():
    with ndx.workspace("step", size="4KiB"):
        tensor = torch.from_dlpack(ndx.full(100, 7.0))
    for _ in range(3):
        with ndx.workspace("step"):
            ndx.zeros(300)
    assert float(tensor.sum()) == 700.0
    del tensor


def test_stale_arrays_are_refused():
    with ndx.workspace():
        x = ndx.ones(3)
    with pytest.raises(ndx.StaleArrayError):
        torch.from_dlpack(x)


# ---- as NumPy's arrays are taken -----------------------------------------------------

TAKING = {
    "asarray": lambda x: torch.asarray(x),
    "asarray by name": lambda x: torch.asarray(obj=x),
    "as_tensor": lambda x: torch.as_tensor(x),
    "as_tensor by name": lambda x: torch.as_tensor(data=x),
    "from_numpy": lambda x: torch.from_numpy(x),
}
SHARING = TAKING | {
    "from_dlpack": lambda x: torch.from_dlpack(x),
    "frombuffer": lambda x: torch.frombuffer(x, dtype=torch.float64),
    "a versioned capsule": lambda x: torch.from_dlpack(
        x.__dlpack__(max_version=(1, 0))
    ),
}


@pytest.mark.parametrize("how", [*TAKING, "tensor"])
def test_reversed_arrays_are_refused(how):
    x = ndx.arange(4.0)[::-1]
    with pytest.raises(ValueError, match="negative"):
        TAKING.get(how, torch.tensor)(x)
    for take in (torch.from_dlpack, torch.zeros(1).new_tensor, torch.DoubleTensor):
        with pytest.raises(BufferError, match="reversed"):
            take(x)
    assert torch.from_dlpack(x, copy=True).tolist() == [3.0, 2.0, 1.0, 0.0]


@pytest.mark.filterwarnings("ignore:The given:UserWarning")
@pytest.mark.filterwarnings("ignore:the array is read-only:UserWarning")
@pytest.mark.parametrize("how", SHARING)
def test_tensors_over_read_only_files_can_be_written_to(how, tmp_path):
    """What is written stays in this process: no crash, and the file is unchanged."""
    path = tmp_path / "x.npy"
    ndx.save(path, ndx.arange(4.0))
    content = path.read_bytes()
    x = ndx.open(path)
    tensor = SHARING[how](x)
    tensor[0] = 5.0
    assert tensor.tolist() == [5.0, 1.0, 2.0, 3.0]
    assert not x.flags.writeable
    assert path.read_bytes() == content
    assert ndx.open(path).tolist() == [0.0, 1.0, 2.0, 3.0]


def test_read_only_arrays_are_warned_of():
    x = ndx.asarray(np.frombuffer(bytes(16)))
    with pytest.warns(UserWarning, match="read-only"):
        torch.from_dlpack(x)
    with pytest.raises(BufferError, match="read-only"):
        torch.from_dlpack(x.__dlpack__())
    torch.from_dlpack(x, copy=True)[0] = 1.0
    torch.tensor(x)[0] = 1.0
    assert x.tolist() == [0.0, 0.0]


IMPORTED_BEFORE = """
from torch import asarray
from array_api_compat.torch import asarray as compatible
import pickle, torch, ndx
x = ndx.asarray([1.0, 2.0, 3.0])
assert asarray is torch.asarray is pickle.loads(pickle.dumps(torch.asarray))
print(asarray(x).tolist(), compatible(x).tolist(), torch.asarray(x[1]).tolist())
print(torch.asarray([4.0]).tolist())
"""


@pytest.mark.parametrize("first", ["", "import ndx\n"])
def test_functions_that_were_imported_by_name(first):
    pytest.importorskip("array_api_compat")
    expected = "[1.0, 2.0, 3.0] [1.0, 2.0, 3.0] 2.0\n[4.0]\n"
    assert run_python(first + IMPORTED_BEFORE) == expected


def test_a_comparison_is_not_one_of_identities():
    with pytest.raises(TypeError, match="convert one"):
        torch.ones(3) == ndx.ones(3)  # noqa: B015
    with pytest.raises(TypeError, match="convert one"):
        ndx.ones(3) != torch.ones(3)  # noqa: B015


# ---- numbers, masks and index arrays -------------------------------------------------


def test_numbers_do_not_change_a_tensors_dtype():
    tensor = torch.arange(3.0)
    for number in (ndx.asarray(2.0), ndx.asarray([2.0])[0], ndx.asarray(2)):
        assert (tensor * number).dtype == torch.float32
        assert (number * tensor).tolist() == [0.0, 2.0, 4.0]
    assert (torch.arange(3) / ndx.asarray(2)).dtype == torch.float32


def test_tensors_are_changed_in_place_by_numbers():
    tensor = also = torch.arange(3.0)
    tensor += ndx.asarray(2.0)
    tensor[ndx.asarray([True, False, False])] = ndx.asarray(9.0)
    assert also.tolist() == [9.0, 3.0, 4.0]


@pytest.mark.filterwarnings("ignore:Creating a tensor from a list:UserWarning")
def test_the_dtype_of_elements_in_lists():
    x = ndx.asarray([0.1, 0.2])
    for make in (torch.tensor, torch.as_tensor, torch.asarray):
        for values in ([x[0], x[1]], [ndx.asarray(0.1), ndx.asarray(0.2)], list(x)):
            assert make(values).dtype == torch.float64
            assert make(values).tolist() == [0.1, 0.2]
        assert make([ndx.asarray(1), 2]).dtype == torch.int64
        assert make([0.1, 0.2]).dtype == torch.float32
        assert make([[[x]], [[x]]]).tolist() == [[[[0.1, 0.2]]]] * 2
    endless = []
    endless.append(endless)
    with pytest.raises(ValueError, match="too many dimensions"):
        torch.tensor(endless)


@pytest.mark.filterwarnings("ignore:Creating a tensor from a list:UserWarning")
def test_lists_in_tensors_do_not_share_memory():
    x = ndx.zeros(2)
    torch.asarray([x, x])[0, 0] = 1.0
    assert x.tolist() == [0.0, 0.0]


def test_arrays_that_are_no_index_lack_the_protocol():
    for x in (ndx.ones(2), ndx.ones(2, dtype="uint8"), ndx.ones((2, 2), dtype="int8")):
        assert not hasattr(x, "__torch_function__")
        assert hasattr(x.sum(), "__torch_function__")
    assert torch.Tensor(ndx.ones(2)).tolist() == [1.0, 1.0]


def test_classes_derived_from_tensors_are_kept():
    class Derived(torch.Tensor):
        pass

    tensor = torch.arange(3.0).as_subclass(Derived)
    assert type(tensor * ndx.asarray(2.0)) is Derived
    assert type(tensor[ndx.asarray([0, 2])]) is Derived


def test_distributions_take_numbers():
    normal = torch.distributions.Normal(ndx.asarray(1.0), ndx.asarray([2.0])[0])
    assert normal.scale.dtype == torch.float32
    assert float(normal.mean) == 1.0
    mixed = torch.distributions.Normal(torch.zeros(2), ndx.asarray(2.0))
    assert mixed.scale.tolist() == [2.0, 2.0]


def test_a_loader_without_batches_makes_tensors():
    first, second = torch.utils.data.DataLoader(
        ndx.asarray([0.1, 0.2]), batch_size=None
    )
    assert (first.dtype, float(second)) == (torch.float64, 0.2)


@pytest.mark.parametrize("k", [1, 2, 5])
def test_lists_that_contain_themselves_are_refused(k):
    values = [1.0]
    values.extend([values] * k)
    with pytest.raises((ValueError, RecursionError, TypeError)):
        torch.tensor(values)


def test_integers_are_sizes():
    n = ndx.numpy.asarray([3, 1, 2])[0]
    for function in (torch.empty, torch.ones, torch.rand, torch.randn, torch.zeros):
        assert function(n, 2).shape == (3, 2)
        assert function(n).shape == function((n,)).shape == function(size=(n,)).shape
    with pytest.raises(TypeError):
        torch.zeros(ndx.ones(3), 2)

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

"""PyTorch shares the memory of NDArrays, and stacks them to batches."""

import numpy as np
import pytest
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
        assert type(again) is ndx.NDArray
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

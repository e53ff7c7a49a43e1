"""PyTorch shares the memory of NDArrays, and stacks them to batches."""

import numpy as np
import pytest
from helpers.consumers import FEATURES

import ndx
from ndx.testing import assert_equal

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

"""The order of elements in a GPU's memory: ``asarray(order=)``."""

import numpy as np
import pytest

import ndx

pytestmark = pytest.mark.usefixtures("gpu")
VIEWS = {
    "as it is": lambda x: x,
    "transposed": lambda x: ndx.permute_dims(x, (2, 1, 0)),
    "every other": lambda x: x[:, ::2],
    "empty": lambda x: x[:, :0],
    "one element": lambda x: x[1:, 2:, 3:],
}


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("order", ["C", "F", None])
def test_elements_lie_as_asked(view, order):
    host = VIEWS[view](ndx.reshape(ndx.arange(24), (2, 3, 4)))
    x = VIEWS[view](ndx.reshape(ndx.arange(24, device="cuda:0"), (2, 3, 4)))
    for obj, where in ((x, None), (x, "cuda:0"), (x, "cpu"), (host, "cuda:0")):
        found = ndx.asarray(obj, order=order, device=where)
        assert found.device == (where or "cuda:0")
        assert np.array_equal(np.asarray(found.to_device("cpu")), np.asarray(host))
        if order is not None and found.size > 1:
            steps = found.strides if order == "C" else found.strides[::-1]
            lengths = found.shape if order == "C" else found.shape[::-1]
            dense = np.empty(lengths, found.dtype).strides
            assert [a for a, n in zip(steps, lengths, strict=True) if n > 1] == [
                a for a, n in zip(dense, lengths, strict=True) if n > 1
            ]


def test_no_copy_where_none_is_needed():
    x = ndx.ones((2, 3), device="cuda:0")
    assert ndx.asarray(x, order="C") is x
    assert ndx.asarray(x.T, order="F", copy=False).shape == (3, 2)
    with pytest.raises(ValueError, match="copy=False, but"):
        ndx.asarray(x, order="F", copy=False)
    with pytest.raises(ValueError, match="valid are 'C'"):
        ndx.asarray(x, order="K")


def test_round_to_decimals():
    x = ndx.asarray([1.256, -2.5, 1e300], device="cuda:0")
    found = round(x, 2)
    assert found.device == "cuda:0"
    assert np.array_equal(np.asarray(found.to_device("cpu")), [1.26, -2.5, 1e300])
    assert np.array_equal(np.asarray(round(x).to_device("cpu")), [1, -2, 1e300])

"""Workers on several GPUs: what they are given is moved to them."""

import collections
import threading

import numpy as np
import pytest

import ndx

GPUS = ["cuda:0", "cuda:1"]
pytestmark = pytest.mark.usefixtures("machine")


def numbers(count, make):
    return [make(np.full(3, float(i))) for i in range(count)]


def on_cpu(tree):
    return tree.to_device("cpu").tolist()


MAKERS = {
    "NumPy's": lambda x: x,
    "ours": ndx.asarray,
    "on the first": lambda x: ndx.asarray(x, device="cuda:0"),
}


@pytest.mark.threads
@pytest.mark.parametrize("workspace", [None, "mine"])
@pytest.mark.parametrize("make", MAKERS)
def test_items_are_moved_to_the_worker(make, workspace):
    barrier = threading.Barrier(2, timeout=20)

    def double(x):
        barrier.wait()
        assert x.workspace in (None, workspace)
        return x * 2

    found = list(
        ndx.parallel.map(
            double, numbers(8, MAKERS[make]), devices=GPUS, workspace=workspace
        )
    )
    # The barrier lets both have one of each pair.
    for pair in zip(found[::2], found[1::2], strict=True):
        assert {str(each.device) for each in pair} == set(GPUS)
    assert [on_cpu(each) for each in found] == [[2.0 * i] * 3 for i in range(8)]
    assert all(each.workspace is None for each in found)


def test_items_are_moved_in_containers_and_other_leaves_stay():
    item = collections.UserDict(x=[np.ones(2), "text", 3], y=(ndx.ones(2), None))
    text = np.asarray(["a"])
    ((a, b),) = ndx.parallel.map(
        lambda x, y: (x, y), [item], [text], devices=["cuda:1"]
    )
    assert type(a) is collections.UserDict
    assert a["x"][0].device == a["y"][0].device == "cuda:1"
    assert a["x"][1:] == ["text", 3]
    assert a["y"][1] is None
    assert b is text
    assert type(item["x"][0]) is np.ndarray
    assert item["y"][0].device == "cpu"


def test_items_come_back_to_the_cpu():
    (found,) = ndx.parallel.map(
        lambda x: x + 1, [ndx.zeros(2, device="cuda:1")], devices=["cpu"]
    )
    assert found.device == "cpu"
    assert found.tolist() == [1.0, 1.0]


def test_without_devices_items_stay():
    item = np.ones(2), ndx.ones(2, device="cuda:1")
    (found,) = ndx.parallel.map(lambda x: [id(x), *map(id, x)], [item], workers=1)
    assert found == [id(item), *map(id, item)]


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("lazy", [False, True])
@pytest.mark.parametrize("workspace", ["enabled", "none"])
@pytest.mark.parametrize("kind", ["params", "gradients"])
def test_batches_are_moved_to_the_worker(make, lazy, workspace, kind):
    met = set()

    def step(params, batch):
        product = batch["x"] * params["w"]
        met.add(str(product.device))
        change = {"w": ndx.mean(product) if kind == "gradients" else params["w"] + 1}
        return change, ndx.sum(product)

    def update(params, gradients):
        return {"w": params["w"] + gradients["w"] * 0 + 1}

    batches = [{"x": x} for x in numbers(8, MAKERS[make])]
    trained = ndx.parallel.train(
        step,
        {"w": ndx.ones(())},
        (each for each in batches) if lazy else batches,
        devices=GPUS,
        mode=workspace,
        update=update if kind == "gradients" else None,
    )
    assert met == set(GPUS)
    assert trained.params["w"].device == "cuda:0"
    assert float(trained.params["w"]) == 5.0
    # The mean of 3 * i * w, for two batches in each of four rounds.
    assert trained.scores == [1.5, 15.0, 40.5, 78.0]


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("workspace", [None, "mine"])
@pytest.mark.parametrize("mode", ["batched", "sequential", "inplace"])
def test_requests_are_moved_to_the_worker(make, mode, workspace):
    weights = ndx.full((3, 3), 1.0, device="cuda:1")
    with ndx.parallel.Predictor(
        lambda x: x @ weights, devices=["cuda:1"], mode=mode, workspace=workspace
    ) as predict:
        futures = [predict.submit(x[None, :]) for x in numbers(4, MAKERS[make])]
        found = [each.result(timeout=20) for each in futures]
    assert all(each.device == "cuda:1" for each in found)
    assert [on_cpu(each) for each in found] == [[[3.0 * i] * 3] for i in range(4)]


def test_a_request_within_a_request_is_moved():
    def ask(x, depth):
        made = x * 2
        assert made.device == "cuda:1"
        return predict(np.ones(2), depth - 1) if depth else made

    with ndx.parallel.Predictor(ask, devices=["cuda:1"], mode="inplace") as predict:
        assert on_cpu(predict(np.ones(2), 2)) == [2.0, 2.0]

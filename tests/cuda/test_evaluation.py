"""Evaluation and roles of a model whose arrays are on a GPU."""

import numpy as np
import pytest
from helpers.layers import Model, batches

import ndx
from ndx import metrics


def data():
    rng = np.random.default_rng(0)
    for n in (20, 20, 7):
        yield rng.random((n, 3)), rng.integers(0, 3, n), rng.integers(0, 2, n)


def loss(expected, outputs):
    return ndx.mean(outputs**2)


def chosen():
    return (
        metrics.Classification(),
        metrics.ROC(),
        metrics.ROC(20, name="in steps"),
        metrics.Mean(loss),
    )


@pytest.mark.parametrize("labels", ["cpu", "cuda:0"])
def test_outputs_on_a_gpu_are_evaluated(gpu, labels):
    plain = ndx.evaluate(lambda x: x, data(), *chosen())
    devices = set()

    def model(x):
        outputs = ndx.asarray(x, device="cuda:0") * 1.0
        devices.add((str(outputs.device), outputs.workspace))
        return outputs

    given = (
        (x, *(ndx.asarray(each, device=labels, copy=True) for each in rest))
        for x, *rest in data()
    )
    with ndx.use("cuda:0"):
        report = ndx.evaluate(model, given, *chosen())
    assert devices == {("cuda:0", "ndx:evaluate")}
    assert str(report) == str(plain)
    assert report["classification"].confusion.device == "cpu"


def test_regression_on_a_gpu(gpu):
    x, *_ = next(data())
    plain, metric = metrics.Regression(), metrics.Regression()
    plain.update(x, x + 0.25)
    with ndx.use("cuda:0"):
        metric.update(ndx.asarray(x, device="cuda:0"), ndx.asarray(x + 0.25))
        assert str(metric.result().tables()[0]) == str(plain.result().tables()[0])
    assert metric.result().mse() == plain.result().mse()


def test_a_plan_trains_on_a_gpu(gpu):
    plan = ndx.WorkspacePlan("enabled", "none")
    reference, (x, expected) = Model(), batches(1)[0]
    losses = [reference.train(ndx.Roles.none(), x, expected)[0] for _ in range(3)]
    with ndx.use("cuda:0"):
        model = Model()
        model.weights = [w.to_device("cuda:0") for w in model.weights]
        pair = [each.to_device("cuda:0") for each in (x, expected)]
        found = [model.train(plan.training(), *pair)[0] for _ in range(3)]
        assert model.infer(plan.inference(), pair[0]).device == "cuda:0"
    np.testing.assert_allclose(found, losses)
    plan.destroy()

"""`ndx.evaluate`: metrics over batches, in one pass, in one workspace."""

import re
import threading
import weakref

import numpy as np
import pytest
from helpers.project import ROOT

import ndx
from ndx import metrics

pytest.importorskip("sklearn.metrics")

CLASSES, FEATURES = 4, 6


def data(sizes=(32, 32, 32, 7), seed=0):
    rng = np.random.default_rng(seed)
    return [
        (
            ndx.asarray(rng.standard_normal((n, FEATURES)), copy=True),
            ndx.asarray(rng.integers(0, CLASSES, n), copy=True),
        )
        for n in sizes
    ]


WEIGHT = ndx.asarray(
    np.random.default_rng(1).standard_normal((FEATURES, CLASSES)), copy=True
)


def model(x):
    z = ndx.exp(ndx.asarray(x) @ WEIGHT)
    return z / ndx.sum(z, axis=1, keepdims=True)


def cross_entropy(expected, outputs):
    return -ndx.log(outputs[ndx.arange(expected.shape[0]), expected])


def one_hot_errors(name="errors"):
    class Errors(metrics.Regression):
        def update(self, expected, outputs, weights=None):
            wanted = expected[:, None] == ndx.arange(CLASSES)
            super().update(wanted, outputs, weights)

    return Errors(name=name)


def all_metrics():
    return (
        metrics.Classification(),
        metrics.ROC(),
        metrics.ROC(50, name="in steps"),
        metrics.Mean(cross_entropy),
        one_hot_errors(),
    )


class Places:
    """Which workspaces outputs are in."""

    def reset(self):
        self.found = set()

    def update(self, expected, outputs):
        self.found.add(outputs.workspace)

    def result(self):
        return self.found


def values(report):
    result = report["classification"]
    return (
        result.confusion.tolist(),
        result.f1(),
        report["ROC"].auc(),
        report["in steps"].auc(),
        report["cross_entropy"],
        report["errors"].mse(),
    )


def open_workspaces():
    return [ws.name for ws in ndx.memory.workspaces() if ws.is_open]


def evaluation_workspaces():
    return [ws for ws in ndx.memory.workspaces() if ws.name == "ndx:evaluate"]


def counters():
    stats = ndx.memory.stats("host")
    return [stats[name] for name in ("total_allocations", "allocated_bytes")]


def test_several_metrics_are_computed_in_one_pass():
    """The function runs once for each batch; each metric counts as if it were alone."""
    calls = []

    def counted(x):
        calls.append(x.shape)
        return model(x)

    batches = data()
    report = ndx.evaluate(counted, batches, *all_metrics())
    assert len(calls) == len(batches) == report.batches
    for alone in all_metrics():
        with ndx.use_workspaces(False):
            for x, expected in batches:
                alone.update(expected, model(x))
        name = alone.name
        assert str(alone.result()) != ""
        if name == "cross_entropy":
            assert report[name] == pytest.approx(alone.result(), rel=1e-12)
        else:
            mine, other = report[name].tables(), alone.result().tables()
            assert [str(table) for table in mine] == [str(table) for table in other]


def test_no_array_is_made_outside_of_the_workspace():
    """After the first batches no memory is taken, from the system or from the pool."""
    batches, seen = data([32] * 20 + [7]), []

    def source():
        for batch in batches:
            seen.append(counters())
            yield batch
        seen.append(counters())

    chosen = all_metrics()
    system = []
    for _ in range(3):
        before = ndx.memory.stats("host")["system_allocations"]
        seen.clear()
        ndx.evaluate(model, source(), *chosen)
        system.append(ndx.memory.stats("host")["system_allocations"] - before)
    assert system[1:] == [0, 0]
    assert len(seen) == 22
    assert all(each == seen[0] for each in seen)
    assert evaluation_workspaces()[0].stats()["spilled_count"] == 0


def floats(rng, *shape):
    return ndx.asarray(rng.random(shape), copy=True)


def ints(rng, stop, *shape):
    return ndx.asarray(rng.integers(0, stop, shape), copy=True)


def one_hot(rng):
    return ndx.asarray(np.eye(4, dtype=int)[rng.integers(0, 4, 32)], copy=True)


# name -> (outputs, expected values) of a batch, and how many columns outputs have.
KINDS = {
    "class numbers": (lambda rng: (ints(rng, 4, 32), ints(rng, 4, 32)), 1),
    "binary scores": (lambda rng: (floats(rng, 32), ints(rng, 2, 32)), 1),
    "scores, labels": (lambda rng: (floats(rng, 32, 4), ints(rng, 4, 32)), 4),
    "scores, one-hot": (lambda rng: (floats(rng, 32, 4), one_hot(rng)), 4),
    "one-hot twice": (lambda rng: (one_hot(rng), one_hot(rng)), 4),
    "binary columns": (lambda rng: (floats(rng, 32, 4), ints(rng, 2, 32, 4)), 4),
    "values": (lambda rng: (floats(rng, 32), floats(rng, 32)), 1),
    "columns of values": (lambda rng: (floats(rng, 32, 4), floats(rng, 32, 4)), 4),
}
# (metric as in docs/pipelines.md, how it is made, the kinds of batches that it takes)
USES = (
    ("Classification()", metrics.Classification,
     ("binary scores", "scores, labels", "scores, one-hot")),
    ("Classification()", lambda: metrics.Classification(4), ("class numbers",)),
    ("Classification()", lambda: metrics.Classification(4, one_hot=True),
     ("one-hot twice",)),
    ("ROC()", metrics.ROC,
     ("binary scores", "scores, labels", "scores, one-hot", "binary columns")),
    ("ROC(thresholds=100)", lambda: metrics.ROC(thresholds=100),
     ("binary scores", "scores, labels", "scores, one-hot", "binary columns")),
    ("ROC(thresholds=100)", lambda: metrics.ROC(thresholds=np.linspace(0, 1, 101)),
     ("binary scores", "scores, labels")),
    ("Regression()", metrics.Regression, ("values", "columns of values")),
    ("Mean(function)", lambda: metrics.Mean(lambda x, y: (x - y) ** 2), ("values",)),
)  # fmt: skip


def requests_in_docs():
    """Return what docs/pipelines.md says: (metric, columns) -> (batch, result)."""
    page = (ROOT / "docs" / "pipelines.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(.+)` \| (any|\d+) \| (\d+) \| (\d+) \|$", page, re.M)
    return {(name, columns): (int(a), int(b)) for name, columns, a, b in rows}


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    ("name", "make", "kind"),
    [(name, make, kind) for name, make, kinds in USES for kind in kinds],
)
def test_how_often_a_metric_asks_the_pool(name, make, kind, weighted):
    """As the table in docs/pipelines.md says, whether it is 5 batches or 40."""
    of_batch, columns = KINDS[kind]
    table = requests_in_docs()
    batch_at_most, at_most = table.get((name, "any")) or table[name, str(columns)]
    for count in (5, 40):
        rng = np.random.default_rng(0)
        batches = [of_batch(rng) for _ in range(count)]
        if weighted:
            batches = [(*batch, floats(rng, 32)) for batch in batches]
        metric, seen = make(), []
        with ndx.use(ndx.backends.HostBackend()) as backend:

            def source(batches=batches, seen=seen, backend=backend):
                for batch in batches:
                    seen.append(backend.stats()["total_allocations"])
                    yield batch
                seen.append(backend.stats()["total_allocations"])

            for _ in range(3):
                seen.clear()
                ndx.evaluate(lambda x: x, source(), metric)
                total = backend.stats()["total_allocations"]
        of_batches = np.diff(seen)
        assert max(of_batches) <= batch_at_most
        # Neither more than the page says, nor far less.
        assert 0.9 * at_most <= total - seen[-1] <= at_most


def test_the_table_of_requests_has_every_metric():
    made = {type(make()).__name__ for _, make, _ in USES}
    own = {
        name for name in metrics.__all__ if hasattr(getattr(metrics, name), "update")
    }
    assert made == own - {"Metric"}
    assert {name for name, _, _ in USES} == {name for name, _ in requests_in_docs()}


def test_a_metric_is_any_object_that_accumulates():
    """The protocol: update, result, reset; no base class, weights only if given."""

    class Count:
        def reset(self):
            self.calls = []

        def update(self, *given):
            self.calls.append([len(x) for x in given])

        def result(self):
            return self.calls

    metric = Count()
    assert isinstance(metric, metrics.Metric)
    (x, expected), other = data((5, 3))
    weighted = (x, expected, np.ones(5))
    report = ndx.evaluate(model, [weighted, other], metric)
    assert report["count"] == [[5, 5, 5], [3, 3]]
    report = ndx.evaluate(model, [other], metric)
    assert report["count"] == [[3, 3]]
    report = ndx.evaluate(model, [other], metric, reset=False)
    assert report["count"] == [[3, 3], [3, 3]]
    for own in all_metrics():
        assert isinstance(own, metrics.Metric)


@pytest.mark.threads
def test_metrics_of_parts_are_merged():
    """What several workers have counted is put together, as if counted by one."""
    batches = data((9, 8, 7, 6))
    whole, parts = all_metrics()[:4], [all_metrics()[:4] for _ in range(2)]
    ndx.evaluate(model, batches, *whole)

    def work(chosen, own):
        ndx.evaluate(model, own, *chosen)

    threads = [
        threading.Thread(target=work, args=(parts[i], batches[i::2])) for i in range(2)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for metric, left, right in zip(whole, *parts, strict=True):
        left.merge(right)
        if isinstance(metric, metrics.Mean):
            assert left.result() == pytest.approx(metric.result(), rel=1e-12)
        else:
            shown = [str(table) for table in metric.result().tables()]
            assert [str(table) for table in left.result().tables()] == shown


@pytest.mark.parametrize(
    "make",
    [
        lambda names: metrics.Classification(names),
        lambda names: metrics.ROC(classes=names),
        lambda names: metrics.ROC(10, classes=names),
        lambda names: metrics.Regression(names),
        lambda names: metrics.Mean((cross_entropy, abs, sum, min)[len(names or ())]),
    ],
)
def test_what_can_not_be_merged(make):
    one = make(["a", "b"])
    for other in (make(["a"]), make(["a", "b", "c"]), make(None)):
        with pytest.raises(ValueError, match="same options"):
            one.merge(other)
    with pytest.raises(TypeError, match=f"another {type(one).__name__}, not with a .*"):
        one.merge(one_hot_errors())


@pytest.mark.parametrize(
    "make", [metrics.Classification, metrics.ROC, metrics.Regression]
)
def test_parts_have_the_same_columns(make):
    one, two, three = make(), make(), make()
    one.merge(two)
    two.update(np.eye(2), np.eye(2))
    one.merge(two)
    one.merge(make())
    assert str(one.result().tables()[0]) == str(two.result().tables()[0])
    three.update(np.eye(3), np.eye(3))
    with pytest.raises(ValueError, match="same number of classes or columns"):
        one.merge(three)


def test_it_works_in_any_workspace_of_the_caller(tmp_path):
    """A workspace that the user has open is no error, whatever kind it is."""
    plain = values(ndx.evaluate(model, data(), *all_metrics()))
    for policies in (
        {},
        {"learn": "liveness"},
        {"reset": "ring", "slots": 2},
        {"escape": "detach"},
        {"path": tmp_path / "arena", "size": "1MiB"},
    ):
        outer = ndx.workspace(**policies)
        for _ in range(3):
            with outer, ndx.workspace("second"):
                before = ndx.ones(3)
                report = ndx.evaluate(model, data(), *all_metrics())
                assert before.in_scope
                assert ndx.ones(1).workspace == "second"
        # Nothing of the report went stale with the user's scopes.
        assert values(report) == plain
        assert str(report)
        outer.destroy()
    assert open_workspaces() == []


def test_models_and_sources_have_workspaces_of_their_own():
    """The model enters scopes, evaluates something itself; the source has its own."""
    inner = []

    def source():
        for x, expected in data():
            with ndx.workspace("source"):
                yield x + 0.0, expected

    def nested(x):
        with ndx.workspace("layer"):
            z = model(x).leverage()
        if len(inner) < 100:
            inner.append(ndx.evaluate(model, data(), *all_metrics()))
        return z

    report = ndx.evaluate(nested, source(), *all_metrics())
    plain = values(ndx.evaluate(model, data(), *all_metrics()))
    assert values(report) == plain
    assert all(values(each) == plain for each in inner)
    assert open_workspaces() == []


@pytest.mark.parametrize("where", ["function", "metric", "source", "shape"])
@pytest.mark.parametrize("at", [0, 2])
def test_an_error_leaves_no_workspace_open(where, at):
    """An exception in any part comes up with its batch's number; scopes are closed."""

    class Failing:
        def reset(self):
            self.count = 0

        def update(self, expected, outputs):
            self.count += 1
            if where == "metric" and self.count == at + 1:
                raise ZeroDivisionError

        def result(self):
            return self.count

    def source():
        for i, batch in enumerate(data()):
            if where == "source" and i == at:
                raise ZeroDivisionError
            yield batch if where != "shape" or i < at else batch[:1]

    def fn(x):
        if where == "function" and failing.count == at:
            raise ZeroDivisionError
        return model(x)

    failing = Failing()
    with ndx.workspace("mine"):
        error = TypeError if where == "shape" else ZeroDivisionError
        with pytest.raises(error) as found:
            ndx.evaluate(fn, source(), failing, *all_metrics())
        assert found.value.__notes__ == [f"in batch {at} of ndx.evaluate"]
        assert open_workspaces() == ["mine"]
        assert ndx.ones(1).workspace == "mine"
    chosen = all_metrics()
    after = values(ndx.evaluate(model, data(), *chosen))
    assert after == values(ndx.evaluate(model, data(), *all_metrics()))


def test_outputs_are_in_a_workspace_and_nothing_grows():
    """Outputs live in the arena of the batch; memory is the same after 10, 200, ..."""
    chosen = (Places(), *all_metrics()[::2])  # without exact curves: they keep scores
    sizes = []
    for count in (10, 200, 200):
        report = ndx.evaluate(model, data((32,)) * count, *chosen)
        assert report["places"] == {"ndx:evaluate"}
        stats = evaluation_workspaces()[0].stats()
        sizes.append((stats["size"], counters()[1]))
    assert len(set(sizes)) == 1


def test_batches_of_many_sizes_take_the_memory_of_the_largest():
    """Sizes that vary make the arena as large as the largest needs, not as the sum."""
    chosen, rng = all_metrics()[::2], np.random.default_rng(0)
    for _ in range(3):
        ndx.evaluate(model, data(rng.permutation(np.arange(1, 65))), *chosen)
    stats = evaluation_workspaces()[0].stats()
    assert stats["size"] <= 2 * stats["peak_live_bytes"]


def test_a_batch_is_let_go_before_the_next_one_is_asked_for():
    """A source may fill the memory of a batch again, if nobody holds it."""
    alive = []

    def source():
        for x, expected in data():
            batch = (x + 0.0, expected + 0)
            alive.append([weakref.ref(each) for each in batch])
            yield batch
            del batch
            assert [ref() for ref in alive[-1]] == [None, None]

    ndx.evaluate(model, source(), *all_metrics())
    assert len(alive) == 4


def test_all_forms_of_batches():
    (x, expected), *_ = data()
    weights = ndx.astype(ndx.arange(32) % 3, ndx.float64)
    mask = np.asarray(weights) > 0

    def accuracy(*batches, **options):
        metric = metrics.Classification()
        return ndx.evaluate(model, batches, metric, **options)[
            "classification"
        ].accuracy

    plain, weighted = accuracy((x, expected)), accuracy((x, expected, weights))
    assert plain != weighted
    assert accuracy([x, expected]) == accuracy((x, expected, None)) == plain
    assert accuracy({"inputs": x, "expected": expected}) == plain
    assert accuracy({"inputs": x, "expected": expected, "weights": None}) == plain
    assert accuracy({"inputs": x, "expected": expected, "weights": weights}) == weighted
    named = {"image": x, "label": expected, "sure": weights}
    assert accuracy(named, keys=("image", "label")) == plain
    assert accuracy(named, keys=("image", "label", "sure")) == weighted
    for bad in ("image", ("image",), ("a", "b", "c", "d"), {"image", "label"}, b"ab"):
        with pytest.raises(TypeError, match="keys=.* is not valid"):
            accuracy(named, keys=bad)
    arrays = [np.asarray(each) for each in (x, expected, weights)]
    assert accuracy(tuple(arrays)) == weighted
    assert accuracy((x, expected, mask)) == accuracy((x[mask], expected[mask]))
    assert accuracy((x[:0], expected[:0]), (x, expected)) == plain


@pytest.mark.parametrize(
    ("batch", "text"),
    [
        ((1,), "not a tuple of 1"),
        ((1, 2, 3, 4), "not a tuple of 4"),
        ({"inputs": 1}, "not a mapping with the keys 'inputs'"),
        ({}, "keys none"),
        (np.ones((2, 3)), "not of type ndarray"),
        (None, "not of type NoneType"),
    ],
)
def test_other_batches_are_errors(batch, text):
    with pytest.raises(TypeError, match=text):
        ndx.evaluate(model, [batch], *all_metrics())


def test_bad_arguments():
    metric = metrics.ROC()
    with pytest.raises(TypeError, match="at least one metric"):
        ndx.evaluate(model, [])
    with pytest.raises(TypeError, match="takes a function"):
        ndx.evaluate(None, [], metric)
    with pytest.raises(TypeError, match="is no metric"):
        ndx.evaluate(model, [], metrics.ROC)
    with pytest.raises(TypeError, match="is no metric"):
        ndx.evaluate(model, [], "accuracy")
    with pytest.raises(TypeError, match="given twice"):
        ndx.evaluate(model, [], metric, metric)
    with pytest.raises(TypeError, match="name or a Workspace"):
        ndx.evaluate(model, [], metric, workspace=3)
    with pytest.raises(TypeError, match="takes a function .expected, outputs."):
        metrics.Mean(3)


def test_no_batches():
    report = ndx.evaluate(model, iter([]), *all_metrics())
    assert report.batches == 0
    assert np.isnan(report["cross_entropy"])
    assert "Evaluation of 0 batches" in str(report)


def test_names_of_metrics():
    report = ndx.evaluate(
        model, data(), metrics.ROC(), metrics.ROC(4), metrics.ROC(name="x"),
        metrics.Mean(lambda a, b: 0.0), metrics.Mean(cross_entropy, "loss"),
    )  # fmt: skip
    assert list(report) == ["ROC", "ROC (2)", "x", "lambda", "loss"]
    assert len(report) == 5
    assert "x" in report
    with pytest.raises(KeyError, match="no metric 'accuracy'; it has 'ROC'"):
        report["accuracy"]


def test_the_workspace_may_be_chosen():
    before = evaluation_workspaces()
    for chosen in ("mine", ndx.workspace("mine"), ndx.workspace()):
        metric = Places()
        ndx.evaluate(model, data(), metric, workspace=chosen)
        name = chosen if isinstance(chosen, str) else chosen.name
        assert metric.result() == {name}
    assert evaluation_workspaces() == before


def test_without_workspaces():
    """With the process-wide switch off, arrays are made where the caller makes his."""
    places = Places()
    before = evaluation_workspaces()
    with ndx.use_workspaces(False):
        report = ndx.evaluate(model, data(), places, *all_metrics())
    assert report["places"] == {None}
    assert evaluation_workspaces() == before
    plain = ndx.evaluate(model, data(), *all_metrics())
    assert values(report) == values(plain)


@pytest.mark.threads
def test_threads_evaluate_at_the_same_time():
    """Each thread has a workspace of its own."""
    found, plain = [], values(ndx.evaluate(model, data(), *all_metrics()))

    def work():
        for _ in range(3):
            found.append(values(ndx.evaluate(model, data(), *all_metrics())))
        ndx.memory.destroy_all()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [plain] * 12


def test_means_of_batches_and_of_samples():
    def of_batch(expected, outputs):
        return ndx.mean(cross_entropy(expected, outputs))

    batches = data((10, 3))
    report = ndx.evaluate(
        model, batches, metrics.Mean(cross_entropy), metrics.Mean(of_batch)
    )
    each = np.concatenate([cross_entropy(y, model(x)) for x, y in batches])
    assert report["cross_entropy"] == pytest.approx(each.mean())
    assert report["of_batch"] == pytest.approx(each.mean())
    weights = [np.arange(10.0), np.ones(3)]
    batches = [(*batch, w) for batch, w in zip(batches, weights, strict=True)]
    metric = metrics.Mean(cross_entropy)
    report = ndx.evaluate(model, batches, metric)
    expected = np.average(each, weights=np.concatenate(weights))
    assert report["cross_entropy"] == pytest.approx(expected)
    metric = metrics.Mean(lambda a, b: a / b)
    with (
        np.errstate(all="ignore"),
        pytest.raises(ValueError, match="1 of 2 values of a batch are NaN"),
    ):
        metric.update(np.array([0.0, 1]), ndx.asarray([0.0, 1]))
    metric = metrics.Mean(lambda a, b: ndx.asarray(b), nan="omit")
    metric.update(np.ones(3), np.array([np.nan, 1, 3]))
    metric.update(np.ones(2), np.array(np.nan))
    metric.update(np.ones(2), np.array([np.nan, 5]), np.array([0, 1]))
    assert metric.result() == 3.0

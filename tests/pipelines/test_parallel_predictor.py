"""`ndx.parallel.Predictor`: batches of many threads' requests, and their answers."""

import functools
import gc
import itertools
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from helpers.examples import examples
from helpers.parallel import doubled, named, nothing_left
from helpers.predictors import MODES, Counted, held, row
from helpers.threads import running
from hypothesis import given
from hypothesis import strategies as st

import ndx
from ndx.testing import assert_equal

pytestmark = [
    pytest.mark.threads,
    pytest.mark.usefixtures("nothing_left_behind"),
]


@pytest.mark.parametrize("mode", MODES)
def test_each_caller_gets_its_own_answer(mode):
    """Many threads ask; each gets the rows of its request, detached."""
    with (
        ndx.parallel.Predictor(
            lambda x: {"y": x * 2, "sums": (ndx.sum(x, axis=1),)},
            mode=mode, workers=2, max_batch=8, deadline=0.01,
        ) as predict,
        ThreadPoolExecutor(8) as pool,
    ):  # fmt: skip
        found = list(pool.map(predict, [row(i, count=1 + i % 3) for i in range(40)]))
    for i, each in enumerate(found):
        count = 1 + i % 3
        assert each["y"].workspace is None
        assert_equal(each["y"], np.full((count, 3), 2.0 * i))
        assert_equal(each["sums"][0], np.full(count, 3.0 * i))
    assert predict.stats()["requests"] == 40
    assert predict.stats()["rows"] == sum(1 + i % 3 for i in range(40))


def test_requests_are_gathered_until_the_batch_is_full():
    """Requests that come while a worker computes make one batch, up to a bound."""
    with held(max_batch=4) as (predict, fn):
        futures = [predict.submit(row(i)) for i in range(10)]
        assert predict.stats()["pending"] == 10
        fn.go.set()
        for i, each in enumerate(futures):
            assert_equal(each.result(20), np.full((1, 3), 2.0 * i))
    assert fn.shapes == [(1, 99), (4, 3), (4, 3), (2, 3)]
    stats = predict.stats()
    assert (stats["batches"], stats["full_batches"]) == (4, 2)
    assert (stats["largest_batch"], stats["mean_batch"]) == (4, 11 / 4)


def test_a_batch_that_is_not_full_waits_for_the_deadline():
    """The deadline bounds the wait for others; a full batch does not wait."""
    fn = Counted()
    with ndx.parallel.Predictor(fn, max_batch=2, deadline=0.2) as predict:
        start = time.monotonic()
        predict(row(1))
        assert time.monotonic() - start >= 0.2
        futures = [predict.submit(row(i)) for i in range(2)]
        for each in futures:
            each.result(20)
    assert fn.shapes == [(1, 3), (2, 3)]
    assert predict.stats()["full_batches"] == 1


def test_requests_of_other_shapes_and_dtypes_are_not_mixed():
    with held(max_batch=100) as (predict, fn):
        kinds = [
            row(1), row(1, width=5), ndx.astype(row(1), "float32"), row(2, count=2),
            row(1, width=5),
        ]  # fmt: skip
        futures = [predict.submit(each) for each in kinds]
        fn.go.set()
        for each, future in zip(kinds, futures, strict=True):
            assert_equal(future.result(20), np.asarray(each * 2))
            assert future.result().dtype == each.dtype
    assert fn.shapes == [(1, 99), (3, 3), (2, 5), (1, 3)]


def test_large_requests_are_batches_by_themselves():
    with held(max_batch=4) as (predict, fn):
        futures = [predict.submit(row(1, count=n)) for n in (2, 9, 0, 1)]
        fn.go.set()
        for n, each in zip((2, 9, 0, 1), futures, strict=True):
            assert each.result(20).shape == (n, 3)
    assert fn.shapes == [(1, 99), (2, 3), (9, 3), (1, 3)]


def test_several_arguments():
    with ndx.parallel.Predictor(lambda x, y: x + y, deadline=0) as predict:
        assert_equal(predict(row(1), np.full((1, 3), 2.0)), np.full((1, 3), 3.0))
        with pytest.raises(ValueError, match="first axes"):
            predict(row(1), row(1, count=2))


def test_sequential_answers_in_order_one_by_one():
    """Each request by itself, in the order in which they came; any result."""
    done = []

    def fn(i, x):
        done.append(i)
        return float(ndx.sum(x))

    with ndx.parallel.Predictor(fn, mode="sequential") as predict:
        futures = [predict.submit(i, ndx.full((), i)) for i in range(20)]
        assert [each.result(20) for each in futures] == [float(i) for i in range(20)]
    assert done == list(range(20))


def test_in_place_is_computed_by_the_caller():
    """No threads: the caller's own computes, in a workspace of its own."""
    with ndx.parallel.Predictor(
        lambda x: (threading.get_ident(), (x + 1).workspace, x + 1), mode="inplace"
    ) as predict:
        assert not named("ndx-predictor")
        who, where, made = predict(row(1))
        assert who == threading.get_ident()
        assert "Predictor" in where
        assert_equal(made, np.full((1, 3), 2.0))
        assert predict.submit(row(1)).result()[0] == who


def test_in_place_bounds_how_many_compute():
    inside, most = [], []

    def fn(x):
        inside.append(1)
        most.append(len(inside))
        time.sleep(0.002)
        inside.pop()
        return x

    with (
        ndx.parallel.Predictor(fn, mode="inplace", workers=2) as predict,
        ThreadPoolExecutor(6) as pool,
    ):
        list(pool.map(predict, [row(1)] * 30))
    assert 1 <= max(most) <= 2


def test_in_place_memory_does_not_grow_with_the_threads():
    """However many threads ask, only as many arenas are kept as may compute."""
    config = ndx.WorkspaceConfig(size="1MiB")
    done, barrier = threading.Barrier(9, timeout=20), threading.Barrier(9, timeout=20)

    def ask():
        predict(row(1))
        predict(row(2))
        done.wait()
        barrier.wait()

    with (
        ndx.parallel.Predictor(
            doubled, mode="inplace", workers=2, config=config, workspace="asked"
        ) as predict,
        running(*[ask] * 8),
    ):
        done.wait()
        spaces = [
            each for each in ndx.memory.workspaces(all_threads=True)
            if each.name.startswith("asked")
        ]  # fmt: skip
        sizes = sum(each.size for each in spaces)
        assert 2**20 <= sizes <= 2 * 2**20
        predict.close()
        assert sum(each.size for each in spaces) == 0
        barrier.wait()


def test_a_function_may_ask_in_place_again():
    def fn(x):
        return x if float(x[0, 0]) == 0 else predict(x - 1) + 1

    with ndx.parallel.Predictor(fn, mode="inplace") as predict:
        assert_equal(predict(row(3)), np.full((1, 3), 3.0))


def test_a_function_that_asks_its_predictor_is_no_hang():
    predict = ndx.parallel.Predictor(lambda x: predict(x), deadline=0)
    with predict, pytest.raises(RuntimeError, match="asks that predictor"):
        predict(row(1))


def test_answers_keep_only_their_own_rows():
    before = ndx.memory.stats("host")["allocated_bytes"]
    with held(max_batch=64) as (predict, fn):
        futures = [predict.submit(row(i, width=1000)) for i in range(64)]
        fn.go.set()
        kept = futures[3].result(20)
        for each in futures:
            each.result(20)
    del futures, each
    assert ndx.memory.stats("host")["allocated_bytes"] - before < 20 * 8000
    assert_equal(kept, np.full((1, 1000), 6.0))


# ------------------------------------------------------------------------- memory


@pytest.mark.parametrize("mode", MODES)
def test_works_within_the_scopes_of_the_caller(mode):
    """The backend is that of the caller; its workspace does not serve the answers."""
    with ndx.use("host", limit="8MiB") as small:
        predict = ndx.parallel.Predictor(doubled, mode=mode, backend=small, deadline=0)
    with ndx.workspace("outer", size="1MiB") as outer, predict:
        found = predict(row(1) + 1)
    assert found.backend is small
    assert found.workspace is None
    outer.destroy()


def test_steady_state_takes_nothing_from_the_system():
    with ndx.parallel.Predictor(doubled, deadline=0) as predict:
        for i in itertools.count():
            predict(row(1, width=500))
            if i == 20:
                before = ndx.memory.stats("host")["system_allocations"]
            if i == 60:
                break
        assert ndx.memory.stats("host")["system_allocations"] == before


@examples(40)
@given(st.data())
def test_random_requests(data):
    """Shapes, errors and slow batches at random: each answer is right, or an error."""
    workers = data.draw(st.integers(1, 3), "workers")
    mode = data.draw(st.sampled_from(MODES), "mode")
    max_batch = data.draw(st.integers(1, 8), "max_batch")
    deadline = data.draw(st.sampled_from([0, 0.001]), "deadline")
    limit = data.draw(st.none() | st.integers(1, 3), "queue_limit")
    asked = data.draw(
        st.lists(
            st.lists(st.tuples(st.integers(0, 5), st.integers(1, 2)), max_size=6),
            min_size=1,
            max_size=4,
        ),
        "requests of each thread: rows and width",
    )
    bad, failed = data.draw(st.sets(st.integers(0, 20), max_size=2), "bad values"), []

    def fn(x):
        if any(bool(ndx.any(x == value)) for value in bad):
            raise LookupError
        return x * 2

    def ask(number, requests):
        for i, (count, width) in enumerate(requests):
            value = number * 6 + i
            try:
                found = predict(row(value, width, count))
            except LookupError:
                assert value in bad
                assert count
                failed.append(value)
            else:
                assert value not in bad or not count
                assert_equal(found, np.full((count, width), 2.0 * value))

    with (
        nothing_left(),
        ndx.parallel.Predictor(
            fn, workers=workers, mode=mode, max_batch=max_batch, deadline=deadline,
            queue_limit=limit,
        ) as predict,
        running(*(lambda n=n, r=r: ask(n, r) for n, r in enumerate(asked))),
    ):  # fmt: skip
        pass
    assert predict.stats()["pending"] == 0
    assert predict.stats()["errors"] == len(failed)
    assert predict.stats()["requests"] == sum(map(len, asked))


@pytest.mark.parametrize(
    "fn",
    [
        lambda x: float(ndx.sum(x)),
        lambda x: x.tolist(),
        lambda x: {"label": "a", "p": x},
        lambda x: (x, 3),
    ],
    ids=["number", "list", "label", "count"],
)
def test_results_without_rows_are_errors(fn):
    """Not the result of all for each, and not only when several requests come."""
    said = "for a batch of 1 rows.*mode='sequential'"
    with (
        ndx.parallel.Predictor(fn, max_batch=1) as predict,
        pytest.raises(TypeError, match=said),
    ):
        predict(row(1))
    with ndx.parallel.Predictor(fn, mode="sequential") as predict:
        predict(row(1))


def test_none_is_a_result_of_each():
    with ndx.parallel.Predictor(lambda x: (x, None), max_batch=1) as predict:
        found, nothing = predict(row(1))
    assert nothing is None
    assert_equal(found, np.full((1, 3), 1.0))


@pytest.mark.parametrize("mode", MODES)
def test_a_dropped_predictor_keeps_no_memory(mode):
    """In every mode, and also where it is dropped in a workspace."""
    with nothing_left():
        predict = ndx.parallel.Predictor(doubled, mode=mode, deadline=0)
        with running(functools.partial(predict, row(1, width=50_000))):
            predict(row(1, width=50_000))
        with ndx.workspace("outer", size="1MiB") as outer:
            del predict
            gc.collect()
        outer.destroy()

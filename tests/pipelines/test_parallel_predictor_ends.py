"""`ndx.parallel.Predictor`: errors, closing, cancelling, bad arguments."""

import contextlib
import gc
import os
import threading
import time
from concurrent.futures import CancelledError, ThreadPoolExecutor

import numpy as np
import pytest
from helpers.parallel import doubled, named, wait_until
from helpers.predictors import MODES, Counted, held, row
from helpers.threads import running

import ndx
from ndx.testing import assert_equal

pytestmark = [
    pytest.mark.threads,
    pytest.mark.usefixtures("nothing_left_behind"),
]


def test_a_stale_request_spoils_no_others():
    with held(max_batch=8) as (predict, fn):
        futures = [predict.submit(row(1))]
        with ndx.workspace("outer") as outer:
            futures.append(predict.submit(row(1) * 2))
        futures.append(predict.submit(row(2)))
        fn.go.set()
        with pytest.raises(ndx.StaleArrayError):
            futures[1].result(20)
        assert_equal(futures[2].result(20), np.full((1, 3), 4.0))
        assert_equal(futures[0].result(20), np.full((1, 3), 2.0))
    outer.destroy()


@pytest.mark.parametrize("fn", [ndx.sum, lambda x: x[:0], lambda x: {"a": x.T}])
def test_results_without_a_row_for_each_request(fn):
    predict = ndx.parallel.Predictor(fn, deadline=0)
    with predict, pytest.raises(ValueError, match="one row for each"):
        predict(row(1))


def test_a_worker_that_fails_leaves_nobody_waiting(monkeypatch):
    from ndx._pipelines import predicting

    def fail(*args):
        raise MemoryError

    with held(max_batch=8) as (predict, fn):
        futures = [predict.submit(row(i)) for i in range(3)]
        monkeypatch.setattr(predicting, "_answered", fail)
        fn.go.set()
        for each in futures:
            with pytest.raises((RuntimeError, MemoryError)):
                each.result(20)
        # The worker's last act: what comes before it is answered by its error.
        with pytest.raises(RuntimeError, match="no workers"):  # noqa: PT012
            while True:
                with contextlib.suppress(MemoryError):
                    predict(row(1))


def test_requests_without_rows():
    with ndx.parallel.Predictor(doubled) as predict:
        with pytest.raises(ValueError, match="first axis"):
            predict(ndx.zeros(()))
        with pytest.raises(TypeError, match="at least one"):
            predict()


@pytest.mark.parametrize("mode", MODES)
def test_a_closed_predictor_says_so(mode):
    predict = ndx.parallel.Predictor(doubled, mode=mode)
    assert "open" in repr(predict)
    predict(row(1))
    predict.close()
    predict.close()
    assert "closed" in repr(predict)
    with pytest.raises(RuntimeError, match="closed"):
        predict.submit(row(1))
    with pytest.raises(RuntimeError, match="closed"):
        predict(row(1))


def test_what_waits_is_answered_by_close():
    with held(max_batch=2) as (predict, fn):
        futures = [predict.submit(row(i)) for i in range(9)]
        timer = threading.Timer(0.02, fn.go.set)
        timer.start()
        predict.close()
        assert all(each.done() for each in futures)
    timer.join()


def test_close_does_not_wait_for_the_deadline():
    with ndx.parallel.Predictor(doubled, deadline=1000) as predict:
        future = predict.submit(row(1))
    assert_equal(future.result(0), np.full((1, 3), 2.0))


def test_dropped_predictors_end_their_threads():
    predict = ndx.parallel.Predictor(doubled, workers=2)
    predict(row(1))
    predict.self = predict
    del predict
    gc.collect()
    assert not named("ndx-predictor")


def test_a_cancelled_request_is_left_out():
    with held(max_batch=8) as (predict, fn):
        futures = [predict.submit(row(i)) for i in range(3)]
        assert futures[1].cancel()
        fn.go.set()
        assert_equal(futures[2].result(20), np.full((1, 3), 4.0))
        with pytest.raises(CancelledError):
            futures[1].result(20)
    assert fn.shapes[1:] == [(2, 3)]


def test_a_limit_makes_callers_wait():
    with held(queue_limit=2) as (predict, fn):
        futures = [predict.submit(row(i)) for i in range(2)]
        more = []
        with running(lambda: more.append(predict(row(7)))):
            time.sleep(0.02)
            assert predict.stats()["pending"] == 2
            fn.go.set()
        assert_equal(more[0], np.full((1, 3), 14.0))
        assert all(each.done() for each in futures)


def test_callers_that_wait_for_room_are_told_of_the_end():
    with held(queue_limit=1) as (predict, fn):
        predict.submit(row(1))
        errors = []

        def ask():
            try:
                predict(row(2))
            except RuntimeError as error:
                errors.append(str(error))

        with running(ask):
            time.sleep(0.02)
            threading.Timer(0.02, fn.go.set).start()
            predict.close()
        assert not errors or "closed" in errors[0]


def test_workers_that_can_not_start_are_an_error():
    config = ndx.WorkspaceConfig(path="/nowhere/state.bin", size="1MiB")
    predict = ndx.parallel.Predictor(doubled, config=config)
    for _ in range(2):
        with pytest.raises((OSError, RuntimeError), match="nowhere|no workers"):
            predict(row(1))
    predict.close()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
@pytest.mark.parametrize("mode", MODES)
def test_a_forked_child_is_told(mode):
    fn = Counted(held=True)
    with (
        ndx.parallel.Predictor(fn, mode=mode) as predict,
        running(lambda: predict(row(2))),
    ):
        assert fn.begun.wait(20)
        if (child := os.fork()) == 0:
            code = 1
            with contextlib.suppress(BaseException):
                try:
                    predict(row(1))
                except RuntimeError as error:
                    code = 0 if "another process" in str(error) else 2
                predict.close()
            os._exit(code)
        fn.go.set()
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@pytest.mark.parametrize(
    ("error", "match", "given"),
    [
        (TypeError, "callable", {"fn": 3}),
        (ValueError, "mode='fast'", {"mode": "fast"}),
        (ValueError, "max_batch=0", {"max_batch": 0}),
        (ValueError, "deadline=-1", {"deadline": -1}),
        (ValueError, "deadline='1s'", {"deadline": "1s"}),
        (ValueError, "deadline=nan", {"deadline": float("nan")}),
        (ValueError, "queue_limit=0", {"queue_limit": 0}),
        (ValueError, "workers=0", {"workers": 0}),
        (ValueError, "threads=0", {"threads": 0}),
        (TypeError, "a name", {"workspace": 3}),
    ],
)
def test_bad_arguments(error, match, given):
    with pytest.raises(error, match=match):
        ndx.parallel.Predictor(**{"fn": doubled, **given})


def test_close_lets_threads_that_wait_compute():
    """In place: who asked before the end gets an answer; who asks later does not."""
    fn = Counted(held=True)
    predict = ndx.parallel.Predictor(fn, mode="inplace")
    with ThreadPoolExecutor(4) as pool:
        futures = [pool.submit(predict, row(i)) for i in range(3)]
        assert fn.begun.wait(20)
        wait_until(lambda: predict.stats()["pending"] == 2)
        closing = pool.submit(predict.close)
        wait_until(lambda: "closed" in repr(predict))
        fn.go.set()
        for i, each in enumerate(futures):
            assert_equal(each.result(20), np.full((1, 3), 2.0 * i))
        closing.result(20)
    with pytest.raises(RuntimeError, match="closed"):
        predict(row(1))


@pytest.mark.parametrize("mode", MODES)
def test_a_function_that_closes_its_predictor(mode):
    def fn(x):
        predict.close()
        return x * 2

    predict = ndx.parallel.Predictor(fn, mode=mode)
    assert_equal(predict(row(1)), np.full((1, 3), 2.0))
    with pytest.raises(RuntimeError, match="closed"):
        predict(row(1))
    predict.close()


def test_a_call_that_has_begun_may_ask_again_after_the_end():
    """In place: it has what it needs, and `close` waits for it."""

    def fn(x):
        if not float(x[0, 0]):
            return x
        predict.close()
        return predict(row(0)), predict.submit(row(0)).result()

    predict = ndx.parallel.Predictor(fn, mode="inplace")
    for x in predict(row(1)):
        assert_equal(x, np.full((1, 3), 0.0))


def test_the_last_call_gives_the_arenas_back():
    """In place: a call has closed the predictor while others were computed."""
    fn = Counted(held=True)

    def call(x):
        if float(x[0, 0]) == 1:
            predict.close()
            return x
        return fn(x)

    predict = ndx.parallel.Predictor(call, mode="inplace", workers=2)
    with running(lambda: predict(row(2))):
        assert fn.begun.wait(20)
        predict(row(1))
        fn.go.set()

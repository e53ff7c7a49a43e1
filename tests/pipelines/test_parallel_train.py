"""`ndx.parallel.train`: averages, determinism, scores, errors."""

import threading
import time

import numpy as np
import pytest
from helpers.examples import examples
from helpers.parallel import nothing_left
from hypothesis import given
from hypothesis import strategies as st

import ndx

pytestmark = [
    pytest.mark.threads,
    pytest.mark.usefixtures("nothing_left_behind"),
]


RATE = 0.05


def batches(count, rows=8, seed=3):
    rng = np.random.default_rng(seed)
    wanted = np.asarray([1.0, -2.0, 3.0])
    made = []
    for _ in range(count):
        x = rng.standard_normal((rows, 3))
        made.append((ndx.asarray(x), ndx.asarray(x @ wanted)))
    return made


def gradient(params, batch):
    x, y = batch
    error = x @ params["w"] + params["b"] - y
    score = ndx.mean(error**2)
    return {"w": x.T @ error / len(y), "b": ndx.mean(error)}, score


def descend(params, gradients):
    return {
        "w": params["w"] - RATE * gradients["w"],
        "b": params["b"] - RATE * gradients["b"],
    }


def step(params, batch):
    found, score = gradient(params, batch)
    return descend(params, found), score


def in_place_step(params, batch):
    found, score = gradient(params, batch)
    params["w"] -= RATE * found["w"]
    params["b"] -= RATE * found["b"]
    return params, score


def start():
    return {"w": ndx.zeros(3), "b": ndx.zeros(())}


def sequential(given):
    params, scores = start(), []
    for batch in given:
        params, score = step(params, batch)
        scores.append(float(score))
    return params, scores


def same(found, wanted):
    return all(
        np.array_equal(np.asarray(found[key]), np.asarray(wanted[key]))
        for key in wanted
    )


def close(found, wanted):
    return all(
        np.allclose(np.asarray(found[key]), np.asarray(wanted[key]), rtol=1e-12)
        for key in wanted
    )


@pytest.mark.parametrize("every", [1, 4])
@pytest.mark.parametrize("kind", [step, in_place_step])
def test_one_worker_is_a_loop(kind, every):
    """With one worker the result is that of a plain loop, to the last bit."""
    given, begin = batches(10), start()
    trained = ndx.parallel.train(
        kind, begin, given, workers=1, average_every=every,
        report_after_averaging=False,
    )  # fmt: skip
    params, scores = sequential(given)
    assert same(trained.params, params)
    assert trained.scores == scores
    assert (trained.batches, trained.averages) == (10, -(-10 // every))
    # What the caller gave is as it was.
    assert same(begin, start())


@pytest.mark.parametrize("kind", [step, in_place_step])
def test_averages_are_larger_batches(kind):
    """Two workers, averaged each time, are a loop over batches twice as large."""
    given = batches(12)
    large = [
        (ndx.concat([a[0], b[0]]), ndx.concat([a[1], b[1]]))
        for a, b in zip(given[::2], given[1::2], strict=True)
    ]
    wanted, scores = sequential(large)
    trained = ndx.parallel.train(kind, start(), given, workers=2)
    assert close(trained.params, wanted)
    # Reported after averaging: the mean of the two.
    assert trained.scores == pytest.approx(scores, rel=1e-12)
    assert trained.averages == 6


@pytest.mark.parametrize("workers", [1, 2, 3])
@pytest.mark.parametrize("every", [1, 3])
def test_gradients_are_averaged_with_update(workers, every):
    """With `update`, a round is one step with the mean of its gradients."""
    given = batches(14)
    full = workers * every
    wanted = start()
    for i in range(0, len(given), full):
        found = [gradient(wanted, each)[0] for each in given[i : i + full]]
        mean = {key: sum(each[key] for each in found) / len(found) for key in wanted}
        wanted = descend(wanted, mean)
    trained = ndx.parallel.train(
        gradient, start(), given, update=descend, workers=workers, average_every=every
    )
    assert close(trained.params, wanted)


def by_hand(given, workers, every):
    """Return the parameters that averages of copies give, one copy after the other."""
    params = start()
    full = workers * every
    for i in range(0, len(given), full):
        part = given[i : i + full]
        copies = []
        for worker in range(min(workers, len(part))):
            own = params
            for batch in part[worker::workers]:
                own, _ = step(own, batch)
            copies.append((own, len(part[worker::workers])))
        total = sum(count for _, count in copies)
        params = {
            key: sum(own[key] * count for own, count in copies) / total
            for key in params
        }
    return params


@examples(25)
@given(
    st.integers(0, 20), st.integers(1, 4), st.integers(1, 5), st.integers(0, 4),
    st.sampled_from(["enabled", "none"]),
)  # fmt: skip
def test_is_deterministic(count, workers, every, prefetch, mode):
    """The same number of workers gives the same result to the last bit, each time."""
    given = batches(count)

    def slow_step(params, batch):
        # Another order of ends each time.
        time.sleep(0.0002 * (threading.get_ident() % 3))
        return step(params, batch)

    def run(kind):
        return ndx.parallel.train(
            kind, start(), given, workers=workers, average_every=every,
            prefetch=prefetch, mode=mode,
        )  # fmt: skip

    with nothing_left():
        first, second = run(step), run(slow_step)
    assert same(first.params, second.params)
    assert first.scores == second.scores
    assert close(first.params, by_hand(given, workers, every))
    assert first.batches == count


def test_scores_of_each_batch_or_of_each_average():
    """Scores are reported after averaging, or one for each batch."""
    given, told = batches(10), []
    after = ndx.parallel.train(
        step, start(), given, workers=2, average_every=2,
        on_score=lambda *args: told.append(args),
    )  # fmt: skip
    assert [each[0] for each in told] == [4, 8, 10]
    assert after.scores == [each[1] for each in told]
    told.clear()
    before = ndx.parallel.train(
        step, start(), given, workers=2, average_every=2,
        on_score=lambda *args: told.append(args), report_after_averaging=False,
    )  # fmt: skip
    assert [each[0] for each in told] == list(range(1, 11))
    assert before.scores == [each[1] for each in told]
    assert np.mean(before.scores[:4]) == pytest.approx(after.scores[0])


@pytest.mark.parametrize("kind", [bool, np.bool_, ndx.asarray, np.asarray])
def test_ends_when_the_user_has_enough(kind):
    trained = ndx.parallel.train(
        step, start(), batches(40), workers=2, epochs=3,
        on_score=lambda used, score: kind(used >= 6),
    )  # fmt: skip
    assert trained.batches == 6


def test_epochs_begin_anew():
    given = batches(5)
    trained = ndx.parallel.train(step, start(), given, workers=1, epochs=3)
    assert same(trained.params, sequential(given * 3)[0])
    assert trained.batches == 15
    with pytest.raises(ValueError, match="used once"):
        ndx.parallel.train(step, start(), iter(given), epochs=2)


def test_counters_and_names_are_not_averaged():
    def count(params, batch):
        return {
            "steps": params["steps"] + 1, "n": params["n"] + 1, "rate": params["rate"],
            "name": "net", "x": params["x"] + batch,
        }, 1  # fmt: skip

    begin = {"steps": ndx.asarray(0), "n": 0, "rate": 0.5, "name": "net", "x": 0.0}
    trained = ndx.parallel.train(count, begin, [1.0, 3.0], workers=2)
    assert int(trained.params["steps"]) == 1
    assert trained.params["steps"].dtype == ndx.int64
    assert trained.params["n"] == 1
    assert (trained.params["rate"], trained.params["name"]) == (0.5, "net")
    assert trained.params["x"] == 2.0


@pytest.mark.parametrize("mode", ["enabled", "single", "separate", "none"])
def test_steps_lie_in_workspaces_by_mode(mode):
    """The workspaces' mode says whether the workers have any; two are ND4J's words."""
    inside = []

    def look(params, batch):
        inside.append((params + 1).workspace)
        return params, 0.0

    ndx.parallel.train(
        look, ndx.zeros(3), range(4), workers=1, workspace="mine", mode=mode
    )
    assert inside == [None if mode == "none" else "mine"] * 4


def test_results_belong_to_the_caller():
    with ndx.use("host", limit="8MiB") as small, ndx.workspace("outer", size="1MiB"):
        trained = ndx.parallel.train(step, start(), batches(4), workers=2)
        assert trained.params["w"].workspace is None
        assert trained.params["w"].backend is small
    ndx.workspace("outer").destroy()
    assert trained.params["w"].in_scope


@pytest.mark.parametrize("prefetch", [0, 8])
def test_batches_are_taken_a_few_ahead(prefetch):
    taken, ahead = [], []

    def source():
        for i in range(60):
            taken.append(i)
            yield float(i)

    def look(params, batch):
        ahead.append(len(taken) - batch)
        return params, 0.0

    ndx.parallel.train(
        look, ndx.zeros(1), source(), workers=2, average_every=30, prefetch=prefetch
    )
    # Those in the buffer, and two for each worker, which one of them may have alone.
    assert max(ahead) <= prefetch + 2 * 2 * 2 + 1


def test_errors_say_which_batch():
    def fail(params, batch):
        if batch in (5, 6):
            raise LookupError(batch)
        return params, 0.0

    with pytest.raises(LookupError) as caught:
        ndx.parallel.train(fail, ndx.zeros(3), range(100), workers=2)
    assert caught.value.index_of_item == 5
    assert any("batch 5" in note for note in caught.value.__notes__)


@pytest.mark.parametrize("make", [list, tuple, iter])
def test_batches_of_a_list_are_not_copied(make):
    """They are there already; only those of other sources are taken ahead."""
    given = [ndx.full(100, float(i)) for i in range(4)]
    found, names = [], set()

    def note(params, batch):
        found.append(np.asarray(batch).ctypes.data)
        names.update(each.name for each in threading.enumerate())
        return params, 0.0

    ndx.parallel.train(note, 0.0, make(given), workers=1)
    same = found == [np.asarray(each).ctypes.data for each in given]
    assert same == (make is not iter)
    assert any("prefetch" in each for each in names) == (make is iter)


@pytest.mark.parametrize("prefetch", [0, 3])
def test_errors_of_the_source_say_where(prefetch):
    def source():
        yield from range(5)
        raise OSError("no more")

    with pytest.raises(OSError, match="no more") as caught:
        ndx.parallel.train(
            lambda p, b: (p, 0.0), ndx.zeros(3), source(), workers=2, prefetch=prefetch
        )
    assert caught.value.index_of_item == 5


def test_errors_of_the_callback_end_the_workers():
    def fail(used, score):
        raise LookupError

    with pytest.raises(LookupError):
        ndx.parallel.train(step, start(), batches(9), workers=2, on_score=fail)


@pytest.mark.parametrize(
    ("made", "match"),
    [
        (ndx.zeros(2), "a tuple of two"),
        ((1, 2, 3), "tuple of 3"),
        (({"v": 1.0}, 0.0), "differ in structure"),
        (({"w": (1.0, 2.0)}, 0.0), "differ in structure"),
        ((1.0, 0.0), "differ in structure"),
    ],
)
@pytest.mark.parametrize("workers", [1, 2])
def test_steps_that_return_something_else(made, match, workers):
    with pytest.raises((TypeError, ValueError), match=match):
        ndx.parallel.train(lambda *_: made, {"w": 1.0}, range(4), workers=workers)


def test_steps_that_differ():
    def odd(params, batch):
        return ({"w": 1.0} if batch else {"v": 1.0}), 0.0

    with pytest.raises(ValueError, match="differ in structure"):
        ndx.parallel.train(odd, {"w": 1.0}, range(2), workers=2)


@pytest.mark.parametrize(
    ("error", "match", "given"),
    [
        (ValueError, "mode='ENABLED'.*'enabled', 'none', 'single", {"mode": "ENABLED"}),
        (ValueError, "no use", {"mode": "none", "config": ndx.WorkspaceConfig()}),
        (ValueError, "epochs=0", {"epochs": 0}),
        (ValueError, "average_every=0", {"average_every": 0}),
        (ValueError, "prefetch=-1", {"prefetch": -1}),
        (ValueError, "workers=0", {"workers": 0}),
        (ValueError, "threads=0", {"threads": 0}),
    ],
)
def test_bad_arguments(error, match, given):
    with pytest.raises(error, match=match):
        ndx.parallel.train(step, start(), batches(1), **given)


@pytest.mark.parametrize(
    "make",
    [
        lambda b: ndx.ones(1 if b % 2 else 3),
        lambda b: ndx.ones(3, dtype=ndx.float32 if b % 2 else ndx.float64),
        lambda b: 1.0 if b % 2 else ndx.ones(3),
        lambda b: None if b % 2 else ndx.ones(3),
    ],
    ids=["shape", "dtype", "number", "none"],
)
@pytest.mark.parametrize("update", [None, lambda params, gradients: params])
def test_results_that_can_not_be_averaged(make, update):
    def step(params, batch):
        return {"w": make(batch)}, 0.0

    params = {"w": ndx.ones(3)}
    for batches in [2, 1, 2, 1], [1, 2, 1, 2]:
        with pytest.raises(ValueError, match="same shapes and dtypes"):
            ndx.parallel.train(step, params, batches, workers=2, update=update)


def test_an_update_that_returns_nothing():
    def step(params, batch):
        return {"w": ndx.ones(3)}, 0.0

    params = {"w": ndx.ones(3)}
    with pytest.raises(TypeError, match="update returned None; it must return"):
        ndx.parallel.train(step, params, [1], workers=1, update=lambda p, g: None)
    with pytest.raises(ValueError, match="differ in structure"):
        ndx.parallel.train(step, params, [1], workers=1, update=lambda p, g: {"v": 1})


@pytest.mark.parametrize("name", ["update", "on_score"])
def test_functions_are_checked_at_once(name):
    with pytest.raises(TypeError, match=f"{name} must be callable, not int"):
        ndx.parallel.train(lambda p, b: (p, 0.0), {}, [1], **{name: 3})


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("kind", [np.zeros, lambda n: np.zeros(n, "f4")[0], ndx.zeros])
def test_arrays_of_numpy_are_averaged(workers, kind):
    """They are arrays of ndx in the workers, and the caller's stay as they are."""

    def step(params, batch):
        return {"w": params["w"] + batch, "name": "n"}, 0.0

    def in_place(params, batch):
        params["w"] += batch
        return params, 0.0

    for function in (step, in_place):
        params = {"w": kind(1), "name": "n"}
        found = ndx.parallel.train(function, params, [1.0, 3.0], workers=workers).params
        assert found["w"] == (4.0 if workers == 1 else 2.0)
        assert found["name"] == "n"
        assert params["w"] == 0


def test_gradients_of_numpy_are_added():
    found = ndx.parallel.train(
        lambda params, batch: ({"w": np.array([batch])}, 0.0),
        {"w": ndx.zeros(1)},
        [1.0, 3.0],
        workers=1,
        average_every=2,
        update=lambda params, gradients: {"w": params["w"] + gradients["w"]},
    ).params
    assert found["w"] == 2.0


@pytest.mark.parametrize("wrapped", [ndx.prefetch, ndx.no_prefetch])
def test_batches_of_a_wrapper_whose_source_has_no_length(wrapped):
    batches = wrapped(float(i) for i in range(4))
    found = ndx.parallel.train(
        lambda params, batch: (params - batch, 0.0), ndx.zeros(()), batches, workers=1
    )
    assert (float(found.params), found.batches) == (-6.0, 4)
    if wrapped is ndx.prefetch:
        # Dropped, its thread would end a moment later.
        batches.close()

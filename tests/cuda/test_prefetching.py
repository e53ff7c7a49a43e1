"""Batches that are prefetched to a GPU, through page-locked memory."""

import numpy as np
import pytest

import ndx


def batches(number):
    for i in range(number):
        yield {"x": np.full(1000, i), "y": ndx.full((3, 4), float(i)), "name": f"{i}"}


@pytest.mark.parametrize("workspace", ["ring", None])
@pytest.mark.parametrize("mark", [lambda x: x, ndx.no_prefetch])
def test_batches_arrive_on_the_gpu(gpu, workspace, mark):
    taken = 0
    made = ndx.prefetch(
        mark(batches(30)), depth=3, workspace=workspace, device="cuda:0"
    )
    for i, batch in enumerate(made):
        assert batch["x"].device == batch["y"].device == "cuda:0"
        assert batch["name"] == str(i)
        assert batch["x"].to_device("cpu").tolist() == [i] * 1000
        assert float(ndx.sum(batch["y"])) == 12.0 * i
        taken += 1
    assert taken == 30
    made.close()


def test_a_slot_of_the_gpu_is_leased_while_its_batch_is_used(gpu):
    with ndx.prefetch(
        batches(12), depth=1, slots=3, warmup=1, device="cuda:0", on_held="grow"
    ) as made:
        kept = [batch["x"][::2] for batch in made]
        for i, view in enumerate(kept):
            assert view.to_device("cpu").tolist() == [i] * 500
        assert made.stats()["grown"] > 0
        assert made.stats()["leased_slots"] >= 11
        del kept


def test_the_steady_state_takes_nothing_from_the_gpus_driver(gpu):
    source = list(range(20))

    class Source:
        def __iter__(self):
            return (np.full(50_000, i, dtype="float32") for i in source)

    def epoch():
        for i, x in enumerate(made):
            assert float(x[7]) == i

    def taken():
        assert ndx.backends.get("pinned").stats()["total_allocations"] > 0
        return [
            ndx.backends.get(name).stats()["system_allocations"]
            for name in ("cuda:0", "pinned")
        ]

    with ndx.prefetch(Source(), depth=2, device="cuda:0") as made:
        epoch()
        before = taken()
        for _ in range(3):
            epoch()
        assert taken() == before


def test_what_the_source_has_on_the_gpu_is_copied(gpu):
    with ndx.use("cuda:0"):
        buffer = ndx.zeros(10)

    def reused():
        for i in range(8):
            buffer[...] = float(i)
            yield buffer

    with ndx.prefetch(reused(), depth=3, device="cuda:0") as made:
        values = [x.tolist()[0] for x in made]
    assert values == [float(i) for i in range(8)]


def test_a_source_that_leaves_its_scope_open(gpu):
    def source():
        with ndx.use("host"):
            yield np.ones(3)

    with (
        ndx.prefetch(source(), device="cuda:0") as made,
        pytest.raises(ndx.WorkspaceError, match="left open"),
    ):
        list(made)

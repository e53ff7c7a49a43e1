"""The benchmark of planned arenas: what it compares with is right, and it is met."""

import json

import pytest

import ndx


def test_the_recorder_follows_live_bytes():
    from liveness import Recorder

    recorder = Recorder()
    with ndx.use(recorder):
        kept = ndx.zeros(1000, dtype="uint8")
        with recorder():
            a = ndx.zeros(100, dtype="uint8")  # 128
            b = ndx.zeros(64, dtype="uint8")  # 64
            del a
            c = ndx.zeros(65, dtype="uint8")  # 128, in the place of a
            del b, c
        assert (recorder.most, recorder.births, recorder.deaths) == (192, 3, 3)
        with recorder():
            d = ndx.zeros(1, dtype="uint8")
        assert (recorder.most, recorder.births) == (192, 4)
        assert recorder.live == 1024 + 64
    del kept, d
    assert recorder.live == 0


def test_it_sees_what_the_arena_sees():
    """Without a plan, an arena's offset is the sum of the recorded births."""
    from liveness import Recorder, in_workspace, works

    make_run = works()["heat, 50 x 50"]
    sizes = []

    class Listed(Recorder):
        def acquire(self, nbytes):
            buffer = super().acquire(nbytes)
            if self.start is not None:
                sizes.append(self.sizes[id(buffer)])
            return buffer

    recorder = Listed()
    with ndx.use(recorder):
        run = make_run(ndx, recorder)
        run.repeat()
    first = in_workspace(make_run, 1, learn="first", overallocation=0.0)
    assert first.workspace.size == sum(sizes) / run.steps
    assert first.spilled == 0


def test_the_target_is_met(capsys):
    import liveness

    assert liveness.main(["--repeats", "2", "--json", "--check"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert len(rows) == len(liveness.works())
    for row in rows:
        assert row["live"] <= row["liveness"] < row["sum"]
        assert row["ratio"] <= liveness.TARGET
        assert row["spilled"] == 0


def test_a_missed_target_is_an_error(capsys, monkeypatch):
    import liveness

    monkeypatch.setattr(liveness, "TARGET", 0.5)
    monkeypatch.setattr(
        liveness,
        "measure",
        lambda label, make_run, repeats: liveness.Result(label, 30, 10, 10, 0, 0),
    )
    assert liveness.main([]) == 0
    assert liveness.main(["--check"]) == 1
    captured = capsys.readouterr()
    assert captured.err.count("target missed: ") == len(liveness.works())
    assert "1.000 > 0.5" in captured.err
    with pytest.raises(SystemExit):
        liveness.main(["--nosuch"])

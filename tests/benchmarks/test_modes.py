"""The benchmark of modes: all modes compute the same, and it counts what it says."""

import json


def test_all_modes_compute_the_same():
    from modes import MODES, Run

    for phase in ("training", "inference"):
        runs = [Run(phase, mode) for mode in MODES]
        results = [
            [run.step(run.roles(), *batch) for batch in run.batches[-3:]]
            for run in runs
        ]
        assert results == [results[0]] * len(MODES)


def test_its_counts(capsys):
    import modes

    modes.main(["--quick", "--json"])
    rows = {
        (row["phase"], row["mode"]): row
        for row in json.loads(capsys.readouterr().out)["rows"]
    }
    assert len(rows) == 8
    for (_, mode), row in rows.items():
        assert row["system_per_step"] == 0
        assert (row["buffers_per_step"] > 0) == (mode == "none")
        assert (row["arena_bytes"] > 0) == (mode != "none")
    for phase in ("training", "inference"):
        single, separate, enabled = (
            rows[phase, mode]["peak_bytes"]
            for mode in ("single", "separate", "enabled")
        )
        assert enabled < separate < single
        assert enabled <= 1.1 * rows[phase, "none"]["peak_bytes"]
    modes.show(list(rows.values()))
    assert "separate" in capsys.readouterr().out

"""Named phases: runs of `ndx.memory.profile` in recordings, and their peaks."""

import json
import threading

import pytest

import ndx
from ndx import memory


@pytest.fixture(autouse=True)
def _forget():
    yield
    memory.profile_report(clear=True)


def phases_of(trace):
    data = trace.to_dict()
    columns = data["phases"]
    return [
        (data["phase_names"][name], begin, end, thread)
        for begin, end, name, thread in zip(*columns.values(), strict=True)
    ]


def test_runs_of_a_phase():
    with memory.record() as trace:
        for _ in range(3):
            with memory.profile("forward"):
                ndx.ones(1000)
        with memory.profile("backward"):
            ndx.ones(10)
    found = phases_of(trace)
    assert [name for name, *_ in found] == ["forward"] * 3 + ["backward"]
    times = [time for _, begin, end, _ in found for time in (begin, end)]
    assert times == sorted(times)
    assert trace.to_dict()["threads"][found[0][3]] == threading.current_thread().name


def test_recursive_phases():
    @memory.profile("walk")
    def walk(n):
        x = ndx.ones(100)
        return x if n == 0 else walk(n - 1) + x

    with memory.record() as trace:
        walk(3)
    found = phases_of(trace)
    assert len(found) == 4
    begins = [begin for _, begin, _, _ in found]
    ends = [end for _, _, end, _ in found]
    assert begins == sorted(begins)
    assert ends == sorted(ends, reverse=True)


def test_a_phase_that_is_open_at_the_ends_of_a_recording():
    with memory.profile("around"), memory.record() as trace:
        x = ndx.ones(100)
    assert phases_of(trace) == []
    phase = memory.profile("open")
    with memory.record() as trace:
        phase.__enter__()
        y = ndx.ones(100)
    phase.__exit__(None, None, None)
    ((name, begin, end, _),) = phases_of(trace)
    assert (name, end) == ("open", None)
    assert 0 <= begin <= trace.to_dict()["end"]
    assert "phase 'open': peak 800 B, 1 runs" in trace.summary()
    del x, y


@memory.profile("fails")
def fail():
    raise ZeroDivisionError


def test_an_error_ends_its_phase():
    with memory.record() as trace, pytest.raises(ZeroDivisionError):
        fail()
    ((_, begin, end, _),) = phases_of(trace)
    assert begin <= end


@pytest.mark.threads
def test_phases_of_threads():
    together = threading.Barrier(2, timeout=30)

    def work():
        with memory.profile("shared"):
            together.wait()
            ndx.ones(1000)
            together.wait()

    with memory.record() as trace:
        threads = [threading.Thread(target=work) for _ in range(2)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
    found = phases_of(trace)
    assert len(found) == 2
    assert len({thread for *_, thread in found}) == 2
    assert max(begin for _, begin, _, _ in found) < min(end for _, _, end, _ in found)


def test_peaks_in_the_summary():
    kept = []
    with memory.record() as trace:
        base = ndx.ones(1000)
        for n in (1000, 3000, 2000):
            with memory.profile("step"):
                x = ndx.ones(n)
                kept.append(ndx.ones(500))
                del x
        with memory.profile("rest"):
            pass
    lines = str(trace.summary()).splitlines()
    (step,) = [line for line in lines if line.startswith("phase 'step'")]
    # 8000 bytes of `base`, 4000 of the first run's, 24000 of `x`, 4000 of its own.
    assert step.startswith("phase 'step': peak 39.06 KiB, 3 runs, each kept 3.906 KiB")
    (rest,) = [line for line in lines if line.startswith("phase 'rest'")]
    assert rest == "phase 'rest': peak 19.53 KiB, 1 runs, each kept 0 B at most"
    del base


def test_chromes_format(tmp_path):
    with memory.record() as trace, memory.profile("forward"):
        ndx.ones(1000)
    trace.save(tmp_path / "trace.json")
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    (phase,) = [event for event in events if event.get("cat") == "phase"]
    assert phase["name"] == "forward"
    assert phase["ph"] == "X"
    assert phase["dur"] > 0


def test_a_full_log_forgets_old_phases():
    with memory.record(max_events=64) as trace:
        for _ in range(500):
            with memory.profile("many"):
                ndx.ones(10)
    data = trace.to_dict()
    assert len(data["phases"]["begin"]) <= 64
    assert all(
        end is None or begin <= end
        for begin, end in zip(
            data["phases"]["begin"], data["phases"]["end"], strict=True
        )
    )

"""What traces are saved as: the page's data, Chrome's format, matplotlib."""

import json
import re
import sys

import pytest

import ndx
from ndx.memory._page import script_json

NASTY = "</script><script>alert(1)</script><!-- \u2028 & ' \" \\ /*{data}*/ 数"


@pytest.fixture
def trace():
    scope = {"ndx": ndx}
    exec(compile("def make(): return ndx.ones((4, 5))", NASTY, "exec"), scope)
    with ndx.memory.record(stacks=3) as trace:
        x = scope["make"]()
        with ndx.workspace("</title>"):
            y = ndx.ones(100)
        del x, y
    return trace


def page_of(trace, tmp_path):
    trace.save(tmp_path / "trace.html")
    return (tmp_path / "trace.html").read_text(encoding="utf-8")


def test_the_pages_data_is_what_was_recorded(trace, tmp_path):
    page = page_of(trace, tmp_path)
    [data] = re.findall(r'id="trace-data">(.*?)</script>', page, re.S)
    assert json.loads(data) == json.loads(json.dumps(trace.to_dict()))


def test_no_name_ends_the_script(trace, tmp_path):
    page = page_of(trace, tmp_path)
    assert page.count("</script>") == page.count("<script") == 2
    assert "<!--" not in page
    assert "\u2028" not in page
    assert "alert(1)</" not in page


@pytest.mark.parametrize("text", [NASTY, "<SCRIPT>", "]]>", "\x00\ud800"])
def test_json_in_a_script(text):
    escaped = script_json([text])
    assert not set(escaped) & set("<>&\u2028\u2029")
    assert json.loads(escaped) == [text]


def test_the_page_needs_nothing_else(trace, tmp_path):
    page = page_of(trace, tmp_path)
    page = re.sub(r'id="trace-data">.*?</script>', "", page, flags=re.S)
    assert not re.findall(r"https?://", page)
    assert not re.findall(r"\b(?:src|href)\s*=\s*[\"'](?!data:)", page)
    assert not re.findall(r"@import|url\(|\bfetch\(|XMLHttpRequest|\beval\(", page)
    assert not re.findall(r"innerHTML|document\.write|insertAdjacentHTML", page)
    assert "/*{" not in page


def test_chromes_format(trace, tmp_path):
    trace.save(tmp_path / "trace.json")
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    phases = {event["ph"] for event in events}
    assert phases == {"M", "C", "X", "b", "e"}
    assert all(isinstance(e["pid"], int) for e in events)
    assert all(isinstance(e["ts"], (int, float)) for e in events if e["ph"] != "M")
    spans = {}
    for event in events:
        if event["ph"] in "be":
            spans.setdefault(event["id"], []).append(event)
    assert len(spans) == 2
    for begin, end in spans.values():
        assert (begin["ph"], end["ph"]) == ("b", "e")
        assert begin["ts"] <= end["ts"]
        assert begin["name"] == end["name"]
        assert begin["cat"] == end["cat"] == "array"
    assert spans[0][0]["name"] == "float64 (4, 5), 160 B"
    assert spans[0][0]["args"]["maker"].startswith(NASTY)
    assert spans[0][1]["args"] == {"freed": "dropped"}
    [scope] = [event for event in events if event["ph"] == "X"]
    assert scope["name"] == "</title>"
    live = [e["args"]["bytes"] for e in events if e["name"] == "live arrays"]
    assert max(live) == trace.peak_bytes
    assert live[-1] == 0


def test_what_lives_on_ends_with_the_trace(tmp_path):
    with ndx.memory.record() as trace:
        x = ndx.ones(3)
    trace.save(tmp_path / "trace.JSON")
    events = json.loads((tmp_path / "trace.JSON").read_text())["traceEvents"]
    assert [e["ph"] for e in events if e.get("cat") == "array"] == ["b", "e"]
    del x


@pytest.mark.parametrize("name", ["trace", "trace.svg", "html"])
def test_other_suffixes_are_refused(trace, tmp_path, name):
    with pytest.raises(ValueError, match=r"one of \.html, \.json"):
        trace.save(tmp_path / name)
    assert not list(tmp_path.iterdir())


def test_a_trace_of_nothing(tmp_path):
    with ndx.memory.record() as trace:
        pass
    trace.save(tmp_path / "trace.html")
    trace.save(tmp_path / "trace.json")
    assert "0 arrays" in trace.summary()


def test_a_trace_that_goes_on_can_be_saved(tmp_path):
    with ndx.memory.record() as trace:
        x = ndx.ones(3)
        trace.save(tmp_path / "trace.html")
        y = ndx.ones(3)
    assert len(trace.events) == 2
    del x, y


def test_matplotlib(trace):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("agg")
    from matplotlib import pyplot as plt

    ax = trace.plot()
    labels = ax.get_legend_handles_labels()[1]
    assert "reserved by 'host'" in labels
    assert any("make" in label for label in labels)
    assert ax.get_title().startswith("peak 960 B")
    other = plt.figure().subplots()
    assert trace.plot(other) is other
    plt.close("all")


def test_matplotlib_draws_names_as_they_are():
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("agg")
    from matplotlib import pyplot as plt

    scope = {"ndx": ndx}
    exec(compile("x = ndx.ones(10)", "_$x^{$.py", "exec"), scope)
    with ndx.memory.record() as trace:
        exec(compile("y = ndx.ones(10)", "_$x^{$.py", "exec"), scope)
    ax = trace.plot()
    ax.figure.canvas.draw()
    assert len(ax.get_legend().get_texts()) == 2
    plt.close("all")


def test_without_matplotlib(trace, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r"ndxarray\[plot\]"):
        trace.plot()


def test_a_trace_is_saved_over_the_file_of_an_array(trace, tmp_path):
    path = tmp_path / "trace.json"
    ndx.save(path, ndx.ones(20_000))
    x = ndx.open(path)
    trace.save(path)
    assert json.loads(path.read_text(encoding="utf-8"))
    assert ndx.all(x == 1)

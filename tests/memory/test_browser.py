"""The page of a trace in a real browser: it draws, and does what it is told."""

import json
import time

import pytest
from helpers.browser import Browser

import ndx

pytestmark = pytest.mark.nightly

CHART = "document.getElementById('chart').getBoundingClientRect()"


def text(browser, name):
    return browser.run(f"document.getElementById('{name}').innerText")


def rows(browser):
    return browser.run(
        "[...document.querySelectorAll('#rows tr')].map(r => r.innerText.split('\\t'))"
    )


def colours(browser):
    """Return how many pixels of each colour the chart's bands have."""
    counts = browser.run(
        """(() => {
        const c = document.getElementById('chart'), found = {};
        const r = window.devicePixelRatio;
        const g = c.getContext('2d');
        const d = g.getImageData(80*r, 15*r, c.width-100*r, 200*r).data;
        for (let i = 0; i < d.length; i += 4)
            if (d[i+3] === 255) {
                const k = `${d[i]},${d[i+1]},${d[i+2]}`;
                found[k] = (found[k] || 0) + 1;
            }
        return JSON.stringify(found); })()"""
    )
    return json.loads(counts)


def center(browser, part_x=0.5, part_y=0.5):
    """Return a point of the chart, in parts of what is inside of its axes."""
    left, top, width, height = browser.run(
        f"(() => {{ const b = {CHART}; return [b.left, b.top, b.width, b.height]; }})()"
    )
    return left + 76 + part_x * (width - 88), top + 14 + part_y * (height - 65)


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    with Browser(tmp_path_factory.mktemp("profile")) as browser:
        yield browser


def build_large():
    return ndx.ones(100_000)


def build_small():
    return ndx.ones(10_000, dtype="float32")


@pytest.fixture
def page(browser, tmp_path):
    """Open the page of a small trace, of a backend that holds little else."""
    with ndx.memory.record(stacks=4) as trace, ndx.use("host", limit="64MiB"):
        large = build_large()
        with ndx.workspace("step</script><b>"):
            small = [build_small() for _ in range(3)]
            # So that the arrays fill the width.
            time.sleep(0.05)
        del large, small
    trace.save(tmp_path / "trace.html")
    browser.resize(1280, 900)
    browser.prefer("light")
    browser.open(tmp_path / "trace.html")
    yield browser
    assert browser.problems() == []


def test_what_it_says_of_the_trace(page):
    assert "898 KiB" in text(page, "facts")
    assert "898 KiB" in text(page, "legend-title")
    assert page.run("document.querySelectorAll('b').length") == 0
    legend = text(page, "legend")
    assert "in build_large" in legend
    assert "in build_small" in legend
    found = rows(page)
    assert [row[0] for row in found] == ["781 KiB", "39.1 KiB", "39.1 KiB", "39.1 KiB"]
    assert found[0][1] == "float64 (100000,)"
    assert found[1][3] == "step</script><b>"
    assert found[1][6] == "scope end"


def test_hover_names_the_array(page):
    page.mouse("mouseMoved", *center(page, 0.5, 0.9))
    page.frames()
    tip = text(page, "tip")
    assert "float64 (100000,)" in tip
    assert "in build_large" in tip
    assert "dropped" in tip
    page.mouse("mouseMoved", *center(page, 0.5, -0.02))
    page.frames()
    assert page.run("document.getElementById('tip').hidden")


def test_click_chooses_and_escape_lets_go(page):
    page.click(*center(page, 0.5, 0.9))
    assert "float64 (100000,)" in text(page, "chosen")
    assert "800000 bytes" in text(page, "chosen")
    assert page.run("document.querySelectorAll('#rows tr.chosen').length") == 1
    page.run(f"({CHART}, document.getElementById('chart').focus())")
    page.press("Escape")
    assert "Click a band" in text(page, "chosen")


def test_wheel_drag_buttons_and_keys_move_what_is_shown(page):
    def marks():
        return tuple(sorted(colours(page).items())), overview()

    def overview():
        # Where the frame in the overview is: its left and right edges.
        return page.run(
            """(() => { const c = document.getElementById('overview');
            const g = c.getContext('2d');
            const d = g.getImageData(0, c.height / 2 | 0, c.width, 1).data;
            const xs = [];
            for (let x = 0; x < c.width; x++)
                if (d[4*x] === 47 && d[4*x+1] === 111 && d[4*x+2] === 219) xs.push(x);
            return [xs[0], xs[xs.length - 1]]; })()"""
        )

    whole = overview()
    page.wheel(*center(page), -600)
    zoomed = overview()
    assert zoomed[0] > whole[0]
    assert zoomed[1] < whole[1]
    page.drag(*center(page, 0.3), *center(page, 0.7))
    moved = overview()
    assert moved[0] < zoomed[0]
    page.run("document.getElementById('fit').click()")
    page.frames(3)
    assert overview() == whole
    page.run("document.getElementById('chart').focus()")
    for key, narrower in (("+", True), ("-", False)):
        before = overview()
        page.press(key, key)
        width = overview()[1] - overview()[0]
        assert (width < before[1] - before[0]) == narrower
    page.press("+", "+")
    before = overview()
    page.press("ArrowLeft")
    assert overview()[0] < before[0]
    page.press("0", "0")
    assert overview() == whole


def test_the_keyboard_chooses_arrays(page):
    page.run("document.getElementById('chart').focus()")
    page.press("p", "p")
    page.press("]", "]")
    first = text(page, "chosen")
    page.press("]", "]")
    assert text(page, "chosen") != first
    page.press("[", "[")
    assert text(page, "chosen") == first
    page.press("Enter")


def test_search_and_only_these(page):
    page.run("document.getElementById('search').focus()")
    page.send("Input.insertText", text="BUILD_small step")
    page.run("new Promise(done => setTimeout(done, 250))")
    page.frames()
    assert text(page, "found") == "3 of 4"
    assert len(rows(page)) == 3
    before = colours(page)
    page.run("document.getElementById('only').click()")
    page.frames(3)
    assert "117 KiB" in text(page, "legend-title")
    assert colours(page) != before


@pytest.mark.parametrize(
    ("by", "names"),
    [
        ("workspace", {"no workspace", "step</script><b>"}),
        ("dtype", {"float64", "float32"}),
        ("freed", {"dropped", "scope end"}),
    ],
)
def test_colours(page, by, names):
    page.run(
        f"(() => {{ const s = document.getElementById('colour'); s.value = '{by}';"
        " s.dispatchEvent(new Event('change')); })()"
    )
    page.frames()
    found = page.run(
        "[...document.querySelectorAll('#legend .name')].map(e => e.innerText)"
    )
    assert set(found) == names


def test_a_group_of_the_legend_alone(page):
    before = colours(page)
    page.run("document.querySelectorAll('#legend button')[1].click()")
    page.frames(3)
    assert colours(page).get("78,121,167", 0) < before["78,121,167"]


def test_events_across(page):
    before = colours(page)
    page.run(
        "(() => { const s = document.getElementById('axis'); s.value = 'events';"
        " s.dispatchEvent(new Event('change')); })()"
    )
    page.frames(3)
    assert colours(page) != before
    page.mouse("mouseMoved", *center(page, 0.5, 0.9))
    page.frames()
    assert "float64 (100000,)" in text(page, "tip")


def test_idle_memory_sets_the_scale_only_where_it_is_shown(browser, tmp_path):
    with ndx.use("host", idle_release=None):
        idle = ndx.ones(5_000_000)
        del idle
        with ndx.memory.record() as trace:
            x = build_large()
            time.sleep(0.05)
            del x
    trace.save(tmp_path / "trace.html")
    browser.resize(1280, 900)
    browser.open(tmp_path / "trace.html")

    def filled():
        return colours(browser).get("78,121,167", 0)

    def toggle():
        browser.run("document.getElementById('reserved').click()")
        browser.frames()

    assert "most reserved\n38." in text(browser, "facts")
    assert filled() > 100_000
    toggle()
    assert filled() < 10_000
    # Zoomed to where only the line is.
    for _ in range(8):
        browser.run(
            f"""(() => {{ const b = {CHART};
            document.getElementById('chart').dispatchEvent(new WheelEvent('wheel', {{
                deltaY: -300, shiftKey: true, cancelable: true,
                clientX: b.left + 400, clientY: b.top + 40}})); }})()"""
        )
    browser.frames()
    assert filled() == 0
    toggle()
    assert filled() > 100_000
    assert browser.problems() == []


def test_dark_and_light(page):
    def background():
        return page.run("getComputedStyle(document.body).backgroundColor")

    light = background()
    page.prefer("dark")
    page.frames()
    assert background() != light
    page.run("document.getElementById('theme').click()")
    page.frames()
    assert background() == light


def test_the_table_sorts_and_its_rows_choose(page):
    page.run("document.querySelectorAll('#columns button')[0].click()")
    assert rows(page)[0][0] == "39.1 KiB"
    page.run("document.querySelector('#rows tr').click()")
    assert "float32" in text(page, "chosen")


@pytest.mark.parametrize(("width", "height"), [(400, 700), (2400, 1300)])
def test_other_sizes(page, width, height):
    page.resize(width, height)
    page.frames(3)
    assert page.run("document.documentElement.scrollWidth") <= width
    assert sum(colours(page).values()) > 1000


def test_a_trace_of_nothing(browser, tmp_path):
    with ndx.memory.record() as trace:
        pass
    trace.save(tmp_path / "trace.html")
    browser.open(tmp_path / "trace.html")
    browser.run("document.getElementById('to-peak').click()")
    browser.mouse("mouseMoved", *center(browser))
    browser.frames()
    assert browser.problems() == []


def test_a_lane_for_each_phase(browser, tmp_path):
    with ndx.memory.record() as trace, ndx.memory.profile("forward"):
        x = build_large()
        time.sleep(0.05)
    ndx.memory.profile_report(clear=True)
    trace.save(tmp_path / "trace.html")
    browser.resize(1280, 900)
    browser.open(tmp_path / "trace.html")
    left, _ = center(browser)
    bottom = browser.run(f"{CHART}.bottom")
    for y in range(int(bottom) - 60, int(bottom), 4):
        browser.mouse("mouseMoved", left, y)
        browser.frames()
        if text(browser, "tip").startswith("phase forward, run 1"):
            break
    else:
        pytest.fail("no lane of the phase")
    assert browser.problems() == []
    del x


def test_the_page_of_what_is_alive(browser, tmp_path):
    with ndx.use("host", limit="64MiB") as backend:
        kept = [build_large(), build_small(), ndx.ones((3, 50), dtype="int8")]
        ndx.memory.live(backend).save(tmp_path / "live.html")
    browser.resize(1280, 900)
    browser.open(tmp_path / "live.html")
    shown = (
        "[...document.querySelectorAll('tbody tr')].filter(r => !r.hidden)"
        ".map(r => r.cells[0].textContent)"
    )
    assert browser.run(shown) == ["800000", "40000", "150"]
    head = "document.querySelectorAll('th')[{}]"
    browser.run(head.format(0) + ".click()")
    browser.run(head.format(0) + ".click()")
    assert browser.run(shown) == ["150", "40000", "800000"]
    browser.run(head.format(3) + ".click()")
    assert browser.run(shown) == ["150", "800000", "40000"]
    browser.run(
        "(() => { const s = document.getElementById('search'); s.value = 'float64';"
        " s.dispatchEvent(new Event('input')); })()"
    )
    assert browser.run(shown) == ["800000"]
    browser.resize(400, 700)
    browser.frames()
    assert browser.run("document.documentElement.scrollWidth") <= 400
    assert browser.problems() == []
    del kept

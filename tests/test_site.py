"""The built documentation in a real browser: all there, nothing too wide."""

from pathlib import Path

import pytest
from helpers.browser import Browser

SITE = Path(__file__).parents[1] / "build" / "docs"
CLASSES = ["NDArray", "Workspace", "workspace", "random.Generator"]
pytestmark = pytest.mark.nightly


@pytest.fixture(scope="module")
def pages():
    found = [
        p for p in SITE.rglob("*.html") if not {"_static", "generated"} & {*p.parts}
    ]
    if not found:
        pytest.skip("the documentation is not built: make docs")
    generated = SITE / "reference" / "api" / "generated"
    return [*found, *(generated / f"ndx.{name}.html" for name in CLASSES)]


@pytest.mark.parametrize("width", [390, 1280])
def test_pages_fit_and_need_no_network(pages, width, tmp_path):
    with Browser(tmp_path) as browser:
        browser.resize(width, 900)
        for page in pages:
            browser.open(page)
            assert not browser.problems(), page
            too_wide = "document.documentElement.scrollWidth > innerWidth"
            assert not browser.run(too_wide), page


def test_the_system_chooses_light_or_dark(pages, tmp_path):
    colours = {}
    with Browser(tmp_path) as browser:
        for scheme in ("light", "dark"):
            browser.prefer(scheme)
            browser.open(SITE / "index.html")
            colours[scheme] = browser.run(
                "getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number)"
            )
    assert min(colours["light"]) > 200
    assert max(colours["dark"]) < 60

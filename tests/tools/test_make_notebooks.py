"""Each tutorial is a notebook, too, with the same code."""

import json
from pathlib import Path

import pytest
from helpers import pages

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "docs" / "first_steps.md", *sorted(ROOT.glob("docs/tutorials/*.md"))]


@pytest.mark.parametrize("page", [p for p in PAGES if p.stem != "index"], ids=str)
def test_a_notebook_has_the_code_of_its_page(page):
    text = page.with_suffix(".ipynb").read_text(encoding="utf-8")
    cells = [c for c in json.loads(text)["cells"] if c["cell_type"] == "code"]
    codes = ["".join(cell["source"]) for cell in cells]
    found = pages.examples(page.read_text(encoding="utf-8"), page.name)
    assert codes == [example.code.rstrip("\n") for example in found]
    assert not any(cell["outputs"] for cell in cells)

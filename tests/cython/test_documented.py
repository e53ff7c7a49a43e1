"""The examples of docs/c_api.md compile, and do what the page says."""

import re
from pathlib import Path

import pytest

import ndx

PAGE = Path(__file__).parents[2] / "docs" / "c_api.md"
CONSUMER = Path(__file__).parent / "consumer"
FILES = {"cython": "documented.pyx", "c": "documented_c.c"}


@pytest.mark.parametrize("language", FILES)
def test_they_are_those_of_the_page(language):
    if not PAGE.exists():
        pytest.skip("no docs beside the installed package")
    text = PAGE.read_text(encoding="utf-8")
    (example,) = re.findall(rf"^```{language}\n(.*?)^```", text, re.DOTALL | re.M)
    assert example in (CONSUMER / FILES[language]).read_text(encoding="utf-8")


@pytest.mark.parametrize("module", ["documented", "documented_c"])
def test_they_compute(built, module):
    total = built(module).total
    assert total(ndx.arange(5.0)) == 10.0
    with pytest.raises(TypeError, match="float64"):
        total(ndx.arange(5))
    with pytest.raises(TypeError, match="NDArray"):
        total([1.0])
    with pytest.raises(BufferError):
        total(ndx.arange(6.0)[::2])

"""Libraries answer for our arrays what they do for NumPy's, or refuse; never otherwise.

The calls are in `calls`, a file for each library; `helpers.foreign_calls` says how it
is read. The table of docs/interop.md that counts them is made of these tests.
"""

from collections import Counter

import pytest
from helpers.foreign_calls import FOLDER, KINDS, Library, outcome

LIBRARIES = {path.stem: Library(path.stem) for path in sorted(FOLDER.glob("*.txt"))}
CHAPTERS = [
    pytest.param(library, title, id=f"{name}: {title}")
    for name, library in LIBRARIES.items()
    for title in library.chapters
]
OTHER_KINDS = [
    pytest.param(*chapter.values, kind, id=f"{chapter.id}, {kind}")
    for chapter in CHAPTERS
    for kind in [*KINDS, "stale"][1:]
    if kind != "empty" or not chapter.values[1].endswith(", not empty")
]


@pytest.fixture(autouse=True)
def _no_leak():
    """Let libraries keep arrays: caches have the arguments of the last call."""


def outcomes(library, title, kind):
    """Return how often calls of a chapter are right or refused, and what is wrong."""
    if missing := library.missing(title):
        pytest.skip(f"{missing} is not installed: `make test-ecosystem` installs it")
    library.load()
    found = [outcome(library, kind, call) for call in library.calls(title, kind)]
    counts = Counter(filter(None, found))
    known = {each: counts.pop(each, 0) for each in ("right", "refused")}
    assert not counts, f"with {kind} arrays:\n" + "\n".join(counts)
    return known


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("library", "title"), CHAPTERS)
def test_calls_answer_as_with_numpys_arrays(library, title, record_property):
    """They warn as with these, too: of other classes, which are taken for lists."""
    counts = outcomes(library, title, "plain")
    record_property("calls", (library.name, counts["right"], counts["refused"]))


@pytest.mark.costly
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("library", "title", "kind"), OTHER_KINDS)
def test_other_arrays_do_too(library, title, kind):
    outcomes(library, title, kind)

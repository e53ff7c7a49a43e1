"""The examples in the docstrings, the README and the docs are true."""

import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from helpers import pages

import ndx
import ndx.testing

if find_spec("distributed"):
    import ndx.distributed

ROOT = Path(__file__).parents[1]
PAGES = [
    "README.md",
    *sorted(str(page.relative_to(ROOT)) for page in ROOT.glob("docs/**/*.md")),
]


def documented():
    """Yield the public objects that have a docstring of their own, by name."""
    modules = [ndx, ndx.backends, ndx.memory, ndx.metrics, ndx.parallel]
    modules += [ndx.linalg, ndx.fft, ndx.random, ndx.testing]
    if find_spec("distributed"):
        modules.append(ndx.distributed)
    for module in modules:
        # By `dir`, which also has what is imported when it is first asked for.
        for name in dir(module):
            value = getattr(module, name)
            if name.startswith("_") or not callable(value):
                continue
            yield f"{module.__name__}.{name}", value
            if isinstance(value, type):
                for key, member in members(value):
                    yield f"{module.__name__}.{name}.{key}", member


def members(cls):
    """Yield the public members of a class, but those whose docstring is NumPy's."""
    owners = [each for each in cls.__mro__ if each.__module__.startswith("ndx")]
    for key, member in ((k, v) for owner in owners for k, v in vars(owner).items()):
        doc = getattr(member, "__doc__", None)
        numpys = getattr(getattr(np.random.Generator, key, None), "__doc__", None)
        if not key.startswith("_") and doc and doc != numpys:
            yield key, member


OBJECTS = dict(documented())


@pytest.mark.parametrize("name", sorted(OBJECTS))
def test_docstring_examples(name):
    example = pages.Example(name, OBJECTS[name].__doc__ or "", "")
    if example.is_session:
        pages.run([example])


@pytest.mark.parametrize("page", PAGES)
def test_page_examples(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # some write files
    pages.run(pages.examples((ROOT / page).read_text(), page))


def anchors(page):
    """Return the anchors that a forge gives the headings of a page."""
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.DOTALL | re.M)
    titles = re.findall(r"^#+ (.*)$", text, re.M)
    return {re.sub(r"[^\w\- ]", "", t.lower()).replace(" ", "-") for t in titles}


@pytest.mark.parametrize("page", [*PAGES, "CONTRIBUTING.md", "CHANGELOG.md"])
def test_links_lead_somewhere(page):
    path = ROOT / page
    for target in re.findall(r"\]\(([^)\s]+)\)", path.read_text()):
        name, _, anchor = target.partition("#")
        if "://" in target or name.startswith("api/"):  # the site's alone
            continue
        found = (path.parent / name).resolve() if name else path
        assert found.is_file(), target
        assert not anchor or anchor in anchors(found), target


@pytest.mark.parametrize("page", PAGES)
def test_tests_that_are_named_exist(page):
    named = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", (ROOT / page).read_text())
    for path, name in named:
        assert f"\ndef {name}(" in (ROOT / path).read_text(), f"{path}::{name}"


def test_each_row_about_allocators_has_a_test():
    text = (ROOT / "docs/explanation/allocators.md").read_text()
    rows = re.findall(r"^\| (?!\*\*)([^|]+?) \|", text, re.M)
    assert rows == re.findall(r"^- (.+): `tests/", text, re.M)


def test_the_program_of_which_door_runs_as_it_is(tmp_path):
    """The README and the page have the same command; it prints what the page says."""
    texts = [(ROOT / page).read_text() for page in ("README.md", "docs/which_door.md")]
    command, other = (
        re.search(r"^\$ python (-m ndx run .*)$", t, re.M)[1] for t in texts
    )
    assert command == other
    program = pages.examples(texts[1], "program.py")[0].code
    (tmp_path / "program.py").write_text(program)
    done = subprocess.run(
        [sys.executable, *command.split()],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == pages.expected(program)


def test_which_door_counts_calls_as_the_table_does():
    table = re.findall(
        r"^\| `[\w.]+` \| [\w.]+ \| (\d+) \| (\d+) \| (\d+) \|$",
        (ROOT / "docs/interop.md").read_text(),
        re.M,
    )
    calls, right, refused = (
        sum(map(int, column)) for column in zip(*table, strict=True)
    )
    assert calls == right + refused
    said = f"more than {calls // 100 * 100:,} calls of {len(table)} libraries"
    said += f", over {100 * right // calls // 10 * 10} %"
    assert said in (ROOT / "docs/which_door.md").read_text()


def exists(name):
    value, parts = ndx, name.split(".")[1:]
    for number, part in enumerate(parts, 1):
        if not hasattr(value, part):  # a module that registers with another library
            return find_spec(".".join(["ndx", *parts[:number]])) is not None
        value = getattr(value, part)
    return True


@pytest.mark.parametrize("page", PAGES)
def test_names_of_ndx_exist(page):
    found = re.findall(
        r"(?<![\w./\"'-])ndx(?:\.[A-Za-z]\w*)+", (ROOT / page).read_text()
    )
    placeholders = {"ndx.h", "ndx.numpy.f"}
    assert not {n for n in found if not exists(n)} - placeholders


@pytest.mark.parametrize("name", sorted(OBJECTS))
def test_everything_public_is_documented(name):
    assert OBJECTS[name].__doc__, f"{name} has no docstring"

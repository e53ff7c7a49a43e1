"""The examples in the docstrings, the README and the docs are true."""

import doctest
import threading
from pathlib import Path

import numpy as np
import pytest

import ndx
import ndx.distributed
import ndx.testing

ROOT = Path(__file__).parents[1]
FLAGS = (
    doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE | doctest.IGNORE_EXCEPTION_DETAIL
)
PAGES = ["README.md", *sorted(str(p.relative_to(ROOT)) for p in ROOT.glob("docs/*.md"))]


def documented():
    """Yield the public objects that have a docstring of their own, by name."""
    modules = [ndx, ndx.backends, ndx.memory, ndx.metrics, ndx.parallel]
    modules += [ndx.linalg, ndx.fft, ndx.random, ndx.testing, ndx.distributed]
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


def run(text, name):
    test = doctest.DocTestParser().get_doctest(text, {}, name, name, 0)
    runner = doctest.DocTestRunner(optionflags=FLAGS, verbose=False)
    report = []
    # In a thread of its own, and so with workspaces of its own.
    thread = threading.Thread(
        target=runner.run, args=(test,), kwargs={"out": report.append}
    )
    thread.start()
    thread.join()
    assert not runner.failures, "".join(report)


@pytest.mark.parametrize("name", sorted(OBJECTS))
def test_docstring_examples(name):
    run(OBJECTS[name].__doc__ or "", name)


@pytest.mark.parametrize("page", PAGES)
def test_page_examples(page):
    # A fence right after an example would be read as a part of its output.
    run((ROOT / page).read_text().replace("\n```", "\n\n```"), page)


@pytest.mark.parametrize("name", sorted(OBJECTS))
def test_everything_public_is_documented(name):
    assert OBJECTS[name].__doc__, f"{name} has no docstring"

"""What pyproject.toml and the files beside it say of the project agrees."""

import importlib.metadata
import re
import textwrap
from fnmatch import fnmatchcase

import pytest
from helpers.commands import finish, says, start
from helpers.project import PROJECT, PYPROJECT, ROOT

import ndx


def test_the_version_is_that_of_the_source():
    assert "version" in PROJECT["dynamic"]
    if not (ROOT / "ndx").exists():  # an installed wheel is tested
        assert importlib.metadata.version(PROJECT["name"]) == ndx.__version__
        return
    reading = pytest.importorskip("setuptools.config.pyprojecttoml")
    read = reading.read_configuration(ROOT / "pyproject.toml", expand=True)
    assert read["project"]["version"] == ndx.__version__


def test_the_version_is_written_nowhere_else():
    for name in ("pyproject.toml", "setup.py", "CITATION.cff", "docs/conf.py"):
        if (ROOT / name).exists():
            text = (ROOT / name).read_text(encoding="utf-8")
            assert not re.search(r"(?m)^\s*version\s*[:=]\s*[\"']?\d", text), name


def test_the_citation():
    yaml = pytest.importorskip("yaml")
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert citation["license"] == PROJECT["license"]
    assert citation["authors"] == PROJECT["authors"]
    assert set(citation["keywords"]) <= set(PROJECT["keywords"])
    assert {"cff-version", "message", "title"} <= set(citation)


def test_what_the_tests_of_a_wheel_read_is_in_the_sdist():
    sources = PYPROJECT["tool"]["cibuildwheel"]["test-sources"]
    assert [name for name in sources if not (ROOT / name).exists()] == []
    manifest = (ROOT / "MANIFEST.in").read_text(encoding="utf-8").split()
    by_setuptools = {
        "LICENSE",
        "MANIFEST.in",
        "README.md",
        "pyproject.toml",
        "setup.py",
    }
    assert set(sources) <= {*manifest, *by_setuptools}


def test_wheels_are_made_for_the_versions_that_are_declared():
    minor = [
        int(match[1])
        for each in PROJECT["classifiers"]
        if (match := re.fullmatch(r"Programming Language :: Python :: 3\.(\d+)", each))
    ]
    skipped = PYPROJECT["tool"]["cibuildwheel"]["skip"]

    def is_skipped(tag):
        return any(fnmatchcase(f"{tag}-manylinux_x86_64", each) for each in skipped)

    assert PROJECT["requires-python"] == f">=3.{min(minor)}"
    assert minor == list(range(min(minor), max(minor) + 1))
    assert not any(is_skipped(f"cp3{each}") for each in minor)
    # Without the GIL, too, where Python can run without it.
    assert not any(is_skipped(f"cp3{each}t") for each in minor if each >= 13)
    assert is_skipped(f"cp3{max(minor) + 1}")
    assert is_skipped(f"cp3{max(minor) + 1}t")


def test_nothing_that_is_deprecated_is_used():
    code = """
        import sys
        import ndx
        import ndx.__main__, ndx.metrics, ndx.numpy, ndx.parallel, ndx.testing
        for name in dir(ndx):
            getattr(ndx, name)
        x = ndx.numpy.asarray([[2.0, 1.0], [1.0, 2.0]])
        ndx.fuse(lambda x: x * 2 + 1)(x)
        ndx.linalg.inv(x), ndx.fft.fft(x), ndx.unique_all(x), ndx.sort(x)
        ndx.numpy.percentile(x, 50), ndx.numpy.einsum("ij->i", x)
        with ndx.workspace("here"):
            x @ x
        ndx._cli.info.report()
    """
    options = ("-W", "error", "-X", "warn_default_encoding", "-c")
    assert says(finish(start(*options, textwrap.dedent(code)))) == ""

"""The distribution is `ndxarray`, wherever something says what to install."""

import re
from pathlib import Path

from helpers.project import PROJECT, ROOT

import ndx

PACKAGE = Path(ndx.__file__).parent
PAGES = ("*.md", "docs/**/*.md", "docs/**/*.rst", "docs/**/*.ipynb", "examples/**/*.py")
EXTRAS = PROJECT["optional-dependencies"]
INSTALL = re.compile(r"pip install(?: --?[\w-]+)* ['\"]?(ndx\w*)(?:\[(\w+)\])?")


def texts():
    """Yield what readers see of the package, the examples and the pages."""
    pages = [(ROOT, pattern) for pattern in PAGES]
    for folder, pattern in [(PACKAGE, "**/*.py"), (PACKAGE, "**/*.pyi"), *pages]:
        for path in folder.glob(pattern):
            # A string may go on in the next line.
            text = re.sub(r'"\n\s*f?"', "", path.read_text(encoding="utf-8"))
            yield path, text


def test_what_is_to_be_installed_has_our_name_and_our_extras():
    count = 0
    for path, text in texts():
        for line in filter(INSTALL.search, text.splitlines()):
            for name, extra in INSTALL.findall(line):
                # The namesake is named only to say that it is another project.
                assert name == PROJECT["name"] or "another" in line, (path, line)
                assert extra in {"", *EXTRAS}, (path, line)
                count += 1
    assert count >= 10


def test_no_extra_is_of_the_namesake():
    wrong = re.compile(rf"\bndx\[({'|'.join(EXTRAS)})\]")
    assert [path for path, text in texts() if wrong.search(text)] == []


def test_the_import_is_not_the_name():
    assert (PROJECT["name"], ndx.__name__) == ("ndxarray", "ndx")

"""Free lists and caches: each is in a table of the documentation."""

import re
from pathlib import Path

import pytest
from helpers.project import ROOT

import ndx
from ndx._lib import caches

SOURCES = Path(ndx.__file__).parent
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
EMPTY = (
    r"\{\}|\[\]|set\(\)|dict\(\)|list\(\)|\[None\] \* \w+"
    r"|(\w+\.)*(Weak\w+|local|deque|defaultdict|OrderedDict)\(.*\)"
)

# What holds things between two calls: for each pattern, the group that is its name.
PATTERNS = [
    # Results of functions, decorated or called.
    r"^@(?:functools\.)?(?:lru_)?cache\b[^\n]*\n(?:@[^\n]*\n)*(?:def|cdef \w+) (\w+)",
    r"^@(?:caches\.)?cached\([^\n]*\n(?:@[^\n]*\n)*(?:def|cdef \w+) (\w+)",
    r"^(\w+) = (?:functools\.(?:lru_)?cache|lru_cache|(?:caches\.)?cached)\(",
    # Free lists.
    r"^(?:static|cdef) [\w *]*?\b((?:ndx_)?idle_\w+s)\b(?:\[\w+\])*(?: =|;|$)",
    r"^    cdef \w+ (idle_\w+s)\b",
    r"@cython\.(freelist)\(",
    # Containers of modules, which are empty at first.
    rf"^(?:cdef \w+ )?(\w+)(?:: [^=\n]+)? = (?:{EMPTY})\s*(?:#.*)?$",
]  # fmt: skip


def found_in(text):
    """Return the names of what a source holds between calls."""
    return {
        match[1] for pattern in PATTERNS for match in re.finditer(pattern, text, re.M)
    }


def in_the_tables():
    """Return the pairs (file, name) of the tables' rows."""
    section = PAGE.split("\n## Free lists and caches\n")[1].split("\n## ")[0]
    pairs = set()
    for row in re.findall(r"^\| (`.*?) \| (.*?) \|", section, re.M):
        files, names = (re.findall(r"`([\w./]+)`", cell) for cell in row)
        pairs |= {(file, name) for file in files for name in names}
    return pairs


def test_each_is_in_a_table():
    rows = in_the_tables()
    missing = []
    for path in sorted(SOURCES.rglob("*")):
        if path.suffix not in {".py", ".pyx", ".pxd", ".h"}:
            continue
        file = path.relative_to(SOURCES).as_posix()
        if path.suffix == ".pxd":
            file = file.removesuffix("pxd") + "pyx"
        found = found_in(path.read_text(encoding="utf-8"))
        missing += [(file, name) for name in found if (file, name) not in rows]
    assert not missing


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("@functools.cache\ndef f(x):\n    pass\n", "f"),
        ("@functools.lru_cache(maxsize=None)\ndef f(x):\n    pass\n", "f"),
        ("@cached('x', 3)\ndef f(x):\n    pass\n", "f"),
        ("f = functools.cache(g)\n", "f"),
        ("cdef Block *idle_things = NULL\n", "idle_things"),
        ("static int ndx_idle_things[3];\n", "ndx_idle_things"),
        ("    cdef list idle_things\n", "idle_things"),
        ("@cython.freelist(8)\ncdef class C:\n", "freelist"),
        ("cdef dict seen = {}              # by line\n", "seen"),
        ("_seen: dict[str, int] = {}\n", "_seen"),
        ("seen = weakref.WeakKeyDictionary()\n", "seen"),
        ("seen = collections.defaultdict(list)\n", "seen"),
    ],
)
def test_the_patterns_find(text, name):
    assert found_in(text) == {name}


@pytest.mark.parametrize(
    "text",
    ["def f():\n    seen = {}\n", "cdef int idle_count = 0\n", "TABLE = {1: 2}\n"],
)
def test_the_patterns_pass_over(text):
    assert not found_in(text)


def test_results_are_kept_up_to_a_bound(monkeypatch):
    monkeypatch.setattr(caches, "known", dict(caches.known))
    calls = []

    @caches.cached("doubles", 3)
    def double(x):
        calls.append(x)
        return 2 * x

    assert [double(i) for i in (1, 1, 2, 3, 4, 4)] == [2, 2, 4, 6, 8, 8]
    assert calls == [1, 2, 3, 4]
    cache = caches.known["doubles"]
    assert (cache.most, cache.read()) == (3, (3, 0))
    cache.empty()
    assert cache.read() == (0, 0)
    assert double(4) == 8
    assert calls == [1, 2, 3, 4, 4]

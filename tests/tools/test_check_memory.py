"""The checker of memory finds whatever gets round the one way to arrays' memory."""

import check_memory
import pytest


@pytest.fixture
def problems(tmp_path, monkeypatch):
    """Write a package ``pkg`` from {path: text} and return what is wrong with it."""
    nogil = {"gil:run": "the one", "files:File.flush": "a file"}
    addresses = {"gil:*": "it is for that"}
    threads = {"gil:share": "the one"}
    rules = [
        (what, pattern, allowed)
        for (what, pattern, _), allowed in zip(
            check_memory.RULES, (nogil, addresses, threads), strict=True
        )
    ]
    monkeypatch.setattr(check_memory, "RULES", rules)
    right = {
        "gil.pyx": "cdef int run(f) except -1:\n    with nogil:\n        f()\n\n\n"
        "cdef int hold(x) except -1:\n    block_pin(x.block)\n"
        "\n\ncdef void share() noexcept nogil:\n    parallel_for(n, part, arg)\n",
        "files.pyx": "cdef class File:\n    cdef int flush(self) except -1:\n"
        "        with nogil:\n            pass\n",
    }

    def write(files):
        for name, text in (right | files).items():
            path = tmp_path / "pkg" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        return check_memory.check(tmp_path / "pkg")

    return write


def test_what_is_listed_passes(problems):
    assert problems({}) == []


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("def f(x):\n    with nogil:\n        g()\n", "f"),
        ("cdef int f(a,\n  b) except -1:\n    if a:\n        with nogil: g()\n", "f"),
        ("cdef class A:\n    def f(self):\n        with lock, nogil:\n", "A.f"),
        ("with nogil:\n    pass\n", "the module"),
        ("cdef inline char *f(BaseArray x) noexcept:\n    return data_of(x)\n", "f"),
        ("cdef f(x):\n    y = (<B>x).block.ptr + 1\n", "f"),
        ("cdef f(x):\n    x.block.pins += 1\n", "f"),
        ("cdef f(x):\n    return [transient_view(y) for y in x]\n", "f"),
        ("cdef object f(x): return transient_view(x)\n", "f"),
        ("def f(x):\n    pass\n\n\ndef g(x):\n    block_unpin(x.block)\n", "g"),
        ("cdef void f() noexcept nogil:\n    parallel_for(n, part, arg)\n", "f"),
    ],
)
def test_what_is_not_listed_is_found(problems, text, name):
    (found,) = problems({"other.pyx": text})
    assert found.startswith("pkg/other.pyx:")
    assert f": {name} " in found


@pytest.mark.parametrize(
    "text",
    [
        "cdef char *data_of(BaseArray x) noexcept\n",
        "from a cimport data_of, transient_view\n",
        "cdef void f(char **data) noexcept nogil:\n    g(data)\n",
        '"""Use `with nogil`, and data_of(x)."""\n# with nogil: data_of(x)\n',
        "cdef f():\n    with gil:\n        pass\n",
    ],
)
def test_what_is_harmless(problems, text):
    assert problems({"other.pxd": text}) == []


def test_a_file_of_one_name_in_a_folder_is_not_the_listed_one(problems):
    (found,) = problems({"sub/gil.pyx": "cdef run(f):\n    with nogil:\n        f()\n"})
    assert found.startswith("pkg/sub/gil.pyx:2: run releases the GIL")


def test_headers_release_no_gil(problems):
    text = "/* Py_BEGIN_ALLOW_THREADS */\nint x;\n"
    assert problems({"a.h": text}) == []
    text += "#define FREE PyEval_SaveThread()\n"
    assert problems({"a.h": text}) == ["pkg/a.h:3: a C file releases the GIL"]


def test_a_reason_that_nothing_needs(problems):
    (found,) = problems({"files.pyx": ""})
    assert "nothing needs 'files:File.flush'" in found

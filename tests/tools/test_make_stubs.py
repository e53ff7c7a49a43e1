"""Stubs say what their sources say."""

import ast

import make_stubs
import pytest
from stubs import from_cython, from_numpy

SOURCE = '''
"""Shapes."""

cimport cython

__all__ = ["Shape", "area"]

def area(x: Shape, /, int times=1, *, unit: Literal["m", "ft"] = "m") -> float:
    """Return the area,

    in a unit.
    """
    return 0.0

def helper(x):
    return x

@cython.final
cdef class Shape(Base):
    """A shape."""

    cdef readonly size_t sides
    cdef public list points          # type: list[float]
    cdef int hidden

    def __cinit__(self, sides: int) -> None:
        self.sides = sides

    @property
    def name(self) -> str:
        """Its name."""
        return ""

    @name.setter
    def name(self, value: str) -> None:
        pass

    def __richcmp__(self, other: Shape, int op) -> bool:
        return op == 2

    def __repr__(self):
        return ""

    cdef int secret(self) except -1:
        return 0
'''
STUB = '''
"""Shapes."""
__all__ = ['Shape', 'area']

def area(x: Shape, /, times: int=1, *, unit: Literal['m', 'ft']='m') -> float:
    """Return the area,

    in a unit.
    """

@final
class Shape(Base):
    """A shape."""

    @property
    def sides(self) -> int:
        ...
    points: list[float]

    def __init__(self, sides: int) -> None:
        ...

    @property
    def name(self) -> str:
        """Its name."""

    @name.setter
    def name(self, value: str) -> None:
        ...
'''


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "shapes.pyx"
    path.write_text(SOURCE.lstrip())
    return path


def test_signatures_attributes_and_docstrings_are_those_of_the_source(source):
    body = from_cython.module(source)
    found = ast.unparse(ast.fix_missing_locations(ast.Module(body, [])))
    operators = [f"def __{name}__(self, other: Shape) -> bool:" for name in
                 ("lt", "le", "gt", "ge", "eq", "ne")]  # fmt: skip
    assert found.startswith(STUB.strip())
    rest = found[len(STUB.strip()) :]
    assert [line.strip() for line in rest.splitlines() if "def" in line] == operators


def test_names_are_imported_from_where_they_are_known(source):
    source = make_stubs.ROOT / "ndx" / source.name
    body = [*from_cython.documented("Doc."), from_cython.statement("x: Array")]
    known = {"Array": "from ndx._typing import Array"}
    text = make_stubs.text_of(source, body, known)
    assert text.startswith(make_stubs.MARK)
    assert "from ndx._typing import Array\nx: Array\n" in text


def test_options_are_those_of_each_kind_of_backend():
    function = from_cython.statement(
        "def get(backend: str, **options: BackendOptions) -> Backend: ..."
    )
    text = "class {}:\n def __init__(self, *, {}: int = 0, **given: Pool): ..."
    kinds = {
        "host": from_cython.statement(text.format("Host", "limit")),
        "mmap": from_cython.statement(text.format("Mmap", "path")),
        make_stubs.ANY_OTHER: from_cython.statement(text.format("Any", "more")),
    }
    made = make_stubs.overloads(function, kinds)
    lines = [ast.unparse(ast.fix_missing_locations(each)) for each in made]
    assert [line.splitlines()[1] for line in lines] == [
        "def get(backend: Literal['host'], *, limit: int=0, **given: Pool) -> Host:",
        "def get(backend: Literal['mmap'], *, path: int=0, **given: Pool) -> Mmap:",
        "def get(backend: str, *, more: int=0, **given: Pool) -> Backend:",
    ]


@pytest.mark.parametrize(
    ("numpys", "ours"),
    [
        ("NDArray[Any]", "NDArray"),
        ("tuple[_Array, _Array]", "tuple[NDArray, ...]"),
        ("tuple[*tuple[_Array, ...]]", "Any"),
        ("None | str", "Any"),
        ("bool", "builtins.bool"),
    ],
)
def test_results_of_numpys_functions(numpys, ours):
    assert from_numpy.kind_of(numpys) == ours

"""Builtin functions that convert their first argument."""

from helpers.commands import run_python

# In a process of its own: what converts does so for ever.
PROGRAM = """
from ndx._lib.first_arguments import convert_first

class Number:
    def __init__(self, value):
        self.value = value

def converted(number):
    if number.value is None:
        raise LookupError("no value")
    return number.value

for refused in (int, converted, isinstance, [].append.__call__):
    try:
        convert_first(refused, "x", Number, converted)
    except TypeError as error:
        print("refused")
before = repr(hash), hash.__name__, hash.__doc__, hash.__self__
early = hash
convert_first(hash, "x", Number, converted)
convert_first(hash, "x", Number, None)
assert before == (repr(hash), hash.__name__, hash.__doc__, hash.__self__)
print(hash(Number(7)), early(Number(8)), hash(9))
try:
    hash(Number(None))
except LookupError as error:
    print(error)
import operator
convert_first(
    operator.index, "unused", Number,
    lambda found: found.value if type(found) is Number else len(found), nested=True,
)
print(operator.index(Number(1)), operator.index([5, ([Number(2)], 3)]))
deep = []
deep.append(deep)
for refused in ([5, (3,)], deep):
    try:
        operator.index(refused)
    except TypeError as error:
        print("no index")
from _functools import reduce
import _csv
convert_first(_csv.writer, "unused", Number, converted)
import io
file = io.StringIO()
_csv.writer(Number(file), delimiter=";").writerow([1, 2])
_csv.writer(file).writerow([3, 4])
print(file.getvalue().split())
"""


def test_a_function_converts_its_first_argument():
    assert run_python(PROGRAM).splitlines() == [
        *["refused"] * 4, "7 8 9", "no value", "1 2", *["no index"] * 2,
        "['1;2', '3,4']",
    ]  # fmt: skip

"""`make thorough` draws as often as it says, in every property test."""

import re
from pathlib import Path

TESTS = Path(__file__).parents[1]


def test_no_test_says_a_number_of_its_own():
    own = re.compile(r"max_examples\s*=")
    for path in TESTS.rglob("*.py"):
        if path.name in ("conftest.py", "examples.py", "test_thorough.py"):
            continue
        assert not own.search(path.read_text()), path

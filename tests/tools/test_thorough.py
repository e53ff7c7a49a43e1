"""`make thorough` draws as often as it says, in every property test."""

import re
from pathlib import Path

from helpers.examples import USUAL, examples
from hypothesis import settings

TESTS = Path(__file__).parents[1]


def test_tests_draw_as_often_as_the_profile_says():
    profile, before = settings.default.max_examples, settings.get_current_profile_name()
    assert examples(25).max_examples == (25 if profile <= USUAL else profile)
    try:
        settings.register_profile("more", settings.default, max_examples=1234)
        settings.load_profile("more")
        assert examples(25).max_examples == 1234
        assert examples(5000).max_examples == 5000
        assert examples(25, deadline=7).deadline.microseconds == 7000
    finally:
        settings.load_profile(before)


def test_no_test_says_a_number_of_its_own():
    own = re.compile(r"max_examples\s*=")
    for path in TESTS.rglob("*.py"):
        if path.name in ("conftest.py", "examples.py", "test_thorough.py"):
            continue
        assert not own.search(path.read_text()), path

"""How often property tests draw."""

from hypothesis import settings

# What a test draws that says nothing of it (tests/conftest.py); the most of others.
USUAL = 30
MOST = 60


def examples(number, each=1, **options):
    """Return settings of a test that draws `number` times, by day at most `MOST`.

    A profile that looks longer (`--hypothesis-profile=thorough`) says how often it
    draws at least: a draw that has several calls, `each`, counts as so many.
    """
    profile = settings.default.max_examples
    deep = profile > USUAL
    number = max(number, -(-profile // each)) if deep else min(number, MOST)
    return settings(max_examples=number, **options)

"""How often property tests draw."""

from hypothesis import settings

# What a test draws that says nothing of it (tests/conftest.py).
USUAL = 60


def examples(number, each=1, **options):
    """Return settings of a test that draws `number` times, and more where all do.

    A profile that looks longer (`--hypothesis-profile=thorough`) says how often then: a
    draw that has several calls, `each`, counts as so many.
    """
    profile = settings.default.max_examples
    if profile > USUAL:
        number = max(number, -(-profile // each))
    return settings(max_examples=number, **options)

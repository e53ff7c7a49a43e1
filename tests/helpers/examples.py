"""How often property tests draw."""

from hypothesis import settings

# What a test draws that says nothing of it (tests/conftest.py).
USUAL = 60


def examples(number, **options):
    """Return settings of a test that draws `number` times, and more where all do.

    A profile that looks longer (`--hypothesis-profile=thorough`) says how often then.
    """
    profile = settings.default.max_examples
    return settings(
        max_examples=number if profile <= USUAL else max(number, profile), **options
    )

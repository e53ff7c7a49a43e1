"""Which tests a sanitizer's build leaves out, and why."""

import os

import pytest

PRELOADED = os.environ.get("LD_PRELOAD", "")

# It keeps pages and address space of its own, and marks what is reserved in its shadow.
not_under_asan = pytest.mark.skipif(
    "asan" in PRELOADED, reason="counts what AddressSanitizer adds"
)
not_under_sanitizers = pytest.mark.skipif(
    "asan" in PRELOADED or "tsan" in PRELOADED,
    reason="sanitizers handle these signals themselves",
)

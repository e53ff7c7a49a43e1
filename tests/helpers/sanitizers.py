"""Which tests a sanitizer's build leaves out, and why."""

import os

import pytest

PRELOADED = os.environ.get("LD_PRELOAD", "")
SANITIZED = "asan" in PRELOADED or "tsan" in PRELOADED

# They keep pages and address space of their own, and mark what is reserved in a shadow.
counts_pages = pytest.mark.skipif(SANITIZED, reason="counts what sanitizers add")
handles_signals = pytest.mark.skipif(
    SANITIZED, reason="sanitizers handle these signals themselves"
)

"""What tests of workers share."""

import pytest
from helpers.parallel import nothing_left


@pytest.fixture
def nothing_left_behind():
    """Fail if a test leaves threads, processes, workspaces or files."""
    with nothing_left():
        yield

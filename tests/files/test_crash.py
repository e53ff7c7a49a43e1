"""``kill -9`` at random moments: each file is what docs/files.md promises.

``make crash`` does it 200 times for each.
"""

import json
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

import ndx

TESTS = Path(__file__).parents[1]
PATHS = os.pathsep.join([str(Path(ndx.__file__).parents[1]), str(TESTS)])
TIMES = int(os.environ.get("NDX_CRASHES", "10"))


@pytest.mark.timeout(60 + 5 * TIMES)
@pytest.mark.parametrize("kind", ["save", "flush", "commit", "workspace"])
def test_kill_at_random_moments(tmp_path, kind):
    seed = os.environ.get("NDX_CRASH_SEED") or str(random.SystemRandom().random())
    done = subprocess.run(
        [sys.executable, "-m", "helpers.crash", kind, str(TIMES), tmp_path, seed],
        env=os.environ | {"PYTHONPATH": PATHS},
        capture_output=True,
        text=True,
        timeout=50 + 5 * TIMES,
    )
    assert done.returncode == 0, f"NDX_CRASH_SEED={seed}\n{done.stderr}"
    summary = json.loads(done.stdout)
    print(f"{kind}: {summary}")
    assert summary["kills"] == TIMES
    # The writers got somewhere.
    assert summary["numbers written"] >= TIMES

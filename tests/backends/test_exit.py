"""Python backends whose arrays are left when the interpreter exits."""

import subprocess
import sys

import pytest

PROGRAM = """
import gc, logging, time
import ndx

class Backend(ndx.backends.PythonBackend):
    def acquire(self, nbytes):
        return bytearray(nbytes)

    def discard(self, buffer):
        time.time()
        logging.debug("discarded")
        gc.collect()

with ndx.use(Backend()) as backend:
    kept = ndx.ones(3)
    loop = [ndx.ones(3)]
    loop.append(loop)
step = ndx.workspace("step", backend=backend{policies})
for _ in range(3):
    with step:
        x = ndx.ones(3)
backend.arrays = [kept, step]
step.__enter__()
"""


@pytest.mark.parametrize("policies", ["", ", reset='ring'", ", learn='liveness'"])
def test_what_is_left_at_exit(policies):
    done = subprocess.run(
        [
            sys.executable,
            "-X",
            "faulthandler",
            "-c",
            PROGRAM.replace("{policies}", policies),
        ],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.returncode, done.stderr) == (0, "")

"""Kill a process at random moments while it writes a file, and look what is left.

Run as a program: ``crash.py KIND TIMES FOLDER SEED``; prints a summary as JSON, or
fails at the first file that is not as promised. Each round a child writes 0, 1, 2, ...
to all elements of an array, and says each number when the call has returned that
makes it last.
"""

import json
import os
import random
import re
import signal
import sys
import time

import numpy as np

import ndx

COUNT = 1 << 18  # elements: 2 MiB


def save(path, value, x):
    ndx.save(path, ndx.full(COUNT, float(value)))


def flush(path, value, x):
    x[...] = float(value)
    x.flush()


def commit(path, value, x):
    x[...] = float(value)
    x.commit()


def workspace(path, value, scope):
    with scope:
        ndx.empty(COUNT)[...] = float(value)
    scope.flush()


KINDS = {"save": save, "flush": flush, "commit": commit, "workspace": workspace}


def opened(kind, path):
    """Return what the writer of a kind writes through."""
    if kind == "workspace":
        return ndx.workspace(path=path, size=8 * COUNT)
    return None if kind == "save" else ndx.open(path, "r+" if kind == "flush" else "c")


def write_on(kind, path, pipe):
    x = opened(kind, path)
    value = 0
    while True:
        KINDS[kind](path, value, x)
        os.write(pipe, f"{value}\n".encode())
        value += 1


def killed(kind, path, seconds):
    """Let a child write for some time after its first number; return its last one."""
    read, write = os.pipe()
    child = os.fork()
    if not child:
        try:
            write_on(kind, path, write)
        except BaseException as error:
            os.write(2, f"{error!r}\n".encode())
        finally:
            os._exit(1)
    os.close(write)
    said = os.read(read, 1 << 16)
    time.sleep(seconds)
    os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status), "the writer failed"
    while more := os.read(read, 1 << 16):
        said += more
    os.close(read)
    return int(said.split()[-1])


def check(kind, path, last):
    """Check what is left after a writer that said `last`; return what it had begun."""
    if kind == "workspace":
        found = np.fromfile(path)
    else:
        # NumPy, not ndx, says whether it is whole.
        found = np.load(path)
    assert found.shape == (COUNT,), found.shape
    low, high = found.min(), found.max()
    assert last <= low, f"{low} is there, but {last} was said to be"
    assert high <= last + 1, f"{high} is there, after {last}"
    if kind in ("save", "commit"):
        assert low == high, f"a part is {low}, another {high}"
    return bool(high > last), bool(low != high)


def main(kind, times, folder, seed):
    path = os.path.join(folder, "x.bin" if kind == "workspace" else "x.npy")
    rng = random.Random(seed)
    numbers = begun = mixed = left = 0
    for _ in range(times):
        # What was there before must not look like any of the numbers.
        if kind == "workspace":
            np.full(COUNT, -1.0).tofile(path)
        else:
            np.save(path, np.full(COUNT, -1.0))
        last = killed(kind, path, rng.uniform(0, 0.03))
        is_begun, is_mixed = check(kind, path, last)
        numbers += last + 1
        begun += is_begun
        mixed += is_mixed
        for name in set(os.listdir(folder)) - {os.path.basename(path)}:
            assert re.fullmatch(r"\.ndx-[0-9a-f]{16}\.tmp", name), name
            os.unlink(os.path.join(folder, name))
            left += 1
    return {
        "kills": times,
        "numbers written": numbers,
        "newer than said": begun,
        "of two numbers": mixed,
        "temporary files left": left,
    }


if __name__ == "__main__":
    kind, times, folder, seed = sys.argv[1:]
    print(json.dumps(main(kind, int(times), folder, seed)))

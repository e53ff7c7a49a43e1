"""Programs: made of a seed, run, and replayed."""

import contextlib
import copy
import functools
import gc
import os
import pickle
import random
import shutil
import tempfile
import traceback

import numpy as np
from ndx._blocks.block import set_evicted_from

import ndx
from fuzzing.escapes import Escapes
from fuzzing.faces import Faces
from fuzzing.files import Files
from fuzzing.machine import NAMES, Failure, Machine, Skip
from fuzzing.operations import Operations
from fuzzing.scopes import Scopes

LENGTH = 160
LARGE = 24  # one of so many programs has large arrays, for passes

WEIGHTS = {
    "zeros": 3, "full": 2, "make": 8, "list": 2, "like": 3, "empty": 3,
    "slice": 9, "transpose": 4, "reshape": 5, "row": 2, "same": 1,
    "unary": 5, "binary": 10, "divide": 2, "out": 5, "in_place": 7, "where": 3,
    "set": 8, "set_mask": 2, "mask": 3, "take": 3, "sort": 3, "reduce": 6,
    "cumulate": 2, "product": 5, "matmul_out": 1, "join": 3, "shuffle": 2, "cast": 3,
    "enter": 9, "exit": 9, "borrow": 1, "outside": 1, "use": 1, "passes": 1,
    "destroy": 1, "initialize": 1,
    "drop": 6, "cycle": 1, "collect": 1, "leave": 4, "copy": 1, "close": 1,
    "export": 5, "drop_export": 4, "write_export": 3, "import": 2, "foreign": 1,
    "mixed": 2,
    "fused": 4, "fused_in_place": 3, "ufunc": 3, "ufunc_where": 2, "ufunc_at": 1,
    "method": 3, "method_view": 2, "method_in_place": 2,
    "save": 1, "load": 1, "open": 2, "flush": 1, "commit": 1,
}  # fmt: skip
# In programs with large arrays.
LARGE_WEIGHTS = {"passes": 5, "open": 6, "save": 3, "commit": 2, "use": 3}
OPS = {
    False: (list(WEIGHTS), list(WEIGHTS.values())),
    True: (list(WEIGHTS), [LARGE_WEIGHTS.get(name, n) for name, n in WEIGHTS.items()]),
}


class Player(Operations, Faces, Scopes, Escapes, Files, Machine):
    """A machine that has all steps."""


def make_program(seed, number):
    """Return a program: its seed, and its steps, any of which may be left out."""
    rng = random.Random(f"{seed}:{number}")
    large = rng.randrange(LARGE) == 0
    names, weights = OPS[large]
    steps = [
        [op, int(rng.random() * NAMES), int(rng.random() * 24), int(rng.random() * 24),
         rng.getrandbits(60)]
        for op in rng.choices(names, weights, k=LENGTH)
    ]  # fmt: skip
    return {"seed": seed, "number": number, "large": large, "steps": steps}


class Report(Exception):
    """A program that failed, and how."""

    def __init__(self, step, op, message):
        super().__init__(step, op, message)
        self.step = step
        self.op = op
        self.message = message


def run_program(
    program, folder, shared=(), every=4, lines=None, progress=None, label="", alone=True
):
    """Run a program; raise `Report` if ndx does not behave as the model.

    Parameters
    ----------
    program : dict
        From `make_program`.
    folder : str
        A folder for its files; empty again afterwards.
    shared : list of (array, ndarray)
        Arrays that all threads read.
    every : int
        Steps between comparisons of all arrays.
    lines : Script, optional
        Takes the program as a script.
    progress : callable, optional
        Called with the number of each step.
    label : str
        Part of its workspaces' names.
    alone : bool
        Whether no other thread makes arrays: then what is alive is compared, too.
    """
    player = Player(folder, shared, every, lines)
    player.is_alone = alone
    player.xs.update(copy=copy, pickle=pickle)
    player.ms.update(copy=copy, pickle=pickle)
    player.large = program["large"]
    player.start_faces()
    player.start_scopes(f"fuzz{label}")
    player.start_files()
    op, number = "start", 0
    try:
        for number, step in enumerate(program["steps"]):
            op = step[0]
            if progress is not None:
                progress(number)
            player.step(number, step)
        op = "finish"
        player.finish_scopes()
        player.finish()
        with contextlib.suppress(Skip):
            player.close_scopes()
    except Exception as error:
        if isinstance(error, Failure):
            message = str(error)
        else:
            message = "".join(traceback.format_exception(error))
        raise Report(number, op, message) from None
    finally:
        abandon(player)
        for name in os.listdir(folder):
            path = os.path.join(folder, name)
            (shutil.rmtree if os.path.isdir(path) else os.unlink)(path)


# The variable of the environment that has the folder in memory of a child's parent.
OF_PARENT = "NDX_FUZZ_FOLDER"


# The variable by which the host's arrays may leave for another backend.
EVICTS = "NDX_HOST_EVICT"


@functools.cache
def let_arrays_move():
    """Where `EVICTS` is set, let all arrays leave that can, at each allocation."""
    if EVICTS not in os.environ:
        return
    backend = ndx.backends.get("host")
    set_evicted_from(1)

    def move(action, _nbytes, _address):
        if action == "allocate":
            backend._evict(1 << 60)

    backend.add_hook(move)


def abandon(player):
    """Leave the scopes that a failure left open, as far as possible."""
    while player.stack:
        _, name, _ = player.stack.pop()
        try:
            player.xs[name].__exit__(None, None, None)
        except Exception:
            break
    player.xs.clear()
    player.ms.clear()
    player.blocks.clear()


def temporary_folder():
    """Return a folder in memory, if there is one, to avoid waits for a disk.

    Those of a child are in its parent's, which removes them if the child crashes.
    """
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    memory = os.environ.get(OF_PARENT, memory)
    return tempfile.TemporaryDirectory(prefix="ndx-fuzz-", dir=memory)


def live_ranges():
    gc.collect()
    return ndx.memory.stats("host")["allocated_count"]


def make_shared(folder):
    """Return arrays that all threads read: on the host, in a file, in a workspace."""
    values = [
        np.arange(12.0).reshape(3, 4) % 5,
        np.arange(40.0) % 7,
        np.arange(16.0).reshape(4, 4) % 3 - 1,
        np.arange(40_000.0) % 11,
    ]
    path = os.path.join(folder, "shared.npy")
    ndx.save(path, ndx.asarray(values[1]))
    with ndx.use("mmap", directory=folder):
        large = ndx.asarray(values[3], copy=True)
    kept = ndx.workspace("shared", size="64KiB")
    kept.__enter__()
    arrays = [
        ndx.asarray(values[0], copy=True),
        ndx.open(path, "r"),
        ndx.asarray(values[2], copy=True),
        large,
    ]
    for value in values:
        value.flags.writeable = False
    return list(zip(arrays, values, strict=True))

"""Random programs that failed once, and a few new ones: see `tools/fuzz.py`."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from fuzzing.programs import LENGTH, OPS, WEIGHTS, Player, make_program
from helpers.commands import PACKAGE

TESTS = Path(__file__).parents[1]
FUZZ = TESTS.parent / "tools" / "fuzz.py"
CORPUS = sorted((TESTS / "fuzz" / "corpus").glob("*.json"))


def run_fuzz(*arguments, program=None):
    """Run the fuzzer, or a program that uses it; return its exit status and output."""
    what = [FUZZ] if program is None else ["-c", program]
    done = subprocess.run(
        [sys.executable, *map(str, [*what, *arguments])],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([PACKAGE, str(FUZZ.parent)])},
        capture_output=True,
        text=True,
        timeout=280,
    )
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize("path", CORPUS, ids=lambda path: path.stem)
def test_a_program_that_failed_once_runs_as_it_must(path):
    status, said = run_fuzz("--replay", path)
    assert status == 0, said


@pytest.mark.threads
@pytest.mark.parametrize("threads", [1, 3])
def test_new_programs_run_as_they_must(threads, tmp_path):
    """The same each time; `make fuzz` makes others."""
    options = ["--steps", 4800, "--threads", threads, "--seed", threads]
    status, said = run_fuzz(*options, "--corpus", tmp_path)
    assert status == 0, said


def test_programs_are_made_of_their_seed_alone():
    assert make_program(1, 2) == make_program(1, 2)
    assert make_program(1, 2) != make_program(1, 3) != make_program(2, 3)
    assert json.loads(json.dumps(make_program(1, 2))) == make_program(1, 2)
    assert len(make_program(1, 2)["steps"]) == LENGTH


def test_every_step_has_a_weight():
    steps = {name[3:] for name in dir(Player) if name.startswith("do_")}
    assert steps == set(WEIGHTS)
    assert all(set(names) == steps for names, _ in OPS.values())


PLANTED = """
import os, sys, signal
import numpy as np
import fuzz
from fuzzing.programs import make_program
from fuzzing.shrinking import shrink

kind = sys.argv[1]
def squared(self, dest, first, second, draw):
    name = self.find(first, lambda m: m.dtype == np.float64 and m.size > 3)
    if kind == "crash":
        os.kill(os.getpid(), signal.SIGABRT)
    if kind == "value":
        self.fresh(dest, f"ndx.square({name}) + 1.0", [name], draw, model=name)
    if kind == "memory":
        # What ndx writes and the model knows nothing of.
        np.asarray(self.xs[self.find(dest, lambda m: m.size, shared=False)])[...] = 77
fuzz.run_program.__globals__["Player"].do_unary = squared
for number in range(20):
    program, outcome = shrink(fuzz.play, make_program(7, number), 1)
    if outcome is not None:
        print(len(program["steps"]), [step[0] for step in program["steps"]], outcome[0])
        break
"""


@pytest.mark.nightly
@pytest.mark.parametrize("kind", ["crash", "value", "memory"])
def test_what_is_wrong_is_found_and_shrunk(kind):
    status, said = run_fuzz(kind, program=PLANTED)
    assert status == 0, said
    length, *words = said.split()
    assert int(length) <= 3, said
    assert "'unary'" in said
    assert ("SIGABRT" in words[-1]) == (kind == "crash")

"""Run random programs on ndx and on a model over NumPy; shrink failing programs.

Usage: ``python tools/fuzz.py --steps 1000000 --threads 3 --seed 1``

Each thread makes programs of its own (of 160 steps: views, operations, products, files,
workspaces, exports, ...) and compares all arrays after every few steps with NumPy's.
They run in a child process, so that a crash is a finding like any other. A failing
program is run again alone, in processes of its own, with fewer and fewer steps. The
least program is printed as a script and kept in a corpus, which the tests replay.

With ``--evict`` all arrays that can move do so at each allocation of the host's memory:
to a file, and back at their next use.

With ``--share`` the threads share arrays, scopes, backends and recordings instead
(`fuzzing.sharing`): what happens then depends on time, and is not run again.
"""

import argparse
import gc
import json
import mmap
import os
import secrets
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from pathlib import Path

import numpy as np
from fuzzing.programs import (
    EVICTS,
    LENGTH,
    OF_PARENT,
    Report,
    let_arrays_move,
    live_ranges,
    make_program,
    make_shared,
    run_program,
    temporary_folder,
)
from fuzzing.sharing import ROUND, Player, Shared
from fuzzing.shrinking import outcome_of, read_script, shrink

CORPUS = Path(__file__).parents[1] / "tests" / "fuzz" / "corpus"
EVERY = 4  # steps between comparisons
LEAKS = 100  # programs between two checks for leaks

# A child's report for each thread: the program, the step, and the steps so far.
PLACE = struct.Struct("qqq")


def parse(arguments):
    """Return the options of the command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--steps", type=int, default=100_000, help="in all threads")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--share", action="store_true", help="what the threads use")
    parser.add_argument("--evict", action="store_true", help="move arrays all the time")
    parser.add_argument("--seed", type=int, help="default: a new one, which is printed")
    parser.add_argument("--corpus", type=Path, default=CORPUS, help="where findings go")
    parser.add_argument("--findings", type=int, default=1, help="stop after so many")
    parser.add_argument("--program", type=int, help="run only the one of this number")
    parser.add_argument("--replay", type=Path, help="run a file of the corpus")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    parser.add_argument("--first", type=int, default=0, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.steps < 1 or options.threads < 1 or options.findings < 1:
        parser.error("--steps, --threads and --findings count from 1")
    return options


# ------------------------------------------------------------------ in the child


class Worker(threading.Thread):
    """A thread that runs programs until there are enough.

    Parameters
    ----------
    index : int
        Its number; it runs the programs with this remainder.
    options : Namespace
        The command line's.
    places : mmap
        Receives its reports of progress.
    shared : list or Shared
        Arrays that all threads read, or all that they share.
    stop : threading.Event
        Set when any thread has found something.
    """

    def __init__(self, index, options, places, shared, stop):
        super().__init__(name=f"fuzz-{index}")
        self.index = index
        self.options = options
        # A view of its own: without the GIL, threads must not count one's exports.
        self.place = memoryview(places)[index * PLACE.size :][: PLACE.size]
        self.shared = shared
        self.stop = stop
        self.error = None

    def run(self):
        """Run programs; record a failure."""
        try:
            with np.errstate(all="ignore"), temporary_folder() as folder:
                if self.options.share:
                    self.play_shared()
                else:
                    self.play(folder)
        except BaseException:
            self.error = (-1, "start", traceback.format_exc())
            self.stop.set()

    def play_shared(self):
        """Run rounds of steps on what all threads share."""
        options = self.options
        player = Player(self.shared, options.seed, self.index)
        try:
            player.play(
                -(-options.steps // ROUND // options.threads),
                lambda *done: PLACE.pack_into(self.place, 0, *done),
                self.stop.is_set,
            )
        except Report as report:
            self.error = (-1, report.op, report.message)
            self.stop.set()

    def play(self, folder):
        """Run programs until there are enough, or another thread has failed."""
        options = self.options
        count = -(-options.steps // LENGTH // options.threads)
        ranges = None
        for turn in range(options.first, options.first + count):
            if self.stop.is_set():
                return
            number = turn * options.threads + self.index
            done = (turn - options.first) * LENGTH

            def progress(step, number=number, done=done):
                PLACE.pack_into(self.place, 0, number, step, done + step)

            program = make_program(options.seed, number)
            try:
                run_program(
                    program,
                    folder,
                    self.shared,
                    every=EVERY,
                    progress=progress,
                    label=f"-{self.index}",
                    alone=options.threads == 1,
                )
            except Report as report:
                self.error = (number, report.op, report.message)
                self.stop.set()
                return
            if options.threads == 1 and turn % LEAKS == LEAKS - 1:
                before, ranges = ranges, live_ranges()
                if before is not None and ranges > before:
                    message = f"{ranges} ranges are allocated, {before} were before"
                    self.error = (number, "leak", message)
                    self.stop.set()
                    return
        PLACE.pack_into(self.place, 0, -1, 0, count * LENGTH)


def run_child(options):
    """Run programs in threads; write a failure to a file."""
    let_arrays_move()
    sys.setswitchinterval(1e-4)
    # Collections are faster without the existing objects.
    gc.freeze()
    stop = threading.Event()
    with (
        temporary_folder() as folder,
        open(os.path.join(options.child, "places"), "r+b") as file,
        mmap.mmap(file.fileno(), 0) as places,
    ):
        shared = Shared(options.threads) if options.share else make_shared(folder)
        workers = [
            Worker(index, options, places, shared, stop)
            for index in range(options.threads)
        ]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
            worker.place.release()
    errors = [worker.error for worker in workers if worker.error is not None]
    if errors:
        Path(options.child, "errors").write_text(json.dumps(errors))
        return 3
    return 0


# ----------------------------------------------------------------- in the parent


def run_parent(options, bar):
    """Run children until there are enough steps or findings; return the findings."""
    findings = []
    first = 0
    total = -(-options.steps // LENGTH // options.threads)
    done = 0
    while first < total and len(findings) < options.findings:
        with tempfile.TemporaryDirectory() as folder, temporary_folder() as memory:
            Path(folder, "places").write_bytes(bytes(PLACE.size * options.threads))
            left = (total - first) * LENGTH * options.threads
            process = subprocess.Popen(
                [
                    *(sys.executable, "-X", "faulthandler", __file__),
                    *("--child", folder, "--seed", str(options.seed)),
                    *("--threads", str(options.threads)),
                    *("--steps", str(left), "--first", str(first)),
                    *["--share"] * options.share,
                    *["--evict"] * options.evict,
                ],
                env={**os.environ, "NDX_MMAP_DIRECTORY": folder, OF_PARENT: memory},
                stderr=subprocess.PIPE,
            )
            said = []
            reader = threading.Thread(target=lambda: said.append(process.stderr.read()))  # noqa: B023
            reader.start()
            while process.poll() is None:
                time.sleep(0.1)
                bar.update(done + steps_of(folder, options.threads) - bar.n)
            reader.join()
            places = read_places(folder, options.threads)
            done += sum(place[2] for place in places)
            bar.update(done - bar.n)
            if process.returncode == 0:
                break
            findings.append(find(options, folder, process.returncode, places, said[0]))
            first = max(place[0] for place in places) // options.threads + 1
    return findings


def read_places(folder, threads):
    """Return the reports of a child's threads."""
    return [*PLACE.iter_unpack(Path(folder, "places").read_bytes())][:threads]


def steps_of(folder, threads):
    """Return the number of steps that a child has run."""
    return sum(place[2] for place in read_places(folder, threads))


def find(options, folder, code, places, said):
    """Return a finding: the least program, or the programs that fail only together."""
    path = Path(folder, "errors")
    text = said.decode(errors="replace")[-6000:]
    if path.exists():
        errors = json.loads(path.read_text())
        numbers = [number for number, _, _ in errors]
        message = "\n".join(f"program {n}, {op}: {what}" for n, op, what in errors)
    else:
        numbers = [place[0] for place in places]
        name = signal.Signals(-code).name if code < 0 else f"exit status {code}"
        message = f"{name}\n{text}"
    print(f"\nseed {options.seed}, programs {numbers}: {message}", flush=True)
    if options.share:
        return message
    for number in numbers:
        if number < 0:
            continue
        program = make_program(options.seed, number)
        for every in (1, EVERY):
            if outcome_of(play, program, every) is not None:
                return finish(options, program, every)
    print("Alone these programs do not fail: run the same command again.")
    return {"seed": options.seed, "programs": numbers, "threads": options.threads}


def finish(options, program, every):
    """Shrink a program; print and keep it."""
    print("shrinking", flush=True)
    program, outcome = shrink(play, program, every)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "script")
        outcome_of(play, program, every, script=path)
        script = read_script(path, "/tmp/ndx-fuzz")
    program = {**program, "every": every, "outcome": list(outcome)}
    options.corpus.mkdir(parents=True, exist_ok=True)
    kept = options.corpus / f"{program['seed']}-{program['number']}.json"
    kept.write_text(json.dumps(program, indent=1) + "\n")
    print(f"\n{script}# {outcome[0]}: {outcome[1]}\n\nkept as {kept}", flush=True)
    return program


def play(program, folder, **options):
    """Run a program in a thread, beside shared arrays; return its `Report` or None."""
    let_arrays_move()
    found = []

    def run(shared):
        with np.errstate(all="ignore"):
            try:
                run_program(program, folder, shared, **options)
            except Report as report:
                found.append(report)

    with temporary_folder() as other:
        thread = threading.Thread(target=run, args=(make_shared(other),))
        thread.start()
        thread.join()
    return found[0] if found else None


def main(arguments=None):
    """Run as the command line says; return the exit status."""
    options = parse(arguments)
    if options.evict and EVICTS not in os.environ:
        # ndx reads it when it is imported.
        os.environ[EVICTS] = "mmap"
        os.execv(sys.executable, [sys.executable, *sys.argv])
    if options.child is not None:
        return run_child(options)
    if options.seed is None:
        options.seed = secrets.randbelow(1 << 32)
    if options.replay is not None or options.program is not None:
        if options.replay is not None:
            program = json.loads(options.replay.read_text())
        else:
            program = make_program(options.seed, options.program)
        every = program.get("every", 1)
        if outcome_of(play, program, every) is None:
            print("the program runs as it must")
            return 0
        finish(options, program, every)
        return 1
    from tqdm import tqdm

    print(f"seed {options.seed}", flush=True)
    with tqdm(total=options.steps, unit="step", unit_scale=True, disable=None) as bar:
        findings = run_parent(options, bar)
    print(f"seed {options.seed}: {len(findings)} findings")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())

"""Run workspaces for a long time, and fail if the process grows.

Usage: ``python tools/soak.py [--minutes 3] [--cycles 1000000] [PART ...]``

Each part is a loop of cycles of another kind: sizes that vary, workspaces in
workspaces, rings, growth, plans, spills, threads, tasks. It runs until it has taken
its cycles or its share of the minutes. The resident memory of the process, Python's
blocks and the backend's ranges are measured ten times; the first three are warm-up,
and later ones may not grow.
"""

import argparse
import asyncio
import gc
import os
import random
import sys
import tempfile
import threading
import time
from pathlib import Path
from statistics import median
from typing import NamedTuple

import numpy as np

import ndx

MIB = 2**20
SLICES = 10
WARM_UP = 3
# The C library and the interpreter may grow on their own; and the pool takes memory for
# small arrays from the system in segments of 2 MiB.
TOLERATED_BYTES = 4 * MIB
TOLERATED_BLOCKS = 500
# Of parts whose live memory is random: the bytes and blocks that their threads may
# hold (arrays, and errors with their reports). On a busy machine one of them may hold
# them while the others wait. What is left at the end, they check.
TOLERATED = {"limits": (4 * 21 * 3 * MIB, 2000)}
# Seconds that an answer of the system may be old, where the machine is busy; and what
# Python takes meanwhile.
KNOWN_FOR = 0.1
OWN_BYTES = 4 * MIB
# The number of live ranges differs between measurements.
TOLERATED_RANGES = 30


# ---- the parts: generators, each step a cycle --------------------------------


def one_array():
    """Use a large arena: one large array in each cycle."""
    workspace = ndx.workspace(size="100MiB")
    while True:
        with workspace:
            x = ndx.empty(4 * MIB, dtype="uint8")
            x[:8] = 1
            assert int(x[7]) == 1
        yield


def spills():
    """Use an arena that is too small, so that every cycle spills."""
    workspace = ndx.workspace(size="1MiB")
    while True:
        with workspace:
            ndx.empty(MIB, dtype="uint8")
            x = ndx.empty(4 * MIB, dtype="uint8")
            x[-1] = 1
            assert workspace.stats()["spilled_count"] == 1
        yield


def nested():
    """Nest two workspaces, operate across them; run the collector now and then."""
    outer, inner = ndx.workspace(), ndx.workspace()
    number = 0
    while True:
        number += 1
        with outer:
            x = ndx.full(100, float(number))
            with inner:
                y = x + 1
                kept = y.leverage()
                with outer.borrow():
                    z = x + y
                with outer:
                    z += kept
            assert float(z[0]) == 3 * number + 2
            x.detach()
        if number % 1000 == 0:
            gc.collect()
        yield


def small_arrays():
    """Make some hundreds of small arrays, and reduce them."""
    rng = random.Random(0)
    workspace = ndx.workspace(spill="grow")
    while True:
        with workspace:
            total = 0.0
            for number in range(500):
                x = ndx.ones(rng.randrange(1, 20))
                if number % 50 == 0:
                    total += float(ndx.sum(x + 1)) - 2 * len(x)
            assert total == 0.0
        yield


def threads():
    """Start threads that each make a workspace of 10 MiB, and end."""

    def work():
        with ndx.use(backend), ndx.workspace("a thread's", size="10MiB"):
            x = ndx.full(1000, 2.0)
            good.append(float(ndx.sum(x)) == 2000.0)

    good = []
    backend = ndx.current_backend()
    while True:
        running = [threading.Thread(target=work) for _ in range(4)]
        for thread in running:
            thread.start()
        for thread in running:
            thread.join()
        assert good == [True] * 4
        good.clear()
        yield


def threads_that_stay():
    """Run four threads at once, each with workspaces of the same names."""

    def work(number):
        with ndx.use(backend):
            for _ in range(100):
                with ndx.workspace("outer") as outer:
                    x = ndx.full(50 + number, float(number))
                    with ndx.workspace("inner", learn="liveness"):
                        y = x + 1
                        good.append(float(y[-1]) == number + 1)
                    assert outer.is_open

    good = []
    backend = ndx.current_backend()
    while True:
        running = [threading.Thread(target=work, args=(n,)) for n in range(4)]
        for thread in running:
            thread.start()
        for thread in running:
            thread.join()
        assert good == [True] * 400
        good.clear()
        yield


def tiny():
    """Take the smallest cycles."""
    workspace = ndx.workspace("tiny", size=64)
    try:
        while True:
            with ndx.workspace("tiny"):
                ndx.empty(1)
            yield
    finally:
        workspace.destroy()


def no_workspace():
    """Use no workspace at all: reference counting alone."""
    rng = random.Random(0)
    while True:
        x = ndx.full(rng.randrange(1, 5000), 1.0)
        assert float(ndx.sum(x + x)) == 2.0 * len(x)
        yield


def files():
    """Load a data set again and again, in a workspace that learns."""
    with tempfile.TemporaryDirectory() as folder:
        paths = []
        for number in range(5):
            path = Path(folder, f"{number}.npy")
            np.save(path, np.full((number + 1, 1000), float(number)))
            paths.append(path)
        workspace = ndx.workspace(learn="over-time", cycles=5)
        while True:
            for number, path in enumerate(paths):
                with workspace:
                    batch = ndx.asarray(np.load(path), copy=True)
                    assert float(ndx.mean(batch)) == number
                yield


def varying():
    """Vary sizes around the learned size."""
    rng = random.Random(0)
    workspace = ndx.workspace()
    while True:
        with workspace:
            x = ndx.full(rng.randrange(1, 2000), 1.0)
            y = ndx.ones(rng.randrange(1, 2000))
            assert float(x[-1] + y[-1]) == 2.0
        yield


def growing():
    """Let sizes grow, and start over in a new workspace."""
    while True:
        workspace = ndx.workspace(spill="grow")
        for number in range(1, 200):
            with workspace:
                x = ndx.full(17 * number, float(number))
                assert float(x[-1]) == number
            yield
        workspace.destroy()


def ring():
    """Use a ring's arrays until their slot's turn; some are larger."""
    rng = random.Random(0)
    workspace = ndx.workspace(reset="ring", slots=4, spill="grow")
    kept = []
    number = 0
    while True:
        number += 1
        size = rng.randrange(1, 500) * (50 if rng.random() < 0.001 else 1)
        with workspace:
            kept.append((number, ndx.full(size, float(number))))
            if len(kept) > 4:
                assert not kept.pop(0)[1].in_scope
            for value, x in kept:
                assert float(x[-1]) == value
        if number % 10_000 == 0:
            kept.clear()
            workspace.destroy()
        yield


def liveness():
    """Plan offsets; depart from them; let views outlive their arrays."""
    rng = random.Random(0)
    workspace = ndx.workspace(learn="liveness")
    number = 0
    while True:
        number += 1
        with workspace:
            x = ndx.full(400 if number % 12 else rng.randrange(1, 400), 1.0)
            y = x * 2
            head = y[:1]
            del x
            z = y + 1
            del y
            if number % 100 == 0:
                ndx.ones(rng.randrange(1, 1000))
            assert float(head[0] + z[-1]) == 5.0
            del z, head
        yield


def exports():
    """Keep views of NumPy for some cycles."""
    rng = random.Random(0)
    workspace = ndx.workspace(size="64KiB")
    kept = {}
    number = 0
    while True:
        number += 1
        with workspace:
            x = ndx.full(500, float(number))
            ndx.ones(100)
            if rng.random() < 0.1:
                kept[rng.randrange(20)] = number, np.asarray(x[:16])
        for value, view in kept.values():
            assert view[0] == view[-1] == value
        yield


def escapes():
    """Let arrays leave by themselves at the end of the scope."""
    workspace = ndx.workspace(escape="detach")
    kept = [None] * 10
    number = 0
    while True:
        number += 1
        with workspace:
            x = ndx.full(200, float(number))
            ndx.ones(100)
            if number % 3 == 0:
                kept[number % 10] = number, x[50:], x
        del x
        for value, view, whole in filter(None, kept):
            assert view[0] == whole[199] == value
        yield


def tasks():
    """Run tasks of one loop, each with a workspace of the same name."""

    async def work(number):
        for _ in range(5):
            with ndx.workspace("a task's", size="4KiB"):
                x = ndx.full(100, float(number))
                await asyncio.sleep(0)
                assert float(x[0]) == number

    async def main():
        await asyncio.gather(*map(work, range(10)))

    try:
        with asyncio.Runner() as runner:
            while True:
                runner.run(main())
                yield
    finally:
        # The thread's workspace, which the tasks shared.
        ndx.workspace("a task's", size="4KiB").destroy()


class Others:
    """Memory of the process that is not ndx's: a thread lets it grow, and drops it."""

    def __init__(self):
        self.begun = 0
        self.there = [(0.0, 0)]  # replaced, never changed: other threads read it

    def run(self, stop):
        """Take memory in small steps until an event is set."""
        rng, kept = random.Random(99), []
        while not stop.wait(0.02 * rng.random()):
            if rng.random() < 0.03:
                kept.clear()
            nbytes = rng.randrange(2 * MIB)
            self.begun += nbytes
            kept.append(np.ones(nbytes, "u1"))
            self.there = [*self.there[-199:], (time.monotonic(), self.begun)]

    def since(self, moment):
        """Return at most how many bytes have come since a moment."""
        earlier = [total for at, total in self.there if at <= moment]
        return self.begun - max(earlier, default=0)


def limits():
    """Move limits at random under four threads; no grant may exceed one in force.

    Workspaces close meanwhile, and a thread takes memory that is not ndx's. What is
    held only grows by grants that a limit allows. So after a grant during which no
    limit was changed it fits, which is checked after each one: for the limits of the
    backend and of ndx to the byte. What others take is noticed late. So the process has
    at most its limit and what came since the system was asked for it, if the grant was
    one of new memory. Builds for sanitizers (``internal/checked.h``) assert in the
    pool, under its lock, that each grant fits, also those during which a limit moves.
    """
    budget = ndx.backends._budget
    # From the first array on: pages that are made lazily would count late.
    ndx.memory.set_limit(process="100%")
    whole = budget.resident_bound()
    gc.collect()
    ndx.memory.trim()
    backend = ndx.backends.get("host", idle_release=0.05)
    before = budget.process_reserved()
    version, wrong, stop = [0], [], threading.Event()
    grants, refusals, fresh, requests = [0] * 4, [0] * 4, [0] * 4, [0] * 4
    others = Others()

    def check(number, seen, start, earlier):
        held, limit = backend.stats()["reserved_bytes"], backend.limit
        total, bound = budget.process_reserved(), ndx.memory.limit()
        present, most = budget.resident_nbytes(), budget.resident_bound()
        came = others.since(start - KNOWN_FOR)
        if version[0] != seen or version[0] % 2:
            return
        if limit is not None and held > limit:
            wrong.append(("the backend's limit", held, limit))
        if bound is not None and total > bound:
            wrong.append(("the limit of ndx", total, bound))
        if total > earlier and most < whole:
            fresh[number] += 1
            if present > most + came + OWN_BYTES:
                wrong.append(("the limit of the process", present, most, came))

    def run_work(number):
        try:
            work(number)
        except BaseException as error:
            wrong.append(error)
            raise

    def work(number):
        rng = random.Random(number)
        kept = []
        with ndx.use(backend):
            while not stop.is_set():
                seen, start = version[0], time.monotonic()
                earlier = budget.process_reserved()
                size = rng.choice((100, 3000, 70_000, MIB, 3 * MIB))
                try:
                    if rng.random() < 0.05:
                        with ndx.workspace("closes", size=rng.randrange(4 * MIB)):
                            ndx.ones(rng.randrange(1, 10_000))
                    else:
                        kept.append(ndx.full(size, number, dtype="uint8"))
                except ndx.OutOfMemoryError:
                    refusals[number] += 1
                    kept.clear()
                except ndx.WorkspaceError:
                    ndx.memory.destroy_all(trim=False)
                else:
                    grants[number] += 1
                    check(number, seen, start, earlier)
                requests[number] += 1
                if len(kept) > 20 or rng.random() < 0.02:
                    del kept[:: rng.randrange(1, 4)]
            kept.clear()
            ndx.memory.destroy_all()

    threads = [threading.Thread(target=run_work, args=(n,)) for n in range(4)]
    threads.append(threading.Thread(target=others.run, args=(stop,)))
    rng = random.Random(17)
    for each in threads:
        each.start()
    try:
        while True:
            version[0] += 1
            change = rng.randrange(4)
            if change == 0:
                backend.limit = rng.choice((None, 0, rng.randrange(64 * MIB)))
            elif change == 1:
                ndx.memory.set_limit(
                    rng.choice((None, before + rng.randrange(64 * MIB)))
                )
            elif change == 2:
                resident = budget.resident_nbytes()
                ndx.memory.set_limit(
                    process=rng.choice(("100%", resident + rng.randrange(64 * MIB)))
                )
            else:
                ndx.memory.trim(backend, target=rng.choice((0, MIB)))
            version[0] += 1
            # A busy machine, too, has requests under each limit.
            enough = sum(requests) + 8
            time.sleep(rng.random() * 0.002)
            while sum(requests) < enough and not wrong:
                time.sleep(0.0002)
            assert not wrong, wrong[:3]
            yield
    finally:
        stop.set()
        for each in threads:
            each.join()
        ndx.memory.set_limit(None, process=None)
        backend.limit = None
        gc.collect()
        stats = backend.stats()
        assert not wrong, wrong[:3]
        assert stats["allocated_bytes"] == stats["allocated_count"] == 0, stats
        ndx.memory.trim()
        ndx.memory.trim(backend)
        assert backend.stats()["reserved_bytes"] == 0, backend.stats()
        # Idle memory of other backends may have gone, too: none may have come.
        assert budget.process_reserved() <= before
        assert min(*grants, *refusals, sum(fresh)) > 0, (grants, refusals, fresh)
        print(
            f"{sum(grants):,} grants, {sum(fresh):,} of them of new memory near the "
            f"limit of the process; {sum(refusals):,} refusals",
            flush=True,
        )


PARTS = {
    part.__name__.replace("_", "-"): part
    for part in (
        varying, nested, ring, growing, liveness, tiny, small_arrays, one_array,
        spills, exports, escapes, files, threads, threads_that_stay, tasks,
        no_workspace, limits,
    )
}  # fmt: skip


# ---- running them ------------------------------------------------------------


class Look(NamedTuple):
    """A measurement of the process."""

    resident: int | None
    blocks: int
    ranges: int


def look(backend):
    """Return the process's resident bytes, Python's blocks, the backend's ranges."""
    gc.collect()
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except OSError:
        resident = None
    else:
        resident = pages * os.sysconf("SC_PAGE_SIZE")
    return Look(resident, sys.getallocatedblocks(), backend.stats()["allocated_count"])


class Outcome(NamedTuple):
    """The result of a part."""

    name: str
    cycles: int
    seconds: float
    looks: list
    left: int

    def growth(self, field):
        """Return the growth of a number after the warm-up; None if it is unknown."""
        values = [getattr(found, field) for found in self.looks[WARM_UP:]]
        if values[0] is None:
            return None
        return median(values[-3:]) - median(values[:3])

    @property
    def failures(self):
        """The failures, as a list of texts."""
        found = []
        nbytes, blocks = TOLERATED.get(self.name, (TOLERATED_BYTES, TOLERATED_BLOCKS))
        resident = self.growth("resident")
        if resident is not None and resident > nbytes:
            found.append(f"resident memory grew by {resident / MIB:.1f} MiB")
        if self.growth("blocks") > blocks:
            found.append(f"Python's blocks grew by {self.growth('blocks'):.0f}")
        if self.growth("ranges") > TOLERATED_RANGES:
            found.append(f"the backend's ranges grew by {self.growth('ranges'):.0f}")
        if self.left:
            found.append(f"{self.left} ranges of the backend are left")
        return found


def run(name, cycles, seconds):
    """Run a part for a number of cycles or seconds, whichever ends first.

    Returns
    -------
    Outcome
    """
    backend = ndx.backends.get("host", limit="4GiB")
    taken, looks = 0, []
    start = time.monotonic()
    with ndx.use(backend):
        part = PARTS[name]()
        for slice_ in range(1, SLICES + 1):
            last = max(1, cycles * slice_ // SLICES)
            end = start + seconds * slice_ / SLICES
            while taken < last:
                next(part)
                taken += 1
                if time.monotonic() > end:
                    break
            looks.append(look(backend))
        part.close()
        del part
    spent = time.monotonic() - start
    gc.collect()
    return Outcome(name, taken, spent, looks, backend.stats()["allocated_count"])


def show(outcome):
    """Print the row of a part."""
    resident = outcome.growth("resident")
    size = outcome.looks[-1].resident
    print(
        f"{outcome.name:<20}{outcome.cycles:>10,}{outcome.seconds:>8.1f} s"
        f"{'-' if size is None else f'{size / MIB:.1f}':>9}"
        f"{'-' if resident is None else f'{resident / 1024:+,.0f}':>9}"
        f"{outcome.growth('blocks'):>+9.0f}  {'; '.join(outcome.failures) or 'flat'}",
        flush=True,
    )


def main(argv=None):
    """Run the parts and print a row for each; return the exit code."""
    parser = argparse.ArgumentParser(
        description="Run workspaces for a long time; fail if the process grows."
    )
    parser.add_argument(
        "parts", nargs="*", metavar="PART", help=f"default: all of {', '.join(PARTS)}"
    )
    parser.add_argument("--minutes", type=float, default=3.0, help="for all parts")
    parser.add_argument("--cycles", type=int, default=1_000_000, help="of each part")
    args = parser.parse_args(argv)
    names = args.parts or list(PARTS)
    for name in names:
        if name not in PARTS:
            parser.error(f"there is no part {name!r}; there are {', '.join(PARTS)}")
    if not args.minutes > 0 or args.cycles < 1:
        parser.error("--minutes and --cycles must be positive")
    print(
        f"{'part':<20}{'cycles':>10}{'time':>10}{'MiB':>9}{'+ KiB':>9}{'+ blocks':>9}"
    )
    end = time.monotonic() + 60 * args.minutes
    outcomes = []
    for place, name in enumerate(names):
        # Later parts get the unused share of earlier ones.
        share = (end - time.monotonic()) / (len(names) - place)
        outcomes.append(run(name, args.cycles, max(share, 0.1)))
        show(outcomes[-1])
    print(f"{sum(outcome.cycles for outcome in outcomes):,} cycles")
    return int(any(outcome.failures for outcome in outcomes))


if __name__ == "__main__":
    sys.exit(main())

"""Every public function while its scope ends in the middle.

Its result is right, or it raises StaleArrayError; and no other memory is written to:
not what the scope gave back, nor what lies beside it.
"""

import random
import time

import pytest
from helpers.calls import CALLS
from helpers.midway import Call, Midway
from helpers.threads import running
from helpers.together import only_where_threads_end_scopes

import ndx

pytestmark = pytest.mark.threads

# How often memory is asked for before the scope ends.
COUNTS = (0, 1, 3)


@pytest.mark.parametrize("name", CALLS)
def test_a_progress_callback_ends_the_scope(name, tmp_path):
    call = Call(name, large=True)
    with ndx.use("mmap", directory=tmp_path):
        arrays = call.arrays()
    for used_again in (False, True):
        midway = Midway("2MiB", used_again)
        midway.enter()
        with ndx.passes(
            progress=lambda *_, end=midway.end: end(),
            threshold=0,
            block="64KiB",
            threads=1,
        ):
            call.check(arrays)
        midway.close()
    for x, expected in zip(arrays, call.operands, strict=True):
        assert ndx.all(ndx.equal(x, ndx.asarray(expected)))


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("large", [False, True], ids=["small", "large"])
def test_a_backend_ends_the_scope_when_it_is_asked(name, large):
    call = Call(name, large)
    for count in COUNTS:
        for size, used_again in ((0, False), (call.nbytes, False), (call.nbytes, True)):
            midway = Midway(size, used_again)
            midway.enter()
            arrays = call.arrays()
            left = count

            def acquire(midway=midway):
                nonlocal left
                left -= 1
                if left < 0:
                    midway.end()

            midway.backend.on_acquire = acquire
            call.check(arrays)
            midway.close()


@only_where_threads_end_scopes
@pytest.mark.parametrize("name", CALLS)
def test_a_finalizer_in_another_thread_ends_the_scope(name):
    """The thread has the last reference to the generator that entered the scope."""
    call = Call(name, large=True)
    for size in (0, call.nbytes):
        midway = Midway(size, used_again=False)
        midway.enter()
        arrays = call.arrays()

        def drop(midway=midway):
            midway.ended = True
            midway.generator = None
            midway.use_memory()

        def acquire(midway=midway, drop=drop):
            midway.backend.on_acquire = None
            with running(drop):
                pass

        midway.backend.on_acquire = acquire
        call.check(arrays)
        midway.close()


@only_where_threads_end_scopes
@pytest.mark.parametrize("name", CALLS)
def test_another_thread_ends_the_scope(name):
    call = Call(name, large=True)
    draws = random.Random(name)
    for _ in range(2):
        midway = Midway("2MiB", used_again=False)
        midway.enter()
        arrays = call.arrays()
        delay = draws.choice((0.0, 1e-5, 1e-4, 3e-4))

        def end(midway=midway, delay=delay):
            time.sleep(delay)
            midway.end()

        with running(end):
            call.check(arrays)
        midway.close()

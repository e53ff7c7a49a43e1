"""Threads that ask an array for what it has, while another one closes it."""

import pytest
from helpers.together import run_together

PROGRAMS = {
    "an array is closed": """
    import ndx.numpy
    def foreign():
        return ndx.asarray(np.ones(500))
    def own():
        with ndx.use(ndx.backends.HostBackend()):
            return ndx.ones(500)
    def adopted():
        with ndx.use(ndx.backends.HostBackend()):
            return ndx.numpy.kron(ndx.ones(40), ndx.ones(40))
    def look():
        while not over.is_set():
            box[0].backend
    for make in foreign, own, adopted:
        def close():
            for _ in range(2 * ROUNDS):
                x = box[0] = make()
                x.close()
            over.set()
        box[0] = make()
        over.clear()
        run(close, look, look)
    """,
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_threads_share(name):
    run_together(PROGRAMS[name])

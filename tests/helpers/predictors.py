"""What the tests of predictors share: requests, and a worker that is held up."""

import contextlib
import threading

import ndx

MODES = ["batched", "sequential", "inplace"]


def row(value, width=3, count=1):
    return ndx.full((count, width), float(value))


class Counted:
    """A function that notes the shapes of its batches, and can be held up."""

    def __init__(self, held=False):
        self.shapes, self.go, self.begun = [], threading.Event(), threading.Event()
        if not held:
            self.go.set()

    def __call__(self, x):
        self.shapes.append(x.shape)
        self.begun.set()
        assert self.go.wait(20)
        return x * 2


@contextlib.contextmanager
def held(**options):
    """Yield a predictor whose one worker is in a first batch, and what lets it go on.

    What is asked meanwhile is gathered.
    """
    fn = Counted(held=True)
    with ndx.parallel.Predictor(fn, deadline=0, **options) as predict:
        try:
            first = predict.submit(ndx.zeros((1, 99)))
            assert fn.begun.wait(20)
            yield predict, fn
        finally:
            fn.go.set()
        first.result(20)

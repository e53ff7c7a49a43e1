"""Values that a program puts into ndx's own context variables."""

import pytest
from helpers.commands import run_python


@pytest.mark.threads
def test_foreign_values_of_variables_do_not_crash():
    printed = run_python("""
    import contextvars
    import numpy as np
    import ndx.numpy

    def compute():
        with ndx.passes(threshold=0, block=4096, threads=2):
            with ndx.workspace("w"), ndx.use("host"):
                total = ndx.sum(ndx.sin(x) + 1) + ndx.sum(stored + 1)
            ndx.numpy.sort(stored)
            return np.asarray(stored).sum() + total, repr(ndx.memory.info())

    with ndx.use("mmap"):
        stored = ndx.ones(100_000)
    with ndx.use("host"), ndx.passes():
        x = ndx.arange(100.0)
        compute()
        for name in "ndx.context", "ndx.passes":
            variable, = [v for v in contextvars.copy_context() if v.name == name]
            old = variable.get()
            for value in 5, None, type(old)(), old:
                variable.set(value)
                for function in compute, lambda: x + 1, x.T.copy, lambda: ndx.ones(3):
                    try:
                        function()
                    except TypeError as error:
                        text = str(error)
                        assert "Cannot convert" in text or "Expected" in text, error
                variable.set(old)
                print(name, type(value).__name__, flush=True)
    """)
    assert printed.count("\n") == 8

"""Values that a program puts into ndx's own context variables."""

import pytest
from helpers.commands import run_python


@pytest.mark.threads
@pytest.mark.parametrize("value", ["5", "None", "type(old)()", "old"])
@pytest.mark.parametrize("name", ["ndx.context", "ndx.passes"])
def test_foreign_values_of_variables_do_not_crash(name, value):
    printed = run_python(f"""
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
        variable, = [v for v in contextvars.copy_context() if v.name == {name!r}]
        old = variable.get()
        variable.set({value})
        for function in compute, lambda: x + 1, x.T.copy, lambda: ndx.ones(3):
            try:
                function()
            except TypeError as error:
                assert "Cannot convert" in str(error) or "Expected" in str(error), error
        variable.set(old)
    print("alive")
    """)
    assert printed == "alive\n"

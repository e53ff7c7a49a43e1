"""The default of NumPy's variable: the check of the field, and the way without it."""

import itertools

import pytest
from helpers.commands import run_python

from ndx._lib import numpy_allocator
from ndx._lib.interpreter_checks import is_default

PROGRAM = """
    import sys, types
    if sys.argv[1] == "without":
        no = lambda address: False
        unknown = types.SimpleNamespace(
            is_default=no, is_context=no, is_frame=no, is_code=no)
        sys.modules["ndx._lib.interpreter_checks"] = unknown
    import threading
    from concurrent.futures import ThreadPoolExecutor
    import ndx
    from numpy._core.multiarray import get_handler_name

    class Own(threading.Thread):
        def run(self):
            self.name_found = get_handler_name()

    def names():
        own = Own()
        own.start()
        own.join()
        with ThreadPoolExecutor(1) as pool:
            return own.name_found, pool.submit(get_handler_name).result()

    for _ in range(2):
        ndx.set_default("host", limit="1MiB", numpy=True)
        assert get_handler_name() == "ndx_plain"
        assert names() == ("ndx_plain", "ndx_plain")
        ndx.set_default("host", numpy=False)
        assert get_handler_name() == "default_allocator"
        assert names() == ("default_allocator", "default_allocator")
    print(threading.Thread.start.__module__, threading.Thread.start.__name__)
    """


def test_the_field_of_this_version_is_known():
    assert is_default(numpy_allocator._default_address)


@pytest.mark.parametrize("wrong", [0, 1])
def test_one_address_for_all_variables_is_not_that_of_each_default(wrong):
    assert not is_default(lambda variable: wrong)


def test_the_address_of_something_else_is_not_that_of_the_default():
    assert not is_default(id)
    assert not is_default(lambda variable: id(variable.name))
    count = itertools.count(1)
    assert not is_default(lambda variable: next(count))


@pytest.mark.threads
@pytest.mark.parametrize("field", ["with", "without"])
def test_threads_have_it_with_and_without_the_field(field):
    assert run_python(PROGRAM, field) == "threading start\n"

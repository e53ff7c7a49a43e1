"""Floating-point errors in NumPy's face: silent but in `errstate`, after `seterr`."""

import contextvars
import threading
import warnings

import numpy
import pytest
from helpers.threads import running

import ndx
import ndx.numpy as np

ZEROS = {
    "divide": lambda: np.ones(3) / np.zeros(3),
    "log": lambda: np.log(np.zeros(3)),
    "overflow": lambda: np.exp(np.full(3, 1e9)),
    "invalid": lambda: np.sqrt(-np.ones(3)),
    "strided": lambda: np.ones(6)[::2] / np.zeros(6)[::2],
    "in place": lambda: np.ones(3).__itruediv__(np.zeros(3)),
    "reduction": lambda: np.full(3, 1e308).sum(),
    "NumPy's own": lambda: np.add.accumulate(np.full(3, 1e308)),
    "through the protocol": lambda: numpy.divide(np.ones(3), np.zeros(3)),
    "vector by vector": lambda: np.full(3, 1e300) @ np.full(3, 1e300),
    "matrix by matrix": lambda: np.full((3, 3), 1e300) @ np.full((3, 3), 1e300),
    "large product": lambda: np.matmul(np.full((90, 90), 1e300), np.full((90, 2), 1e9)),
    "vecdot": lambda: np.vecdot(np.full((2, 3), 1e300), np.full(3, 1e300)),
    "dot": lambda: np.dot(np.full(3, 1e300), np.full(3, 1e300)),
    "inner": lambda: np.inner(np.full(3, 1e300), np.full(3, 1e300)),
    "norm": lambda: np.linalg.norm(np.full(3, 1e300)),
    "constant": lambda: np.ones(3, "f4") + 1e300,
    "constant first": lambda: 1e300 * np.ones((2, 2), "f4").T,
    "complex constant": lambda: np.ones(3, "c8") + 1e300j,
    "fill": lambda: np.ones(3, "f4").fill(1e300),
    "element": lambda: np.ones(3, "f4").__setitem__(1, 1e300),
    "masked elements": lambda: np.ones(3, "f4").__setitem__(np.ones(3, bool), 1e300),
    "large": lambda: np.ones(100_000) / np.zeros(100_000),
}  # fmt: skip


@pytest.mark.parametrize("name", ZEROS)
def test_errors_are_silent_by_default(name):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ZEROS[name]()


@pytest.mark.parametrize("name", ZEROS)
def test_errstate_reports_errors(name):
    with np.errstate(all="raise"), pytest.raises(FloatingPointError):
        ZEROS[name]()
    with np.errstate(all="warn"), pytest.warns(RuntimeWarning):
        ZEROS[name]()


def test_errors_are_silent_again_after_errstate():
    for _ in range(2):
        with np.errstate(all="raise"):
            pass
        ZEROS["divide"]()
        with numpy.errstate(all="raise"):  # of NumPy, which other libraries use
            ZEROS["divide"]()


def test_numbers_are_silent_while_another_context_reports():
    other = contextvars.Context()
    other.run(np.seterr, all="warn")
    number = np.asarray([False])[0]
    assert (number // number).item() == 0


def test_nested_states():
    with np.errstate(all="raise"):
        with np.errstate(divide="ignore"):
            ZEROS["divide"]()
            with pytest.raises(FloatingPointError):
                ZEROS["overflow"]()
        with pytest.raises(FloatingPointError):
            ZEROS["divide"]()


def test_a_decorator():
    @np.errstate(all="raise")
    def compute():
        return ZEROS["divide"]()

    for _ in range(2):
        with pytest.raises(FloatingPointError):
            compute()
    ZEROS["divide"]()


@pytest.mark.threads
def test_other_threads_are_silent():
    found = []

    def work():
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            found.append(ZEROS["divide"]().tolist())

    with np.errstate(all="raise"):
        thread = (
            threading.Thread(target=work, context=contextvars.Context())
            if (hasattr(threading.Thread, "context"))
            else threading.Thread(target=work)
        )
        thread.start()
        thread.join()
    assert found == [[numpy.inf] * 3]


@pytest.mark.threads
def test_one_object_serves_two_threads():
    state = np.errstate(all="raise")
    entered, left, found = threading.Event(), threading.Event(), []

    def work():
        with state:
            entered.set()
            assert left.wait(30)
            with pytest.raises(FloatingPointError):
                ZEROS["divide"]()
        found.append(ZEROS["divide"]().tolist())

    state.__enter__()
    with running(work):
        assert entered.wait(30)
        # Entered first, left first: each thread leaves its own.
        state.__exit__(None, None, None)
        ZEROS["divide"]()
        left.set()
    assert found == [[numpy.inf] * 3]


def test_what_was_not_entered_here_is_not_left():
    state = np.errstate(all="raise")
    with pytest.raises(RuntimeError, match="has not entered"):
        state.__exit__(None, None, None)
    with state:
        with pytest.raises(RuntimeError, match="has not entered"):
            contextvars.Context().run(state.__exit__, None, None, None)
        with pytest.raises(FloatingPointError):
            ZEROS["divide"]()


def test_seterr_is_for_the_whole_context():
    def set_and_divide():
        old = np.seterr(all="raise")
        try:
            with pytest.raises(FloatingPointError):
                ZEROS["divide"]()
        finally:
            numpy.seterr(**old)
        return old

    assert contextvars.Context().run(set_and_divide).keys() == numpy.geterr().keys()
    ZEROS["divide"]()


def test_calls_and_logs():
    seen = []
    with np.errstate(all="call", call=lambda what, flag: seen.append((what, flag))):
        ZEROS["divide"]()
    assert seen == [("divide by zero", 1)]


def test_settings_that_numpy_refuses():
    with pytest.raises(ValueError, match="nonsense"), np.errstate(all="nonsense"):
        pass
    ZEROS["divide"]()
    with pytest.raises(TypeError):
        np.errstate(other="raise")


def test_results_are_the_same_and_ours():
    with np.errstate(all="ignore"), ndx.use("host") as backend:
        found = ZEROS["divide"]()
        assert found.backend is backend
    assert found.tolist() == [numpy.inf] * 3


def test_one_warning_for_a_constant():
    x = np.ones(3, "f4")
    for change in (lambda: x.fill(1e300), lambda: x.__setitem__([0, 2], 1e300)):
        with np.errstate(all="warn"), warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            change()
        assert len(found) == 1


def test_seterr_takes_values_by_position():
    def run():
        before = np.seterr("raise", "ignore")
        assert before == numpy.geterr() | before
        ZEROS["divide"]()
        with pytest.raises(FloatingPointError):
            ZEROS["overflow"]()
        assert np.seterr(**before)["divide"] == "ignore"
        with pytest.raises(TypeError):
            np.seterr(nonsense="raise")

    contextvars.copy_context().run(run)

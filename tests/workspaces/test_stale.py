"""Every use of an array after its scope raises StaleArrayError: all access paths."""

import re

import numpy as np
import pytest
from helpers import dtypes
from helpers.calls import CALLS, DTYPES_ONLY, FILES, NO_ARRAYS, public_functions
from helpers.paths import PATHS
from helpers.stale import KINDS, message_of, stale_array

import ndx


@pytest.mark.parametrize("path", PATHS)
def test_use_after_scope(path):
    make, use = PATHS[path]
    for kind in KINDS:
        with stale_array(make, kind) as (stale, workspace, generation):
            live = make()
            before = np.array(live)
            message = message_of(use, stale, live)
            name, now = re.escape(repr(workspace.name)), workspace.generation
            assert f"shape {stale.shape}" in message
            assert f"dtype {stale.dtype}" in message
            assert re.search(rf"generation {generation}\b.*{name}", message)
            assert re.search(rf"{name}.*\bgeneration {now}\b", message)
            # The three ways to fix it.
            assert "detach()" in message
            assert "x[...] = y" in message
            assert "before the scope ends" in message
            # What is live has not been written to.
            np.testing.assert_array_equal(np.array(live), before)


@pytest.mark.parametrize("path", PATHS)
def test_the_same_use_is_fine_before_its_end(path):
    """The paths above raise because the array is stale, and for nothing else."""
    make, use = PATHS[path]
    with ndx.workspace(size="1MiB"):
        try:
            use(make(), make())
        except (TypeError, ValueError) as error:  # refused for live arrays, too
            pytest.fail(f"{path}: {error!r}")
        except BufferError:
            assert path == "close"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", dtypes.ALL)
def test_what_still_works(kind, dtype):
    with stale_array(lambda: ndx.ones((2, 3), dtype=dtype), kind) as found:
        stale, workspace, generation = found
        assert stale.shape == (2, 3)
        assert stale.dtype == np.dtype(dtype)
        assert (stale.ndim, stale.size) == (2, 6)
        assert stale.nbytes == 6 * np.dtype(dtype).itemsize
        assert stale.device == "cpu"
        assert len(stale) == 2
        assert stale.attached
        assert not stale.in_scope
        assert stale.workspace == workspace.name
        expected = (
            f"<stale NDArray shape=(2, 3) dtype={dtype} "
            f"workspace={workspace.name!r} generation={generation}>"
        )
        assert repr(stale) == str(stale) == f"{stale}" == expected
        assert repr([stale]) == f"[{expected}]"


def test_an_iterator_checks_each_step():
    with ndx.workspace(size="64KiB"):
        iterator = iter(ndx.arange(3))
        assert int(next(iterator)) == 0
    with pytest.raises(ndx.StaleArrayError):
        next(iterator)


def test_views_go_stale_with_their_base():
    with ndx.workspace(size="64KiB"):
        base = ndx.ones((4, 4))
        views = [base[1:], base.T, base.mT, base[0], base[0, 0, ...], base[None]]
        views += [base[::-1], views[0][1:].T]
    for view in views:
        with pytest.raises(ndx.StaleArrayError):
            view + 1


def test_an_array_of_before_the_scope_is_no_part_of_it():
    x = ndx.zeros(3)
    with ndx.workspace(size="64KiB"):
        view = x[1:]
        x += ndx.ones(3)
        x[0] = 7.0
    assert view.tolist() == [1.0, 1.0]
    assert x.tolist() == [7.0, 1.0, 1.0]
    assert not view.attached


def test_every_function_is_covered():
    """A new function of the namespace needs a row in ``helpers.calls``."""
    assert public_functions() == {*CALLS, *NO_ARRAYS, *DTYPES_ONLY, *FILES}

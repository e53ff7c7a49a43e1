"""The errors: what they derive from, keep, and that they pickle."""

import copy
import pickle
import traceback

import pytest

import ndx

ERRORS = {
    ndx.DeviceError: ValueError,
    ndx.MappedFileError: OSError,
    ndx.MemoryDamageError: RuntimeError,
    ndx.ReadOnlyError: ValueError,
    ndx.StaleArrayError: RuntimeError,
    ndx.WorkspaceError: RuntimeError,
    ndx.OutOfMemoryError: MemoryError,
}
FULL = ndx.OutOfMemoryError("full", 10, 20, 30, limit=40, backend="host")


def test_all_public_errors_are_known():
    found = {
        value
        for value in vars(ndx).values()
        if isinstance(value, type) and issubclass(value, BaseException)
    }
    assert found == set(ERRORS)


@pytest.mark.parametrize("error", ERRORS)
def test_hierarchy(error):
    assert issubclass(error, ERRORS[error])
    # `hasattr` and `getattr` with a default must not hide one.
    assert not issubclass(error, AttributeError)
    assert error.__doc__


@pytest.mark.parametrize("error", ERRORS)
def test_they_are_named_as_users_import_them(error):
    assert error.__module__ == "ndx"
    assert getattr(ndx, error.__name__) is error
    shown = traceback.format_exception_only(error("what was asked"))
    assert shown == [f"ndx.{error.__name__}: what was asked\n"]


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
@pytest.mark.parametrize("error", [*[error("why") for error in ERRORS], FULL])
def test_pickle(error, protocol):
    for other in (
        pickle.loads(pickle.dumps(error, protocol)),
        copy.copy(error),
        copy.deepcopy(error),
    ):
        assert type(other) is type(error)
        assert other.args == error.args
        assert str(other) == str(error)
        assert vars(other) == vars(error)


def test_what_an_out_of_memory_error_knows():
    assert (FULL.requested, FULL.allocated, FULL.reserved) == (10, 20, 30)
    assert (FULL.limit, FULL.backend) == (40, "host")
    bare = ndx.OutOfMemoryError("full")
    assert (bare.requested, bare.limit, bare.backend) == (0, None, "")


def test_errors_that_were_raised_pickle():
    with ndx.workspace(size="1KiB"):
        x = ndx.ones(3)
    with pytest.raises(ndx.StaleArrayError) as stale:
        x + 1
    with (
        ndx.use("host", limit="1KiB"),
        pytest.raises(ndx.OutOfMemoryError) as full,
    ):
        ndx.zeros(10_000)
    for error in (stale.value, full.value):
        other = pickle.loads(pickle.dumps(error))
        assert str(other) == str(error)
        assert vars(other) == vars(error)
    assert full.value.requested >= 80_000
    assert full.value.limit == 1024


def test_the_array_type_is_named_as_users_import_it():
    assert ndx.NDArray.__module__ == "ndx"
    assert ndx.NDArray.__qualname__ == ndx.NDArray.__name__ == "NDArray"
    assert repr(ndx.NDArray) == "<class 'ndx.NDArray'>"
    assert pickle.loads(pickle.dumps(ndx.NDArray)) is ndx.NDArray

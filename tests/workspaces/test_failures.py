"""Each allocation fails once: counters, context and arrays stay as they were."""

import contextlib
import pickle

import numpy as np
import pytest

import ndx
from ndx.testing.backends import FailingBackend

RNG = np.random.default_rng(0)
A = RNG.random((20, 20))
STRIDED = np.asfortranarray(RNG.random((40, 20)))[::2]
PICKLED = pickle.dumps(ndx.asarray(A))

OPERATIONS = {
    "add": lambda x, y: x + y,
    "add, cast": lambda x, y: x + ndx.ones(20, dtype="float32"),
    "add, strided": lambda x, y: x.T + y,
    "exp": lambda x, y: ndx.exp(x),
    "int": lambda x, y: ndx.exp(ndx.ones(3, dtype="int8")),
    "sum": lambda x, y: ndx.sum(x, axis=0),
    "max": lambda x, y: ndx.max(x, axis=1, keepdims=True),
    "mean": lambda x, y: ndx.mean(x),
    "std": lambda x, y: ndx.std(x, axis=0),
    "any": lambda x, y: ndx.any(x),
    "matmul": lambda x, y: x @ y,
    "matmul, cast": lambda x, y: x @ ndx.ones((20, 2), dtype="float32"),
    "copy": lambda x, y: ndx.asarray(x, copy=True),
    "detach": lambda x, y: (x + 1).detach(),
    "index": lambda x, y: x[np.arange(10)],
    "mask": lambda x, y: x[x > 0.5],
    "arange": lambda x, y: ndx.arange(100),
    "linspace": lambda x, y: ndx.linspace(0, 1, 50),
    "eye": lambda x, y: ndx.eye(5),
    "full": lambda x, y: ndx.full((3, 3), 2),
    "asarray of a list": lambda x, y: ndx.asarray([[1, 2], [3, 4]]),
    "np.cbrt": lambda x, y: np.cbrt(x),
    "unpickle": lambda x, y: pickle.loads(PICKLED),
    "deepcopy": lambda x, y: __import__("copy").deepcopy(x),
    "compare": lambda x, y: x == y,
    "in-place, overlap": lambda x, y: ndx.add(x[1:], x[:-1], out=x[1:]),
    "in-place matmul": lambda x, y: x.__imatmul__(y),
    "dlpack copy": lambda x, y: np.from_dlpack(x, copy=True),
    "contains": lambda x, y: 7.0 in x,
}


@pytest.mark.parametrize("inside", [False, True], ids=["backend", "workspace"])
@pytest.mark.parametrize("layout", ["contiguous", "strided"])
@pytest.mark.parametrize("operation", OPERATIONS)
def test_each_allocation_fails_once(operation, layout, inside):
    source = A if layout == "contiguous" else STRIDED
    operands = [ndx.asarray(source.copy(order="K")) for _ in range(2)]
    for fail_at in range(20):
        backend = FailingBackend()
        scope = ndx.workspace(backend=backend) if inside else contextlib.nullcontext()
        # What is detached comes from the current backend, not from the workspace's.
        with ndx.use(backend), scope:
            backend.fail_at = fail_at
            before = backend.stats()
            current = ndx.current_backend()
            try:
                result = OPERATIONS[operation](*operands)
            except MemoryError as error:
                failed = error.with_traceback(None)
                after = backend.stats()
                for key in ("allocated_bytes", "allocated_count", "reserved_bytes"):
                    assert after[key] == before[key], key
                for operand in operands:
                    np.testing.assert_array_equal(np.asarray(operand), source)
            else:
                failed = None
                assert result is not None
            assert ndx.current_backend() is current
        del scope
        if failed is None:
            break
    else:
        pytest.fail("it never succeeded")
    if fail_at == 0:
        pytest.fail("it made no allocation")
    del result
    assert backend.stats()["allocated_bytes"] == 0
    assert backend.acquired == backend.discarded


def test_the_error_of_a_failing_backend():
    backend = FailingBackend(fail_at=0)
    backend.name = "broken"
    with ndx.use(backend), pytest.raises(ndx.OutOfMemoryError) as caught:
        ndx.zeros(10)
    assert "'broken'" in str(caught.value)
    assert "the system has no more" in str(caught.value)
    assert (caught.value.requested, caught.value.limit) == (80, None)


@pytest.mark.parametrize(
    "operation", ["index", "mask", "arange", "linspace", "asarray of a list", "np.cbrt"]
)
def test_numpy_results_fail_with_our_error(operation):
    x = ndx.asarray(A)
    with (
        ndx.use(FailingBackend(fail_at=0)),
        pytest.raises(ndx.OutOfMemoryError, match="can't allocate"),
    ):
        OPERATIONS[operation](x, x)


class Interrupted(ndx.backends.PythonBackend):
    """Raises what is no refusal."""

    def acquire(self, nbytes):
        raise RuntimeError("the driver is gone")


@pytest.mark.parametrize("operation", ["add", "matmul", "std", "detach", "full"])
def test_other_errors_of_a_backend_come_through(operation):
    x = ndx.asarray(A)
    backend = Interrupted()
    for scope in (ndx.use(backend), ndx.workspace(backend=backend)):
        with scope, pytest.raises(RuntimeError, match="the driver is gone"):
            OPERATIONS[operation](x, x)
    assert backend.stats()["reserved_bytes"] == 0
    assert ndx.current_backend() is not backend


def test_a_workspace_that_cannot_be_made():
    backend = FailingBackend(fail_at=0)
    with pytest.raises(ndx.OutOfMemoryError):
        ndx.workspace(backend=backend, size="1MiB")
    assert backend.stats()["reserved_bytes"] == 0


def test_a_backend_that_fails_while_a_scope_closes():
    """The scope has ended all the same: the context and the counters say so."""

    class Late(FailingBackend):
        def acquire(self, nbytes):
            if self.acquired:
                raise RuntimeError("too late")
            return super().acquire(nbytes)

    backend = Late()
    before = ndx.current_backend()
    workspace = ndx.workspace(backend=backend)
    with pytest.raises(RuntimeError, match="too late"), workspace:
        x = ndx.zeros(10)
    assert ndx.current_backend() is before
    assert not workspace.is_open
    assert not x.in_scope
    assert backend.stats()["allocated_bytes"] == 0

"""The scopes that are not workspaces: `ndx.use` and `ndx.no_workspace`."""

from ndx._context.context cimport (
    Context, Entry, PlainNumpy, Scope, check_numpy, plain_numpy,
)
from ndx._context.scopes cimport enter_context, leave_scope, push, ready_context
from ndx._lib.collector cimport pause_collector, resume_collector
from ndx._lib.interpreter cimport Here, current_place
from ndx._lib.numpy_allocator cimport restore_numpy, switch_numpy
from ndx._lib.unraisable cimport is_of_allocator
from ndx.backends.base cimport Backend

from ndx import backends
from ndx._lib.functions import decorated

__all__ = ["explain_error", "no_workspace", "use"]


class use(Scope):
    """Let a backend serve the new arrays of this thread or task.

    Parameters
    ----------
    backend : str or ndx.backends.Backend
        One of `ndx.backends.available`, or a backend.
    numpy : bool, optional
        Whether the backend also allocates the data of NumPy's new arrays. False:
        NumPy's own allocator does. Default: as outside of the scope.
    **options
        Options of the backend, such as ``limit="2GiB"``. Any option makes a new backend
        with counters of its own.

    Yields
    ------
    ndx.backends.Backend
        The backend.

    Raises
    ------
    ValueError
        If the name is unknown or an option's value is invalid. The message says what is
        valid.
    WorkspaceError
        If scopes are left out of order.

    Notes
    -----
    A context manager and a decorator, based on `contextvars`: each thread and each
    asyncio task has its own current backend. Inside a workspace the scope takes
    precedence: the backend makes the arrays until the scope ends. Arrays stay where
    they are when it ends.

    With ``numpy=True`` a NumPy array counts for its bytes and a header of 64, and
    NumPy raises MemoryError above the limit. Its data is never in a workspace, because
    NumPy's arrays live as long as they are referenced. Memory that C code gets from
    malloc is not counted.

    Examples
    --------
    >>> import ndx
    >>> with ndx.use("host", limit="1MiB") as backend:
    ...     x = ndx.zeros(1000)
    >>> x.backend is backend
    True

    >>> import numpy as np
    >>> with ndx.use("host", limit="1MiB", numpy=True) as backend:
    ...     a = np.ones(1000)
    >>> backend.stats()["allocated_bytes"]
    8064
    """

    def __init__(self, backend: BackendLike, /, *, numpy: bool | None = None,
                 **options: BackendOptions) -> None:
        self.numpy = numpy
        self.backend = backends.get(backend, **options)
        check_numpy(numpy, self.backend)
        self.given = {**options} if numpy is None else {"numpy": numpy, **options}

    def __repr__(self):
        given = "".join([f", {key}={value!r}" for key, value in self.given.items()])
        return f"ndx.use({self.backend.name!r}{given})"

    def __enter__(self) -> Backend:
        enter_use(Context(<Backend?>self.backend, Entry(<Scope?>self)), self.numpy)
        return self.backend

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 traceback: TracebackType | None) -> None:
        if self.numpy and isinstance(error, MemoryError):
            explain(error)
        leave_scope(<Scope?>self, kind)

    def __call__(self, function: AnyFunction) -> AnyFunction:
        backend, numpy = self.backend, self.numpy
        return decorated(function, lambda: use(backend, numpy=numpy), "ndx.use")


cdef int enter_use(Context context, object numpy) except -1:
    """Enter a context, and set the allocator of NumPy's arrays."""
    cdef PlainNumpy plain = None
    cdef bint paused
    if numpy is None:
        return enter_context(context)
    if numpy:
        plain = PlainNumpy(context.backend)
    paused = pause_collector()
    try:
        before = switch_numpy(numpy)
        try:
            enter_context(context)
        except BaseException:
            restore_numpy(before)
            raise
        context.numpy_before = before
        context.numpy = plain
    finally:
        resume_collector(paused)
    return 0


cdef int explain(object error) except -1:
    """Set the backend's refusal as the cause of NumPy's MemoryError, which has none."""
    cdef PlainNumpy plain = plain_numpy()
    refusal = None if plain is None else plain.refusals.take()
    if refusal is not None and error.__cause__ is None and is_of_allocator(error):
        error.__cause__ = refusal
    return 0


def explain_error(error: MemoryError, /) -> None:
    """Let a MemoryError of NumPy's have the refusal of ndx that led to it as its cause.

    NumPy's own has no text where a backend refuses it memory. The end of a scope of
    ``ndx.use(..., numpy=True)`` does this by itself; with ``ndx.set_default(...,
    numpy=True)`` there is no scope.

    Parameters
    ----------
    error : MemoryError
        One that was just raised in this thread. Others, and those that have a cause,
        are left as they are.

    Examples
    --------
    >>> import ndx, numpy as np
    >>> _ = ndx.set_default("host", limit="1MiB", numpy=True)
    >>> try:
    ...     np.ones(10**6)
    ... except MemoryError as error:
    ...     ndx.memory.explain_error(error)
    ...     print(type(error.__cause__).__name__)
    OutOfMemoryError
    >>> _ = ndx.set_default("host", numpy=False)
    """
    explain(error)


class no_workspace(Scope):
    """Make new arrays outside of the current workspaces.

    Notes
    -----
    A context manager and a decorator. New arrays come from the backend that is current
    outside of the workspaces. Reference counting frees them. ND4J's
    ``scopeOutOfWorkspaces()``.

    Examples
    --------
    >>> import ndx
    >>> with ndx.workspace("step"):
    ...     with ndx.no_workspace():
    ...         kept = ndx.ones(3)
    >>> kept.attached
    False
    """

    def __repr__(self):
        return "ndx.no_workspace()"

    def __enter__(self) -> None:
        cdef Entry entry = Entry(<Scope?>self)
        cdef Context context = ready_context()
        cdef Here here = current_place()
        push(context, entry, self, &here)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 traceback: TracebackType | None) -> None:
        leave_scope(<Scope?>self, kind)

    def __call__(self, function: AnyFunction) -> AnyFunction:
        return decorated(function, no_workspace, "ndx.no_workspace")

"""What memory a function needs: its peak, by one run on a backend of its own."""

from __future__ import annotations

import contextlib
import inspect
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from ndx._api.creation import ones
from ndx._context.use import use
from ndx._lib.functions import check_function
from ndx._lib.sizes import format_size, parse_limit
from ndx._lib.text import Text
from ndx._workspaces.listing import workspaces
from ndx.backends import _pressure, get
from ndx.memory._counters import backend_of, trim
from ndx.memory._events import number_on
from ndx.memory._recipes import BackendRecipe
from ndx.memory._timeline import (
    makers_at_peak,
    only_on,
    peak_of,
    phase_peaks,
    scope_peaks,
)
from ndx.memory._trace import record

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from ndx._typing import BackendLike, Size
    from ndx.backends import Backend

__all__ = [
    "EVENTS",
    "Estimate",
    "Maker",
    "allocated_by",
    "check_computed",
    "estimate",
    "made_of",
    "on_its_own",
]

# Events of a recording; it takes memory for those that there are.
EVENTS = 1_000_000


# ---- One run, on a backend of its own ------------------------------------------------


def _like(backend: BackendLike | None, limit: int | None) -> Backend:
    """Return a new backend of a kind, with counters and a limit of its own.

    Nothing else serves its requests, and it keeps nothing in advance.
    """
    kind = _pressure.innermost(backend_of(backend))
    try:
        recipe = BackendRecipe.of(kind)
    except TypeError:
        msg = (
            f"{kind!r} is of a class that is not registered, so that none can be made "
            "like it: call ndx.backends.register, or give backend="
        )
        raise TypeError(msg) from None
    options = {**recipe.options, "limit": limit}
    if hasattr(kind, "options"):
        options["fallback"] = options["evict"] = None
        if kind.options.pool != "arena":
            options["initial"] = None
    return get(recipe.source, **options)


@contextlib.contextmanager
def on_its_own(
    backend: BackendLike | None, limit: int | None, numpy: bool | None
) -> Iterator[Backend]:
    """Let a new backend serve; afterwards give back what workspaces took from it."""
    made = _like(backend, limit)
    before = set(workspaces())
    try:
        with use(made, numpy=numpy), _pressure.trying():
            yield made
    finally:
        # They have learned from this run. The next one is to begin as this one did.
        for each in workspaces():
            if each not in before and not each.is_open:
                each.destroy()
        trim(made)


def allocated_by(backend: Backend) -> int:
    return backend.stats()["allocated_bytes"]


def made_of(argument: Any) -> Any:
    """Return the array that a shape stands for; any other argument as it is."""
    if _is_shape(argument):
        return ones(argument)
    if isinstance(argument, tuple) and len(argument) == 2 and _is_shape(argument[0]):
        shape, dtype = argument
        return ones(shape, dtype=dtype)
    return argument


def _is_shape(value: Any) -> bool:
    return isinstance(value, tuple) and all(
        isinstance(each, int) and not isinstance(each, bool) for each in value
    )


class Maker(NamedTuple):
    """Arrays that were alive at a peak, of one line of the program.

    Attributes
    ----------
    nbytes : int
        Their bytes.
    arrays : int
        Their number.
    line : str
        ``"file:line in function"``.
    """

    nbytes: int
    arrays: int
    line: str


@dataclass(frozen=True)
class Estimate:
    """What a run of a function needs; made by `ndx.memory.estimate`.

    Attributes
    ----------
    peak_bytes : int
        The most bytes that the backend had lent at once: to arrays, to arenas of
        workspaces, as a whole, and to temporaries. No lower limit will do. It is the
        backend's ``stats()["peak_bytes"]``.
    reserved_bytes : int
        The most bytes that the backend held from the system in this run: `peak_bytes`,
        rounded to pages, and what was idle. It is what a limit is compared with: one of
        so many bytes will do, and so may a lower one, under which a backend gives idle
        memory back first.
    live_bytes : int
        The most bytes of arrays that were alive at once, wherever they lay. Less than
        `peak_bytes` where an arena is larger than the arrays in it.
    argument_bytes : int
        Of the arrays that stand for shapes; they are alive all the time.
    result_bytes : int
        What is freed with the result, after the arguments.
    left_bytes : int
        What is not freed with it: arrays that the function keeps elsewhere, cycles of
        objects, and arenas of workspaces, closed ones included.
    phases : dict of str to int
        For each phase (`ndx.memory.profile`) and for each workspace (``"workspace
        'step'"``) the most bytes of arrays that were alive in it, others' included.
    makers : tuple of Maker
        What was alive when `live_bytes` were, by the line that made it, the most first.
    missed : int
        Arrays that the recording has forgotten: without them `live_bytes`, `phases` and
        `makers` may be too low.
    """

    peak_bytes: int
    reserved_bytes: int
    live_bytes: int
    argument_bytes: int
    result_bytes: int
    left_bytes: int
    phases: dict[str, int]
    makers: tuple[Maker, ...]
    missed: int = 0

    def __repr__(self):
        return f"<Estimate: peak {format_size(self.peak_bytes)}>"

    def __str__(self):
        return str(self.table())

    def _repr_html_(self):
        return self.table()._repr_html_()

    def table(self, makers: int = 10) -> str:
        """Return a table of the peaks, and of the lines that made what was alive.

        Parameters
        ----------
        makers : int
            The greatest number of lines.

        Returns
        -------
        str
            Text for people.
        """
        times = ""
        if self.argument_bytes:
            ratio = self.peak_bytes / self.argument_bytes
            times = f", {ratio:.4g} times the arguments"
        rows = [
            (self.peak_bytes, f"peak of the backend{times}"),
            (self.reserved_bytes, "held from the system: a limit that is enough"),
            (self.live_bytes, "peak of live arrays"),
            (self.argument_bytes, "arguments that stand for shapes"),
            (self.result_bytes, "freed with the result"),
            (self.left_bytes, "left: kept elsewhere, or in arenas of workspaces"),
            *((nbytes, f"peak in {name}") for name, nbytes in self.phases.items()),
            *(
                (each.nbytes, f"at the peak, {each.arrays} arrays: {each.line}")
                for each in self.makers[:makers]
            ),
        ]
        lines = [
            f"{nbytes:>15,} B  {format_size(nbytes):>10}  {text}"
            for nbytes, text in rows
        ]
        if self.missed:
            lines.append(
                f"{self.missed:,} arrays were not recorded: give a greater max_events"
            )
        return Text("\n".join(lines))


def estimate(
    fn: Callable[..., Any],
    *arguments: Any,
    backend: BackendLike | None = None,
    limit: Size | None = None,
    numpy: bool | None = None,
    max_events: int = EVENTS,
) -> Estimate:
    """Run a function once, and tell what memory it needs, to the byte.

    Parameters
    ----------
    fn : callable
        The function.
    *arguments
        Its arguments. A tuple of ints, a shape, stands for an array of ones of that
        shape and of float64; a pair, such as ``((64, 784), "float32")``, for one of
        that dtype. Such arrays are made for the run, and count. What exists already
        (arrays that are given, or that the function finds) does not.
    backend : str or ndx.backends.Backend, optional
        The kind of memory, and its options. Default: those of the current one. The run
        has a backend of its own, without the limit and the fallback.
    limit : int or str, optional
        The limit of that backend, for a function that may need too much.
    numpy : bool, optional
        Whether NumPy's new arrays count, too: see `ndx.use`.
    max_events : int
        See `ndx.memory.record`.

    Returns
    -------
    Estimate
        Peaks, phases, and the lines that made what was alive; ``print`` shows a table.

    Raises
    ------
    TypeError
        If `fn` is not callable, or returns before it has computed: a generator, a
        coroutine. If the backend is of a class that is not registered.
    OutOfMemoryError
        If the run needs more than `limit`, or than the machine has.

    See Also
    --------
    fit : The largest batch within a limit.

    Notes
    -----
    What the function itself raises is raised. Threads that it starts, and scopes of
    `ndx.use` within it, have other backends and don't count. Workspaces that it makes
    are destroyed afterwards; those that exist know sizes already, as they will then.

    Examples
    --------
    >>> import ndx
    >>> found = ndx.memory.estimate(lambda x: ndx.sum(x * 2) + 1, (1000, 1000))
    >>> found.peak_bytes, found.argument_bytes, found.result_bytes
    (16000008, 8000000, 8)
    """
    check_function(fn, "fn")
    bound = None if limit is None else parse_limit(limit)
    with (
        on_its_own(backend, bound, numpy) as own,
        record(max_events) as trace,
    ):
        given = [made_of(each) for each in arguments]
        argument_bytes = allocated_by(own)
        result = fn(*given)
        given.clear()
        kept = allocated_by(own)
        check_computed(result)
        del result
        left = allocated_by(own)
        stats = own.stats()
    data = only_on(trace.to_dict(), number_on(trace._recorder, own))
    return Estimate(
        stats["peak_bytes"],
        stats["peak_reserved_bytes"],
        peak_of(data)[1],
        argument_bytes,
        kept - left,
        left,
        {name: peak for name, _, peak, _ in phase_peaks(data)}
        | {f"workspace {name!r}": peak for name, _, peak, _ in scope_peaks(data)},
        tuple(Maker(*each) for each in makers_at_peak(data)),
        trace.dropped,
    )


def check_computed(result: Any) -> None:
    if inspect.isgenerator(result) or inspect.iscoroutine(result):
        msg = (
            f"fn returned a {type(result).__name__}, which has computed nothing yet; "
            "give a function that runs it to its end"
        )
        raise TypeError(msg)

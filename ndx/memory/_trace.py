"""Recordings of memory, as users see them."""

from __future__ import annotations

import os
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from ndx._files.replace import written_whole
from ndx._lib.options import at_least
from ndx._lib.sizes import format_size
from ndx._lib.text import Text, preformatted
from ndx._recording.recorder import Recorder
from ndx.backends._pressure import release_on_disk
from ndx.memory._events import list_events, read_log
from ndx.memory._timeline import peak_of, summary_text

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Any, Self

    from ndx._typing import TextPath
    from ndx.memory._events import Event

__all__ = ["Trace", "record"]

# Characters of a page that a notebook stores.
_LARGEST_SHOWN = 4_000_000
_FORMATS = (".html", ".json")


def _writer_for(path):
    """Return the function that writes the text for this file name."""
    suffix = os.path.splitext(os.fspath(path))[1].lower()
    if suffix == ".html":
        from ndx.memory._page import html_page

        return html_page
    if suffix == ".json":
        from ndx.memory._chrome import chrome_json

        return chrome_json
    msg = (
        f"can't save a trace as {os.fspath(path)!r}: the suffix says the "
        f"format, and is one of {', '.join(_FORMATS)}"
    )
    raise ValueError(msg)


class Trace:
    """A recording of memory, made by `ndx.memory.record`.

    Parameters
    ----------
    max_events : int
        See `ndx.memory.record`.
    stacks : int
        See `ndx.memory.record`.
    """

    def __init__(self, max_events: int = 100_000, stacks: int = 1) -> None:
        self._recorder = Recorder(
            at_least(max_events, "max_events", 16), at_least(stacks, "stacks", 0)
        )
        self._started = None
        self._data = None

    def __enter__(self) -> Self:
        if self._started is not None:
            msg = "a trace records once; make another by ndx.memory.record()"
            raise RuntimeError(msg)
        self._started = time.time()
        self._recorder.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._recorder.stop()

    def __repr__(self):
        if self._started is None:
            return "<Trace: not started>"
        data = self.to_dict()
        state = "" if self._recorder.log.end else " so far"
        return (
            f"<Trace: {len(data['arrays']['born'])} arrays in "
            f"{data['end'] / 1e9:.3g} s{state}, peak {format_size(self.peak_bytes)}>"
        )

    def _repr_html_(self):
        """Return the display in a notebook: the page of `save`, unless it is large."""
        if self._started is None:
            return preformatted(repr(self))
        import html

        page = _writer_for("trace.html")(self.to_dict())
        if len(page) > _LARGEST_SHOWN:
            note = "(too large to be shown here; see Trace.save)"
            return preformatted(f"{self!r} {note}\n{self.summary()}")
        return (
            f'<iframe srcdoc="{html.escape(page)}" width="100%" height="640" '
            'style="border: 0" sandbox="allow-scripts"></iframe>'
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the whole recording, in a form that JSON can hold.

        Returns
        -------
        dict
            Times are whole nanoseconds since the start. Entries of tables are given by
            number, None for "none". ``started`` (ISO 8601, UTC), ``end``;
            ``complete_from``: if the log was full, arrays that died before this time
            are forgotten (``dropped``), and ``missed`` arrays were not recorded.

            The tables: ``backends`` (``name``, ``limit``), ``workspaces`` (``name``,
            ``slot``), ``segments`` of pools (``backend``, ``address``, ``size``,
            ``type``), ``threads``, ``lines`` ("file:line in function"), ``stacks``
            (lists of numbers of lines, innermost first), ``shapes``, ``dtypes``.

            ``arrays``, a dict of columns of equal length, in the order of births:
            ``born``, ``died`` (None: alive at the end), ``stale`` (the end of its
            scope, if an export kept its memory), ``nbytes``,
            ``address``, ``backend``, ``workspace``, ``generation``, ``place``,
            ``shape``, ``dtype``, ``stack``, ``thread``, ``freed``, ``before`` (number
            of the array that escaped to become this one), ``segment``.
            See `Event` for the strings.

            ``scopes``, columns: ``begin``, ``end``, ``workspace``, ``generation``,
            ``size`` (of the arena), ``thread``.

            ``phases``, columns: ``begin``, ``end``, ``name`` (a number of the table
            ``phase_names``), ``thread``: runs of `ndx.memory.profile`.

            ``memory``, columns: ``time``, ``backend``, ``allocated``, ``reserved``.

        Examples
        --------
        >>> import ndx
        >>> with ndx.memory.record() as trace:
        ...     x = ndx.ones((2, 3))
        >>> data = trace.to_dict()
        >>> data["arrays"]["nbytes"], data["shapes"]
        ([48], [[2, 3]])
        """
        if self._data is not None:
            return self._data
        self._check_started()
        ended = self._recorder.log.end
        data = read_log(self._recorder)
        started = datetime.fromtimestamp(self._started, UTC)
        data["started"] = started.isoformat(timespec="milliseconds")
        if ended:
            self._data = data
        return data

    @property
    def events(self) -> list[Event]:
        """All events, as a list of `Event` ordered by time.

        Examples
        --------
        >>> import ndx
        >>> with ndx.memory.record() as trace:
        ...     x = ndx.ones(1000)
        ...     del x
        >>> [(event.kind, event.nbytes, event.freed) for event in trace.events]
        [('allocate', 8000, 'dropped'), ('free', 8000, 'dropped')]
        """
        return list_events(self.to_dict())

    @property
    def peak_bytes(self) -> int:
        """The peak of live bytes of recorded arrays."""
        return peak_of(self.to_dict())[1]

    @property
    def dropped(self) -> int:
        """Number of arrays that a full log forgot, or did not record.

        The newest are kept: nothing is missing from ``to_dict()["complete_from"]`` on,
        unless live arrays fill nearly all of the log.
        """
        return self._recorder.log.dropped + self._recorder.log.missed

    def summary(self, makers: int = 10) -> str:
        """Return a table of the peak, with the lines that made its arrays.

        Parameters
        ----------
        makers : int
            The greatest number of lines.

        Returns
        -------
        str
            Text for people.

        Examples
        --------
        >>> import ndx
        >>> with ndx.memory.record() as trace:
        ...     x = ndx.ones(1000)
        >>> print(trace.summary())  # doctest: +ELLIPSIS
        1 arrays in ... s; peak 7.812 KiB in 1 arrays at ... s
        ...
        """
        return Text(summary_text(self.to_dict(), at_least(makers, "makers", 0)))

    def check_path(self, path: TextPath) -> None:
        """Check that `save` can write a file of this name, before the recording.

        Parameters
        ----------
        path : str or os.PathLike

        Raises
        ------
        ValueError
            If its suffix is none of a format, or its folder can't be written to.
        """
        _writer_for(path)
        folder = os.path.dirname(os.path.abspath(path))
        if not os.access(folder, os.W_OK):
            msg = (
                f"can't write {os.fspath(path)!r}: {folder!r} is no folder that can be "
                "written to"
            )
            raise ValueError(msg)

    def save(self, path: TextPath) -> None:
        """Write the trace to a file.

        Parameters
        ----------
        path : str or os.PathLike
            ``.html``: one self-contained page for any browser, with memory over time
            and each array. ``.json``: Chrome's trace event format, for Perfetto
            (https://ui.perfetto.dev) and other viewers.

        Raises
        ------
        ValueError
            If the suffix is not one of these.

        Examples
        --------
        >>> import ndx, os, tempfile
        >>> with ndx.memory.record() as trace:
        ...     x = ndx.ones(1000)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     trace.save(os.path.join(folder, "trace.html"))
        """
        data = _writer_for(path)(self.to_dict()).encode()
        with written_whole(path, len(data), release_on_disk) as file:
            file.write(data)

    def plot(self, ax: Any = None) -> Any:
        """Draw memory over time with matplotlib (``pip install 'ndxarray[plot]'``).

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            The axes to draw in; default: a new figure.

        Returns
        -------
        matplotlib.axes.Axes
            Axes with the stacked bytes of the makers at the peak, and the bytes that
            the backends hold.

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        """
        from ndx.memory._plot import plot_trace

        return plot_trace(self.to_dict(), ax)

    def _check_started(self):
        if self._started is None:
            msg = "the trace has not started; enter it: with ndx.memory.record() as t:"
            raise RuntimeError(msg)


def record(max_events: int = 100_000, stacks: int = 1) -> Trace:
    """Context manager: record the births and deaths of arrays.

    Parameters
    ----------
    max_events : int
        The greatest number of events, about 120 bytes each. Beyond it, the arrays that
        died first are forgotten; `Trace.dropped` counts them.
    stacks : int
        The number of lines of the call stack for each array; 1: the innermost line
        outside of ndx, 0: none.

    Returns
    -------
    Trace
        Birth and death of every block, in all threads, and the scopes of workspaces.

    Notes
    -----
    Recordings may nest and overlap. They keep no arrays alive. During a recording an
    array costs a microsecond more; without one, nothing.

    Examples
    --------
    >>> import ndx
    >>> with ndx.memory.record() as trace:
    ...     with ndx.workspace("step"):
    ...         x = ndx.ones((100, 10))
    >>> trace.peak_bytes
    8000
    >>> trace.events[1].workspace, trace.events[1].shape, trace.events[1].freed
    ('step', (100, 10), 'scope end')
    """
    return Trace(max_events, stacks)

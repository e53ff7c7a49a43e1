"""Memory in use, as a table for people and as data for tools."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from ndx._lib.device import device_of
from ndx._lib.sizes import format_size
from ndx._lib.text import Text
from ndx.backends import _pressure, get
from ndx.backends._budget import (
    gpu_limits,
    gpu_reserved,
    process_limit,
    process_peak,
    process_reserved,
    resident_bound,
    resident_nbytes,
)
from ndx.memory._torch_snapshot import history_of

if TYPE_CHECKING:
    from typing import Any

    from ndx._typing import BackendLike

__all__ = ["snapshot", "summary"]


def _pools(backend):
    if backend is None:
        return sorted(_pressure.live_pools(), key=lambda each: each.name)
    return [get(backend)]


def summary(backend: BackendLike | None = None) -> str:
    """Return a table of memory in use: of one backend or, for None, of all.

    Backends that have served no request are left out. So are adaptors: the requests
    that they pass on count in the row of the backend inside.

    Parameters
    ----------
    backend : str or ndx.backends.Backend, optional
        Default: every backend with a pool that has made an array.

    Examples
    --------
    >>> import ndx
    >>> x = ndx.zeros(1000)
    >>> print(ndx.memory.summary("host").splitlines()[0].split())
    ['backend', 'pool', 'allocated', 'peak', 'cached', 'reserved', 'limit', 'hits']
    """
    names = ("allocated", "peak", "cached", "reserved", "limit")
    columns = "".join(f"{name:>12}" for name in names)
    lines = [f"{'backend':<16}{'pool':<10}{columns}{'hits':>8}"]
    short = []
    for each in (
        sorted(_pressure.counting_backends(), key=lambda each: str(each.name))
        if backend is None
        else [get(backend)]
    ):
        stats = each.stats()
        events = each.events() if hasattr(each, "events") else {"hits": 0}
        requests = stats["total_allocations"]
        if backend is None and not requests:
            continue
        hits = f"{events['hits'] / requests:.1%}" if requests else "-"
        sizes = [
            stats["allocated_bytes"],
            stats["peak_bytes"],
            stats.get("cached_bytes", 0),
            stats["reserved_bytes"],
        ]
        cells = [format_size(size) for size in sizes]
        cells.append("-" if each.limit is None else format_size(each.limit))
        lines.append(
            f"{each.name!s:<16}{getattr(each, 'kind', '-'):<10}"
            + "".join(f"{cell:>12}" for cell in cells)
            + f"{hits:>8}"
        )
        relief = each.relief()
        if relief["refused_requests"]:
            short.append(_relief_line(each, relief))
    whole = process_limit()
    peak, peak_time = process_peak()
    at = "" if peak_time is None else time.strftime(" (%X)", time.localtime(peak_time))
    lines += short
    lines.append(
        f"ndx: {format_size(process_reserved())} reserved, at most "
        f"{format_size(peak)}{at}, limit "
        + ("-" if whole is None else format_size(whole))
    )
    bound = resident_bound()
    if bound is not None:
        lines.append(
            "the process, with Python and other libraries: "
            f"{format_size(resident_nbytes())} in memory, limit {format_size(bound)}"
        )
    lines += [
        f"{device_of(gpu)}: {format_size(gpu_reserved(gpu))} reserved by all backends, "
        f"limit {format_size(nbytes)}"
        for gpu, nbytes in gpu_limits().items()
    ]
    return Text("\n".join(lines))


def _relief_line(backend, relief):
    helped = ", ".join(
        f"{name.removeprefix('helped_by_')} {count:,}"
        for name, count in relief.items()
        if name.startswith("helped_by_") and count
    )
    return (
        f"{backend.name} was short of memory for {relief['refused_requests']:,} "
        f"requests: served after {helped or 'none'}; refused "
        f"{relief['out_of_memory_errors']:,}; {relief['relief_seconds']:.3g} s"
    )


def snapshot(backend: BackendLike | None = None) -> dict[str, Any]:
    """Return all segments and blocks, in the schema of PyTorch's memory snapshots.

    Returns
    -------
    dict
        ``segments``, each with ``address``, ``total_size``, ``blocks`` and so on;
        ``device_traces``: during a recording of `ndx.memory.record`, the events since
        its start for each backend (a segment's ``device`` is its number), ordered by
        time. PyTorch's memory viewer opens a pickle of it.

    Notes
    -----
    An event has ``action`` (``"alloc"`` or ``"free_completed"``), ``addr``, ``size``,
    ``stream`` and ``time_us`` (since 1970); an ``"alloc"``, and a live block, also has
    ``frames``. ``record(stacks=...)`` sets the number of frames.

    A recording contains arrays. Sizes are the requested ones, arrays in the arena of a
    workspace are events (the arena itself is none), and buffers that are not arrays are
    missing. Unknown are streams (0 stands for all), the code that frees, the lifetimes
    of segments, and failed requests.

    Examples
    --------
    >>> import ndx
    >>> x = ndx.zeros(1000)
    >>> segment = ndx.memory.snapshot("host")["segments"][0]
    >>> segment["total_size"] == sum(block["size"] for block in segment["blocks"])
    True
    """
    segments, pools = [], _pools(backend)
    traces, alive = history_of(pools)
    for number, each in enumerate(pools):
        for segment in each.snapshot() if hasattr(each, "snapshot") else ():
            segment["device"] = number
            for block in segment["blocks"]:
                block["frames"] = alive[number].get(block["address"], [])
            segments.append(segment)
    return {"segments": segments, "device_traces": traces}

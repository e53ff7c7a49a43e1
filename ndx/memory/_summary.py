"""What is held, for people and for tools."""

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

__all__ = ["snapshot", "summary"]


def _pools(backend):
    if backend is None:
        return sorted(_pressure.live_pools(), key=lambda each: each.name)
    return [get(backend)]


def summary(backend=None):
    """Return a table of what is held: of one backend or, for None, of all pools.

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
    for each in _pools(backend):
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
            f"{each.name:<16}{getattr(each, 'kind', '-'):<10}"
            + "".join(f"{cell:>12}" for cell in cells)
            + f"{hits:>8}"
        )
    whole = process_limit()
    lines.append(
        f"the process: {format_size(process_reserved())} reserved, at most "
        f"{format_size(process_peak())}, limit "
        + ("-" if whole is None else format_size(whole))
    )
    bound = resident_bound()
    if bound is not None:
        lines.append(
            f"with Python and other libraries: {format_size(resident_nbytes())} in "
            f"memory, limit {format_size(bound)}"
        )
    lines += [
        f"cuda:{gpu - 1}: {format_size(gpu_reserved(gpu))} reserved by all backends, "
        f"limit {format_size(nbytes)}"
        for gpu, nbytes in gpu_limits().items()
    ]
    return Text("\n".join(lines))


def snapshot(backend=None):
    """Return all segments and blocks, in the schema of PyTorch's memory snapshots.

    Returns
    -------
    dict
        ``segments``, each with ``address``, ``total_size``, ``blocks`` and so on;
        ``device_traces``: while `ndx.memory.record` goes on, for each backend (its
        number is a segment's ``device``) the events since then, in the order of time.
        A pickle of it opens in PyTorch's memory viewer.

    Notes
    -----
    An event has ``action`` (``"alloc"`` or ``"free_completed"``), ``addr``, ``size``,
    ``stream``, ``time_us`` (since 1970) and ``frames``, of an ``"alloc"``; so have live
    blocks. ``record(stacks=...)`` says how many frames are kept.

    What is recorded is arrays. So sizes are what was asked for, arrays in the arena of
    a workspace are events too (and the arena itself is none), and buffers that are not
    arrays have none. Not known are streams (0 stands for all), who freed, when segments
    came and went, and requests that failed.

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

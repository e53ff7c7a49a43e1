"""Counters of memory in Prometheus' text format."""

from __future__ import annotations

from ndx._lib.text import Text
from ndx.backends import _budget, _pressure

__all__ = ["prometheus"]

# Name of a metric -> (type, key of the counters of a backend, help).
_METRICS = {
    "allocated_bytes": ("gauge", "allocated_bytes", "Bytes of live ranges"),
    "allocated_count": ("gauge", "allocated_count", "Live ranges"),
    "peak_allocated_bytes": ("gauge", "peak_bytes", "Peak of allocated_bytes"),
    "peak_allocated_time_seconds": (
        "gauge", "peak_time", "When that was, in seconds since 1970"),
    "peak_allocated_count": ("gauge", "peak_count", "Peak of allocated_count"),
    "reserved_bytes": ("gauge", "reserved_bytes", "Bytes held from the system"),
    "peak_reserved_bytes": (
        "gauge", "peak_reserved_bytes", "Peak of reserved_bytes"),
    "peak_reserved_time_seconds": (
        "gauge", "peak_reserved_time", "When that was, in seconds since 1970"),
    "cached_bytes": ("gauge", "cached_bytes", "Bytes held, but not in use"),
    "limit_bytes": ("gauge", "limit", "Bound on reserved_bytes"),
    "allocations_total": ("counter", "total_allocations", "Requests that were served"),
    "allocated_bytes_total": ("counter", "total_bytes", "Bytes of these requests"),
    "cache_hits_total": ("counter", "hits", "Requests served from held memory"),
    "cache_misses_total": ("counter", "misses", "Requests that took new memory"),
    "system_allocations_total": (
        "counter", "system_allocations", "Requests to the system"),
    "system_frees_total": ("counter", "system_frees", "Releases to the system"),
    "refused_requests_total": (
        "counter", "refused_requests", "Requests refused at first"),
    "out_of_memory_errors_total": (
        "counter", "out_of_memory_errors", "Requests that were never served"),
    "relief_seconds_total": (
        "counter", "relief_seconds", "Time spent on refused requests"),
    # One for each remedy, whose keys begin with `_HELPED`.
    "relieved_requests_total": (
        "counter", None, "Refused requests that were served, by what helped"),
}  # fmt: skip
_HELPED = "helped_by_"


def prometheus() -> str:
    """Return the counters of all backends in Prometheus' text format.

    Returns
    -------
    str
        Metrics whose names begin with ``ndx_``, with the labels ``backend`` (its name)
        and ``number`` (in the order in which backends were made; none has that of
        another one); the bytes of all of ndx and of the process. Sizes are in bytes,
        times in seconds.

    Notes
    -----
    Serve it at a path of the program's own web server, or write it to a file for the
    textfile collector of Prometheus' node exporter. Backends that have served no
    request are left out, and so are adaptors. Reference: Prometheus, "Text-based
    format", https://prometheus.io/docs/instrumenting/exposition_formats/.

    Examples
    --------
    >>> import ndx
    >>> x = ndx.ones(1000)
    >>> "ndx_allocated_bytes{backend=" in ndx.memory.prometheus()
    True
    """
    samples = {}
    for number, each in _pressure.numbered_backends():
        counters = each.stats()
        if not counters["total_allocations"]:
            continue
        counters |= each.relief()
        if _pressure.is_pool(each):
            counters |= each.events()
        name = _escaped(str(each.name))
        labels = f'backend="{name}",number="{number}"'
        for metric, (_, key, _) in _METRICS.items():
            if counters.get(key) is not None:
                _add(samples, metric, labels, counters[key])
        for key, count in counters.items():
            if key.startswith(_HELPED):
                remedy = f'{labels},remedy="{key.removeprefix(_HELPED)}"'
                _add(samples, "relieved_requests_total", remedy, count)
    lines = []
    peak, peak_time = _budget.process_peak()
    for metric, (kind, _, words) in _METRICS.items():
        if metric in samples:
            lines += _heading(metric, kind, words)
            lines += samples[metric]
    for metric, value, words in (
        (
            "all_reserved_bytes",
            _budget.process_reserved(),
            "Bytes of the machine's memory that all backends hold",
        ),
        ("all_peak_reserved_bytes", peak, "Peak of these bytes"),
        (
            "all_peak_reserved_time_seconds",
            peak_time,
            "When that was, in seconds since 1970",
        ),
        ("all_limit_bytes", _budget.process_limit(), "Bound on these bytes"),
        ("process_resident_bytes", _budget.resident_nbytes(), "Bytes of the process"),
    ):
        if value is not None:
            lines += [*_heading(metric, "gauge", words), f"ndx_{metric} {value}"]
    return Text("\n".join(lines) + "\n")


def _add(samples, metric, labels, value):
    samples.setdefault(metric, []).append(f"ndx_{metric}{{{labels}}} {value}")


def _heading(metric, kind, words):
    return [f"# HELP ndx_{metric} {words}.", f"# TYPE ndx_{metric} {kind}"]


def _escaped(name):
    return name.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")

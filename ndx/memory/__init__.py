"""Memory in use, its limits, and callbacks for when it is short.

Sizes are in bytes. A workspace counts with the backend of its arena;
``ndx.workspace(name).stats()`` describes its content.
"""

from ndx._api.public import name_functions as _name_functions
from ndx._blocks.block import TRACEMALLOC_DOMAIN
from ndx._context.context import replace_default
from ndx._context.use import explain_error
from ndx._lib.collector import gc_window, periodic_gc
from ndx._lib.damage import Damage
from ndx._workspaces.listing import destroy_all, workspace_summary, workspaces
from ndx._workspaces.registry import debug_mode, default_workspace_config
from ndx.backends._pressure import add_callback as on_oom
from ndx.backends._pressure import remove_callback as remove_on_oom
from ndx.backends.adaptors import (
    Adaptor,
    FailureCallbackAdaptor,
    LimitingAdaptor,
    LoggingAdaptor,
    TrackingAdaptor,
)
from ndx.memory._counters import (
    MemoryInfo,
    ProcessInfo,
    allocated,
    caches,
    empty_cache,
    info,
    max_allocated,
    max_reserved,
    process_info,
    reserved,
    reset_peak,
    stats,
    trim,
)
from ndx.memory._estimate import Estimate, Maker, estimate
from ndx.memory._events import Event
from ndx.memory._fit import Fit, Run, fit
from ndx.memory._guards import check
from ndx.memory._limits import headroom, limit, limits, reserve, set_limit, set_limits
from ndx.memory._live import Live, LiveMemory, live, track
from ndx.memory._peak_model import PeakLine, PeakModel
from ndx.memory._prometheus import prometheus
from ndx.memory._recipes import BackendRecipe
from ndx.memory._report import report, report_to
from ndx.memory._statistics import Statistics, profile, profile_report, statistics
from ndx.memory._summary import snapshot, summary
from ndx.memory._trace import Trace, record

__all__ = [
    "TRACEMALLOC_DOMAIN",
    "Adaptor",
    "BackendRecipe",
    "Damage",
    "Estimate",
    "Event",
    "FailureCallbackAdaptor",
    "LimitingAdaptor",
    "Fit",
    "Live",
    "LiveMemory",
    "LoggingAdaptor",
    "Maker",
    "MemoryInfo",
    "PeakLine",
    "PeakModel",
    "ProcessInfo",
    "Run",
    "Statistics",
    "Trace",
    "TrackingAdaptor",
    "allocated",
    "caches",
    "check",
    "debug_mode",
    "default_workspace_config",
    "destroy_all",
    "empty_cache",
    "estimate",
    "explain_error",
    "fit",
    "gc_window",
    "headroom",
    "info",
    "limit",
    "limits",
    "live",
    "max_allocated",
    "max_reserved",
    "on_oom",
    "periodic_gc",
    "process_info",
    "profile",
    "profile_report",
    "prometheus",
    "record",
    "remove_on_oom",
    "replace_default",
    "report",
    "report_to",
    "reserve",
    "reserved",
    "reset_peak",
    "set_limit",
    "set_limits",
    "snapshot",
    "statistics",
    "stats",
    "summary",
    "track",
    "trim",
    "workspace_summary",
    "workspaces",
]


_name_functions(globals())


def __dir__():
    return __all__

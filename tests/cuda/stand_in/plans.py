"""cuFFT's plans of the stand-in: what captured transforms go on using.

A plan has memory of the allocator's, in which transforms work. CuPy keeps the last 16
of each thread. Whoever transforms by one that is gone, in a graph, reads what is freed.
"""

import collections
import ctypes
import threading
import types

import numpy as np

from .host_memory import CUDARuntimeError
from .standin import _allocate, machine, real

WORKING = 0xEE
MOST = 16
_of_threads = threading.local()
_alive = set()


class Plan:
    def __init__(self, nbytes):
        self.work_area = _allocate(nbytes)
        self.work = self.work_area.ptr, nbytes
        self.number = machine.handle()
        _alive.add(self.number)

    def __del__(self):
        _alive.discard(self.number)


class PlanCache:
    def __init__(self):
        self.nodes = collections.OrderedDict()

    def __iter__(self):
        return iter(
            (key, types.SimpleNamespace(key=key, plan=plan))
            for key, plan in self.nodes.items()
        )

    def clear(self):
        self.nodes.clear()

    def plan_for(self, key, nbytes):
        if key in self.nodes:
            self.nodes.move_to_end(key)
        else:
            self.nodes[key] = Plan(nbytes)
            while len(self.nodes) > MOST:
                self.nodes.popitem(last=False)
        return self.nodes[key]


def get_plan_cache():
    """Return the plans of this thread, for the current GPU."""
    caches = vars(_of_threads)
    return caches.setdefault(str(machine.device), PlanCache())


def planned(name, function):
    """Return a transform of NumPy's that uses a plan."""

    def use(x, args, kwargs):
        key = name, x.shape, x.dtype.name, repr((args, kwargs))
        plan = get_plan_cache().plan_for(key, 16 * max(x.size, 1))
        return plan.number, plan.work

    def transform(x, *args, plan, **kwargs):
        number, (address, nbytes) = plan
        if number not in _alive:
            raise CUDARuntimeError(700)  # cudaErrorIllegalAddress
        ctypes.memset(real(address, nbytes), WORKING, nbytes)
        return function(np.asarray(x), *args, **kwargs)

    transform.__name__ = name
    return use, transform


config = types.ModuleType("cupy.fft.config")
config.get_plan_cache = get_plan_cache

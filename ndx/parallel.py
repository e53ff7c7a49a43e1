"""Workers for loops: a workspace for each, results in order, nothing left behind.

map            a function of many items, in threads or processes
share          an array that processes see without a copy
train          data-parallel training, averaged every few steps
Predictor      inference for many threads, in batches

Examples
--------
>>> import ndx
>>> list(ndx.parallel.map(ndx.sum, [ndx.ones(3), ndx.ones(4)], workers=2))
[NDArray(3.), NDArray(4.)]
"""

from ndx._pipelines.mapping import Results, map
from ndx._pipelines.predicting import Predictor
from ndx._pipelines.sharing import share
from ndx._pipelines.training import Trained, train

__all__ = ["Predictor", "Results", "Trained", "map", "share", "train"]

# Users see, and pickles name, the public address.
for _name in __all__:
    globals()[_name].__module__ = __name__


def __dir__() -> list[str]:
    return __all__

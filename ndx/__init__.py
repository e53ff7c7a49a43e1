"""ndx: the array library whose memory you control.

The module is a namespace of the Python Array API standard 2025.12. Its arrays are
`ndx.NDArray`; where they live is chosen by context.

Where to begin
--------------
ndx.asarray, zeros, arange, ...    make arrays; ndx.exp, sum, matmul, ... compute
ndx.linalg, fft, random            chapters of their own
ndx.use("mmap", limit="200GiB")    a backend for what is made in a scope
ndx.workspace("step")              memory that each turn of a loop uses again
ndx.memory.summary()               what is held; limits, peaks, recordings
ndx.open, save, load               arrays in files
ndx.backends                       kinds of memory, and those of your own

``help(ndx.sum)`` explains a function, ``dir(ndx)`` lists all names. ``import *`` leaves
out names that Python has itself, such as `abs`, `open` and `sum`.

Examples
--------
>>> import ndx
>>> x = ndx.asarray([[1.0, 2.0], [3.0, 4.0]])
>>> ndx.sum(x, axis=0)
NDArray([4., 6.])
>>> with ndx.workspace("step"):
...     loss = ndx.sum(ndx.exp(x)).detach()
"""

import sys as _sys
from math import e, inf, nan, pi

from ndx import _built, _elementwise, backends, cuda, fft, linalg, memory, random
from ndx._broadcasting import *
from ndx._capi import get_include
from ndx._context import set_default
from ndx._core import NDArray
from ndx._core import set_namespace as _set_namespace
from ndx._creation import *
from ndx._data_types import *
from ndx._device import Device
from ndx._devices import install as _install_devices
from ndx._dispatch import synchronize, waitall
from ndx._elementwise import *
from ndx._errors import (
    DeviceError,
    MappedFileError,
    OutOfMemoryError,
    StaleArrayError,
    WorkspaceError,
)
from ndx._indexing_functions import *
from ndx._info import __array_namespace_info__
from ndx._joining import *
from ndx._linear_algebra import *
from ndx._manipulation import *
from ndx._other_names import missing_name as _missing_name
from ndx._parts import *
from ndx._passes.settings import passes
from ndx._persistence import *
from ndx._public import name_functions as _name_functions
from ndx._public import public_names as _public_names
from ndx._public import star_names as _star_names
from ndx._ranges import *
from ndx._searching import *
from ndx._serving import current_backend
from ndx._sets import *
from ndx._sorting import *
from ndx._statistical import *
from ndx._ufunc_protocol import register_ufuncs as _register_ufuncs
from ndx._use import no_workspace, use
from ndx._utility import *
from ndx._views import *
from ndx._workspaces.config import WorkspaceConfig
from ndx._workspaces.registry import workspace
from ndx._workspaces.workspace import Workspace

__array_api_version__ = "2025.12"
__version__ = "0.1.0"
newaxis = None

_set_namespace(_sys.modules[__name__], (__array_api_version__,))
_register_ufuncs([*_elementwise.UFUNCS, "matmul", "rint"])
_install_devices(_sys.modules[__name__])
_name_functions(_sys.modules[__name__], linalg, fft, random, memory, backends, cuda)
# Without `abs`, `open`, `sum` and so on: these would replace Python's.
__all__ = _star_names(globals())


def __dir__():
    return _public_names(globals())


def __getattr__(name):
    raise _missing_name(__name__, name)

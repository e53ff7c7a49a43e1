"""ndx: the array library whose memory you control.

The module is a namespace of the Python Array API standard. Where its arrays live is
chosen by context: `use` a backend, or a `workspace`.
"""

import sys as _sys
from math import e, inf, nan, pi

from ndx import _elementwise, backends, cuda, fft, linalg, memory, random
from ndx._broadcasting import *
from ndx._capi import get_include
from ndx._context import no_workspace, set_default, use
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
from ndx._parts import *
from ndx._passes.settings import passes
from ndx._persistence import *
from ndx._ranges import *
from ndx._searching import *
from ndx._serving import current_backend
from ndx._sets import *
from ndx._sorting import *
from ndx._statistical import *
from ndx._ufunc_protocol import register_ufuncs as _register_ufuncs
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

"""ndx: the array library whose memory you control."""

from math import e as e
from math import inf as inf
from math import nan as nan
from math import pi as pi

from ndx import backends as backends
from ndx import cuda as cuda
from ndx import fft as fft
from ndx import linalg as linalg
from ndx import memory as memory
from ndx import random as random
from ndx._broadcasting import *
from ndx._capi import get_include as get_include
from ndx._context import set_default as set_default
from ndx._core import NDArray as NDArray
from ndx._creation import *
from ndx._data_types import *
from ndx._device import Device as Device
from ndx._dispatch import synchronize as synchronize
from ndx._dispatch import waitall as waitall
from ndx._elementwise import *
from ndx._errors import DeviceError as DeviceError
from ndx._errors import MappedFileError as MappedFileError
from ndx._errors import OutOfMemoryError as OutOfMemoryError
from ndx._errors import StaleArrayError as StaleArrayError
from ndx._errors import WorkspaceError as WorkspaceError
from ndx._indexing_functions import *
from ndx._info import __array_namespace_info__ as __array_namespace_info__
from ndx._joining import *
from ndx._linear_algebra import *
from ndx._manipulation import *
from ndx._parts import *
from ndx._passes.settings import passes as passes
from ndx._persistence import *
from ndx._ranges import *
from ndx._searching import *
from ndx._serving import current_backend as current_backend
from ndx._sets import *
from ndx._sorting import *
from ndx._statistical import *
from ndx._use import no_workspace as no_workspace
from ndx._use import use as use
from ndx._utility import *
from ndx._views import *
from ndx._workspaces.config import WorkspaceConfig as WorkspaceConfig
from ndx._workspaces.registry import workspace as workspace
from ndx._workspaces.workspace import Workspace as Workspace

__array_api_version__: str
__version__: str
newaxis: None

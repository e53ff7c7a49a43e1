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
from ndx._api.creation import *
from ndx._api.creation_from_data import *
from ndx._api.creation_matrices import *
from ndx._api.creation_ranges import *
from ndx._api.data_types import *
from ndx._api.elementwise import *
from ndx._api.elementwise_parts import *
from ndx._api.file_io import *
from ndx._api.indexing import *
from ndx._api.inspection import __array_namespace_info__ as __array_namespace_info__
from ndx._api.linear_algebra import *
from ndx._api.manipulation import *
from ndx._api.manipulation_broadcasting import *
from ndx._api.manipulation_joining import *
from ndx._api.manipulation_views import *
from ndx._api.searching import *
from ndx._api.sets import *
from ndx._api.sorting import *
from ndx._api.statistical import *
from ndx._api.utility import *
from ndx._array.dispatch import synchronize as synchronize
from ndx._array.dispatch import waitall as waitall
from ndx._capi import get_include as get_include
from ndx._compute.passes.settings import passes as passes
from ndx._context.context import set_default as set_default
from ndx._context.placement import current_backend as current_backend
from ndx._context.use import no_workspace as no_workspace
from ndx._context.use import use as use
from ndx._core import NDArray as NDArray
from ndx._lib.device import Device as Device
from ndx._lib.errors import DeviceError as DeviceError
from ndx._lib.errors import MappedFileError as MappedFileError
from ndx._lib.errors import OutOfMemoryError as OutOfMemoryError
from ndx._lib.errors import StaleArrayError as StaleArrayError
from ndx._lib.errors import WorkspaceError as WorkspaceError
from ndx._workspaces.config import WorkspaceConfig as WorkspaceConfig
from ndx._workspaces.registry import workspace as workspace
from ndx._workspaces.workspace import Workspace as Workspace

__array_api_version__: str
__version__: str
newaxis: None

"""CUDA's driver, as far as ndx calls it: memory at addresses that are reserved once.

Each function is one of C's, with the prototype of NVIDIA's documentation, as in
`cublas`. An address has memory only where a handle is mapped, with access; kernels and
copies fail elsewhere. What was mapped can be unmapped as a whole only. Memory that is
unmapped is overwritten: whoever still reads it finds that.
"""

import ctypes
import mmap
import types
from ctypes import POINTER, c_int, c_size_t, c_ulonglong, c_void_p

from .host_memory import FALSE
from .standin import machine

SUCCESS, INVALID_VALUE, OUT_OF_MEMORY = 0, 1, 2
INVALID_DEVICE, NOT_SUPPORTED = 101, 801
GRANULARITY = 2 << 20
UNMAPPED = 0xDD


class Location(ctypes.Structure):
    _fields_ = [("type", c_int), ("id", c_int)]


class Flags(ctypes.Structure):
    _fields_ = [
        ("compressionType", ctypes.c_ubyte), ("gpuDirectRDMACapable", ctypes.c_ubyte),
        ("usage", ctypes.c_ushort), ("reserved", ctypes.c_ubyte * 4),
    ]  # fmt: skip


class Properties(ctypes.Structure):
    _fields_ = [
        ("type", c_int), ("requestedHandleTypes", c_int), ("location", Location),
        ("win32HandleMetaData", c_void_p), ("allocFlags", Flags),
    ]  # fmt: skip


class Access(ctypes.Structure):
    _fields_ = [("location", Location), ("flags", c_int)]


handles = {}  # handle -> (device, bytes)
failing = {}  # name of a function -> the calls before it fails, and its status


def is_plain(properties):
    """Whether properties ask for what a GPU has, and for nothing else."""
    flags = bytes(properties.allocFlags)
    return properties.type == 1 and properties.location.type == 1 and (
        properties.requestedHandleTypes == 0 and not any(flags)
    )  # fmt: skip


def cuDeviceGet(device, ordinal):
    if not 0 <= ordinal < machine.count:
        return INVALID_DEVICE
    device[0] = ordinal
    return SUCCESS


def cuDeviceGetAttribute(value, attribute, device):
    assert attribute == 102
    value[0] = machine.maps_memory
    return SUCCESS


def cuMemGetAllocationGranularity(granularity, properties, option):
    assert option == 0
    if not is_plain(properties[0]):
        return INVALID_VALUE
    granularity[0] = GRANULARITY
    return SUCCESS


def cuMemAddressReserve(ptr, size, alignment, addr, flags):
    if size % GRANULARITY or alignment % 4096 or addr or flags:
        return INVALID_VALUE
    if size > machine.address_space:
        return OUT_OF_MEMORY
    # A page of the host is where none of CUDA's would be: at multiples of 2 MiB.
    space = mmap.mmap(-1, size + GRANULARITY)
    start = ctypes.addressof(ctypes.c_char.from_buffer(space))
    start = -(-start // GRANULARITY) * GRANULARITY
    view = (ctypes.c_char * size).from_address(start)
    view.owner = space
    machine.ranges[start + FALSE] = None, view
    machine.pages[start + FALSE] = {}
    machine.calls.append(("cuMemAddressReserve", size))
    ptr[0] = start + FALSE
    return SUCCESS


def cuMemAddressFree(ptr, size):
    if machine.pages.get(ptr, True) or len(machine.ranges[ptr][1]) != size:
        return INVALID_VALUE
    del machine.pages[ptr], machine.ranges[ptr]
    machine.calls.append(("cuMemAddressFree", size))
    return SUCCESS


def cuMemCreate(handle, size, properties, flags):
    device = properties[0].location.id
    if size % GRANULARITY or size == 0 or flags or not is_plain(properties[0]):
        return INVALID_VALUE
    if size > machine.total - machine.held[device]:
        return OUT_OF_MEMORY
    machine.held[device] += size
    handle[0] = machine.handle()
    handles[handle[0]] = device, size
    return SUCCESS


def cuMemRelease(handle):
    device, size = handles.pop(handle)
    if not any(page["handle"] == handle for page in all_pages()):
        machine.held[device] -= size
    return SUCCESS


def all_pages():
    return [page for pages in machine.pages.values() for page in pages.values()]


def cuMemMap(ptr, size, offset, handle, flags):
    start = machine.reservation(ptr, size)
    if start is None or offset or flags or handles.get(handle, (0, 0))[1] != size \
            or any(ptr < at + page["size"] and at < ptr + size
                   for at, page in machine.pages[start].items()):  # fmt: skip
        return INVALID_VALUE
    device, _ = handles[handle]
    page = {"handle": handle, "device": device, "size": size, "access": None}
    machine.pages[start][ptr] = page
    return SUCCESS


def cuMemSetAccess(ptr, size, desc, count):
    start = machine.reservation(ptr, size)
    if start is None or count != 1 or desc[0].location.type != 1:
        return INVALID_VALUE
    found = machine.pages_of(start, ptr, size)
    if found is None:
        return INVALID_VALUE
    for page in found:
        page["access"] = desc[0].location.id if desc[0].flags == 3 else None
    return SUCCESS


def cuMemUnmap(ptr, size):
    start = machine.reservation(ptr, size)
    page = None if start is None else machine.pages[start].get(ptr)
    if page is None or page["size"] != size:
        return INVALID_VALUE
    del machine.pages[start][ptr]
    ctypes.memset(ptr - FALSE, UNMAPPED, size)
    if page["handle"] not in handles:
        machine.held[page["device"]] -= size
    machine.calls.append(("cuMemUnmap", size))
    return SUCCESS


pointer = c_ulonglong
PROTOTYPES = {
    cuDeviceGet: (POINTER(c_int), c_int),
    cuDeviceGetAttribute: (POINTER(c_int), c_int, c_int),
    cuMemGetAllocationGranularity: (POINTER(c_size_t), POINTER(Properties), c_int),
    cuMemAddressReserve: (
        POINTER(pointer), c_size_t, c_size_t, pointer, c_ulonglong),
    cuMemAddressFree: (pointer, c_size_t),
    cuMemCreate: (POINTER(c_ulonglong), c_size_t, POINTER(Properties), c_ulonglong),
    cuMemRelease: (c_ulonglong,),
    cuMemMap: (pointer, c_size_t, c_size_t, c_ulonglong, c_ulonglong),
    cuMemSetAccess: (pointer, c_size_t, POINTER(Access), c_size_t),
    cuMemUnmap: (pointer, c_size_t),
}  # fmt: skip


def _of_c(function, types_):
    def call(*args):
        left, status = failing.get(function.__name__, (None, None))
        if left == 0:
            return status
        if left is not None:
            failing[function.__name__] = left - 1, status
        return function(*args)

    return ctypes.CFUNCTYPE(c_int, *types_)(call)


LIBRARY = types.SimpleNamespace(
    **{
        function.__name__: _of_c(function, types_)
        for function, types_ in PROTOTYPES.items()
    }
)

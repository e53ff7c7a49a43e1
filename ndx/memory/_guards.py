"""Damage to the memory of arrays, while it is guarded."""

from __future__ import annotations

import atexit
import math
import os
import warnings

from ndx._array.living import living
from ndx._lib.damage import Damage
from ndx._lib.guards import act
from ndx._recording.tracking import stack_of
from ndx._workspaces.workspace import damage_in_arenas
from ndx.backends import _pressure

__all__ = ["check"]

_GUARDED = bool(os.environ.get("NDX_DEBUG_MEMORY"))


def check() -> list[Damage]:
    """Look for writes around the memory of arrays, and to memory that was given back.

    With ``NDX_DEBUG_MEMORY=warn``, ``raise`` or ``abort`` in the environment, memory of
    the CPU has guard bytes before and behind it, and is filled when it is given back.
    That is compared when memory is given back or handed out again; this function
    compares all of it now, and so does the end of the process. In workspaces with
    ``debug=True`` there are guards behind arrays, whatever the environment says.

    Returns
    -------
    list of Damage
        What was found, each once: the guards are mended. Empty if there are none.

    Raises
    ------
    ndx.MemoryDamageError
        If something was found, unless the environment says otherwise.

    Warns
    -----
    RuntimeWarning
        If nothing has guards, so that there is nothing to compare. If something was
        found, with ``NDX_DEBUG_MEMORY=warn``. With ``abort``, the report goes to
        stderr, and the process aborts.

    Notes
    -----
    It reads all guards and all free memory, and stops other threads that ask a pool for
    memory meanwhile.

    Examples
    --------
    >>> import ndx
    >>> with ndx.workspace(debug=True):
    ...     x = ndx.ones(3)
    ...     ndx.memory.check()
    []
    """
    found, guarded = damage_in_arenas()
    if not (guarded or _GUARDED):
        msg = (
            "ndx.memory.check() has nothing to compare: no memory has guards. Start "
            "Python with NDX_DEBUG_MEMORY=raise, or use ndx.workspace(debug=True)"
        )
        warnings.warn(msg, RuntimeWarning, stacklevel=2)
    for backend in _pressure.live_backends():
        found += backend._damage()
    if found:
        found = _named(found)
        act(found)
    return found


if _GUARDED:
    atexit.register(check)


def _named(damages):
    """Return damages with what is known of the arrays whose memory it is."""
    arrays = {}
    for _, _, _, _, maker, shape, dtype, _, address, *_ in living()[0]:
        # Of arrays that share memory, the largest.
        if math.prod(shape) >= math.prod(arrays.get(address, ((0,),))[0]):
            arrays[address] = shape, dtype, maker
    named = []
    for each in damages:
        if each.kind != "freed" and each.address in arrays:
            shape, dtype, maker = arrays[each.address]
            line = next(iter(stack_of(maker)), each.line)
            each = each._replace(shape=shape, dtype=dtype, line=line)
        named.append(each)
    return named

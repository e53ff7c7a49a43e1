"""Call what the types of all compiled modules have, as no valid program does.

Run as a program: ``extension_types.py foreign`` passes objects of other types as
`self`, ``extension_types.py half_made`` objects that `__new__` alone has made. Each
name is printed before its calls, so that the last line tells what crashed. Fails at a
call with a foreign object that is no TypeError.
"""

import contextlib
import gc
import importlib
import sys

import numpy as np
from ndx._compiled import PLACES

import ndx

MOST = 4  # arguments beside `self`
HEAP_TYPE = 1 << 9  # Py_TPFLAGS_HEAPTYPE


class Slotted:
    __slots__ = tuple(f"field{i}" for i in range(40))


def compiled():
    """Return each compiled module of ndx."""
    return map(importlib.import_module, PLACES)


def types():
    """Return the types of all compiled modules by their names in sources."""
    found = {}
    for module in compiled():
        for name, value in vars(module).items():
            if isinstance(value, type) and value.__module__ in {module.__name__, "ndx"}:
                found[f"{module.__name__}.{name}"] = value
    return found


def is_extension(kind):
    """Whether a type is a `cdef class`: these are no objects on the heap."""
    return not kind.__flags__ & HEAP_TYPE


def uses(value):
    """Yield the ways to use an attribute of a type with `self` and more arguments."""
    if isinstance(value, (classmethod, staticmethod, type(dict.__dict__["fromkeys"]))):
        return
    if hasattr(value, "__set__"):
        yield lambda self, *_: value.__get__(self)
        yield lambda self, *args: value.__set__(self, *args)
        yield lambda self, *_: value.__delete__(self)
    elif hasattr(value, "__get__"):
        yield value


def foreign(name, kind):
    """Use all of a type with objects of other types."""
    for attribute, value in vars(kind).items():
        for use in uses(value):
            for other in (object(), None, 5, np.ones(3), Slotted(), ndx.ones(3)):
                if isinstance(other, kind):
                    continue
                print(name, attribute, type(other).__name__, flush=True)
                for count in range(MOST + 1):
                    try:
                        use(other, *[1] * count)
                    except TypeError:
                        continue
                    except Exception:
                        assert not is_extension(kind)
                        continue
                    assert not is_extension(kind)


def made(kind):
    """Return an object without a call of `__init__`; None if that is refused."""
    for count in range(8):
        with contextlib.suppress(Exception):
            return kind.__new__(kind, *[None] * count)
    return None


def half_made(name, kind):
    """Use all of a type, but for its end, with an object that is not initialized."""
    inherited = {}
    for base in reversed(kind.__mro__[:-1]):
        inherited |= vars(base)
    for attribute, value in inherited.items():
        for use in uses(value):
            print(name, attribute, flush=True)
            for count in range(MOST + 1):
                x = made(kind)
                if x is not None:
                    with contextlib.suppress(Exception):
                        use(x, *[None] * count)
                del x
    gc.collect()


if __name__ == "__main__":
    known = types()
    assert is_extension(ndx.NDArray)
    for name, kind in known.items():
        {"foreign": foreign, "half_made": half_made}[sys.argv[1]](name, kind)
    print(len(known), "types")

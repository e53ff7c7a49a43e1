"""Backends by name: those of ndx, loaded when they are asked for, and of others."""

from __future__ import annotations

import errno
import os
import threading
from importlib import import_module
from typing import TYPE_CHECKING

from ndx._lib.device import KINDS, find_device, find_kind, kind_named
from ndx._lib.errors import DeviceError
from ndx._lib.interpreter import keep_for_ever
from ndx._lib.options import option_error, options_of
from ndx.backends import _gpus
from ndx.backends._environment import (
    check_names,
    describe,
    error_of,
    is_of_environment,
    read_options,
)
from ndx.backends._pool.options import TAKE_BACKENDS
from ndx.backends.base import Backend, check_whole
from ndx.backends.python import PythonBackend

if TYPE_CHECKING:
    from collections.abc import Callable

    from ndx._typing import BackendLike, BackendOptions

__all__ = [
    "BUILTIN",
    "available",
    "get",
    "register",
    "set_environment",
    "unregister",
    "variant_of",
]

# The module and the class of each kind.
_OF_THE_HOST = {
    "host": ("host", "HostBackend"),
    "mmap": ("mmap", "MmapBackend"),
    "pinned": ("pinned", "PinnedBackend"),
    "simulated": ("simulated", "SimulatedBackend"),
}
BUILTIN = _gpus.BACKENDS | _OF_THE_HOST
_registered = {}
# For each kind: the options set by the environment, which the code's own override, and
# the variables that set them, as (name, text).
_options = {}
_variables = {}
_shared = {}
_of_thread = threading.local()


def available() -> list[str]:
    """Return the names of all known backends, sorted.

    Examples
    --------
    >>> import ndx
    >>> "host" in ndx.backends.available()
    True
    """
    names = {*BUILTIN, *_registered, *(point.name for point in _entry_points())}
    return sorted(names)


def register(name: str, factory: Callable[..., Backend]) -> None:
    """Make a backend known under a name.

    Parameters
    ----------
    name : str
        The name for ``ndx.use(name)``; a Python identifier.
    factory : callable
        Called with the options of ``ndx.use``, returns a `Backend`. A class
        derived from `PythonBackend` or `Backend` will do. If it has an attribute
        ``device_kind``, that is the kind of devices whose memory it gives: names take
        the number of a device then, ``"toy:1"``, which is the option ``device=1``.

    Raises
    ------
    ValueError
        If the name is taken, or it or that of the kind is not an identifier.
    TypeError
        If `factory` can't be called.
    """
    if not isinstance(name, str) or not name.isidentifier():
        msg = f"a backend's name must be an identifier, not {name!r}"
        raise ValueError(msg)
    if not callable(factory):
        msg = f"a backend's factory must be callable, not {type(factory).__name__}"
        raise TypeError(msg)
    if name in BUILTIN:
        msg = (
            f"{name!r} is a backend of ndx itself and can't be replaced: register "
            "yours under another name"
        )
        raise ValueError(msg)
    device_kind = getattr(factory, "device_kind", None)
    if device_kind is not None:
        kind_named(device_kind)
    if name in _registered or _registered.setdefault(name, factory) is not factory:
        msg = (
            f"backend {name!r} is already registered: take another name, or forget "
            f"that one first by ndx.backends.unregister({name!r})"
        )
        raise ValueError(msg)


def unregister(name: str) -> None:
    """Forget a backend that `register` made known; its arrays stay valid.

    Raises
    ------
    ValueError
        If `register` did not make the name known: those of ndx itself, and those of
        installed packages (entry points), stay.
    """
    if _registered.pop(name, None) is None:
        known = ", ".join(map(repr, sorted(_registered))) or "none"
        reason = "was not registered"
        if name in available():
            kind = "ndx itself" if name in BUILTIN else "an installed package"
            reason = f"is one of {kind} and can't be unregistered"
        msg = f"backend {name!r} {reason}; those that were registered: {known}"
        raise ValueError(msg)
    for each in list(_shared):
        if each.partition(":")[0] == name:
            _shared.pop(each, None)


def get(backend: BackendLike, **options: BackendOptions) -> Backend:
    """Return the backend of a name; one shared instance where no options are given.

    Parameters
    ----------
    backend : str or Backend
        A name from `available`, or a backend, which is returned as it is.
    **options
        The backend's own options, such as ``limit="2GiB"``; with any, the result
        is a new backend with its own counters. What is not given is as the
        environment says (``NDX_HOST_LIMIT=2GiB``).

    Raises
    ------
    ValueError
        If the name is unknown, or an option has a bad value.
    TypeError
        If an option is unknown, or `backend` is neither a name nor a backend.
    """
    if isinstance(backend, Backend):
        check_whole(backend)
        if options:
            msg = f"options {sorted(options)} go with a name, not with {backend!r}"
            raise TypeError(msg)
        return backend
    if not isinstance(backend, str):
        msg = (
            "a backend is given by name or as an ndx.backends.Backend, not "
            f"{type(backend).__name__}"
        )
        raise TypeError(msg)
    found = None if options else _shared.get(backend)
    if found is not None:
        return found
    backend = _canonical(backend)
    if options:
        return _create(backend, options)
    found = _shared.get(backend)
    if found is None:
        # Without a lock, since factories run code of others: of several threads that
        # make one, the first to be done has made the shared one.
        found = _shared.setdefault(backend, _create_shared(backend))
        if backend in BUILTIN:
            keep_for_ever(found)
    return found


def _create_shared(name):
    """Return a new shared instance, whose fallbacks don't lead back to it."""
    under_way = vars(_of_thread).setdefault("under_way", [])
    if name in under_way:
        msg = (
            "fallback= and evict= can't go round in a circle: "
            + " -> ".join([*under_way[under_way.index(name) :], name])
            + "; see the variables NDX_<NAME>_FALLBACK and NDX_<NAME>_EVICT"
        )
        raise ValueError(msg)
    under_way.append(name)
    try:
        return _create(name, {})
    finally:
        under_way.pop()


def is_of_ndx(backend):
    """Return whether a backend is one of ndx's own kinds, not of a class derived."""
    return type(backend) is _builtin(backend.name.partition(":")[0])


def names_set_by_environment(backend):
    """Return the names of the options that the environment sets for its kind."""
    return frozenset(_options.get(backend.name.partition(":")[0], ()))


def set_environment(environment, chosen):
    """Take options from variables, for the backends of ndx and a chosen one.

    All are known before the first instance is made, since backends have fallbacks.

    Raises
    ------
    ValueError
        If a variable is bad; it names the variable.
    """
    kinds = [*BUILTIN, *({chosen} - {*BUILTIN})]
    check_names(environment, kinds, _all_options)
    for kind in kinds:
        options, variables = read_options(environment, kind)
        if options == _options.get(kind, {}):
            continue
        _options[kind], _variables[kind] = options, variables
        for name in list(_shared):
            if name.partition(":")[0] == kind:
                _shared.pop(name, None)
    for kind in kinds:
        # The library of a device is imported only when it is used.
        if _options.get(kind) and not _is_for_devices(kind):
            get(kind)


def _all_options():
    """Return the names of all options that backends of ndx take."""
    return {option for kind in BUILTIN for option in options_of(_builtin(kind))}


def _canonical(name):
    """Return the name of a device's backend with its number; others as they are."""
    variant, colon, number = name.partition(":")
    kind = _device_kind(variant)
    if kind is None:
        return name
    return variant + find_device(f"{kind}{colon}{number}").removeprefix(kind)


def _is_for_devices(name):
    """Whether the library of a device has the memory of a backend of ndx."""
    return any(name in (*kind.backends, kind.staging) for kind in KINDS if kind.of_ndx)


def _device_kind(name):
    """Return the kind of devices whose number a backend's name takes; or None."""
    for kind in KINDS:
        if name in kind.backends and (kind.of_ndx or name not in BUILTIN):
            return kind.name
    if name in BUILTIN:
        return None
    found = getattr(_registered.get(name) or _load(name), "device_kind", None)
    return found and kind_named(found).name


def _create(name, given):
    """Return a new instance with given options, and others of the environment."""
    kind = name.partition(":")[0]
    options = {**_options.get(kind, {}), **given}
    variables = [
        variable
        for option, variable in _variables.get(kind, {}).items()
        if option not in given and option in options
    ]
    try:
        return _make(name, options)
    except DeviceError:
        raise
    except (ValueError, TypeError, OSError) as error:
        if not variables or is_of_environment(error):
            raise
        if given:
            error.add_note(f"Other options are those of {describe(variables)}")
            raise
        raise error_of(f"{describe(variables)}: {error}") from error


def _make(name, options):
    kind, _, number = name.partition(":")
    of_device = _device_kind(kind)
    if of_device is not None:
        options = {"device": int(number), **options}
        device = f"{of_device}:{options['device']}"
        for each in TAKE_BACKENDS:
            if isinstance(options.get(each), str):
                options[each] = _addressable(device, options[each])
    factory = _builtin(kind) or _registered.get(kind) or _load(kind)
    if factory is None or (number and of_device is None):
        msg = f"unknown backend {name!r}; available are {', '.join(available())}"
        raise ValueError(msg)
    named = {each for each in TAKE_BACKENDS if isinstance(options.get(each), str)}
    options = {**options, **{each: get(options[each]) for each in named}}
    try:
        instance = factory(**options)
    except TypeError as error:
        valid = options_of(factory)
        if valid is not None and not set(options) <= set(valid):
            raise option_error(f"backend {kind!r}", options, valid) from None
        msg = f"backend {kind!r} does not take these options: {error}"
        raise TypeError(msg) from error
    if not isinstance(instance, Backend):
        msg = (
            f"the factory of backend {kind!r} returned {type(instance).__name__}, "
            "not an ndx.backends.Backend"
        )
        raise TypeError(msg)
    check_whole(instance)
    if of_device is not None and instance.device.partition(":")[0] != of_device:
        msg = (
            f"the factory of backend {kind!r} returned memory of {instance.device!r}, "
            f"not of a device of kind {of_device!r}: set device_kind in its class"
        )
        raise TypeError(msg)
    if not instance.host_accessible and not instance.device_number:
        msg = f"backend {kind!r} is not accessible to the CPU, which computes"
        raise ValueError(msg)
    if isinstance(instance, PythonBackend) and instance.name == type(instance).__name__:
        instance.name = name
    return instance


def variant_of(device, backend):
    """Return the name of the backend of the host's memory that a device can address."""
    kind, _, number = device.partition(":")
    return f"{kind}{backend}:{number}"


def _addressable(device, backend):
    """Return the variant of a backend that a device can address, if there is one."""
    if backend in ("host", "mmap"):
        return variant_of(device, backend)
    kind, other = find_kind(device), _canonical(backend)
    if find_kind(other) is kind and other != device and f"{kind}peer" in kind.backends:
        _, _, number = other.partition(":")
        return get(variant_of(device, "peer"), peer=int(number))
    return backend


def _entry_points():
    # Half of what `import ndx` would take, and rarely needed.
    from importlib.metadata import entry_points

    return entry_points(group="ndx.backends")


def _builtin(name):
    if name not in BUILTIN:
        return None
    module, kind = BUILTIN[name]
    try:
        return getattr(import_module(f"ndx.backends.{module}"), kind)
    except ImportError as error:
        _raise_for_descriptors(name, error)
        raise


def _raise_for_descriptors(name, error):
    """Raise the OSError that made an import fail, if no file can be opened now."""
    try:
        os.close(os.open(__file__, os.O_RDONLY))
    except OSError as reason:
        if reason.errno not in (errno.EMFILE, errno.ENFILE):
            return
        raise OSError(
            reason.errno,
            f"{os.strerror(reason.errno)}: backend {name!r} can't be loaded; close "
            "files, or raise the limit (ulimit -n)",
        ) from error


def _load(name):
    for point in _entry_points():
        if point.name == name:
            return point.load()
    return None

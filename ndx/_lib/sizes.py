"""Sizes in bytes, as users write them and as messages show them."""

import operator
import re

from ndx._lib.system import machine_memory

__all__ = ["format_size", "parse_limit", "parse_size"]

_UNITS = {"": 1, "B": 1}
for _power, _letter in enumerate("KMGTP", start=1):
    _UNITS[f"{_letter}IB"] = 1024**_power
    _UNITS[f"{_letter}B"] = 1000**_power
    _UNITS[_letter] = 1024**_power

# The longest numbers that messages show in full.
_MOST_DIGITS = 40
_MOST_BITS = 256

_PERCENT = r"\s*([0-9]+(?:\.[0-9]*)?|\.[0-9]+)\s*%\s*"
_PATTERN = r"\s*([0-9]+(?:\.[0-9]*)?|\.[0-9]+)\s*([A-Za-z]*)\s*"


def parse_size(value, what="size"):
    """Return a number of bytes from an int or a string such as ``"64MiB"``.

    Parameters
    ----------
    value : int or str
        Bytes, or a number with one of the units B, KB, MB, GB, TB, PB (powers
        of 1000), KiB, ..., PiB or K, ..., P (powers of 1024), in any case.
    what : str
        The option's name, for error messages.

    Returns
    -------
    int
        Bytes, at least 0.

    Raises
    ------
    ValueError
        If the string can't be parsed, or the size is negative or beyond the
        address space.
    TypeError
        If `value` is neither an integer nor a string.
    """
    if isinstance(value, str):
        match = re.fullmatch(_PATTERN, value)
        unit = match and _UNITS.get(match[2].upper())
        if not unit:
            msg = (
                f"{what}={value!r} is not a size; write bytes as an int, or a "
                "number with a unit: '64MiB', '1.5GB', '512K'"
            )
            raise ValueError(msg)
        whole, point, rest = match[1].partition(".")
        whole = whole.lstrip("0") or "0"
        if len(whole) > _MOST_DIGITS:
            # Python refuses to convert thousands of digits to an int.
            nbytes, value = 2**63, f"{value[:_MOST_DIGITS]}..."
        else:
            nbytes = (
                int(float(f"{whole}.{rest}") * unit) if point else int(whole) * unit
            )
    elif isinstance(value, bool):
        msg = f"{what} must be an int or a string such as '64MiB', not bool"
        raise TypeError(msg)
    else:
        try:
            nbytes = operator.index(value)
        except TypeError:
            msg = (
                f"{what} must be an int or a string such as '64MiB', "
                f"not {type(value).__name__}"
            )
            raise TypeError(msg) from None
    if nbytes.bit_length() > _MOST_BITS:
        value = f"an int of {nbytes.bit_length()} bits"
    if nbytes < 0:
        msg = f"{what}={value!r} is negative; sizes are 0 or more bytes"
        raise ValueError(msg)
    if nbytes >= 2**63:
        msg = f"{what}={value!r} is beyond the address space (2**63 bytes)"
        raise ValueError(msg)
    return nbytes


def parse_limit(value, total=None, what="limit"):
    """Return a number of bytes from a size, or from a percentage of `total`.

    Parameters
    ----------
    value : int or str
        As for `parse_size`, or a percentage such as ``"60%"``.
    total : int, optional
        The bytes of 100 %. Default: the machine's memory.
    what : str
        The option's name, for error messages.
    """
    match = re.fullmatch(_PERCENT, value) if isinstance(value, str) else None
    if match is None:
        return parse_size(value, what)
    share = float(match[1]) / 100
    if share > 1:
        msg = f"{what}={value!r} is more than all there is; write at most '100%'"
        raise ValueError(msg)
    return int(share * (machine_memory() if total is None else total))


def format_size(nbytes):
    """Return bytes in a readable unit: ``format_size(1536)`` is '1.5 KiB'."""
    size = float(nbytes)
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if abs(size) < 1024 or unit == "TiB":
            break
        size /= 1024
    return f"{nbytes} B" if unit == "B" else f"{size:.4g} {unit}"

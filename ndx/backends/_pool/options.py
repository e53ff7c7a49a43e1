"""Options of pools, as users give them."""

from ndx._lib.sizes import parse_size

__all__ = ["cutoff_of", "fraction_of", "initial_of", "milliseconds_of"]

USUAL_CUTOFF = 24


def initial_of(options, limit, page):
    """Return ``initial`` in bytes, or None, of a pool with a limit in bytes or None."""
    given = options.get("initial")
    kind = options.get("pool", "split")
    if given is None:
        return None
    nbytes = parse_size(given, "initial")
    if limit is not None and nbytes > limit:
        msg = (
            f"initial={given!r} is more than limit={options['limit']!r}: nothing could "
            "be allocated; raise the limit, or ask for less"
        )
        raise ValueError(msg)
    if kind == "arena" and nbytes < page:
        msg = (
            f"initial={given!r} is less than a page of {page} bytes: an arena has at "
            "least one"
        )
        raise ValueError(msg)
    if kind == "unpooled" and nbytes:
        msg = (
            f"initial={given!r} is memory that a pool keeps, and pool='unpooled' keeps "
            "none; choose another type of pool"
        )
        raise ValueError(msg)
    return nbytes


def milliseconds_of(idle_release):
    """Return after how many idle memory goes back; 0 for never."""
    if idle_release is None:
        return 0
    if not isinstance(idle_release, int | float) or not idle_release >= 0:
        msg = (
            f"idle_release={idle_release!r} is not a time: give seconds, 0 or more, or "
            "None to keep idle memory for ever"
        )
        raise ValueError(msg)
    return max(1, int(min(idle_release, 1e9) * 1000))


def fraction_of(reserve_fraction):
    """Return the part of the source's memory that is left to others."""
    if not isinstance(reserve_fraction, int | float) or not 0 <= reserve_fraction < 1:
        msg = (
            f"reserve_fraction={reserve_fraction!r} is not a part of the memory: give "
            "a number from 0 to less than 1"
        )
        raise ValueError(msg)
    return reserve_fraction


def cutoff_of(options):
    """Return the power of two from which on ``round`` rounds to its multiples."""
    cutoff = options.get("cutoff")
    if cutoff is None:
        return USUAL_CUTOFF
    if not isinstance(cutoff, int) or not 12 <= cutoff <= 40:
        msg = (
            f"cutoff={cutoff!r} is not valid: give the power of two up to which sizes "
            "are rounded to powers of two, from 12 (4 KiB) to 40 (1 TiB)"
        )
        raise ValueError(msg)
    kind = options.get("pool", "split")
    if kind != "round":
        msg = f"cutoff={cutoff!r} is for pool='round'; pool={kind!r} does not round so"
        raise ValueError(msg)
    return cutoff

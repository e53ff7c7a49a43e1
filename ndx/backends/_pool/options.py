"""The options of backends with a pool: a frozen value that is printed.

`PoolOptions` has those that all of them take; a backend with options of its own derives
a class from it. A constructor takes what the fields of its class say, and no other list
of options exists: signatures, checks and messages read the fields.
"""

import copy
import dataclasses
import inspect
from typing import Any

from ndx._lib.options import option_error, repr_of_changes
from ndx._lib.sizes import parse_limit, parse_size
from ndx.backends.base import Backend, check_whole

__all__ = ["TAKE_BACKENDS", "OptionsSignature", "PoolOptions", "options_class"]

KINDS = ("split", "round", "naive", "unpooled", "arena")
USUAL_CUTOFF = 24

# Options whose values are backends, which users may give by their names.
TAKE_BACKENDS = ("fallback", "evict")


# The decorator of all classes of options, whose `__repr__` is that of the first.
options_class = dataclasses.dataclass(frozen=True, kw_only=True, repr=False)


@options_class
class PoolOptions:
    """The options of a pool; see `ndx.backends.PooledBackend` for their meaning.

    Raises
    ------
    ValueError
        If a value is not among the valid ones, or two contradict each other.
    TypeError
        If a value is of a wrong type.
    """

    limit: int | str | None = None
    pool: str = "split"
    initial: int | str | None = None
    idle_release: float | None = 30.0
    reserve_fraction: float = 0.0
    fallback: Backend | None = None
    evict: Backend | None = None
    cutoff: int | None = None

    @classmethod
    def among(cls, given: dict[str, Any]):
        """Return the options that are among those given; others are left alone."""
        known = cls.__dataclass_fields__
        return cls(**{name: given[name] for name in given if name in known})

    @classmethod
    def refuse_others(cls, owner: str, given: dict[str, Any]) -> None:
        """Raise the TypeError that lists the valid options, if one is unknown."""
        known = cls.__dataclass_fields__
        if not given.keys() <= known.keys():
            raise option_error(owner, given, list(known))

    def __post_init__(self):
        self._check_sizes()
        if not isinstance(self.pool, str) or self.pool not in KINDS:
            msg = f"pool={self.pool!r} is not a type of pool; valid are " + ", ".join(
                KINDS
            )
            raise ValueError(msg)
        for name in TAKE_BACKENDS:
            other = getattr(self, name)
            if other is None:
                continue
            if not isinstance(other, Backend):
                msg = (
                    f"{name} must be an ndx.backends.Backend (ndx.use takes its name, "
                    f"too), not {type(other).__name__}"
                )
                raise TypeError(msg)
            check_whole(other)
        self._check_numbers()

    def _check_sizes(self):
        limit = None if self.limit is None else parse_limit(self.limit)
        # Only the source knows the size that a percentage refers to.
        if limit is not None and not self.is_share:
            self._check_initial(limit)
            object.__setattr__(self, "limit", limit)
        if self.initial is None:
            return
        initial = parse_size(self.initial, "initial")
        if self.pool == "unpooled" and initial:
            msg = (
                f"initial={self.initial!r} is memory that a pool keeps, and "
                "pool='unpooled' keeps none; choose another type of pool"
            )
            raise ValueError(msg)
        object.__setattr__(self, "initial", initial)

    def _check_initial(self, limit):
        if self.initial is not None and parse_size(self.initial, "initial") > limit:
            msg = (
                f"initial={self.initial!r} is more than limit={self.limit!r}: nothing "
                "could be allocated; raise the limit, or ask for less"
            )
            raise ValueError(msg)

    def _check_numbers(self):
        seconds, part = self.idle_release, self.reserve_fraction
        if seconds is not None and not (
            isinstance(seconds, int | float) and seconds >= 0
        ):
            msg = (
                f"idle_release={seconds!r} is not a time: give seconds, 0 or more, or "
                "None to keep idle memory for ever"
            )
            raise ValueError(msg)
        if not isinstance(part, int | float) or not 0 <= part < 1:
            msg = (
                f"reserve_fraction={part!r} is not a part of the memory: give a number "
                "from 0 to less than 1"
            )
            raise ValueError(msg)
        if self.cutoff is None:
            return
        if not isinstance(self.cutoff, int) or not 12 <= self.cutoff <= 40:
            msg = (
                f"cutoff={self.cutoff!r} is not valid: give the power of two up to "
                "which sizes are rounded to powers of two, from 12 (4 KiB) to 40 "
                "(1 TiB)"
            )
            raise ValueError(msg)
        if self.pool != "round":
            msg = (
                f"cutoff={self.cutoff!r} is for pool='round'; pool={self.pool!r} does "
                "not round so"
            )
            raise ValueError(msg)

    def for_source(self, total, page):
        """Return the same with `limit` in bytes, for a source of memory.

        Parameters
        ----------
        total : int or None
            Bytes that the source has in all, if that is known.
        page : int
            Bytes of the pieces in which it gives memory.
        """
        found = self
        if self.is_share:
            limit = parse_limit(self.limit, total)
            self._check_initial(limit)
            found = dataclasses.replace(self, limit=limit)
        if self.pool == "arena" and self.initial is not None and self.initial < page:
            msg = (
                f"initial={self.initial!r} is less than a page of {page} bytes: an "
                "arena has at least one"
            )
            raise ValueError(msg)
        return found

    def changed(self, *, limit, fallback):
        """Return the same with the limit and the fallback that hold now.

        A limit below `initial` leaves no more than itself to be kept.
        """
        if (limit, fallback) == (self.limit, self.fallback):
            return self
        found = copy.copy(self)
        object.__setattr__(found, "limit", limit)
        object.__setattr__(found, "fallback", fallback)
        if None not in (limit, self.initial) and limit < self.initial:
            object.__setattr__(found, "initial", limit)
        return found

    @property
    def is_share(self):
        """Whether `limit` is a percentage of what the source has."""
        return isinstance(self.limit, str) and "%" in self.limit

    @property
    def idle_milliseconds(self):
        """After how long idle memory goes back; 0 for never."""
        if self.idle_release is None:
            return 0
        return max(1, int(min(self.idle_release, 1e9) * 1000))

    @property
    def round_below(self):
        """The power of two from which on ``round`` rounds to its multiples."""
        return USUAL_CUTOFF if self.cutoff is None else self.cutoff

    @property
    def own(self):
        """The options that a derived class adds, by name."""
        names = self.__dataclass_fields__.keys() - PoolOptions.__dataclass_fields__
        return {name: getattr(self, name) for name in names}

    __repr__ = repr_of_changes


class OptionsSignature:
    """The signature of compiled backends: the fields of the class `_options`.

    A descriptor, since a derived class may have a constructor, and a signature, of its
    own.
    """

    def __init__(self, *positional):
        self.positional = [
            inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD)
            for name in positional
        ]

    def __get__(self, instance, owner):
        maker = next(each for each in owner.__mro__ if "__init__" in vars(each))
        if "_options" not in vars(maker):
            msg = f"{maker.__name__} has a constructor of its own"
            raise AttributeError(msg)
        fields = inspect.signature(owner._options).parameters.values()
        return inspect.Signature([*self.positional, *fields])

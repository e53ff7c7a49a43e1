"""Leaves: modules that do not depend on arrays, memory or backends."""

from ndx._lib import namesake as _namesake

_namesake.check_package()  # here: each module of ours imports this room first

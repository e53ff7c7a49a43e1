"""Leaves: modules that do not depend on arrays, memory or backends."""

"""Leaves: what knows nothing of arrays, memory or backends."""

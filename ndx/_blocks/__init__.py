"""Blocks: reference-counted ranges of a backend's memory."""

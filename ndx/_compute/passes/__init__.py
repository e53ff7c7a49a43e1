"""Passes: one operation over arrays in files, block by block."""

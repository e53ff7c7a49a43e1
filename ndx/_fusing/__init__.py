"""Fused expressions: functions that are recorded once, and replayed block by block."""

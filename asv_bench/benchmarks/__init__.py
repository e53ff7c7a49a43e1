"""Benchmarks of ndx for airspeed velocity, each with NumPy as its baseline."""

"""Workers of distributed: arrays that travel, memory that is bounded, reports.

Only what registers NDArrays (`sizes`, `serialization`) is imported by itself, when dask
and distributed are. The rest is public as `ndx.distributed`.
"""

from libc.stdint cimport uint64_t

from ndx._array.storage cimport BaseArray
from ndx.backends.base cimport Backend

cdef uint64_t record_range(char *ptr, size_t nbytes, Backend backend) noexcept
cdef void range_freed(uint64_t serial) noexcept
cdef void range_adopted(uint64_t serial, BaseArray x) noexcept

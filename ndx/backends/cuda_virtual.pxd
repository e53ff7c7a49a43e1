from libc.stdint cimport uint64_t

from ndx.backends._pool.store cimport ndx_lock
from ndx.backends.cuda cimport CudaSource

# As NVIDIA's cuda.h has them.
cdef struct Location:                # CUmemLocation
    int type
    int id

cdef struct Properties:              # CUmemAllocationProp
    int type
    int handle_types
    Location location
    void *win32
    unsigned char compression
    unsigned char rdma
    unsigned short usage
    unsigned char reserved[4]

cdef struct Access:                  # CUmemAccessDesc
    Location location
    int flags

ctypedef int (*Reserve)(uint64_t *ptr, size_t nbytes, size_t alignment, uint64_t hint,
                        unsigned long long flags) noexcept nogil
ctypedef int (*OfRange)(uint64_t ptr, size_t nbytes) noexcept nogil
ctypedef int (*Create)(uint64_t *handle, size_t nbytes, const Properties *properties,
                       unsigned long long flags) noexcept nogil
ctypedef int (*Map)(uint64_t ptr, size_t nbytes, size_t offset, uint64_t handle,
                    unsigned long long flags) noexcept nogil
ctypedef int (*Release)(uint64_t handle) noexcept nogil
ctypedef int (*SetAccess)(uint64_t ptr, size_t nbytes, const Access *access,
                          size_t count) noexcept nogil
ctypedef int (*Granularity)(size_t *nbytes, const Properties *properties,
                            int option) noexcept nogil
ctypedef int (*Attribute)(int *value, int attribute, int device) noexcept nogil
ctypedef int (*Device)(int *device, int ordinal) noexcept nogil

cdef struct Driver:
    Reserve reserve
    OfRange release
    Create create
    Release drop
    Map map
    OfRange unmap
    SetAccess set_access

# A range of address space, and which of its pages have memory.
cdef struct Range:
    char *ptr
    size_t nbytes
    unsigned char *mapped
    Range *next

cdef class CudaVirtualSource(CudaSource):
    cdef Driver driver
    cdef Properties properties
    cdef Access access
    cdef ndx_lock lock               # guards the list
    cdef Range *ranges

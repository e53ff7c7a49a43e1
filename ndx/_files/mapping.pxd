from libc.stdint cimport int64_t, uint64_t

# A mapping of a file: a copy of its entry in the process's table.
cdef struct Mapped:
    char *start
    char *end
    int64_t offset               # of `start` in the file
    int fd
    bint shared                  # writes go to the file

# The number of lost pieces of mappings: 0 unless a file was truncated or a disk failed.
cdef const volatile uint64_t *losses

# The number of mappings that became private so far. After a change, a mapping that was
# found to be `shared` before may be private.
cdef const volatile uint64_t *frozen

cdef extern from *:
    """
    /* Other threads change the count without the GIL. */
    #if defined(__GNUC__)
    #define NDX_LOAD_RELAXED(count) __atomic_load_n(count, __ATOMIC_RELAXED)
    #else
    #define NDX_LOAD_RELAXED(count) (*(count))
    #endif
    """
    uint64_t NDX_LOAD_RELAXED(const volatile uint64_t *count) noexcept nogil

cdef inline bint any_lost() noexcept nogil:
    """Whether a piece of any mapping is lost."""
    return NDX_LOAD_RELAXED(losses) != 0

cdef inline uint64_t now_frozen() noexcept nogil:
    return NDX_LOAD_RELAXED(frozen)

# Functions that return int return 0 or an `errno`.
cdef int open_unnamed(const char *directory, int *fd) noexcept nogil
cdef int file_reserve(int fd, int64_t offset, size_t nbytes) noexcept nogil
cdef int file_punch(int fd, int64_t offset, size_t nbytes) noexcept nogil
cdef int file_zero(int fd, int64_t offset, size_t nbytes) noexcept nogil
cdef int map_file(int fd, int64_t offset, size_t nbytes, size_t step, bint writable,
                  bint shared, bint own_copy_in_child, char **out) noexcept nogil
cdef int file_space(const char *path, uint64_t *idle, uint64_t *total) noexcept nogil
cdef void unmap_file(char *ptr, size_t nbytes) noexcept nogil
cdef void unlock_file(int fd) noexcept nogil
cdef void close_file(int fd) noexcept nogil

cdef bint find_mapping(const void *ptr, Mapped *out) noexcept nogil
cdef bint is_lost(const void *ptr, size_t nbytes) noexcept nogil
cdef int restore_lost(void *ptr, size_t nbytes) noexcept nogil
cdef void enter_files() noexcept nogil
cdef void leave_files() noexcept nogil
cdef void begin_freezing() noexcept nogil
cdef void end_freezing() noexcept nogil
cdef int freeze_mapping(char *start) noexcept nogil
cdef str mapping_name(const void *ptr)

# A mapped file. It is unmapped and closed with the last reference to this object.
cdef class MappedFile:
    cdef readonly str path
    cdef readonly str mode           # as given to `ndx.open`
    cdef readonly int fd             # -1: closed
    cdef readonly size_t nbytes      # mapped from the file's start; 0: not mapped
    cdef char *start

    cdef int map(self, size_t nbytes, bint writable, bint shared,
                 bint own_copy_in_child=*) except -1
    cdef void unmap(self) noexcept nogil
    cdef void close(self) noexcept nogil
    cdef int flush(self) except -1
    cdef int check_whole(self) except -1
    cdef int go_on_with(self, int fd) except -1

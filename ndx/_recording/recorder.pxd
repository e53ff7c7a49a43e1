from libc.stdint cimport int16_t, int32_t, int64_t, uint64_t, uint8_t

from ndx._array.storage cimport BaseArray
from ndx.backends.base cimport Backend

cdef enum Kind:
    BIRTH = 0
    DEATH = 1
    ENTER = 2                    # the scope of a workspace
    LEAVE = 3
    STALE = 4                    # the block's scope ended, but its memory is still read
    SAMPLE = 5                   # a backend's counters
    BEGIN_PHASE = 6              # of `ndx.memory.profile`
    END_PHASE = 7

cdef enum Place:
    IN_BACKEND = 0
    IN_ARENA = 1
    SPILLED = 2                  # of a workspace, but not in its arena
    BY_NUMPY = 3                 # data of a NumPy array
    LEFT_BEHIND = 4              # it left its workspace, but stays in the arena

# Numbers below 0 stand for "none".
cdef struct Event:
    int64_t time                 # nanoseconds of the clock
    uint64_t mark                # serial of the last birth up to here
    uint64_t subject             # serial of the block
    uint64_t before              # births: serial before the block escaped; 0: none
    size_t nbytes
    size_t address
    size_t allocated             # counters of the backend, after the event
    size_t reserved
    uint64_t generation
    int32_t backend              # indices of the recording's tables
    int32_t workspace            # of phases: their name
    int32_t stack
    int32_t shape
    int32_t thread
    int16_t dtype
    uint8_t kind
    uint8_t place
    uint8_t ending

cdef class Log:
    cdef Event *events
    cdef size_t count
    cdef size_t room
    cdef readonly size_t limit
    cdef readonly size_t dropped     # arrays whose births and deaths were forgotten
    cdef readonly size_t missed      # arrays that were not recorded
    cdef readonly int64_t begin
    cdef readonly int64_t complete_from  # arrays that died before are forgotten
    cdef readonly int64_t end        # 0: the recording goes on
    cdef uint64_t last               # serial of the last birth
    cdef size_t deaths               # events of this kind
    cdef bint full

    cdef bint append(self, const Event *event) noexcept
    cdef bint note_death(self, const Event *event) noexcept
    cdef Event *find(self, uint64_t serial) noexcept
    cdef bint make_room(self) noexcept
    cdef bint resize(self, size_t room) noexcept
    cdef size_t forget(self) noexcept
    cdef void forget_others(self) noexcept
    cdef void squeeze(self) noexcept

cdef uint64_t record_range(char *ptr, size_t nbytes, Backend backend) noexcept
cdef void range_freed(uint64_t serial) noexcept
cdef void range_adopted(uint64_t serial, BaseArray x) noexcept

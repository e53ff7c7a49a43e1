cdef extern from "ndx/internal/living.h":
    ctypedef unsigned int (*FindMaker "ndx_maker_hook")() noexcept

cdef void set_find_maker(FindMaker hook) noexcept
cdef void note_time() noexcept

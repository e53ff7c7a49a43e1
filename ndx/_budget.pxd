cdef bint budget_take(size_t nbytes) noexcept nogil
cdef void budget_give(size_t nbytes) noexcept nogil
cdef size_t budget_short(size_t nbytes) noexcept nogil
cdef size_t space_share(size_t extent) noexcept nogil
cdef void space_take() noexcept nogil
cdef void space_give() noexcept nogil
cdef void budget_lock() noexcept nogil
cdef void budget_unlock() noexcept nogil

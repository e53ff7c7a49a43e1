cdef bint budget_take(size_t nbytes) noexcept nogil
cdef void budget_give(size_t nbytes) noexcept nogil
cdef void budget_lock() noexcept nogil
cdef void budget_unlock() noexcept nogil

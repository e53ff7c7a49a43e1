cdef bint budget_take(size_t nbytes) noexcept nogil
cdef bint budget_look() noexcept nogil
cdef bint budget_obtain(size_t nbytes) noexcept nogil
cdef void budget_arrive(void *pages, size_t nbytes) noexcept nogil
cdef void budget_give(size_t nbytes) noexcept nogil
cdef bint budget_is_process(size_t nbytes) noexcept nogil
cdef size_t budget_short(size_t nbytes) noexcept nogil
cdef bint gpu_take(int gpu, size_t nbytes) noexcept nogil
cdef void gpu_give(int gpu, size_t nbytes) noexcept nogil
cdef size_t gpu_short(int gpu, size_t nbytes) noexcept nogil
cdef size_t space_share(size_t extent) noexcept nogil
cdef void space_take() noexcept nogil
cdef void space_give() noexcept nogil
cdef void budget_lock() noexcept nogil
cdef void budget_unlock(bint child) noexcept nogil

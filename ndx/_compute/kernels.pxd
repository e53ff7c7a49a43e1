# Inner loops with the signature of NumPy's; `data` is what `kernel_data` returns.
cdef void run_cast(char **args, const Py_ssize_t *counts, const Py_ssize_t *steps,
                   void *data) noexcept nogil
cdef void run_copy(char **args, const Py_ssize_t *counts, const Py_ssize_t *steps,
                   void *data) noexcept nogil
cdef void run_select(char **args, const Py_ssize_t *counts, const Py_ssize_t *steps,
                     void *data) noexcept nogil

cdef bint can_convert(int dtype, int into) noexcept nogil
cdef bint can_cast(int dtype, int into) noexcept nogil
cdef void *cast_data(int dtype, int into) noexcept nogil

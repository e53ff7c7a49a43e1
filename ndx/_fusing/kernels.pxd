# Inner loops with the signature of NumPy's.
cdef void run_cast(char **args, const Py_ssize_t *counts, const Py_ssize_t *steps,
                   void *data) noexcept nogil
cdef void run_copy(char **args, const Py_ssize_t *counts, const Py_ssize_t *steps,
                   void *data) noexcept nogil
cdef void run_select(char **args, const Py_ssize_t *counts, const Py_ssize_t *steps,
                     void *data) noexcept nogil
cdef void run_sum(char **args, const Py_ssize_t *counts, const Py_ssize_t *steps,
                  void *data) noexcept nogil

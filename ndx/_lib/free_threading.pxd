"""Words that threads without a GIL share, by their types: see the header.

`get`, `set`, `up`, `down` and `swap` are seen by all threads in one order; `load` and
`store` promise only that a word is whole.
"""

from cpython.object cimport PyObject
from libc.stdint cimport uint64_t


cdef extern from "ndx/internal/free_threading.h" nogil:
    const bint NDX_FREE_THREADED
    const int NDX_STRIPES
    const int NDX_QUEUES
    enum:
        NDX_SHARDS
    int ndx_shard()
    void ndx_stripe_lock(int stripe)
    void ndx_stripe_unlock(int stripe)

    int ndx_get_int "ndx_get"(const int *word)
    void ndx_set_int "ndx_set"(int *word, int value)
    int ndx_load_int "ndx_load"(const int *word)
    void ndx_store_int "ndx_store"(int *word, int value)
    int ndx_up_int "ndx_up"(int *word)
    int ndx_down_int "ndx_down"(int *word)
    unsigned int ndx_up_uint "ndx_up"(unsigned int *word)
    bint ndx_get_flag "ndx_get"(const bint *word)
    void ndx_set_flag "ndx_set"(bint *word, bint value)
    bint ndx_swap_flag "ndx_swap"(bint *word, bint before, bint value)
    bint ndx_load_flag "ndx_load"(const bint *word)
    void ndx_store_flag "ndx_store"(bint *word, bint value)
    unsigned char ndx_get_byte "ndx_get"(const unsigned char *word)
    void ndx_set_byte "ndx_set"(unsigned char *word, unsigned char value)
    unsigned char ndx_load_byte "ndx_load"(const unsigned char *word)
    void ndx_store_byte "ndx_store"(unsigned char *word, unsigned char value)
    Py_ssize_t ndx_get_count "ndx_get"(const Py_ssize_t *word)
    void ndx_set_count "ndx_set"(Py_ssize_t *word, Py_ssize_t value)
    Py_ssize_t ndx_load_count "ndx_load"(const Py_ssize_t *word)
    void ndx_store_count "ndx_store"(Py_ssize_t *word, Py_ssize_t value)
    Py_ssize_t ndx_up_count "ndx_up"(Py_ssize_t *word)
    bint ndx_up_if_any(Py_ssize_t *word)
    Py_ssize_t ndx_down_count "ndx_down"(Py_ssize_t *word)
    size_t ndx_load_size "ndx_load"(const size_t *word)
    void ndx_store_size "ndx_store"(size_t *word, size_t value)
    uint64_t ndx_get_time "ndx_get"(const uint64_t *word)
    void ndx_set_time "ndx_set"(uint64_t *word, uint64_t value)
    uint64_t ndx_up_time "ndx_up"(uint64_t *word)
    void ndx_raise_time "ndx_raise"(uint64_t *word, uint64_t value)
    uint64_t ndx_load_time "ndx_load"(const uint64_t *word)
    void ndx_store_time "ndx_store"(uint64_t *word, uint64_t value)
    bint ndx_swap_time "ndx_swap"(uint64_t *word, uint64_t before, uint64_t value)
    const uint64_t *ndx_get_clock "ndx_get"(const uint64_t *const *word)
    void ndx_set_clock "ndx_set"(const uint64_t **word, const uint64_t *value)
    bint ndx_swap_clock "ndx_swap"(const uint64_t **word, const uint64_t *before,
                                   const uint64_t *value)
    const void *ndx_load_address "ndx_load"(const void *const *word)
    void ndx_store_address "ndx_store"(const void **word, const void *value)
    const void *ndx_get_address "ndx_get"(const void *const *word)
    void ndx_set_address "ndx_set"(const void **word, const void *value)

cdef extern from "ndx/internal/free_threading.h":
    void ndx_keep_for_ever(object x) noexcept
    void ndx_share(object x) noexcept
    PyObject *ndx_get_object "ndx_get"(PyObject *const *word) noexcept
    void ndx_set_object "ndx_set"(PyObject **word, PyObject *value) noexcept
    void ndx_replace(PyObject **word, object value) noexcept
    PyObject **ndx_items(PyObject *items) noexcept      # of a tuple

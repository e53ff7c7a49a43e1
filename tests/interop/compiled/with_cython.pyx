"""Functions that take arrays as typed memoryviews, as modules in Cython do."""

cdef extern from *:
    """
    /* For `ctypes`, too, which loads this module. */
    #ifdef _WIN32
    #define EXPORTED __declspec(dllexport)
    #else
    #define EXPORTED __attribute__((visibility("default")))
    #endif
    EXPORTED double total_at(const double *items, Py_ssize_t count) {
        double total = 0.0;
        for (Py_ssize_t i = 0; i < count; ++i) { total += (double)(i + 1) * items[i]; }
        return total;
    }
    EXPORTED double add_one_at(double *items, Py_ssize_t count) {
        for (Py_ssize_t i = 0; i < count; ++i) { items[i] += 1.0; }
        return total_at(items, count);
    }
    """
    double total_at(const double *items, Py_ssize_t count)


cdef double total_of(const double[:] x):
    cdef double total = 0.0
    cdef Py_ssize_t i
    for i in range(x.shape[0]):
        total += (i + 1) * x[i]
    return total


def total(const double[:] x):
    return total_of(x)


def total_of_writable(double[:] x):
    return total_of(x)


def total_of_contiguous(const double[::1] x):
    return total_at(&x[0], x.shape[0]) if x.shape[0] else 0.0


def add_one(double[:] x):
    cdef Py_ssize_t i
    for i in range(x.shape[0]):
        x[i] += 1.0
    return total_of(x)


def add_one_to_contiguous(double[::1] x):
    return add_one(x)


cdef class Array:
    cdef const double[:] kept

    def __init__(self, const double[:] x):
        self.kept = x[:]

    def now(self):
        return total_of(self.kept)

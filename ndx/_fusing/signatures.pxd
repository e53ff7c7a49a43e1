"""The words of a call: what its arguments are, for the search of a program."""

from cpython.object cimport PyObject
from libc.stdint cimport int64_t

from ndx._array.storage cimport BaseArray, holds_number
from ndx._fusing.replay cimport MAX_SLOTS

cdef enum:
    WORDS = 160                  # of a signature; longer ones are not recorded
    SCALARS = 32

# What starts the words of an argument.
cdef enum Tag:
    ARRAY = 1
    SAME                         # the array that an earlier argument is
    FOREIGN                      # an array of NumPy
    INT
    FLOAT                        # whose value does not matter
    VALUE                        # a float whose value does
    EQUAL                        # a string, dtype or scalar, found in `canonical`
    IDENTICAL
    OBJECT                       # of a type; what is read of it, guards compare
    TUPLE
    NAMES                        # of the keywords, whose values come last


cdef struct Words:
    int count
    int narrays
    int nscalars
    bint fits                    # False: can't be recorded
    int device                   # the one of all arrays; 0: the CPU
    int64_t words[WORDS]
    PyObject *arrays[MAX_SLOTS]
    PyObject *scalars[SCALARS]


cdef inline void add(Words *found, int64_t word) noexcept:
    if found.count < WORDS:
        found.words[found.count] = word
        found.count += 1
    else:
        found.fits = False


cdef inline int add_scalar(Words *found, object value) except -1:
    """Add a float, which a program reads at each replay."""
    if found.nscalars == SCALARS:
        found.fits = False
        return 0
    found.scalars[found.nscalars] = <PyObject *>value
    found.nscalars += 1
    return 0


cdef inline int describe_array(Words *found, BaseArray x, Tag tag) except -1:
    cdef int i
    if found.narrays == MAX_SLOTS or (
            found.narrays and x.block.device != found.device):
        found.fits = False
        return 0
    found.device = x.block.device
    for i in range(found.narrays):
        if found.arrays[i] == <PyObject *>x:
            add(found, SAME)
            add(found, i)
            return 0
    found.arrays[found.narrays] = <PyObject *>x
    found.narrays += 1
    add(found, tag | x.dtype << 8 | x.ndim << 16 | x.c_contiguous << 24
        | x.readonly << 25 | holds_number(x) << 26 | <int64_t>x.block.device << 32)
    for i in range(x.ndim):
        add(found, x.shape[i])
    if not x.c_contiguous:
        for i in range(x.ndim):
            add(found, x.strides[i])
    return 0

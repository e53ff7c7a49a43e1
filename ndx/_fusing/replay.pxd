from cpython.object cimport PyObject

from ndx._array.storage cimport BaseArray
from ndx._lib.numpy_private cimport LoopFunction

cdef extern from "ndx/internal/chain.h" nogil:
    int NDX_CHAIN_STEPS
    int NDX_CHAIN_TILES
    int NDX_CHAIN_FEWEST
    enum:
        NDX_CHAIN_OPERANDS

    ctypedef struct ChainStep "ndx_chain_step":
        unsigned char code
        unsigned char first
        unsigned char second

    # Steps that are computed in registers, as one.
    ctypedef struct Chain "ndx_chain":
        int wide
        int inputs
        int tiles
        int nsteps
        ChainStep *steps

    const char *ndx_chain_names[]
    void ndx_chain_run(char **args, const Py_ssize_t *counts, const Py_ssize_t *steps,
                       void *data)

cdef enum:
    MAX_SLOTS = 24               # arrays of a program: arguments, results, temporaries
    MAX_AXES = 8
    MAX_CONSTANTS = 48
    MAX_PARAMETERS = 16
    MAX_LEAVES = 24              # parts of arrays, of a stage
    MOST_ROWS = 64               # of a block
    SCRATCH = 48 << 10           # bytes of a block's registers
    SHORT_ROW = 48               # elements: a row of fewer is not worth a call

# Where the operand of a step is.
cdef enum Place:
    REGISTER                     # a piece of the block's scratch, contiguous
    LEAF                         # a part of an array
    CONSTANT
    PARTIAL                      # what a block contributes to the reduction of all

cdef struct Operand:
    int place
    int index
    Py_ssize_t itemsize

cdef struct Step:
    LoopFunction function
    void *data
    int count                    # operands, the result included
    bint rows                    # whether one is a leaf whose rows lie apart
    bint reduces
    bint sums                    # numbers that are rounded
    Operand operands[NDX_CHAIN_OPERANDS]
    Chain *chain                 # or NULL; owned

# A part of an array: the axes of the stage, the innermost one apart.
cdef struct Leaf:
    int slot
    Py_ssize_t offset
    Py_ssize_t inner
    Py_ssize_t outer[MAX_AXES]
    bint together                # whether its rows are computed as one

# The reduction of all elements: a partial result for each block, then one of all.
cdef struct Partial:
    int slot                     # of the partial results
    int target                   # slot of the result
    int constant                 # the operation's identity
    Py_ssize_t itemsize
    LoopFunction function
    void *data

# One walk over elements of one shape, block by block: `block_rows` rows of the
# innermost axis, or a part of one.
cdef struct Stage:
    int ndim                     # axes without the innermost one
    Py_ssize_t shape[MAX_AXES]
    Py_ssize_t rows
    Py_ssize_t cols
    Py_ssize_t plane             # rows that lie at one distance
    Py_ssize_t block_rows
    Py_ssize_t block_cols
    Py_ssize_t plane_blocks      # blocks of the rows of a plane
    Py_ssize_t row_blocks
    Py_ssize_t col_blocks
    Py_ssize_t register_bytes
    Py_ssize_t pitch             # elements from one row to the next; 0: those of a row
    Py_ssize_t share             # blocks that a thread takes at a time
    Py_ssize_t work              # about how many nanoseconds its blocks take
    Py_ssize_t scratch           # bytes of all registers
    bint serial                  # its blocks can't be shared among threads
    int nleaves
    int nsteps
    int npartials
    Leaf *leaves
    Step *steps
    Partial *partials

# The arguments of one call, as C data.
cdef struct Replay:
    const Stage *stages
    int nstages
    Py_ssize_t least             # work of a stage from which threads share it
    char *data[MAX_SLOTS]
    char constants[MAX_CONSTANTS][16]

# What keeps a call of a program from being replayed.
cdef enum Hindrance:
    ERRORS = 1                   # floating-point errors are reported
    FILES                        # arrays in large files
    OVERLAP                      # arguments, of which one is written
    HINDRANCES                   # one more than there are

# An array that a call makes.
cdef struct Made:
    int dtype
    int ndim
    int order[MAX_AXES]
    Py_ssize_t shape[MAX_AXES]

cdef struct Parameter:
    int constant
    int position
    int dtype

cdef class Program:
    cdef int nargs
    cdef int nslots
    cdef int nstages
    cdef int nconstants
    cdef int nparameters
    cdef unsigned int used       # bits of arguments whose elements are read or written
    cdef unsigned int stored     # bits of arguments that are written
    cdef bint large
    cdef bint streamed           # whether all stages may be jobs over files
    cdef Py_ssize_t work         # of the longest stage that threads may share
    cdef Made made[MAX_SLOTS]
    cdef Stage *stages
    cdef Parameter parameters[MAX_PARAMETERS]
    cdef char constants[MAX_CONSTANTS][16]
    cdef int result_slot         # of the only result; -1: see `result`
    cdef object result
    cdef readonly object about

    cdef object run(self, PyObject **arrays, PyObject **scalars)
    cdef int fill(self, Stage *stage, dict given) except -1
    cdef BaseArray make(self, int i)
    cdef object build(self, tuple spec, PyObject **arrays, list made)
    cdef int hindrance(self, PyObject **arrays) except -1
    cdef bint reads_files(self, PyObject **arrays) except -1

cdef bint are_apart(PyObject **arrays, int count, unsigned int used,
                    unsigned int stored) except -1

"""Which arrays are alive: a table that each array enters at birth, and leaves at death.

It has addresses and numbers, and keeps nothing alive. To enter and to leave takes a few
instructions; who made an array is found only while somebody asks for it.
"""

from cpython.mem cimport PyMem_RawFree, PyMem_RawRealloc
from cpython.object cimport PyObject
from cpython.ref cimport Py_XDECREF, Py_XINCREF
from libc.stdint cimport int64_t, uint32_t, uint64_t
from libc.string cimport memcpy

from ndx._array.storage cimport BaseArray, block_nbytes, data_of
from ndx._blocks.block cimport (
    IN_OBJECTS, Block, Clock, block_decref, block_incref, block_is_usable,
    block_lock, block_unlock,
)
from ndx._lib.dtypes cimport dtype_object
from ndx._lib.free_threading cimport NDX_SHARDS, ndx_get_address
from ndx._lib.layout cimport shape_tuple

__all__ = ["births", "known_makers", "living"]

cdef extern from *:
    """
    #include <stdlib.h>
    #include "ndx/internal/clock.h"
    #include "ndx/internal/living.h"

    ndx_living ndx_livings[NDX_SHARDS];
    ndx_maker_hook ndx_find_maker = NULL;

    enum { NDX_BIRTHS_A_MARK = 4096 };

    /* Note the time. Of many marks, every other is forgotten: those that are old are
     * far apart. */
    static void ndx_mark_births(ndx_living *table, int64_t time) {
        if (table->nmarks == NDX_BIRTH_MARKS) {
            int i;
            for (i = 1; i < NDX_BIRTH_MARKS / 2; i++) {
                table->marks[i] = table->marks[2 * i];
            }
            table->nmarks = NDX_BIRTH_MARKS / 2;
        }
        table->marks[table->nmarks].time = time;
        table->marks[table->nmarks++].births = table->births;
    }

    int ndx_living_more(ndx_living *table) {
        uint32_t room = table->room, count = table->count, spare;
        if (room - count < NDX_BIRTHS_A_MARK / 2) {
            room = room ? 2 * room : NDX_BIRTHS_A_MARK;
        } else if (room / 8 > count + NDX_BIRTHS_A_MARK) {
            room /= 4;
        }
        /* A place must fit into its word. */
        if (room != table->room && room <= UINT32_MAX / NDX_SHARDS / 2) {
            void *entries = realloc(table->entries, room * sizeof(ndx_living_entry));
            if (entries != NULL) {
                table->entries = (ndx_living_entry *)entries;
                table->room = room;
            }
        }
        spare = table->room - count;
        if (spare == 0) {
            table->missed++;
            return 0;
        }
        ndx_mark_births(table, ndx_nanoseconds());
        table->stop = table->births
            + (spare < NDX_BIRTHS_A_MARK ? spare : NDX_BIRTHS_A_MARK);
        return 1;
    }

    #ifdef Py_GIL_DISABLED
    static void ndx_lock_livings(void) {
        int i;
        for (i = 0; i < NDX_SHARDS; i++) { ndx_lock_acquire(&ndx_livings[i].lock); }
    }
    static void ndx_unlock_livings(void) {
        int i;
        for (i = 0; i < NDX_SHARDS; i++) { ndx_lock_release(&ndx_livings[i].lock); }
    }
    static int ndx_guard_livings(void) {
        return ndx_at_fork(ndx_lock_livings, ndx_unlock_livings);
    }
    #else
    static int ndx_guard_livings(void) { return 0; }
    #endif
    """
    ctypedef struct Entry "ndx_living_entry":
        void *array
        uint64_t born
    ctypedef struct Mark "ndx_birth_mark":
        int64_t time
        uint64_t births
    ctypedef struct Table "ndx_living":
        Entry *entries
        uint32_t count
        uint64_t births
        uint64_t missed
        Mark *marks
        int nmarks
    Table *tables "ndx_livings"
    FindMaker find_maker "ndx_find_maker"
    void mark_births "ndx_mark_births"(Table *table, int64_t time) noexcept
    void lock "NDX_LIVING_LOCK"(Table *table) noexcept
    void unlock "NDX_LIVING_UNLOCK"(Table *table) noexcept
    int guard_livings "ndx_guard_livings"() noexcept
    int64_t ndx_nanoseconds() noexcept

cdef extern from "ndx/internal/free_threading.h":
    int ndx_shard() noexcept
    void ndx_set_maker "ndx_set"(FindMaker *word, FindMaker value) noexcept

if guard_livings() != 0:
    raise MemoryError("ndx: no memory to register its fork handlers")

cdef enum:
    MARK_APART = 1_000_000       # nanoseconds between marks that `note_time` makes


cdef void set_find_maker(FindMaker hook) noexcept:
    """Set the function that finds what makes an array; NULL: nobody asks."""
    ndx_set_maker(&find_maker, hook)


cdef void note_time() noexcept:
    """Note how many arrays this thread's table has seen by now, now and then."""
    cdef Table *table = &tables[ndx_shard()]
    cdef int64_t now = ndx_nanoseconds()
    lock(table)
    if not table.nmarks or now - table.marks[table.nmarks - 1].time >= MARK_APART:
        mark_births(table, now)
    unlock(table)


# What is copied of an array while it can't go.
cdef struct Seen:
    Block *block                 # a reference
    size_t address               # of its memory's first byte
    size_t identity              # of the object
    size_t nbytes                # of its elements
    size_t shape                 # place of its shape among all shapes
    uint64_t born
    int64_t age                  # nanoseconds, or more
    uint32_t maker
    int shard
    unsigned char dtype
    unsigned char ndim
    unsigned char in_object

cdef struct Copy:
    Seen *seen
    Py_ssize_t *shapes
    size_t count, room
    size_t dims, dims_room


cdef bint make_room(Copy *copy, size_t more) noexcept:
    """Make room for so many more arrays; False: there is no memory."""
    cdef void *found
    if copy.count + more > copy.room:
        copy.room = 2 * copy.room + more
        found = PyMem_RawRealloc(copy.seen, copy.room * sizeof(Seen))
        if found == NULL:
            return False
        copy.seen = <Seen *>found
    return True


cdef Py_ssize_t *room_for_shape(Copy *copy, int ndim) noexcept:
    cdef void *found
    if copy.shapes == NULL or copy.dims + ndim > copy.dims_room:
        copy.dims_room = 2 * copy.dims_room + 64
        found = PyMem_RawRealloc(copy.shapes, copy.dims_room * sizeof(Py_ssize_t))
        if found == NULL:
            return NULL
        copy.shapes = <Py_ssize_t *>found
    return copy.shapes + copy.dims


cdef int64_t age_of(const Table *table, uint64_t born, int64_t now) noexcept:
    """Return how old an array is at least: since the first mark after its birth."""
    cdef int low = 0, high = table.nmarks, middle
    while low < high:
        middle = (low + high) // 2
        if table.marks[middle].births < born:
            low = middle + 1
        else:
            high = middle
    return now - table.marks[low].time if low < table.nmarks else 0


cdef bint copy_table(int shard, int64_t now, Copy *copy) noexcept:
    """Copy what is in a table, whose lock the caller has: no Python runs.

    An array leaves the table before it gives its block up.
    """
    cdef Table *table = &tables[shard]
    cdef Seen *seen
    cdef Block *block
    cdef Py_ssize_t *shape
    cdef uint32_t i
    if not make_room(copy, table.count):
        return False
    for i in range(table.count):
        block = <Block *>ndx_get_address(
            <void **>&(<BaseArray>table.entries[i].array).block)
        if block == NULL:
            # The array is being made.
            continue
        shape = room_for_shape(copy, (<BaseArray>table.entries[i].array).ndim)
        if shape == NULL:
            return False
        seen = &copy.seen[copy.count]
        fill(seen, table.entries[i].array, block, shape)
        seen.shape = copy.dims
        seen.born = table.entries[i].born
        seen.age = age_of(table, seen.born, now)
        seen.shard = shard
        copy.dims += seen.ndim
        copy.count += 1
    mark_births(table, now)
    return True


cdef inline void fill(Seen *seen, void *array, Block *block,
                      Py_ssize_t *shape) noexcept:
    # No reference to the array is counted: one that goes has none any more.
    seen.block = block
    block_incref(block)
    seen.in_object = block.holding == IN_OBJECTS
    seen.address = <size_t>data_of(<BaseArray>array) if seen.in_object \
        else <size_t>block.ptr
    seen.identity = <size_t>array
    seen.nbytes = block_nbytes(<BaseArray>array) if seen.in_object else block.nbytes
    seen.dtype = (<BaseArray>array).dtype
    seen.ndim = (<BaseArray>array).ndim
    seen.maker = (<BaseArray>array).maker
    memcpy(shape, (<BaseArray>array).shape, seen.ndim * sizeof(Py_ssize_t))


def births():
    """Return how many arrays each table has seen."""
    cdef uint64_t count
    cdef list found = []
    for shard in range(NDX_SHARDS):
        lock(&tables[shard])
        count = tables[shard].births
        unlock(&tables[shard])
        found.append(count)
    return tuple(found)


def living():
    """Return what is known of each array that is alive, and how many are not known.

    Returns
    -------
    list of tuple
        For each array: its object's address; the number of its table, and its own among
        the births there; its least age in seconds; the number of its maker (0: not
        known); shape, name of the dtype; address of its block, of its first byte,
        bytes; the backend that counts them or None, the workspace's name or None, the
        owner of foreign memory or None, whether the memory can be used, and whether
        other code may read it.
    int
        Arrays that are in no table: there was no memory for it.
    """
    cdef Copy copy
    cdef Seen *seen
    cdef size_t i
    cdef list found = []
    missed = copy_living(&copy)
    try:
        for i in range(copy.count):
            seen = &copy.seen[i]
            found.append((
                seen.identity, seen.shard, seen.born, seen.age * 1e-9, seen.maker,
                shape_tuple(seen.ndim, copy.shapes + seen.shape),
                dtype_object(seen.dtype).name, *described(seen)))
    finally:
        drop_copy(&copy)
    return found, missed


def known_makers(counts):
    """Return what made arrays in memory of some backends: {number: (bytes, arrays)}.

    ``counts(backend)`` tells whether a backend is one of these. Memory that arrays
    share is that of the oldest. This is for errors: it takes little time, with many
    arrays, too.
    """
    cdef Copy copy
    cdef Seen *seen
    cdef size_t i, nbytes = 0
    cdef PyObject *backend
    cdef dict oldest = {}, wanted = {}, found = {}
    copy_living(&copy)
    try:
        for i in range(copy.count):
            seen = &copy.seen[i]
            backend = backend_of(seen, &nbytes)
            if backend == NULL:
                continue
            key = <size_t>backend
            if key not in wanted:
                wanted[key] = counts(<object>backend)
            Py_XDECREF(backend)
            if not wanted[key]:
                continue
            key = seen.identity if seen.in_object else <size_t>seen.block
            before = oldest.get(key)
            if before is None or seen.born < before[0]:
                oldest[key] = seen.born, seen.maker, nbytes
    finally:
        drop_copy(&copy)
    for _, maker, size in oldest.values():
        before = found.get(maker, (0, 0))
        found[maker] = before[0] + size, before[1] + 1
    return found


cdef object copy_living(Copy *copy):
    """Copy all tables; return how many arrays are in none."""
    cdef int shard
    cdef bint complete = True
    cdef int64_t now = ndx_nanoseconds()
    missed = 0
    copy.seen = NULL
    copy.shapes = NULL
    copy.count = copy.room = copy.dims = copy.dims_room = 0
    for shard in range(NDX_SHARDS):
        lock(&tables[shard])
        complete = complete and copy_table(shard, now, copy)
        missed += tables[shard].missed
        unlock(&tables[shard])
    if not complete:
        drop_copy(copy)
        raise MemoryError("no memory to list the arrays that are alive")
    return missed


cdef void drop_copy(Copy *copy) noexcept:
    cdef size_t i
    for i in range(copy.count):
        block_decref(copy.seen[i].block)
    PyMem_RawFree(copy.seen)
    PyMem_RawFree(copy.shapes)


cdef PyObject *backend_of(const Seen *seen, size_t *nbytes) noexcept:
    """Return a reference to the backend that counts memory, and the bytes, or NULL."""
    cdef PyObject *backend
    block_lock(seen.block)
    backend = seen.block.backend
    nbytes[0] = seen.nbytes
    if backend != NULL and not seen.in_object:
        # What the backend was asked for.
        nbytes[0] += seen.block.beyond
    Py_XINCREF(backend)
    block_unlock(seen.block)
    return backend


cdef tuple described(const Seen *seen):
    """Return what is known of an array's memory."""
    cdef Block *block = seen.block
    cdef PyObject *backend
    cdef PyObject *clock
    cdef PyObject *owner
    cdef bint is_read, usable = block_is_usable(block)
    cdef size_t nbytes = 0
    backend = backend_of(seen, &nbytes)
    block_lock(block)
    clock, owner = block.clock, block.memory_owner
    Py_XINCREF(clock)
    Py_XINCREF(owner)
    is_read = block.exports != NULL
    block_unlock(block)
    try:
        return (
            seen.identity if seen.in_object else <size_t>block, seen.address, nbytes,
            None if backend == NULL else <object>backend,
            None if clock == NULL else (<Clock>clock).name,
            None if owner == NULL else <object>owner, usable, is_read)
    finally:
        Py_XDECREF(backend)
        Py_XDECREF(clock)
        Py_XDECREF(owner)

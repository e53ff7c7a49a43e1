"""The pass itself: tiles taken by threads, pages read ahead and dropped behind.

If all operands fit in memory, a tile's pages are entered in the page table at once, and
computed on in place. If they don't (`streaming`), mapping pages, and unmapping them
when the kernel takes them back, costs more than copying them. Then a tile is computed
in pieces that fit in the CPU's cache. Each piece is read from the file and written to
it with system calls; the mapping shows the same pages. Operands for which this is
impossible are used through the mapping, where errors are detected (`_files.mapping`).
"""

cimport numpy as cnp
from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF, Py_INCREF
from libc.stdint cimport INT64_MAX, int64_t, uintptr_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy

from ndx._array.pinning cimport Operands, locate, unlocked
from ndx._compute.passes.settings cimport Settings, memory_for_pages, settings
from ndx._compute.threads cimport thread_count
from ndx._compute.tiles cimport (
    Grid, Job, Runs, begin_job, cut, cut_rows, element_bytes, find_runs, find_tile,
    run_kernel, run_start, set_order, span, walk_size,
)
from ndx._files.mapping cimport (
    Mapped, enter_files, find_mapping, leave_files, now_frozen,
)
from ndx._lib.clock cimport ndx_nanoseconds
from ndx._lib.dtypes cimport itemsize_of, typenum_of
from ndx._lib.layout cimport MAXOPS, Walk
from ndx._lib.numpy_private cimport restore, silence

from ndx._lib.system import read_ahead_of

cdef extern from "Python.h":
    int PyErr_CheckSignals() except -1

cdef extern from "ndx/internal/advice.h" nogil:
    void ndx_read_ahead(int fd, int64_t offset, size_t nbytes)
    void ndx_populate(char *ptr, size_t nbytes, int written)
    void ndx_write_behind(int fd, int64_t offset, size_t nbytes, int wait)
    void ndx_drop(char *ptr, int fd, int64_t offset, size_t nbytes)
    bint ndx_is_cached(const char *ptr)
    int ndx_reopen(int fd, bint in_order)
    void ndx_close(int fd)
    bint ndx_read_at(int fd, char *out, size_t nbytes, int64_t offset)
    bint ndx_write_at(int fd, const char *source, size_t nbytes, int64_t offset)

cdef extern from "ndx/internal/arithmetic.h" nogil:
    Py_ssize_t ndx_multiply_most(Py_ssize_t a, Py_ssize_t b)

cdef extern from "ndx/lock.h" nogil:
    long ndx_process_id()

cdef extern from "ndx/internal/thread_pool.h" nogil:
    ctypedef struct ndx_task:
        pass
    int ndx_begin_task(ndx_task *task, int helpers,
                       void (*part)(void *, Py_ssize_t) noexcept nogil, void *arg)
    void ndx_end_task(ndx_task *task)
    bint ndx_handles_signals()

cdef extern from *:
    """
    #if defined(_MSC_VER)
    #include <intrin.h>
    static Py_ssize_t ndx_fetch_add(Py_ssize_t *at, Py_ssize_t n) {
        return (Py_ssize_t)_InterlockedExchangeAdd64((volatile long long *)at, n);
    }
    #else
    static Py_ssize_t ndx_fetch_add(Py_ssize_t *at, Py_ssize_t n) {
        return __atomic_fetch_add(at, n, __ATOMIC_RELAXED);
    }
    #endif
    """
    Py_ssize_t ndx_fetch_add(Py_ssize_t *at, Py_ssize_t n) nogil

cdef inline Py_ssize_t now_at(Py_ssize_t *counter) noexcept nogil:
    return ndx_fetch_add(counter, 0)


cdef enum:
    TILE = 8 << 20               # bytes that a thread takes at a time
    WIDE_TILE = 64 << 20         # the same if an operand is not in the walk's order
    PIECE = 512 << 10            # bytes of a piece, of all operands
    BUFFER = 1 << 20             # bytes of one operand's buffer for a piece
    AHEAD = 4                    # tiles to read ahead of the one that is computed
    ENOUGH = 1 << 20             # bytes of the kernel's own read-ahead that suffice
    WHILE = 50000000             # nanoseconds between two looks for signals
    BEHIND = 8                   # tiles that the disk may still be writing
    LARGE_PAGE = 2 << 20
    MAX_RUNS = 1024              # a tile with more runs gets no advice
    MOST_READERS = 8             # threads of a pass, if nothing else is asked for


# ---------------------------------------------------------------- before a pass

cdef void find_file(Operand *operand) noexcept nogil:
    """Set the file of an operand's data, if any."""
    cdef Mapped mapped
    operand.frozen = now_frozen()
    operand.mapped = find_mapping(operand.data, &mapped)
    if operand.mapped:
        operand.fd = mapped.fd
        operand.shared = mapped.shared
        operand.shift = mapped.offset - <int64_t><uintptr_t>mapped.start


cdef inline bint writes_to_file(const Operand *operand) noexcept nogil:
    """Whether writes to an operand go to its file; between `enter_` and `leave_files`.

    A backend may be frozen, and a forked child has mappings of its own.
    """
    return operand.mapped and operand.shared and operand.frozen == now_frozen()


cdef bint may_pass(const Job *job) except -1:
    """Whether operands are in files, and large: then a job is computed in a pass.

    This may be asked before the operands are held.
    """
    cdef Mapped mapped
    cdef Py_ssize_t total = ndx_multiply_most(
        walk_size(job.walk), element_bytes(job.walk, job.itemsizes))
    cdef int op
    if total == 0 or total < settings().threshold:
        return False
    locate(job.operands)
    for op in range(job.walk.nops):
        if find_mapping(job.operands.data[op], &mapped):
            return True
    return False


cdef bint begin(Pass *now, Job *job) except -1:
    """Prepare a pass if the operands are in files and large; return whether they are.

    The caller holds the operands until the pass is done.
    """
    cdef const Walk *walk = job.walk
    cdef Settings options = settings()
    cdef Py_ssize_t low, ahead, memory
    cdef Operand *operand
    cdef bint sequential = True
    cdef int op, axis
    if not may_pass(job):
        return False
    now.job = job
    now.each = element_bytes(walk, job.itemsizes)
    now.total = ndx_multiply_most(walk_size(walk), now.each)
    for op in range(walk.nops):
        operand = &now.ops[op]
        operand.data = job.operands.data[op]
        operand.itemsize = job.itemsizes[op]
        operand.written = job.written >> op & 1
        operand.read = not operand.written or job.read >> op & 1
        find_file(operand)
        operand.moving = operand.itemsize != 0
        for axis in range(walk.ndim):
            if walk.strides[op][axis] == 0 and walk.shape[axis] > 1:
                operand.moving = False
        if not operand.mapped:
            continue
        # Check whether the operand lies in memory in the order of the walk.
        ahead = -1
        for axis in range(walk.ndim):
            low = walk.strides[op][axis]
            if low == 0 or walk.shape[axis] == 1:
                continue
            low = -low if low < 0 else low
            if ahead >= 0 and low > ahead:
                sequential = False
            ahead = low
    job.data = job.operands.data
    set_order(job)
    if job.grid.total == 0:
        cut(&job.grid, walk, job.itemsizes, tile_bytes(options, sequential),
            0 if job.least else -1, job.least)
    now.block = options.block
    now.threads = min(options.threads or min(thread_count(), MOST_READERS),
                      job.grid.total)
    memory = memory_for_pages(options)
    now.streaming = now.total > memory
    # The newest part of a result stays in memory for the next operation.
    now.behind = max(BEHIND, memory // max(1, written_bytes(now)))
    now.first = first_cached(now) if now.streaming else 0
    now.asking = not sequential or not all_read_ahead(now)
    now.alone = False
    now.done = 0
    now.reported = 0
    now.next = 0
    now.stop = 0
    return True


cdef Py_ssize_t written_bytes(const Pass *now) noexcept:
    """Return the bytes of a tile of the results."""
    cdef Py_ssize_t nbytes = 0
    cdef int op, axis
    for op in range(now.job.walk.nops):
        if now.ops[op].written:
            nbytes += now.ops[op].itemsize
    for axis in range(now.job.grid.ndim):
        nbytes *= now.job.grid.tile[axis]
    return nbytes


cdef Py_ssize_t first_cached(const Pass *now) noexcept:
    """Return the first tile that an earlier pass left in memory; 0 if there is none.

    A pass leaves the last part of its result there, and the next pass starts with it.
    """
    cdef char *start[MAXOPS]
    cdef Walk tile
    cdef const Operand *operand
    cdef Py_ssize_t i
    cdef bint before, cached
    cdef int op
    for op in range(now.job.walk.nops):
        operand = &now.ops[op]
        if not operand.mapped or not operand.moving or operand.written:
            continue
        before = True
        for i in range(now.job.grid.total):
            find_tile(&now.job.grid, i, now.job.walk, now.job.data, &tile, start)
            cached = ndx_is_cached(start[op])
            if cached and not before:
                return i
            before = cached
    return 0


cdef bint all_read_ahead(const Pass *now) except -1:
    """Whether the kernel's own read-ahead suffices for all files."""
    cdef int op
    for op in range(now.job.walk.nops):
        if now.ops[op].mapped and read_ahead_of(now.ops[op].fd) < ENOUGH:
            return False
    return True


cdef Py_ssize_t tile_bytes(Settings options, bint sequential) noexcept:
    return min(options.block, TILE if sequential else WIDE_TILE)


# ---------------------------------------------------------------- advice

cdef void advise(const Pass *now, Py_ssize_t index, Advice advice) noexcept nogil:
    """Advise the kernel about the pages of a tile, for all operands in files."""
    cdef char *start[MAXOPS]
    cdef Walk tile
    cdef int op
    if index < 0 or index >= now.job.grid.total:
        return
    find_tile(&now.job.grid, number_of(now, index), now.job.walk, now.job.data, &tile,
              start)
    for op in range(now.job.walk.nops):
        if now.ops[op].mapped and now.ops[op].moving:
            advise_part(&now.ops[op], start[op], &tile, op, advice)


cdef void advise_part(const Operand *operand, char *data, const Walk *walk, int op,
                      Advice advice) noexcept nogil:
    """Advise the kernel about one operand's pages in a walk that starts at `data`."""
    cdef Runs runs
    cdef char *start
    cdef int64_t offset
    cdef Py_ssize_t i, before
    if advice == READ_AHEAD or advice == DROP:
        if operand.written:
            return
    elif advice != POPULATE and not operand.written:
        return
    if advice != READ_AHEAD and advice != POPULATE and not writes_to_file(operand):
        # A private mapping holds the only copy of what was written.
        return
    find_runs(&runs, walk, op, operand.itemsize)
    if runs.count > MAX_RUNS:
        return
    for i in range(runs.count):
        start = data + run_start(&runs, i)
        offset = <int64_t><uintptr_t>start + operand.shift
        if advice == READ_AHEAD:
            ndx_read_ahead(operand.fd, offset, runs.length)
        elif advice == POPULATE:
            ndx_populate(start, runs.length, operand.written)
        elif advice == WRITE:
            ndx_write_behind(operand.fd, offset, runs.length, False)
        else:
            if advice == WRITE_AND_DROP:
                ndx_write_behind(operand.fd, offset, runs.length, True)
            # A large page is only dropped as a whole: include the bytes before, which
            # may belong to a page that was not dropped.
            before = 0
            if runs.count == 1 and start > operand.data:
                before = min(LARGE_PAGE, start - operand.data)
            ndx_drop(start - before, operand.fd, offset - before, runs.length + before)


# ---------------------------------------------------------------- tiles

cdef inline Py_ssize_t number_of(const Pass *now, Py_ssize_t index) noexcept nogil:
    """Return the number of the tile that is taken at an index."""
    return (index + now.first) % now.job.grid.total


# The state of one thread: a buffer for each operand's piece, and file descriptors of
# its own. Without buffers, it computes on the mappings.
cdef struct Worker:
    char *buffers
    int fds[MAXOPS]


cdef void start_worker(Worker *worker, const Pass *now) noexcept nogil:
    cdef const Operand *operand
    cdef int op
    worker.buffers = NULL
    if now.streaming:
        worker.buffers = <char *>malloc(now.job.walk.nops * BUFFER)
    for op in range(now.job.walk.nops):
        operand = &now.ops[op]
        worker.fds[op] = -1
        if worker.buffers != NULL and operand.mapped and operand.shared \
                and operand.moving and not operand.written:
            worker.fds[op] = ndx_reopen(operand.fd, not now.asking)


cdef void end_worker(Worker *worker, const Pass *now) noexcept nogil:
    cdef int op
    free(worker.buffers)
    for op in range(now.job.walk.nops):
        ndx_close(worker.fds[op])


cdef void compute(const Pass *now, Walk *tile, char **start,
                  const Worker *worker) noexcept nogil:
    """Compute one tile: on the mappings or, with buffers, piece by piece."""
    cdef const Job *job = now.job
    cdef char *data[MAXOPS]
    cdef Walk piece
    cdef Grid pieces
    cdef Py_ssize_t size, i
    if worker.buffers == NULL:
        run_kernel(job, start, tile)
        return
    if job.by_rows:
        size = PIECE // max(1, now.each)
        cut_rows(&pieces, tile, max(job.together, size - size % job.together))
    else:
        cut(&pieces, tile, job.itemsizes, PIECE, -1, 0)
    for i in range(pieces.total):
        find_tile(&pieces, i, tile, start, &piece, data)
        compute_piece(now, data, &piece, worker)


cdef void compute_piece(const Pass *now, char **data, Walk *piece,
                        const Worker *worker) noexcept nogil:
    cdef char *shown[MAXOPS]
    cdef char *own[MAXOPS]               # the buffer to write to the file
    cdef Py_ssize_t lows[MAXOPS]
    cdef Py_ssize_t sizes[MAXOPS]
    cdef Py_ssize_t low = 0, nbytes
    cdef Py_ssize_t size = walk_size(piece)
    cdef const Operand *operand
    cdef char *buffer
    cdef int op
    for op in range(piece.nops):
        operand = &now.ops[op]
        shown[op] = data[op]
        own[op] = NULL
        if not operand.moving or not writes_to_file(operand):
            continue
        nbytes = span(piece, op, operand.itemsize, &low)
        buffer = worker.buffers + op * BUFFER
        if nbytes > BUFFER:
            continue
        # Write only buffers of which every byte is computed: else the other bytes would
        # have to be read first.
        if operand.written and nbytes != size * operand.itemsize:
            continue
        if operand.read and (nbytes > 2 * size * operand.itemsize or not ndx_read_at(
                operand.fd if worker.fds[op] < 0 else worker.fds[op], buffer, nbytes,
                <int64_t><uintptr_t>(data[op] + low) + operand.shift)):
            continue
        if operand.written:
            own[op] = buffer
            lows[op] = low
            sizes[op] = nbytes
        shown[op] = buffer - low
    run_kernel(now.job, shown, piece)
    for op in range(piece.nops):
        if own[op] != NULL and not ndx_write_at(
                now.ops[op].fd, own[op], sizes[op],
                <int64_t><uintptr_t>(data[op] + lows[op]) + now.ops[op].shift):
            memcpy(data[op] + lows[op], own[op], sizes[op])


cdef void work(Pass *now, Py_ssize_t nbytes, const Worker *worker) noexcept nogil:
    """Compute tiles until none is left.

    Unless `nbytes` is -1, stop when so many are done in all, or after a while.
    """
    cdef const Job *job = now.job
    cdef char *start[MAXOPS]
    cdef Walk tile
    cdef Py_ssize_t index, size
    cdef int64_t end = INT64_MAX
    if ndx_handles_signals():
        end = ndx_nanoseconds() + WHILE
    while not now_at(&now.stop):
        if nbytes >= 0 and (now_at(&now.done) >= nbytes or ndx_nanoseconds() >= end):
            return
        index = ndx_fetch_add(&now.next, 1)
        if index >= job.grid.total:
            return
        if now.asking:
            advise(now, index + AHEAD, READ_AHEAD)
        enter_files()
        if worker.buffers == NULL:
            advise(now, index, POPULATE)
        find_tile(&job.grid, number_of(now, index), job.walk, job.data, &tile, start)
        size = walk_size(&tile) * now.each
        compute(now, &tile, start, worker)
        if now.streaming:
            advise(now, index, DROP)
            advise(now, index - now.behind // 2, WRITE)
            advise(now, index - now.behind, WRITE_AND_DROP)
        leave_files()
        ndx_fetch_add(&now.done, size)


cdef void help_with(void *arg, Py_ssize_t index) noexcept nogil:
    cdef Pass *now = <Pass *>arg
    cdef Worker worker
    start_worker(&worker, now)
    work(now, -1, &worker)
    end_worker(&worker, now)


# ---------------------------------------------------------------- a pass

# A running pass, and its threads.
cdef struct Team:
    Pass *now
    Worker worker                        # the calling thread
    ndx_task task
    int helpers                          # other threads of the task


cdef void start_team(void *arg) noexcept nogil:
    cdef Pass *now = (<Team *>arg).now
    cdef Py_ssize_t ahead
    if now.asking:
        for ahead in range(AHEAD):
            advise(now, ahead, READ_AHEAD)


cdef void work_on_block(void *arg) noexcept nogil:
    cdef Team *team = <Team *>arg
    cdef Pass *now = team.now
    if not team.helpers and not now.alone:
        # Other operations may have had the threads until now.
        team.helpers = ndx_begin_task(&team.task, now.threads - 1, help_with, now)
    work(now, now.reported + now.block, &team.worker)


cdef void end_team(void *arg) noexcept nogil:
    ndx_end_task(&(<Team *>arg).task)


cdef int go_through(Pass *now, str name) except -1:
    """Compute all tiles; Ctrl-C and the user's callback may raise between blocks."""
    cdef const Operands *held = now.job.operands
    cdef Settings options = settings()
    cdef Team team
    cdef long process = ndx_process_id()
    if now.job.in_order:
        now.alone = True
        now.first = 0
    team.now = now
    team.helpers = 0
    start_worker(&team.worker, now)
    try:
        unlocked(held, start_team, &team)
        try:
            while True:
                unlocked(held, work_on_block, &team)
                if now_at(&now.next) >= now.job.grid.total:
                    break
                PyErr_CheckSignals()
                if now_at(&now.done) - now.reported >= now.block:
                    now.reported = now_at(&now.done)
                    report(options, now.reported, now.total, name)
                if ndx_process_id() != process:
                    if team.helpers:
                        raise RuntimeError(
                            f"{name}: this process was forked in the midst of the "
                            "pass, and has none of its threads; its result is "
                            "incomplete here. Fork before, or after")
                    # It ends the pass alone: only its parent waits for threads.
                    now.alone = True
        except BaseException:
            ndx_fetch_add(&now.stop, 1)
            raise
        finally:
            if team.helpers and ndx_process_id() == process:
                unlocked(held, end_team, &team)
    finally:
        end_worker(&team.worker, now)
    return report(options, now.total, now.total, name)


cdef bint run_pass(Job *job, str name) except -1:
    """Compute a job whose operands are held, if they are large and in files.

    Return whether they are.
    """
    cdef Pass now
    if not begin(&now, job):
        return False
    go_through(&now, name)
    return True


cdef int report(Settings now, Py_ssize_t done, Py_ssize_t total, str name) except -1:
    """Check for signals, and call the user's callback with the progress."""
    PyErr_CheckSignals()
    if now.progress is not None:
        now.progress(done, total, name)
    return 0


# ---- Casts ---------------------------------------------------------------------------

cnp.import_array()

cdef extern from "numpy/arrayobject.h":
    # Not a constant: NumPy's import sets its value.
    char array_type "PyArray_Type"
    int PyArray_CopyInto(cnp.ndarray out, cnp.ndarray x) except -1
    object make_view "PyArray_New" (
        void *cls, int ndim, const Py_ssize_t *shape, int typenum,
        const Py_ssize_t *strides, void *data, int itemsize, int flags, PyObject *obj)

# A conversion between two of NumPy's dtypes; `error` is a strong reference.
cdef struct Conversion:
    int source
    int target
    PyObject *error


cdef bint cast_walk(Operands *held, const Walk *walk, int dtype, int into) except -1:
    """Cast operand 0 to operand 1 if they are large and in files, else return False."""
    cdef Conversion conversion
    cdef Job job
    cdef bint done
    conversion.source = typenum_of[dtype]
    conversion.target = typenum_of[into]
    conversion.error = NULL
    begin_job(&job, held, walk, compute_conversion, &conversion)
    job.itemsizes[0], job.itemsizes[1] = itemsize_of[dtype], itemsize_of[into]
    job.in_order = True
    try:
        done = run_pass(&job, "copy")
        if conversion.error != NULL:
            raise <object>conversion.error
    finally:
        if conversion.error != NULL:
            Py_DECREF(<object>conversion.error)
    return done


cdef void compute_conversion(void *arg, char **data, const Walk *walk) noexcept nogil:
    cdef Conversion *conversion = <Conversion *>arg
    with gil:
        if conversion.error != NULL:
            return
        try:
            convert(conversion, data, walk)
        except BaseException as error:
            Py_INCREF(error)
            conversion.error = <PyObject *>error


cdef int convert(Conversion *conversion, char **data, const Walk *walk) except -1:
    token = silence()
    try:
        PyArray_CopyInto(
            <cnp.ndarray>make_view(&array_type, walk.ndim, walk.shape,
                                   conversion.target, walk.strides[1], data[1], 0,
                                   cnp.NPY_ARRAY_WRITEABLE, NULL),
            <cnp.ndarray>make_view(&array_type, walk.ndim, walk.shape,
                                   conversion.source, walk.strides[0], data[0], 0, 0,
                                   NULL))
    finally:
        restore(token)
    return 0

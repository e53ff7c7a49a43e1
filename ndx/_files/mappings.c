/* The table of mappings, and the signal handler that maps zeros over their lost pages.
 * The table records which pages were lost. */
#define _GNU_SOURCE
#include "mappings.h"

#include <errno.h>

#if !defined(_WIN32)
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>
#include "ndx/lock.h"
#include "ndx/internal/pages.h"

#define NDX_RANGES 256                     /* a chunk of the table */

typedef struct ndx_ranges {
    ndx_range entries[NDX_RANGES];
    struct ndx_ranges *next;
} ndx_ranges;

static ndx_ranges ndx_table;
static ndx_lock ndx_table_lock;
volatile uint64_t ndx_losses;
static volatile uint64_t ndx_mappings;     /* live entries */

/* The handlers of SIGBUS before ours, oldest first. If another one is installed after
 * ours, ours is installed again, and the other one may call ours. Therefore each
 * handler is called at most once for a fault, from the newest to the oldest. */
#define NDX_HANDLERS 8
static struct sigaction ndx_handlers[NDX_HANDLERS];
static int ndx_handler_count;

/* The threads inside these handlers, and how many handlers each thread has called. */
#define NDX_FORWARDS 64
typedef struct {
    uintptr_t thread;                      /* 0: free */
    int depth;
} ndx_forwarding;
static ndx_forwarding ndx_forwards[NDX_FORWARDS];

/* The address of the last fault that was forwarded, and how often in a row it occurred.
 * If a handler returns without a change, the fault repeats forever. */
#define NDX_REPEATS 100
static uintptr_t ndx_last_fault;
static int ndx_repeats;

/* A thread that reads or writes a file by its descriptor relies on the mapping being a
 * shared one. So mappings are made private only while no thread does that, and threads
 * that are about to do it wait. */
volatile uint64_t ndx_frozen;              /* mappings that were made private */
static int ndx_users;
static int ndx_freezing;
static __thread int ndx_using;             /* how often this thread has entered */

static void ndx_nap(void) {
    struct timespec nap = {0, 50000};
    nanosleep(&nap, NULL);
}

void ndx_files_enter(void) {
    if (ndx_using++ != 0) { return; }
    for (;;) {
        __atomic_add_fetch(&ndx_users, 1, __ATOMIC_SEQ_CST);
        if (!__atomic_load_n(&ndx_freezing, __ATOMIC_SEQ_CST)) { return; }
        __atomic_sub_fetch(&ndx_users, 1, __ATOMIC_SEQ_CST);
        ndx_nap();
    }
}

void ndx_files_leave(void) {
    if (--ndx_using == 0) { __atomic_sub_fetch(&ndx_users, 1, __ATOMIC_SEQ_CST); }
}

void ndx_freeze_begin(void) {
    /* A thread that freezes while it uses files must not wait for itself. */
    if (ndx_using != 0) { __atomic_sub_fetch(&ndx_users, 1, __ATOMIC_SEQ_CST); }
    while (__atomic_exchange_n(&ndx_freezing, 1, __ATOMIC_SEQ_CST)) { ndx_nap(); }
    while (__atomic_load_n(&ndx_users, __ATOMIC_SEQ_CST) != 0) { ndx_nap(); }
}

void ndx_freeze_end(void) {
    if (ndx_using != 0) { __atomic_add_fetch(&ndx_users, 1, __ATOMIC_SEQ_CST); }
    __atomic_store_n(&ndx_freezing, 0, __ATOMIC_SEQ_CST);
}

/* Signal handlers call this, without the lock: writers of an entry set `end` last. If it
 * has changed since, the start may be that of another mapping, in the same entry. */
static ndx_range *ndx_range_at(uintptr_t at) {
    for (ndx_ranges *chunk = &ndx_table; chunk != NULL;
         chunk = __atomic_load_n(&chunk->next, __ATOMIC_ACQUIRE)) {
        for (int i = 0; i < NDX_RANGES; ++i) {
            ndx_range *range = &chunk->entries[i];
            uintptr_t end = __atomic_load_n(&range->end, __ATOMIC_ACQUIRE);
            uintptr_t start = __atomic_load_n(&range->start, __ATOMIC_ACQUIRE);
            if (at < end && at >= start
                && end == __atomic_load_n(&range->end, __ATOMIC_RELAXED)) {
                return range;
            }
        }
    }
    return NULL;
}

/* Record a lost piece: merge it with a piece that it touches or, if the entry is full,
 * with the last one. */
static void ndx_note_loss(ndx_range *range, uintptr_t start, uintptr_t end) {
    int i;
    for (i = 0; i < range->lost; ++i) {
        if (start <= range->lost_end[i] && end >= range->lost_start[i]) { break; }
    }
    if (i == NDX_LOST) { i = NDX_LOST - 1; }
    if (i == range->lost) {
        range->lost_start[i] = start;
        range->lost_end[i] = end;
        __atomic_store_n(&range->lost, i + 1, __ATOMIC_RELEASE);
        __atomic_add_fetch(&ndx_losses, 1, __ATOMIC_RELEASE);
        return;
    }
    if (start < range->lost_start[i]) { range->lost_start[i] = start; }
    if (end > range->lost_end[i]) { range->lost_end[i] = end; }
}

/* Whether a mapped file has become shorter than its mapping. */
static int ndx_any_cut_short(void) {
    for (ndx_ranges *chunk = &ndx_table; chunk != NULL;
         chunk = __atomic_load_n(&chunk->next, __ATOMIC_ACQUIRE)) {
        for (int i = 0; i < NDX_RANGES; ++i) {
            ndx_range *range = &chunk->entries[i];
            uintptr_t end = __atomic_load_n(&range->end, __ATOMIC_ACQUIRE);
            struct stat file;
            if (end != 0 && range->fd >= 0 && fstat(range->fd, &file) == 0 &&
                file.st_size < range->offset + (int64_t)(end - range->start)) {
                return 1;
            }
        }
    }
    return 0;
}

/* Map zeros over the page at an address, if it is in the table; return 1 if done. */
static int ndx_replace_page(uintptr_t at) {
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    uintptr_t start = at & ~(page - 1), end = start + page;
    ndx_range *range = ndx_range_at(at);
    struct stat file;
    if (range == NULL) { return 0; }
    /* If the file was truncated, all pages beyond its end are lost at once. */
    if (range->fd >= 0 && fstat(range->fd, &file) == 0 &&
        file.st_size <= range->offset + (int64_t)(start - range->start)) {
        end = (range->end + page - 1) & ~(page - 1);
    }
    if (mmap((void *)start, end - start, PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0) == MAP_FAILED) {
        return 0;
    }
    ndx_note_loss(range, start, end);
    return 1;
}

/* Return the entry of a thread that is inside an earlier handler, else NULL. */
static ndx_forwarding *ndx_find_forwarding(uintptr_t thread) {
    for (int i = 0; i < NDX_FORWARDS; ++i) {
        if (__atomic_load_n(&ndx_forwards[i].thread, __ATOMIC_ACQUIRE) == thread) {
            return &ndx_forwards[i];
        }
    }
    return NULL;
}

/* Claim an entry for a thread; NULL if all are in use. */
static ndx_forwarding *ndx_begin_forwarding(uintptr_t thread) {
    for (int i = 0; i < NDX_FORWARDS; ++i) {
        uintptr_t none = 0;
        if (__atomic_compare_exchange_n(&ndx_forwards[i].thread, &none, thread, 0,
                                        __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {
            return &ndx_forwards[i];
        }
    }
    return NULL;
}

/* Run the default action, which ends the process. */
static void ndx_default(int signum, int was_raised) {
    signal(signum, SIG_DFL);
    /* Otherwise the faulting instruction runs again, and the default action follows. */
    if (was_raised) { raise(signum); }
}

/* Whether the earlier handlers have failed repeatedly on the fault at an address. */
static int ndx_is_hopeless(uintptr_t at) {
    if (__atomic_exchange_n(&ndx_last_fault, at, __ATOMIC_ACQ_REL) != at) {
        __atomic_store_n(&ndx_repeats, 0, __ATOMIC_RELEASE);
        return 0;
    }
    return __atomic_add_fetch(&ndx_repeats, 1, __ATOMIC_ACQ_REL) > NDX_REPEATS;
}

/* Call the newest earlier handler that this thread is not inside. */
static void ndx_forward(int signum, siginfo_t *info, void *context, int was_raised) {
    int count = __atomic_load_n(&ndx_handler_count, __ATOMIC_ACQUIRE);
    uintptr_t thread = (uintptr_t)pthread_self();
    ndx_forwarding *mine = ndx_find_forwarding(thread);
    int depth = mine == NULL ? 0 : mine->depth;
    struct sigaction *next = depth < count ? &ndx_handlers[count - 1 - depth] : NULL;
    if (mine == NULL) { mine = ndx_begin_forwarding(thread); }
    if (next == NULL || mine == NULL ||
        (!was_raised && ndx_is_hopeless((uintptr_t)info->si_addr)) ||
        (next->sa_handler == SIG_IGN && !(next->sa_flags & SA_SIGINFO) && !was_raised)) {
        ndx_default(signum, was_raised);
    } else {
        mine->depth = depth + 1;
        if (next->sa_flags & SA_SIGINFO) {
            next->sa_sigaction(signum, info, context);
        } else if (next->sa_handler != SIG_IGN) {
            next->sa_handler(signum);
        }
        mine->depth = depth;
    }
    if (depth == 0 && mine != NULL) {
        __atomic_store_n(&mine->thread, 0, __ATOMIC_RELEASE);
    }
}

static void ndx_on_sigbus(int signum, siginfo_t *info, void *context) {
    int error = errno;
    /* Sent by a program, not by the kernel for a fault. */
    int was_raised = info->si_code < BUS_ADRALN || info->si_code == SI_USER;
    if (!was_raised && ndx_replace_page((uintptr_t)info->si_addr)) {
        errno = error;
        return;
    }
    /* A handler that was installed after ours may have restored ours on one of our
     * faults, and raised the signal again, as Python's faulthandler does. When it
     * returns, the instruction runs again, and its fault arrives here. */
    if (!was_raised || info->si_pid != getpid() || !ndx_any_cut_short() ||
        ndx_find_forwarding((uintptr_t)pthread_self()) != NULL) {
        ndx_forward(signum, info, context, was_raised);
    }
    errno = error;
}

/* Install our handler of SIGBUS. It forwards foreign faults to the earlier handlers. */
static int ndx_watch(void) {
    struct sigaction action, current;
    int i;
    if (sigaction(SIGBUS, NULL, &current) != 0) { return errno; }
    if ((current.sa_flags & SA_SIGINFO) && current.sa_sigaction == ndx_on_sigbus) { return 0; }
    memset(&action, 0, sizeof action);
    action.sa_sigaction = ndx_on_sigbus;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
    sigemptyset(&action.sa_mask);
    if (!(current.sa_flags & SA_SIGINFO) && current.sa_handler == SIG_DFL) {
        /* A reset to the default discards the earlier handlers, too. */
        __atomic_store_n(&ndx_handler_count, 0, __ATOMIC_RELEASE);
    } else {
        for (i = 0; i < ndx_handler_count; ++i) {
            /* Both kinds of handlers share this field: it is a union. */
            if (ndx_handlers[i].sa_sigaction == current.sa_sigaction) { break; }
        }
        if (i == ndx_handler_count && i < NDX_HANDLERS) {
            ndx_handlers[i] = current;
            __atomic_store_n(&ndx_handler_count, i + 1, __ATOMIC_RELEASE);
        }
    }
    return sigaction(SIGBUS, &action, NULL) == 0 ? 0 : errno;
}

int ndx_range_add(void *ptr, size_t nbytes, int fd, int64_t offset, int shared,
                  int is_private) {
    ndx_ranges *chunk = &ndx_table;
    int status = 0;
    ndx_lock_acquire(&ndx_table_lock);
    status = ndx_watch();
    while (status == 0) {
        for (int i = 0; i < NDX_RANGES; ++i) {
            ndx_range *range = &chunk->entries[i];
            if (range->end != 0) { continue; }
            /* After the 0 of `end`, for `ndx_range_at`. */
            __atomic_store_n(&range->start, (uintptr_t)ptr, __ATOMIC_RELEASE);
            range->offset = offset;
            range->fd = fd;
            range->shared = shared;
            range->is_private = is_private;
            range->lost = 0;
            __atomic_store_n(&range->end, (uintptr_t)ptr + nbytes, __ATOMIC_RELEASE);
            __atomic_add_fetch(&ndx_mappings, 1, __ATOMIC_RELEASE);
            ndx_lock_release(&ndx_table_lock);
            return 0;
        }
        if (chunk->next == NULL) {
            ndx_ranges *more = calloc(1, sizeof *more);
            if (more == NULL) { status = ENOMEM; break; }
            __atomic_store_n(&chunk->next, more, __ATOMIC_RELEASE);
        }
        chunk = chunk->next;
    }
    ndx_lock_release(&ndx_table_lock);
    return status;
}

void ndx_range_remove(void *ptr) {
    ndx_lock_acquire(&ndx_table_lock);
    ndx_range *range = ndx_range_at((uintptr_t)ptr);
    if (range != NULL) {
        __atomic_sub_fetch(&ndx_losses, (uint64_t)range->lost, __ATOMIC_RELEASE);
        __atomic_sub_fetch(&ndx_mappings, 1, __ATOMIC_RELEASE);
        range->lost = 0;
        range->fd = -1;
        __atomic_store_n(&range->end, 0, __ATOMIC_RELEASE);
    }
    ndx_lock_release(&ndx_table_lock);
}

int ndx_range_find(const void *ptr, ndx_range *out) {
    if (__atomic_load_n(&ndx_mappings, __ATOMIC_ACQUIRE) == 0) { return 0; }
    ndx_lock_acquire(&ndx_table_lock);
    ndx_range *range = ndx_range_at((uintptr_t)ptr);
    if (range != NULL) {
        /* First: a handler that adds a piece at this moment counts it last. */
        const int lost = __atomic_load_n(&range->lost, __ATOMIC_ACQUIRE);
        *out = *range;
        out->lost = lost;
    }
    ndx_lock_release(&ndx_table_lock);
    return range != NULL;
}

int ndx_range_lost(const void *ptr, size_t nbytes) {
    uintptr_t low = (uintptr_t)ptr, high = low + nbytes;
    ndx_range range;
    if (nbytes == 0 || !ndx_range_find(ptr, &range)) { return 0; }
    for (int i = 0; i < range.lost; ++i) {
        if (low < range.lost_end[i] && high > range.lost_start[i]) { return 1; }
    }
    return 0;
}

int ndx_range_restore(void *ptr, size_t nbytes) {
    uintptr_t low = (uintptr_t)ptr, high = low + nbytes;
    int status = 0;
    ndx_lock_acquire(&ndx_table_lock);
    ndx_range *range = ndx_range_at(low);
    for (int i = 0; range != NULL && status == 0 && i < range->lost; ++i) {
        uintptr_t start = range->lost_start[i], end = range->lost_end[i];
        if (low >= end || high <= start) { continue; }
        if (low > start && high < end) {       /* the piece is split in two */
            if (range->lost == NDX_LOST) { status = EAGAIN; break; }
            range->lost_start[range->lost] = high;
            range->lost_end[range->lost++] = end;
            __atomic_add_fetch(&ndx_losses, 1, __ATOMIC_RELEASE);
            range->lost_end[i] = low;
        } else if (low > start) {
            range->lost_end[i] = low;
        } else if (high < end) {
            range->lost_start[i] = high;
        } else {
            --range->lost;
            range->lost_start[i] = range->lost_start[range->lost];
            range->lost_end[i] = range->lost_end[range->lost];
            __atomic_sub_fetch(&ndx_losses, 1, __ATOMIC_RELEASE);
            --i;
        }
    }
    if (range != NULL && status == 0 &&
        mmap(ptr, nbytes, PROT_READ | PROT_WRITE,
             (range->shared ? MAP_SHARED : MAP_PRIVATE) | MAP_FIXED | MAP_NORESERVE,
             range->fd, (off_t)(range->offset + (int64_t)(low - range->start))) != ptr) {
        status = errno;
    }
    ndx_lock_release(&ndx_table_lock);
    return status;
}

static int ndx_map_private(const ndx_range *range, uintptr_t end, int protection) {
    return mmap((void *)range->start, end - range->start, protection,
                MAP_PRIVATE | MAP_FIXED | MAP_NORESERVE, range->fd,
                (off_t)range->offset) != MAP_FAILED;
}

int ndx_range_freeze(void *ptr) {
    int status = 0;
    ndx_lock_acquire(&ndx_table_lock);
    for (ndx_ranges *chunk = &ndx_table; chunk != NULL; chunk = chunk->next) {
        for (int i = 0; i < NDX_RANGES; ++i) {
            ndx_range *range = &chunk->entries[i];
            if (range->end == 0 || range->start != (uintptr_t)ptr || !range->shared) {
                continue;
            }
            if (!ndx_map_private(range, range->end, PROT_READ | PROT_WRITE)) {
                status = errno;
            } else {
                range->shared = 0;
                __atomic_add_fetch(&ndx_frozen, 1, __ATOMIC_RELEASE);
            }
        }
    }
    ndx_lock_release(&ndx_table_lock);
    return status;
}

static void ndx_ranges_before_fork(void) {
    ndx_lock_acquire(&ndx_table_lock);
}

static void ndx_ranges_after_fork(void) { ndx_lock_release(&ndx_table_lock); }

/* Keep addresses without memory behind them: nothing else is mapped there. */
static void ndx_map_nothing(uintptr_t start, uintptr_t end) {
    if (start < end) {
        mmap((void *)start, end - start, PROT_NONE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0);
    }
}

/* Make the mapping of a forked child private. Its process may not have as much memory as
 * the whole mapping (ulimit -d, strict overcommit): then what the file has must do. If
 * even that is too much, the child can only read. */
static void ndx_make_private(ndx_range *range) {
    struct stat file;
    struct rlimit limit = {RLIM_INFINITY, RLIM_INFINITY};
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    uintptr_t end = range->end;
    /* Such a limit does not refuse the mapping, but all that comes after it. */
    getrlimit(RLIMIT_DATA, &limit);
    if (limit.rlim_cur == RLIM_INFINITY &&
        ndx_map_private(range, end, PROT_READ | PROT_WRITE)) { return; }
    if (fstat(range->fd, &file) == 0) {
        int64_t rest = (int64_t)file.st_size - range->offset;
        uint64_t nbytes = rest > 0 ? (uint64_t)rest : 0;
        if (nbytes < end - range->start) {
            end = range->start + (((uintptr_t)nbytes + page - 1) & ~(page - 1));
        }
    }
    ndx_map_nothing(end, range->end);
    if (end == range->start || ndx_map_private(range, end, PROT_READ | PROT_WRITE) ||
        ndx_map_private(range, end, PROT_READ)) { return; }
    ndx_map_nothing(range->start, end);
}

/* A child's writes to the memory of a pool must not be visible to its parent. */
static void ndx_ranges_in_child(void) {
    /* Of the threads only this one is there. */
    ndx_users = ndx_using != 0;
    ndx_freezing = 0;
    for (ndx_ranges *chunk = &ndx_table; chunk != NULL; chunk = chunk->next) {
        for (int i = 0; i < NDX_RANGES; ++i) {
            ndx_range *range = &chunk->entries[i];
            /* What is private already is copied by the fork itself. */
            if (range->end == 0 || !range->is_private || !range->shared) { continue; }
            ndx_make_private(range);
            /* The file is the parent's: the child accesses it only through this
             * mapping, never through the descriptor. */
            range->shared = 0;
            __atomic_add_fetch(&ndx_frozen, 1, __ATOMIC_RELEASE);
        }
    }
    ndx_lock_release(&ndx_table_lock);
}

int ndx_ranges_at_fork(void) {
    return pthread_atfork(ndx_ranges_before_fork, ndx_ranges_after_fork,
                          ndx_ranges_in_child);
}

int ndx_open_unnamed(const char *directory, int *fd) {
#if defined(O_TMPFILE)
    *fd = open(directory, O_TMPFILE | O_RDWR | O_EXCL | O_CLOEXEC, 0600);
    if (*fd >= 0) { return 0; }
    if (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL) { return errno; }
#endif
    size_t length = strlen(directory);
    char *name = malloc(length + 16);
    int status = 0;
    if (name == NULL) { return ENOMEM; }
    memcpy(name, directory, length);
    memcpy(name + length, "/ndx-XXXXXX", 12);
    *fd = mkstemp(name);                       /* 0600, by POSIX */
    if (*fd < 0 || unlink(name) != 0 || fcntl(*fd, F_SETFD, FD_CLOEXEC) != 0) {
        status = errno;
        if (*fd >= 0) { close(*fd); }
    }
    free(name);
    return status;
}

int ndx_file_reserve(int fd, int64_t offset, size_t nbytes) {
    int status;
#if defined(__APPLE__)
    struct stat file;
    fstore_t store = {F_ALLOCATEALL, F_PEOFPOSMODE, 0, (off_t)nbytes, 0};
    status = fcntl(fd, F_PREALLOCATE, &store) == 0 ? 0 : errno;
    if (status == 0 && fstat(fd, &file) == 0 && file.st_size < offset + (int64_t)nbytes) {
        status = ftruncate(fd, (off_t)(offset + (int64_t)nbytes)) == 0 ? 0 : errno;
    }
#else
    do {
        status = posix_fallocate(fd, (off_t)offset, (off_t)nbytes);
    } while (status == EINTR);
#endif
    return status;
}

int ndx_file_punch(int fd, int64_t offset, size_t nbytes) {
#if defined(__linux__)
    return fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)offset,
                     (off_t)nbytes) == 0 ? 0 : errno;
#else
    (void)fd; (void)offset; (void)nbytes;
    return EOPNOTSUPP;
#endif
}

int ndx_file_zero(int fd, int64_t offset, size_t nbytes) {
#if defined(__linux__) && defined(FALLOC_FL_ZERO_RANGE)
    return fallocate(fd, FALLOC_FL_ZERO_RANGE | FALLOC_FL_KEEP_SIZE, (off_t)offset,
                     (off_t)nbytes) == 0 ? 0 : errno;
#else
    (void)fd; (void)offset; (void)nbytes;
    return EOPNOTSUPP;
#endif
}

/* Return unused address space of whole pages at a multiple of `step`, or MAP_FAILED. It is
 * nobody's memory, also where the system promises none that it has not. */
static void *space_at(size_t nbytes, size_t step) {
    char *ptr = (char *)mmap(NULL, nbytes + step, PROT_NONE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    size_t before;
    if (ptr == MAP_FAILED) { return MAP_FAILED; }
    before = (size_t)(-(uintptr_t)ptr & (step - 1));
    if (before) { munmap(ptr, before); }
    munmap(ptr + before + nbytes, step - before);
    return ptr + before;
}

int ndx_map_file(int fd, int64_t offset, size_t nbytes, size_t step, int writable,
                 int shared, void **out) {
    int flags = (shared ? MAP_SHARED : MAP_PRIVATE) | MAP_NORESERVE;
    int access = PROT_READ | (writable ? PROT_WRITE : 0);
    void *ptr = mmap(NULL, nbytes, access, flags, fd, (off_t)offset);
    if (ptr != MAP_FAILED && ((uintptr_t)ptr & (step - 1)) != 0) {
        munmap(ptr, nbytes);
        ptr = space_at(nbytes, step);
        if (ptr != MAP_FAILED) {
            /* If this fails, the address may be another thread's by now. */
            ptr = mmap(ptr, nbytes, access, flags | MAP_FIXED, fd, (off_t)offset);
        }
    }
    if (ptr == MAP_FAILED) { return errno; }
    *out = ptr;
    return 0;
}

void ndx_unmap(void *ptr, size_t nbytes) { munmap(ptr, nbytes); }

int ndx_sync(void *ptr, size_t nbytes, int fd) {
    int status;
    if (msync(ptr, nbytes, MS_SYNC) != 0) { return errno; }
    do {
        status = fsync(fd) == 0 ? 0 : errno;
    } while (status == EINTR);
    return status;
}

int ndx_remap_private(void *ptr, size_t nbytes, int fd) {
    return mmap(ptr, nbytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED | MAP_NORESERVE,
                fd, 0) == MAP_FAILED ? errno : 0;
}

void ndx_unlock_file(int fd) {
#ifdef LOCK_UN
    flock(fd, LOCK_UN);
#endif
}

void ndx_close_file(int fd) { close(fd); }

int ndx_space(const char *path, uint64_t *idle, uint64_t *total) {
    struct statvfs fs;
    if (statvfs(path, &fs) != 0) { return errno; }
    *idle = (uint64_t)fs.f_bavail * fs.f_frsize;
    *total = (uint64_t)fs.f_blocks * fs.f_frsize;
    return 0;
}

#else
/* The operating system has no such mappings: every call fails with ENOSYS. */
volatile uint64_t ndx_losses;
int ndx_range_add(void *ptr, size_t nbytes, int fd, int64_t offset, int shared,
                  int is_private) { return ENOSYS; }
void ndx_range_remove(void *ptr) {}
int ndx_range_find(const void *ptr, ndx_range *out) { return 0; }
int ndx_range_lost(const void *ptr, size_t nbytes) { return 0; }
int ndx_range_restore(void *ptr, size_t nbytes) { return ENOSYS; }
int ndx_range_freeze(void *ptr) { return ENOSYS; }
volatile uint64_t ndx_frozen;
void ndx_files_enter(void) {}
void ndx_files_leave(void) {}
void ndx_freeze_begin(void) {}
void ndx_freeze_end(void) {}
int ndx_ranges_at_fork(void) { return 0; }
int ndx_open_unnamed(const char *directory, int *fd) { return ENOSYS; }
int ndx_file_reserve(int fd, int64_t offset, size_t nbytes) { return ENOSYS; }
int ndx_file_punch(int fd, int64_t offset, size_t nbytes) { return ENOSYS; }
int ndx_file_zero(int fd, int64_t offset, size_t nbytes) { return ENOSYS; }
int ndx_map_file(int fd, int64_t offset, size_t nbytes, size_t step, int writable,
                 int shared, void **out) { return ENOSYS; }
void ndx_unmap(void *ptr, size_t nbytes) {}
int ndx_sync(void *ptr, size_t nbytes, int fd) { return ENOSYS; }
int ndx_remap_private(void *ptr, size_t nbytes, int fd) { return ENOSYS; }
void ndx_unlock_file(int fd) {}
void ndx_close_file(int fd) {}
int ndx_space(const char *path, uint64_t *idle, uint64_t *total) { return ENOSYS; }
#endif

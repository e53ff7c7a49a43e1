/* One pool of threads. They sleep on a condition variable whenever there is no work, so
 * that they take no core from a BLAS. They start when they are first needed, never run
 * Python, and stay until the process ends: one that sleeps holds nothing.
 *
 * To wake a thread takes as long as to add some 100,000 floats. So where tasks come one
 * soon after the other, threads look for the next one for some microseconds first.
 *
 * A caller opens a task, computes parts of it, closes it, and waits for the threads
 * that are inside. A thread that wakes too late finds no task and sleeps again: no one
 * waits for it. */
#if defined(__linux__) && !defined(_GNU_SOURCE)
#define _GNU_SOURCE                        /* for sched_getaffinity */
#endif
#include "ndx/internal/thread_pool.h"

#if defined(_WIN32)
static long ndx_wanted = 1;
int ndx_thread_count(void) { return (int)ndx_wanted; }
void ndx_set_thread_count(int count) { ndx_wanted = count; }

void ndx_set_interrupted(int (*interrupted)(int forked), unsigned long thread) {
    (void)interrupted; (void)thread;
}
int ndx_handles_signals(void) { return 1; }

void ndx_parallel_for(ptrdiff_t count, int alone, ndx_part part, void *arg) {
    ptrdiff_t i;
    (void)alone;
    for (i = 0; i < count; ++i) { part(arg, i); }
}

int ndx_begin_task(ndx_task *task, int helpers, ndx_part part, void *arg) {
    (void)task; (void)helpers; (void)part; (void)arg;
    return 0;
}
void ndx_end_task(ndx_task *task) { (void)task; }
int ndx_threads_are_near(void) { return 0; }
#else
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>
#if defined(__linux__)
#include <sys/syscall.h>
#endif

#include <ndx/lock.h>

#include "ndx/internal/clock.h"
#include "ndx/internal/start_thread.h"

#define NDX_STACK ((size_t)1 << 20)

/* Nanoseconds. A thread looks for so long before it sleeps, */
#define NDX_LOOKING 40000
/* if `NDX_SOON` tasks each came that soon after the one before. */
#define NDX_GAP 100000
#define NDX_SOON 3
/* No thread looks for a while after one has looked in vain, and for as long as another
 * process's thread had its core meanwhile. */
#define NDX_REST 1000000
#define NDX_AWAY 20000

/* Nanoseconds between two looks of a caller for signals. */
#define NDX_SIGNALS_EVERY 50000000

static int (*ndx_interrupted)(int forked); /* set once, at import */
static pthread_t ndx_main;                 /* the thread that handles signals */

static int ndx_wanted = 1;                 /* atomic */
static int ndx_busy;                       /* whether a caller has the pool; atomic */

static pthread_mutex_t ndx_pool_lock = PTHREAD_MUTEX_INITIALIZER;
/* The lock guards what follows, and `seats` and `inside` of the task. */
static pthread_cond_t ndx_work = PTHREAD_COND_INITIALIZER;
static pthread_cond_t ndx_done = PTHREAD_COND_INITIALIZER;
static ndx_task *ndx_open;                 /* the task that threads join; or NULL */
static int ndx_started;
static int ndx_prepared;                   /* whether forks are prepared for */
static int ndx_cores;                      /* that threads may use */
static int ndx_crowded;                    /* whether the last task had more threads */
#if defined(__linux__)
static pid_t ndx_ids[NDX_MOST_THREADS];    /* of the threads; 0: not known yet */
static int ndx_core = -1;                  /* the one that threads keep off, or -1 */
static int ndx_kept;                       /* how many do */
#endif

static int ndx_calls;                      /* tasks that were opened, in turn; atomic */
static int ndx_soon;                       /* tasks that came soon after another; atomic */
static int64_t ndx_last;                   /* when the last one came or ended; atomic */
static int64_t ndx_rest;                   /* until when no thread looks; atomic */

int ndx_thread_count(void) { return __atomic_load_n(&ndx_wanted, __ATOMIC_ACQUIRE); }

void ndx_set_thread_count(int count) {
    __atomic_store_n(&ndx_wanted, count, __ATOMIC_RELEASE);
}

/* Note a task; return whether threads look for more. Which of two threads' tasks are
 * counted does not matter. */
static int ndx_note_task(void) {
    const int64_t now = ndx_nanoseconds();
    int soon = __atomic_load_n(&ndx_soon, __ATOMIC_RELAXED);
    if (now - __atomic_exchange_n(&ndx_last, now, __ATOMIC_RELAXED) >= NDX_GAP
        || now < __atomic_load_n(&ndx_rest, __ATOMIC_RELAXED)) {
        soon = 0;
    } else if (soon < NDX_SOON) {
        ++soon;
    }
    __atomic_store_n(&ndx_soon, soon, __ATOMIC_RELAXED);
    return soon == NDX_SOON;
}

/* Look at a word until it has a value, or has it no more, if `equal` is 0; return whether
 * it does, or 0 after a while. (To yield the core each time would be to lose it for some
 * milliseconds, wherever another process has work.) */
static int ndx_look(int *word, int value, int equal) {
    int64_t now = 0, before, end = 0;
    int i;
    for (i = 1;; ++i) {
        if ((__atomic_load_n(word, __ATOMIC_ACQUIRE) == value) == equal) { return 1; }
        ndx_relax();
        if (i % 64) { continue; }
        before = now;
        now = ndx_nanoseconds();
        if (!end) { before = now; end = now + NDX_LOOKING; }
        if (now - before > NDX_AWAY) {
            __atomic_store_n(&ndx_rest, now + (now - before), __ATOMIC_RELAXED);
            return 0;
        }
        if (now >= end) { return 0; }
    }
}

/* Keep the threads off the caller's core. The scheduler wakes a thread where the caller
 * runs, even if another core is idle; there the thread would have to wait for the caller,
 * and no one would move it. The threads may use all other cores that the caller may use,
 * if these are enough. The caller has the lock. */
static void ndx_keep_away(int helpers) {
#if defined(__linux__)
    const int core = helpers < ndx_cores ? sched_getcpu() : -1;
    cpu_set_t cores;
    int i, known = 0;
    while (known < ndx_started && ndx_ids[known]) { ++known; }
    if (core == ndx_core && known == ndx_kept) { return; }
    if (sched_getaffinity(0, sizeof(cores), &cores) != 0) { return; }
    if (core >= 0 && core < CPU_SETSIZE) { CPU_CLR(core, &cores); }
    if (CPU_COUNT(&cores) == 0) { return; }
    for (i = 0; i < known; ++i) { sched_setaffinity(ndx_ids[i], sizeof(cores), &cores); }
    ndx_core = core;
    ndx_kept = known;
#else
    (void)helpers;
#endif
}

/* Lock. Others hold the lock for less time than it takes to sleep and to be woken. */
static void ndx_lock_pool(void) {
    int i;
    for (i = 0; i < 100; ++i) {
        if (pthread_mutex_trylock(&ndx_pool_lock) == 0) { return; }
        ndx_relax();
    }
    pthread_mutex_lock(&ndx_pool_lock);
}

/* Take no more parts if a handler of signals has raised. In a child that was forked there,
 * the threads that compute some of the parts are missing. */
static void ndx_handle_signals(ndx_task *task) {
    const pid_t process = getpid();
    int i, stop = ndx_interrupted(0);
    if (getpid() != process && task->helped) {
        __atomic_store_n(&task->inside, 0, __ATOMIC_RELEASE);
        stop = ndx_interrupted(1);
    }
    for (i = 0; stop && i < task->nranges; ++i) {
        __atomic_store_n(&task->ranges[i].next, task->ranges[i].end, __ATOMIC_RELAXED);
    }
}

/* Compute parts: those of the range at a place, then those of the next ones. */
static void ndx_take_parts(ndx_task *task, int place, int handles) {
    int64_t then = handles ? ndx_nanoseconds() + NDX_SIGNALS_EVERY : 0;
    int i;
    for (i = 0; i < task->nranges; ++i) {
        ndx_parts *range = &task->ranges[(place + i) % task->nranges];
        for (;;) {
            ptrdiff_t index = __atomic_fetch_add(&range->next, 1, __ATOMIC_RELAXED);
            if (index >= range->end) { break; }
            task->part(task->arg, index);
            if (handles && ndx_nanoseconds() >= then) {
                ndx_handle_signals(task);
                then = ndx_nanoseconds() + NDX_SIGNALS_EVERY;
            }
        }
    }
}

void ndx_set_interrupted(int (*interrupted)(int forked), unsigned long thread) {
    ndx_interrupted = interrupted;
    ndx_main = (pthread_t)thread;
}

int ndx_handles_signals(void) {
    return ndx_interrupted != NULL && pthread_equal(pthread_self(), ndx_main);
}

/* Wait until there may be a task. The caller has the lock. */
static void ndx_await_task(void) {
    const int calls = __atomic_load_n(&ndx_calls, __ATOMIC_RELAXED);
    int64_t rest;
    if (__atomic_load_n(&ndx_soon, __ATOMIC_RELAXED) < NDX_SOON || ndx_crowded) {
        pthread_cond_wait(&ndx_work, &ndx_pool_lock);
        return;
    }
    pthread_mutex_unlock(&ndx_pool_lock);
    if (!ndx_look(&ndx_calls, calls, 0)) {
        rest = ndx_nanoseconds() + NDX_REST;
        if (__atomic_load_n(&ndx_rest, __ATOMIC_RELAXED) < rest) {
            __atomic_store_n(&ndx_rest, rest, __ATOMIC_RELAXED);
        }
        __atomic_store_n(&ndx_soon, 0, __ATOMIC_RELAXED);
    }
    ndx_lock_pool();
}

static void *ndx_pool_thread(void *number) {
    const int place = (int)(intptr_t)number;
    ndx_task *task;
    ndx_lock_pool();
#if defined(__linux__)
    ndx_ids[place - 1] = (pid_t)syscall(SYS_gettid);
#endif
    for (;;) {
        while (ndx_open == NULL || ndx_open->seats == 0) { ndx_await_task(); }
        task = ndx_open;
        --task->seats;
        __atomic_store_n(&task->inside, task->inside + 1, __ATOMIC_RELAXED);
        pthread_mutex_unlock(&ndx_pool_lock);
        fesetenv(&task->environment);
        ndx_take_parts(task, place, 0);
        ndx_lock_pool();
        /* Nothing is left to take. */
        if (ndx_open == task) { ndx_open = NULL; }
        if (task->inside == 1) { pthread_cond_signal(&ndx_done); }
        /* The last access: the caller may return as soon as it sees a 0. */
        __atomic_store_n(&task->inside, task->inside - 1, __ATOMIC_RELEASE);
    }
    return NULL;
}

/* In a child there are no threads but the one that forked, which was in no part. */
static void ndx_after_fork(void) {
    pthread_mutex_init(&ndx_pool_lock, NULL);
    pthread_cond_init(&ndx_work, NULL);
    pthread_cond_init(&ndx_done, NULL);
    ndx_open = NULL;
    ndx_started = 0;
    /* In the child it is Python's main thread. */
    ndx_main = pthread_self();
#if defined(__linux__)
    memset(ndx_ids, 0, sizeof(ndx_ids));
    ndx_core = -1;
    ndx_kept = 0;
#endif
    __atomic_store_n(&ndx_soon, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&ndx_busy, 0, __ATOMIC_RELEASE);
}

static int ndx_count_cores(void) {
#if defined(__linux__)
    cpu_set_t cores;
    if (sched_getaffinity(0, sizeof(cores), &cores) == 0) { return CPU_COUNT(&cores); }
#endif
    return (int)sysconf(_SC_NPROCESSORS_ONLN);
}

/* Start one more thread; return whether that succeeded. The caller has the lock. */
static int ndx_add_thread(void) {
    pthread_t id;
    ndx_cores = ndx_count_cores();
    if (!ndx_prepared) {
        if (pthread_atfork(NULL, NULL, ndx_after_fork) != 0) { return 0; }
        ndx_prepared = 1;
    }
    if (!ndx_start_thread(&id, NDX_STACK, ndx_pool_thread,
                          (void *)(intptr_t)(ndx_started + 1))) {
        return 0;
    }
    pthread_detach(id);
    return 1;
}

/* Open a task of `count` parts for threads; return how many may join. */
static int ndx_open_task(ndx_task *task, ptrdiff_t count, int helpers, ndx_part part,
                         void *arg) {
    int i, all;
    if (helpers < 1 || __atomic_exchange_n(&ndx_busy, 1, __ATOMIC_ACQUIRE)) { return 0; }
    task->part = part;
    task->arg = arg;
    task->nranges = helpers < NDX_MOST_RANGES ? helpers + 1 : NDX_MOST_RANGES;
    for (i = 0; i < task->nranges; ++i) {
        task->ranges[i].next = count * i / task->nranges;
        task->ranges[i].end = count * (i + 1) / task->nranges;
    }
    task->inside = 0;
    fegetenv(&task->environment);
    ndx_note_task();
    ndx_lock_pool();
    while (ndx_started < helpers && ndx_add_thread()) { ++ndx_started; }
    helpers = helpers < ndx_started ? helpers : ndx_started;
    all = helpers == ndx_started;
    task->seats = helpers;
    ndx_open = helpers ? task : NULL;
    ndx_crowded = helpers >= ndx_cores;
    ndx_keep_away(helpers);
    pthread_mutex_unlock(&ndx_pool_lock);
    /* Not before the lock is free: those that look would have to wait for it. */
    __atomic_fetch_add(&ndx_calls, 1, __ATOMIC_RELEASE);
    if (all) { pthread_cond_broadcast(&ndx_work); }
    for (i = 0; i < helpers && !all; ++i) { pthread_cond_signal(&ndx_work); }
    if (!helpers) { __atomic_store_n(&ndx_busy, 0, __ATOMIC_RELEASE); }
    return helpers;
}

void ndx_end_task(ndx_task *task) {
    ndx_lock_pool();
    ndx_open = NULL;
    pthread_mutex_unlock(&ndx_pool_lock);
    if (!ndx_look(&task->inside, 0, 1)) {
        pthread_mutex_lock(&ndx_pool_lock);
        while (task->inside) { pthread_cond_wait(&ndx_done, &ndx_pool_lock); }
        pthread_mutex_unlock(&ndx_pool_lock);
    }
    __atomic_store_n(&ndx_last, ndx_nanoseconds(), __ATOMIC_RELAXED);
    __atomic_store_n(&ndx_busy, 0, __ATOMIC_RELEASE);
}

int ndx_threads_are_near(void) {
    return ndx_thread_count() > 1 && ndx_note_task();
}

int ndx_begin_task(ndx_task *task, int helpers, ndx_part part, void *arg) {
    return ndx_open_task(task, helpers, helpers, part, arg);
}

void ndx_parallel_for(ptrdiff_t count, int alone, ndx_part part, void *arg) {
    ndx_task task;
    int threads = alone ? 1 : ndx_thread_count();
    if (threads > count) { threads = (int)count; }
    task.helped = ndx_open_task(&task, count, threads - 1, part, arg);
    if (!task.helped) {
        task.part = part;
        task.arg = arg;
        task.nranges = 1;
        task.ranges[0].next = 0;
        task.ranges[0].end = count;
    }
    ndx_take_parts(&task, 0, ndx_handles_signals());
    if (task.helped) { ndx_end_task(&task); }
}
#endif

/* One pool of threads. They sleep on a condition variable whenever there is no work, so
 * that they take no core from a BLAS. They start when they are first needed, never run
 * Python, and stay until the process ends: one that sleeps holds nothing.
 *
 * A caller opens a task, computes parts of it, closes it, and waits for the threads
 * that are inside. A thread that wakes too late finds no task and sleeps again: no one
 * waits for it. */
#include "ndx/internal/thread_pool.h"

#if defined(_WIN32)
static long ndx_wanted = 1;
int ndx_thread_count(void) { return (int)ndx_wanted; }
void ndx_set_thread_count(int count) { ndx_wanted = count; }

void ndx_set_look(int (*look)(int forked)) { (void)look; }

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
#else
#include <pthread.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#define NDX_STACK ((size_t)1 << 20)

/* How often a caller looks whether the last thread is done before it sleeps, which
 * takes longer than a part's rest often does. */
#define NDX_LOOKS 2000

/* Nanoseconds between two looks for signals. */
#define NDX_LOOK_EVERY 50000000

static int (*ndx_look)(int forked);        /* set once, at import */
static __thread int ndx_is_helper;         /* whether this thread is one of the pool */

static int ndx_wanted = 1;                 /* atomic */
static int ndx_busy;                       /* whether a caller has the pool; atomic */

static pthread_mutex_t ndx_pool_lock = PTHREAD_MUTEX_INITIALIZER;
/* The lock guards what follows, and `seats` and `inside` of the task. */
static pthread_cond_t ndx_work = PTHREAD_COND_INITIALIZER;
static pthread_cond_t ndx_done = PTHREAD_COND_INITIALIZER;
static ndx_task *ndx_open;                 /* the task that threads join; or NULL */
static int ndx_started;
static int ndx_prepared;                   /* whether forks are prepared for */

int ndx_thread_count(void) { return __atomic_load_n(&ndx_wanted, __ATOMIC_ACQUIRE); }

void ndx_set_thread_count(int count) {
    __atomic_store_n(&ndx_wanted, count, __ATOMIC_RELEASE);
}

static void ndx_pause(void) {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ __volatile__("yield");
#endif
}

static int64_t ndx_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* Take parts until none is left. The caller of an operation looks for signals now and
 * then, and takes no more if a handler has raised. */
static void ndx_take_parts(ndx_task *task, int looks) {
    int64_t look = looks ? ndx_now() + NDX_LOOK_EVERY : 0;
    for (;;) {
        ptrdiff_t index = __atomic_fetch_add(&task->next, 1, __ATOMIC_RELAXED);
        if (index >= task->count) { return; }
        task->part(task->arg, index);
        if (looks && ndx_now() >= look) {
            pid_t process = getpid();
            int stop = ndx_look(0);
            if (getpid() != process && task->helped) {
                /* A child, without the threads that compute some of the parts. */
                __atomic_store_n(&task->inside, 0, __ATOMIC_RELEASE);
                stop = ndx_look(1);
            }
            if (stop) { __atomic_store_n(&task->next, task->count, __ATOMIC_RELAXED); }
            look = ndx_now() + NDX_LOOK_EVERY;
        }
    }
}

void ndx_set_look(int (*look)(int forked)) { ndx_look = look; }

static void *ndx_pool_thread(void *unused) {
    ndx_task *task;
    (void)unused;
    ndx_is_helper = 1;
    pthread_mutex_lock(&ndx_pool_lock);
    for (;;) {
        while (ndx_open == NULL || ndx_open->seats == 0) {
            pthread_cond_wait(&ndx_work, &ndx_pool_lock);
        }
        task = ndx_open;
        --task->seats;
        __atomic_store_n(&task->inside, task->inside + 1, __ATOMIC_RELAXED);
        pthread_mutex_unlock(&ndx_pool_lock);
        fesetenv(&task->environment);
        ndx_take_parts(task, 0);
        pthread_mutex_lock(&ndx_pool_lock);
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
    __atomic_store_n(&ndx_busy, 0, __ATOMIC_RELEASE);
}

/* Start a thread; return whether that succeeded. The caller has the lock. */
static int ndx_start_thread(void) {
    pthread_t id;
    pthread_attr_t attributes;
    sigset_t blocked, before;
    int started;
    if (!ndx_prepared) {
        if (pthread_atfork(NULL, NULL, ndx_after_fork) != 0) { return 0; }
        ndx_prepared = 1;
    }
    if (pthread_attr_init(&attributes) != 0) { return 0; }
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&attributes, NDX_STACK);
    /* Signals are for the interpreter's threads, but faults for the one that faults:
     * a mapping's SIGBUS has a handler. */
    sigfillset(&blocked);
    sigdelset(&blocked, SIGBUS);
    sigdelset(&blocked, SIGFPE);
    sigdelset(&blocked, SIGILL);
    sigdelset(&blocked, SIGSEGV);
    sigdelset(&blocked, SIGTRAP);
    pthread_sigmask(SIG_SETMASK, &blocked, &before);
    started = pthread_create(&id, &attributes, ndx_pool_thread, NULL) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    return started;
}

/* Open a task of `count` parts for threads; return how many may join. */
static int ndx_open_task(ndx_task *task, ptrdiff_t count, int helpers, ndx_part part,
                         void *arg) {
    int i, all;
    if (helpers < 1 || __atomic_exchange_n(&ndx_busy, 1, __ATOMIC_ACQUIRE)) { return 0; }
    task->part = part;
    task->arg = arg;
    task->count = count;
    task->next = 0;
    task->inside = 0;
    fegetenv(&task->environment);
    pthread_mutex_lock(&ndx_pool_lock);
    while (ndx_started < helpers && ndx_start_thread()) { ++ndx_started; }
    helpers = helpers < ndx_started ? helpers : ndx_started;
    all = helpers == ndx_started;
    task->seats = helpers;
    ndx_open = helpers ? task : NULL;
    pthread_mutex_unlock(&ndx_pool_lock);
    if (all) { pthread_cond_broadcast(&ndx_work); }
    for (i = 0; i < helpers && !all; ++i) { pthread_cond_signal(&ndx_work); }
    if (!helpers) { __atomic_store_n(&ndx_busy, 0, __ATOMIC_RELEASE); }
    return helpers;
}

void ndx_end_task(ndx_task *task) {
    int i;
    pthread_mutex_lock(&ndx_pool_lock);
    ndx_open = NULL;
    pthread_mutex_unlock(&ndx_pool_lock);
    for (i = 0; i < NDX_LOOKS; ++i) {
        if (__atomic_load_n(&task->inside, __ATOMIC_ACQUIRE) == 0) { break; }
        ndx_pause();
    }
    if (i == NDX_LOOKS) {
        pthread_mutex_lock(&ndx_pool_lock);
        while (task->inside) { pthread_cond_wait(&ndx_done, &ndx_pool_lock); }
        pthread_mutex_unlock(&ndx_pool_lock);
    }
    __atomic_store_n(&ndx_busy, 0, __ATOMIC_RELEASE);
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
        task.count = count;
        task.next = 0;
    }
    ndx_take_parts(&task, ndx_look != NULL && !ndx_is_helper);
    if (task.helped) { ndx_end_task(&task); }
}
#endif

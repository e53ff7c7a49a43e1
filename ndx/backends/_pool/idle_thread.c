/* One thread, which sleeps on a condition variable until the earliest time at which a
 * pool may have memory to give back; for as long as there is no such time, it sleeps
 * without a limit. It starts when it is first needed, never runs Python, and stays until
 * the process ends.
 *
 * A fork ends it first: nothing is half done in the child then, and a process that has no
 * other threads forks without any. The next request that finds memory idle starts it
 * again. */
#if defined(__linux__) && !defined(_GNU_SOURCE)
#define _GNU_SOURCE                        /* for pthread_setname_np */
#endif
#include "ndx/internal/idle_thread.h"

#if defined(_WIN32)
void ndx_idle_thread_allow(int allowed, ndx_idle_look look, ndx_idle_missed missed) {
    (void)allowed; (void)look; (void)missed;
}
int ndx_idle_thread_wake(uint64_t when) { (void)when; return 0; }
int ndx_idle_thread_ends(void) { return 1; }
#else
#include <pthread.h>
#include <time.h>

#include "ndx/internal/clock.h"
#include "ndx/internal/start_thread.h"

#define NDX_IDLE_STACK ((size_t)1 << 20)

static int ndx_allowed;                    /* atomic; not after a start that failed */
static ndx_idle_look ndx_look_at;          /* these two are set once, before it */
static ndx_idle_missed ndx_note_missed;

static pthread_mutex_t ndx_one_fork = PTHREAD_MUTEX_INITIALIZER;
/* The lock guards what follows; forks hold both. */
static pthread_mutex_t ndx_idle_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t ndx_news;
static pthread_t ndx_thread;
static int ndx_prepared;                   /* whether forks are prepared for */
static int ndx_running;
static int ndx_ends;                       /* atomic */
static uint64_t ndx_due = NDX_NEVER;       /* atomic; if it is not, there is a thread */

int ndx_idle_thread_ends(void) { return __atomic_load_n(&ndx_ends, __ATOMIC_RELAXED); }

static void ndx_set_due(uint64_t when) {
    __atomic_store_n(&ndx_due, when, __ATOMIC_SEQ_CST);
}

/* Sleep until something is due, or there is news. The caller has the lock. */
static void ndx_sleep(void) {
    struct timespec end;
    if (ndx_due == NDX_NEVER) {
        pthread_cond_wait(&ndx_news, &ndx_idle_lock);
        return;
    }
#if defined(__APPLE__)
    {
        const uint64_t now = (uint64_t)ndx_nanoseconds() / 1000000u;
        const uint64_t rest = ndx_due > now ? ndx_due - now : 0;
        end.tv_sec = (time_t)(rest / 1000u);
        end.tv_nsec = (long)(rest % 1000u) * 1000000;
        pthread_cond_timedwait_relative_np(&ndx_news, &ndx_idle_lock, &end);
    }
#else
    end.tv_sec = (time_t)(ndx_due / 1000u);
    end.tv_nsec = (long)(ndx_due % 1000u) * 1000000;
    pthread_cond_timedwait(&ndx_news, &ndx_idle_lock, &end);
#endif
}

static void *ndx_idle_thread(void *unused) {
    uint64_t now, next;
    (void)unused;
#if defined(__linux__)
    pthread_setname_np(pthread_self(), "ndx-idle");
#endif
    pthread_mutex_lock(&ndx_idle_lock);
    while (!ndx_ends) {
        /* The coarse clock is behind: by it, nothing might be due yet. */
        now = (uint64_t)ndx_nanoseconds() / 1000000u;
        if (now < ndx_due) {
            ndx_sleep();
            continue;
        }
        /* Before the look. Who releases memory reads this after it had the lock of the
         * pool, which the look takes: so it finds no time here, or the look finds what it
         * has released. */
        ndx_set_due(NDX_NEVER);
        pthread_mutex_unlock(&ndx_idle_lock);
        next = ndx_look_at(now);
        pthread_mutex_lock(&ndx_idle_lock);
        if (next < ndx_due) { ndx_set_due(next); }
    }
    pthread_mutex_unlock(&ndx_idle_lock);
    return NULL;
}

static void ndx_idle_before_fork(void) {
    pthread_mutex_lock(&ndx_one_fork);
    pthread_mutex_lock(&ndx_idle_lock);
    if (!ndx_running) { return; }
    __atomic_store_n(&ndx_ends, 1, __ATOMIC_RELAXED);
    pthread_cond_signal(&ndx_news);
    pthread_mutex_unlock(&ndx_idle_lock);
    pthread_join(ndx_thread, NULL);
    pthread_mutex_lock(&ndx_idle_lock);
    ndx_running = 0;
    __atomic_store_n(&ndx_ends, 0, __ATOMIC_RELAXED);
}

static void ndx_idle_after_fork(void) {
    const uint64_t missed = ndx_due;
    ndx_set_due(NDX_NEVER);
    pthread_mutex_unlock(&ndx_idle_lock);
    pthread_mutex_unlock(&ndx_one_fork);
    if (missed != NDX_NEVER) { ndx_note_missed(missed); }
}

/* Make the condition variable, and prepare for forks, once; return whether it worked. */
static int ndx_prepare(void) {
    pthread_condattr_t attributes;
    int made;
    if (ndx_prepared) { return 1; }
    if (pthread_condattr_init(&attributes) != 0) { return 0; }
#if !defined(__APPLE__)
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
#endif
    made = pthread_cond_init(&ndx_news, &attributes) == 0;
    pthread_condattr_destroy(&attributes);
    /* Handlers that were registered last are called first: the thread ends before a fork
     * takes any lock that the thread may wait for. */
    ndx_prepared = made && pthread_atfork(ndx_idle_before_fork, ndx_idle_after_fork,
                                          ndx_idle_after_fork) == 0;
    return ndx_prepared;
}

void ndx_idle_thread_allow(int allowed, ndx_idle_look look, ndx_idle_missed missed) {
    ndx_look_at = look;
    ndx_note_missed = missed;
    __atomic_store_n(&ndx_allowed, allowed, __ATOMIC_RELEASE);
}

int ndx_idle_thread_wake(uint64_t when) {
    int awaited;
    if (__atomic_load_n(&ndx_due, __ATOMIC_SEQ_CST) <= when) { return 1; }
    if (!__atomic_load_n(&ndx_allowed, __ATOMIC_ACQUIRE)) { return 0; }
    pthread_mutex_lock(&ndx_idle_lock);
    if (!ndx_running) {
        ndx_running = ndx_prepare() && ndx_start_thread(
            &ndx_thread, NDX_IDLE_STACK, ndx_idle_thread, NULL);
        /* The next one would fail, too, and cost each request its time. */
        __atomic_store_n(&ndx_allowed, ndx_running, __ATOMIC_RELEASE);
    }
    awaited = ndx_running;
    if (awaited && when < ndx_due) {
        ndx_set_due(when);
        pthread_cond_signal(&ndx_news);
    }
    pthread_mutex_unlock(&ndx_idle_lock);
    return awaited;
}
#endif

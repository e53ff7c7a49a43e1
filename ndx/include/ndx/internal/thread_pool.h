/* The threads of the process that compute parts of large operations. */
#ifndef NDX_THREAD_POOL_H
#define NDX_THREAD_POOL_H

#include <stddef.h>
#include <stdint.h>

#if !defined(_WIN32)
#include <fenv.h>
#endif

/* Computes one part of an operation. It runs no Python and takes no lock. */
typedef void (*ndx_part)(void *arg, ptrdiff_t index);

/* Consecutive parts: each thread begins with its own ones, which are the same in the next
 * operation on as many parts, so that their elements may still be in its core's cache. */
typedef struct {
    ptrdiff_t next;                        /* the part to take; atomic */
    ptrdiff_t end;
    char apart[48];                        /* one cache line each */
} ndx_parts;

#define NDX_MOST_RANGES 16

/* What the threads compute now: parts, each once, in any order. */
typedef struct {
    ndx_part part;
    void *arg;
    int nranges;
    int seats;                             /* threads that may still join */
    int inside;                            /* threads that compute; read without lock */
    int helped;                            /* how many threads may join */
#if !defined(_WIN32)
    fenv_t environment;                    /* the caller's: rounding, subnormals */
#endif
    ndx_parts ranges[NDX_MOST_RANGES];
} ndx_task;

/* The most threads that may compute one operation. */
#define NDX_MOST_THREADS 256

/* How many threads compute an operation, the calling one included. */
int ndx_thread_count(void);
void ndx_set_thread_count(int count);

/* Compute parts 0 to count - 1, each once, and return when all are done.
 *
 * The calling thread computes, too. It computes alone, and the parts in order, if that
 * is asked for, or another operation has the threads, which is also so for a call
 * inside a part. Call it without the GIL. Between parts the thread that handles signals
 * looks for them; if a handler raises, the rest is not computed. */
void ndx_parallel_for(ptrdiff_t count, int alone, ndx_part part, void *arg);

/* Set the function that looks, and the one thread that does: that in which Python
 * handles signals. The function takes the GIL, and returns whether an error is set.
 * `forked`: set the error that this is a child in the midst of an operation. */
void ndx_set_interrupted(int (*interrupted)(int forked), unsigned long thread);

/* Whether this thread handles signals. */
int ndx_handles_signals(void);

/* Let `helpers` threads compute one part each, while the caller goes on.
 *
 * Return how many do: fewer if no more can be started, none if another operation has
 * the threads. If there are any, `ndx_end_task` waits for them. */
int ndx_begin_task(ndx_task *task, int helpers, ndx_part part, void *arg);
void ndx_end_task(ndx_task *task);

/* Note an operation that is worth threads only if they need not be woken; return whether
 * they look for work, or will with the next such operation. */
int ndx_threads_are_near(void);

/* A flag that one part raises, and others look at before they start. */
static inline void ndx_raise_flag(int *flag) {
#if defined(_MSC_VER)
    *flag = 1;
#else
    __atomic_store_n(flag, 1, __ATOMIC_RELAXED);
#endif
}

static inline int ndx_flag_is_up(int *flag) {
#if defined(_MSC_VER)
    return *flag;
#else
    return __atomic_load_n(flag, __ATOMIC_RELAXED);
#endif
}

#endif

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

/* What the threads compute now: parts 0 to count - 1, each once, in any order. */
typedef struct {
    ndx_part part;
    void *arg;
    ptrdiff_t count;
    ptrdiff_t next;                        /* the part to take; atomic */
    int seats;                             /* threads that may still join */
    int inside;                            /* threads that compute; read without lock */
    int helped;                            /* how many threads may join */
#if !defined(_WIN32)
    fenv_t environment;                    /* the caller's: rounding, subnormals */
#endif
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
 * inside a part. Call it without the GIL. Between parts the calling thread looks for
 * signals; if their handler raises, the rest is not computed. */
void ndx_parallel_for(ptrdiff_t count, int alone, ndx_part part, void *arg);

/* Set the function that looks: it takes the GIL, and returns whether an error is set.
 * `forked`: set the error that this is a child in the midst of an operation. */
void ndx_set_look(int (*look)(int forked));

/* Let `helpers` threads compute one part each, while the caller goes on.
 *
 * Return how many do: fewer if no more can be started, none if another operation has
 * the threads. If there are any, `ndx_end_task` waits for them. */
int ndx_begin_task(ndx_task *task, int helpers, ndx_part part, void *arg);
void ndx_end_task(ndx_task *task);

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

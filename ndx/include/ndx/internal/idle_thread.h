/* The thread that gives idle memory back when it is time, without a request. */
#ifndef NDX_IDLE_THREAD_H
#define NDX_IDLE_THREAD_H

#include <stdint.h>

#define NDX_NEVER UINT64_MAX

/* Looks at the pools, and returns when they are to be looked at again, in milliseconds of
 * the monotonic clock. The thread calls it: it runs no Python, and ends early once the
 * thread is to end (`ndx_idle_thread_ends`). */
typedef uint64_t (*ndx_idle_look)(uint64_t now);

/* Takes over a look that is due at `when`, after a fork has ended the thread. */
typedef void (*ndx_idle_missed)(uint64_t when);

/* Say whether there may be a thread from now on, once something is due. */
void ndx_idle_thread_allow(int allowed, ndx_idle_look look, ndx_idle_missed missed);

/* Have the pools looked at by `when`; return 0 if there is no thread that could. */
int ndx_idle_thread_wake(uint64_t when);

/* Whether the thread is to end, so that a look should. */
int ndx_idle_thread_ends(void);

#endif

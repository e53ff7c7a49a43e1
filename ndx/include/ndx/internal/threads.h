/* Threads of one operation: they never run Python, and are joined before it ends. */
#ifndef NDX_THREADS_H
#define NDX_THREADS_H

typedef void (*ndx_job)(void *arg);

#if defined(_WIN32)
typedef int ndx_thread;
static inline int ndx_thread_start(ndx_thread *thread, ndx_job job, void *arg) {
    (void)thread; (void)job; (void)arg;
    return 0;
}
static inline void ndx_thread_join(ndx_thread *thread) { (void)thread; }
#else
#include <pthread.h>
#include <stdlib.h>

typedef struct {
    pthread_t id;
    ndx_job job;
    void *arg;
} ndx_thread;

static void *ndx_thread_main(void *self) {
    ((ndx_thread *)self)->job(((ndx_thread *)self)->arg);
    return NULL;
}

/* Return whether a thread was started; `thread` must not move until it is joined. */
static inline int ndx_thread_start(ndx_thread *thread, ndx_job job, void *arg) {
    thread->job = job;
    thread->arg = arg;
    return pthread_create(&thread->id, NULL, ndx_thread_main, thread) == 0;
}

static inline void ndx_thread_join(ndx_thread *thread) { pthread_join(thread->id, NULL); }
#endif

#endif

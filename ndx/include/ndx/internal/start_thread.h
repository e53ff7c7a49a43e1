/* How threads of C start. */
#ifndef NDX_START_THREAD_H
#define NDX_START_THREAD_H

#include <pthread.h>
#include <signal.h>
#include <stddef.h>

/* Start a thread that may be joined; return whether that succeeded. Signals are for the
 * interpreter's threads, but faults for the one that faults: a mapping's SIGBUS has a
 * handler. */
static inline int ndx_start_thread(pthread_t *thread, size_t stack, void *(*run)(void *),
                                   void *arg) {
    pthread_attr_t attributes;
    sigset_t blocked, before;
    int started;
    if (pthread_attr_init(&attributes) != 0) { return 0; }
    pthread_attr_setstacksize(&attributes, stack);
    sigfillset(&blocked);
    sigdelset(&blocked, SIGBUS);
    sigdelset(&blocked, SIGFPE);
    sigdelset(&blocked, SIGILL);
    sigdelset(&blocked, SIGSEGV);
    sigdelset(&blocked, SIGTRAP);
    pthread_sigmask(SIG_SETMASK, &blocked, &before);
    started = pthread_create(thread, &attributes, run, arg) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    return started;
}

#endif

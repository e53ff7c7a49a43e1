/* A spinlock for sections of a few dozen instructions that call nothing.
 *
 * Its users hold it across a fork (ndx_at_fork). In the child it is then free, and its
 * data are consistent. */
#ifndef NDX_LOCK_H
#define NDX_LOCK_H

#if defined(_MSC_VER)
#include <intrin.h>
#include <process.h>
#include <windows.h>
typedef volatile long ndx_lock;
static inline void ndx_lock_acquire(ndx_lock *lock) {
    for (int spins = 0; _InterlockedExchange(lock, 1) != 0; ++spins) {
        if (spins >= 64) { SwitchToThread(); }
    }
}
static inline void ndx_lock_release(ndx_lock *lock) { _InterlockedExchange(lock, 0); }
static inline int ndx_at_fork(void (*before)(void), void (*after)(void)) {
    (void)before; (void)after; return 0;
}
static inline long ndx_process_id(void) { return (long)_getpid(); }
#else
#include <pthread.h>
#include <sched.h>
#include <unistd.h>
/* Not before glibc 2.32. */
#if defined(__has_include) && defined(__GLIBC_PREREQ)
#if __has_include(<sys/single_threaded.h>) && __GLIBC_PREREQ(2, 32)
#include <sys/single_threaded.h>
#define NDX_SINGLE_THREADED __libc_single_threaded
#endif
#endif
#if !defined(NDX_SINGLE_THREADED)
#define NDX_SINGLE_THREADED 0
#endif
typedef int ndx_lock;
static inline void ndx_relax(void) {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ __volatile__("yield");
#endif
}
static inline void ndx_lock_acquire(ndx_lock *lock) {
    /* As in glibc's malloc: without other threads the lock is never held, and the
     * atomic exchange is half of the cost of a small allocation. */
    if (NDX_SINGLE_THREADED) {
        *lock = 1;
        return;
    }
    while (__atomic_exchange_n(lock, 1, __ATOMIC_ACQUIRE) != 0) {
        /* Only looked at: an exchange would take the line from the thread that has it. */
        for (int spins = 0; __atomic_load_n(lock, __ATOMIC_RELAXED) != 0; ++spins) {
            if (spins >= 64) { sched_yield(); }
            ndx_relax();
        }
    }
}
static inline void ndx_lock_release(ndx_lock *lock) {
    __atomic_store_n(lock, 0, __ATOMIC_RELEASE);
}
static inline int ndx_at_fork(void (*before)(void), void (*after)(void)) {
    return pthread_atfork(before, after, after);
}
static inline long ndx_process_id(void) { return (long)getpid(); }
#endif

#endif

/* What the GIL guards, where there is one; without it, atomic words and locks.
 *
 * A lock is for a section of a few dozen instructions that runs no Python. There are as
 * many as stripes: arenas take them in turn, so that threads with arenas of their own do
 * not wait for one another. They are held across a fork. */
#ifndef NDX_FREE_THREADING_H
#define NDX_FREE_THREADING_H

#include <Python.h>

#include <ndx/lock.h>

#define NDX_STRIPES 64
/* Beside those of blocks: the lock of the queues of evictors, taken after a block's. */
#define NDX_QUEUES NDX_STRIPES

#define ndx_items(tuple) (((PyTupleObject *)(tuple))->ob_item)

/* For words that are written with a lock, and also read without. */
#if defined(_MSC_VER)
#define ndx_load(word) (*(word))
#define ndx_store(word, value) ((void)(*(word) = (value)))
#define ndx_raise(word, value) ((void)(*(word) += (value)))
#else
#define ndx_load(word) __atomic_load_n(word, __ATOMIC_RELAXED)
#define ndx_store(word, value) __atomic_store_n(word, value, __ATOMIC_RELAXED)
/* For counts that threads without the GIL raise, where there is one, too. */
#define ndx_raise(word, value) ((void)__atomic_add_fetch(word, value, __ATOMIC_RELAXED))
#endif

#ifdef Py_GIL_DISABLED
#define NDX_FREE_THREADED 1
/* All threads see these in one order: a thread that counts an operation, and then looks
 * whether the block is live, and one that ends the scope, and then looks whether there
 * are operations, can't both be late. */
#define ndx_get(word) __atomic_load_n(word, __ATOMIC_SEQ_CST)
#define ndx_set(word, value) __atomic_store_n(word, value, __ATOMIC_SEQ_CST)
#define ndx_up(count) __atomic_add_fetch(count, 1, __ATOMIC_SEQ_CST)
#define ndx_down(count) __atomic_sub_fetch(count, 1, __ATOMIC_SEQ_CST)

#define ndx_swap(word, from, to) \
    __extension__({ __typeof__(*(word)) ndx_from = (from); \
    __atomic_compare_exchange_n(word, &ndx_from, to, 0, __ATOMIC_SEQ_CST, \
                                __ATOMIC_SEQ_CST); })

/* Count up, unless the count is 0: then who counted down is about to free what it is of. */
static inline int ndx_up_if_any(Py_ssize_t *count) {
    Py_ssize_t n = ndx_get(count);
    while (n > 0) {
        if (__atomic_compare_exchange_n(count, &n, n + 1, 0, __ATOMIC_SEQ_CST,
                                        __ATOMIC_SEQ_CST)) {
            return 1;
        }
    }
    return 0;
}

typedef struct {
    ndx_lock lock;
    char apart[60];                        /* a cache line each */
} ndx_stripe;

extern ndx_stripe ndx_stripes[NDX_STRIPES + 1];

/* What threads need all the time is kept in shards. Each thread takes the next one. */
#define NDX_SHARDS 16
#if defined(__GLIBC__)
/* glibc keeps room for a few such words of libraries that are loaded late. */
#define NDX_OF_THREAD __thread __attribute__((tls_model("initial-exec")))
#else
#define NDX_OF_THREAD __thread
#endif
extern NDX_OF_THREAD int ndx_shard_of_thread;       /* 0: not chosen yet */
int ndx_choose_shard(void);
static inline int ndx_shard(void) {
    return ndx_shard_of_thread ? ndx_shard_of_thread - 1 : ndx_choose_shard();
}

/* Threads that count references to one object wait for one another's caches. What stays
 * until the process ends is not counted: CPython takes an object of so many references for
 * immortal. */
static inline void ndx_keep_for_ever(PyObject *object) {
    Py_INCREF(object);
    /* If other threads have it, they change its count at this moment: then the reference
     * above keeps it. That there are weak references counts for none. */
    if (_Py_IsOwnedByCurrentThread(object)
            && (ndx_load(&object->ob_ref_shared) & ~_Py_REF_MAYBE_WEAKREF) == 0) {
        Py_SET_REFCNT(object, (Py_ssize_t)UINT32_MAX + 1);
    }
}

/* Likewise for what lasts about as long as a function: CPython 3.13 keeps functions for
 * ever, later ones do not count references to them from frames. */
static inline void ndx_share(PyObject *object) {
#if PY_VERSION_HEX >= 0x030E0000
    PyUnstable_Object_EnableDeferredRefcount(object);
#else
    ndx_keep_for_ever(object);
#endif
}

static inline void ndx_stripe_lock(int stripe) {
    ndx_lock_acquire(&ndx_stripes[stripe].lock);
}
static inline void ndx_stripe_unlock(int stripe) {
    ndx_lock_release(&ndx_stripes[stripe].lock);
}
#else
#define NDX_FREE_THREADED 0
#define NDX_SHARDS 1
static inline int ndx_shard(void) { return 0; }
#define ndx_get(word) (*(word))
#define ndx_set(word, value) ((void)(*(word) = (value)))
#define ndx_up(count) (++*(count))
#define ndx_down(count) (--*(count))
#define ndx_up_if_any(count) (*(count) > 0 && (++*(count), 1))

#define ndx_swap(word, from, to) (*(word) == (from) && ((*(word) = (to)), 1))

static inline void ndx_keep_for_ever(PyObject *object) { (void)object; }
static inline void ndx_share(PyObject *object) { (void)object; }
static inline void ndx_stripe_lock(int stripe) { (void)stripe; }
static inline void ndx_stripe_unlock(int stripe) { (void)stripe; }
#endif

/* For objects that threads read at any time, by `ndx_get`: a reference to what they have
 * read is counted later, so what was there is never freed. */
static inline void ndx_replace(PyObject **word, PyObject *value) {
    PyObject *before = ndx_get(word);
    ndx_keep_for_ever(value);
    Py_INCREF(value);
    ndx_set(word, value);
    Py_XDECREF(before);
}

#endif

/* The table of all arrays that are alive, which `ndx.memory.live` reads; without a GIL a
 * table for each shard of threads. An array knows its place in it: the last entry takes
 * the place of one that goes. An array is added before it has memory, and leaves before
 * it gives that back. Without a GIL each table has a lock, which a look holds while it
 * copies the table, and a birth while the table grows. */
#ifndef NDX_LIVING_H
#define NDX_LIVING_H

#include <stddef.h>
#include <stdint.h>

#include "ndx/internal/free_threading.h"

typedef struct {
    void *array;
    uint64_t born;                         /* its number among the table's births */
} ndx_living_entry;

/* From time to time it is noted how many births there were. */
#define NDX_BIRTH_MARKS 64
typedef struct {
    int64_t time;                          /* nanoseconds */
    uint64_t births;
} ndx_birth_mark;

typedef struct {
    ndx_living_entry *entries;
    uint32_t count, room;
    uint64_t births;
    uint64_t stop;                         /* births from which to look for room */
    uint64_t missed;                       /* arrays for which there was no room */
    ndx_birth_mark marks[NDX_BIRTH_MARKS];
    int nmarks;
    ndx_lock lock;
#ifdef Py_GIL_DISABLED
    char apart[128];                       /* no two tables share a line of a cache */
#endif
} ndx_living;

extern ndx_living ndx_livings[NDX_SHARDS];

/* Returns the number of what made an array; NULL: nobody asks. It may run Python. */
typedef unsigned int (*ndx_maker_hook)(void);
extern ndx_maker_hook ndx_find_maker;

static inline unsigned int ndx_maker(void) {
    ndx_maker_hook find = ndx_load(&ndx_find_maker);
    return find == NULL ? 0 : find();
}

int ndx_living_more(ndx_living *table);    /* 0: no memory; with the lock */

#ifdef Py_GIL_DISABLED
#define NDX_LIVING_LOCK(table) ndx_lock_acquire(&(table)->lock)
#define NDX_LIVING_UNLOCK(table) ndx_lock_release(&(table)->lock)
#else
#define NDX_LIVING_LOCK(table) ((void)0)
#define NDX_LIVING_UNLOCK(table) ((void)0)
#endif

/* Add an array, and set its place; 0: it is in no table. With the lock: as soon as that is
 * free, another thread may move the array to another place. */
static inline void ndx_living_add(void *array, uint32_t *place) {
    int shard = ndx_shard();
    ndx_living *table = &ndx_livings[shard];
    NDX_LIVING_LOCK(table);
    if (table->births < table->stop || ndx_living_more(table)) {
        ndx_living_entry *entry = &table->entries[table->count++];
        entry->array = array;
        entry->born = ++table->births;
        ndx_store(place, table->count * NDX_SHARDS + (uint32_t)shard);
    }
    NDX_LIVING_UNLOCK(table);
}

/* Remove an array. `offset` is where in an array its place is. */
static inline void ndx_living_remove(uint32_t *place, ptrdiff_t offset) {
    /* The number may change until the lock is taken, but not the table in it. */
    uint32_t at = ndx_load(place);
    if (at) {
        ndx_living *table = &ndx_livings[at % NDX_SHARDS];
        ndx_living_entry *last;
        NDX_LIVING_LOCK(table);
        at = ndx_load(place);
        last = &table->entries[--table->count];
        /* Mostly the array that came last goes first. */
        if (last != &table->entries[at / NDX_SHARDS - 1]) {
            table->entries[at / NDX_SHARDS - 1] = *last;
            ndx_store((uint32_t *)((char *)last->array + offset), at);
        }
        NDX_LIVING_UNLOCK(table);
    }
}

#endif

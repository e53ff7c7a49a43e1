/* Mapped files: their space on disk, their mappings, and SIGBUS, which the system sends
 * if it can't provide a page.
 *
 * The table of mappings and the signal handler are one for the process, so only
 * `_files.mapping` is linked with `mappings.c`. Functions that return int return 0 or
 * an `errno`, unless they say otherwise. */
#ifndef NDX_MAPPINGS_H
#define NDX_MAPPINGS_H

#include <stddef.h>
#include <stdint.h>

#define NDX_LOST 8               /* separate pieces that an entry remembers */

/* An entry of the table. */
typedef struct {
    uintptr_t start, end;        /* 0, 0: free */
    int64_t offset;              /* of `start` in the file */
    int fd;
    int shared;                  /* writes go to the file */
    int is_private;              /* a forked child gets a copy of its own */
    int lost;                    /* pieces */
    uintptr_t lost_start[NDX_LOST], lost_end[NDX_LOST];
} ndx_range;

#if defined(__GNUC__)
#pragma GCC visibility push(hidden)
#endif

extern volatile uint64_t ndx_losses;       /* lost pieces of all live entries */

/* Add a mapping to the table; `fd` must stay open until it is removed. */
int ndx_range_add(void *ptr, size_t nbytes, int fd, int64_t offset, int shared,
                  int is_private);
void ndx_range_remove(void *ptr);
/* Copy the entry that contains an address; return whether there is one. */
int ndx_range_find(const void *ptr, ndx_range *out);
/* Return whether a page in [ptr, ptr + nbytes) was lost. */
int ndx_range_lost(const void *ptr, size_t nbytes);
/* Map the file again over lost pages, as whole pages whose content is not needed. */
int ndx_range_restore(void *ptr, size_t nbytes);
/* A thread calls these before and after it uses files of mappings by their descriptors.
 * Meanwhile no other thread makes a mapping private. The calls can be nested. */
void ndx_files_enter(void);
void ndx_files_leave(void);
/* A thread calls these before and after it makes mappings private. The first waits until
 * no other thread uses files; threads that want to use them wait for the second. */
void ndx_freeze_begin(void);
void ndx_freeze_end(void);
/* Let later writes to the mapping that starts here stay out of its file, for ever. */
int ndx_range_freeze(void *ptr);
extern volatile uint64_t ndx_frozen;       /* counts mappings that became private */
int ndx_ranges_at_fork(void);

/* Open an unnamed file in a directory; only its owner may open it. */
int ndx_open_unnamed(const char *directory, int *fd);
/* Reserve space on disk for [offset, offset + nbytes), and keep its content. */
int ndx_file_reserve(int fd, int64_t offset, size_t nbytes);
/* Give the space of [offset, offset + nbytes) back; the range then reads as zeros. */
int ndx_file_punch(int fd, int64_t offset, size_t nbytes);

/* Let a range read as zeros, without writing them; its disk space stays reserved. */
int ndx_file_zero(int fd, int64_t offset, size_t nbytes);
/* Map whole pages of a file at a multiple of `step`, a power of two: file systems that
 * know huge pages have them at 2 MiB, others at any page. */
int ndx_map_file(int fd, int64_t offset, size_t nbytes, size_t step, int writable,
                 int shared, void **out);
void ndx_unmap(void *ptr, size_t nbytes);
/* Wait until all writes to a shared mapping are on disk. */
int ndx_sync(void *ptr, size_t nbytes, int fd);
/* Map another file, from its start, over the same addresses, as a private mapping. */
int ndx_remap_private(void *ptr, size_t nbytes, int fd);
/* Give up a lock of `flock`, in all processes that have the descriptor. */
void ndx_unlock_file(int fd);
void ndx_close_file(int fd);
/* Set the free and the total bytes of the file system of a path. */
int ndx_space(const char *path, uint64_t *idle, uint64_t *total);

#if defined(__GNUC__)
#pragma GCC visibility pop
#endif

#endif

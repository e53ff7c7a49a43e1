/* Hints of a pass to the system's page cache, and reads and writes of pieces of a file.
 *
 * All functions may fail or do nothing: the mapping has the bytes, too. */
#ifndef NDX_ADVICE_H
#define NDX_ADVICE_H

#include <stddef.h>
#include <stdint.h>

#if defined(_WIN32)
static inline void ndx_read_ahead(int fd, int64_t offset, size_t nbytes) {
    (void)fd; (void)offset; (void)nbytes;
}
static inline void ndx_populate(char *ptr, size_t nbytes, int written) {
    (void)ptr; (void)nbytes; (void)written;
}
static inline void ndx_write_behind(int fd, int64_t offset, size_t nbytes, int wait) {
    (void)fd; (void)offset; (void)nbytes; (void)wait;
}
static inline void ndx_drop(char *ptr, int fd, int64_t offset, size_t nbytes) {
    (void)ptr; (void)fd; (void)offset; (void)nbytes;
}
static inline int ndx_read_at(int fd, char *out, size_t nbytes, int64_t offset) {
    (void)fd; (void)out; (void)nbytes; (void)offset;
    return 0;
}
static inline int ndx_write_at(int fd, const char *from, size_t nbytes, int64_t offset) {
    (void)fd; (void)from; (void)nbytes; (void)offset;
    return 0;
}
static inline int ndx_is_cached(const char *ptr) {
    (void)ptr;
    return 0;
}
static inline int ndx_reopen(int fd, int in_order) {
    (void)fd; (void)in_order;
    return -1;
}
static inline void ndx_close(int fd) { (void)fd; }
#else
#if !defined(_GNU_SOURCE)
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#if defined(__linux__)
#if !defined(MADV_POPULATE_READ)
#define MADV_POPULATE_READ 22                  /* Linux 5.14 */
#define MADV_POPULATE_WRITE 23
#endif
#endif

/* Start to read a range from disk. */
static inline void ndx_read_ahead(int fd, int64_t offset, size_t nbytes) {
#if defined(POSIX_FADV_WILLNEED)
    posix_fadvise(fd, (off_t)offset, (off_t)nbytes, POSIX_FADV_WILLNEED);
#else
    (void)fd; (void)offset; (void)nbytes;
#endif
}

/* Map the pages of a range in one call, instead of by many page faults. */
static inline void ndx_populate(char *ptr, size_t nbytes, int written) {
#if defined(__linux__)
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    uintptr_t start = (uintptr_t)ptr & ~(page - 1);
    uintptr_t end = ((uintptr_t)ptr + nbytes + page - 1) & ~(page - 1);
    madvise((void *)start, end - start, written ? MADV_POPULATE_WRITE : MADV_POPULATE_READ);
#else
    (void)ptr; (void)nbytes; (void)written;
#endif
}

/* Start to write a range to disk, or (`wait`) wait until it is written. */
static inline void ndx_write_behind(int fd, int64_t offset, size_t nbytes, int wait) {
#if defined(SYNC_FILE_RANGE_WRITE)
    unsigned flags = SYNC_FILE_RANGE_WRITE;
    if (wait) { flags |= SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WAIT_AFTER; }
    sync_file_range(fd, (off_t)offset, (off_t)nbytes, flags);
#else
    (void)fd; (void)offset; (void)nbytes; (void)wait;
#endif
}

/* Drop the pages of a shared mapping from memory; they stay on disk. Dirty pages, and
 * pages only partly in the range, are kept. */
static inline void ndx_drop(char *ptr, int fd, int64_t offset, size_t nbytes) {
#if defined(__linux__)
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    uintptr_t start = ((uintptr_t)ptr + page - 1) & ~(page - 1);
    uintptr_t end = ((uintptr_t)ptr + nbytes) & ~(page - 1);
    if (end <= start) { return; }
    offset += (int64_t)(start - (uintptr_t)ptr);
    madvise((void *)start, end - start, MADV_DONTNEED);
    posix_fadvise(fd, (off_t)offset, (off_t)(end - start), POSIX_FADV_DONTNEED);
#else
    (void)ptr; (void)fd; (void)offset; (void)nbytes;
#endif
}

/* Return whether the page of an address is in memory; 0 if the system can't tell. */
static inline int ndx_is_cached(const char *ptr) {
#if defined(__linux__)
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    unsigned char found = 0;
    return mincore((void *)((uintptr_t)ptr & ~(page - 1)), 1, &found) == 0 && (found & 1);
#else
    (void)ptr;
    return 0;
#endif
}

/* Open a file again for a thread that reads it, `in_order` or not; -1 if that fails.
 *
 * Readahead follows the access pattern of a descriptor. Two threads that share one look
 * like a random reader. Readahead also uses large pages, which saves half of the work;
 * a request by ndx_read_ahead does not. */
static inline int ndx_reopen(int fd, int in_order) {
#if defined(__linux__)
    char path[32];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    int own = open(path, O_RDONLY | O_CLOEXEC);
    if (own >= 0) {
        posix_fadvise(own, 0, 0, in_order ? POSIX_FADV_SEQUENTIAL : POSIX_FADV_RANDOM);
    }
    return own;
#else
    (void)fd; (void)in_order;
    return -1;
#endif
}

static inline void ndx_close(int fd) {
    if (fd >= 0) { close(fd); }
}

/* Read a whole range; return whether that succeeded. */
static inline int ndx_read_at(int fd, char *out, size_t nbytes, int64_t offset) {
    while (nbytes > 0) {
        ssize_t got = pread(fd, out, nbytes, (off_t)offset);
        if (got < 0 && errno == EINTR) { continue; }
        if (got <= 0) { return 0; }
        out += got;
        offset += got;
        nbytes -= (size_t)got;
    }
    return 1;
}

/* Write a whole range within the file; return whether that succeeded. */
static inline int ndx_write_at(int fd, const char *from, size_t nbytes, int64_t offset) {
    struct stat file;
    /* Never extend a file that was truncated: the truncation must stay detectable. */
    if (fstat(fd, &file) != 0 || file.st_size < offset + (int64_t)nbytes) { return 0; }
    while (nbytes > 0) {
        ssize_t put = pwrite(fd, from, nbytes, (off_t)offset);
        if (put < 0 && errno == EINTR) { continue; }
        if (put <= 0) { return 0; }
        from += put;
        offset += put;
        nbytes -= (size_t)put;
    }
    return 1;
}
#endif

#endif

/* The resident memory of the process, without pages of files. */
#ifndef NDX_RESIDENT_H
#define NDX_RESIDENT_H

#include <stddef.h>

#if defined(__linux__)
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

/* Return resident bytes; 0 if unknown. The file is not kept open: a forked child must
 * read its own. */
static inline size_t ndx_resident(void) {
    char text[128];
    char *at = text;
    int fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
    if (fd < 0) { return 0; }
    ssize_t length = read(fd, text, sizeof(text) - 1);
    close(fd);
    if (length <= 0) { return 0; }
    text[length] = 0;
    (void)strtoull(at, &at, 10); /* address space */
    unsigned long long all = strtoull(at, &at, 10);
    unsigned long long of_files = strtoull(at, &at, 10);
    if (all <= of_files) { return 0; }
    return (size_t)(all - of_files) * (size_t)sysconf(_SC_PAGESIZE);
}

/* Make pages resident now. Their content is kept, and other threads may use them
 * meanwhile. */
#if defined(__GNUC__)
__attribute__((no_sanitize_address))
#endif
static inline void ndx_make_resident(void *pages, size_t nbytes) {
#if !defined(MADV_POPULATE_WRITE)
#define MADV_POPULATE_WRITE 23
#endif
    char *end = (char *)pages + nbytes;
    if (madvise(pages, nbytes, MADV_POPULATE_WRITE) == 0 || errno != EINVAL) { return; }
    /* The fallback: Linux before 5.14, or a range that is not whole pages. */
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    for (char *at = (char *)pages; at < end; at += page) {
        __atomic_fetch_or(at, 0, __ATOMIC_RELAXED);
    }
}
#else
static inline size_t ndx_resident(void) { return 0; }
static inline void ndx_make_resident(void *pages, size_t nbytes) {
    (void)pages; (void)nbytes;
}
#endif

#endif

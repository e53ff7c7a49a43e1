/* Giving back the pages inside of a range that stays allocated. */
#ifndef NDX_PAGES_H
#define NDX_PAGES_H

#include <stddef.h>
#include <stdint.h>

#if defined(_WIN32)
static inline size_t ndx_purge(char *start, char *end) {
    (void)start; (void)end;
    return 0;
}
#else
#include <sys/mman.h>
#include <unistd.h>

/* Let the system take the whole pages of [start, end), whose content is lost; return
 * their bytes. Only for private anonymous memory, such as malloc's. */
static inline size_t ndx_purge(char *start, char *end) {
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    uintptr_t first = ((uintptr_t)start + page - 1) & ~(page - 1);
    uintptr_t last = (uintptr_t)end & ~(page - 1);
#if defined(__linux__)
    int advice = MADV_DONTNEED;
#else
    int advice = MADV_FREE;
#endif
    if (last <= first || madvise((void *)first, last - first, advice) != 0) { return 0; }
    return last - first;
}
#endif

#endif

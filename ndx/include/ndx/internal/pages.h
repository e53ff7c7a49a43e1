/* Address space, the memory of its pages, and how to give that back. */
#ifndef NDX_PAGES_H
#define NDX_PAGES_H

#include <stddef.h>
#include <stdint.h>

#if defined(_WIN32)
#include <malloc.h>
static inline size_t ndx_page_size(void) { return 4096; }
static inline int ndx_pages_are_lazy(void) { return 0; }
static inline void *ndx_reserve(size_t nbytes, int whole) {
    (void)whole;
    return _aligned_malloc(nbytes, 4096);
}
static inline void ndx_unreserve(void *ptr, size_t nbytes) {
    (void)nbytes;
    _aligned_free(ptr);
}
static inline void ndx_use_huge_pages(char *start, char *end) { (void)start; (void)end; }
static inline int ndx_purge(char *start, char *end) {
    (void)start; (void)end;
    return 0;
}
static inline int ndx_is_resident(const char *ptr) { (void)ptr; return 1; }
#else
#include <sys/mman.h>
#include <unistd.h>

#if !defined(MAP_NORESERVE)
#define MAP_NORESERVE 0
#endif
#if !defined(MAP_ANONYMOUS)
#define MAP_ANONYMOUS MAP_ANON
#endif

#define NDX_HUGE_PAGE ((uintptr_t)1 << 21)

static inline size_t ndx_page_size(void) { return (size_t)sysconf(_SC_PAGESIZE); }

/* Whether a page takes memory only when it is first written. */
static inline int ndx_pages_are_lazy(void) { return 1; }

/* Return nbytes of zeros, or NULL. Unless `whole`, the system is not asked whether it
 * has so much: that is address space, to be used in part. */
static inline void *ndx_reserve(size_t nbytes, int whole) {
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | (whole ? 0 : MAP_NORESERVE);
    void *ptr = mmap(NULL, nbytes, PROT_READ | PROT_WRITE, flags, -1, 0);
    return ptr == MAP_FAILED ? NULL : ptr;
}

static inline void ndx_unreserve(void *ptr, size_t nbytes) { munmap(ptr, nbytes); }

/* Let the huge pages that lie wholly in [start, end) be used as such. */
static inline void ndx_use_huge_pages(char *start, char *end) {
#if defined(MADV_HUGEPAGE)
    uintptr_t first = ((uintptr_t)start + NDX_HUGE_PAGE - 1) & ~(NDX_HUGE_PAGE - 1);
    uintptr_t last = (uintptr_t)end & ~(NDX_HUGE_PAGE - 1);
    if (last > first) { madvise((void *)first, last - first, MADV_HUGEPAGE); }
#else
    (void)start; (void)end;
#endif
}

/* Let the system take whole pages, whose content is lost: they are zero when they are
 * next read (of anonymous memory). Return whether it has. */
static inline int ndx_purge(char *start, char *end) {
    size_t nbytes = (size_t)(end - start);
#if defined(__linux__)
#if defined(MADV_NOHUGEPAGE)
    /* One touch would bring a whole huge page back. */
    if (nbytes >= NDX_HUGE_PAGE) { madvise(start, nbytes, MADV_NOHUGEPAGE); }
#endif
    return madvise(start, nbytes, MADV_DONTNEED) == 0;
#else
    /* Elsewhere MADV_DONTNEED keeps the content, and MADV_FREE may. */
    return mmap(start, nbytes, PROT_READ | PROT_WRITE,
                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) == start;
#endif
}

/* Whether the page at ptr is in memory, so that a write to it takes no new one; where
 * the system does not tell, it is taken to be. */
static inline int ndx_is_resident(const char *ptr) {
#if defined(__linux__)
    unsigned char seen = 1;
    uintptr_t page = (uintptr_t)ptr & ~(uintptr_t)(ndx_page_size() - 1);
    return mincore((void *)page, 1, &seen) != 0 || (seen & 1);
#else
    (void)ptr;
    return 1;
#endif
}
#endif

#endif

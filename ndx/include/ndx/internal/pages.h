/* Address space: reserve it, and give the memory of its pages back. */
#ifndef NDX_PAGES_H
#define NDX_PAGES_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined(_WIN32)
#include <malloc.h>
static inline size_t ndx_page_size(void) { return 4096; }
static inline int ndx_pages_are_lazy(void) { return 0; }
static inline int ndx_reserves_unseen(void) { return 0; }
static inline int ndx_show(void *ptr, size_t nbytes) {
    (void)ptr; (void)nbytes;
    return 1;
}
static inline void *ndx_reserve_at(size_t nbytes, int whole, size_t step) {
    (void)whole;
    return _aligned_malloc(nbytes, step);
}
static inline void *ndx_reserve(size_t nbytes, int whole) {
    return ndx_reserve_at(nbytes, whole, 4096);
}
static inline void ndx_unreserve(void *ptr, size_t nbytes) {
    (void)nbytes;
    _aligned_free(ptr);
}
static inline void ndx_use_huge_pages(char *start, char *end) { (void)start; (void)end; }
static inline void ndx_use_small_pages(char *start, char *end) { (void)start; (void)end; }
static inline int ndx_purge(char *start, char *end) {
    (void)start; (void)end;
    return 0;
}
static inline void ndx_offer(char *start, size_t nbytes) { (void)start; (void)nbytes; }
static inline void ndx_zero(char *start, size_t nbytes, int give_back) {
    (void)give_back;
    memset(start, 0, nbytes);
}
static inline int ndx_is_resident(const char *ptr) { (void)ptr; return 1; }
#else
#include <sys/mman.h>
#if defined(__linux__)
#include <sys/syscall.h>
#endif
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

/* Profilers (memray, fil) replace the C library's `mmap`, and count what it returns as
 * memory in use. Address space is reserved by the system call itself, which they do not
 * see, and `ndx_show` maps what is needed of it again, by the function. */
#if defined(__linux__) && defined(SYS_mmap) && UINTPTR_MAX > 0xffffffffu
#define NDX_RESERVES_UNSEEN 1
#else
#define NDX_RESERVES_UNSEEN 0
#endif

static inline int ndx_reserves_unseen(void) { return NDX_RESERVES_UNSEEN; }

/* Return nbytes of zeros, or NULL. Unless `whole`, the system does not check that it
 * has so much memory: the range is address space that will be used only in part. */
static inline void *ndx_reserve(size_t nbytes, int whole) {
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | (whole ? 0 : MAP_NORESERVE);
    void *ptr;
#if NDX_RESERVES_UNSEEN
    if (!whole) {
        long made = syscall(SYS_mmap, NULL, nbytes, PROT_READ | PROT_WRITE, flags, -1L, 0L);
        return made == -1 ? NULL : (void *)made;
    }
#endif
    ptr = mmap(NULL, nbytes, PROT_READ | PROT_WRITE, flags, -1, 0);
    return ptr == MAP_FAILED ? NULL : ptr;
}

/* Map never used pages of a reserved range again, with the same flags: the system merges
 * them with their neighbours. If it can't, it may have unmapped them; a later call maps
 * them. */
static inline int ndx_show(void *ptr, size_t nbytes) {
#if NDX_RESERVES_UNSEEN
    return mmap(ptr, nbytes, PROT_READ | PROT_WRITE,
                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) == ptr;
#else
    (void)ptr; (void)nbytes;
    return 1;
#endif
}

static inline void ndx_unreserve(void *ptr, size_t nbytes) { munmap(ptr, nbytes); }

/* Like `ndx_reserve`, at a multiple of `step`: a page, or a power of two above it. */
static inline void *ndx_reserve_at(size_t nbytes, int whole, size_t step) {
    char *ptr = (char *)ndx_reserve(nbytes, whole);
    size_t page, before;
    if (ptr == NULL || ((uintptr_t)ptr & (step - 1)) == 0) { return ptr; }
    ndx_unreserve(ptr, nbytes);
    page = ndx_page_size();
    nbytes = (nbytes + page - 1) & ~(page - 1);
    ptr = (char *)ndx_reserve(nbytes + step, whole);
    if (ptr == NULL) { return NULL; }
    before = (size_t)(-(uintptr_t)ptr & (step - 1));
    if (before) { ndx_unreserve(ptr, before); }
    if (before < step) { ndx_unreserve(ptr + before + nbytes, step - before); }
    return ptr + before;
}

/* Let the system use huge pages where they lie wholly in [start, end). */
static inline void ndx_use_huge_pages(char *start, char *end) {
#if defined(MADV_HUGEPAGE)
    uintptr_t first = ((uintptr_t)start + NDX_HUGE_PAGE - 1) & ~(NDX_HUGE_PAGE - 1);
    uintptr_t last = (uintptr_t)end & ~(NDX_HUGE_PAGE - 1);
    if (last > first) { madvise((void *)first, last - first, MADV_HUGEPAGE); }
#else
    (void)start; (void)end;
#endif
}

/* Keep huge pages out of a range of whole pages. */
static inline void ndx_use_small_pages(char *start, char *end) {
#if defined(MADV_NOHUGEPAGE)
    madvise(start, (size_t)(end - start), MADV_NOHUGEPAGE);
#else
    (void)start; (void)end;
#endif
}

/* Give whole pages back to the system; return whether that succeeded. Their content is
 * lost: anonymous memory reads as zeros afterwards. */
static inline int ndx_purge(char *start, char *end) {
    size_t nbytes = (size_t)(end - start);
#if defined(__linux__)
    /* Otherwise one access would allocate a whole huge page again. */
    if (nbytes >= NDX_HUGE_PAGE) { ndx_use_small_pages(start, end); }
    return madvise(start, nbytes, MADV_DONTNEED) == 0;
#else
    /* On other systems MADV_DONTNEED keeps the content, and MADV_FREE may keep it. */
    return mmap(start, nbytes, PROT_READ | PROT_WRITE,
                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) == start;
#endif
}

/* Let the system take whole pages when it needs memory, and lose their content. Until
 * then they are resident, and cost nothing to use again. */
static inline void ndx_offer(char *start, size_t nbytes) {
#if defined(__linux__) && defined(MADV_FREE)
    madvise(start, nbytes, MADV_FREE);
#else
    (void)start; (void)nbytes;
#endif
}

/* Set private anonymous memory to zero without making pages resident that are not.
 * Those that are resident are written to or, with `give_back`, given back. */
static inline void ndx_zero(char *start, size_t nbytes, int give_back) {
#if defined(__linux__)
    enum { SEEN = 4096 };
    unsigned char seen[SEEN];
    uintptr_t page = ndx_page_size();
    char *end = start + nbytes;
    char *at = (char *)(((uintptr_t)start + page - 1) & ~(page - 1));
    char *last = (char *)((uintptr_t)end & ~(page - 1));
    if (at < last) {
        memset(start, 0, (size_t)(at - start));
        memset(last, 0, (size_t)(end - last));
        if (give_back && madvise(at, (size_t)(last - at), MADV_DONTNEED) == 0) { return; }
        while (at < last) {
            size_t count = (size_t)(last - at) / page, i = 0;
            if (count > SEEN) { count = SEEN; }
            if (mincore(at, count * page, seen) != 0) { memset(seen, 1, count); }
            while (i < count) {
                size_t first = i;
                while (i < count && ((seen[i] ^ seen[first]) & 1) == 0) { ++i; }
                char *run = at + first * page;
                size_t length = (i - first) * page;
                /* What is not resident may be swapped out, and not be zeros. */
                if ((seen[first] & 1) || madvise(run, length, MADV_DONTNEED) != 0) {
                    memset(run, 0, length);
                }
            }
            at += count * page;
        }
        return;
    }
#endif
    (void)give_back;
    memset(start, 0, nbytes);
}

/* Whether the page at ptr is in memory, so that a write to it allocates no page; true
 * if the system can't tell. */
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

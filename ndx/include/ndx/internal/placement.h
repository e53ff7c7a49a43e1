/* Where the pages of a range are, and whether they stay: NUMA policies, locks, and what
 * the system says of them. Functions return 0, or the number of an error. */
#ifndef NDX_PLACEMENT_H
#define NDX_PLACEMENT_H

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* The most nodes that Linux has. */
enum { NDX_NODES = 1024 };

/* By which rule the system chooses the nodes of new pages. The numbers are Linux's. */
enum { NDX_AS_THE_THREAD = 0, NDX_BIND = 2, NDX_INTERLEAVE = 3, NDX_LOCAL = 4 };

typedef struct {
    int rule;
    unsigned long nodes[NDX_NODES / (8 * sizeof(unsigned long))];
} ndx_policy;

enum { NDX_WORD = 8 * sizeof(unsigned long) };

static inline void ndx_add_node(ndx_policy *policy, int node) {
    policy->nodes[node / NDX_WORD] |= 1UL << (node % NDX_WORD);
}

static inline int ndx_has_node(const ndx_policy *policy, int node) {
    return (int)(policy->nodes[node / NDX_WORD] >> (node % NDX_WORD) & 1);
}

#if defined(__linux__)
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Of <numaif.h> and <linux/fs.h>, which not every system has, or not so new. */
enum {
    NDX_MEMS_ALLOWED = 1 << 2,
    NDX_PRESENT = 1 << 3,
    NDX_ZERO_PAGE = 1 << 5,
    NDX_HUGE = 1 << 6
};
struct ndx_region { uint64_t start, end, categories; };
struct ndx_scan {
    uint64_t size, flags, start, end, walk_end, regions, region_count, most_pages;
    uint64_t inverted, all_of, any_of, wanted;
};
#define NDX_PAGEMAP_SCAN _IOWR('f', 16, struct ndx_scan)

static inline int ndx_outcome(long result) { return result < 0 ? errno : 0; }

/* Set the nodes that the process may have memory of. */
static inline int ndx_allowed_nodes(ndx_policy *out) {
    return ndx_outcome(syscall(SYS_get_mempolicy, NULL, out->nodes, (long)NDX_NODES, NULL,
                               (long)NDX_MEMS_ALLOWED));
}

/* Let a policy hold for pages that the range gets from now on. */
static inline int ndx_set_policy(void *ptr, size_t nbytes, const ndx_policy *policy) {
    int named = policy->rule != NDX_LOCAL;
    /* The system reads one bit less than it is told. */
    return ndx_outcome(syscall(SYS_mbind, ptr, nbytes, (long)policy->rule,
                               named ? policy->nodes : NULL,
                               named ? (long)NDX_NODES + 1 : 0L, 0L));
}

/* Add the bytes of a range that are on each node to `counts`. */
static inline int ndx_count_nodes(char *start, size_t nbytes, size_t *counts) {
    enum { SOME = 512 };
    void *pages[SOME];
    int nodes[SOME];
    size_t page = (size_t)sysconf(_SC_PAGESIZE), at = 0;
    while (at < nbytes) {
        unsigned long count = 0, i;
        for (; count < SOME && at < nbytes; ++count, at += page) {
            pages[count] = start + at;
        }
        if (syscall(SYS_move_pages, 0L, count, pages, NULL, nodes, 0L) != 0) {
            return errno;
        }
        for (i = 0; i < count; ++i) {
            if (nodes[i] >= 0 && nodes[i] < NDX_NODES) { counts[nodes[i]] += page; }
        }
    }
    return 0;
}

/* Return a descriptor for `ndx_count_huge`, or -1. */
static inline int ndx_open_pagemap(void) {
    return open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
}

static inline void ndx_close_pagemap(int fd) { if (fd >= 0) { close(fd); } }

/* Add the bytes of a range that are in huge pages to `count`; since Linux 6.7. */
static inline int ndx_count_huge(int pagemap, char *start, size_t nbytes, size_t *count) {
    enum { SOME = 64 };
    struct ndx_region regions[SOME];
    struct ndx_scan scan;
    long found, i;
    memset(&scan, 0, sizeof(scan));
    scan.size = sizeof(scan);
    scan.walk_end = (uint64_t)(uintptr_t)start;
    scan.end = scan.walk_end + nbytes;
    scan.regions = (uint64_t)(uintptr_t)regions;
    scan.region_count = SOME;
    scan.all_of = NDX_PRESENT | NDX_HUGE | NDX_ZERO_PAGE;
    scan.inverted = NDX_ZERO_PAGE;
    scan.wanted = NDX_HUGE;
    while (scan.walk_end < scan.end) {
        scan.start = scan.walk_end;
        found = ioctl(pagemap, NDX_PAGEMAP_SCAN, &scan);
        if (found < 0) { return errno; }
        for (i = 0; i < found; ++i) {
            *count += (size_t)(regions[i].end - regions[i].start);
        }
    }
    return 0;
}
#else
static inline int ndx_allowed_nodes(ndx_policy *out) { (void)out; return ENOSYS; }
static inline int ndx_set_policy(void *ptr, size_t nbytes, const ndx_policy *policy) {
    (void)ptr; (void)nbytes; (void)policy;
    return ENOSYS;
}
static inline int ndx_count_nodes(char *start, size_t nbytes, size_t *counts) {
    (void)start; (void)nbytes; (void)counts;
    return ENOSYS;
}
static inline int ndx_open_pagemap(void) { return -1; }
static inline void ndx_close_pagemap(int fd) { (void)fd; }
static inline int ndx_count_huge(int pagemap, char *start, size_t nbytes, size_t *count) {
    (void)pagemap; (void)start; (void)nbytes; (void)count;
    return ENOSYS;
}
#endif

#if defined(_WIN32)
static inline int ndx_lock_pages(void *ptr, size_t nbytes) {
    (void)ptr; (void)nbytes;
    return ENOSYS;
}
static inline int ndx_unlock_pages(void *ptr, size_t nbytes) {
    (void)ptr; (void)nbytes;
    return 0;
}
#else
#include <sys/mman.h>

static inline int ndx_unlock_pages(void *ptr, size_t nbytes) {
    return munlock(ptr, nbytes) == 0 ? 0 : errno;
}

/* Make the pages of a range resident, and keep them so. */
static inline int ndx_lock_pages(void *ptr, size_t nbytes) {
    int error;
    if (mlock(ptr, nbytes) == 0) { return 0; }
    error = errno;
    /* A part may be locked by now. */
    ndx_unlock_pages(ptr, nbytes);
    return error;
}
#endif

#endif

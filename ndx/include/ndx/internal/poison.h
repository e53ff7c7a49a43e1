/* Under AddressSanitizer, memory that ndx holds but does not use is poisoned: an access
 * is reported like one to freed memory. In other builds these are no-ops. */
#ifndef NDX_POISON_H
#define NDX_POISON_H

#if defined(__has_feature)
#if __has_feature(address_sanitizer) && !defined(__SANITIZE_ADDRESS__)
#define __SANITIZE_ADDRESS__ 1
#endif
#endif

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>
#define NDX_POISONS 1
#define ndx_poison(ptr, nbytes) ASAN_POISON_MEMORY_REGION(ptr, nbytes)
#define ndx_unpoison(ptr, nbytes) ASAN_UNPOISON_MEMORY_REGION(ptr, nbytes)

/* For sparsely used address space: writing zeros to its whole shadow would take an
 * eighth of its size in memory. Dropped shadow pages read as zeros, and take none. */
static inline void ndx_unpoison_space(void *ptr, size_t nbytes)
{
    size_t scale, offset, page = (size_t)getpagesize();
    uintptr_t start = (uintptr_t)ptr, stop = start + nbytes, first, last;
    __asan_get_shadow_mapping(&scale, &offset);
    first = ((start >> scale) + offset + page - 1) & ~(page - 1);
    last = ((stop >> scale) + offset) & ~(page - 1);
    if (first < last && madvise((void *)first, last - first, MADV_DONTNEED) == 0) {
        uintptr_t low = (first - offset) << scale, high = (last - offset) << scale;
        ndx_unpoison(ptr, low - start);
        ndx_unpoison((void *)high, stop - high);
    } else {
        ndx_unpoison(ptr, nbytes);
    }
}
#else
#define NDX_POISONS 0
#define ndx_poison(ptr, nbytes) ((void)(ptr), (void)(nbytes))
#define ndx_unpoison(ptr, nbytes) ((void)(ptr), (void)(nbytes))
#define ndx_unpoison_space(ptr, nbytes) ((void)(ptr), (void)(nbytes))
#endif

#endif

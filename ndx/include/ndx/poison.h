/* Under AddressSanitizer, memory that is ours but in no use may not be touched: a
 * read of it is reported as one of freed memory. Otherwise these are nothing. */
#ifndef NDX_POISON_H
#define NDX_POISON_H

#if defined(__has_feature)
#if __has_feature(address_sanitizer) && !defined(__SANITIZE_ADDRESS__)
#define __SANITIZE_ADDRESS__ 1
#endif
#endif

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#define NDX_POISONS 1
#define ndx_poison(ptr, nbytes) ASAN_POISON_MEMORY_REGION(ptr, nbytes)
#define ndx_unpoison(ptr, nbytes) ASAN_UNPOISON_MEMORY_REGION(ptr, nbytes)
#else
#define NDX_POISONS 0
#define ndx_poison(ptr, nbytes) ((void)(ptr), (void)(nbytes))
#define ndx_unpoison(ptr, nbytes) ((void)(ptr), (void)(nbytes))
#endif

#endif

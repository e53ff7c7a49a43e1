/* Fill memory with copies of one element. */
#ifndef NDX_FILL_H
#define NDX_FILL_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "pages.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

/* Fills of at least so many bytes bypass the caches. A plain store reads its cache line
 * first, which doubles the traffic. But data that fit in the last-level cache should
 * stay there for the next reader. Measured: docs/internals/performance_diary.md. */
#define NDX_FILL_PAST_CACHES ((size_t)32 << 20)

/* The unit of ndx_fill_large: one check per part, whether its pages are in memory. */
#define NDX_FILL_PART ((size_t)128 << 10)

/* Fill with a 16-byte pattern that starts at dst, whatever its alignment. */
static inline void ndx_fill_cached(char *dst, size_t nbytes, const char *pattern) {
    char block[64];
    size_t i = 0;
    for (; i < 64; i += 16) { memcpy(block + i, pattern, 16); }
    for (i = 0; i + 64 <= nbytes; i += 64) { memcpy(dst + i, block, 64); }
    memcpy(dst + i, block, nbytes - i);
}

#if defined(__SSE2__)
/* Fill as ndx_fill_cached, but bypass the caches; dst and nbytes are multiples of
 * 64. */
static inline void ndx_fill_uncached(char *dst, size_t nbytes, const char *pattern) {
    __m128i value = _mm_loadu_si128((const __m128i *)pattern);
    size_t i;
    for (i = 0; i < nbytes; i += 64) {
        _mm_stream_si128((__m128i *)(dst + i), value);
        _mm_stream_si128((__m128i *)(dst + i + 16), value);
        _mm_stream_si128((__m128i *)(dst + i + 32), value);
        _mm_stream_si128((__m128i *)(dst + i + 48), value);
    }
}

static inline void ndx_fill_large(char *dst, size_t nbytes, const char *pattern) {
    char twice[32], *end = dst + nbytes, *part;
    size_t head = (size_t)(-(intptr_t)dst & 63);
    if (head > nbytes) { head = nbytes; }
    memcpy(twice, pattern, 16);
    memcpy(twice + 16, pattern, 16);
    ndx_fill_cached(dst, head, pattern);
    dst += head;
    pattern = twice + head % 16;
    for (; (size_t)(end - dst) >= NDX_FILL_PART; dst += NDX_FILL_PART) {
        /* The system clears a new page through the caches, so its lines are cached. */
        part = dst + NDX_FILL_PART - 1;
        if (ndx_is_resident(part)) { ndx_fill_uncached(dst, NDX_FILL_PART, pattern); }
        else { ndx_fill_cached(dst, NDX_FILL_PART, pattern); }
    }
    _mm_sfence();
    ndx_fill_cached(dst, (size_t)(end - dst), pattern);
}
#endif

/* Fill nbytes at dst, a part of `whole` bytes, with an element of 1, 2, 4, 8 or 16 bytes. */
static inline void ndx_fill_part(char *dst, size_t nbytes, const char *item,
                                 size_t itemsize, size_t whole) {
    char pattern[16];
    size_t i;
    if (nbytes == 0) { return; }
    for (i = 0; i < 16; i += itemsize) { memcpy(pattern + i, item, itemsize); }
#if defined(__SSE2__)
    if (whole >= NDX_FILL_PAST_CACHES) {
        ndx_fill_large(dst, nbytes, pattern);
        return;
    }
#endif
    if (memcmp(pattern, pattern + 1, 15) == 0) { memset(dst, pattern[0], nbytes); }
    else { ndx_fill_cached(dst, nbytes, pattern); }
}

static inline void ndx_fill(char *dst, size_t nbytes, const char *item,
                            size_t itemsize) {
    ndx_fill_part(dst, nbytes, item, itemsize, nbytes);
}

#endif

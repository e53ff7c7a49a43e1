/* A clock that is cheap to read and only goes forward, in milliseconds. */
#ifndef NDX_CLOCK_H
#define NDX_CLOCK_H

#include <stdint.h>

#if defined(_WIN32)
#include <windows.h>
static inline uint64_t ndx_milliseconds(void) { return (uint64_t)GetTickCount64(); }
#else
#include <time.h>
static inline uint64_t ndx_milliseconds(void) {
    struct timespec now;
#if defined(CLOCK_MONOTONIC_COARSE)
    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
#else
    clock_gettime(CLOCK_MONOTONIC, &now);
#endif
    return (uint64_t)now.tv_sec * 1000u + (uint64_t)now.tv_nsec / 1000000u;
}
#endif

#endif

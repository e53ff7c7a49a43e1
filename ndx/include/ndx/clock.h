/* A clock that never goes back. */
#ifndef NDX_CLOCK_H
#define NDX_CLOCK_H

#include <stdint.h>

#ifdef _WIN32
#include <windows.h>

static inline int64_t ndx_nanoseconds(void) {
    LARGE_INTEGER now, frequency;
    QueryPerformanceCounter(&now);
    QueryPerformanceFrequency(&frequency);
    return (int64_t)((double)now.QuadPart * 1e9 / (double)frequency.QuadPart);
}
#else
#include <time.h>

static inline int64_t ndx_nanoseconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}
#endif

#endif

/* Monotonic clocks. The one in milliseconds is coarse, and cheaper to read. */
#ifndef NDX_CLOCK_H
#define NDX_CLOCK_H

#include <stdint.h>

#if defined(_WIN32)
#include <windows.h>
static inline uint64_t ndx_milliseconds(void) { return (uint64_t)GetTickCount64(); }
static inline int64_t ndx_nanoseconds(void) {
    LARGE_INTEGER now, frequency;
    QueryPerformanceCounter(&now);
    QueryPerformanceFrequency(&frequency);
    return (int64_t)((double)now.QuadPart * 1e9 / (double)frequency.QuadPart);
}
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
static inline int64_t ndx_nanoseconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}
#endif

#endif

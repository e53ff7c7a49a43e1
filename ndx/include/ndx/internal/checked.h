/* Assertions of the builds for sanitizers (NDX_CHECKED). They abort the process: they
 * find bugs of ndx, which are not errors that a caller could handle. */
#ifndef NDX_CHECKED_H
#define NDX_CHECKED_H

#ifdef NDX_CHECKED

#include <stdio.h>
#include <stdlib.h>

#define NDX_CHECKS 1

static inline void ndx_require(int condition, const char *what) {
    if (!condition) {
        fprintf(stderr, "ndx: assertion failed: %s\n", what);
        fflush(stderr);
        abort();
    }
}

#else

#define NDX_CHECKS 0
#define ndx_require(condition, what) ((void)(condition), (void)(what))

#endif

#endif

/* Functions that are compiled twice: for all CPUs, and for those with AVX2. */
#ifndef NDX_CPU_H
#define NDX_CPU_H

/* The compiler's loops for CPUs with AVX2 take half of the time of those for all CPUs. */
#if defined(__GNUC__) && defined(__x86_64__)
#define NDX_HAS_AVX2 __builtin_cpu_supports("avx2")
#define NDX_AVX2 __attribute__((target("avx2")))
#else
#define NDX_HAS_AVX2 0
#define NDX_AVX2
#endif
#define NDX_CALL_BEST(F, n, ARGS)                                                        \
    do { if ((n) >= 16 && NDX_HAS_AVX2) { F##_avx2 ARGS; } else { F ARGS; } } while (0)
/* As NDX_CALL_BEST, for functions with a result. */
#define NDX_BEST(F, n, ARGS) ((n) >= 16 && NDX_HAS_AVX2 ? F##_avx2 ARGS : F ARGS)

#endif

/* Chains: several steps of arithmetic on floats, computed in one walk over the elements.
 *
 * A tile is as many elements as 8 vectors of the CPU at hand have. Each step combines the
 * accumulator, which is in registers, with a tile of an operand, so that nothing is
 * written but the last result and what is used later than by the next step. Each step is
 * rounded as written (IEEE), so that results are those of NumPy's loops.
 *
 * Masks are elements whose bits are all set, or none. */
#ifndef NDX_CHAIN_H
#define NDX_CHAIN_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define NDX_CHAIN_STEPS 48
#define NDX_CHAIN_TILES 16         /* inputs, the result and what is used later */
#define NDX_CHAIN_OPERANDS 8       /* inputs and the result */
#define NDX_CHAIN_FEWEST 64        /* elements: fewer are not worth a chain */

/* What a step does: `a` is the accumulator, `m` and `n` are the step's tiles. The last
 * step stores the result. */
#define NDX_CHAIN_CODES(X)                                                             \
    X(END) /* m = a */                                                                 \
    X(STORE) X(LOAD) /* m = a, a = m */                                                \
    X(ADD) X(SUBTRACT) X(MULTIPLY) X(DIVIDE) /* a + m */                               \
    X(FROM) X(OVER) /* m - a, m / a */                                                 \
    X(ADD_BOTH) X(SUBTRACT_BOTH) X(MULTIPLY_BOTH) X(DIVIDE_BOTH) /* m + n */           \
    X(MULTIPLY_ADD) X(MULTIPLY_SUBTRACT) X(MULTIPLY_FROM) /* a * m + n, n - a * m */   \
    X(SQUARE) X(NEGATIVE) X(ABS) X(SQRT)                                               \
    X(LESS) X(LESS_EQUAL) X(GREATER) X(GREATER_EQUAL) X(EQUAL) X(NOT_EQUAL)            \
    X(SELECT) X(SELECT_THIS) X(SELECT_ELSE) /* a ? m : n, m ? a : n, m ? n : a */
#define NDX_CHAIN_CODE(NAME) NDX_CHAIN_##NAME,
#define NDX_CHAIN_NAME(NAME) #NAME,

enum { NDX_CHAIN_CODES(NDX_CHAIN_CODE) };

/* One step. A tile that it does not have is the result's. */
typedef struct { uint8_t code, first, second; } ndx_chain_step;

/* Tiles are the inputs, the result, and then values that are used later. */
typedef struct {
    int wide;                      /* float64, not float32 */
    int inputs;
    int tiles;
    int nsteps;
    ndx_chain_step steps[NDX_CHAIN_STEPS];
} ndx_chain;

#if defined(__GNUC__)
#if defined(__x86_64__)
#include <immintrin.h>
#define NDX_HAS_CHAINS
#elif defined(__aarch64__)
#include <arm_neon.h>
#define NDX_HAS_CHAINS
#endif
#endif

#ifdef NDX_HAS_CHAINS
#define NDX_CHAIN_SIZE 512         /* bytes of 8 of the longest vectors */

/* A step with the addresses of its tiles: those that move on do so by all bits of
 * `moves`, others by none. The code is 4 times that of the step; 1 more if all elements
 * of the first tile are one value, and 2 more if those of the second one are. */
typedef struct {
    int code;
    char *first, *second;
    ptrdiff_t moves, moves_too;
} ndx_chain_order;

/* What each step makes of the accumulator and its tiles; `sign` is the highest bit. */
#define NDX_C_LOAD(a, m, n) m
#define NDX_C_ADD(a, m, n) a + m
#define NDX_C_SUBTRACT(a, m, n) a - m
#define NDX_C_MULTIPLY(a, m, n) a * m
#define NDX_C_DIVIDE(a, m, n) a / m
#define NDX_C_FROM(a, m, n) m - a
#define NDX_C_OVER(a, m, n) m / a
#define NDX_C_ADD_BOTH(a, m, n) m + n
#define NDX_C_SUBTRACT_BOTH(a, m, n) m - n
#define NDX_C_MULTIPLY_BOTH(a, m, n) m * n
#define NDX_C_DIVIDE_BOTH(a, m, n) m / n
#define NDX_C_MULTIPLY_ADD(a, m, n) a * m + n
#define NDX_C_MULTIPLY_SUBTRACT(a, m, n) a * m - n
#define NDX_C_MULTIPLY_FROM(a, m, n) n - a * m
#define NDX_C_SQUARE(a, m, n) a * a
#define NDX_C_NEGATIVE(a, m, n) (I)a ^ sign
#define NDX_C_ABS(a, m, n) (I)a & ~sign
#define NDX_C_LESS(a, m, n) a < m
#define NDX_C_LESS_EQUAL(a, m, n) a <= m
#define NDX_C_GREATER(a, m, n) a > m
#define NDX_C_GREATER_EQUAL(a, m, n) a >= m
#define NDX_C_EQUAL(a, m, n) a == m
#define NDX_C_NOT_EQUAL(a, m, n) a != m
#define NDX_C_SELECT(a, m, n) ((I)a & (I)m) | (~(I)a & (I)n)
#define NDX_C_SELECT_THIS(a, m, n) NDX_C_SELECT(m, a, n)
#define NDX_C_SELECT_ELSE(a, m, n) NDX_C_SELECT(m, n, a)

/* The cases of a step without tiles, with one and with two: each is a tile or a value. */
#define NDX_C_EACH(...)                                                                \
    _Pragma("GCC unroll 8") for (k = 0; k < vectors; k++) { __VA_ARGS__; }
#define NDX_C_TILE(address, moves) (((V *)((address) + (at & (moves))))[k])
#define NDX_C_M NDX_C_TILE(o->first, o->moves)
#define NDX_C_N NDX_C_TILE(o->second, o->moves_too)
/* By bits: a sum would make 0 of -0. */
#define NDX_C_VALUE(name) V name = (V)((I){0} + *(const B *)o->name)
#define NDX_C_CASE(form, STEP, m, n, ...)                                              \
    case 4 * NDX_CHAIN_##STEP + form: {                                                \
        __VA_ARGS__;                                                                   \
        NDX_C_EACH(a[k] = (V)(NDX_C_##STEP(a[k], m, n)))                               \
        break;                                                                         \
    }
#define NDX_C_0(STEP) NDX_C_CASE(0, STEP, , , )
#define NDX_C_1(STEP)                                                                  \
    NDX_C_CASE(0, STEP, NDX_C_M, , )                                                   \
    NDX_C_CASE(1, STEP, first, , NDX_C_VALUE(first))
#define NDX_C_2(STEP)                                                                  \
    NDX_C_CASE(0, STEP, NDX_C_M, NDX_C_N, )                                            \
    NDX_C_CASE(1, STEP, first, NDX_C_N, NDX_C_VALUE(first))                            \
    NDX_C_CASE(2, STEP, NDX_C_M, second, NDX_C_VALUE(second))                          \
    NDX_C_CASE(3, STEP, first, second, NDX_C_VALUE(first); NDX_C_VALUE(second))

/* Compute `count` tiles. */
#define NDX_CHAIN_RUN(NAME, T, INT, BYTES, ROOTS, TARGET)                           \
TARGET static void NAME(const ndx_chain_order *orders, ptrdiff_t count) {              \
    typedef T V __attribute__((vector_size(BYTES), aligned(1), may_alias));            \
    typedef INT I __attribute__((vector_size(BYTES), may_alias));                      \
    typedef INT B __attribute__((aligned(1), may_alias));                              \
    enum { vectors = 8 };                                                              \
    const I sign = (I){0} + (INT)((uint64_t)1 << (sizeof(T) * 8 - 1));                 \
    ptrdiff_t at = 0;                                                                  \
    int k;                                                                             \
    for (; count; count--, at += vectors * BYTES) {                                          \
        const ndx_chain_order *o = orders;                                             \
        V a[vectors] = {{0}};                                                                \
        for (; o->code != NDX_CHAIN_END; o++) {                                        \
            switch (o->code) {                                                         \
            NDX_C_1(LOAD)                                                              \
            case 4 * NDX_CHAIN_STORE: NDX_C_EACH(NDX_C_M = a[k]) break;                \
            NDX_C_1(ADD) NDX_C_1(SUBTRACT) NDX_C_1(MULTIPLY) NDX_C_1(DIVIDE)           \
            NDX_C_1(FROM) NDX_C_1(OVER)                                                \
            NDX_C_2(ADD_BOTH) NDX_C_2(SUBTRACT_BOTH)                                   \
            NDX_C_2(MULTIPLY_BOTH) NDX_C_2(DIVIDE_BOTH)                                \
            NDX_C_2(MULTIPLY_ADD) NDX_C_2(MULTIPLY_SUBTRACT) NDX_C_2(MULTIPLY_FROM)    \
            NDX_C_0(SQUARE) NDX_C_0(NEGATIVE) NDX_C_0(ABS)                             \
            case 4 * NDX_CHAIN_SQRT: NDX_C_EACH(a[k] = (V)ROOTS(a[k])) break;          \
            NDX_C_1(LESS) NDX_C_1(LESS_EQUAL) NDX_C_1(GREATER) NDX_C_1(GREATER_EQUAL)  \
            NDX_C_1(EQUAL) NDX_C_1(NOT_EQUAL)                                          \
            NDX_C_2(SELECT) NDX_C_2(SELECT_THIS) NDX_C_2(SELECT_ELSE)                  \
            default: __builtin_unreachable();                                          \
            }                                                                          \
        }                                                                              \
        NDX_C_EACH(NDX_C_M = a[k])                                                     \
    }                                                                                  \
}

#if defined(__x86_64__)
#define NDX_512 __attribute__((target("avx512f")))
#define NDX_256 __attribute__((target("avx2")))
#define NDX_SQRT_512D(x) _mm512_sqrt_pd((__m512d)(x))
#define NDX_SQRT_512(x) _mm512_sqrt_ps((__m512)(x))
#define NDX_SQRT_256D(x) _mm256_sqrt_pd((__m256d)(x))
#define NDX_SQRT_256(x) _mm256_sqrt_ps((__m256)(x))
#define NDX_SQRT_128D(x) _mm_sqrt_pd((__m128d)(x))
#define NDX_SQRT_128(x) _mm_sqrt_ps((__m128)(x))
NDX_CHAIN_RUN(ndx_chain_f64_512, double, int64_t, 64, NDX_SQRT_512D, NDX_512)
NDX_CHAIN_RUN(ndx_chain_f32_512, float, int32_t, 64, NDX_SQRT_512, NDX_512)
NDX_CHAIN_RUN(ndx_chain_f64_256, double, int64_t, 32, NDX_SQRT_256D, NDX_256)
NDX_CHAIN_RUN(ndx_chain_f32_256, float, int32_t, 32, NDX_SQRT_256, NDX_256)
#else
#define NDX_SQRT_128D(x) vsqrtq_f64((float64x2_t)(x))
#define NDX_SQRT_128(x) vsqrtq_f32((float32x4_t)(x))
#endif
NDX_CHAIN_RUN(ndx_chain_f64_128, double, int64_t, 16, NDX_SQRT_128D, )
NDX_CHAIN_RUN(ndx_chain_f32_128, float, int32_t, 16, NDX_SQRT_128, )

typedef void (*ndx_chain_tiles)(const ndx_chain_order *orders, ptrdiff_t count);

/* Set the function for this CPU, and return the bytes of its tiles. */
static inline ptrdiff_t ndx_chain_find(int wide, ndx_chain_tiles *found) {
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f")) {
        *found = wide ? ndx_chain_f64_512 : ndx_chain_f32_512;
        return 8 * 64;
    }
    if (__builtin_cpu_supports("avx2")) {
        *found = wide ? ndx_chain_f64_256 : ndx_chain_f32_256;
        return 8 * 32;
    }
#endif
    *found = wide ? ndx_chain_f64_128 : ndx_chain_f32_128;
    return 8 * 16;
}

static inline void ndx_chain_move(ndx_chain_order *orders, int count, ptrdiff_t nbytes) {
    int i;
    for (i = 0; i < count; i++) {
        orders[i].first += nbytes & orders[i].moves;
        orders[i].second += nbytes & orders[i].moves_too;
    }
}

/* Compute a chain; has the signature of NumPy's inner loops. Steps are 0 or those of
 * contiguous elements. */
static void ndx_chain_run(char **args, const ptrdiff_t *counts, const ptrdiff_t *steps,
                          void *data) {
    const ndx_chain *chain = (const ndx_chain *)data;
    const int result = chain->inputs;
    const ptrdiff_t size = chain->wide ? 8 : 4;
    char room[NDX_CHAIN_TILES][NDX_CHAIN_SIZE] __attribute__((aligned(64)));
    ndx_chain_order orders[NDX_CHAIN_STEPS];
    ndx_chain_tiles function;
    const ptrdiff_t tile = ndx_chain_find(chain->wide, &function);
    const ptrdiff_t nbytes = counts[0] * size, rest = nbytes % tile;
    int i, in_place = 0;
    for (i = 0; i < chain->nsteps; i++) {
        const ndx_chain_step *step = &chain->steps[i];
        const int first = step->first, second = step->second;
        /* The step of a single result may be 0, too. */
        const int value = first < result && steps[first] == 0;
        const int value_too = second < result && steps[second] == 0;
        orders[i].code = 4 * step->code + value + 2 * value_too;
        orders[i].first = first > result ? room[first] : args[first];
        orders[i].second = second > result ? room[second] : args[second];
        orders[i].moves = -(first <= result && !value);
        orders[i].moves_too = -(second <= result && !value_too);
    }
    for (i = 0; i < result; i++) { in_place |= args[i] == args[result]; }
    if (nbytes >= tile) {
        function(orders, nbytes / tile);
        if (!rest) { return; }
        if (!in_place) {
            /* The last tile ends with the last element: some are computed twice. */
            ndx_chain_move(orders, chain->nsteps, nbytes - tile);
            function(orders, 1);
            return;
        }
    }
    /* In buffers, which are filled up with zeros: what was there may be subnormal. */
    for (i = 0; i < result; i++) {
        if (steps[i] == 0) { continue; }
        memcpy(room[i], args[i] + nbytes - rest, (size_t)rest);
        memset(room[i] + rest, 0, (size_t)(tile - rest));
    }
    for (i = 0; i < chain->nsteps; i++) {
        if (orders[i].moves) { orders[i].first = room[chain->steps[i].first]; }
        if (orders[i].moves_too) { orders[i].second = room[chain->steps[i].second]; }
    }
    function(orders, 1);
    memcpy(args[result] + nbytes - rest, room[result], (size_t)rest);
}

/* The names of the codes, NULL after the last one. */
static const char *const ndx_chain_names[] = {NDX_CHAIN_CODES(NDX_CHAIN_NAME) NULL};
#else
static const char *const ndx_chain_names[] = {NULL};
static void ndx_chain_run(char **args, const ptrdiff_t *counts, const ptrdiff_t *steps,
                          void *data) {
    (void)args; (void)counts; (void)steps; (void)data;
}
#endif
#endif

/* Powers of 0.5: square roots, but +0 of -0 and +infinity of -infinity. */
#ifndef NDX_ROOTS_H
#define NDX_ROOTS_H

#include <math.h>
#include <stddef.h>

#ifdef __SSE2__
#include <emmintrin.h>

/* sqrt() may set errno, so that compilers don't vectorise it. */
static inline __m128d ndx_roots_of_2(__m128d x) {
    __m128d sign = _mm_and_pd(_mm_cmpeq_pd(x, _mm_set1_pd(-INFINITY)), _mm_set1_pd(-0.0));
    return _mm_sqrt_pd(_mm_add_pd(_mm_xor_pd(x, sign), _mm_setzero_pd()));
}

static inline __m128 ndx_roots_of_4(__m128 x) {
    __m128 sign = _mm_and_ps(_mm_cmpeq_ps(x, _mm_set1_ps(-INFINITY)), _mm_set1_ps(-0.0f));
    return _mm_sqrt_ps(_mm_add_ps(_mm_xor_ps(x, sign), _mm_setzero_ps()));
}
#endif

/* `out` may be `x`. Steps are in bytes. */
static inline void ndx_roots_f64(char *out, ptrdiff_t out_step, const char *x,
                                 ptrdiff_t step, ptrdiff_t n) {
#ifdef __SSE2__
    for (; n > 1; n -= 2, x += 2 * step, out += 2 * out_step) {
        __m128d two = _mm_load_sd((const double *)x);
        two = ndx_roots_of_2(_mm_loadh_pd(two, (const double *)(x + step)));
        if (out_step == (ptrdiff_t)sizeof(double)) {
            _mm_storeu_pd((double *)out, two);
        } else {
            _mm_storel_pd((double *)out, two);
            _mm_storeh_pd((double *)(out + out_step), two);
        }
    }
    if (n > 0)
        _mm_store_sd((double *)out, ndx_roots_of_2(_mm_load_sd((const double *)x)));
#else
    for (; n > 0; n--, x += step, out += out_step) {
        double v = *(const double *)x;
        *(double *)out = sqrt(v == -INFINITY ? INFINITY : v + 0.0);
    }
#endif
}

static inline void ndx_roots_f32(char *out, ptrdiff_t out_step, const char *x,
                                 ptrdiff_t step, ptrdiff_t n) {
#ifdef __SSE2__
    const int packed = step == (ptrdiff_t)sizeof(float)
                       && out_step == (ptrdiff_t)sizeof(float);
    for (; n > 3 && packed; n -= 4, x += 16, out += 16)
        _mm_storeu_ps((float *)out, ndx_roots_of_4(_mm_loadu_ps((const float *)x)));
    for (; n > 3; n -= 4, x += 4 * step, out += 4 * out_step) {
        float four[4];
        _mm_storeu_ps(four, ndx_roots_of_4(_mm_setr_ps(
            *(const float *)x, *(const float *)(x + step),
            *(const float *)(x + 2 * step), *(const float *)(x + 3 * step))));
        *(float *)out = four[0];
        *(float *)(out + out_step) = four[1];
        *(float *)(out + 2 * out_step) = four[2];
        *(float *)(out + 3 * out_step) = four[3];
    }
    for (; n > 0; n--, x += step, out += out_step)
        _mm_store_ss((float *)out, ndx_roots_of_4(_mm_load_ss((const float *)x)));
#else
    for (; n > 0; n--, x += step, out += out_step) {
        float v = *(const float *)x;
        *(float *)out = sqrtf(v == -INFINITY ? INFINITY : v + 0.0f);
    }
#endif
}
#endif

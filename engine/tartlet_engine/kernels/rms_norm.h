/* The root mean square norm: a / sqrt(mean(a ** 2) + epsilon) * weight, all in float32. */

#ifndef TARTLET_RMS_NORM_H
#define TARTLET_RMS_NORM_H

#include <math.h>

#include "vector.h"

/* What a row is multiplied with. `padded_size` is a multiple of 16; what is beyond `size` is zero. */
INLINE float rms_factor(const float *row, int size, int padded_size, float epsilon)
{
    vec16 squares = vec_zero();
    for (int i = 0; i < padded_size; i += 16)
        squares = vec_fma(vec_load(row + i), vec_load(row + i), squares);
    return 1.0f / sqrtf(vec_sum(squares) / (float)size + epsilon);
}

INLINE vec16 rms_scaled(const float *row, const float *weight, int i, vec16 factor)
{
    return vec_mul(vec_mul(vec_load(row + i), factor), vec_load(weight + i));
}

#endif

/* Sixteen floats at a time, the same on every instruction set: all kernels are written in these terms.
 *
 * The compiler's flags choose the instruction set of a whole build (build.py): AVX512_BF16, AVX-512 or AVX2 with FMA.
 *
 *   vec_keep_range(a, first, begin, end, other)   lane i keeps its value if begin <= first + i < end
 *   vec_times_power(a, power)                     a * 2 ** power, for whole powers between -126 and 127
 *   vec_sum, vec_greatest                         over the 16 lanes, always in the same order
 *
 * A sum over inputs goes in steps. The step16 of 16 outputs is 64 bytes of weights: one float per output, or a pair of
 * bfloat16 per output. step_add() multiplies it with the one input, or the two, that belong to it, and adds.
 *
 *     KIND_FLOAT32    w[o=0] w[o=1] ... w[o=15]                               of input `index`
 *     KIND_BFLOAT16   w[o=0, even] w[o=0, odd] w[o=1, even] ... w[o=15, odd]  of inputs 2 * index and 2 * index + 1
 *
 * Inputs of the second kind ("pair elements") are bfloat16 where the CPU multiplies those, and float elsewhere, where
 * rounding them would only cost time. */

#ifndef TARTLET_VECTOR_H
#define TARTLET_VECTOR_H

#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define INLINE static inline __attribute__((always_inline))
#define UNROLL _Pragma("GCC unroll 16")

enum { KIND_FLOAT32 = 0, KIND_BFLOAT16 = 1 };

#ifdef __AVX512F__
#include "vector_avx512.h"
#else
#include "vector_avx2.h"
#endif

#ifndef __AVX512BF16__

enum { PAIR_ELEMENT_BYTES = 4 };
typedef struct {
    vec16 even, odd; /* `even` alone for KIND_FLOAT32 */
} step16;

INLINE step16 step_load(const int kind, const void *address)
{
    if (kind == KIND_FLOAT32)
        return (step16){vec_load(address), vec_zero()};
    return (step16){vec_from_low_bf16(address), vec_from_high_bf16(address)};
}

INLINE vec16 step_add(const int kind, vec16 sum, step16 step, const void *inputs, int index)
{
    const float *x = inputs;
    if (kind == KIND_FLOAT32)
        return vec_fma(step.even, vec_set(x[index]), sum);
    sum = vec_fma(step.even, vec_set(x[2 * index]), sum);
    return vec_fma(step.odd, vec_set(x[2 * index + 1]), sum);
}

INLINE step16 step_from_int8(const int8_t *even, const int8_t *odd)
{
    return (step16){vec_from_int8(even), vec_from_int8(odd)};
}

INLINE step16 step_from_int4(const void *address, const int nibble)
{
    return (step16){vec_from_nibble(address, 4 * nibble), vec_from_nibble(address, 4 * nibble + 16)};
}

INLINE vec16 pair_elements_load(const void *elements, size_t index) { return vec_load((const float *)elements + index); }

INLINE void pair_elements_store(void *elements, size_t index, vec16 a) { vec_store((float *)elements + index, a); }

#endif

/* Inputs of one step. */
INLINE int step_depth(const int kind) { return kind == KIND_FLOAT32 ? 1 : 2; }

/* Bytes of one activation, and of one key or value in the cache. */
INLINE int element_bytes(const int kind) { return kind == KIND_FLOAT32 ? 4 : PAIR_ELEMENT_BYTES; }
INLINE int kv_bytes(const int kind) { return kind == KIND_FLOAT32 ? 4 : 2; }

INLINE vec16 elements_load(const int kind, const void *elements, size_t index)
{
    return kind == KIND_FLOAT32 ? vec_load((const float *)elements + index) : pair_elements_load(elements, index);
}

INLINE void elements_store(const int kind, void *elements, size_t index, vec16 a)
{
    if (kind == KIND_FLOAT32)
        vec_store((float *)elements + index, a);
    else
        pair_elements_store(elements, index, a);
}

/* Round to the nearest bfloat16, ties to even. */
INLINE uint16_t bf16_from_float(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    if ((bits & 0x7FFFFFFF) > 0x7F800000) /* rounding could carry a NaN into the sign */
        return (uint16_t)((bits >> 16) | 0x40);
    return (uint16_t)((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16);
}

/* e ** a to within two units in the last place: 2 ** n times a polynomial (Cephes' expf) on [-ln 2 / 2, ln 2 / 2]. */
INLINE vec16 vec_exp(vec16 a)
{
    static const float COEFFICIENTS[6] = {1.9875691500e-4f, 1.3981999507e-3f, 8.3334519073e-3f,
                                          4.1665795894e-2f, 1.6666665459e-1f, 5.0000001201e-1f};
    a = vec_min(vec_set(88.0f), vec_max(vec_set(-87.0f), a)); /* in this order, a NaN stays one */
    vec16 power = vec_round(vec_mul(a, vec_set(1.44269504f)));
    vec16 rest = vec_fma(power, vec_set(-0.693359375f), a);
    rest = vec_fma(power, vec_set(2.12194440e-4f), rest);
    vec16 sum = vec_set(COEFFICIENTS[0]);
    UNROLL for (int i = 1; i < 6; i++) sum = vec_fma(sum, rest, vec_set(COEFFICIENTS[i]));
    sum = vec_fma(sum, vec_mul(rest, rest), vec_add(rest, vec_set(1.0f)));
    return vec_times_power(sum, power);
}

#endif

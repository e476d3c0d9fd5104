/* Sixteen floats as one AVX-512 register, with or without the bfloat16 dot product. See vector.h for what each does. */

typedef __m512 vec16;

enum { HALVES_AT_ONCE = 2, MAX_DENSE_ROWS = 12, MAX_GROUPED_ROWS = 12, MAX_QUERIES = 12, MAX_VALUE_VECTORS = 4 };

INLINE vec16 vec_zero(void) { return _mm512_setzero_ps(); }
INLINE vec16 vec_set(float value) { return _mm512_set1_ps(value); }
INLINE vec16 vec_load(const float *address) { return _mm512_loadu_ps(address); }
INLINE void vec_store(float *address, vec16 a) { _mm512_storeu_ps(address, a); }
INLINE vec16 vec_add(vec16 a, vec16 b) { return _mm512_add_ps(a, b); }
INLINE vec16 vec_sub(vec16 a, vec16 b) { return _mm512_sub_ps(a, b); }
INLINE vec16 vec_mul(vec16 a, vec16 b) { return _mm512_mul_ps(a, b); }
INLINE vec16 vec_div(vec16 a, vec16 b) { return _mm512_div_ps(a, b); }
INLINE vec16 vec_min(vec16 a, vec16 b) { return _mm512_min_ps(a, b); }
INLINE vec16 vec_max(vec16 a, vec16 b) { return _mm512_max_ps(a, b); }
INLINE vec16 vec_fma(vec16 a, vec16 b, vec16 sum) { return _mm512_fmadd_ps(a, b, sum); }
INLINE vec16 vec_round(vec16 a) { return _mm512_roundscale_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
INLINE vec16 vec_times_power(vec16 a, vec16 power) { return _mm512_scalef_ps(a, power); }
INLINE float vec_sum(vec16 a) { return _mm512_reduce_add_ps(a); }
INLINE float vec_greatest(vec16 a) { return _mm512_reduce_max_ps(a); }

INLINE vec16 vec_load_half(const uint16_t *address)
{
    return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)address));
}

INLINE vec16 vec_keep_range(vec16 a, int first, int begin, int end, float other)
{
    const __m512i lanes = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    __m512i index = _mm512_add_epi32(lanes, _mm512_set1_epi32(first));
    __mmask16 is_inside = _mm512_cmpge_epi32_mask(index, _mm512_set1_epi32(begin));
    is_inside &= _mm512_cmplt_epi32_mask(index, _mm512_set1_epi32(end));
    return _mm512_mask_blend_ps(is_inside, _mm512_set1_ps(other), a);
}

INLINE vec16 vec_from_int8(const int8_t *address)
{
    return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i *)address)));
}

#ifdef __AVX512BF16__

/* A step's two bfloat16 stay together, as the dot product wants them; so do two inputs. */
enum { PAIR_ELEMENT_BYTES = 2 };
typedef __m512i step16;

INLINE step16 step_load(const int kind, const void *address)
{
    (void)kind;
    return _mm512_loadu_si512(address);
}

INLINE vec16 step_add(const int kind, vec16 sum, step16 step, const void *inputs, int index)
{
    if (kind == KIND_FLOAT32)
        return _mm512_fmadd_ps(_mm512_castsi512_ps(step), _mm512_set1_ps(((const float *)inputs)[index]), sum);
    __m512i pair = _mm512_set1_epi32(((const int32_t *)inputs)[index]);
    return _mm512_dpbf16_ps(sum, (__m512bh)step, (__m512bh)pair);
}

/* Whole numbers of up to 8 bits are exact in bfloat16, the upper half of a float. */
INLINE step16 step_from_int8(const int8_t *even, const int8_t *odd)
{
    __m512i even_bits = _mm512_srli_epi32(_mm512_castps_si512(vec_from_int8(even)), 16);
    return _mm512_mask_blend_epi16(0xAAAAAAAA, even_bits, _mm512_castps_si512(vec_from_int8(odd)));
}

INLINE step16 step_from_int4(const void *address, const int nibble)
{
    /* The bfloat16 of 0 to 15, twice: a permute looks at 5 bits, of which the nibble's are the lower four. */
    static const uint16_t NUMBERS[32] = {
        0,      0x3F80, 0x4000, 0x4040, 0x4080, 0x40A0, 0x40C0, 0x40E0, 0x4100, 0x4110, 0x4120,
        0x4130, 0x4140, 0x4150, 0x4160, 0x4170, 0,      0x3F80, 0x4000, 0x4040, 0x4080, 0x40A0,
        0x40C0, 0x40E0, 0x4100, 0x4110, 0x4120, 0x4130, 0x4140, 0x4150, 0x4160, 0x4170,
    };
    __m512i nibbles = _mm512_srli_epi16(_mm512_loadu_si512(address), 4 * nibble);
    return _mm512_permutexvar_epi16(nibbles, _mm512_loadu_si512(NUMBERS));
}

INLINE vec16 pair_elements_load(const void *elements, size_t index)
{
    __m256i halves = _mm256_loadu_si256((const __m256i *)((const uint16_t *)elements + index));
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(halves), 16));
}

INLINE void pair_elements_store(void *elements, size_t index, vec16 a)
{
    _mm256_storeu_si256((__m256i *)((uint16_t *)elements + index), (__m256i)_mm512_cvtneps_pbh(a));
}

#else

INLINE vec16 vec_from_low_bf16(const void *words)
{
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_loadu_si512(words), 16));
}

INLINE vec16 vec_from_high_bf16(const void *words)
{
    return _mm512_castsi512_ps(_mm512_and_si512(_mm512_loadu_si512(words), _mm512_set1_epi32((int)0xFFFF0000)));
}

INLINE vec16 vec_from_nibble(const void *words, const int shift)
{
    __m512i nibbles = _mm512_and_si512(_mm512_srli_epi32(_mm512_loadu_si512(words), shift), _mm512_set1_epi32(15));
    return _mm512_cvtepi32_ps(nibbles);
}

#endif

/* Sixteen floats as two AVX2 registers. See vector.h for what each function does. */

typedef struct {
    __m256 low, high;
} vec16;

/* Sixteen registers hold the sums of four rows and half a panel. */
enum { HALVES_AT_ONCE = 1, MAX_DENSE_ROWS = 4, MAX_GROUPED_ROWS = 2, MAX_QUERIES = 4, MAX_VALUE_VECTORS = 1 };

#define BOTH(operation, a, b) ((vec16){operation((a).low, (b).low), operation((a).high, (b).high)})

INLINE vec16 vec_set(float value) { return (vec16){_mm256_set1_ps(value), _mm256_set1_ps(value)}; }
INLINE vec16 vec_zero(void) { return vec_set(0.0f); }
INLINE vec16 vec_load(const float *address) { return (vec16){_mm256_loadu_ps(address), _mm256_loadu_ps(address + 8)}; }
INLINE vec16 vec_add(vec16 a, vec16 b) { return BOTH(_mm256_add_ps, a, b); }
INLINE vec16 vec_sub(vec16 a, vec16 b) { return BOTH(_mm256_sub_ps, a, b); }
INLINE vec16 vec_mul(vec16 a, vec16 b) { return BOTH(_mm256_mul_ps, a, b); }
INLINE vec16 vec_div(vec16 a, vec16 b) { return BOTH(_mm256_div_ps, a, b); }
INLINE vec16 vec_min(vec16 a, vec16 b) { return BOTH(_mm256_min_ps, a, b); }
INLINE vec16 vec_max(vec16 a, vec16 b) { return BOTH(_mm256_max_ps, a, b); }

INLINE void vec_store(float *address, vec16 a)
{
    _mm256_storeu_ps(address, a.low);
    _mm256_storeu_ps(address + 8, a.high);
}

INLINE vec16 vec_fma(vec16 a, vec16 b, vec16 sum)
{
    return (vec16){_mm256_fmadd_ps(a.low, b.low, sum.low), _mm256_fmadd_ps(a.high, b.high, sum.high)};
}

INLINE vec16 vec_round(vec16 a)
{
    enum { TO_NEAREST = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC };
    return (vec16){_mm256_round_ps(a.low, TO_NEAREST), _mm256_round_ps(a.high, TO_NEAREST)};
}

INLINE __m256 power_of_two(__m256 power)
{
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(_mm256_cvtps_epi32(power), _mm256_set1_epi32(127)), 23));
}

INLINE vec16 vec_times_power(vec16 a, vec16 power)
{
    return vec_mul(a, (vec16){power_of_two(power.low), power_of_two(power.high)});
}

INLINE float vec_sum(vec16 a)
{
    __m256 eight = _mm256_add_ps(a.low, a.high);
    __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}

INLINE float vec_greatest(vec16 a)
{
    __m256 eight = _mm256_max_ps(a.low, a.high);
    __m128 four = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)));
}

INLINE vec16 vec_load_half(const uint16_t *address)
{
    return (vec16){_mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)address)),
                   _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(address + 8)))};
}

INLINE __m256 keep_range(__m256 a, int first, int begin, int end, float other)
{
    const __m256i lanes = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    __m256i index = _mm256_add_epi32(lanes, _mm256_set1_epi32(first));
    __m256i is_before = _mm256_cmpgt_epi32(_mm256_set1_epi32(begin), index);
    __m256i is_inside = _mm256_andnot_si256(is_before, _mm256_cmpgt_epi32(_mm256_set1_epi32(end), index));
    return _mm256_blendv_ps(_mm256_set1_ps(other), a, _mm256_castsi256_ps(is_inside));
}

INLINE vec16 vec_keep_range(vec16 a, int first, int begin, int end, float other)
{
    return (vec16){keep_range(a.low, first, begin, end, other), keep_range(a.high, first + 8, begin, end, other)};
}

INLINE __m256 from_int8(const int8_t *address)
{
    return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i *)address)));
}

INLINE vec16 vec_from_int8(const int8_t *address) { return (vec16){from_int8(address), from_int8(address + 8)}; }

INLINE vec16 vec_from_low_bf16(const void *words)
{
    const __m256i *halves = words;
    return (vec16){_mm256_castsi256_ps(_mm256_slli_epi32(_mm256_loadu_si256(halves), 16)),
                   _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_loadu_si256(halves + 1), 16))};
}

INLINE vec16 vec_from_high_bf16(const void *words)
{
    const __m256i *halves = words;
    __m256i upper = _mm256_set1_epi32((int)0xFFFF0000);
    return (vec16){_mm256_castsi256_ps(_mm256_and_si256(_mm256_loadu_si256(halves), upper)),
                   _mm256_castsi256_ps(_mm256_and_si256(_mm256_loadu_si256(halves + 1), upper))};
}

INLINE __m256 from_nibble(__m256i words, const int shift)
{
    return _mm256_cvtepi32_ps(_mm256_and_si256(_mm256_srli_epi32(words, shift), _mm256_set1_epi32(15)));
}

INLINE vec16 vec_from_nibble(const void *words, const int shift)
{
    const __m256i *halves = words;
    return (vec16){from_nibble(_mm256_loadu_si256(halves), shift), from_nibble(_mm256_loadu_si256(halves + 1), shift)};
}

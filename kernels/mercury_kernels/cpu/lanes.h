/* Vectors of one register, and the few operations that C lacks, for each instruction set.
 *
 * Arithmetic uses the vector extensions of GCC and Clang. LANES counts 32-bit lanes.
 */
#ifndef MERCURY_LANES_H
#define MERCURY_LANES_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__ARM_FEATURE_DOTPROD)
#ifndef __clang__ /* GCC 12 has the intrinsics from Armv8.2 on only, whatever `-mcpu` adds */
#pragma GCC target("arch=armv8.2-a+dotprod")
#endif
#include <arm_neon.h>
#endif

#define INLINE static inline __attribute__((always_inline))

/* QUERIES share one pass over keys and values, ROWS one pass over a tile of weights; both as many as fit in registers. */
#if defined(__AVX512VNNI__) && defined(__AVX512BW__)
enum { LANES = 16, QUERIES = 6, ROWS = 8 };
#define WIDEST 16
#elif defined(__AVX2__) && defined(__F16C__)
enum { LANES = 8, QUERIES = 3, ROWS = 4 };
#define WIDEST 8
#else
enum { LANES = 4, QUERIES = 3, ROWS = 4 };
#define WIDEST 4
#endif

typedef float floats __attribute__((vector_size(4 * WIDEST)));
typedef int32_t ints __attribute__((vector_size(4 * WIDEST)));

INLINE floats load(const float *from) {
    floats v;
    memcpy(&v, from, sizeof v);
    return v;
}

INLINE ints load_ints(const void *from) {
    ints v;
    memcpy(&v, from, sizeof v);
    return v;
}

INLINE void store(float *to, floats v) { memcpy(to, &v, sizeof v); }
INLINE floats all(float value) { return value - (floats){0}; }
INLINE ints all_ints(int32_t value) { return value - (ints){0}; }

INLINE ints all_quads(const int8_t *from) {
    int32_t four;
    memcpy(&four, from, 4);
    return all_ints(four);
}

INLINE floats chosen(ints where, floats yes, floats no) { return (floats)((where & (ints)yes) | (~where & (ints)no)); }

#if WIDEST == 16

INLINE floats larger(floats a, floats b) { return (floats)_mm512_max_ps((__m512)a, (__m512)b); }
INLINE floats smaller(floats a, floats b) { return (floats)_mm512_min_ps((__m512)a, (__m512)b); }
INLINE ints rounded(floats v) { return (ints)_mm512_cvtps_epi32((__m512)v); }
INLINE floats halves(const uint16_t *from) { return (floats)_mm512_cvtph_ps(_mm256_loadu_si256((const void *)from)); }
INLINE ints signed_bytes(const void *from) { return (ints)_mm512_cvtepi8_epi32(_mm_loadu_si128(from)); }
INLINE void store_bytes(void *to, ints v) { _mm_storeu_si128(to, _mm512_cvtepi32_epi8((__m512i)v)); }
INLINE float sum(floats v) { return _mm512_reduce_add_ps((__m512)v); }
INLINE float largest(floats v) { return _mm512_reduce_max_ps((__m512)v); }
INLINE ints larger_ints(ints a, ints b) { return (ints)_mm512_max_epi32((__m512i)a, (__m512i)b); }
INLINE int largest_int(ints v) { return _mm512_reduce_max_epi32((__m512i)v); }

#else

INLINE float sum(floats v) {
    float total = 0;
    for (int lane = 0; lane < LANES; lane++) total += v[lane];
    return total;
}

INLINE float largest(floats v) {
    float most = v[0];
    for (int lane = 1; lane < LANES; lane++) most = v[lane] > most ? v[lane] : most;
    return most;
}

INLINE int largest_int(ints v) {
    int most = v[0];
    for (int lane = 1; lane < LANES; lane++) most = v[lane] > most ? v[lane] : most;
    return most;
}

#if WIDEST == 8
INLINE ints larger_ints(ints a, ints b) { return (ints)_mm256_max_epi32((__m256i)a, (__m256i)b); }
INLINE floats larger(floats a, floats b) { return (floats)_mm256_max_ps((__m256)a, (__m256)b); }
INLINE floats smaller(floats a, floats b) { return (floats)_mm256_min_ps((__m256)a, (__m256)b); }
INLINE ints rounded(floats v) { return (ints)_mm256_cvtps_epi32((__m256)v); }
INLINE floats halves(const uint16_t *from) { return (floats)_mm256_cvtph_ps(_mm_loadu_si128((const void *)from)); }
INLINE ints signed_bytes(const void *from) { return (ints)_mm256_cvtepi8_epi32(_mm_loadl_epi64(from)); }

INLINE void store_bytes(void *to, ints v) {
    __m128i shorts = _mm_packs_epi32(_mm256_castsi256_si128((__m256i)v), _mm256_extracti128_si256((__m256i)v, 1));
    _mm_storel_epi64(to, _mm_packs_epi16(shorts, shorts));
}
#else
INLINE floats larger(floats a, floats b) { return chosen(a > b, a, b); }
INLINE floats smaller(floats a, floats b) { return chosen(a < b, a, b); }
INLINE ints larger_ints(ints a, ints b) { return (a & (a > b)) | (b & ~(a > b)); }

INLINE ints rounded(floats v) { /* for magnitudes below 2^22 */
    const float ones = 12582912.f;
    return (ints)(v + ones) - (ints)all(ones);
}

INLINE floats halves(const uint16_t *from) {
    _Float16 four[LANES];
    memcpy(four, from, sizeof four);
    return (floats){(float)four[0], (float)four[1], (float)four[2], (float)four[3]};
}

INLINE ints signed_bytes(const void *from) {
    int8_t four[LANES];
    memcpy(four, from, sizeof four);
    return (ints){four[0], four[1], four[2], four[3]};
}

INLINE void store_bytes(void *to, ints v) {
    int8_t four[LANES] = {(int8_t)v[0], (int8_t)v[1], (int8_t)v[2], (int8_t)v[3]};
    memcpy(to, four, sizeof four);
}
#endif
#endif

/* float16 to float32 and back, rounding to nearest even. */
#if WIDEST > 4
INLINE float wide_half(uint16_t half) { return _cvtsh_ss(half); }
INLINE uint16_t half_of(float value) { return _cvtss_sh(value, _MM_FROUND_TO_NEAREST_INT); }
#else
INLINE float wide_half(uint16_t half) {
    _Float16 value;
    memcpy(&value, &half, sizeof value);
    return (float)value;
}

INLINE uint16_t half_of(float value) {
    _Float16 narrow = (_Float16)value;
    uint16_t half;
    memcpy(&half, &narrow, sizeof half);
    return half;
}
#endif

/* Magnitudes as bits, which compare like the values; NaN is above all others. */
INLINE ints magnitudes(floats v) { return (ints)v & 0x7fffffff; }

INLINE float largest_magnitude(ints bits) {
    int most = largest_int(bits);
    float value;
    memcpy(&value, &most, sizeof value);
    return value;
}

/* Adds four products of unsigned by signed bytes to every lane. `dot` takes codes up to 127, `dot_wide` from 1 to 255, where a
 * pair of products may overflow 16 bits. */
#if WIDEST == 16

INLINE ints dot(ints to, ints codes, ints bytes) {
    return (ints)_mm512_dpbusd_epi32((__m512i)to, (__m512i)codes, (__m512i)bytes);
}

INLINE ints dot_wide(ints to, ints codes, ints bytes) { return dot(to, codes, bytes); }

#elif WIDEST == 8 && defined(__AVXVNNI__)

INLINE ints dot(ints to, ints codes, ints bytes) {
    return (ints)_mm256_dpbusd_avx_epi32((__m256i)to, (__m256i)codes, (__m256i)bytes);
}

INLINE ints dot_wide(ints to, ints codes, ints bytes) { return dot(to, codes, bytes); }

#elif WIDEST == 8

INLINE ints dot(ints to, ints codes, ints bytes) {
    __m256i pairs = _mm256_maddubs_epi16((__m256i)codes, (__m256i)bytes);
    return to + (ints)_mm256_madd_epi16(pairs, _mm256_set1_epi16(1));
}

INLINE ints dot_wide(ints to, ints codes, ints bytes) { /* signed by signed: subtracts 128, then adds it again */
    ints less = (ints)_mm256_sign_epi8((__m256i)(codes ^ all_ints((int32_t)0x80808080)), (__m256i)bytes);
    return dot(to, (ints)_mm256_abs_epi8((__m256i)bytes), less) + (dot((ints){0}, all_ints(0x01010101), bytes) << 7);
}

#elif defined(__ARM_FEATURE_DOTPROD)

INLINE ints dot(ints to, ints codes, ints bytes) {
    return (ints)vdotq_s32((int32x4_t)to, (int8x16_t)codes, (int8x16_t)bytes);
}

INLINE ints dot_wide(ints to, ints codes, ints bytes) { /* signed by signed: subtracts 128, then adds it again */
    ints less = codes ^ all_ints((int32_t)0x80808080);
    return dot(to, less, bytes) + (dot((ints){0}, all_ints(0x01010101), bytes) << 7);
}

#else

INLINE ints dot(ints to, ints codes, ints bytes) {
    uint8_t left[4 * LANES];
    int8_t right[4 * LANES];
    memcpy(left, &codes, sizeof left);
    memcpy(right, &bytes, sizeof right);
    for (int lane = 0; lane < LANES; lane++)
        for (int i = 4 * lane; i < 4 * lane + 4; i++) to[lane] += left[i] * right[i];
    return to;
}

INLINE ints dot_wide(ints to, ints codes, ints bytes) { return dot(to, codes, bytes); }

#endif

/* `dot` whose sums stay in 16 bits until `settled`, where FEW: for at most 32 codes up to 15, 16 up to 31 or 8 up to 63. */
#if WIDEST == 8 && !defined(__AVXVNNI__)
enum { FEW = 1 };
INLINE ints dot_few(ints to, ints codes, ints bytes) {
    ints sums = (ints)_mm256_add_epi16((__m256i)to, _mm256_maddubs_epi16((__m256i)codes, (__m256i)bytes));
    __asm__ volatile("" : "+x"(sums)); /* GCC would add late, with all products in memory until then */
    return sums;
}

INLINE ints settled(ints sums) { return (ints)_mm256_madd_epi16((__m256i)sums, _mm256_set1_epi16(1)); }
#define IN_ORDER() __asm__ volatile("" ::: "memory") /* GCC would load ahead until no register is left for sums */
#else
enum { FEW = 0 };
#define IN_ORDER() (void)0
INLINE ints dot_few(ints to, ints codes, ints bytes) { return dot(to, codes, bytes); }
INLINE ints settled(ints sums) { return sums; }
#endif

/* bfloat16 to float32 and back, rounding to nearest even. */
INLINE floats widened(const uint16_t *from) {
#if WIDEST == 16
    return (floats)(ints)_mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_loadu_si256((const void *)from)), 16);
#elif WIDEST == 8
    return (floats)(ints)_mm256_slli_epi32(_mm256_cvtepu16_epi32(_mm_loadu_si128((const void *)from)), 16);
#else
    uint32_t four[LANES];
    for (int lane = 0; lane < LANES; lane++) four[lane] = (uint32_t)from[lane] << 16;
    return load((const float *)four);
#endif
}

INLINE uint16_t bfloat(float value) {
    uint32_t bits;
    memcpy(&bits, &value, 4);
    if ((bits & 0x7fffffff) > 0x7f800000) return 0x7fc0; /* NaN */
    return (uint16_t)((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

/* Quantises values to bytes from -127 to 127 and sets `total` to the sum of the bytes. Returns the scale, NaN if a value is
 * NaN or infinite. */
INLINE float narrowed(int8_t *to, const float *from, int count, int *total) {
    ints top = all_ints(0);
    for (int i = 0; i < count; i += LANES) top = larger_ints(top, magnitudes(load(from + i)));
    float most = largest_magnitude(top), inverse = most > 0 ? 127.f / most : 0;
    ints sums = all_ints(0);
    for (int i = 0; i < count; i += LANES) {
        ints whole = rounded(load(from + i) * inverse);
        store_bytes(to + i, whole);
        sums += whole;
    }
    *total = (int)sum(__builtin_convertvector(sums, floats));
    return most / 127.f + most * 0.f;
}

/* Transposes LANES vectors: pairs of vectors exchange blocks of 1, 2, 4 ... lanes. */
#if defined(__clang__) || __GNUC__ >= 12
#define SHUFFLE(A, B, ...) __builtin_shufflevector(A, B, __VA_ARGS__)
#else
#define SHUFFLE(A, B, ...) __builtin_shuffle(A, B, (ints){__VA_ARGS__})
#endif
#define EACH_PAIR(STEP)                   \
    for (int i = 0; i < LANES; i++)       \
        for (int j = i + STEP, once = !(i & STEP); once; once = 0)
#define EXCHANGE(LEFT, RIGHT)             \
    {                                     \
        ints a = v[i], b = v[j];          \
        v[i] = LEFT;                      \
        v[j] = RIGHT;                     \
    }

INLINE void transpose(ints v[LANES]) {
#if WIDEST == 16
    EACH_PAIR(1)
    EXCHANGE(SHUFFLE(a, b, 0, 16, 2, 18, 4, 20, 6, 22, 8, 24, 10, 26, 12, 28, 14, 30),
             SHUFFLE(a, b, 1, 17, 3, 19, 5, 21, 7, 23, 9, 25, 11, 27, 13, 29, 15, 31))
    EACH_PAIR(2)
    EXCHANGE(SHUFFLE(a, b, 0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29),
             SHUFFLE(a, b, 2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27, 14, 15, 30, 31))
    EACH_PAIR(4)
    EXCHANGE(SHUFFLE(a, b, 0, 1, 2, 3, 16, 17, 18, 19, 8, 9, 10, 11, 24, 25, 26, 27),
             SHUFFLE(a, b, 4, 5, 6, 7, 20, 21, 22, 23, 12, 13, 14, 15, 28, 29, 30, 31))
    EACH_PAIR(8)
    EXCHANGE(SHUFFLE(a, b, 0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23),
             SHUFFLE(a, b, 8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31))
#elif WIDEST == 8
    EACH_PAIR(1) EXCHANGE(SHUFFLE(a, b, 0, 8, 2, 10, 4, 12, 6, 14), SHUFFLE(a, b, 1, 9, 3, 11, 5, 13, 7, 15))
    EACH_PAIR(2) EXCHANGE(SHUFFLE(a, b, 0, 1, 8, 9, 4, 5, 12, 13), SHUFFLE(a, b, 2, 3, 10, 11, 6, 7, 14, 15))
    EACH_PAIR(4) EXCHANGE(SHUFFLE(a, b, 0, 1, 2, 3, 8, 9, 10, 11), SHUFFLE(a, b, 4, 5, 6, 7, 12, 13, 14, 15))
#else
    EACH_PAIR(1) EXCHANGE(SHUFFLE(a, b, 0, 4, 2, 6), SHUFFLE(a, b, 1, 5, 3, 7))
    EACH_PAIR(2) EXCHANGE(SHUFFLE(a, b, 0, 1, 4, 5), SHUFFLE(a, b, 2, 3, 6, 7))
#endif
}

/* Interleaves the bytes of four vectors, a quad per lane. Lane 4 L + i of vector j has the bytes 16 L + 4 j + i, where L
 * counts 128 bits. */
INLINE void interleave(ints to[4], const ints from[4]) {
#if WIDEST == 16
#define PAIR(HALF, BITS, A, B) (ints) _mm512_unpack##HALF##_epi##BITS((__m512i)(A), (__m512i)(B))
#elif WIDEST == 8
#define PAIR(HALF, BITS, A, B) (ints) _mm256_unpack##HALF##_epi##BITS((__m256i)(A), (__m256i)(B))
#endif
#if WIDEST > 4
    ints left[2] = {PAIR(lo, 8, from[0], from[1]), PAIR(hi, 8, from[0], from[1])};
    ints right[2] = {PAIR(lo, 8, from[2], from[3]), PAIR(hi, 8, from[2], from[3])};
    for (int j = 0; j < 2; j++) {
        to[2 * j] = PAIR(lo, 16, left[j], right[j]);
        to[2 * j + 1] = PAIR(hi, 16, left[j], right[j]);
    }
#undef PAIR
#else
    int8_t bytes[4][4 * LANES], quads[4 * LANES][4];
    memcpy(bytes, from, sizeof bytes);
    for (int i = 0; i < 4 * LANES; i++)
        for (int j = 0; j < 4; j++) quads[i][j] = bytes[j][i];
    memcpy(to, quads, sizeof quads);
#endif
}

/* exp of up to four vectors at once: each step depends on the one before, so the vectors fill each other's waits. It is 0
 * below -87 and NaN of NaN. The polynomial is from Cephes' expf. */
INLINE void powers_of_e(floats *v, const int count) {
    const float terms[] = {1.3981999507e-3f, 8.3334519073e-3f, 4.1665795894e-2f, 1.6666665459e-1f, 5.0000001201e-1f};
    floats r[4], p[4];
    ints whole[4];
    for (int i = 0; i < count; i++) {
        r[i] = smaller(larger(v[i], all(-87.f)), all(88.f));
        whole[i] = rounded(r[i] * 1.44269504f);
    }
    for (int i = 0; i < count; i++) {
        floats n = __builtin_convertvector(whole[i], floats);
        r[i] = r[i] - n * 0.693359375f + n * 2.12194440e-4f;
        p[i] = all(1.9875691500e-4f);
    }
    for (int term = 0; term < 5; term++)
        for (int i = 0; i < count; i++) p[i] = p[i] * r[i] + terms[term];
    for (int i = 0; i < count; i++) {
        p[i] = p[i] * r[i] * r[i] + r[i] + 1.f;
        floats power = (floats)((ints)p[i] + (whole[i] << 23));
        v[i] = chosen(v[i] < -87.f, all(0), chosen(v[i] == v[i], power, v[i]));
    }
}

INLINE floats power_of_e(floats v) {
    powers_of_e(&v, 1);
    return v;
}

#endif

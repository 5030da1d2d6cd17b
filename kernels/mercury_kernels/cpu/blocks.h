/* Lays out GGUF's blocks as matrices of `linear.h`: the same codes, with scales rounded to float16 where a block has two
 * factors of it. Floats, and types that differ within a matrix, are rounded once to eight bits.
 *
 * The blocks are defined in ggml-common.h and dequantize_row_* of ggml-quants.c (github.com/ggml-org/ggml).
 */
#ifndef MERCURY_BLOCKS_H
#define MERCURY_BLOCKS_H

#include "linear.h"

/* GGUF's numbers. */
enum { F32 = 0, F16 = 1, Q4_0 = 2, Q4_1 = 3, Q5_0 = 6, Q5_1 = 7, Q8_0 = 8, Q4_K = 12, Q5_K = 13, Q6_K = 14, BF16 = 30 };

static const float BEYOND = 65520; /* the least that rounds to infinity in float16 */

enum { HALF = GROUP / 2, GROUPS_OF_K = 8 /* groups in a block of a K type */ };

/* 32 weights: (code - middle) * scale of its half + low. */
typedef struct {
    uint8_t codes[GROUP];
    float scales[2], low;
    int middle;
} Weights;

INLINE float half_at(const uint8_t *at) {
    uint16_t half;
    memcpy(&half, at, sizeof half);
    return wide_half(half);
}

INLINE void scaled(Weights *to, float scale, float low, int middle) {
    to->scales[0] = to->scales[1] = scale;
    to->low = low, to->middle = middle;
}

INLINE uint32_t bits_at(const uint8_t *at) {
    uint32_t bits;
    memcpy(&bits, at, sizeof bits);
    return bits;
}

INLINE uint64_t eight_at(const uint8_t *at) {
    uint64_t bytes;
    memcpy(&bytes, at, sizeof bytes);
    return bytes;
}

static const uint64_t NIBBLES = 0x0f0f0f0f0f0f0f0f;

/* Eight codes with bit i of `fifth` as the fifth bit of byte i. */
INLINE void put_eight(uint8_t *to, uint64_t codes, uint32_t fifth) {
    uint64_t spread = (fifth & 255) * 0x0101010101010101 & 0x8040201008040201; /* bit i of byte i */
    codes |= (spread + 0x7f7f7f7f7f7f7f7f) >> 3 & 0x1010101010101010;
    memcpy(to, &codes, sizeof codes);
}

/* Codes from 16 bytes with the low 4 bits of inputs i and i + 16, and from one bit per input. Eight bytes at a time, as
 * they are read again: a load waits for narrower stores before it. */
INLINE void nibbles(Weights *to, const uint8_t *bytes, uint32_t fifth) {
    for (int i = 0; i < HALF; i += 8) {
        put_eight(to->codes + i, eight_at(bytes + i) & NIBBLES, fifth >> i);
        put_eight(to->codes + HALF + i, eight_at(bytes + i) >> 4 & NIBBLES, fifth >> (HALF + i));
    }
}

/* The scale and low end of a group of Q4_K and Q5_K: two factors in float16, then twelve bytes of 6-bit numbers. */
INLINE void scaled_by_k(Weights *to, const uint8_t *block, int group) {
    const uint8_t *six = block + 4;
    int scale = six[group] & 63, low = six[group + 4] & 63;
    if (group >= 4) {
        scale = (six[group + 4] & 15) | six[group - 4] >> 6 << 4;
        low = six[group + 4] >> 4 | six[group] >> 6 << 4;
    }
    scaled(to, half_at(block) * (float)scale, -half_at(block + 2) * (float)low, 0);
}

INLINE void read_k4(Weights *to, const uint8_t *block, int group) {
    const uint8_t *low = block + 16 + group / 2 * GROUP;
    for (int i = 0; i < GROUP; i++) to->codes[i] = low[i] >> group % 2 * 4 & 15;
    scaled_by_k(to, block, group);
}

INLINE void read_k5(Weights *to, const uint8_t *block, int group) {
    const uint8_t *high = block + 16, *low = high + GROUP + group / 2 * GROUP;
    for (int i = 0; i < GROUP; i++)
        to->codes[i] = (uint8_t)((low[i] >> group % 2 * 4 & 15) | (high[i] >> group & 1) << 4);
    scaled_by_k(to, block, group);
}

INLINE void read_k6(Weights *to, const uint8_t *block, int group) {
    int part = group / 4, quarter = group % 4;
    const uint8_t *low = block + part * 64 + quarter % 2 * GROUP, *high = block + 128 + part * GROUP;
    const int8_t *scales = (const int8_t *)block + 192 + part * 8 + quarter * 2;
    for (int i = 0; i < GROUP; i++)
        to->codes[i] = (uint8_t)((low[i] >> quarter / 2 * 4 & 15) | (high[i] >> 2 * quarter & 3) << 4);
    scaled(to, 0, 0, 32);
    for (int half = 0; half < 2; half++) to->scales[half] = half_at(block + 208) * (float)scales[half];
}

/* Group number `group` of an output. */
INLINE void read_group(Weights *to, const uint8_t *row, int group, const int type) {
    const uint8_t *k = row + (size_t)(group / GROUPS_OF_K) * (type == Q4_K ? 144 : type == Q5_K ? 176 : 210);
    const int of_k = group % GROUPS_OF_K;
    const uint8_t *at = row + (size_t)group * (type == Q4_0 ? 18 : type == Q4_1 ? 20 : type == Q5_0 ? 22 : type == Q5_1 ? 24 : 34);
    switch (type) {
        case Q4_0: nibbles(to, at + 2, 0), scaled(to, half_at(at), 0, 8); break;
        case Q4_1: nibbles(to, at + 4, 0), scaled(to, half_at(at), half_at(at + 2), 0); break;
        case Q5_0: nibbles(to, at + 6, bits_at(at + 2)), scaled(to, half_at(at), 0, 16); break;
        case Q5_1: nibbles(to, at + 8, bits_at(at + 4)), scaled(to, half_at(at), half_at(at + 2), 0); break;
        case Q8_0:
            for (int i = 0; i < GROUP; i++) to->codes[i] = at[2 + i] ^ 128;
            scaled(to, half_at(at), 0, 128);
            break;
        case Q4_K: read_k4(to, k, of_k); break;
        case Q5_K: read_k5(to, k, of_k); break;
        case Q6_K: read_k6(to, k, of_k); break;
    }
}

/* Rounds 32 values to eight bits. */
INLINE void round_group(Weights *to, const float *values) {
    float low = values[0], high = values[0], odd = 0; /* NaN if a value is NaN or infinite */
    for (int i = 0; i < GROUP; i++) low = fminf(low, values[i]), high = fmaxf(high, values[i]), odd += values[i] * 0;
    low = wide_half(half_of(low + odd));
    /* rounded to float16 it still reaches the largest value; the least scale is float16's */
    float scale = wide_half(half_of((high - low) * (1 + 0x1p-10f) / 255 + 0x1p-24f)), inverse = 1 / scale;
    for (int i = 0; i < GROUP; i++) to->codes[i] = (uint8_t)fminf(fmaxf((values[i] - low) * inverse + .5f, 0), 255);
    scaled(to, scale, low, 0);
}

/* Rounds 32 values to eight bits around 128; the scale is NaN if a value is NaN or infinite. */
INLINE void round_centred(Weights *to, const float *values) {
    int total;
    scaled(to, narrowed((int8_t *)to->codes, values, GROUP, &total), 0, 128);
    for (int i = 0; i < GROUP; i++) to->codes[i] ^= 128;
}

/* 32 floats of an output. */
INLINE void read_floats(float *to, const uint8_t *row, int group, const int type) {
    for (int i = 0; i < GROUP; i++) {
        size_t at = (size_t)group * GROUP + i;
        if (type == F16) to[i] = half_at(row + 2 * at);
        else if (type == F32) memcpy(to + i, row + 4 * at, sizeof *to);
        else {
            uint32_t bits = 0;
            memcpy((uint16_t *)&bits + 1, row + 2 * at, 2); /* little-endian, as all processors with kernels are */
            memcpy(to + i, &bits, sizeof bits);
        }
    }
}

/* A group in a form that its type does not have. */
INLINE void reform(Weights *group, const int form) {
    float values[GROUP];
    int middle = form == SPLIT8 ? 128 : 1 << (bits_of(form) - 1);
    if (form & CENTRED && group->middle == middle) return;
    if (form & CENTRED && form != SPLIT8) { /* of more bits */
        for (int i = 0; i < GROUP; i++) group->codes[i] = (uint8_t)(group->codes[i] + middle - group->middle);
        group->middle = middle;
    } else if (form != SPLIT8 && group->scales[0] == group->scales[1]) {
        group->low -= (float)group->middle * group->scales[0];
        group->middle = 0;
    } else {
        for (int i = 0; i < GROUP; i++)
            values[i] = (float)(group->codes[i] - group->middle) * group->scales[i / HALF] + group->low;
        if (form == SPLIT8) round_centred(group, values);
        else round_group(group, values);
    }
}

/* Writes 32 4-bit codes, from the high or low 4 bits of a group's codes, as lane `lane` of a tile's group. */
INLINE void put_nibbles(uint8_t *tile, int lane, const Weights *group, const int shift) {
    for (int i = 0; i < HALF; i += 8) {
        uint64_t front = eight_at(group->codes + i) >> shift & NIBBLES;
        uint64_t behind = eight_at(group->codes + HALF + i) >> shift & NIBBLES, packed = front | behind << 4;
        memcpy(tile + (i / 4 * LANES + lane) * 4, &packed, 4);
        memcpy(tile + ((i / 4 + 1) * LANES + lane) * 4, (uint8_t *)&packed + 4, 4);
    }
}

/* Writes a group as lane `lane` of a tile's group. */
INLINE void put_group(uint8_t *tile, uint8_t *low, int lane, const Weights *group, const int form) {
    if (form == SPLIT8) {
        put_nibbles(tile, lane, group, 4);
        put_nibbles(low, lane, group, 0);
        ((uint16_t *)(tile + 16 * LANES))[lane] = half_of(16 * group->scales[0]);
        return;
    }
    const int bits = bits_of(form);
    for (int quad = 0; quad < QUADS && bits == 8; quad++) memcpy(tile + (quad * LANES + lane) * 4, group->codes + quad * 4, 4);
    if (bits < 8) put_nibbles(tile, lane, group, 0);
    for (int part = 0; part < bits - 4 && bits < 8; part++) {
        const int quads = bits == 5 ? QUADS : QUADS / 2, each = bits - 4;
        uint32_t high = 0, mask = bits == 5 ? 0x01010101 : 0x03030303;
        for (int quad = 0; quad < quads; quad++)
            high |= (bits_at(group->codes + (part * quads + quad) * 4) >> 4 & mask) << quad * each;
        memcpy(tile + ((QUADS / 2 + part) * LANES + lane) * 4, &high, sizeof high);
    }
    uint16_t *ends = (uint16_t *)(tile + 4 * bits * LANES);
    ends[lane] = half_of(group->scales[0]);
    if (form == CENTRED6) ends[LANES + lane] = half_of(group->scales[1]);
    else if (ends_of(form) == 2) ends[LANES + lane] = half_of(group->low);
}

/* Returns 1, or -1 if a scale is not finite. */
INLINE int lay_type(Matrix *m, int first, int outputs, int64_t row, const uint8_t *blocks, const int type, const int form) {
    float values[GROUP];
    Weights group;
    int odd = 0; /* whether a scale is not finite in float16 */
    for (int output = 0; output < outputs; output++) {
        uint8_t *tile = m->codes + tile_bytes(m) * ((first + output) / LANES);
        for (int number = 0; number < m->inputs / GROUP; number++, tile += group_bytes(form)) {
            if (type == F32 || type == F16 || type == BF16) {
                read_floats(values, blocks + row * output, number, type);
                if (form == SPLIT8) round_centred(&group, values);
                else round_group(&group, values);
            } else {
                read_group(&group, blocks + row * output, number, type);
                if (form != CENTRED6 || type != Q6_K) reform(&group, form);
            }
            uint8_t *low = low_tile(m, (first + output) / LANES) + (size_t)number * LANES * HALF;
            put_group(tile, low, (first + output) % LANES, &group, form);
            odd |= !(fabsf(group.scales[0]) < BEYOND && fabsf(group.scales[1]) < BEYOND && fabsf(group.low) < BEYOND);
        }
    }
    return odd ? -1 : 1;
}

/* See `mercury_blocks`. */
static int lay_blocks(Matrix *m, int first, int outputs, int type, int64_t row, const uint8_t *blocks) {
#define LAY(TYPE, FORM)                                                   \
    if (type == TYPE && m->form == FORM) return lay_type(m, first, outputs, row, blocks, TYPE, FORM);
    LAY(Q4_0, PLAIN4) LAY(Q4_1, PLAIN4) LAY(Q4_K, PLAIN4) LAY(Q5_1, PLAIN5) LAY(Q5_K, PLAIN5)
    LAY(Q5_0, CENTRED5) LAY(Q6_K, CENTRED6) LAY(Q8_0, CENTRED8) LAY(Q5_0, CENTRED8)
    LAY(Q4_0, PLAIN8) LAY(Q4_1, PLAIN8) LAY(Q4_K, PLAIN8) LAY(Q5_1, PLAIN8) LAY(Q5_K, PLAIN8)
    LAY(Q8_0, SPLIT8) LAY(Q6_K, SPLIT8) LAY(F32, SPLIT8) LAY(F16, SPLIT8) LAY(BF16, SPLIT8)
    LAY(Q5_0, PLAIN8) LAY(Q6_K, PLAIN8) LAY(Q8_0, PLAIN8) LAY(F32, PLAIN8) LAY(F16, PLAIN8) LAY(BF16, PLAIN8)
#undef LAY
    return 0;
}

#endif

/* Attention of few rows to many cached keys. Each thread takes a share of the keys of all heads; the partial results are
 * joined afterwards (flash decoding, Dao et al. 2023). The softmax is computed online (arXiv 1805.02867).
 *
 * H key heads, G query heads per key head, D head width, R rows. Keys and values are stored in 8 bits: D bytes per token
 * and head, followed by a float32 scale. Bytes of values are signed; bytes of keys are offset by 128.
 *
 * Biases make a few dimensions of a key a hundred times as large as the others, which then have no bits left. These W
 * dimensions are stored as float32 behind the scale, with 0 as their byte, and multiplied in float32; W is 0 without biases.
 */
#ifndef MERCURY_ATTENTION_H
#define MERCURY_ATTENTION_H

#include "lanes.h"

enum { KEYS = 4 * LANES, SPAN = 4 * LANES }; /* keys read together; bytes of a vector */
enum { OFFSET = 128, SCALE = sizeof(float) };
#define HIDDEN (-1e30f)

/* Queries [H, R * G], G innermost, in 8 bits: bytes [D], scales, and OFFSET times the sum of the bytes; large dimensions
 * float32 [W]. */
typedef struct {
    int8_t *bytes;
    float *scales, *shifts, *large;
} Queries;

/* One thread's partial result for every query: the weighted sum of values [D] in the order of `interleave`, sums of
 * weights [LANES], the largest score. */
typedef struct {
    float *values, *sums, *tops;
} Partial;

/* Up to KEYS keys of a head. */
typedef struct {
    ints *keys;   /* [D / 4, KEYS / LANES]: four bytes of every key, the layout for `dot` */
    ints *values; /* [KEYS / 4, D / LANES]: the bytes of four keys in every dimension */
    float *key_scales, *value_scales, *absent; /* [KEYS]; `absent` is 0 below `count`, then HIDDEN */
    float *large;                              /* [W, KEYS] */
    int count;
} Stretch;

/* Where up to KEYS keys of a head, and their values, are stored. */
typedef struct {
    const uint8_t *keys[KEYS], *values[KEYS];
    int count;
} Stored;

/* The form of a head's keys: head width D, and which W dimensions are large, a multiple of LANES. */
typedef struct {
    int width, wide;
    const int32_t *large;
} Form;

INLINE int key_bytes(const Form *form) { return form->width + SCALE + form->wide * (int)sizeof(float); }
INLINE int value_bytes(const Form *form) { return form->width + SCALE; }

/* Stores a vector in 8 bits; the bytes of keys are offset. */
INLINE void keep(uint8_t *to, const float *from, int width, uint8_t offset) {
    int total;
    float scale = narrowed((int8_t *)to, from, width, &total);
    for (int d = 0; d < width; d++) to[d] ^= offset;
    memcpy(to + width, &scale, sizeof scale);
}

/* Stores a key, and leaves 0 in its large dimensions. */
INLINE void keep_key(uint8_t *to, float *from, const Form *form) {
    for (int i = 0; i < form->wide; i++) {
        memcpy(to + form->width + SCALE + i * SCALE, from + form->large[i], SCALE);
        from[form->large[i]] = 0;
    }
    keep(to, from, form->width, OFFSET);
}

/* Restores the numbers of a stored key. */
INLINE void given(float *to, const uint8_t *from, const Form *form) {
    const int width = form->width;
    float scale;
    memcpy(&scale, from + width, sizeof scale);
    for (int d = 0; d < width; d += LANES) {
        ints byte = signed_bytes(from + d); /* of an offset byte: the key's byte plus or minus 128 */
        store(to + d, __builtin_convertvector(byte - OFFSET + ((byte < 0) & 2 * OFFSET), floats) * scale);
    }
    for (int i = 0; i < form->wide; i++) memcpy(to + form->large[i], from + width + SCALE + i * SCALE, sizeof scale);
}

static void unfold(Stretch *to, const Stored *from, const Form *form) {
    const int width = form->width, count = to->count = from->count;
    for (int first = 0; first < KEYS; first += LANES)
        for (int d = 0; d < width; d += SPAN) {
            ints quads[LANES];
            for (int key = 0; key < LANES; key++)
                quads[key] = first + key < count ? load_ints(from->keys[first + key] + d) : all_ints(0);
            transpose(quads);
            for (int quad = 0; quad < LANES; quad++)
                to->keys[(d / 4 + quad) * (KEYS / LANES) + first / LANES] = quads[quad];
        }
    for (int first = 0; first < count; first += 4)
        for (int d = 0; d < width; d += SPAN) {
            ints four[4];
            for (int i = 0; i < 4; i++) four[i] = first + i < count ? load_ints(from->values[first + i] + d) : all_ints(0);
            interleave(to->values + (first / 4 * width + d) / LANES, four);
        }
    for (int key = 0; key < KEYS; key++) to->absent[key] = key < count ? 0 : HIDDEN;
    memset(to->key_scales, 0, sizeof(float) * KEYS);
    memset(to->value_scales, 0, sizeof(float) * KEYS);
    for (int key = 0; key < count; key++) {
        memcpy(&to->key_scales[key], from->keys[key] + width, SCALE);
        memcpy(&to->value_scales[key], from->values[key] + width, SCALE);
    }
    for (int first = 0; first < KEYS; first += LANES)
        for (int i = 0; i < form->wide; i += LANES) {
            ints floats_of[LANES];
            for (int key = 0; key < LANES; key++)
                floats_of[key] = first + key < count ? load_ints(from->keys[first + key] + width + SCALE + i * SCALE) : all_ints(0);
            transpose(floats_of);
            for (int j = 0; j < LANES; j++) store(to->large + (i + j) * KEYS + first, (floats)floats_of[j]);
        }
}

/* Attention of `count` queries from `first` on to a stretch; added[n] [KEYS] is added to the scores of query n. Quantities
 * with one number per query are lanes of one vector. */
INLINE void look(const Stretch *s, const Queries *queries, size_t first, int width, int wide, const int count,
                 const float *const *added, const Partial *found) {
    enum { PARTS = KEYS / LANES };
    const int8_t *bytes = queries->bytes + first * width;
    ints whole[QUERIES][PARTS];
    for (int n = 0; n < count; n++)
        for (int part = 0; part < PARTS; part++) whole[n][part] = all_ints(0);
    for (int quad = 0; quad < width / 4; quad++)
        for (int part = 0; part < PARTS; part++) {
            ints keys = s->keys[quad * PARTS + part];
            for (int n = 0; n < count; n++)
                whole[n][part] = dot_wide(whole[n][part], keys, all_quads(bytes + n * width + 4 * quad));
        }
    floats score[QUERIES][PARTS], products[QUERIES][PARTS];
    for (int n = 0; n < count && wide; n++)
        for (int part = 0; part < PARTS; part++) products[n][part] = all(0);
    for (int i = 0; i < wide; i++)
        for (int n = 0; n < count; n++)
            for (int part = 0; part < PARTS; part++)
                products[n][part] += load(s->large + i * KEYS + part * LANES) * queries->large[(first + n) * wide + i];
    float tops[LANES] = {0}, former[LANES] = {0};
    for (int n = 0; n < count; n++) {
        float scale = queries->scales[first + n], shift = queries->shifts[first + n];
        former[n] = found->tops[first + n];
        floats most = all(former[n]);
        for (int part = 0; part < PARTS; part++) {
            floats unit = (__builtin_convertvector(whole[n][part], floats) - shift) * scale;
            score[n][part] = unit * load(s->key_scales + part * LANES) + load(added[n] + part * LANES);
            if (wide) score[n][part] += products[n][part];
            most = larger(most, score[n][part]);
        }
        found->tops[first + n] = tops[n] = largest(most);
    }
    floats top = load(tops), shrinks = power_of_e(load(former) - top);
    top = chosen(top <= HIDDEN / 2, all(0), top); /* no visible key so far: all weights are 0 */
    float widest[LANES] = {0};
    for (int n = 0; n < count; n++) {
        float *sums = found->sums + (first + n) * LANES, *values = found->values + (first + n) * width;
        floats total = all(0);
        ints most = all_ints(0);
        for (int part = 0; part < PARTS; part++) score[n][part] -= top[n];
        powers_of_e(score[n], PARTS);
        for (int part = 0; part < PARTS; part++) {
            total += score[n][part];
            score[n][part] *= load(s->value_scales + part * LANES);
            most = larger_ints(most, magnitudes(score[n][part]));
        }
        widest[n] = largest_magnitude(most);
        store(sums, load(sums) * shrinks[n] + total);
        for (int d = 0; d < width; d += LANES) store(values + d, load(values + d) * shrinks[n]);
    }
    floats reach = load(widest), inverse = chosen(reach > 0, 127.f / reach, all(0)), scales = reach / 127.f;
    int8_t weights[QUERIES][KEYS];
    for (int n = 0; n < count; n++)
        for (int part = 0; part < PARTS; part++)
            store_bytes(weights[n] + part * LANES, rounded(score[n][part] * inverse[n]));
    for (int d = 0; d < width; d += SPAN) {
        ints to[QUERIES][4];
        for (int n = 0; n < count; n++)
            for (int j = 0; j < 4; j++) to[n][j] = all_ints(0);
        for (int key = 0; key < s->count; key += 4)
            for (int j = 0; j < 4; j++) {
                ints value = s->values[(key / 4 * width + d) / LANES + j];
                for (int n = 0; n < count; n++) to[n][j] = dot(to[n][j], all_quads(weights[n] + key), value);
            }
        for (int n = 0; n < count; n++)
            for (int j = 0; j < 4; j++) {
                float *sum_of = found->values + (first + n) * width + d + j * LANES;
                store(sum_of, load(sum_of) + __builtin_convertvector(to[n][j], floats) * scales[n]);
            }
    }
}

/* `look` for `count` queries of a head from `first` on, some at a time. hidden [R, apart] is added to the scores of the keys
 * behind the first `open` ones, or NULL. */
static void look_all(const Stretch *s, const Queries *queries, size_t first, int count, const Form *form, int groups,
                     const float *hidden, int apart, int open, const Partial *found) {
    for (int done = 0; done < count; done += QUERIES) {
        const float *added[QUERIES];
        float padded[QUERIES][KEYS];
        int here = count - done < QUERIES ? count - done : QUERIES;
        floats most = all(hidden ? HIDDEN : 0);
        for (int n = 0; n < here; n++) {
            added[n] = hidden ? padded[n] : s->absent;
            if (!hidden) continue;
            memcpy(padded[n], s->absent, sizeof padded[n]);
            memcpy(padded[n] + open, hidden + (size_t)((done + n) / groups) * apart, sizeof(float) * (s->count - open));
            for (int key = 0; key < KEYS; key += LANES) most = larger(most, load(padded[n] + key));
        }
        if (largest(most) <= HIDDEN) continue; /* of rows read in one causal pass, half come before the stretch */
#define CASE(COUNT)                                                                                          \
    case COUNT:                                                                                              \
        if (form->wide) look(s, queries, first + done, form->width, form->wide, COUNT, added, found);       \
        else look(s, queries, first + done, form->width, 0, COUNT, added, found); /* as if without `wide` */ \
        break;
        switch (here) {
            CASE(1) CASE(2) CASE(3)
#if WIDEST == 16
            CASE(4) CASE(5) CASE(6)
#endif
        }
#undef CASE
    }
}

#endif

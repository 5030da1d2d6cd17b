/* Attention of few rows to many cached keys: each thread takes a stretch of the keys of all heads, and what they
 * found is put together afterwards (flash decoding: Dao et al., 2023). Softmax is the online one of arXiv 1805.02867.
 *
 * H key heads, G query heads per key head, D head width, R rows; queries are [H, R * G, D], G innermost.
 */
#ifndef MERCURY_ATTENTION_H
#define MERCURY_ATTENTION_H

#include "lanes.h"

enum { KEYS = LANES == 4 ? 16 : 32, SPAN = 4 * LANES }; /* looked at together; dimensions summed up together */
#define HIDDEN (-1e30f)

/* Keys and values of one layer, [H, T, D] with `head` elements from head to head. */
typedef struct {
    const uint16_t *keys, *values;
    int64_t head;
    int tokens;
} Segment;

/* What one thread found for one query: the sum of weighted values, the sum of weights, the largest score. */
typedef struct {
    float *values; /* [H * R * G, D] */
    float *sums, *tops;
} Partial;

/* Up to KEYS keys of a head: keys [D][KEYS], zero where there are fewer, and values [count][D]. */
typedef struct {
    float *keys, *values;
    int count;
} Stretch;

static void widen(Stretch *to, const uint16_t *keys, const uint16_t *values, int count, int width) {
    const ints upper = all_ints((int32_t)0xffff0000);
    to->count = count;
    for (int d = 0; d < KEYS * width; d += 32) { /* what comes next is probably the next stretch */
        __builtin_prefetch(keys + count * width + d);
        __builtin_prefetch(values + count * width + d);
    }
    for (int first = 0; first < KEYS; first += LANES)
        for (int d = 0; d < width; d += 2 * LANES) { /* two dimensions of a key at a time, side by side in a lane */
            ints pairs[LANES];
            for (int key = 0; key < LANES; key++)
                pairs[key] = first + key < count ? load_ints(keys + (size_t)(first + key) * width + d) : all_ints(0);
            transpose(pairs);
            for (int pair = 0; pair < LANES; pair++) {
                float *at = to->keys + (size_t)(d + 2 * pair) * KEYS + first;
                store(at, (floats)(pairs[pair] << 16));
                store(at + KEYS, (floats)(pairs[pair] & upper));
            }
        }
    for (int d = 0; d < count * width; d += LANES) store(to->values + d, widened(values + d));
}

static void copy(Stretch *to, const float *keys, const float *values, int64_t apart, int count, int width) {
    to->count = count;
    memset(to->keys, 0, sizeof(float) * KEYS * width);
    for (int key = 0; key < count; key++) {
        memcpy(to->values + key * width, values + key * apart, sizeof(float) * width);
        for (int d = 0; d < width; d++) to->keys[d * KEYS + key] = keys[key * apart + d];
    }
}

/* `count` queries look at a stretch; hidden[n] is what to add to the scores of the query's row, or NULL. */
INLINE void look(const Stretch *s, const float *queries, int width, const int count, const float *const *hidden,
                 float *values, float *sums, float *tops) {
    enum { PARTS = KEYS / LANES };
    floats score[QUERIES][PARTS];
    for (int n = 0; n < count; n++)
        for (int part = 0; part < PARTS; part++) score[n][part] = all(0);
    for (int d = 0; d < width; d++)
        for (int part = 0; part < PARTS; part++) {
            floats key = load(s->keys + d * KEYS + part * LANES);
            for (int n = 0; n < count; n++) score[n][part] += key * queries[n * width + d];
        }
    float weights[QUERIES][KEYS] __attribute__((aligned(64)));
    for (int n = 0; n < count; n++) {
        for (int part = 0; part < PARTS; part++) store(weights[n] + part * LANES, score[n][part]);
        if (hidden && hidden[n])
            for (int key = 0; key < s->count; key++) weights[n][key] += hidden[n][key];
        for (int key = s->count; key < KEYS; key++) weights[n][key] = HIDDEN;
        floats most = load(weights[n]);
        for (int part = 1; part < PARTS; part++) most = larger(most, load(weights[n] + part * LANES));
        float top = largest(most);
        if (top < tops[n]) top = tops[n];
        if (top <= HIDDEN / 2) { /* nothing to see so far */
            memset(weights[n], 0, sizeof weights[n]);
            continue;
        }
        floats total = all(0);
        for (int part = 0; part < PARTS; part++) {
            floats weight = power_of_e(load(weights[n] + part * LANES) - top);
            store(weights[n] + part * LANES, weight);
            total += weight;
        }
        if (top != tops[n]) {
            float shrink = power_of_e(all(tops[n] - top))[0];
            for (int d = 0; d < width; d += LANES) store(values + n * width + d, load(values + n * width + d) * shrink);
            sums[n] *= shrink;
            tops[n] = top;
        }
        sums[n] += sum(total);
    }
    for (int d = 0; d < width; d += SPAN) {
        floats to[QUERIES][SPAN / LANES];
        for (int n = 0; n < count; n++)
            for (int i = 0; i < SPAN / LANES; i++) to[n][i] = load(values + n * width + d + i * LANES);
        for (int key = 0; key < s->count; key++) {
            const float *value = s->values + key * width + d;
            for (int n = 0; n < count; n++)
                for (int i = 0; i < SPAN / LANES; i++) to[n][i] += load(value + i * LANES) * weights[n][key];
        }
        for (int n = 0; n < count; n++)
            for (int i = 0; i < SPAN / LANES; i++) store(values + n * width + d + i * LANES, to[n][i]);
    }
}

/* All queries of a head, some at a time. hidden [R, apart] is added to the scores of the keys, or NULL. */
static void look_all(const Stretch *s, const float *queries, int width, int count, int groups, const float *hidden,
                     int apart, float *values, float *sums, float *tops) {
    for (int first = 0; first < count; first += QUERIES) {
        const float *rows[QUERIES];
        int here = count - first < QUERIES ? count - first : QUERIES;
        for (int n = 0; n < here; n++) rows[n] = hidden ? hidden + (size_t)((first + n) / groups) * apart : NULL;
        const float *q = queries + (size_t)first * width;
        float *v = values + (size_t)first * width, *l = sums + first, *m = tops + first;
        switch (here) {
        case 1: look(s, q, width, 1, rows, v, l, m); break;
        case 2: look(s, q, width, 2, rows, v, l, m); break;
        case 3: look(s, q, width, 3, rows, v, l, m); break;
#if WIDEST == 16
        case 4: look(s, q, width, 4, rows, v, l, m); break;
        case 5: look(s, q, width, 5, rows, v, l, m); break;
        case 6: look(s, q, width, 6, rows, v, l, m); break;
#endif
        }
    }
}

#endif

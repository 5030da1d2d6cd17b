/* Matrices of 4- or 8-bit codes times rows quantised to 8 bits, plus low-rank products.
 *
 * A matrix [outputs, inputs] has codes in groups of 32 inputs, each with a scale and a low end: weight = code * scale
 * + low, the arithmetic of GGUF's Q4_1. It is laid out in tiles of LANES outputs. For each group, a tile holds the codes,
 * four inputs of every output side by side (the layout for `dot`), then LANES scales and LANES low ends in float16.
 * A byte of 4-bit codes holds the codes of inputs i and i + 16.
 */
#ifndef MERCURY_LINEAR_H
#define MERCURY_LINEAR_H

#include <stdlib.h>

#if defined(__unix__) || defined(__APPLE__)
#include <sys/mman.h>
#endif

#include "lanes.h"
#include "threads.h"

enum { GROUP = 32, QUADS = GROUP / 4, PIECES = 2, AHEAD = 2048 };
enum { PAIR = 2, TAKEN = 4 }; /* tiles that share a read of rows; rows that share a low-rank product */

/* A product of rank `rank`, a multiple of LANES: y += up (down x), both bfloat16; down [rank/LANES][inputs][LANES],
 * up [tiles][rank][LANES]. */
typedef struct {
    int rank;
    uint16_t *down, *up;
} LowRank;

typedef struct {
    int outputs, inputs, bits, tiles;
    uint8_t *codes;
    float *bias;
    LowRank pieces[PIECES];
} Matrix;

/* Rows in the form in which matrices take them. */
typedef struct {
    int8_t *bytes;      /* [R, inputs] */
    float *scales;      /* [R, inputs / 32] */
    float *sums;        /* [R, inputs / 32], of the rounded values */
    float *low[PIECES]; /* [R, rank]: down x */
} Rows;

INLINE size_t group_bytes(int bits) { return (size_t)LANES * (bits == 4 ? 16 : 32) + 4 * LANES; }
INLINE size_t tile_bytes(const Matrix *m) { return group_bytes(m->bits) * (size_t)(m->inputs / GROUP); }

/* Zeroed memory, in huge pages where the system has them, for every pass streams all weights. */
static void *pages(size_t size) {
#ifdef MADV_HUGEPAGE
    void *found = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (found == MAP_FAILED) return NULL;
    madvise(found, size, MADV_HUGEPAGE);
    return found;
#else
    return calloc(size, 1);
#endif
}

static void give_back(void *pages, size_t size) {
#ifdef MADV_HUGEPAGE
    if (pages) munmap(pages, size);
#else
    (void)size;
    free(pages);
#endif
}

/* Lays out codes [outputs, inputs] (two 4-bit codes per byte), scales and low ends [outputs, inputs / 32], from output
 * `first` of the matrix on. */
static void lay_out(Matrix *m, int first, int outputs, const uint8_t *codes, const uint16_t *scales, const uint16_t *lows) {
    int groups = m->inputs / GROUP;
    for (int output = 0; output < outputs; output++) {
        int lane = (first + output) % LANES;
        uint8_t *tile = m->codes + tile_bytes(m) * ((first + output) / LANES);
        for (int group = 0; group < groups; group++, tile += group_bytes(m->bits)) {
            /* a byte of two codes stays as it is: inputs i and i + 16 are in quads i / 4 and i / 4 + 4 */
            int quads = m->bits == 4 ? QUADS / 2 : QUADS;
            const uint8_t *from = codes + ((size_t)output * groups + group) * quads * 4;
            for (int quad = 0; quad < quads; quad++) memcpy(tile + (quad * LANES + lane) * 4, from + quad * 4, 4);
            uint16_t *ends = (uint16_t *)(tile + quads * LANES * 4);
            ends[lane] = scales[(size_t)output * groups + group];
            ends[LANES + lane] = lows[(size_t)output * groups + group];
        }
    }
}

/* The first half of a low-rank product for `count` rows x [count, inputs]: to [count, rank]. */
INLINE void down_by_rows(const LowRank *low, int inputs, const float *x, const int count, float *to) {
    for (int tile = 0; tile < low->rank / LANES; tile++) {
        const uint16_t *down = low->down + (size_t)tile * inputs * LANES;
        floats total[TAKEN][4];
        for (int r = 0; r < count; r++)
            for (int i = 0; i < 4; i++) total[r][i] = all(0);
        for (int input = 0; input < inputs; input += 4)
            for (int i = 0; i < 4; i++) {
                floats column = widened(down + (size_t)(input + i) * LANES);
                for (int r = 0; r < count; r++) total[r][i] += x[r * inputs + input + i] * column;
            }
        for (int r = 0; r < count; r++)
            store(to + r * low->rank + tile * LANES, (total[r][0] + total[r][1]) + (total[r][2] + total[r][3]));
    }
}

/* Quantises `count` rows x [count, inputs], the rows from `first` on, to 8 bits and multiplies them by the first halves of
 * the low-rank products. */
static void take_rows(const Matrix *m, int pieces, Rows *rows, int first, int count, const float *x) {
    size_t groups = (size_t)(m->inputs / GROUP) * count, at = (size_t)first * (m->inputs / GROUP);
    for (size_t group = 0; group < groups; group++, at++) {
        int total;
        float scale = narrowed(rows->bytes + at * GROUP, x + group * GROUP, GROUP, &total);
        rows->scales[at] = scale;
        /* of the rounded values: codes are far from 0, so rounding errors times codes would be large */
        rows->sums[at] = scale * (float)total;
    }
    for (int piece = 0; piece < pieces; piece++) {
        const LowRank *low = &m->pieces[piece];
        float *to = rows->low[piece] + (size_t)first * low->rank;
        switch (count) {
            case 1: down_by_rows(low, m->inputs, x, 1, to); break;
            case 2: down_by_rows(low, m->inputs, x, 2, to); break;
            case 3: down_by_rows(low, m->inputs, x, 3, to); break;
            case 4: down_by_rows(low, m->inputs, x, 4, to); break;
        }
    }
}

/* Adds four codes of every output times four bytes of `count` rows, `apart` bytes apart, to sums [PAIR][ROWS]. */
INLINE void add_quad(ints (*sums)[ROWS], const ints *codes, const int8_t *bytes, size_t apart, const int count,
                     const int bits) {
    for (int r = 0; r < count; r++) {
        ints four = all_quads(bytes + r * apart);
        for (int t = 0; t < PAIR; t++)
            sums[t][r] = bits == 4 ? dot_few(sums[t][r], codes[t], four) : dot_wide(sums[t][r], codes[t], four);
    }
}

/* Two tiles for `count` rows from row `first` on: y [PAIR][ROWS]. */
INLINE void tiles_by_rows(const Matrix *m, int pieces, const Rows *rows, const int *tiles, int first, const int count,
                          const int bits, floats (*y)[ROWS]) {
    const ints low_bits = all_ints(0x0f0f0f0f);
    const size_t inputs = (size_t)m->inputs, groups = inputs / GROUP;
    const int8_t *bytes = rows->bytes + (size_t)first * inputs;
    const float *scales = rows->scales + (size_t)first * groups, *sums = rows->sums + (size_t)first * groups;
    const uint8_t *at[PAIR];
    floats total[PAIR][ROWS];
    for (int t = 0; t < PAIR; t++) {
        at[t] = m->codes + tile_bytes(m) * tiles[t];
        for (int r = 0; r < count; r++) total[t][r] = m->bias ? load(m->bias + tiles[t] * LANES) : all(0);
    }
    for (size_t group = 0; group < groups; group++, bytes += GROUP, scales++, sums++) {
        ints whole[PAIR][ROWS];
        for (int t = 0; t < PAIR; t++) {
            for (int r = 0; r < count; r++) whole[t][r] = all_ints(0);
            for (size_t line = 0; line < group_bytes(bits); line += 64) __builtin_prefetch(at[t] + AHEAD + line);
        }
        for (int quad = 0; quad < (bits == 4 ? QUADS / 2 : QUADS); quad++) {
            ints codes[PAIR], behind[PAIR];
            for (int t = 0; t < PAIR; t++) {
                codes[t] = load_ints(at[t]);
                at[t] += 4 * LANES;
                behind[t] = (codes[t] >> 4) & low_bits;
                if (bits == 4) codes[t] &= low_bits;
            }
            add_quad(whole, codes, bytes + quad * 4, inputs, count, bits);
            if (bits == 4) add_quad(whole, behind, bytes + GROUP / 2 + quad * 4, inputs, count, bits);
        }
#pragma GCC unroll 2 /* Clang keeps the sums in memory otherwise */
        for (int t = 0; t < PAIR; t++) {
            floats scale = halves((const uint16_t *)at[t]), low = halves((const uint16_t *)at[t] + LANES);
            at[t] += 4 * LANES;
            for (int r = 0; r < count; r++) {
                ints sum = bits == 4 ? settled(whole[t][r]) : whole[t][r];
                total[t][r] += __builtin_convertvector(sum, floats) * (scale * scales[r * groups]);
                total[t][r] += low * sums[r * groups];
            }
        }
    }
    for (int piece = 0; piece < pieces; piece++) {
        const LowRank *product = &m->pieces[piece];
        const float *down = rows->low[piece] + (size_t)first * product->rank;
        for (int t = 0; t < PAIR; t++) {
            const uint16_t *up = product->up + (size_t)tiles[t] * product->rank * LANES;
            for (int rank = 0; rank < product->rank; rank++) {
                floats column = widened(up + rank * LANES);
                for (int r = 0; r < count; r++) total[t][r] += column * down[r * product->rank + rank];
            }
        }
    }
    for (int t = 0; t < PAIR; t++)
        for (int r = 0; r < count; r++) y[t][r] = total[t][r];
}

/* `tiles_by_rows` with constant bits and number of rows. */
static void tiles_rows(const Matrix *m, int pieces, const Rows *rows, const int *tiles, int first, int count,
                       floats (*y)[ROWS]) {
#define CASE(COUNT)                                                                  \
    case COUNT:                                                                      \
        if (m->bits == 4) tiles_by_rows(m, pieces, rows, tiles, first, COUNT, 4, y); \
        else tiles_by_rows(m, pieces, rows, tiles, first, COUNT, 8, y);              \
        break;
    switch (count) {
        CASE(1) CASE(2) CASE(3) CASE(4)
#if WIDEST == 16
        CASE(5) CASE(6) CASE(7) CASE(8)
#endif
    }
#undef CASE
}

#endif

/* Matrices of 4- to 8-bit codes times rows quantised to 8 bits, plus low-rank products.
 *
 * A matrix [outputs, inputs] has codes in groups of 32 inputs. In the plain forms each group has a scale and a low end:
 * weight = code * scale + low, the arithmetic of GGUF's Q4_1. In the centred forms weight = (code - 2^(bits - 1)) * scale,
 * as in Q5_0 and Q8_0; with 6 bits, as in Q6_K, the two halves of a group have scales of their own.
 *
 * It is laid out in tiles of LANES outputs. For each group, a tile holds the codes, four inputs of every output side by
 * side (the layout for `dot`), then LANES scales and LANES low ends (or LANES scales per half) in float16. A byte holds
 * the low 4 bits of the codes of inputs i and i + 16. Behind these bytes, 5-bit codes have four bytes per output: bit q of
 * byte i is the fifth bit of input 4 q + i. 6-bit codes have four bytes per output and half: bits 2 q and 2 q + 1.
 *
 * SPLIT8 is for the head. Its tiles hold the high 4 bits of 8-bit codes, and behind all tiles are the low 4 bits, which are
 * read where a logit is near the largest one; elsewhere their mean stands for them.
 */
#ifndef MERCURY_LINEAR_H
#define MERCURY_LINEAR_H

#include <stdlib.h>

#if defined(__unix__) || defined(__APPLE__)
#include <sys/mman.h>
#endif

#include "lanes.h"
#include "threads.h"

enum { GROUP = 32, QUADS = GROUP / 4, PIECES = 4, AHEAD = 2048 };
enum { PAIR = 2, TAKEN = 4 }; /* tiles that share a read of rows; rows that share a low-rank product */

/* A product of rank `rank`, a multiple of LANES: y += up (down x), both bfloat16; down [rank/LANES][inputs][LANES],
 * up [tiles][rank][LANES]. */
typedef struct {
    int rank;
    uint16_t *down, *up;
} LowRank;

/* A form is a number of bits, and CENTRED. */
enum { CENTRED = 16, PLAIN4 = 4, PLAIN5 = 5, PLAIN8 = 8, CENTRED5 = 5 | CENTRED, CENTRED6 = 6 | CENTRED, CENTRED8 = 8 | CENTRED };
enum { SPLIT8 = 4 | CENTRED };

typedef struct {
    int outputs, inputs, form, tiles;
    uint8_t *codes;
    float *bias;
    LowRank pieces[PIECES];
} Matrix;

/* The rank of a low-rank product; 0 unless it is among the pieces that a pass adds, a bit each. */
INLINE size_t rank_of(const Matrix *m, int pieces, int piece) {
    return pieces >> piece & 1 ? (size_t)m->pieces[piece].rank : 0;
}

/* Rows in the form in which matrices take them. */
typedef struct {
    int8_t *bytes;      /* [R, inputs] */
    float *scales;      /* [R, inputs / 32] */
    float *sums;        /* [R, inputs / 32], of the rounded values */
    int32_t *starts;    /* [R, inputs / 32, 2]: what makes codes centred, for the group, with 6 bits for each half */
    float *low[PIECES]; /* [R, rank]: down x */
} Rows;

INLINE int bits_of(int form) { return form & ~CENTRED; }
INLINE int ends_of(int form) { return form & CENTRED && form != CENTRED6 ? 1 : 2; }
INLINE size_t group_bytes(int form) { return (size_t)LANES * (4 * bits_of(form) + 2 * ends_of(form)); }
INLINE size_t tile_bytes(const Matrix *m) { return group_bytes(m->form) * (size_t)(m->inputs / GROUP); }
INLINE size_t low_tile_bytes(const Matrix *m) { return m->form == SPLIT8 ? (size_t)LANES * m->inputs / 2 : 0; }
INLINE size_t matrix_bytes(const Matrix *m) { return (tile_bytes(m) + low_tile_bytes(m)) * m->tiles; }
INLINE uint8_t *low_tile(const Matrix *m, int tile) { return m->codes + tile_bytes(m) * m->tiles + low_tile_bytes(m) * tile; }
INLINE int is_form(int form) {
    return form == PLAIN4 || form == PLAIN5 || form == PLAIN8 || form == CENTRED5 || form == CENTRED6 || form == CENTRED8 || form == SPLIT8;
}

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

/* Prefetches `bytes`. */
INLINE void fetch(const void *from, size_t bytes) {
    for (size_t line = 0; line < bytes; line += 64) __builtin_prefetch((const char *)from + line);
}

/* The first half of a low-rank product for `count` rows x [count, inputs]: to [count, rank]. */
INLINE void down_by_rows(const LowRank *low, int inputs, const float *x, const int count, float *to) {
    for (int tile = 0; tile < low->rank / LANES; tile++) {
        const uint16_t *down = low->down + (size_t)tile * inputs * LANES;
        floats total[TAKEN][4];
        for (int r = 0; r < count; r++)
            for (int i = 0; i < 4; i++) total[r][i] = all(0);
        for (int input = 0; input < inputs; input += 4, down += 4 * LANES) {
            fetch((const char *)down + AHEAD, 4 * LANES * sizeof *down);
            for (int i = 0; i < 4; i++) {
                floats column = widened(down + i * LANES);
                for (int r = 0; r < count; r++) total[r][i] += x[r * inputs + input + i] * column;
            }
        }
        for (int r = 0; r < count; r++)
            store(to + r * low->rank + tile * LANES, (total[r][0] + total[r][1]) + (total[r][2] + total[r][3]));
    }
}

/* Quantises `count` rows x [count, inputs], the rows from `first` on, to 8 bits and multiplies them by the first halves of
 * the low-rank products. */
static void take_rows(const Matrix *m, int pieces, Rows *rows, int first, int count, const float *x) {
    size_t groups = (size_t)(m->inputs / GROUP) * count, at = (size_t)first * (m->inputs / GROUP);
    const int middle = 1 << (bits_of(m->form) - 1), halved = m->form == CENTRED6;
    for (int piece = 0; piece < PIECES; piece++) fetch(m->pieces[piece].down, rank_of(m, pieces, piece) ? AHEAD : 0);
    for (size_t group = 0; group < groups; group++, at++) {
        int total;
        float scale = narrowed(rows->bytes + at * GROUP, x + group * GROUP, GROUP, &total);
        rows->scales[at] = scale;
        /* of the rounded values: codes are far from 0, so rounding errors times codes would be large */
        rows->sums[at] = scale * (float)total;
        int behind = 0;
        for (int i = GROUP / 2; i < GROUP && halved; i++) behind += rows->bytes[at * GROUP + i];
        rows->starts[2 * at] = -middle * (total - behind);
        rows->starts[2 * at + 1] = -middle * behind;
    }
    for (int piece = 0; piece < PIECES; piece++) {
        if (!rank_of(m, pieces, piece)) continue;
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

/* The bits of a quad's codes above the fourth, from the bytes behind the low ones. */
INLINE ints high_bits(const uint8_t *at, const int quad, const int half, const int bits) {
    ints high = load_ints(at + (QUADS / 2 + (bits == 6 ? half : 0)) * 4 * LANES);
    int place = bits == 6 ? 2 * quad : quad + half * QUADS / 2;
    return (place < 4 ? high << (4 - place) : high >> (place - 4)) & all_ints(bits == 6 ? 0x30303030 : 0x10101010);
}

/* The codes of inputs 4 quad to 4 quad + 3 of a half of a group of less than 8 bits. */
INLINE ints codes_of(const uint8_t *at, const int quad, const int half, const int bits) {
    ints codes = load_ints(at + quad * 4 * LANES);
    codes = (half ? codes >> 4 : codes) & all_ints(0x0f0f0f0f);
    return bits == 4 ? codes : codes | high_bits(at, quad, half, bits);
}

/* The codes of a quad of 8 bits; where FEW their low or, in `part` 1, their high four bits. */
INLINE ints eight_bits(const uint8_t *at, const int quad, const int part) {
    ints codes = load_ints(at + quad * 4 * LANES);
    return FEW ? (part ? codes >> 4 : codes) & all_ints(0x0f0f0f0f) : codes;
}

/* Number of tiles whose sums fit in registers. */
INLINE int tiles_at_once(const int bits) { return FEW && bits > 4 ? 1 : PAIR; }

/* Adds the products of a group's codes, with 6 bits of one half of it, to sums [tiles][ROWS]; rows are `apart` bytes apart. */
INLINE void add_group(ints (*sums)[ROWS], const uint8_t *const *at, const int8_t *bytes, size_t apart, const int half,
                      const int count, const int bits) {
    const int quads = bits == 6 ? QUADS / 2 : QUADS, parts = FEW && bits == 8 ? 2 : 1;
    const int step = !FEW ? quads : bits == 6 ? 2 : bits == 5 ? 4 : QUADS; /* quads whose sums fit in 16 bits */
    const int tiles = tiles_at_once(bits);
    bytes += half * GROUP / 2;
    for (int part = 0; part < parts; part++)
#pragma GCC unroll 4
        for (int first = 0; first < quads; first += step) {
            ints few[PAIR][ROWS];
            for (int t = 0; t < tiles; t++)
                for (int r = 0; r < count; r++) few[t][r] = FEW ? all_ints(0) : sums[t][r];
#pragma GCC unroll 8
            for (int i = 0; i < step; i++) {
                const int n = first + i, behind = bits == 6 ? half : n % 2, place = bits == 6 ? n : n / 2;
                const int quad = bits == 6 ? n : behind * QUADS / 2 + place;
                ints codes[PAIR];
                for (int t = 0; t < tiles; t++)
                    codes[t] = bits == 8 ? eight_bits(at[t], quad, part) : codes_of(at[t], place, behind, bits);
                for (int r = 0; r < count; r++) {
                    ints four = all_quads(bytes + r * apart + quad * 4);
                    for (int t = 0; t < tiles; t++)
                        few[t][r] = bits == 8 && !FEW ? dot_wide(few[t][r], codes[t], four) : dot_few(few[t][r], codes[t], four);
                }
                IN_ORDER();
            }
            for (int t = 0; t < tiles; t++)
                for (int r = 0; r < count; r++) {
                    ints more = part ? settled(few[t][r]) << 4 : settled(few[t][r]);
                    sums[t][r] = FEW ? sums[t][r] + more : more;
                }
        }
}

/* What the high 4 bits of a code of 128 are with the mean of the low ones, and that mean. */
static const float MEAN_LOW = 7.5f, MIDDLE_HIGH = (128 - 7.5f) / 16;

/* What the low 4 bits of a tile's codes add for one row, in SPLIT8. */
INLINE floats low_bits(const Matrix *m, const Rows *rows, int tile, int row) {
    const ints low = all_ints(0x0f0f0f0f);
    const size_t inputs = (size_t)m->inputs, groups = inputs / GROUP;
    const int8_t *bytes = rows->bytes + row * inputs;
    const uint8_t *codes = low_tile(m, tile), *ends = m->codes + tile_bytes(m) * tile + 16 * LANES;
    floats total = all(0);
    for (size_t group = 0; group < groups; group++, bytes += GROUP, ends += group_bytes(SPLIT8)) {
        ints sum = all_ints(0);
        for (int quad = 0; quad < QUADS / 2; quad++, codes += 4 * LANES) {
            sum = dot(sum, load_ints(codes) & low, all_quads(bytes + quad * 4));
            sum = dot(sum, (load_ints(codes) >> 4) & low, all_quads(bytes + GROUP / 2 + quad * 4));
        }
        floats product = __builtin_convertvector(sum, floats) * rows->scales[row * groups + group];
        total += halves((const uint16_t *)ends) * (product - MEAN_LOW * rows->sums[row * groups + group]);
    }
    return total / 16.f;
}

/* Two tiles for `count` rows from row `first` on, without low-rank products: y [PAIR][ROWS]. */
INLINE void tiles_by_rows(const Matrix *m, const Rows *rows, const int *tiles, int first, const int count,
                          const int form, floats (*y)[ROWS]) {
    const int bits = bits_of(form), centred = form & CENTRED;
    const size_t inputs = (size_t)m->inputs, groups = inputs / GROUP;
    const int8_t *bytes = rows->bytes + (size_t)first * inputs;
    const float *scales = rows->scales + (size_t)first * groups, *sums = rows->sums + (size_t)first * groups;
    const int32_t *starts = rows->starts + (size_t)first * groups * 2;
    const uint8_t *at[PAIR];
    floats total[PAIR][ROWS];
    for (int t = 0; t < PAIR; t++) {
        at[t] = m->codes + tile_bytes(m) * tiles[t];
        for (int r = 0; r < count; r++) total[t][r] = m->bias ? load(m->bias + tiles[t] * LANES) : all(0);
    }
    for (size_t group = 0; group < groups; group++, bytes += GROUP, scales++, sums++, starts += 2) {
        for (int t = 0; t < PAIR; t++)
            for (size_t line = 0; line < group_bytes(form); line += 64) __builtin_prefetch(at[t] + AHEAD + line);
        for (int half = 0; half < (bits == 6 ? 2 : 1); half++) {
#pragma GCC unroll 2 /* Clang keeps the sums in memory otherwise */
            for (int tile = 0; tile < PAIR; tile += tiles_at_once(bits)) {
                ints whole[PAIR][ROWS];
                for (int t = 0; t < tiles_at_once(bits); t++)
                    for (int r = 0; r < count; r++)
                        whole[t][r] = all_ints(centred && form != SPLIT8 ? starts[r * groups * 2 + half] : 0);
                add_group(whole, at + tile, bytes, inputs, half, count, bits);
#pragma GCC unroll 2
                for (int t = 0; t < tiles_at_once(bits); t++) {
                    const uint16_t *ends = (const uint16_t *)(at[tile + t] + 4 * bits * LANES) + half * LANES;
                    floats scale = halves(ends), low = centred ? all(0) : halves(ends + LANES), *to = total[tile + t];
                    for (int r = 0; r < count; r++) {
                        floats product = __builtin_convertvector(whole[t][r], floats);
                        if (form == SPLIT8) {
                            to[r] += scale * (product * scales[r * groups] - MIDDLE_HIGH * sums[r * groups]);
                            continue;
                        }
                        to[r] += product * (scale * scales[r * groups]);
                        if (!centred) to[r] += low * sums[r * groups];
                    }
                }
            }
        }
        for (int t = 0; t < PAIR; t++) at[t] += group_bytes(form);
    }
    for (int t = 0; t < PAIR; t++)
        for (int r = 0; r < count; r++) y[t][r] = total[t][r];
}

/* Adds the second half of a low-rank product to the rows of two tiles; `down` is the first half. Among the sums of
 * `tiles_by_rows`, it would take the registers of those. Both tiles at once, as each sum waits for the one before. */
INLINE void add_up(const LowRank *low, const float *down, const int *tiles, const int count, floats (*y)[ROWS]) {
    const size_t rank = (size_t)low->rank;
    floats total[PAIR][ROWS];
    for (int t = 0; t < PAIR; t++)
        for (int r = 0; r < count; r++) total[t][r] = y[t][r];
    for (size_t i = 0; i < rank; i++)
        for (int t = 0; t < PAIR; t++) {
            floats column = widened(low->up + (tiles[t] * rank + i) * LANES);
            for (int r = 0; r < count; r++) total[t][r] += column * down[r * rank + i];
        }
    for (int t = 0; t < PAIR; t++)
        for (int r = 0; r < count; r++) y[t][r] = total[t][r];
}

/* Two tiles with their low-rank products: `count` rows from row `first` on. */
static void tiles_rows(const Matrix *m, int pieces, const Rows *rows, const int *tiles, int first, int count,
                       floats (*y)[ROWS]) {
#if WIDEST == 16
#define CASES CASE(1) CASE(2) CASE(3) CASE(4) CASE(5) CASE(6) CASE(7) CASE(8)
#else
#define CASES CASE(1) CASE(2) CASE(3) CASE(4)
#endif
#define CASE(COUNT) \
    case COUNT: tiles_by_rows(m, rows, tiles, first, COUNT, form, y); break;
#define FORM(FORM)                \
    case FORM: {                  \
        const int form = FORM;    \
        switch (count) { CASES }  \
        break;                    \
    }
    for (int piece = 0; piece < PIECES; piece++)
        for (int t = 0; t < PAIR; t++) { /* needed after the tile's codes */
            const size_t size = rank_of(m, pieces, piece) * LANES;
            fetch(m->pieces[piece].up + tiles[t] * size, size * sizeof(uint16_t));
        }
    switch (m->form) { FORM(PLAIN4) FORM(PLAIN5) FORM(PLAIN8) FORM(CENTRED5) FORM(CENTRED6) FORM(CENTRED8) FORM(SPLIT8) }
#undef FORM
#undef CASE
#define CASE(COUNT) \
    case COUNT: add_up(&m->pieces[piece], down, tiles, COUNT, y); break;
    for (int piece = 0; piece < PIECES; piece++) {
        const size_t rank = rank_of(m, pieces, piece);
        const float *down = rows->low[piece] + first * rank;
        if (!rank) continue;
        switch (count) { CASES }
    }
#undef CASES
#undef CASE
}

#endif

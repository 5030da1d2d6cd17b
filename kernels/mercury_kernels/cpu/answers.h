/* What a decoder asks of rows of logits: the likeliest allowed token, the entropy, candidates, and logits by name.
 *
 * Dimensions: W rows, V vocabulary, K candidates, A tokens asked for.
 */
#ifndef MERCURY_ANSWERS_H
#define MERCURY_ANSWERS_H

#include "lanes.h"
#include "threads.h"

enum { CANDIDATES = 64, STRETCH = 1024 /* tokens whose logits stay in the nearest cache */, WORD = 32 };

/* A job of `mercury_answers`. `banned` has bit lists of `words` words; bit i % 32 of word i / 32 bans token i. */
typedef struct {
    const float *logits; /* [W, V] */
    int rows, tokens, words, asks; /* W, V, words of a bit list, A */
    const uint32_t *banned;
    const int32_t *list;  /* [W]: the row's bit list, or -1 */
    const int32_t *asked; /* [A] */
    int32_t *token;       /* [W] */
    float *figures;       /* [W, 4]: logit of that token, log-sum of the allowed, of all, entropy of the allowed */
    int32_t *candidate;   /* [W, K], or NULL */
    float *likeliest;     /* [W, K] */
    float *told;          /* [W, A] */
} Asking;

/* Sums over tokens, relative to the largest logit so far: of exp(d) and of exp(d) * d. */
typedef struct {
    float top;
    double sum, mean;
} Sums;

static void add_stretch(Sums *sums, const float *logits, int count, float most) {
    if (most > sums->top) {
        double down = (double)sums->top - most, keep = sums->sum > 0 ? exp(down) : 0;
        sums->mean = sums->sum > 0 ? (sums->mean + sums->sum * down) * keep : 0;
        sums->sum *= keep;
        sums->top = most;
    }
    floats powers = all(0), products = all(0);
    for (int i = 0; i < count; i += 4 * LANES) {
        floats p[4], d[4];
        for (int j = 0; j < 4; j++) p[j] = d[j] = load(logits + i + j * LANES) - sums->top;
        powers_of_e(p, 4);
        for (int j = 0; j < 4; j++) {
            powers += p[j];
            products += p[j] * larger(d[j], all(-88.f));
        }
    }
    sums->sum += sum(powers);
    sums->mean += sum(products);
}

static void add_candidates(const Asking *a, int row, const float *logits, int first, int count) {
    int32_t *token = a->candidate + (size_t)row * CANDIDATES;
    float *logit = a->likeliest + (size_t)row * CANDIDATES;
    for (int i = 0; i < count; i += LANES) {
        if (!(largest(load(logits + i)) > logit[CANDIDATES - 1])) continue;
        for (int j = i; j < i + LANES; j++) {
            if (!(logits[j] > logit[CANDIDATES - 1])) continue;
            int at = CANDIDATES - 1;
            for (; at > 0 && logits[j] > logit[at - 1]; at--) logit[at] = logit[at - 1], token[at] = token[at - 1];
            logit[at] = logits[j], token[at] = first + j;
        }
    }
}

/* Number of logits with -inf behind them up to whole vectors. */
static int padded(float *logits, int count) {
    int end = (count + 4 * LANES - 1) / (4 * LANES) * 4 * LANES;
    for (int i = count; i < end; i++) logits[i] = -INFINITY;
    return end;
}

/* Copies the logits of a stretch, -inf for banned tokens, whose logits go to `rest` in turn; returns how many those are. */
static int split_stretch(float *allowed, float *rest, const float *logits, const uint32_t *banned, int count) {
    int out = 0;
    memcpy(allowed, logits, (size_t)count * sizeof(float));
    for (int first = 0; banned && first < count; first += WORD)
        for (uint32_t word = banned[first / WORD]; word; word &= word - 1) {
            int at = first + __builtin_ctz(word);
            if (at >= count) break;
            rest[out++] = allowed[at];
            allowed[at] = -INFINITY;
        }
    return out;
}

static float top_of(const float *logits, int count) {
    floats top = all(-INFINITY);
    for (int i = 0; i < count; i += LANES) top = larger(top, load(logits + i));
    return largest(top);
}

static int first_of(const float *logits, float value) {
    int i = 0;
    while (logits[i] != value) i++;
    return i;
}

/* The log-sum of both. */
static double joined(const Sums *a, const Sums *b) {
    double top = a->top > b->top ? a->top : b->top;
    return top + log((a->sum ? a->sum * exp(a->top - top) : 0) + (b->sum ? b->sum * exp(b->top - top) : 0));
}

static void answer_row(const Asking *a, int row) {
    const float *logits = a->logits + (size_t)row * a->tokens;
    const uint32_t *banned = a->list[row] < 0 ? NULL : a->banned + (size_t)a->list[row] * a->words;
    float allowed[STRETCH], rest[STRETCH], *figures = a->figures + 4 * row;
    Sums found = {-INFINITY, 0, 0}, other = found;
    for (int i = 0; a->candidate && i < CANDIDATES; i++) {
        a->candidate[row * CANDIDATES + i] = 0;
        a->likeliest[row * CANDIDATES + i] = -INFINITY;
    }
    a->token[row] = 0;
    for (int first = 0; first < a->tokens; first += STRETCH) {
        int count = a->tokens - first < STRETCH ? a->tokens - first : STRETCH;
        int banned_here = split_stretch(allowed, rest, logits + first, banned ? banned + first / WORD : NULL, count);
        int size = padded(allowed, count), rest_size = padded(rest, banned_here);
        float most = top_of(allowed, size), out = top_of(rest, rest_size);
        if (most > found.top) a->token[row] = first + first_of(allowed, most);
        if (a->candidate) add_candidates(a, row, allowed, first, size);
        if (most != -INFINITY) add_stretch(&found, allowed, size, most);
        if (out != -INFINITY) add_stretch(&other, rest, rest_size, out);
    }
    figures[0] = found.top;
    figures[1] = (float)(found.top + log(found.sum));
    figures[2] = (float)joined(&found, &other);
    figures[3] = (float)(log(found.sum) - found.mean / found.sum);
    for (int i = 0; i < a->asks; i++) a->told[(size_t)row * a->asks + i] = logits[a->asked[i]];
}

static void answering_pass(void *given, Pool *pool, int thread) {
    const Asking *a = given;
    (void)thread;
    for (int row; (row = pool_take(pool, 0, a->rows)) >= 0; pool_done(pool, 0)) answer_row(a, row);
    pool_meet(pool, 0, a->rows);
}

#endif

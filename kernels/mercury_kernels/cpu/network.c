/* A decoder's layers over few rows, one call per pass.
 *
 * Dimensions: R rows, C width, I feed-forward width, H key heads, G query heads per key head, D head width.
 * Rows, residuals and intermediate results are float32. A pass returns unrotated keys, without their bias, and values in
 * bfloat16; rotated into a frame (`mercury_place`), with the bias, they have the format of `attention.h`.
 */
#include "answers.h"
#include "attention.h"
#include "blocks.h"
#include "linear.h"

#ifdef _WIN32
#define API __declspec(dllexport)
#else
#define API __attribute__((visibility("default")))
#endif

enum { QKV, OUT, GATE_UP, DOWN, MATRICES };
enum { ATTENTION, FEED, QUERY, KEY, NORMS, BIAS = NORMS, LAST };
enum { NEAR = 8 /* logits below the largest one that are computed from all bits, see SPLIT8 */ };
enum { WHOLE_MODEL = -1, HELD = 8 << 20 /* bytes of scratch kept between calls */, LINE = 64 /* of the processor's cache */ };
enum { SLAB = 16 << 20 /* bytes of memory taken at once for low-rank products; what is not used is not mapped */ };

typedef struct {
    Matrix matrices[MATRICES];
    float *norms[NORMS]; /* [C], or NULL or [D] of queries and keys */
    int32_t *large;      /* [H, W]: large dimensions of keys, see attention.h */
} Layer;

/* Memory for many small arrays that stay: in huge pages, which each of them alone would not fill. */
typedef struct Slab {
    struct Slab *next;
    char *pages;
    size_t size, used;
} Slab;

typedef struct {
    int layers, width, inner, heads, groups, head_width;
    int wide; /* W, see attention.h */
    int rank; /* the largest rank of a low-rank product */
    float eps;
    float scores, residual, logits; /* factors of attention scores, of what a layer adds to its rows, and of logits */
    Layer *layer;
    Matrix head;
    float *norm;
    Pool *pool;
    char *arena;
    size_t arena_size;
    Slab *slabs; /* the memory of low-rank products */
} Network;

/* The place of keys or values, and their strides in bytes. */
typedef struct {
    const uint8_t *at;
    int64_t layer, head;
} Rooms;

/* Keys and values of tokens, stored [L, H, T, bytes] unless stated otherwise. */
typedef struct {
    Rooms keys, values;
    int64_t tokens;
    int64_t behind; /* whether behind the gap: then seen by queries in the suffix frame */
} Side;

/* Rows of a pass that see each other and their own sides, but nothing of other parts. */
typedef struct {
    const Side *side;
    const float *hidden; /* [R, R], added to scores among the rows, or NULL */
    int64_t rows, sides;
} Part;

typedef struct {
    Network *net;
    int rows, pieces, parts, first, end; /* layers from `first` up to `end` */
    float *x;                                           /* [R, C]: input, then output of the last norm */
    const float *near_cos, *near_sin, *away_cos, *away_sin; /* [R, D]; the latter two are NULL for the reader */
    const Part *part;
    uint16_t *keys, *values; /* [L, H, R, D] out, or NULL */
    /* scratch */
    float *qkv, *attended, *inner;
    Queries near, away;
    uint8_t *own_keys, *own_values; /* stored [H, R, bytes] */
    Rows taken;
    Partial *found;
    Stretch *stretch;
    /* for the head */
    float *logits; /* [R, apart] */
    int apart;
} Job;

static Matrix *matrix_of(Network *net, int layer, int which) {
    return layer == WHOLE_MODEL ? &net->head : &net->layer[layer].matrices[which];
}

API void mercury_free(Network *net) {
    if (!net) return;
    for (int layer = WHOLE_MODEL; net->layer && layer < net->layers; layer++) {
        for (int which = 0; which < (layer == WHOLE_MODEL ? 1 : MATRICES); which++) {
            Matrix *m = matrix_of(net, layer, which);
            give_back(m->codes, matrix_bytes(m));
            free(m->bias);
        }
        if (layer == WHOLE_MODEL) continue;
        for (int norm = 0; norm < NORMS; norm++) free(net->layer[layer].norms[norm]);
        free(net->layer[layer].large);
    }
    for (Slab *slab = net->slabs, *next; slab; slab = next) {
        next = slab->next;
        give_back(slab->pages, slab->size);
        free(slab);
    }
    free(net->layer);
    free(net->norm);
    free(net->arena);
    pool_free(net->pool);
    free(net);
}

/* A network without weights, with W large dimensions in every head (`wide`) and the factors of attention scores, of what a
 * layer adds to its rows, and of logits; NULL when memory or threads are short. */
API Network *mercury_new(int layers, int width, int inner, int heads, int groups, int head_width, int wide, float eps,
                         float scores, float residual, float logits, int threads) {
    Network *net = calloc(1, sizeof *net);
    if (!net) return NULL;
    *net = (Network){.layers = layers, .width = width, .inner = inner, .heads = heads, .groups = groups};
    net->head_width = head_width, net->wide = wide, net->eps = eps, net->pool = pool_new(threads);
    net->scores = scores, net->residual = residual, net->logits = logits;
    net->layer = calloc((size_t)layers, sizeof *net->layer);
    if (net->layer && net->pool && 10 * layers + 1 <= PHASES) return net;
    mercury_free(net);
    return NULL;
}

/* The version of this interface. */
API int mercury_version(void) { return 13; }

/* Number of outputs per tile. */
API int mercury_lanes(void) { return LANES; }

/* Allocates a matrix in a form of `linear.h`, once; the head if layer is -1. Returns 0 when memory is short, as do the
 * functions below. */
API int mercury_matrix(Network *net, int layer, int which, int outputs, int inputs, int form) {
    Matrix *m = matrix_of(net, layer, which);
    if (m->codes || !is_form(form)) return 0;
    *m = (Matrix){.outputs = outputs, .inputs = inputs, .form = form, .tiles = (outputs + LANES - 1) / LANES};
    m->codes = pages(matrix_bytes(m));
    return m->codes != NULL;
}

/* Sets outputs of a matrix from `first` on from GGUF's blocks of a type, `row` bytes per output. Returns 0 for a type that has no
 * such form, -1 if a scale is not finite in float16, else 1. */
API int mercury_blocks(Network *net, int layer, int which, int first, int outputs, int type, int64_t row,
                       const uint8_t *blocks) {
    return lay_blocks(matrix_of(net, layer, which), first, outputs, type, row, blocks);
}

/* Sets a norm, float32 [C] or, of queries and keys, [D]; the bias of QKV [outputs]; or the last norm, of no layer. */
API int mercury_vector(Network *net, int layer, int which, const float *values) {
    Layer *l = &net->layer[which == LAST ? 0 : layer];
    Matrix *m = &l->matrices[QKV];
    float **to = which == LAST ? &net->norm : which == BIAS ? &m->bias : &l->norms[which];
    int count = which == BIAS ? m->outputs : which == QUERY || which == KEY ? net->head_width : net->width;
    free(*to);
    *to = calloc((size_t)count + LANES, sizeof **to);
    if (*to) memcpy(*to, values, sizeof **to * (size_t)count);
    return *to != NULL;
}

/* Sets the large dimensions of every head's keys [H, W]: pairs d, d + D / 2. */
API int mercury_large(Network *net, int layer, const int32_t *large) {
    size_t size = sizeof *large * (size_t)(net->heads * net->wide);
    int32_t *to = net->layer[layer].large = malloc(size);
    if (to) memcpy(to, large, size);
    return to != NULL;
}

/* Zeroed memory until the network is freed; NULL when memory is short. */
static void *room_for(Network *net, size_t size) {
    Slab *slab = net->slabs;
    size = (size + LINE - 1) / LINE * LINE;
    if (!slab || slab->used + size > slab->size) {
        slab = calloc(1, sizeof *slab);
        if (!slab) return NULL;
        slab->size = size > SLAB ? size : SLAB;
        slab->pages = pages(slab->size);
        slab->next = net->slabs;
        if (!slab->pages) return free(slab), NULL;
        net->slabs = slab;
    }
    slab->used += size;
    return slab->pages + slab->used - size;
}

/* Sets a low-rank product, float32 down [rank, inputs] and up [outputs, rank], rounded to bfloat16; piece 0 acts on all rows,
 * piece 1 on the writer's, and the others are adapters that a pass chooses from. */
API int mercury_low_rank(Network *net, int layer, int which, int piece, int rank, const float *down, const float *up) {
    Matrix *m = matrix_of(net, layer, which);
    LowRank *low = &m->pieces[piece];
    size_t inputs = (size_t)m->inputs, wide = (size_t)(rank + LANES - 1) / LANES * LANES;
    low->down = room_for(net, wide * inputs * sizeof *low->down);
    low->up = room_for(net, wide * (size_t)m->tiles * LANES * sizeof *low->up);
    low->rank = low->down && low->up ? (int)wide : 0;
    if (!low->rank) return 0;
    if (low->rank > net->rank) net->rank = low->rank;
    for (size_t r = 0; r < (size_t)rank; r++)
        for (size_t input = 0; input < inputs; input++)
            low->down[(r / LANES * inputs + input) * LANES + r % LANES] = bfloat(down[r * inputs + input]);
    for (size_t output = 0; output < (size_t)m->outputs; output++)
        for (size_t r = 0; r < (size_t)rank; r++)
            low->up[(output / LANES * wide + r) * LANES + output % LANES] = bfloat(up[output * (size_t)rank + r]);
    return 1;
}

/* The bias of keys [H, D] that a pass leaves out; NULL without one, and for keys with a norm. */
static const float *key_bias(const Network *net, int layer) {
    const float *bias = net->layer[layer].matrices[QKV].bias;
    return bias && !net->layer[layer].norms[KEY] ? bias + net->heads * net->groups * net->head_width : NULL;
}

/* Where the tokens of a layer and head begin. */
static const uint8_t *room(const Rooms *of, int layer, int head) { return of->at + of->layer * layer + of->head * head; }

static void norm_row(float *to, const float *x, const float *weight, int width, float eps) {
    floats squares[2] = {all(0), all(0)};
    for (int c = 0; c < width; c += 2 * LANES)
        for (int i = 0; i < 2; i++) squares[i] += load(x + c + i * LANES) * load(x + c + i * LANES);
    float root = 1.f / sqrtf(sum(squares[0] + squares[1]) / (float)width + eps);
    for (int c = 0; c < width; c += LANES) store(to + c, load(x + c) * root * load(weight + c));
}

/* Rows that a thread takes at once. */
typedef struct {
    int first, count;
} Batch;

/* Number of rows in a batch: an equal share per thread, at most TAKEN. */
static int batch_rows(const Job *job, const Pool *pool) {
    int share = (job->rows + pool->threads - 1) / pool->threads;
    return share < TAKEN ? share : TAKEN;
}

static int batches(const Job *job, const Pool *pool) {
    int rows = batch_rows(job, pool);
    return (job->rows + rows - 1) / rows;
}

/* The next rows of a phase; no rows when all are taken. */
static Batch take_batch(const Job *job, Pool *pool, int phase) {
    int rows = batch_rows(job, pool), first = pool_take(pool, phase, batches(job, pool)) * rows;
    if (first < 0) return (Batch){0, 0};
    return (Batch){first, job->rows - first < rows ? job->rows - first : rows};
}

static void take_normed(Job *job, Pool *pool, int phase, const Matrix *m, const float *norm) {
    int width = job->net->width;
    float normed[TAKEN * width];
    for (Batch batch; (batch = take_batch(job, pool, phase)).count; pool_done(pool, phase)) {
        const float *x = job->x + (size_t)batch.first * width;
        for (int r = 0; r < batch.count; r++) norm_row(normed + r * width, x + r * width, norm, width, job->net->eps);
        take_rows(m, job->pieces, &job->taken, batch.first, batch.count, normed);
    }
    pool_meet(pool, phase, batches(job, pool));
}

static void take_plain(Job *job, Pool *pool, int phase, const Matrix *m, const float *from) {
    for (Batch batch; (batch = take_batch(job, pool, phase)).count; pool_done(pool, phase))
        take_rows(m, job->pieces, &job->taken, batch.first, batch.count, from + (size_t)batch.first * m->inputs);
    pool_meet(pool, phase, batches(job, pool));
}

/* Number of tiles that a thread takes at once. */
static int share(const Pool *pool, int tiles) {
    int pieces = pool->threads == 1 ? 1 : 6 * pool->threads;
    return (tiles + pieces - 1) / pieces;
}

typedef enum { WRITES, ADDS, GATES } Manner;

/* Writes y [R, outputs], times `factor`, adds it, or writes swish(gate) * up [R, outputs / 2] of its two halves; rows are
 * `apart` floats apart. Tiles are taken in pairs half of the matrix apart, so both streams are sequential and a gate comes
 * with its up. */
static void multiply(Job *job, Pool *pool, int phase, const Matrix *m, float *to, int apart, Manner manner, float factor) {
    int outputs = manner == GATES ? m->outputs / 2 : m->outputs;
    int pairs = (m->tiles + 1) / PAIR, step = share(pool, pairs), pieces = (pairs + step - 1) / step;
    floats y[PAIR][ROWS];
    for (int piece; (piece = pool_take(pool, phase, pieces)) >= 0; pool_done(pool, phase))
        for (int pair = piece * step; pair < pairs && pair < (piece + 1) * step; pair++) {
            int odd = pair + pairs == m->tiles, tiles[PAIR] = {pair, odd ? pair : pair + pairs};
            for (int first = 0; first < job->rows; first += ROWS) {
                int count = job->rows - first < ROWS ? job->rows - first : ROWS;
                tiles_rows(m, job->pieces, &job->taken, tiles, first, count, y);
                for (int r = 0; r < count && manner == GATES; r++)
                    y[0][r] = y[0][r] / (1.f + power_of_e(-y[0][r])) * y[1][r];
                for (int t = 0; t < (odd || manner == GATES ? 1 : PAIR); t++)
                    for (int r = 0; r < count; r++) {
                        int left = outputs - tiles[t] * LANES;
                        float *at = to + (size_t)(first + r) * apart + tiles[t] * LANES;
                        y[t][r] = manner == ADDS ? y[t][r] * factor + load(at) : y[t][r] * factor;
                        if (left >= LANES) store(at, y[t][r]);
                        else memcpy(at, &y[t][r], sizeof(float) * left);
                    }
            }
        }
    pool_meet(pool, phase, pieces);
}

/* Rotary embedding in halves (arXiv 2104.09864). */
static void rotate(float *to, const float *from, const float *cos, const float *sin, int width) {
    int half = width / 2;
    for (int d = 0; d < half; d += LANES) {
        floats a = load(from + d), b = load(from + half + d);
        store(to + d, a * load(cos + d) - b * load(sin + d));
        store(to + half + d, b * load(cos + half + d) + a * load(sin + half + d));
    }
}

/* The form of a head's keys. */
static Form form_of(const Network *net, int layer, int head) {
    return (Form){net->head_width, net->wide, net->wide ? net->layer[layer].large + head * net->wide : NULL};
}

/* Rotates a query and stores it; the query stays. */
static void put_query(Queries *to, size_t place, const float *query, const float *cos, const float *sin, const Form *form,
                      float factor) {
    int total, width = form->width;
    float turned[width], *large = to->large + place * form->wide;
    rotate(turned, query, cos, sin, width);
    for (int i = 0; i < form->wide; i++) {
        large[i] = turned[form->large[i]] * factor;
        turned[form->large[i]] = 0;
    }
    to->scales[place] = narrowed(to->bytes + place * width, turned, width, &total) * factor;
    to->shifts[place] = (float)(OFFSET * total);
}

/* Rounds a row's keys, without their bias, and values to the bfloat16 that the caller gets, so that a later pass, which has
 * them from there, sees the same numbers as this one. */
static void round_row(const Job *job, int layer, int r, float *keys, float *values) {
    Network *net = job->net;
    int H = net->heads, D = net->head_width, R = job->rows;
    const float *bias = key_bias(net, layer);
    for (int head = 0; head < H; head++) {
        size_t left = (((size_t)layer * H + head) * R + r) * D;
        for (int d = 0; d < D; d += LANES) {
            float *key = keys + head * D + d, *value = values + head * D + d;
            uint16_t key_left[LANES], value_left[LANES];
            floats more = bias ? load(bias + head * D + d) : all(0);
            for (int i = 0; i < LANES; i++) {
                key_left[i] = bfloat(key[i] - more[i]);
                value_left[i] = bfloat(value[i]);
            }
            store(key, bias ? widened(key_left) + more : widened(key_left));
            store(value, widened(value_left));
            if (!job->keys) continue;
            memcpy(job->keys + left + d, key_left, sizeof key_left);
            memcpy(job->values + left + d, value_left, sizeof value_left);
        }
    }
}

static void place_rows(Job *job, Pool *pool, int phase, int layer) {
    Network *net = job->net;
    int H = net->heads, G = net->groups, D = net->head_width, R = job->rows, all_heads = H * G * D + 2 * H * D;
    const float *query_norm = net->layer[layer].norms[QUERY], *key_norm = net->layer[layer].norms[KEY];
    float turned[D];
    for (int r; (r = pool_take(pool, phase, R)) >= 0; pool_done(pool, phase)) {
        float *row = job->qkv + (size_t)r * all_heads, *keys = row + H * G * D, *values = keys + H * D;
        size_t angle = (size_t)r * D;
        for (int head = 0; head < H * G; head++) {
            size_t place = ((size_t)(head / G) * R + r) * G + head % G;
            Form form = form_of(net, layer, head / G);
            float *query = row + head * D;
            if (query_norm) norm_row(query, query, query_norm, D, net->eps);
            put_query(&job->near, place, query, job->near_cos + angle, job->near_sin + angle, &form, net->scores);
            if (!job->away_cos) continue;
            put_query(&job->away, place, query, job->away_cos + angle, job->away_sin + angle, &form, net->scores);
        }
        for (int head = 0; head < H && key_norm; head++)
            norm_row(keys + head * D, keys + head * D, key_norm, D, net->eps);
        round_row(job, layer, r, keys, values);
        for (int head = 0; head < H; head++) {
            Form form = form_of(net, layer, head);
            size_t own = (size_t)head * R + r;
            rotate(turned, keys + head * D, job->near_cos + angle, job->near_sin + angle, D);
            keep_key(job->own_keys + own * key_bytes(&form), turned, &form);
            keep(job->own_values + own * value_bytes(&form), values + head * D, D, 0);
        }
    }
    pool_meet(pool, phase, R);
}

/* Finds keys of a head, from number `first` on, of sides that follow one another: at most KEYS. */
static void find(Stored *to, const Side *sides, int number, int first, int layer, int head, const Form *form) {
    const int key_row = key_bytes(form), row = value_bytes(form);
    to->count = 0;
    for (int which = 0, at = first; which < number && to->count < KEYS; at -= sides[which++].tokens) {
        const uint8_t *keys = room(&sides[which].keys, layer, head), *values = room(&sides[which].values, layer, head);
        for (; at < sides[which].tokens && to->count < KEYS; at++, to->count++) {
            to->keys[to->count] = keys + (size_t)at * key_row;
            to->values[to->count] = values + (size_t)at * row;
        }
    }
}

/* Attention of a part's rows, from `first` on, in one head, to one share of what the queries of a frame see: its sides and, in
 * the prefix frame, the rows' own keys behind them.
 *
 * All of it is cut into stretches from the far end on, wherever sides and passes end, and a share takes one stretch in
 * `shares`. So a row's result is the same to the bit whether the tokens before it are read in its pass or were read before. */
static void attend_frame(Job *job, int shares, int share, Stretch *stretch, int layer, int head, const Part *part, int first,
                         int behind) {
    Network *net = job->net;
    const Form form = form_of(net, layer, head);
    const int G = net->groups, R = job->rows, key_row = key_bytes(&form), row = value_bytes(&form);
    Side seen[part->sides + 1];
    int number = 0, earlier = 0, tokens;
    for (int which = 0; which < part->sides; which++) {
        if (part->side[which].behind != behind) continue;
        seen[number++] = part->side[which];
        earlier += part->side[which].tokens;
    }
    tokens = earlier;
    if (!behind) {
        Rooms keys = {job->own_keys + (size_t)first * key_row, 0, (int64_t)R * key_row};
        Rooms values = {job->own_values + (size_t)first * row, 0, (int64_t)R * row};
        seen[number++] = (Side){keys, values, part->rows, 0};
        tokens += part->rows;
    }
    for (int key = (share + head) % shares * KEYS; key < tokens; key += shares * KEYS) {
        Stored stored;
        find(&stored, seen, number, key, layer, head, &form);
        unfold(stretch, &stored, &form);
        int open = earlier > key ? earlier - key : 0, own = key > earlier ? key - earlier : 0;
        const float *hidden = part->hidden && open < stored.count && !behind ? part->hidden + own : NULL;
        look_all(stretch, behind ? &job->away : &job->near, ((size_t)head * R + first) * G, part->rows * G, &form, G, hidden,
                 part->rows, open, &job->found[share]);
    }
}

static void attend(Job *job, Pool *pool, int phase, int thread, int layer) {
    Network *net = job->net;
    int shares = pool->threads;
    size_t queries = (size_t)net->heads * job->rows * net->groups;
    for (int share; (share = pool_take(pool, phase, shares)) >= 0; pool_done(pool, phase)) {
        Partial *found = &job->found[share];
        memset(found->values, 0, sizeof(float) * queries * net->head_width);
        memset(found->sums, 0, sizeof(float) * queries * LANES);
        for (size_t n = 0; n < queries; n++) found->tops[n] = HIDDEN;
        for (int head = 0; head < net->heads; head++)
            for (int which = 0, first = 0; which < job->parts; first += job->part[which++].rows)
                for (int behind = 0; behind < (job->away_cos ? 2 : 1); behind++)
                    attend_frame(job, shares, share, &job->stretch[thread], layer, head, &job->part[which], first, behind);
    }
    pool_meet(pool, phase, shares);
}

/* Joins the partial results of all shares for a row: [H * G * D]. */
static void gather(const Job *job, int shares, int r, float *row) {
    Network *net = job->net;
    int H = net->heads, G = net->groups, D = net->head_width, R = job->rows;
    float mean[D];
    for (int head = 0; head < H * G; head++) {
        size_t query = ((size_t)(head / G) * R + r) * G + head % G;
        float top = HIDDEN, total = 0;
        for (int t = 0; t < shares; t++) top = fmaxf(top, job->found[t].tops[query]);
        memset(mean, 0, sizeof mean);
        for (int t = 0; t < shares; t++) {
            const Partial *found = &job->found[t];
            float weights = sum(load(found->sums + query * LANES));
            if (weights == 0) continue;
            float share = power_of_e(all(found->tops[query] - top))[0];
            total += share * weights;
            for (int d = 0; d < D; d += LANES)
                store(mean + d, load(mean + d) + load(found->values + query * D + d) * share);
        }
        for (int d = 0; d < D; d += LANES) store(mean + d, load(mean + d) * (1.f / total));
        for (int d = 0; d < D; d += SPAN) /* undoes the order of `interleave` */
            for (int j = 0; j < 4; j++)
                for (int lane = 0; lane < LANES; lane++)
                    row[head * D + d + lane / 4 * 16 + 4 * j + lane % 4] = mean[d + j * LANES + lane];
    }
}

static void take_attended(Job *job, Pool *pool, int phase, const Matrix *out) {
    for (Batch batch; (batch = take_batch(job, pool, phase)).count; pool_done(pool, phase)) {
        float *rows = job->attended + (size_t)batch.first * out->inputs;
        for (int r = 0; r < batch.count; r++) gather(job, pool->threads, batch.first + r, rows + r * out->inputs);
        take_rows(out, job->pieces, &job->taken, batch.first, batch.count, rows);
    }
    pool_meet(pool, phase, batches(job, pool));
}

static void pass(void *given, Pool *pool, int thread) {
    Job *job = given;
    Network *net = job->net;
    int phase = 0;
    for (int number = job->first; number < job->end; number++) {
        Layer *layer = &net->layer[number];
        Matrix *m = layer->matrices;
        take_normed(job, pool, phase++, &m[QKV], layer->norms[ATTENTION]);
        multiply(job, pool, phase++, &m[QKV], job->qkv, m[QKV].outputs, WRITES, 1);
        place_rows(job, pool, phase++, number);
        attend(job, pool, phase++, thread, number);
        take_attended(job, pool, phase++, &m[OUT]);
        multiply(job, pool, phase++, &m[OUT], job->x, net->width, ADDS, net->residual);
        take_normed(job, pool, phase++, &m[GATE_UP], layer->norms[FEED]);
        multiply(job, pool, phase++, &m[GATE_UP], job->inner, net->inner, GATES, 1);
        take_plain(job, pool, phase++, &m[DOWN], job->inner);
        multiply(job, pool, phase++, &m[DOWN], job->x, net->width, ADDS, net->residual);
    }
    if (job->end < net->layers) return;
    for (int r; (r = pool_take(pool, phase, job->rows)) >= 0; pool_done(pool, phase)) {
        float *row = job->x + (size_t)r * net->width;
        norm_row(row, row, net->norm, net->width, net->eps);
    }
    pool_meet(pool, phase, job->rows);
}

/* The largest of a tile's logits. */
static float largest_of(const float *logits, int count) {
    if (count >= LANES) return largest(load(logits));
    float most = logits[0];
    for (int i = 1; i < count; i++) most = logits[i] > most ? logits[i] : most;
    return most;
}

/* Adds the low bits of codes to the logits of tiles that have one within NEAR of the row's largest. */
static void refine(const Job *job, int row) {
    const Matrix *m = &job->net->head;
    const int whole = m->outputs / LANES, rest = m->outputs % LANES;
    const float factor = job->net->logits;
    float *logits = job->logits + (size_t)row * job->apart;
    floats tops = all(-INFINITY);
    for (int tile = 0; tile < whole; tile++) tops = larger(tops, load(logits + tile * LANES));
    float most = largest(tops);
    if (rest) most = fmaxf(most, largest_of(logits + whole * LANES, rest));
    for (int tile = 0; tile < m->tiles; tile++) {
        float *at = logits + tile * LANES;
        int count = tile < whole ? LANES : rest;
        if (!(largest_of(at, count) >= most - NEAR * fabsf(factor))) continue;
        floats more = low_bits(m, &job->taken, tile, row) * factor;
        for (int i = 0; i < count; i++) at[i] += more[i];
    }
}

static void head_pass(void *given, Pool *pool, int thread) {
    Job *job = given;
    (void)thread;
    take_plain(job, pool, 0, &job->net->head, job->x);
    multiply(job, pool, 1, &job->net->head, job->logits, job->apart, WRITES, job->net->logits);
    if (job->net->head.form != SPLIT8) return;
    for (int row; (row = pool_take(pool, 2, job->rows)) >= 0; pool_done(pool, 2)) refine(job, row);
    pool_meet(pool, 2, job->rows);
}

/* A job of `mercury_place`: unrotated keys and values, bfloat16 [L, H, T, D] or stored, to be joined in a frame. */
typedef struct {
    Network *net;
    const Side *block;
    int blocks, tokens, kept;
    const float *cos, *sin;
    uint8_t *kept_keys, *kept_values;
} Placing;

/* Places one layer and head of a block. */
static void place_block(const Placing *p, const Side *block, int layer, int head, int first) {
    const Form form = form_of(p->net, layer, head);
    const int D = form.width, row = value_bytes(&form);
    const uint8_t *keys = room(&block->keys, layer, head), *values = room(&block->values, layer, head);
    const float *biases = key_bias(p->net, layer), *bias = biases ? biases + head * D : NULL;
    float key[D], value[D];
    for (int t = 0; t < block->tokens; t++) {
        size_t to = (size_t)(layer * p->net->heads + head) * p->tokens + first + t, bare = (size_t)t * D;
        uint8_t *kept_value = p->kept_values + to * row;
        if (p->kept) {
            given(key, keys + (size_t)t * key_bytes(&form), &form);
            memcpy(kept_value, values + (size_t)t * row, (size_t)row);
        } else {
            for (int d = 0; d < D; d += LANES) {
                store(key + d, widened((const uint16_t *)keys + bare + d));
                store(value + d, widened((const uint16_t *)values + bare + d));
            }
            for (int d = 0; bias && d < D; d += LANES) store(key + d, load(key + d) + load(bias + d));
            keep(kept_value, value, D, 0);
        }
        rotate(key, key, p->cos + (size_t)(first + t) * D, p->sin + (size_t)(first + t) * D, D);
        keep_key(p->kept_keys + to * key_bytes(&form), key, &form);
    }
}

static void placing_pass(void *given, Pool *pool, int thread) {
    const Placing *p = given;
    int pieces = p->net->layers * p->net->heads;
    (void)thread;
    for (int piece; (piece = pool_take(pool, 0, pieces)) >= 0; pool_done(pool, 0))
        for (int which = 0, first = 0; which < p->blocks; first += p->block[which++].tokens)
            place_block(p, &p->block[which], piece / p->net->heads, piece % p->net->heads, first);
    pool_meet(pool, 0, pieces);
}

/* The next piece of scratch memory; a first run with NULL measures how much memory is needed. */
static void *cut(char **at, size_t bytes) {
    char *found = *at;
    *at += (bytes + LINE - 1) / LINE * LINE;
    return found;
}

static size_t lay_scratch(Job *job, char *base) {
    Network *net = job->net;
    size_t R = (size_t)job->rows, H = (size_t)net->heads, G = (size_t)net->groups, D = (size_t)net->head_width;
    size_t W = (size_t)net->wide;
    size_t widest = (size_t)(net->inner > net->width ? net->inner : net->width), rank = (size_t)net->rank;
    if (widest < H * G * D) widest = H * G * D;
    char *at = base;
    job->taken.bytes = cut(&at, R * widest);
    job->taken.scales = cut(&at, R * widest / GROUP * sizeof(float));
    job->taken.sums = cut(&at, R * widest / GROUP * sizeof(float));
    job->taken.starts = cut(&at, R * widest / GROUP * 2 * sizeof(int32_t));
    for (int piece = 0; piece < PIECES; piece++) job->taken.low[piece] = cut(&at, R * rank * sizeof(float));
    if (job->logits) return (size_t)(at - base);
    job->qkv = cut(&at, R * (H * G + 2 * H) * D * sizeof(float));
    for (int which = 0; which < (job->away_cos ? 2 : 1); which++) {
        Queries *queries = which ? &job->away : &job->near;
        queries->bytes = cut(&at, R * H * G * D);
        queries->scales = cut(&at, R * H * G * sizeof(float));
        queries->shifts = cut(&at, R * H * G * sizeof(float));
        queries->large = cut(&at, R * H * G * W * sizeof(float));
    }
    Form form = {net->head_width, net->wide, NULL};
    job->own_keys = cut(&at, R * H * (size_t)key_bytes(&form));
    job->own_values = cut(&at, R * H * (size_t)value_bytes(&form));
    job->attended = cut(&at, R * H * G * D * sizeof(float));
    job->inner = cut(&at, R * (size_t)net->inner * sizeof(float));
    int threads = net->pool->threads;
    job->found = cut(&at, sizeof(Partial) * threads);
    job->stretch = cut(&at, sizeof(Stretch) * threads);
    for (int t = 0; t < threads; t++) {
        Partial found = {cut(&at, R * H * G * D * sizeof(float)), cut(&at, R * H * G * LANES * sizeof(float)),
                         cut(&at, R * H * G * sizeof(float))};
        Stretch stretch = {cut(&at, KEYS * D), cut(&at, KEYS * D), cut(&at, KEYS * SCALE), cut(&at, KEYS * SCALE),
                           cut(&at, KEYS * SCALE), cut(&at, KEYS * W * sizeof(float)), 0};
        if (!base) continue;
        job->found[t] = found;
        job->stretch[t] = stretch;
    }
    return (size_t)(at - base);
}

static int start(Job *job, Work work) {
    Network *net = job->net;
    for (int layer = 0; layer < net->layers && !job->logits; layer++)
        for (int which = 0; which < MATRICES; which++)
            if (!net->layer[layer].matrices[which].codes || !net->layer[layer].norms[ATTENTION] ||
                !net->layer[layer].norms[FEED]) return 0;
    for (int layer = 0; layer < net->layers && net->wide; layer++)
        if (!net->layer[layer].large) return 0;
    if (job->logits ? !net->head.codes : !net->norm) return 0;
    size_t size = lay_scratch(job, NULL);
    if (size > net->arena_size) {
        free(net->arena);
        net->arena = malloc(size + LINE);
        net->arena_size = net->arena ? size : 0;
        if (!net->arena) return 0;
    }
    lay_scratch(job, (char *)(((uintptr_t)net->arena + LINE - 1) & ~(uintptr_t)(LINE - 1)));
    pool_run(net->pool, work, job);
    if (net->arena_size > HELD) {
        free(net->arena);
        net->arena = NULL;
        net->arena_size = 0;
    }
    return 1;
}

/* Runs the layers from `first` up to `end`, and behind the last one the last norm, over rows x [R, C] and replaces them
 * by the result. Returns 0 when memory is short.
 *
 * The rows of the parts follow one another; a part's result does not depend on the other parts. With angles in the suffix
 * frame (`away`), the writer's low-rank products are added, and those of an adapter if it is not negative. keys (unrotated,
 * without their bias) and values [L, H, R, D] may be NULL. */
API int mercury_run(Network *net, float *x, const float *near_cos, const float *near_sin, const float *away_cos,
                    const float *away_sin, int adapter, const Part *part, int parts, uint16_t *keys, uint16_t *values,
                    int first, int end) {
    int pieces = 1 | (away_cos != NULL) << 1 | (adapter < 0 ? 0 : 4 << adapter);
    Job job = {.net = net, .pieces = pieces, .x = x, .part = part, .parts = parts};
    job.near_cos = near_cos, job.near_sin = near_sin, job.away_cos = away_cos, job.away_sin = away_sin;
    job.keys = keys, job.values = values, job.first = first, job.end = end;
    for (int which = 0; which < parts; which++) job.rows += part[which].rows;
    return start(&job, pass);
}

/* Joins blocks of unrotated keys and values, bfloat16 [L, H, T, D] as left by a pass or all of them stored (`kept`), into a
 * stored side whose tokens are rotated by the angles float32 [T, D]. */
API void mercury_place(Network *net, const Side *block, int blocks, int kept, const float *cos, const float *sin,
                       uint8_t *kept_keys, uint8_t *kept_values) {
    Placing placing = {net, block, blocks, 0, kept, cos, sin, kept_keys, kept_values};
    for (int which = 0; which < blocks; which++) placing.tokens += block[which].tokens;
    pool_run(net->pool, placing_pass, &placing);
}

/* Computes logits of rows [R, C], the first columns of float32 [R, apart]. Returns 0 when memory is short. */
API int mercury_head(Network *net, int rows, float *x, float *logits, int apart) {
    Job job = {.net = net, .rows = rows, .x = x, .logits = logits, .apart = apart};
    return start(&job, head_pass);
}

/* Answers what is asked of rows of logits; see answers.h. */
API void mercury_answers(Network *net, const float *logits, int rows, int tokens, int asks, const uint32_t *banned,
                         const int32_t *list, const int32_t *asked, int32_t *token, float *figures, int32_t *candidate,
                         float *likeliest, float *told) {
    int words = (tokens + WORD - 1) / WORD;
    Asking asking = {logits, rows, tokens, words, asks, banned, list, asked, token, figures, candidate, likeliest, told};
    pool_run(net->pool, answering_pass, &asking);
}
